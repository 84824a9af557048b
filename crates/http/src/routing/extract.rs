//! Extractors for parts of a request. Their errors are [`Problem`]s.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use super::state::AppState;
use crate::access::caller::{Caller, Owner};
use crate::idempotency;
use crate::operations::emulators::{Emulators, Served};
use crate::operations::{Operations, SelectedEmulator};
use crate::problem::Problem;
use crate::reading::{self, Whole, is_emulator, name_of, pairs, value_of};
use crate::storage::{Storage, StoredFile, StoredFiles};
use crate::transport::incoming::BodyReader;
use crate::transport::streams::{OpenStream, StreamKind, StreamLimit};

/// The parameter that selects an emulator, for `#[utoipa::path(params(EmulatorParam))]`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes what `SelectedEmulator` reads")]
pub(crate) struct EmulatorParam {
    /// Name of the emulator, as GET /v1/emulators lists it; the first if left out.
    emulator: Option<String>,
}

impl FromRequestParts<AppState> for SelectedEmulator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<SelectedEmulator, Problem> {
        let operations = Arc::<Operations>::from_ref(state);
        let served = emulator_in(pairs(parts), &operations.emulators)?;
        let served = operations.for_caller(served, &Caller::of(&parts.extensions));
        Ok(SelectedEmulator { served, operations, key: idempotency::read(&parts.headers)? })
    }
}

/// The emulator that these pairs of a query select; the first if they select none.
pub(crate) fn emulator_in<'a>(
    pairs: impl Iterator<Item = &'a str>,
    emulators: &Emulators,
) -> Result<&Arc<Served>, Problem> {
    let mut given = pairs.filter(is_emulator).map(value_of);
    match (given.next(), given.next()) {
        (None, _) => Ok(emulators.first()),
        (Some(name), None) => emulators.get(&name).ok_or_else(|| {
            let names = emulators.names();
            Problem::not_found(format!("no emulator is called {name:?}; there are: {names}"))
        }),
        (Some(_), Some(_)) => {
            let accepts = format!("one of {}", emulators.names());
            Err(Problem::parameter("emulator", "is given more than once", accepts))
        }
    }
}

impl FromRequestParts<AppState> for Owner {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Owner, Infallible> {
        Ok(Caller::of(&parts.extensions).as_owner())
    }
}

/// The right to open a stream. Its kind is the one that the route declares with `counted_as`.
pub(crate) struct OpensStream {
    streams: StreamLimit,
    client: IpAddr,
    kind: StreamKind,
}

impl OpensStream {
    /// Opens the stream, unless too many are open.
    pub(crate) fn open(&self) -> Result<OpenStream, Problem> {
        Ok(self.streams.open(self.client, self.kind)?)
    }
}

impl FromRequestParts<AppState> for OpensStream {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<OpensStream, Infallible> {
        Ok(OpensStream {
            streams: StreamLimit::from_ref(state),
            client: Caller::of(&parts.extensions).origin,
            kind: parts.extensions.get().copied().unwrap_or(StreamKind::Wait),
        })
    }
}

/// The default of a parameter that is usually true.
pub(crate) fn yes() -> bool {
    true
}

/// The parameters of a route that has no parameters except [`EmulatorParam`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParameters {}

/// The parameters of a query, without [`EmulatorParam`].
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<AppState> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Query<T>, Problem> {
        let mut given: Vec<(String, Vec<String>)> = Vec::new();
        for pair in pairs(parts).filter(|pair| !is_emulator(pair)) {
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

impl<T: DeserializeOwned> FromRequestParts<AppState> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Path<T>, Problem> {
        let unusable = |why: String| {
            Problem::bad_request(format!("the path {} cannot be used: {why}", parts.uri.path()))
        };
        let path = RawPathParams::from_request_parts(&mut parts.clone(), state).await;
        let path = path.map_err(|rejection| unusable(rejection.body_text()))?;
        let (name, text) = path.iter().next().ok_or_else(|| unusable("a part is missing".to_owned()))?;
        reading::part(name, text).map(Path)
    }
}

impl<T: StoredFiles> FromRequestParts<AppState> for StoredFile<T>
where
    Storage<T>: FromRef<AppState>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<StoredFile<T>, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await?;
        StoredFile::find(&Storage::from_ref(state), &name).await
    }
}

/// A JSON body, with any content type. It must be an object. An empty body counts as an object without fields.
pub(crate) struct Payload<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for Payload<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Payload<T>, Problem> {
        let bytes = Arc::<BodyReader>::from_ref(state).read(request.into_body()).await?;
        reading::body(&bytes).map(Payload)
    }
}

/// The requested part of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// The number of items to skip: `next` of the previous reply.
    #[serde(default)]
    #[param(default = 0)]
    pub(crate) offset: usize,
    /// The largest number of items.
    #[serde(default = "Whole::constant::<100>")]
    #[param(value_type = usize, default = 100, minimum = 1, maximum = 1000)]
    pub(crate) limit: Whole<1, 1000>,
}

impl Page {
    pub(crate) fn limit(&self) -> usize {
        self.limit.get() as usize
    }

    /// The part of a list, and where the next part begins.
    pub(crate) fn part<T, R: From<T>>(&self, all: Vec<T>) -> (Vec<R>, Option<usize>) {
        let total = all.len();
        let part: Vec<R> = all.into_iter().skip(self.offset).take(self.limit()).map(R::from).collect();
        let next = self.next(part.len(), total);
        (part, next)
    }

    /// Where the next part of a list of `total` items begins, after this part of `length` items. `None` if this part is
    /// the last one.
    pub(crate) fn next(&self, length: usize, total: usize) -> Option<usize> {
        let next = self.offset.saturating_add(length);
        if next < total { Some(next) } else { None }
    }
}
