//! Calls the JSON-RPC methods of a remote server over HTTP. The server's OpenAPI document says which route each method
//! has, and whether requests to it can have an idempotency key. Each request that can have a key has one. So it is not
//! performed twice if the connection breaks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use framewire_mcp::{Backend, CallFuture, EndFuture, Object, Problem};
use serde_json::{Value as Json, json};

use crate::commands::client::{Client, encode};

/// The timeout of a request. At the console's own speed, the longest run that a server accepts (216,000 frames) takes
/// less time.
const TIMEOUT: Duration = Duration::from_secs(3700);

/// A backend that calls a remote server.
pub struct Remote {
    client: Arc<Client>,
    routes: HashMap<String, Route>,
}

/// A route of the server.
#[derive(Clone)]
struct Route {
    /// The HTTP method, in upper case.
    method: String,
    /// The path, with the names of its parameters in braces.
    path: String,
    /// The names of the parameters in the query.
    query: Vec<String>,
    /// Whether requests can have an idempotency key.
    takes_key: bool,
}

impl Remote {
    /// Asks the server which routes it has.
    ///
    /// # Errors
    /// If there is no Framewire server at the address.
    pub fn new(client: Client) -> anyhow::Result<Remote> {
        let described = client.get("/openapi.json").and_then(|reply| reply.json());
        let document = described.map_err(|error| anyhow!("--url: {error}"))?;
        let paths =
            document["paths"].as_object().context("--url: the server does not describe its routes")?;
        let mut routes = HashMap::new();
        for (path, item) in paths {
            for (method, operation) in item.as_object().into_iter().flatten() {
                let Some(id) = operation["operationId"].as_str() else { continue };
                let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
                let takes_key = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
                let in_query = parameters.iter().filter(|parameter| parameter["in"] == "query");
                let query =
                    in_query.filter_map(|parameter| Some(parameter["name"].as_str()?.to_owned())).collect();
                let route = Route { method: method.to_uppercase(), path: path.clone(), query, takes_key };
                routes.insert(id.to_owned(), route);
            }
        }
        Ok(Remote { client: Arc::new(client), routes })
    }
}

impl Backend for Remote {
    fn call<'a>(&'a self, method: &'a str, params: Object) -> CallFuture<'a> {
        Box::pin(async move {
            let id = method.strip_prefix("v1.").unwrap_or(method);
            let failed = |detail: String| Problem { status: 502, detail };
            let route = self.routes.get(id).cloned();
            let route = route
                .ok_or_else(|| failed(format!("the server has no {id}; it is older than this program")))?;
            let client = self.client.clone();
            let called = tokio::task::spawn_blocking(move || route.send(&client, params)).await;
            called.map_err(|error| failed(error.to_string()))?.map_err(failed)
        })
    }

    /// Always false, because this program does not know the rights of the token. The server refuses what the token does
    /// not allow.
    fn only_reads(&self) -> bool {
        false
    }

    /// False: each request that changes something has an idempotency key. The server completes such a request even if
    /// the connection breaks.
    fn ends_dropped_calls(&self) -> bool {
        false
    }

    /// Never completes: a remote server does not announce that it stops.
    fn stopped(&self) -> EndFuture<'_> {
        Box::pin(std::future::pending())
    }
}

impl Route {
    /// Sends a request. Parameters that belong to neither the path nor the query go into the body. The parameter
    /// `idempotency_key` becomes the request's idempotency key.
    fn send(&self, client: &Client, mut params: Object) -> Result<Json, String> {
        let key = params.remove("idempotency_key").map(text);
        let mut target = String::new();
        for part in self.path.split('/').skip(1) {
            target.push('/');
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(name) => target += &encode(&text(params.remove(name).unwrap_or_default())),
                None => target += part,
            }
        }
        let mut before = '?';
        for name in &self.query {
            if let Some(value) = params.remove(name) {
                target.push(before);
                target += &format!("{name}={}", encode(&text(value)));
                before = '&';
            }
        }
        let body = Json::Object(params).to_string();
        let reply = match self.method.as_str() {
            "GET" => client.get_within(&target, TIMEOUT),
            // Such a request changes nothing, so it may be sent twice.
            "POST" if !self.takes_key => client.read_within(&target, &body, TIMEOUT),
            method => client.change_within(method, &target, &body, TIMEOUT, key),
        };
        let reply = reply.map_err(|error| error.to_string())?;
        if reply.body.is_empty() {
            return Ok(Json::Null);
        }
        let kind = reply.text("content-type");
        if !kind.starts_with("application/json") {
            return Ok(json!({"type": kind, "data": STANDARD.encode(&reply.body)}));
        }
        reply.json().map_err(|error| error.to_string())
    }
}

/// Formats a value for a path or a query.
fn text(value: Json) -> String {
    match value {
        Json::String(text) => text,
        other => other.to_string(),
    }
}
