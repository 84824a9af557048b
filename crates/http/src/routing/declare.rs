//! Declarations that a route makes where it is added to a router, with methods of [`Declare`]:
//!
//! ```text
//! OpenApiRouter::new().routes(routes!(wait).changes_nothing().counted_as(StreamKind::Wait))
//! ```

use axum::Extension;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::openapi::PathItem;
use utoipa::openapi::extensions::Extensions;
use utoipa_axum::router::{UtoipaMethodRouter, UtoipaMethodRouterExt};

use crate::transport::streams::StreamKind;

/// The extension of a path's description that holds a [`PathEffect`]. It is not published.
const EXTENSION: &str = "x-effect";

/// What requests to a path may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum PathEffect {
    /// GET and HEAD change nothing, and other methods may change something. Read-only callers may use only GET and
    /// HEAD.
    ByMethod,
    /// Read-only callers may send requests with any method. Their rights are checked later: for each operation, or by
    /// comparing the caller with the owner of the object that they change.
    JudgedLater,
    /// For a front end of another crate. Like `JudgedLater`, but an `Idempotency-Key` does not apply: the front end's
    /// messages have keys of their own, and a reply may be endless, so it cannot be kept.
    OwnKeys,
    /// No method changes anything: read-only callers may use all of them, and an `Idempotency-Key` does not apply.
    Nothing,
}

impl PathEffect {
    /// The effect that a path's description declares.
    pub(crate) fn of(item: &PathItem) -> PathEffect {
        let declared =
            item.extensions.as_ref().and_then(|all| PathEffect::deserialize(all.get(EXTENSION)?).ok());
        declared.unwrap_or(PathEffect::ByMethod)
    }

    pub(crate) fn declare(self, item: &mut PathItem) {
        item.extensions = Some(Extensions::from_iter([(EXTENSION, json!(self))]));
    }
}

pub(crate) trait Declare: Sized {
    /// Lets read-only callers send requests with any method: see [`PathEffect::JudgedLater`].
    fn judged_later(self) -> Self {
        self.with_effect(PathEffect::JudgedLater)
    }

    /// Declares that no method changes anything: see [`PathEffect::Nothing`].
    fn changes_nothing(self) -> Self {
        self.with_effect(PathEffect::Nothing)
    }

    /// Declares the kind of the streams of these routes, for [`OpensStream`](super::extract::OpensStream) and the
    /// metrics.
    fn counted_as(self, kind: StreamKind) -> Self;

    #[doc(hidden)]
    fn with_effect(self, effect: PathEffect) -> Self;
}

impl<S: Clone + Send + Sync + 'static> Declare for UtoipaMethodRouter<S> {
    fn counted_as(self, kind: StreamKind) -> Self {
        self.layer(Extension(kind))
    }

    fn with_effect(mut self, effect: PathEffect) -> Self {
        for item in self.1.paths.values_mut() {
            effect.declare(item);
        }
        self
    }
}
