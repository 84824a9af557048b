//! The part of the document about tokens: how one is shown, and how a browser logs in.

use utoipa::openapi::path::{HttpMethod, OperationBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Components, ContentBuilder, PathItem, Ref, Required, ResponseBuilder};

use crate::access::gate::{LOGIN as LOGIN_PATH, LOGOUT as LOGOUT_PATH};
use crate::routing::declare::PathEffect;

const TOKEN: &str = "token";
const SESSION: &str = "session";
const LOGIN: &str = "Login";

/// Adds the ways to show a token, and the form of a login.
pub(super) fn add_schemes(components: &mut Components) {
    let text = || Schema::from(ObjectBuilder::new().schema_type(Type::String));
    let login = ObjectBuilder::new().property("token", text()).required("token").property("next", text());
    components.schemas.insert(LOGIN.to_owned(), Schema::from(login).into());
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "The token of --token-file or --read-token-file; needed only where the server was started with one.",
    ));
    components.add_security_scheme(TOKEN, SecurityScheme::Http(token.build()));
    let session = ApiKeyValue::with_description(
        "framewire-5000",
        "What POST /v1/login sets, for the pages of this server. The number is the server's port; with TLS \
         `__Host-` stands in front.",
    );
    components.add_security_scheme(SESSION, SecurityScheme::ApiKey(ApiKey::Cookie(session)));
}

/// One of these is enough; a server that was started without a token asks for none.
pub(super) fn requirements() -> Vec<SecurityRequirement> {
    let none: [&str; 0] = [];
    vec![
        SecurityRequirement::default(),
        SecurityRequirement::new(TOKEN, none),
        SecurityRequirement::new(SESSION, none),
    ]
}

/// Logging in and out, which happens before any route is looked for.
pub(super) fn paths() -> [(&'static str, PathItem); 2] {
    let done = |description: &str| ResponseBuilder::new().description(description).build();
    let form = RequestBodyBuilder::new()
        .description(Some("The token, and where to go on from there in a browser."))
        .content(
            "application/x-www-form-urlencoded",
            ContentBuilder::new().schema(Some(Ref::from_schema_name(LOGIN))).build(),
        )
        .required(Some(Required::True));
    let login = OperationBuilder::new()
        .tag("framewire")
        .operation_id(Some("login"))
        .summary(Some("Exchanges the token for a cookie, for browsers."))
        .request_body(Some(form.build()))
        .response("204", done("The cookie is set."))
        .response("303", done("The same, for a browser that shows pages: it goes on to `next`."))
        .security(SecurityRequirement::default());
    let logout = OperationBuilder::new()
        .tag("framewire")
        .operation_id(Some("logout"))
        .summary(Some("Gives the cookie back: it is valid no more."))
        .response("204", done("There is no session any more."))
        .response("303", done("The same, for a browser that shows pages: it goes on to `/`."));
    let item = |operation: OperationBuilder| {
        let mut item = PathItem::new(HttpMethod::Post, operation.build());
        PathEffect::Nothing.declare(&mut item);
        item
    };
    [(LOGIN_PATH, item(login)), (LOGOUT_PATH, item(logout))]
}
