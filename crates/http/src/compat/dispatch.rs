//! Finds the route for a request's path, performs the route's operation, and writes the reply.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use framewire_emulator::EmulatorError;
use framewire_protocol::op::ResultKind;
use framewire_protocol::{Effect, Op, Status, Value};
use percent_encoding::percent_decode_str;
use tracing::info;

use super::body;
use super::params::{Kind, RawQuery};
use super::table::{ECHO, ROUTES, RequestBody, Route, Verb};
use crate::access::caller::Caller;
use crate::failure::Failure;
use crate::idempotency::{self, NothingDone};
use crate::operations::Operations;
use crate::transport::incoming::BodyReader;

/// The routes of one path.
#[derive(Debug, Default)]
pub(crate) struct RoutesAt {
    get: Option<Numbered>,
    post: Option<Numbered>,
}

/// A route with its number, which is its index in [`numbered`].
type Numbered = (usize, &'static Route);

/// All routes in the order of their numbers.
fn numbered() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().chain(&ECHO)
}

/// The path and the method of each route, in the order of their numbers.
pub(crate) fn metered_routes() -> Vec<(&'static str, &'static str)> {
    let method = |route: &Route| match route.verb {
        Verb::Get => "GET",
        Verb::Post => "POST",
    };
    numbered().map(|route| (route.path, method(route))).collect()
}

/// The routes of each path. The keys are the paths in lower case.
static PATHS: LazyLock<HashMap<String, RoutesAt>> = LazyLock::new(|| {
    let mut paths: HashMap<String, RoutesAt> = HashMap::new();
    for (number, route) in numbered().enumerate() {
        let routes = paths.entry(route.path.to_ascii_lowercase()).or_default();
        match route.verb {
            Verb::Get => routes.get = Some((number, route)),
            Verb::Post => routes.post = Some((number, route)),
        }
    }
    paths
});

/// The routes at `path`, in any letter case and with or without a slash at its end.
pub(crate) fn find(path: &str) -> Option<&'static RoutesAt> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_plain = !path.bytes().any(|byte| byte == b'%' || byte.is_ascii_uppercase());
    if is_plain {
        return PATHS.get(path);
    }
    PATHS.get(&percent_decode_str(path).decode_utf8().ok()?.to_ascii_lowercase())
}

impl RoutesAt {
    pub(crate) fn number(&self, method: &Method) -> Option<usize> {
        self.route(method).map(|(number, _)| number)
    }

    fn route(&self, method: &Method) -> Option<Numbered> {
        match *method {
            Method::GET | Method::HEAD => self.get,
            Method::POST => self.post,
            _ => None,
        }
    }

    fn allow(&self) -> &'static str {
        match (self.get.is_some(), self.post.is_some()) {
            (true, true) => "GET, HEAD, POST",
            (true, false) => "GET, HEAD",
            (false, _) => "POST",
        }
    }
}

pub(crate) struct CompatServices {
    pub(crate) operations: Arc<Operations>,
    pub(crate) bodies: Arc<BodyReader>,
    /// The largest length of a message in bytes.
    pub(crate) max_message: usize,
}

impl CompatServices {
    pub(crate) async fn answer(
        &self,
        routes: &RoutesAt,
        caller: &Caller,
        head: &Parts,
        body: Body,
    ) -> Response {
        let Some((_, route)) = routes.route(&head.method) else {
            return Failure::wrong_method(head.uri.path(), routes.allow()).into_response();
        };
        run(self, route, caller, head, body).await.unwrap_or_else(Failure::into_response)
    }
}

async fn run(
    services: &CompatServices,
    route: &Route,
    caller: &Caller,
    head: &Parts,
    body: Body,
) -> Result<Response, Failure> {
    let key = idempotency::read(&head.headers)?;
    let has_key = key.is_some();
    let mut nothing_done = route.op.effect == Effect::Read;
    let op = build(services, route, head.uri.query().unwrap_or(""), body).await?;
    let share = services.operations.replies.share(&op)?;
    let value = match services.operations.call(caller, op, key).await {
        // mGBA-http's clients do not expect a reason in the reply, so it is only logged.
        Err(EmulatorError::Refused(error))
            if route.op.result == ResultKind::Bool
                && matches!(error.status, Status::Failed | Status::NotFound) =>
        {
            info!("{} answers false: {error}", route.path);
            nothing_done |= error.status.is_refusal();
            Value::Bool(false)
        }
        answer => answer.map_err(|error| refusal(route, error))?,
    };
    let mut response = route.reply.response(value, share);
    if has_key && nothing_done {
        response.extensions_mut().insert(NothingDone);
    }
    Ok(response)
}

/// The failure for an emulator's error. The emulator looks up names, and its error about an unknown name lists the
/// names that it has. In this case, the failure also says which parameter has the name.
fn refusal(route: &Route, error: EmulatorError) -> Failure {
    match (error, route.params.iter().find(|param| param.kind == Kind::Name)) {
        (EmulatorError::Refused(refusal), Some(param)) if refusal.status == Status::BadArgument => {
            Failure::bad_request(format!("parameter {}: {}", param.name, refusal.message))
        }
        (error, _) => error.into(),
    }
}

/// Makes the operation of a request. Reads the body even if it is not used, so that the next request on the
/// connection can be read.
async fn build(services: &CompatServices, route: &Route, query: &str, body: Body) -> Result<Op, Failure> {
    let CompatServices { bodies, max_message, .. } = services;
    let data: Vec<u8> = match route.body() {
        RequestBody::Ignored => {
            bodies.read(body).await?;
            Vec::new()
        }
        RequestBody::Savestate => body::savestate(bodies.read(body).await?).await?,
        RequestBody::Message => bodies.read_within(body, *max_message).await?.into(),
    };
    (route.build)(RawQuery(query), data)
}
