//! What most handlers need, for `use crate::routing::prelude::*`.

pub(crate) use std::sync::Arc;

pub(crate) use axum::Json;
pub(crate) use axum::extract::State;
use axum::http::HeaderName;
pub(crate) use axum::http::StatusCode;
pub(crate) use axum::response::{IntoResponse, Response};
pub(crate) use serde::{Deserialize, Serialize};
pub(crate) use utoipa::{IntoParams, ToSchema};
pub(crate) use utoipa_axum::router::OpenApiRouter;
pub(crate) use utoipa_axum::routes;

pub(crate) use super::declare::Declare;
pub(crate) use super::extract::{EmulatorParam, NoParameters, OpensStream, Page, Path, Payload, Query, yes};
pub(crate) use super::state::AppState;
pub(crate) use crate::operations::SelectedEmulator;
pub(crate) use crate::problem::{Problem, Result};
pub(crate) use crate::storage::{Storage, StoredFile};

/// The reply for something that was created: its path, and its description.
pub(crate) type Created<T> = (StatusCode, [(HeaderName, String); 1], Json<T>);
