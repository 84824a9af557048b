//! A catalog of the routes under `/v1`, made from their descriptions and declarations. The path of a front end of
//! another crate, such as `/mcp`, can be added to it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, PathItem, RefOr};

use super::declare::PathEffect;
use super::extract::emulator_in;
use crate::access::caller::Rights;
use crate::failure::Failure;
use crate::operations::Operations;
use crate::problem::Problem;
use crate::reading::{name_of, pairs_of};
use crate::transport::incoming::BodyReader;

/// The routes that a document describes.
pub(crate) struct Catalog {
    /// The routes by method and path.
    routes: HashMap<(Method, String), DescribedRoute>,
    /// The effects that paths declare. In the paths, the names of parameters are in braces.
    effects: Vec<(String, PathEffect)>,
}

struct DescribedRoute {
    /// The parameters that queries may have.
    query: Vec<String>,
    has_body: bool,
}

impl Catalog {
    pub(crate) fn new(document: &OpenApi) -> Catalog {
        let mut catalog = Catalog { routes: HashMap::new(), effects: Vec::new() };
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                let query = query_parameters(operation).map(str::to_owned).collect();
                let route = DescribedRoute { query, has_body: operation.request_body.is_some() };
                catalog.routes.insert((method, path.clone()), route);
            }
            let effect = PathEffect::of(item);
            if effect != PathEffect::ByMethod {
                catalog.effects.push((path.clone(), effect));
            }
        }
        catalog
    }

    /// Declares what requests to `path` may change, for a path that the document does not describe.
    pub(crate) fn declare(&mut self, path: &str, effect: PathEffect) {
        self.effects.push((path.to_owned(), effect));
    }

    /// Refuses a request that changes something, if its caller may only read. Only the method and the path are checked.
    pub(crate) fn check_rights(&self, rights: Rights, method: &Method, path: &str) -> Result<(), Failure> {
        let is_read_only = matches!(*method, Method::GET | Method::HEAD);
        if rights == Rights::Full || is_read_only || self.effect(path) != PathEffect::ByMethod {
            return Ok(());
        }
        let message = format!("the token of the request is read-only, and {method} {path} changes something");
        Err(Failure::forbidden(message))
    }

    /// Whether an `Idempotency-Key` applies to requests of this method to this path.
    pub(crate) fn takes_key(&self, method: &Method, path: &str) -> bool {
        takes_key(method, self.effect(path))
    }

    fn effect(&self, path: &str) -> PathEffect {
        let found = self.effects.iter().find(|(pattern, _)| matches_pattern(path, pattern));
        found.map_or(PathEffect::ByMethod, |(_, effect)| *effect)
    }

    fn route(&self, method: &Method, path: &str) -> Option<&DescribedRoute> {
        let method = if *method == Method::HEAD { Method::GET } else { method.clone() };
        self.routes.get(&(method, path.to_owned()))
    }
}

/// Whether an `Idempotency-Key` applies to requests of this method to a path with this effect.
pub(crate) fn takes_key(method: &Method, effect: PathEffect) -> bool {
    let changes = matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    changes && !matches!(effect, PathEffect::Nothing | PathEffect::OwnKeys)
}

/// Whether a path matches a pattern with parameters in braces.
fn matches_pattern(path: &str, pattern: &str) -> bool {
    let mut parts = path.split('/');
    let fits = pattern.split('/').all(|expected| match parts.next() {
        Some(part) if expected.starts_with('{') => !part.is_empty(),
        part => part == Some(expected),
    });
    fits && parts.next().is_none()
}

/// Refuses parameters that a route under `/v1` does not have. All of these routes accept `emulator`, with the name of an
/// emulator. If the route takes no body, reads and ignores the body, so that the next request on the connection can be
/// read.
pub(crate) async fn check_request(
    catalog: Arc<Catalog>,
    bodies: Arc<BodyReader>,
    operations: Arc<Operations>,
    path: MatchedPath,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let route = catalog.route(request.method(), path.as_str());
    if route.is_some_and(|route| !route.has_body) {
        bodies.read(std::mem::take(request.body_mut())).await?;
    }
    let query = request.uri().query().unwrap_or_default();
    let known = route.map_or(&[][..], |route| &route.query);
    let is_unknown = |name: &Cow<'_, str>| name != "emulator" && !known.iter().any(|known| known == name);
    let Some(unknown) = pairs_of(query).map(name_of).find(is_unknown) else {
        emulator_in(pairs_of(query), &operations.emulators)?;
        return Ok(next.run(request).await);
    };
    let mut accepted: Vec<&str> = known.iter().map(String::as_str).chain(["emulator"]).collect();
    accepted.sort_unstable();
    accepted.dedup();
    Err(Problem::parameter(unknown, "is not a parameter here", accepted.join(", ")))
}

pub(crate) fn query_parameters(operation: &Operation) -> impl Iterator<Item = &str> {
    operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(own) if own.parameter_in == ParameterIn::Query => Some(own.name.as_str()),
        _ => None,
    })
}

pub(crate) fn operations(item: &PathItem) -> impl Iterator<Item = (Method, &Operation)> {
    let all = [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_paths_with_a_value_for_each_parameter() {
        for path in ["/v1/search/1/undo", "/v1/search/{id}/undo"] {
            assert!(matches_pattern(path, "/v1/search/{id}/undo"), "{path}");
        }
        for path in ["/v1/search/1", "/v1/search//undo", "/v1/search/1/undo/2", "/v1/search/1/redo", ""] {
            assert!(!matches_pattern(path, "/v1/search/{id}/undo"), "{path}");
        }
    }
}
