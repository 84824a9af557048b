//! What handlers take from a request, with problems where it is something else.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::access::caller::Caller;
use crate::app::Site;
use crate::idempotency;
use crate::operations::emulators::Served;
use crate::problem::Problem;
use crate::reading;
use crate::transport::body;

/// The parameter by which [`Chosen`] is chosen, for `#[utoipa::path(params(Which))]`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes what `Chosen` reads")]
pub(crate) struct Which {
    /// Name of the emulator, as GET /v1/emulators lists it; left out, the first is meant.
    emulator: Option<String>,
}

/// The emulator that a request is about, as its sender may use it.
pub(crate) struct Chosen(pub(crate) Arc<Served>);

impl FromRequestParts<Arc<Site>> for Chosen {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Chosen, Problem> {
        let emulators = &site.app.emulators;
        let caller = Caller::of(&parts.extensions);
        let permitted = |served: &Arc<Served>| Chosen(served.for_caller(site.gate.permit(&caller)));
        let names = || {
            let names: Vec<&str> = emulators.iter().map(|served| served.name.as_str()).collect();
            names.join(", ")
        };
        let mut given = pairs(parts).filter(is_choice).map(value_of);
        let Some(name) = given.next() else { return Ok(permitted(emulators.first())) };
        if given.next().is_some() {
            return Err(Problem::parameter(
                "emulator",
                "is given more than once",
                format!("one of {}", names()),
            ));
        }
        emulators.get(&name).map(permitted).ok_or_else(|| {
            Problem::not_found(format!("no emulator is called {name:?}; there are: {}", names()))
        })
    }
}

/// The parameters of a route that has none but [`Which`].
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// The parameters of a query, without [`Which`].
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, Problem> {
        let mut given: Vec<(String, Vec<String>)> = Vec::new();
        for pair in pairs(parts).filter(|pair| !is_choice(pair)) {
            let (name, value) = (name_of(pair), value_of(pair));
            match given.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => given.push((name.into_owned(), vec![value])),
            }
        }
        reading::query(given).map(Query)
    }
}

/// The only parameter of a path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, Problem> {
        let unusable = |why: String| {
            Problem::bad_request(format!("the path {} cannot be used: {why}", parts.uri.path()))
        };
        let path = RawPathParams::from_request_parts(&mut parts.clone(), state).await;
        let path = path.map_err(|rejection| unusable(rejection.body_text()))?;
        let (name, text) = path.iter().next().ok_or_else(|| unusable("a part is missing".to_owned()))?;
        reading::part(name, text).map(Path)
    }
}

/// A body of JSON, whatever its content type says: an object; an empty one is an object without fields.
pub(crate) struct Payload<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Site>> for Payload<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, site: &Arc<Site>) -> Result<Payload<T>, Problem> {
        let bytes = body::read(request.into_body(), site.app.limits.max_body, site).await?;
        reading::body(&bytes).map(Payload)
    }
}

/// The `Idempotency-Key` of a request, if it has one.
pub(crate) struct Key(pub(crate) Option<String>);

impl<S: Sync> FromRequestParts<S> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Key, Problem> {
        Ok(Key(idempotency::read(&parts.headers)?))
    }
}

/// The name in [`Which`], if it is given.
pub(crate) fn emulator_of(parts: &Parts) -> Option<String> {
    pairs(parts).find(is_choice).map(value_of)
}

fn pairs(parts: &Parts) -> impl Iterator<Item = &str> {
    pairs_of(parts.uri.query().unwrap_or(""))
}

pub(super) fn pairs_of(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|pair| !pair.is_empty())
}

fn is_choice(pair: &&str) -> bool {
    name_of(pair) == "emulator"
}

pub(super) fn name_of(pair: &str) -> Cow<'_, str> {
    decoded(pair.split_once('=').map_or(pair, |(name, _)| name))
}

fn value_of(pair: &str) -> String {
    decoded(pair.split_once('=').map_or("", |(_, value)| value)).into_owned()
}

fn decoded(text: &str) -> Cow<'_, str> {
    match text.contains(['%', '+']) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()),
    }
}
