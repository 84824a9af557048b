//! Error replies in JSON, in the format of RFC 9457 ("problem details").

use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use framewire_emulator::EmulatorError;
use framewire_protocol::OpError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::failure::Failure;

/// A result whose error is a [`Problem`], unless another type is given.
pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

/// The media type of a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Whether the errors of this path are problems. Other paths have errors in plain text.
pub(crate) fn is_under_v1(path: &str) -> bool {
    path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Why a request failed (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`: the status says what kind of problem it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What is wrong, and what to do about it.
    detail: Box<str>,
    /// The parameter, or the place in the body, that cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<Box<str>>,
    /// What is accepted for this parameter, or at this place.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepts: Option<Box<str>>,
    /// The operation of the batch that has the problem: its index in the batch, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<usize>,
    #[serde(skip)]
    headers: Box<[(HeaderName, HeaderValue)]>,
}

impl Problem {
    /// A problem with this status. `detail` says what is wrong and what to do.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into().into_boxed_str(),
            parameter: None,
            accepts: None,
            op: None,
            headers: Box::default(),
        }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// A parameter, or a place in the body, cannot be used. The detail is `NAME PROBLEM; accepted is ACCEPTS`.
    pub(crate) fn parameter(name: impl Into<String>, problem: &str, accepts: impl Into<String>) -> Problem {
        let (name, accepts) = (name.into(), accepts.into());
        let problem = Problem::bad_request(format!("{name} {problem}; accepted is {accepts}"));
        Problem { parameter: Some(name.into()), accepts: Some(accepts.into()), ..problem }
    }

    /// Like [`Problem::parameter`], for a query or a body as a whole. `whole` says which, such as "the body".
    pub(crate) fn of_whole(whole: &str, problem: &str, accepts: impl Into<String>) -> Problem {
        Problem { parameter: None, ..Problem::parameter(whole, problem, accepts) }
    }

    /// A parameter, or a place in the body, cannot be used. The detail is the place followed by `problem`. Unlike
    /// the detail of [`Problem::parameter`], it does not have to say what is accepted.
    pub(crate) fn unusable(place: &str, problem: &str) -> Problem {
        Problem { parameter: Some(place.into()), ..Problem::bad_request(format!("{place} {problem}")) }
    }

    /// Like [`Problem::unusable`], with a colon between the place and `problem` in the detail. The place is that of a
    /// value in the body, such as `ops[3].address`, or a parameter, such as `from`.
    pub(crate) fn at(place: &str, problem: &str) -> Problem {
        let detail = format!("{place}: {problem}");
        Problem { parameter: Some(place.into()), ..Problem::bad_request(detail) }
    }

    /// The refusal of an access to memory. `place` is the parameter, or the place in the body, that names the memory.
    pub(crate) fn refused_access(place: &str, error: &OpError) -> Problem {
        match error.address_problem() {
            Some((problem, accepts)) => Problem::parameter(place, problem, accepts),
            None => error.clone().into(),
        }
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// The request cannot be performed in the present state.
    pub(crate) fn conflict(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    pub(crate) fn too_large(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    /// This kind of emulator cannot do it.
    pub(crate) fn unsupported(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_IMPLEMENTED, detail)
    }

    /// The path exists, but accepts only the methods in `allow`.
    pub(crate) fn wrong_method(path: &str, allow: HeaderValue) -> Problem {
        let methods = allow.to_str().unwrap_or_default().replace(',', ", ");
        let detail = format!("{path} takes {methods}");
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail);
        Problem { accepts: Some(methods.into()), headers: Box::new([(ALLOW, allow)]), ..problem }
    }

    /// The same problem, with its parameter inside `place`: within `ops[3]`, `address` becomes `ops[3].address`.
    pub(crate) fn within(self, place: &str) -> Problem {
        let inner = self.parameter.as_deref();
        let parameter = inner.map_or_else(|| place.to_owned(), |inner| format!("{place}.{inner}"));
        let detail = match inner.and_then(|inner| self.detail.strip_prefix(inner)) {
            Some(rest) => format!("{parameter}{rest}"),
            None => format!("{place}: {}", self.detail),
        };
        Problem { parameter: Some(parameter.into()), detail: detail.into(), ..self }
    }

    /// The same problem, in the operation of a batch with this index.
    pub(crate) fn of_op(self, index: usize) -> Problem {
        Problem { op: Some(index), ..self.within(&format!("ops[{index}]")) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn to_json(&self) -> String {
        // Texts and numbers can always be written as JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Problem {
        let title = status.canonical_reason().unwrap_or("Error");
        Problem { status: status.as_u16(), title, ..self }
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }
}

impl Failure {
    /// The answer to a request for `path`: a problem under `/v1`, plain text elsewhere.
    pub(crate) fn answer(self, path: &str) -> Response {
        if is_under_v1(path) { Problem::from(self).into_response() } else { self.into_response() }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let (status, detail, headers) = failure.into_parts();
        Problem { headers: headers.into(), ..Problem::new(status, detail) }
    }
}

impl From<EmulatorError> for Problem {
    fn from(error: EmulatorError) -> Problem {
        match error {
            EmulatorError::Refused(refusal) => refusal.into(),
            other => Failure::from(other).into(),
        }
    }
}

impl From<OpError> for Problem {
    fn from(error: OpError) -> Problem {
        let about_key = error.is_about_key();
        let problem = Problem::from(Failure::from(error));
        if about_key {
            return Problem { detail: format!("Idempotency-Key: {}", problem.detail).into(), ..problem };
        }
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status(), [(CONTENT_TYPE, MEDIA_TYPE)], self.to_json()).into_response();
        response.headers_mut().extend(self.headers);
        response
    }
}
