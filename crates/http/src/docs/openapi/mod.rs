//! The OpenAPI 3.1 document, written from the tables of routes.

use std::sync::LazyLock;

use bytes::Bytes;
use framewire_emulator::Run;
use framewire_protocol::MAX_KEY;
use framewire_protocol::op::ResultKind;
use serde_json::Value;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{
    Content, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem, Paths, Ref,
    RefOr, Required, Response, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::compat;
use crate::compat::{ECHO, Param, ROUTES, Reply, RequestBody, Route, Verb};
use crate::plain::Health;
use crate::v1::schemas::KeyName;

mod v1;

/// A status, the name of its response in the document, and its description.
type DocumentedFailure = (&'static str, &'static str, &'static str);

/// The possible failures of every route that uses the emulator.
const FAILURES: [DocumentedFailure; 10] = [
    (
        "400",
        "BadRequest",
        "A parameter or the body is missing, unreadable or out of range; the text says which and what it accepts.",
    ),
    ("401", "NoToken", "A token is needed, or the token of the request is not valid."),
    ("403", "Foreign", "Not allowed for this web page, this host name or this token. The text says why."),
    ("408", "Slow", "The body did not arrive in time."),
    ("413", "TooLarge", "The URL or the body is too large."),
    ("500", "Internal", "A bug in Framewire. Please report it with the text."),
    ("501", "Unsupported", "This kind of emulator cannot do it."),
    ("502", "NoEmulator", "There is no emulator, or it failed. The text says how to start one."),
    (
        "503",
        "Busy",
        "Too many requests are waiting, or the server is stopping. If the reply has Retry-After, try again after that \
         number of seconds.",
    ),
    ("504", "Stalled", "The emulator did not answer in time: it is paused, or has no ROM."),
];

const TEXT: &str = "text/plain";
const BYTES: &str = "application/octet-stream";

/// The document as JSON. It is written once.
pub(crate) fn json() -> Bytes {
    static JSON: LazyLock<Bytes> =
        LazyLock::new(|| serde_json::to_vec(&document()).unwrap_or_default().into());
    JSON.clone()
}

/// The document.
pub fn document() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Framewire")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Controls the mGBA emulator. All paths of mGBA-http 0.10 exist here and do the same as there.",
        ))
        .license(Some(
            LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build(),
        ))
        .build();
    let mut paths = Paths::new();
    for route in ROUTES.iter().chain(&ECHO) {
        let method = match route.verb {
            Verb::Get => HttpMethod::Get,
            Verb::Post => HttpMethod::Post,
        };
        paths.add_path_operation(route.path, vec![method], operation(route));
    }
    paths.paths.extend(own_paths().map(|(path, item)| (path.to_owned(), item)));
    let schemas = utoipa::openapi::ComponentsBuilder::new()
        .schema(Run::name(), Run::schema())
        .schema(Health::name(), Health::schema())
        .schema(KeyName::name(), KeyName::schema());
    let failures = FAILURES.iter().chain(&KEY_FAILURES);
    let components = failures.fold(schemas, |components, (_, name, description)| {
        components.response(*name, text_response(description, string(), None))
    });
    let mut document =
        OpenApiBuilder::new().info(info).paths(paths).components(Some(components.build())).build();
    document.merge(v1::document());
    document.security = Some(v1::requirements());
    document
}

fn operation(route: &Route) -> Operation {
    let tag = route.path.trim_start_matches('/').rsplit_once('/').map_or("echo", |(group, _)| group);
    let mut operation = OperationBuilder::new()
        .tag(tag)
        .operation_id(Some(operation_id(route)))
        .summary(Some(route.doc))
        .parameters(Some(route.params.iter().map(parameter)))
        .parameters(Some((route.verb == Verb::Post).then(idempotency_key)))
        .response("200", success(route.reply));
    if route.verb == Verb::Post {
        operation = with_failures(operation, &KEY_FAILURES);
    }
    let body = match route.body() {
        RequestBody::Ignored => None,
        RequestBody::Savestate => {
            let description = "A savestate as hex pairs, as POST /core/savestatebuffer gives it.";
            Some(text_body(description, Some("[d3,00,ea]")).required(Some(Required::True)).build())
        }
        RequestBody::Message => Some(text_body("The message.", None).build()),
    };
    with_failures(operation.request_body(body), &FAILURES).build()
}

/// A body of text, which is accepted with any content type. Generated clients that cannot send `text/plain` send bytes.
fn text_body(description: &str, example: Option<&str>) -> RequestBodyBuilder {
    RequestBodyBuilder::new()
        .description(Some(description))
        .content(TEXT, content(string(), example))
        .content(BYTES, content(bytes(), None))
}

const REPLY_DROPPED: &str =
    "The request with this Idempotency-Key was performed, and its reply is no longer kept.";

/// Further failures of requests with an `Idempotency-Key`.
const KEY_FAILURES: [DocumentedFailure; 2] = [
    ("410", "ReplyDropped", REPLY_DROPPED),
    ("422", "KeyReused", "The Idempotency-Key was used for a different request."),
];

fn with_failures(operation: OperationBuilder, failures: &[DocumentedFailure]) -> OperationBuilder {
    failures.iter().fold(operation, |operation, (status, name, description)| {
        operation.response(*status, referred(name, description))
    })
}

/// A reference to a shared response, with its description, because some readers do not follow references.
fn referred(name: &str, description: &str) -> RefOr<Response> {
    let mut reference = Ref::from_response_name(name);
    reference.description = description.to_owned();
    RefOr::Ref(reference)
}

/// The path in camel case. The echo route with the message in the body also gets `Post`, because its path has two
/// methods.
fn operation_id(route: &Route) -> String {
    let mut id = String::new();
    for word in route.path.split(['/', '-']).filter(|word| !word.is_empty()) {
        let (first, rest) = word.split_at(1);
        id.push_str(&if id.is_empty() { first.to_owned() } else { first.to_ascii_uppercase() });
        id.push_str(rest);
    }
    if route.body() == RequestBody::Message {
        id.push_str("Post");
    }
    id
}

fn parameter(param: &Param) -> Parameter {
    let required = if param.default.is_some() { Required::False } else { Required::True };
    ParameterBuilder::new()
        .name(param.name)
        .parameter_in(ParameterIn::Query)
        .required(required)
        .description(Some(format!("{} It takes {}.", param.doc, param.kind.accepts())))
        .schema(Some(parameter_schema(param)))
        .explode((param.kind == compat::Kind::Buttons).then_some(true))
        .build()
}

fn idempotency_key() -> Parameter {
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "A unique name for this request, such as a UUID. If no reply arrives, repeat the request with the same key: \
             the server performs it only once, and sends the first reply again. It remembers the key for 10 minutes.",
        ))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(MAX_KEY))
                .pattern(Some("^[ -~]+$")),
        ))
        .build()
}

fn parameter_schema(param: &Param) -> RefOr<Schema> {
    match param.kind {
        compat::Kind::Integer { min, max } => ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(min))
            .maximum(Some(max))
            .default(param.default.map(Value::from))
            .into(),
        compat::Kind::LuaNumber { max } => {
            let (hex, decimal) = (format!("{max:x}").len(), max.to_string().len());
            let pattern = format!("^(0[xX][0-9a-fA-F]{{1,{hex}}}|[0-9]{{1,{decimal}}})$");
            ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
        }
        compat::Kind::Boolean => ObjectBuilder::new().schema_type(Type::Boolean).into(),
        compat::Kind::Text => string().into(),
        compat::Kind::Name | compat::Kind::Path => {
            ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).into()
        }
        compat::Kind::Button => Ref::from_schema_name(KeyName::name()).into(),
        compat::Kind::Buttons => {
            ArrayBuilder::new().items(Ref::from_schema_name(KeyName::name())).min_items(Some(1)).into()
        }
    }
}

fn success(reply: Reply) -> Response {
    let pattern =
        |pattern: &str| ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into();
    match reply {
        Reply::Plain(ResultKind::None) => text_response("Done; the body is empty.", pattern("^$"), None),
        Reply::Plain(ResultKind::Bool) => {
            text_response("Whether it succeeded.", pattern("^(true|false)$"), Some("true"))
        }
        Reply::Plain(ResultKind::Int) => {
            text_response("A number in decimal.", pattern("^-?[0-9]+$"), Some("255"))
        }
        Reply::Plain(ResultKind::Text) => text_response("A text.", string(), None),
        Reply::Plain(ResultKind::Bytes) => {
            let pairs = pattern("^([0-9a-f]{2}(,[0-9a-f]{2})*)?$");
            text_response("Bytes as hex pairs, joined by commas.", pairs, Some("d3,00,00,ea"))
        }
        Reply::Plain(ResultKind::Names) => {
            text_response("Names, joined by commas.", string(), Some("wram,iwram,vram"))
        }
        Reply::Buttons => text_response(
            "Names of buttons, joined by commas; empty if there are none.",
            string(),
            Some("A,Start"),
        ),
        Reply::Raw => text_response("The message.", string(), None),
    }
}

fn string() -> Schema {
    ObjectBuilder::new().schema_type(Type::String).into()
}

/// The schema of bytes, in the form of OpenAPI 3.0, which generators of clients understand.
fn bytes() -> Schema {
    let binary = SchemaFormat::KnownFormat(KnownFormat::Binary);
    ObjectBuilder::new().schema_type(Type::String).format(Some(binary)).into()
}

fn text_response(description: &str, schema: Schema, example: Option<&str>) -> Response {
    ResponseBuilder::new().description(description).content(TEXT, content(schema, example)).build()
}

/// The content of a body or a reply.
fn content(schema: impl Into<RefOr<Schema>>, example: Option<&str>) -> Content {
    ContentBuilder::new().schema(Some(schema)).example(example.map(Value::from)).build()
}

/// Framewire's own routes outside of `/v1`, without its pages.
fn own_paths() -> [(&'static str, PathItem); 3] {
    let get = |id: &str, summary: &str, response: Response, failures: &[DocumentedFailure]| {
        let operation = OperationBuilder::new()
            .tag("framewire")
            .operation_id(Some(id))
            .summary(Some(summary))
            .response("200", response);
        PathItem::new(HttpMethod::Get, with_failures(operation, failures).build())
    };
    let typed = |content_type: &str, description: &str, schema: RefOr<Schema>| {
        ResponseBuilder::new().description(description).content(content_type, content(schema, None)).build()
    };
    let description = "The server is up. All fields except `status` describe its first emulator.";
    let health = typed("application/json", description, Ref::from_schema_name(Health::name()).into());
    let picture = typed("image/png", "A PNG.", bytes().into());
    let description = "Metrics in the text format of Prometheus. docs/metrics.md lists them.";
    let metrics = text_response(description, string(), None);
    // 401 and 403, which every route can answer with.
    let refused = &FAILURES[1..3];
    [
        ("/metrics", get("metrics", "Metrics for Prometheus.", metrics, refused)),
        ("/healthz", get("health", "Whether the server is up.", health, refused)),
        ("/screen.png", get("screen", "The picture of the last frame.", picture, &FAILURES)),
    ]
}
