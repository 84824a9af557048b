//! The routes of `/v1` as methods, made from the OpenAPI document: a new route needs no change here.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value as Json, json};
use tower::ServiceExt;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, RefOr};

use super::message::RpcError;
use super::methods::{UnderWay, under_way};
use super::session::{RpcReply, RpcSession};
use crate::headers::content_type;
use crate::idempotency::IDEMPOTENCY_KEY;
use crate::operations::budget::{ReplyBudget, SMALL};
use crate::problem::Problem;
use crate::reading::fields::{Encoding, Object, wrong_value};
use crate::routing::catalog::{Catalog, operations, query_parameters};
use crate::transport::incoming::Charge;

/// The characters that are percent-encoded in a part of a path or a query.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The prefix of Framewire's own headers. In a result, these headers are fields, without the prefix.
const OWN_HEADERS: &str = "framewire-";

/// The parameter that holds a whole body.
const BODY: &str = "body";

/// The routes by their operation ids.
pub(crate) struct RouteMethods {
    router: Router,
    catalog: Arc<Catalog>,
    by_id: HashMap<String, RouteMethod>,
}

/// A route as a method.
pub(super) struct RouteMethod {
    method: Method,
    /// The path, with the names of parameters in braces.
    path: String,
    query: Vec<String>,
    body: BodyKind,
}

/// The kind of body that requests have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Nothing,
    Json,
    Bytes,
}

impl RouteMethods {
    /// The routes of `router`, which `document` describes.
    pub(crate) fn new(router: Router, document: &OpenApi, catalog: Arc<Catalog>) -> RouteMethods {
        let mut by_id = HashMap::new();
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                if let Some(id) = &operation.operation_id
                    && !is_stream(operation)
                {
                    by_id.insert(id.clone(), RouteMethod::new(method, path, operation));
                }
            }
        }
        RouteMethods { router, catalog, by_id }
    }

    pub(super) fn find(&self, id: &str) -> Option<&RouteMethod> {
        self.by_id.get(id)
    }

    /// Begins a request to a route. `key` is the request's idempotency key, if it has one. `charge` counts the memory
    /// of the request's message. When this function returns, the request has been polled once.
    pub(super) async fn begin(
        &self,
        session: &RpcSession,
        route: &RouteMethod,
        params: Object,
        key: Option<String>,
        charge: Option<Arc<Charge>>,
    ) -> Result<UnderWay, RpcError> {
        let caller = &session.caller;
        let takes_key = self.catalog.takes_key(&route.method, &route.path);
        self.catalog.check_rights(caller.rights, &route.method, &route.path).map_err(Problem::from)?;
        if key.is_some() && !takes_key {
            let problem = "is given, and this method changes nothing";
            return Err(Problem::unusable("idempotency_key", problem).into());
        }
        let mut request = route.request(params, &session.served.name)?;
        if let Some(key) = &key {
            let value =
                HeaderValue::from_str(key).map_err(|error| Problem::bad_request(error.to_string()))?;
            request.headers_mut().insert(IDEMPOTENCY_KEY, value);
        }
        request.extensions_mut().insert(caller.clone());
        let (router, caller) = (self.router.clone(), caller.clone());
        let idempotency = session.services.idempotency.clone();
        // A request that changes something must get its reply. Other requests can be refused after they were performed.
        let budget = if takes_key { None } else { Some(session.services.operations.replies.clone()) };
        let work = async move |request| {
            let Ok(response) = router.oneshot(request).await;
            response
        };
        let replied = async move {
            let response = match key {
                None => work(request).await,
                Some(key) => idempotency
                    .once(&caller, key, request, charge, work)
                    .await
                    .unwrap_or_else(|failure| Problem::from(failure).into_response()),
            };
            reply(response, budget.as_ref()).await
        };
        Ok(under_way(replied).await)
    }
}

impl RouteMethod {
    fn new(method: Method, path: &str, operation: &Operation) -> RouteMethod {
        let query = query_parameters(operation).map(str::to_owned);
        let body = match &operation.request_body {
            Some(RefOr::T(body)) if body.content.contains_key("application/json") => BodyKind::Json,
            Some(_) => BodyKind::Bytes,
            None => BodyKind::Nothing,
        };
        RouteMethod { method, path: path.to_owned(), query: query.collect(), body }
    }

    /// Makes a request from the parameters. Those of the path and of the query are used first. The rest are the fields
    /// of the body.
    fn request(&self, mut params: Object, emulator: &str) -> Result<Request, Problem> {
        let mut target = self.filled(&mut params)?;
        let whole = if self.body == BodyKind::Nothing { None } else { params.remove(BODY) };
        let names_none = params.get("emulator").is_none_or(Json::is_null);
        if names_none && self.query.iter().any(|name| name == "emulator") {
            params.insert("emulator".to_owned(), emulator.into());
        }
        // Without a JSON body, all other parameters go into the query, so that the route refuses those that it does not
        // have.
        let in_query =
            |name: &String| self.query.contains(name) || self.body != BodyKind::Json || name == "emulator";
        let (query, fields): (Object, Object) = params.into_iter().partition(|(name, _)| in_query(name));
        let mut before = '?';
        for (name, value) in query {
            for text in texts(&name, value)? {
                let pair = [&name, &text].map(|text| utf8_percent_encode(text, ENCODED).to_string());
                target.push(before);
                target.push_str(&pair.join("="));
                before = '&';
            }
        }
        let request = Request::builder().method(&self.method).uri(target);
        let (request, body) = match self.body {
            BodyKind::Nothing => (request, Vec::new()),
            BodyKind::Json => (request.header(CONTENT_TYPE, "application/json"), json_body(whole, fields)?),
            BodyKind::Bytes => (request.header(CONTENT_TYPE, "application/octet-stream"), bytes_of(whole)?),
        };
        request.body(Body::from(body)).map_err(|error| Problem::bad_request(error.to_string()))
    }

    /// The path with the values of its parameters, which are removed from `params`.
    fn filled(&self, params: &mut Object) -> Result<String, Problem> {
        let mut path = String::new();
        for part in self.path.split('/').skip(1) {
            path.push('/');
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                None => path.push_str(part),
                Some(name) => {
                    let value = params.remove(name).unwrap_or_default();
                    let text = text(name, &value)?.filter(|text| !text.is_empty());
                    let text =
                        text.ok_or_else(|| Problem::parameter(name, "is missing", "a text or a number"))?;
                    path.extend(utf8_percent_encode(&text, ENCODED));
                }
            }
        }
        Ok(path)
    }
}

/// Whether the reply of an operation has no end, or opens a WebSocket.
fn is_stream(operation: &Operation) -> bool {
    operation.responses.responses.iter().any(|(status, response)| {
        let RefOr::T(response) = response else { return false };
        let endless = |kind: &String| kind.starts_with("text/event-stream") || kind.starts_with("multipart/");
        status == "101" || response.content.keys().any(endless)
    })
}

/// The values of a query parameter as text: one value, or several if `value` is a list.
fn texts(name: &str, value: Json) -> Result<Vec<String>, Problem> {
    let items = match value {
        Json::Array(items) => items,
        value => vec![value],
    };
    items.iter().filter_map(|item| text(name, item).transpose()).collect()
}

/// A parameter of a path or a query as text; `None` for null.
fn text(name: &str, value: &Json) -> Result<Option<String>, Problem> {
    match value {
        Json::Null => Ok(None),
        Json::String(text) => Ok(Some(text.clone())),
        Json::Number(number) => Ok(Some(number.to_string())),
        Json::Bool(value) => Ok(Some(value.to_string())),
        other => Err(wrong_value(name, other, "a text, a number, true or false")),
    }
}

/// A JSON body, given as a whole or by its fields.
fn json_body(whole: Option<Json>, fields: Object) -> Result<Vec<u8>, Problem> {
    let body = match (whole, fields.keys().next()) {
        (None, _) => Json::Object(fields),
        (Some(whole), None) => whole,
        (Some(_), Some(other)) => {
            let accepts = "either body, or its fields as parameters";
            return Err(Problem::parameter(other, "is given in addition to body", accepts));
        }
    };
    serde_json::to_vec(&body).map_err(|error| Problem::bad_request(error.to_string()))
}

fn bytes_of(whole: Option<Json>) -> Result<Vec<u8>, Problem> {
    const ACCEPTED: &str = "the bytes as a text in base64";
    let wrong = |problem| Problem::parameter(BODY, problem, ACCEPTED);
    match whole {
        Some(Json::String(text)) => Encoding::Base64.bytes(&text).ok_or_else(|| wrong("is not base64")),
        Some(other) => Err(wrong_value(BODY, &other, ACCEPTED)),
        None => Err(wrong("is missing")),
    }
}

/// Roughly how many bytes of memory JSON uses after it was parsed. An object uses more than 600 bytes, even with a
/// single field.
fn memory_of(json: &[u8]) -> usize {
    let size = |byte: &u8| match byte {
        b'{' => 640,
        b',' => 32,
        _ => 1,
    };
    json.iter().map(size).sum()
}

/// The reply of a route, as the result or the error of a method. If there is a `budget`, the result must fit into it.
async fn reply(response: Response, budget: Option<&ReplyBudget>) -> Result<RpcReply, RpcError> {
    let (parts, body) = response.into_parts();
    let internal = |error: String| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let body = to_bytes(body, usize::MAX).await.map_err(|error| internal(error.to_string()))?;
    if !parts.status.is_success() {
        let problem = serde_json::from_slice(&body).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(&body).into_owned();
            json!(Problem::new(parts.status, text))
        });
        return Err(RpcError::with_status(parts.status, problem));
    }
    let kind = content_type(&parts.headers);
    let is_json = kind.starts_with("application/json");
    // A body that is larger than `SMALL` already has its own share of the budget.
    let bytes = if is_json { memory_of(&body) } else { body.len().min(SMALL) };
    let share = budget.map(|budget| budget.share_of_many(bytes)).transpose().map_err(Problem::from)?;
    let result = if body.is_empty() {
        Json::Null
    } else if is_json {
        serde_json::from_slice(&body).map_err(|error| internal(error.to_string()))?
    } else {
        let mut result = Object::new();
        result.insert("type".to_owned(), kind.into());
        for (name, value) in &parts.headers {
            let own = name.as_str().strip_prefix(OWN_HEADERS);
            if let (Some(name), Some(value)) = (own, value.to_str().ok().and_then(|text| text.parse().ok())) {
                result.insert(name.to_owned(), Json::Number(value));
            }
        }
        result.insert("data".to_owned(), Encoding::Base64.text(&body).into());
        Json::Object(result)
    };
    Ok(RpcReply { held: Some(Box::new((body, share))), ..result.into() })
}
