//! Memory by address: numbers and bytes, on the bus or in a memory domain.
//!
//! - `scattered`: numbers at many addresses;
//! - `reading`: a number, or bytes;
//! - `writing`: the same the other way;
//! - `domains`: which memory domains there are.

mod domains;
mod reading;
mod scattered;
mod writing;

use framewire_symbols::{Location, Symbols};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Problem;
use crate::reading::fields::place_in;
use crate::routing::state::AppState;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(scattered::scattered))
        .routes(routes!(reading::read, writing::write))
        .routes(routes!(domains::domains))
}

/// An address in a path or query, or with a domain an offset there.
fn place(text: &str, domain: Option<&str>, symbols: &Symbols) -> Result<Location, Problem> {
    place_in(&text.into(), domain, symbols, "address")
}
