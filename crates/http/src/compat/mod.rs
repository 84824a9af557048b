//! The routes of mGBA-http 0.10, for programs that were written for it, and the echo route of the load-test study that
//! docs/study.md repeats.
//!
//! One table ([`ROUTES`]) defines each route: its method, path and parameters, how they become an operation, and how
//! the result is written. The types of the parameters are those of the operation's arguments, so a row with a wrong
//! type does not compile. Dispatch and the OpenAPI document read this table.
//!
//! As in ASP.NET, paths and names of parameters match in any letter case, a slash at the end of a path is allowed, and
//! unknown parameters are ignored.

mod body;
mod dispatch;
mod params;
mod reply;
mod table;

pub(crate) use dispatch::{CompatServices, RoutesAt, find, metered_routes};
pub use params::{Kind, Param};
pub use reply::Reply;
pub use table::{ECHO, ROUTES, RequestBody, Route, Verb};
