//! The part of the document about `/v1`: the descriptions of the handlers, their common failures, and how to send a
//! token.

use axum::http::Method;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Components, OpenApi, PathItem, Ref, RefOr, Required, ResponseBuilder};

use crate::access::gate::{LOGIN as LOGIN_PATH, LOGOUT as LOGOUT_PATH};
use crate::problem::MEDIA_TYPE;
use crate::routing::catalog;
use crate::routing::declare::PathEffect;
use crate::{rpc, v1};

/// The failures of all routes under `/v1`, each as a [`Problem`](crate::problem::Problem). A route has those that
/// [`add_problems`] chooses for it.
const PROBLEMS: [super::DocumentedFailure; 16] = [
    ("400", "V1BadRequest", "A parameter or the body cannot be used; nothing was done."),
    ("401", "V1Unauthorized", "A token is needed, or the token of the request is not valid."),
    ("403", "V1Forbidden", "The token, the web page or the host name does not allow this."),
    ("404", "V1NotFound", "The path, the emulator or the object that the path names does not exist."),
    ("408", "V1Slow", "The body did not arrive in time."),
    ("409", "V1Conflict", "The request is not possible in the current state."),
    ("410", "V1ReplyDropped", super::REPLY_DROPPED),
    ("413", "V1TooLarge", "The request or its result is too large."),
    ("415", "V1MediaType", "The body does not have the documented media type."),
    (
        "422",
        "V1Unprocessable",
        "The emulator cannot use the file or the data, or the Idempotency-Key was used for a different request.",
    ),
    ("431", "V1LargeHead", "The headers are too large."),
    (
        "500",
        "V1Internal",
        "The server could not read or write a file, for example because the disk is full; or this is a \
         bug in Framewire, which you can report.",
    ),
    ("501", "V1Unsupported", "This kind of emulator cannot do it."),
    ("502", "V1NoEmulator", "There is no emulator, or it failed."),
    (
        "503",
        "V1Busy",
        "Too many requests are waiting, or too many streams are open; a recording or a replay does not allow the \
         change; or the server is stopping. If the reply has Retry-After, try again after that number of seconds.",
    ),
    ("504", "V1Stalled", "The emulator did not answer in time: it is paused in its window, or has no ROM."),
];

/// The description of everything under `/v1`.
pub(super) fn document() -> OpenApi {
    let mut document = v1::router().merge(rpc::router()).into_openapi();
    document.paths.paths.extend(login_paths().map(|(path, item)| (path.to_owned(), item)));
    for (path, item) in &mut document.paths.paths {
        let effect = PathEffect::of(item);
        item.extensions = None;
        for (method, operation) in operations(item) {
            describe_bytes(operation);
            let keyed = catalog::takes_key(&method, effect);
            if keyed {
                operation.parameters.get_or_insert_default().push(super::idempotency_key().into());
            }
            let of_server = method == Method::GET && is_known_to_server(path) && !is_of_emulator(operation);
            add_problems(operation, of_server, keyed);
        }
    }
    let components = document.components.get_or_insert_default();
    open_parts(components);
    for (status, name, description) in PROBLEMS {
        let content = super::content(Ref::from_schema_name("Problem"), None);
        let mut response = ResponseBuilder::new().description(description).content(MEDIA_TYPE, content);
        // A head that is too large is refused before its route is known, so this reply can be plain text.
        if matches!(status, "413" | "431") {
            response = response.content(super::TEXT, super::content(super::string(), None));
        }
        components.responses.insert(name.to_owned(), RefOr::T(response.build()));
    }
    add_token_schemes(components);
    document
}

/// Allows further fields in schemas that are parts of an `allOf`. Otherwise each part would forbid the fields of the
/// other parts.
fn open_parts(components: &mut Components) {
    let parts = |schema: &RefOr<Schema>| match schema {
        RefOr::T(Schema::AllOf(all)) => all.items.clone(),
        _ => Vec::new(),
    };
    let name = |part| match part {
        RefOr::Ref(part) => part.ref_location.rsplit('/').next().map(str::to_owned),
        RefOr::T(_) => None,
    };
    let names: Vec<String> = components.schemas.values().flat_map(parts).filter_map(name).collect();
    for name in names {
        if let Some(RefOr::T(Schema::Object(object))) = components.schemas.get_mut(&name) {
            object.additional_properties = None;
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all = [
        (Method::GET, &mut item.get),
        (Method::PUT, &mut item.put),
        (Method::POST, &mut item.post),
        (Method::PATCH, &mut item.patch),
        (Method::DELETE, &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Whether the server can answer without looking up an object or listing files: the path names no object, and is not a
/// list of snapshots or recordings.
fn is_known_to_server(path: &str) -> bool {
    !path.contains('{') && !path.starts_with("/v1/snapshots") && !path.starts_with("/v1/recordings")
}

/// Whether the operation is about one emulator. Its answer may then need a request to the emulator.
fn is_of_emulator(operation: &Operation) -> bool {
    catalog::query_parameters(operation).any(|name| name == "emulator")
}

/// Corrects the schema of bytes, which utoipa describes as a list of numbers.
fn describe_bytes(operation: &mut Operation) {
    let replies = operation.responses.responses.values_mut().filter_map(own);
    let taken = operation.request_body.iter_mut().filter_map(own);
    let all = replies.flat_map(|reply| reply.content.iter_mut());
    for (kind, content) in all.chain(taken.flat_map(|body| body.content.iter_mut())) {
        if let Some(content) = own(content)
            && !kind.contains("json")
            && !kind.contains("form")
            && !kind.starts_with("text/")
        {
            content.schema = Some(super::bytes().into());
        }
    }
}

/// The description itself; `None` if there is only a reference to it.
fn own<T>(described: &mut RefOr<T>) -> Option<&mut T> {
    match described {
        RefOr::T(own) => Some(own),
        RefOr::Ref(_) => None,
    }
}

/// Adds the problems that an operation may answer with. `of_server` says whether the server answers without an
/// emulator, an object or a file. `keyed` says whether requests may have an `Idempotency-Key`.
fn add_problems(operation: &mut Operation, of_server: bool, keyed: bool) {
    let reads = operation.request_body.is_some();
    let is_login = operation.operation_id.as_deref() == Some(LOGIN_ID);
    for (status, name, description) in PROBLEMS {
        let may = match status {
            "408" => reads,
            "410" => keyed,
            // Other routes read a body of any media type.
            "415" => is_login,
            "404" | "409" | "422" | "501" | "502" | "504" => !of_server,
            _ => true,
        };
        if may {
            let all = &mut operation.responses.responses;
            all.entry(status.to_owned()).or_insert_with(|| super::referred(name, description));
        }
    }
}

const TOKEN: &str = "token";
const SESSION: &str = "session";
const LOGIN: &str = "Login";
const LOGIN_ID: &str = "login";

/// Adds the ways to send a token, and the login form.
fn add_token_schemes(components: &mut Components) {
    let (token, next) = (super::string(), super::string());
    let login = ObjectBuilder::new().property("token", token).required("token").property("next", next);
    components.schemas.insert(LOGIN.to_owned(), Schema::from(login).into());
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "The token of --token-file or --read-token-file. It is needed only if the server was started with one of them.",
    ));
    components.add_security_scheme(TOKEN, SecurityScheme::Http(token.build()));
    let session = ApiKeyValue::with_description(
        "framewire-5000",
        "The cookie that POST /v1/login sets, for the pages of this server. The number is the server's port. With TLS, \
         the name begins with `__Host-`.",
    );
    components.add_security_scheme(SESSION, SecurityScheme::ApiKey(ApiKey::Cookie(session)));
}

/// The ways to send a token. One of them is enough. A server that was started without a token requires none of them.
pub(super) fn requirements() -> Vec<SecurityRequirement> {
    let none: [&str; 0] = [];
    vec![
        SecurityRequirement::default(),
        SecurityRequirement::new(TOKEN, none),
        SecurityRequirement::new(SESSION, none),
    ]
}

/// The paths for logging in and out. The server handles them before the routes.
fn login_paths() -> [(&'static str, PathItem); 2] {
    let done = |description: &str| ResponseBuilder::new().description(description).build();
    let form = RequestBodyBuilder::new()
        .description(Some("The token, and the page that a browser opens next."))
        .content("application/x-www-form-urlencoded", super::content(Ref::from_schema_name(LOGIN), None))
        .required(Some(Required::True));
    let login = OperationBuilder::new()
        .tag("framewire")
        .operation_id(Some(LOGIN_ID))
        .summary(Some("Exchanges the token for a cookie. For browsers."))
        .request_body(Some(form.build()))
        .response("204", done("The cookie is set."))
        .response("303", done("A redirect to `next`, for a browser that shows pages."))
        .security(SecurityRequirement::default());
    let logout = OperationBuilder::new()
        .tag("framewire")
        .operation_id(Some("logout"))
        .summary(Some("Ends the session. The cookie is no longer valid."))
        .response("204", done("The session has ended."))
        .response("303", done("A redirect to `/`, for a browser that shows pages."));
    let item = |operation: OperationBuilder| {
        let mut item = PathItem::new(HttpMethod::Post, operation.build());
        PathEffect::Nothing.declare(&mut item);
        item
    };
    [(LOGIN_PATH, item(login)), (LOGOUT_PATH, item(logout))]
}
