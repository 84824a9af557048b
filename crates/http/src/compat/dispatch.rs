//! From a request's path to its route, and from the route to the reply.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use framewire_emulator::EmulatorError;
use framewire_protocol::{Effect, Status, Value};
use percent_encoding::percent_decode_str;
use tracing::info;

use super::args::{Arg, Args};
use super::params::Kind;
use super::reply::Reply;
use super::table::{ECHO, ROUTES, RequestBody, Route, Verb};
use super::{body, query};
use crate::access::caller::Caller;
use crate::app::Site;
use crate::failure::Failure;
use crate::idempotency;
use crate::idempotency::NothingDone;
use crate::transport::body::read;

/// The routes of one path.
#[derive(Debug, Default)]
pub(crate) struct Place {
    get: Option<Numbered>,
    post: Option<Numbered>,
}

/// A route with its place in [`numbered`].
#[derive(Debug, Clone, Copy)]
struct Numbered {
    number: usize,
    route: &'static Route,
}

/// All routes in the order of their numbers.
pub(crate) fn numbered() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().chain(&ECHO)
}

/// All paths in lower case.
static PLACES: LazyLock<HashMap<String, Place>> = LazyLock::new(|| {
    let mut places: HashMap<String, Place> = HashMap::new();
    for (number, route) in numbered().enumerate() {
        let place = places.entry(route.path.to_ascii_lowercase()).or_default();
        match route.verb {
            Verb::Get => place.get = Some(Numbered { number, route }),
            Verb::Post => place.post = Some(Numbered { number, route }),
        }
    }
    places
});

/// The routes at `path`, in any letter case and with or without a slash at its end.
pub(crate) fn find(path: &str) -> Option<&'static Place> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let plain = !path.bytes().any(|byte| byte == b'%' || byte.is_ascii_uppercase());
    let path = match plain {
        true => Cow::Borrowed(path),
        false => Cow::Owned(percent_decode_str(path).decode_utf8().ok()?.to_ascii_lowercase()),
    };
    PLACES.get(path.as_ref())
}

impl Place {
    /// The number of the route for requests of this method.
    pub(crate) fn number(&self, method: &Method) -> Option<usize> {
        self.route(method).map(|numbered| numbered.number)
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

/// Answers a caller's request for `place`.
pub(crate) async fn answer(site: &Site, place: &Place, caller: &Caller, request: Request) -> Response {
    match place.route(request.method()) {
        Some(Numbered { route, .. }) => {
            run(site, route, caller, request).await.unwrap_or_else(Failure::into_response)
        }
        None => Failure::wrong_method(request.uri().path(), place.allow()).into_response(),
    }
}

async fn run(site: &Site, route: &Route, caller: &Caller, request: Request) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let key = idempotency::read(&parts.headers)?;
    let mut args = Args::default();
    if let Some(arg) = read_body(site, route.body, body).await? {
        args.push(arg);
    }
    query::read(route.params, parts.uri.query().unwrap_or(""), &mut args)?;
    let op = (route.build)(&mut args).ok_or_else(|| {
        Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the row of {} in the table is wrong", route.path),
        )
    })?;
    let share = site.replies.share(&op)?;
    let effect = op.info().effect;
    let value = match site.call(caller, op, key).await {
        // mGBA-http's clients know no reasons.
        Err(EmulatorError::Refused(error))
            if route.reply == Reply::Bool && error.status == Status::Failed =>
        {
            info!("{} answers false: {error}", route.path);
            Value::Bool(false)
        }
        answer => answer.map_err(|error| refusal(route, error))?,
    };
    let mut response = route.reply.response(value, share);
    if effect == Effect::Read {
        response.extensions_mut().insert(NothingDone);
    }
    Ok(response)
}

/// A name is looked up by the emulator, which says what there is; callers know it as a parameter.
fn refusal(route: &Route, error: EmulatorError) -> Failure {
    match (error, route.params.iter().find(|param| param.kind == Kind::Name)) {
        (EmulatorError::Refused(refusal), Some(param)) if refusal.status == Status::BadArgument => {
            Failure::bad_request(format!("parameter {}: {}", param.name, refusal.message))
        }
        (error, _) => error.into(),
    }
}

/// Reads the body even where it has no meaning, so that the next request on the connection is found behind it.
async fn read_body(site: &Site, kind: RequestBody, body: Body) -> Result<Option<Arg>, Failure> {
    let limits = &site.app.limits;
    Ok(match kind {
        RequestBody::Ignored => {
            read(body, limits.max_body, site).await?;
            None
        }
        RequestBody::Savestate => {
            let text = read(body, limits.max_body, site).await?;
            Some(Arg::Bytes(body::savestate(text).await?))
        }
        RequestBody::Message => Some(Arg::Bytes(read(body, limits.max_message, site).await?.into())),
    })
}
