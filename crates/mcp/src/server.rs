//! The MCP protocol, with the official SDK: <https://modelcontextprotocol.io>.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use ::http::request::Parts;
use axum::Router;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, Prompt as McpPrompt, PromptArgument, PromptMessage, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceUpdatedNotificationParam, Role, ServerCapabilities, ServerConfig, SubscribeRequestMethod,
    SubscribeRequestParams, SubscriptionFilter, Tool as McpTool, ToolAnnotations, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, ServiceExt, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::backend::Object;
use crate::http::{HandlerLifetime, HttpHost, router_of};
use crate::prompts;
use crate::resources::{self, Content};
use crate::session::{Session, SessionMemory};
use crate::subscriptions::{self, Followed};
use crate::tools::{self, Effect, Reply, Tool, ToolError};

/// The instructions that clients get when they connect.
const INSTRUCTIONS: &str = "Plays Game Boy Advance and Game Boy games frame by frame. Loop: call act, and ask it for \
    the values and the picture that the next decision needs. Memory says more than pictures: symbols lists names, \
    search finds unknown values, and the arguments values, until and stop accept expressions such as score or \
    u16[0x02000038]. Snapshots make attempts cheap.";

/// The revisions of MCP that Framewire supports, the newest first.
pub const REVISIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2026_07_28,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_03_26,
];

/// The methods that need parameters, and what these are.
const PARAMETERS: [(&str, &str); 6] = [
    ("tools/call", "the name of a tool, a string, and its arguments, an object"),
    ("prompts/get", "the name of a prompt, a string, and its arguments, an object of strings"),
    ("resources/read", "the uri of a resource, a string"),
    ("resources/subscribe", "the uri of a resource, a string"),
    ("resources/unsubscribe", "the uri of a resource, a string"),
    ("subscriptions/listen", "notifications, an object"),
];

/// Creates the session for a request, or returns the text of an error.
pub type Connect = Arc<dyn Fn(&Parts) -> Result<Session, String> + Send + Sync>;

/// Which client a server serves.
#[derive(Clone)]
enum Client {
    /// The only client, over stdio.
    Only(Arc<Session>),
    /// The sender of each request over HTTP. `HandlerLifetime` says whether the server serves one request or a session.
    Sender(Connect, HandlerLifetime),
}

#[derive(Clone)]
struct Server {
    client: Client,
    /// For a client that uses a revision of the protocol before 2026-07-28: the tasks that follow the resources to
    /// which it has subscribed, by URI. A task ends when its `JoinSet` is dropped.
    followers: Arc<Mutex<HashMap<String, JoinSet<()>>>>,
    /// The permits to listen. Each stream of `subscriptions/listen` needs one, and so does each session over HTTP with
    /// subscriptions.
    listeners: Arc<Semaphore>,
    /// The permits that this client has: one for its session, and one for each stream that is acknowledged but has not
    /// begun.
    permits: Arc<Mutex<Vec<OwnedSemaphorePermit>>>,
    /// What tools remember for the client.
    memory: Arc<Mutex<SessionMemory>>,
}

/// Serves one client over stdin and stdout until it closes them. The future is boxed so that the server is compiled in
/// this crate, and not in the crate of the program.
///
/// # Errors
/// If the client does not follow the protocol.
pub fn serve_stdio(session: Session) -> BoxFuture<'static, Result<(), String>> {
    let listeners = Arc::new(Semaphore::new(subscriptions::MAX_LISTENERS));
    let server = Server::new(Client::Only(Arc::new(session)), listeners);
    Box::pin(async {
        let running =
            server.serve(rmcp::transport::io::stdio_pipes()).await.map_err(|error| error.to_string())?;
        running.waiting().await.map(drop).map_err(|error| error.to_string())
    })
}

/// The routes of a server. `connect` creates the session for each request. The caller must check `Host`, `Origin` and
/// tokens. Call this function within a Tokio runtime.
pub fn router(host: HttpHost, connect: Connect) -> Router {
    let listeners = Arc::new(Semaphore::new(subscriptions::MAX_LISTENERS));
    router_of(host, move |lifetime| Server::new(Client::Sender(connect.clone(), lifetime), listeners.clone()))
}

impl Server {
    fn new(client: Client, listeners: Arc<Semaphore>) -> Server {
        Server {
            client,
            followers: Arc::default(),
            listeners,
            permits: Arc::default(),
            memory: Arc::default(),
        }
    }

    /// The session of a request.
    fn session(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Session>, ErrorData> {
        match &self.client {
            Client::Only(session) => Ok(session.clone()),
            Client::Sender(connect, _) => {
                let parts = context.extensions.get::<Parts>();
                let parts =
                    parts.ok_or_else(|| ErrorData::internal_error("the request has no head", None))?;
                let session = connect(parts).map_err(|why| ErrorData::invalid_request(why, None))?;
                Ok(Arc::new(Session { memory: self.memory.clone(), ..session }))
            }
        }
    }

    /// Whether the server serves a single request over HTTP that belongs to no session.
    fn stands_alone(&self) -> bool {
        matches!(self.client, Client::Sender(_, HandlerLifetime::Request))
    }

    /// Whether a call of a tool ends when the cancellation token of its request is cancelled. In a session, the SDK
    /// cancels the token if the client sends `notifications/cancelled`, and when the session ends. It does not cancel
    /// the token if only the connection of the request breaks. A call with an idempotency key continues,
    /// because the server performs its run to the end. Scripts and replays (the tool `record`) continue, too: the
    /// server does not end them, even if no client waits for them.
    fn can_be_cancelled(&self, session: &Session, tool: &Tool, arguments: &Object) -> bool {
        let has_key = arguments.get("key").is_some_and(|key| !key.is_null());
        let runs_on = has_key || matches!(tool.name, "script" | "record");
        // For a request that stands alone, the SDK also cancels the token if the client disconnects.
        !self.stands_alone() && !runs_on && session.backend.ends_dropped_calls()
    }

    /// Takes a permit to listen, if one is free. Otherwise `permit_to_listen` returns an error later.
    fn reserve(&self) {
        self.permits.lock().extend(self.listeners.clone().try_acquire_owned());
    }

    /// Returns the permit that `reserve` took, or an error if it could not take one.
    fn permit_to_listen(&self) -> Result<OwnedSemaphorePermit, ErrorData> {
        self.permits.lock().pop().ok_or_else(too_many_listeners)
    }

    /// Takes the permit of a session over HTTP, at its first subscription. Other clients need no permit for this.
    /// Returns an error if no permit is free.
    fn begin_to_listen(&self) -> Result<(), ErrorData> {
        let is_over_http = matches!(self.client, Client::Sender(..));
        if is_over_http && self.permits.lock().is_empty() {
            self.reserve();
        }
        if is_over_http && self.permits.lock().is_empty() { Err(too_many_listeners()) } else { Ok(()) }
    }
}

fn too_many_listeners() -> ErrorData {
    let most = subscriptions::MAX_LISTENERS;
    let why = format!("{most} sessions or streams have subscriptions already; end one of them first");
    ErrorData::invalid_request(why, None)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let version = env!("CARGO_PKG_VERSION");
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts();
        ServerConfig::new(capabilities.enable_resources_subscribe().build())
            .with_server_info(Implementation::new("framewire", version))
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.negotiate_initialize(&request)?;
        context.peer.set_peer_info(request);
        // In revisions with this handshake, subscriptions need a session.
        if self.stands_alone()
            && let Some(resources) = &mut result.capabilities.resources
        {
            resources.subscribe = None;
        }
        Ok(result)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&REVISIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let session = self.session(&context)?;
        let offered = tools::ALL.iter().filter(|tool| tool.is_offered(&session));
        Ok(ListToolsResult::with_all_items(offered.map(described).collect()))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = self.session(&context)?;
        let all = resources::list(&session).await;
        let described =
            |entry: resources::Entry| Resource::new(entry.uri, entry.name).with_mime_type(entry.media_type);
        Ok(ListResourcesResult::with_all_items(all.into_iter().map(described).collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (session, uri) = (self.session(&context)?, request.uri);
        let contents = match resources::read(&session, &uri).await {
            Err(ToolError(why)) => {
                return Err(ErrorData::resource_not_found(why, Some(json!({"uri": uri}))));
            }
            Ok(Content::Text(text)) => ResourceContents::text(text, uri).with_mime_type("application/json"),
            Ok(Content::Picture(data)) => ResourceContents::blob(data, uri).with_mime_type("image/png"),
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.stands_alone() {
            return Err(ErrorData::method_not_found::<SubscribeRequestMethod>());
        }
        let session = self.session(&context)?;
        let uri = request.uri;
        let missing = |ToolError(why)| ErrorData::resource_not_found(why, Some(json!({"uri": uri})));
        let mut followed = Followed::begin(session, uri.clone()).await.map_err(missing)?;
        // Hold this lock while taking the permit. Otherwise, two simultaneous first subscriptions could take two
        // permits, and a simultaneous `unsubscribe` could return the permit of this subscription.
        let mut followers = self.followers.lock();
        self.begin_to_listen()?;
        if followers.len() >= subscriptions::MAX && !followers.contains_key(&uri) {
            let why = format!("you have {} subscriptions already; end one of them first", subscriptions::MAX);
            return Err(ErrorData::invalid_request(why, None));
        }
        let mut follower = JoinSet::new();
        follower.spawn(async move {
            loop {
                let update = ResourceUpdatedNotificationParam::new(followed.changed().await);
                if context.peer.notify_resource_updated(update).await.is_err() {
                    return;
                }
            }
        });
        followers.insert(uri, follower);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut followers = self.followers.lock();
        followers.remove(&request.uri);
        if followers.is_empty() {
            self.permits.lock().clear();
        }
        Ok(())
    }

    /// The SDK calls this method, then acknowledges the stream, and then calls `listen`. The permit is taken here.
    /// Otherwise, another client could take it after the stream was acknowledged.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.reserve();
        let mut accepted = SubscriptionFilter::new();
        accepted.resource_subscriptions = requested.resource_subscriptions.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.truncate(subscriptions::MAX);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let _permit = self.permit_to_listen()?;
        let session = self.session(context.request_context())?;
        let mut followers = JoinSet::new();
        for uri in context.accepted().resource_subscriptions.clone().unwrap_or_default() {
            let (session, sink) = (session.clone(), context.sink().clone());
            followers.spawn(async move {
                // A resource that does not exist has no updates.
                let Ok(mut followed) = Followed::begin(session, uri).await else { return };
                while sink.notify_resource_updated(followed.changed().await).await.is_ok() {}
            });
        }
        tokio::select! {
            () = context.cancelled() => {}
            () = session.backend.stopped() => {}
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let described = |prompt: &prompts::Prompt| {
            let (name, meaning) = prompt.argument;
            let argument = PromptArgument::new(name).with_description(meaning).with_required(true);
            McpPrompt::new(prompt.name, Some(prompt.description), Some(vec![argument]))
        };
        Ok(ListPromptsResult::with_all_items(prompts::ALL.iter().map(described).collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let unusable = |why: String| ErrorData::invalid_params(why, None);
        let Some(prompt) = prompts::ALL.iter().find(|prompt| prompt.name == request.name) else {
            return Err(unusable(format!(
                "there is no prompt {:?}; prompts/list has all of them",
                request.name
            )));
        };
        let text = prompt.text(request.arguments.as_ref()).map_err(unusable)?;
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }

    /// The SDK calls this for a request whose method it does not know, and for one whose parameters it cannot read.
    async fn on_custom_request(
        &self,
        CustomRequest { method, .. }: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let has_handshake = context.protocol_version().is_none_or(|revision| revision.has_initialize());
        let is_known = match method.as_str() {
            "resources/subscribe" | "resources/unsubscribe" => has_handshake && !self.stands_alone(),
            "subscriptions/listen" => !has_handshake,
            _ => true,
        };
        Err(match PARAMETERS.iter().find(|(name, _)| is_known && *name == method) {
            Some((_, accepted)) => ErrorData::invalid_params(
                format!("the parameters of {method} cannot be read; use {accepted}"),
                None,
            ),
            None => {
                let why = format!("there is no method {method:?} in this revision of MCP");
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
            }
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.session(&context)?;
        let Some(tool) = tools::ALL.iter().find(|tool| tool.name == request.name) else {
            let why = format!("there is no tool {:?}; tools/list has all of them", request.name);
            return Err(ErrorData::invalid_params(why, None));
        };
        if !tool.is_offered(&session) {
            let why = format!(
                "the tool {} is not offered here: its toolset was not chosen, or this client may only read",
                tool.name
            );
            return Ok(failed(why).into());
        }
        let arguments = request.arguments.unwrap_or_default();
        let can_be_cancelled = self.can_be_cancelled(&session, tool, &arguments);
        let memory = session.memory.clone();
        // If the client disconnects, the tool still runs to its end, so no keys stay down.
        let mut work = tokio::spawn((tool.run)(session, arguments));
        let ended = tokio::select! {
            ended = &mut work => Some(ended),
            () = context.ct.cancelled(), if can_be_cancelled => {
                work.abort();
                // When this returns, the tool runs no more frames, and has released the lock `playing`.
                let _ = work.await;
                None
            }
        };
        // The SDK drops the reply to a cancelled call, even if the call continued, so the client does not have its
        // picture.
        if context.ct.is_cancelled() {
            memory.lock().picture = None;
        }
        let result = match ended {
            None => return Err(ErrorData::internal_error("the client cancelled the call", None)),
            Some(Ok(Ok(reply))) => succeeded(reply),
            Some(Ok(Err(ToolError(why)))) => failed(why),
            Some(Err(error)) => {
                return Err(ErrorData::internal_error(format!("the tool failed: {error}"), None));
            }
        };
        Ok(result.into())
    }
}

fn described(tool: &Tool) -> McpTool {
    let annotations = ToolAnnotations::new()
        .read_only(tool.effect == Effect::Read)
        .open_world(tool.effect == Effect::Arbitrary);
    let annotations = match tool.effect {
        Effect::Read => annotations,
        Effect::Change => annotations.destructive(false),
        Effect::Set => annotations.destructive(true).idempotent(true),
        Effect::Destroy | Effect::Arbitrary => annotations.destructive(true),
    };
    McpTool::new(tool.name, tool.description, tool.schema()).with_annotations(annotations)
}

fn succeeded(reply: Reply) -> CallToolResult {
    let mut content = vec![ContentBlock::text(reply.json.to_string())];
    if let Some(picture) = reply.picture {
        content.push(ContentBlock::image(picture.data, "image/png"));
    }
    CallToolResult::success(content)
}

fn failed(why: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value as Json;
    use tokio::io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    };
    use tokio::sync::Notify;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::backend::{Backend, CallFuture, EndFuture};
    use crate::session::Options;

    /// A backend whose runs end when they are dropped, or when `finish` is notified.
    #[derive(Default)]
    struct LongRuns {
        begun: Notify,
        finish: Notify,
        ended: Notify,
        /// Whether runs would continue if their futures were dropped.
        runs_on: bool,
    }

    /// Reports the end of a run when it is dropped.
    struct LongRun<'a>(&'a Notify);

    impl Drop for LongRun<'_> {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }

    impl Backend for LongRuns {
        fn call<'a>(&'a self, method: &'a str, _params: Object) -> CallFuture<'a> {
            Box::pin(async move {
                if method != "run" {
                    return Ok(json!({}));
                }
                let _run = LongRun(&self.ended);
                self.begun.notify_one();
                self.finish.notified().await;
                Ok(
                    json!({"frame": 2, "why": "frames", "frames": 2, "steps": [{}], "then": [{"value": "AAAA"}]}),
                )
            })
        }

        fn only_reads(&self) -> bool {
            false
        }

        fn ends_dropped_calls(&self) -> bool {
            !self.runs_on
        }

        fn stopped(&self) -> EndFuture<'_> {
            Box::pin(std::future::pending())
        }
    }

    /// The client's end of a connection.
    struct Connection {
        lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
        writer: WriteHalf<DuplexStream>,
    }

    impl Connection {
        /// Serves a session, and connects to it.
        async fn open(session: Session) -> Connection {
            let (ours, theirs) = duplex(1 << 16);
            let server = Server::new(Client::Only(Arc::new(session)), Arc::new(Semaphore::new(1)));
            tokio::spawn(async move {
                if let Ok(running) = server.serve(split(theirs)).await {
                    let _ = running.waiting().await;
                }
            });
            let (reader, writer) = split(ours);
            let mut connection = Connection { lines: BufReader::new(reader).lines(), writer };
            let client = json!({"name": "test", "version": "1"});
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
            connection.send(json!({"id": 1, "method": "initialize", "params": params})).await;
            connection.lines.next_line().await.unwrap().expect("a reply");
            connection.send(json!({"method": "notifications/initialized"})).await;
            connection
        }

        async fn send(&mut self, mut message: Json) {
            message["jsonrpc"] = "2.0".into();
            self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }

        async fn act(&mut self, id: u32, arguments: Json) {
            let params = json!({"name": "act", "arguments": arguments});
            self.send(json!({"id": id, "method": "tools/call", "params": params})).await;
        }

        async fn cancel(&mut self, id: u32) {
            self.send(json!({"method": "notifications/cancelled", "params": {"requestId": id}})).await;
        }
    }

    #[tokio::test]
    async fn a_cancelled_call_ends_unless_it_has_a_key() {
        let backend = Arc::new(LongRuns::default());
        let session = Session::new(backend.clone(), Options::default(), Arc::default());
        let mut connection = Connection::open(session).await;
        let long = Duration::from_secs(20);
        connection.act(2, json!({"keys": "A:2"})).await;
        timeout(long, backend.begun.notified()).await.expect("the first call begins");
        connection.cancel(2).await;
        timeout(long, backend.ended.notified()).await.expect("the first call ends");
        connection.act(3, json!({"keys": "A:2", "key": "key"})).await;
        timeout(long, backend.begun.notified())
            .await
            .expect("the second call does not wait for the first one");
        connection.cancel(3).await;
        let ended = timeout(Duration::from_millis(200), backend.ended.notified()).await;
        assert!(ended.is_err(), "a call with a key continues");
    }

    #[tokio::test]
    async fn an_error_about_the_parameters_of_a_method_does_not_say_that_there_is_no_such_method() {
        let session = Session::new(Arc::new(LongRuns::default()), Options::default(), Arc::default());
        let mut connection = Connection::open(session).await;
        for (method, params, code, says) in [
            ("tools/call", json!({"name": "act", "arguments": []}), -32602, "its arguments, an object"),
            ("tools/call", json!({}), -32602, "the name of a tool"),
            ("resources/read", json!({"uri": 5}), -32602, "the uri of a resource"),
            ("resources/subscribe", json!({}), -32602, "the uri of a resource"),
            ("subscriptions/listen", json!({}), -32601, "there is no method"),
            ("tools/cal", json!({}), -32601, "there is no method \"tools/cal\""),
        ] {
            connection.send(json!({"id": 2, "method": method, "params": params})).await;
            let reply = connection.lines.next_line().await.unwrap().expect("a reply");
            let error = &serde_json::from_str::<Json>(&reply).unwrap()["error"];
            assert_eq!(error["code"], code, "{method}: {error}");
            assert!(error["message"].as_str().unwrap().contains(says), "{method}: {error}");
        }
    }

    #[tokio::test]
    async fn the_picture_of_a_cancelled_call_does_not_count_as_sent_even_if_the_call_continues() {
        let backend = Arc::new(LongRuns::default());
        let session = Session::new(backend.clone(), Options::default(), Arc::default());
        let memory = session.memory.clone();
        memory.lock().picture = Some(("an earlier picture".to_owned(), None));
        let mut connection = Connection::open(session).await;
        let long = Duration::from_secs(20);
        connection.act(2, json!({"keys": "A:2", "picture": {}, "key": "key"})).await;
        timeout(long, backend.begun.notified()).await.expect("the call begins");
        connection.cancel(2).await;
        // The server handles messages in order, so after its reply to this one, the call is cancelled.
        connection.send(json!({"id": 3, "method": "ping"})).await;
        connection.lines.next_line().await.unwrap().expect("a reply");
        backend.finish.notify_one();
        let forgotten = async {
            while memory.lock().picture.is_some() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(long, forgotten).await.expect("the next reply has a picture");
    }

    #[test]
    fn a_call_can_be_cancelled_only_if_its_frames_end_with_it() {
        let connect: Connect = Arc::new(|_| Err("no session is needed".to_owned()));
        let http = |lifetime| Some((connect.clone(), lifetime));
        let (alone, lasting) = (http(HandlerLifetime::Request), http(HandlerLifetime::Session));
        for (http, runs_on, name, key, expected) in [
            (None, false, "act", json!(null), true),
            (None, false, "act", json!("key"), false),
            (None, false, "script", json!(null), false),
            (None, false, "record", json!(null), false),
            (None, true, "act", json!(null), false),
            (lasting, false, "act", json!(null), true),
            (alone, false, "act", json!(null), false),
        ] {
            let backend = Arc::new(LongRuns { runs_on, ..LongRuns::default() });
            let session = Arc::new(Session::new(backend, Options::default(), Arc::default()));
            let client = match http {
                Some((connect, lifetime)) => Client::Sender(connect, lifetime),
                None => Client::Only(session.clone()),
            };
            let server = Server::new(client, Arc::new(Semaphore::new(1)));
            let tool = tools::ALL.iter().find(|tool| tool.name == name).unwrap();
            let arguments = Object::from_iter([("key".to_owned(), key)]);
            let found = server.can_be_cancelled(&session, tool, &arguments);
            assert_eq!(found, expected, "{name} with {arguments:?}, if runs_on is {runs_on}");
        }
    }

    #[test]
    fn a_stream_that_is_acknowledged_keeps_its_permit() {
        let listeners = Arc::new(Semaphore::new(1));
        let connect: Connect = Arc::new(|_| Err("no session is needed".to_owned()));
        let server =
            || Server::new(Client::Sender(connect.clone(), HandlerLifetime::Request), listeners.clone());
        let (first, second) = (server(), server());
        for each in [&first, &second] {
            assert!(each.accepted_subscription_filter(&SubscriptionFilter::new()).is_some());
        }
        // The second client listens before the first one.
        let refused = second.permit_to_listen().unwrap_err();
        assert!(refused.message.contains("have subscriptions already"), "{refused}");
        let permit = first.permit_to_listen().unwrap();
        drop(permit);
        let third = server();
        third.reserve();
        assert!(third.permit_to_listen().is_ok());
    }
}
