//! Memory by address: numbers and bytes, on the bus or in a memory domain.
//!
//! - `scattered`: numbers at many addresses;
//! - `reading`: a number, or bytes;
//! - `writing`: the same the other way;
//! - `domains`: which memory domains there are.

mod domains;
mod reading;
mod scattered;
mod writing;

use std::sync::Arc;

use axum::http::HeaderName;
use framewire_expression::Type;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Problem;
use super::fields::place_in;
use crate::app::Site;
use crate::symbols::{Place, Symbols};

/// The header that says at which frame bytes were read.
pub(super) const FRAME: HeaderName = HeaderName::from_static("framewire-frame");

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .routes(routes!(scattered::scattered))
        .routes(routes!(reading::read, writing::write))
        .routes(routes!(domains::domains))
}

/// A type of number.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum NumberType {
    U8,
    U16,
    U32,
    I8,
    I16,
    I32,
}

impl From<NumberType> for Type {
    fn from(kind: NumberType) -> Type {
        match kind {
            NumberType::U8 => Type::U8,
            NumberType::U16 => Type::U16,
            NumberType::U32 => Type::U32,
            NumberType::I8 => Type::I8,
            NumberType::I16 => Type::I16,
            NumberType::I32 => Type::I32,
        }
    }
}

/// An address in a path or query, or with a domain an offset there.
fn place(text: &str, domain: Option<&str>, symbols: &Symbols) -> Result<Place, Problem> {
    place_in(&text.into(), domain, symbols, "address")
}
