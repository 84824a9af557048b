//! Which parameters the query of each route may have.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, PathItem, RefOr};

use super::extract::{name_of, pairs_of};
use crate::problem::Problem;

/// Refuses parameters that the route does not have, as the document describes it; `emulator` may stand beside any.
pub(crate) async fn check(
    known: Arc<Parameters>,
    path: MatchedPath,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Some(query) = request.uri().query().filter(|query| !query.is_empty()) else {
        return Ok(next.run(request).await);
    };
    let known = known.of(request.method(), path.as_str());
    let stranger =
        pairs_of(query).map(name_of).find(|name| name != "emulator" && !known.contains(name.as_ref()));
    match stranger {
        None => Ok(next.run(request).await),
        Some(name) => {
            let known: BTreeSet<&str> = known.iter().map(String::as_str).chain(["emulator"]).collect();
            let known: Vec<&str> = known.into_iter().collect();
            Err(Problem::parameter(name, "is no parameter here", known.join(", ")))
        }
    }
}

/// The operations of a path, with their methods.
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

/// The parameters that queries may have, by method and path.
pub(crate) struct Parameters(HashMap<(Method, String), BTreeSet<String>>);

impl Parameters {
    /// Those that `document` describes.
    pub(crate) fn new(document: &OpenApi) -> Parameters {
        let mut known = HashMap::new();
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                let own = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
                    RefOr::T(own) if own.parameter_in == ParameterIn::Query => Some(own.name.clone()),
                    _ => None,
                });
                known.insert((method, path.clone()), own.collect());
            }
        }
        Parameters(known)
    }

    fn of(&self, method: &Method, path: &str) -> &BTreeSet<String> {
        const NONE: &BTreeSet<String> = &BTreeSet::new();
        let method = if *method == Method::HEAD { Method::GET } else { method.clone() };
        self.0.get(&(method, path.to_owned())).unwrap_or(NONE)
    }
}
