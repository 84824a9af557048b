//! The MCP front end: tools with which language models play and inspect games (docs/agents.md).
//!
//! The tools contain little logic. They call JSON-RPC methods (docs/json-rpc.md) through a [`Backend`], which is a
//! server in this process or a client of another server. So they have the same access rules, limits and errors as all
//! other front ends.
//!
//! - [`Backend`]: calls methods; [`Problem`]: why a call failed;
//! - [`Session`]: the state of one client; [`Options`]: which tools it gets;
//! - `tools`: the table of tools, and one file for each group of them;
//! - `play`: runs frames with keys and conditions, and reads values of expressions;
//! - `prompts`: tasks that people choose; `resources`: pictures and lists that clients attach;
//! - `subscriptions`: notifications about resources that change;
//! - `picture`: crops and scales pictures; `notes`: notes that agents write for later;
//! - `server`: implements the protocol with the official SDK; [`serve_stdio`] and [`router`] serve it;
//! - `http`: the routes; [`router_of`] creates the same routes for other handlers of the SDK;
//! - `sessions`: the sessions over HTTP, for clients of earlier revisions of the protocol.

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
pub use http::{HandlerLifetime, HttpHost, router_of};
pub use server::{Connect, REVISIONS, router, serve_stdio};
pub use session::{Options, Session, Toolset, UnknownToolset};

/// The text that `framewire skill` prints. It explains to coding agents how to use Framewire's commands and HTTP API.
pub const SKILL: &str = include_str!("skill.md");

/// The path of the front end on a server.
pub const PATH: &str = "/mcp";
