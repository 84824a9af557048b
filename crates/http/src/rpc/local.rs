//! The methods of JSON-RPC for code in this process: front ends in other crates, such as the MCP server.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::FromRef;
use axum::http::Extensions;
use serde_json::{Map, Value as Json};
use tokio::sync::mpsc;

use super::message::{Params, Request};
use super::methods::begin;
use super::routes::RouteMethods;
use super::session::{RpcServices, RpcSession};
use crate::access::caller::{Caller, Reach, Rights};
use crate::operations::Operations;
use crate::routing::state::AppState;

/// Calls the methods of JSON-RPC in this process, with the rights of a caller. If the parameters of a call do not name
/// an emulator, the call acts on the first one.
#[derive(Clone)]
pub struct LocalCalls {
    state: AppState,
    methods: Arc<RouteMethods>,
    caller: Caller,
}

impl LocalCalls {
    /// Makes `LocalCalls` that have all rights, for the person who started this program.
    pub(crate) fn new(state: AppState, methods: Arc<RouteMethods>) -> LocalCalls {
        let origin = IpAddr::from(Ipv4Addr::LOCALHOST);
        let caller = Caller { reach: Reach::Local, rights: Rights::Full, origin, trace: None };
        LocalCalls { state, methods, caller }
    }

    /// Makes `LocalCalls` that have the rights of the sender of an accepted request. The rights are in the request's
    /// extensions.
    #[must_use]
    pub fn for_sender(&self, extensions: &Extensions) -> LocalCalls {
        LocalCalls { caller: Caller::of(extensions), ..self.clone() }
    }

    /// Whether the caller may only read.
    pub fn only_reads(&self) -> bool {
        self.caller.rights == Rights::Read
    }

    /// The caller's name. Callers with the same name have the same rights, and come from the same address or network.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{:?}", self.caller.as_owner())
    }

    /// Waits until the server stops.
    pub async fn stopped(&self) {
        Arc::<Operations>::from_ref(&self.state).stopping.wait().await;
    }

    /// Calls a method. Subscriptions end with the call.
    ///
    /// # Errors
    /// The problem (RFC 9457) that the same request would get over HTTP.
    pub async fn call(&self, method: &str, params: Map<String, Json>) -> Result<Json, Json> {
        let operations = Arc::<Operations>::from_ref(&self.state);
        let served = operations.for_caller(operations.emulators.first(), &self.caller);
        let services = RpcServices::from_ref(&self.state);
        // Nothing reads this queue. Only events of subscriptions are sent to it, and subscriptions end with the call.
        let (out, _) = mpsc::channel(1);
        let (methods, caller) = (self.methods.clone(), self.caller.clone());
        let session = Arc::new(RpcSession::new(services, methods, caller, served, out));
        // `begin` does not use the id.
        let request = Request { id: None, method: method.to_owned(), params: Params::Named(params) };
        let under_way = begin(&session, request, None).await.map_err(|error| error.data)?;
        under_way.await.map(|reply| reply.result).map_err(|error| error.data)
    }
}
