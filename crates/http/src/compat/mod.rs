//! The routes of mGBA-http 0.10, for its users' programs, and the study's echo.
//!
//! One table ([`ROUTES`]) defines each route: its method, path and parameters, how they become an operation, and how the
//! result is written. The types of the parameters are those of the operation's arguments, so a wrong row does not
//! compile. Dispatch and the OpenAPI document read this table.
//!
//! ASP.NET's rules hold: paths and names of parameters match in any letter case, a slash at the end of a path is
//! allowed, unknown parameters are ignored.

mod body;
mod dispatch;
mod params;
mod reply;
mod table;

pub(crate) use dispatch::{CompatServices, RoutesAt, find, metered_routes};
pub use params::{Kind, Param};
pub use reply::Reply;
pub use table::{ECHO, ROUTES, RequestBody, Route, Verb};
