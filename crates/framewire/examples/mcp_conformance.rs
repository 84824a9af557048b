//! Serves the tools, prompts and resources that the conformance suite of MCP calls by name (`tests/mcp-conformance`).
//!
//! Requests are processed like those to `/mcp` of `framewire serve`: by the same HTTP server with its checks of `Host`
//! and `Origin`, and by the same transport of the SDK with the same settings. Only the handler differs: it answers
//! with the content of `fixtures.json`. The program prints its address, as `framewire serve` does.
#![expect(deprecated, reason = "the logging of MCP's earlier revisions is deprecated")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use framewire_emulator::Attached;
use framewire_http::{App, Emulators, FrontEnd, LocalCalls, Served};
use framewire_mcp::{HttpHost, REVISIONS};
use ring::hmac;
use ring::rand::SystemRandom;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, ContentBlock, GetPromptRequestParams, GetPromptResponse, InputRequiredResult,
    InputResponses, JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, ServerRequest, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::sync::broadcast;

/// The tools that are implemented in this file. The other tools come from `fixtures.json`.
const TOOLS: [&str; 7] = [
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_custom_header",
    "json_schema_2020_12_tool",
    LISTS[0].1,
    LISTS[1].1,
];
/// The lists that can change, each with the tool that announces a change.
const LISTS: [(List, &str); 2] =
    [(List::Tools, "test_trigger_tool_change"), (List::Prompts, "test_trigger_prompt_change")];
/// The pause between two notifications of a tool.
const PAUSE: Duration = Duration::from_millis(50);
/// The resource to which clients of earlier revisions of MCP can subscribe.
const WATCHED: &str = "test://watched-resource";
/// The URI of a resource with a parameter: the text before and after the parameter.
const TEMPLATE: [&str; 2] = ["test://template/", "/data"];

/// The content of `fixtures.json`, by name.
#[derive(Deserialize)]
struct Fixtures {
    /// Results of tools.
    tools: BTreeMap<String, Json>,
    prompts: BTreeMap<String, Prompt>,
    /// Contents of resources, without their URI.
    resources: BTreeMap<String, JsonObject>,
    /// Requests for inputs, which a tool or a prompt can send to a client.
    inputs: BTreeMap<String, Json>,
    /// Tools and prompts that ask the client for inputs before they have a result. The names of the prompts end with
    /// `_prompt`.
    rounds: BTreeMap<String, Rounds>,
    /// Requests that tools send to the client within a session, with the names of the tools' arguments in braces.
    questions: BTreeMap<String, Json>,
    /// The input schemas of tools that have arguments.
    schemas: BTreeMap<String, JsonObject>,
}

/// A prompt: its required arguments, and its messages with the names of the arguments in braces.
#[derive(Deserialize)]
struct Prompt {
    arguments: Vec<String>,
    messages: Json,
}

/// How a tool or a prompt asks the client before it has a result.
#[derive(Deserialize)]
struct Rounds {
    /// The inputs of each round.
    ask: Vec<Vec<String>>,
    /// Whether the client gets a state, and sends it back. The state says which round the client answers.
    #[serde(default)]
    state: bool,
    /// Whether to leave out inputs for which the client declared no capability. If false, such inputs cause an error.
    #[serde(default)]
    only_declared: bool,
}

/// A list that can change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Tools,
    Prompts,
}

/// The handler of MCP requests.
#[derive(Clone)]
struct Fixture {
    fixtures: Arc<Fixtures>,
    /// The key that signs states.
    key: Arc<hmac::Key>,
    /// Announces changed lists to the clients that listen for changes.
    changes: broadcast::Sender<List>,
}

#[tokio::main]
async fn main() {
    let fixtures: Fixtures =
        serde_json::from_str(include_str!("../../../tests/mcp-conformance/fixtures.json")).expect("fixtures");
    let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).expect("random numbers");
    let fixture =
        Fixture { fixtures: Arc::new(fixtures), key: Arc::new(key), changes: broadcast::channel(16).0 };
    // No request reaches the emulator.
    let nowhere = framewire_link::Config { address: "127.0.0.1:1".to_owned(), ..Default::default() };
    let emulator = Arc::new(Attached::start(nowhere, &tokio::runtime::Handle::current(), 0));
    let emulators = Emulators::new(Served::new("none", emulator)).expect("a name");
    let routes = Arc::new(move |calls: LocalCalls| {
        let (fixture, server) = (fixture.clone(), calls.clone());
        let host = HttpHost {
            sender: Arc::new(move |extensions| calls.for_sender(extensions).name()),
            stopped: Box::pin(async move { server.stopped().await }),
        };
        framewire_mcp::router_of(host, move |_lifetime| fixture.clone())
    });
    let front_end = Some(FrontEnd { path: framewire_mcp::PATH, routes });
    let app = App { front_end, ..App::new(emulators, Duration::from_secs(5)) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("listening on http://{}", listener.local_addr().expect("an address"));
    framewire_http::serve(listener, app, Box::pin(std::future::pending())).await;
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed();
        ServerConfig::new(capabilities.build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&REVISIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let schema = self.fixtures.schemas.get(name)?;
        Some(Tool::new(name.to_owned(), "A tool with arguments", schema.clone()))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let fixtures = &self.fixtures;
        let asking = fixtures.rounds.keys().filter(|name| !name.ends_with("_prompt"));
        let named = fixtures.tools.keys().chain(asking).chain(fixtures.questions.keys());
        let names = named.map(String::as_str).chain(TOOLS);
        let tool = |name: &str| {
            let plain = || Tool::new(name.to_owned(), "A tool without arguments", no_arguments());
            self.get_tool(name).unwrap_or_else(plain)
        };
        Ok(ListToolsResult::with_all_items(names.map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        if let Some(result) = self.fixtures.tools.get(name) {
            return Ok(complete::<CallToolResult>(result.clone())?.into());
        }
        if let Some(rounds) = self.fixtures.rounds.get(name) {
            let (responses, state) = (request.input_responses, request.request_state);
            return match self.ask(name, rounds, responses, state, &context)? {
                Some(asked) => Ok(asked.into()),
                None => Ok(text("the inputs have arrived, state-ok")),
            };
        }
        if let Some(question) = self.fixtures.questions.get(name) {
            let asked = filled(question, &request.arguments.unwrap_or_default())?;
            let asked: ServerRequest = from_json(asked)?;
            let answer = context.peer.send_request(asked).await.map_err(lost)?;
            let answer = serde_json::to_string(&answer).map_err(broken)?;
            return Ok(text(&format!("The client's answer: {answer}")));
        }
        if let Some((list, _)) = LISTS.iter().find(|(_, tool)| *tool == name) {
            // Sending fails if no client listens, which does not matter.
            let _ = self.changes.send(*list);
            return Ok(text("the list has changed"));
        }
        match name {
            "test_tool_with_progress" => {
                let token = context.meta.get_progress_token();
                for progress in [0.0, 50.0, 100.0] {
                    if let Some(token) = &token {
                        let notification =
                            ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
                        context.peer.notify_progress(notification).await.map_err(lost)?;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
            "test_tool_with_logging" => log(&context).await?,
            // In the latest revision, each request says whether its client wants log messages.
            "test_logging_tool" if context.meta.log_level().is_some() => log(&context).await?,
            "test_logging_tool" | "test_custom_header" | "json_schema_2020_12_tool" => {}
            _ => return Err(ErrorData::invalid_params(format!("there is no tool {name:?}"), None)),
        }
        Ok(text("done"))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let described = |(name, prompt): (&String, &Prompt)| {
            let argument = |name| json!({"name": name, "required": true});
            let arguments: Vec<Json> = prompt.arguments.iter().map(argument).collect();
            json!({"name": name, "description": "A prompt for testing", "arguments": arguments})
        };
        let mut prompts: Vec<Json> = self.fixtures.prompts.iter().map(described).collect();
        prompts
            .push(json!({"name": "test_input_required_result_prompt", "description": "A prompt that asks"}));
        complete(json!({ "prompts": prompts }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.name;
        if let Some(rounds) = self.fixtures.rounds.get(&name).filter(|_| name.ends_with("_prompt")) {
            if let Some(asked) =
                self.ask(&name, rounds, request.input_responses, request.request_state, &context)?
            {
                return Ok(asked.into());
            }
            let message =
                json!({"role": "user", "content": {"type": "text", "text": "The context has arrived."}});
            return Ok(GetPromptResponse::Complete(complete(json!({ "messages": [message] }))?));
        }
        let unknown = || ErrorData::invalid_params(format!("there is no prompt {name:?}"), None);
        let prompt = self.fixtures.prompts.get(&name).ok_or_else(unknown)?;
        let given = request.arguments.unwrap_or_default();
        for argument in &prompt.arguments {
            if !given.contains_key(argument) {
                return Err(ErrorData::invalid_params(format!("the argument {argument} is missing"), None));
            }
        }
        let messages = filled(&prompt.messages, &given)?;
        Ok(GetPromptResponse::Complete(complete(json!({ "messages": messages }))?))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let described = |(uri, content): (&String, &JsonObject)| json!({"uri": uri, "name": uri, "mimeType": content["mimeType"]});
        let resources: Vec<Json> = self.fixtures.resources.iter().map(described).collect();
        complete(json!({ "resources": resources }))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let uri = TEMPLATE.join("{id}");
        complete(json!({"resourceTemplates": [{"uriTemplate": uri, "name": "test_template"}]}))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let [before, after] = TEMPLATE;
        let id = uri.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        let mut content = match (self.fixtures.resources.get(&uri), id) {
            (Some(content), _) => content.clone(),
            (None, Some(id)) => {
                let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                from_json(json!({"mimeType": "application/json", "text": text.to_string()}))?
            }
            (None, None) => {
                let why = format!("there is no resource {uri}");
                return Err(ErrorData::resource_not_found(why, Some(json!({"uri": uri}))));
            }
        };
        content.insert("uri".to_owned(), uri.into());
        Ok(ReadResourceResponse::Complete(complete(json!({"contents": [content]}))?))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request.uri == WATCHED {
            return Ok(());
        }
        Err(ErrorData::resource_not_found(format!("{} cannot be subscribed to", request.uri), None))
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let all = ["paris", "park", "party", "testValue1"];
        let fitting = all.iter().filter(|value| value.starts_with(&request.argument.value));
        let values = fitting.map(|value| (*value).to_owned()).collect();
        Ok(CompleteResult::new(CompletionInfo::new(values).map_err(broken)?))
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        let (accepted, sink) = (context.accepted().clone(), context.sink().clone());
        loop {
            let list = tokio::select! {
                change = changes.recv() => change.map_err(broken)?,
                () = context.cancelled() => return Ok(()),
            };
            let sent = match list {
                List::Tools if accepted.tools_list_changed == Some(true) => {
                    sink.notify_tool_list_changed().await
                }
                List::Prompts if accepted.prompts_list_changed == Some(true) => {
                    sink.notify_prompt_list_changed().await
                }
                _ => continue,
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }
}

impl Fixture {
    /// The inputs for which the client must be asked next; `None` if the client has answered everything.
    fn ask(
        &self,
        name: &str,
        rounds: &Rounds,
        responses: Option<InputResponses>,
        state: Option<String>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let mut round = match state {
            Some(state) => self.open(name, &state)?,
            None => 0,
        };
        let declared = context.client_capabilities().unwrap_or_default();
        let declared = serde_json::to_value(&declared).map_err(broken)?;
        let is_declared = |input: &String| {
            let method = self.fixtures.inputs[input]["method"].as_str().unwrap_or_default();
            let capability = method.split('/').next().unwrap_or_default();
            declared.get(capability).is_some()
        };
        let answered = |input: &String| {
            responses.as_ref().is_some_and(|all| all.get(input).is_some_and(Json::is_object))
        };
        let Some(inputs) = rounds.ask.get(round) else {
            return Err(ErrorData::invalid_params("the state does not belong to any round", None));
        };
        let mut inputs = inputs;
        if inputs.iter().all(answered) {
            round += 1;
            inputs = match rounds.ask.get(round) {
                Some(inputs) => inputs,
                None => return Ok(None),
            };
        }
        let mut requests = JsonObject::new();
        for input in inputs {
            let request = &self.fixtures.inputs[input];
            if is_declared(input) {
                requests.insert(input.clone(), request.clone());
            } else if !rounds.only_declared {
                let capability = request["method"].as_str().and_then(|method| method.split('/').next());
                let missing = from_json(json!({ (capability.unwrap_or_default()): {} }))?;
                return Err(ErrorData::missing_required_client_capability(missing));
            }
        }
        let mut asked = json!({"resultType": "input_required", "inputRequests": requests});
        if rounds.state {
            asked["requestState"] = self.seal(name, round).into();
        }
        Ok(Some(from_json(asked)?))
    }

    /// Creates a state for a round. It is signed, so that only this server can create it.
    fn seal(&self, name: &str, round: usize) -> String {
        let tag = hmac::sign(&self.key, format!("{name} {round}").as_bytes());
        format!("{round}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// Checks the signature of a state, and returns its round.
    fn open(&self, name: &str, state: &str) -> Result<usize, ErrorData> {
        let parts = state.split_once('.');
        let round =
            parts.and_then(|(round, _)| round.parse().ok()).filter(|round| self.seal(name, *round) == state);
        round.ok_or_else(|| ErrorData::invalid_params("requestState is not one that this server made", None))
    }
}

/// Sends three log messages.
async fn log(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let notification = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
        context.peer.notify_logging_message(notification).await.map_err(lost)?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Replaces the names of arguments in braces with the values of the arguments.
fn filled(template: &Json, given: &JsonObject) -> Result<Json, ErrorData> {
    let mut json = template.to_string();
    for (name, value) in given {
        let escaped = Json::from(value.as_str().unwrap_or_default()).to_string();
        json = json.replace(&format!("{{{name}}}"), &escaped[1..escaped.len() - 1]);
    }
    serde_json::from_str(&json).map_err(broken)
}

fn text(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn no_arguments() -> JsonObject {
    JsonObject::from_iter([("type".to_owned(), "object".into())])
}

/// Marks a result as complete.
fn complete<T: DeserializeOwned>(mut value: Json) -> Result<T, ErrorData> {
    value["resultType"] = "complete".into();
    from_json(value)
}

fn from_json<T: DeserializeOwned>(value: Json) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(broken)
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn lost(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(format!("the client cannot be reached: {error}"), None)
}
