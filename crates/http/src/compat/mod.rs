//! mGBA-http 0.10's routes, so that its users change nothing, and the study's echo.
//!
//! One table ([`ROUTES`]) says of each route its method, path, parameters, how they become an operation, and how the
//! result is written. Everything else here reads it: dispatch, the checks of parameters, the OpenAPI document.
//!
//! ASP.NET's rules hold: paths and names of parameters match in any letter case, a slash at the end of a path is
//! allowed, unknown parameters are ignored.

mod args;
mod body;
mod dispatch;
mod hex;
mod params;
mod query;
mod reply;
mod table;

pub(crate) use dispatch::{CompatServices, RoutesAt, find, metered_routes};
pub use params::{Kind, Param};
pub use reply::Reply;
pub use table::{ECHO, ROUTES, RequestBody, Route, Verb};
