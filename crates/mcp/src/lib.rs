//! The MCP front end: tools with which language models play and inspect games (docs/agents.md).
//!
//! Tools are thin. They call the methods of JSON-RPC (docs/json-rpc.md) by a [`Backend`], which is in this process or a client
//! of a server elsewhere. So the access rules, limits and errors are those of all other front ends.
//!
//! - [`Backend`]: calls methods; [`Problem`]: why a call failed;
//! - [`Session`]: what belongs to one client; [`Options`]: which tools it gets;
//! - `tools`: the table of tools, and one file for each group of them;
//! - `play`: runs frames with keys and conditions, and reads values of expressions;
//! - `server`: the protocol; `http`: its routes; `sessions`: what clients of earlier revisions have over HTTP;
//! - `prompts`: tasks that people choose; `resources`: pictures and lists that clients attach;
//! - `subscriptions`: resources that a client follows;
//! - `picture`: crops and scales pictures; `notes`: what agents want to remember;
//! - `server`: the protocol, by the official SDK; [`serve_stdio`] and [`router`] connect it, and [`router_of`] connects other
//!   handlers in the same way.

mod backend;
mod http;
mod notes;
mod picture;
mod play;
mod prompts;
mod resources;
mod server;
mod session;
mod sessions;
mod subscriptions;
mod tools;

pub use backend::{Backend, CallFuture, EndFuture, Object, Problem};
pub use http::{HttpHost, Keeps, router_of};
pub use server::{Connect, router, serve_stdio};
pub use session::{Options, Session, Toolset, UnknownToolset};

/// How to use Framewire by its command line and HTTP, for coding agents: what `framewire skill` prints.
pub const SKILL: &str = include_str!("skill.md");

/// The path of the front end on a server.
pub const PATH: &str = "/mcp";
