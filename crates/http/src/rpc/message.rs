//! The text of requests, replies and errors, according to <https://www.jsonrpc.org/specification>.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::problem::Problem;
use crate::reading::fields::shown;
use crate::reading::unique::{self, Unreadable};

/// The largest number of requests in one array.
const MAX_BATCH: usize = 1024;

/// The content of a message.
#[derive(Debug)]
pub(super) enum Message {
    /// A request, or an invalid one.
    One(Result<Request, Refused>),
    /// An array of requests, some of which may be invalid.
    Many(Vec<Result<Request, Refused>>),
}

#[derive(Debug)]
pub(super) struct Request {
    /// `None` for a notification, which is not answered.
    pub(super) id: Option<Json>,
    pub(super) method: String,
    pub(super) params: Params,
}

#[derive(Debug)]
pub(super) enum Params {
    Named(Map<String, Json>),
    InOrder(Vec<Json>),
}

/// An invalid request, with its id, or null if the id is not known.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) id: Json,
    pub(super) error: RpcError,
}

impl Refused {
    fn new(id: Json, problem: Problem) -> Refused {
        Refused { id, error: RpcError::invalid_request(problem) }
    }

    /// A field is missing, or has a value that is not accepted.
    fn field(id: Json, name: &str, value: Option<&Json>, accepts: &str) -> Refused {
        let problem = value.map_or("is missing".to_owned(), |value| format!("is {}", shown(value)));
        Refused::new(id, Problem::parameter(name, &problem, accepts))
    }
}

pub(super) fn read(text: &[u8]) -> Message {
    let refused = |error| Message::One(Err(Refused { id: Json::Null, error }));
    match unique::read(text) {
        Err(Unreadable::Syntax(error)) => refused(RpcError::parse(&error)),
        Err(other) => refused(RpcError::invalid_request(other.problem("the message"))),
        Ok(Json::Array(items)) if items.is_empty() || items.len() > MAX_BATCH => {
            let detail = format!("the array holds {} requests; 1 to {MAX_BATCH} are accepted", items.len());
            refused(RpcError::invalid_request(Problem::bad_request(detail)))
        }
        Ok(Json::Array(items)) => Message::Many(items.into_iter().map(request).collect()),
        Ok(item) => Message::One(request(item)),
    }
}

fn request(item: Json) -> Result<Request, Refused> {
    let Json::Object(mut object) = item else {
        let detail = format!(
            "{} is not a request; a request is an object with jsonrpc, id, method and params",
            shown(&item)
        );
        return Err(Refused::new(Json::Null, Problem::bad_request(detail)));
    };
    let id = object.remove("id");
    let is_id = match &id {
        // The id must be returned unchanged, but a floating-point number may be rounded when it is read.
        Some(Json::Number(number)) => !number.is_f64(),
        Some(Json::String(_) | Json::Null) | None => true,
        Some(_) => false,
    };
    if !is_id {
        let accepts = "a text, or a whole number of at most 64 bits";
        return Err(Refused::field(Json::Null, "id", id.as_ref(), accepts));
    }
    let known = id.clone().unwrap_or_default();
    let version = object.remove("jsonrpc");
    if version.as_ref().is_none_or(|version| version != "2.0") {
        return Err(Refused::field(known, "jsonrpc", version.as_ref(), "\"2.0\""));
    }
    let method = match object.remove("method") {
        Some(Json::String(method)) => method,
        other => {
            let accepts = "the name of a method, such as \"read8\"";
            return Err(Refused::field(known, "method", other.as_ref(), accepts));
        }
    };
    let params = match object.remove("params") {
        None => Params::Named(Map::new()),
        Some(Json::Object(named)) => Params::Named(named),
        Some(Json::Array(items)) => Params::InOrder(items),
        other => {
            let accepts = "an object, or an array of an operation's arguments";
            return Err(Refused::field(known, "params", other.as_ref(), accepts));
        }
    };
    match object.keys().next() {
        None => Ok(Request { id, method, params }),
        Some(other) => {
            let accepts = "jsonrpc, id, method and params";
            let problem = Problem::parameter(other.as_str(), "is not a field of a request", accepts);
            Err(Refused::new(known, problem))
        }
    }
}

/// The reply to the request with this id.
pub(super) fn reply(id: Json, result: Result<Json, RpcError>) -> Json {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

/// An event of a subscription. `data` is JSON text that is inserted unchanged.
pub(super) fn event(subscription: u64, id: &str, name: &str, data: &str) -> String {
    // Ids and names have only letters, digits, dots and hyphens, so they need no escapes.
    format!(
        r#"{{"jsonrpc":"2.0","method":"event","params":{{"subscription":{subscription},"id":"{id}","event":"{name}","data":{data}}}}}"#
    )
}

/// Why a request has no result.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RpcError {
    code: i32,
    message: &'static str,
    /// A [`Problem`].
    pub(super) data: Json,
}

impl RpcError {
    /// The message is not JSON.
    pub(crate) fn parse(error: &serde_json::Error) -> RpcError {
        let data = json!(Problem::bad_request(format!("the message is not JSON: {error}")));
        RpcError { code: -32700, message: "Parse error", data }
    }

    /// The message is JSON, but not a request.
    pub(crate) fn invalid_request(problem: Problem) -> RpcError {
        RpcError { code: -32600, message: "Invalid Request", data: json!(problem) }
    }

    /// There is no method of this name.
    pub(crate) fn no_method(name: &str, accepts: &str) -> RpcError {
        let data = json!(Problem::parameter("method", &format!("is {name:?}, which is unknown"), accepts));
        RpcError { code: -32601, message: "Method not found", data }
    }

    /// An error with a problem in JSON (`data`). Internal errors, and problems with the parameters, have the codes that
    /// the specification gives them. Other statuses have codes from the range that the specification leaves to servers.
    pub(crate) fn with_status(status: StatusCode, data: Json) -> RpcError {
        let (code, message) = match status {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => (-32602, "Invalid params"),
            StatusCode::INTERNAL_SERVER_ERROR => (-32603, "Internal error"),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (-32001, "Not allowed"),
            StatusCode::NOT_FOUND => (-32004, "Not found"),
            StatusCode::CONFLICT => (-32005, "Conflict"),
            StatusCode::PAYLOAD_TOO_LARGE => (-32006, "Too large"),
            StatusCode::GONE => (-32007, "Reply dropped"),
            StatusCode::NOT_IMPLEMENTED => (-32010, "Unsupported"),
            StatusCode::BAD_GATEWAY => (-32011, "No emulator"),
            StatusCode::SERVICE_UNAVAILABLE => (-32012, "Busy"),
            StatusCode::GATEWAY_TIMEOUT => (-32013, "Stalled"),
            _ => (-32000, "Server error"),
        };
        RpcError { code, message, data }
    }

    /// Changes the problem of a batch with one operation into the problem of this operation alone.
    pub(crate) fn of_first_op(mut problem: Json) -> RpcError {
        const PLACE: &str = "ops[0]";
        if let Json::Object(fields) = &mut problem {
            fields.remove("op");
            if fields.get("parameter").is_some_and(|place| place == PLACE) {
                fields.remove("parameter");
            }
            for name in ["parameter", "detail"] {
                if let Some(Json::String(text)) = fields.get_mut(name)
                    && let Some(rest) = text.strip_prefix(PLACE)
                {
                    *text = rest.trim_start_matches(['.', ':', ' ']).to_owned();
                }
            }
        }
        let status = problem["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        RpcError::with_status(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), problem)
    }
}

impl From<Problem> for RpcError {
    fn from(problem: Problem) -> RpcError {
        RpcError::with_status(problem.status(), json!(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_and_code(text: &str) -> (Json, i64) {
        match read(text.as_bytes()) {
            Message::One(Err(refused)) => {
                let error = serde_json::to_value(refused.error).unwrap();
                (refused.id, error["code"].as_i64().unwrap())
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_invalid_request_gets_the_code_of_the_specification() {
        for (text, id, expected) in [
            ("{", Json::Null, -32700),
            ("", Json::Null, -32700),
            ("{} {}", Json::Null, -32700),
            ("[]", Json::Null, -32600),
            ("1", Json::Null, -32600),
            ("{}", Json::Null, -32600),
            (r#"{"jsonrpc":"1.0","method":"x","id":1}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","method":1,"id":"a"}"#, json!("a"), -32600),
            (r#"{"jsonrpc":"2.0","method":"x","params":"p","id":2}"#, json!(2), -32600),
            (r#"{"jsonrpc":"2.0","method":"x","id":[1]}"#, Json::Null, -32600),
            (r#"{"jsonrpc":"2.0","method":"x","id":12345678901234567890123}"#, Json::Null, -32600),
            (r#"{"jsonrpc":"2.0","method":"x","id":1.5}"#, Json::Null, -32600),
            (r#"{"jsonrpc":"2.0","method":1,"id":18446744073709551615}"#, json!(u64::MAX), -32600),
            (r#"{"jsonrpc":"2.0","method":"x","id":3,"parms":{}}"#, json!(3), -32600),
            (r#"{"jsonrpc":"2.0","method":"x","method":"y","id":3}"#, Json::Null, -32600),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"x","params":{"op":"read8","op":"write8"}}"#,
                Json::Null,
                -32600,
            ),
            (r#"[{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}]"#, Json::Null, -32600),
        ] {
            assert_eq!(id_and_code(text), (id, expected), "{text}");
        }
    }

    #[test]
    fn a_refusal_says_what_was_there_and_what_is_accepted() {
        for (text, says) in [
            (r#"{"jsonrpc":"1.0","method":"x","id":1}"#, r#"jsonrpc is "1.0"; accepted is "2.0""#),
            (r#"{"method":"x","id":1}"#, r#"jsonrpc is missing; accepted is "2.0""#),
            (r#"{"jsonrpc":"2.0","id":1}"#, "method is missing; accepted is the name"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, "id is 1.5; accepted is a text"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":5}"#, "params is 5; accepted is an object"),
            (r#"{"jsonrpc":"2.0","method":"x","method":"reset"}"#, r#"has "method" twice"#),
        ] {
            let Message::One(Err(refused)) = read(text.as_bytes()) else { panic!("{text}") };
            let error = serde_json::to_value(refused.error).unwrap();
            assert!(error["data"]["detail"].as_str().unwrap().contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn requests_notifications_and_arrays_are_distinguished() {
        let Message::One(Ok(request)) = read(br#"{"jsonrpc":"2.0","method":"x","params":[1],"id":7}"#) else {
            panic!()
        };
        assert_eq!((request.id, request.method.as_str()), (Some(json!(7)), "x"));
        assert!(matches!(request.params, Params::InOrder(items) if items == [json!(1)]));
        let Message::One(Ok(request)) = read(br#"{"jsonrpc":"2.0","method":"x"}"#) else { panic!() };
        assert!(request.id.is_none());
        let Message::Many(items) = read(br#"[1, {"jsonrpc":"2.0","method":"x"}]"#) else { panic!() };
        assert!(items[0].is_err() && items[1].is_ok());
        let many = format!("[{}1]", "1,".repeat(MAX_BATCH));
        assert_eq!(id_and_code(&many).1, -32600);
    }

    #[test]
    fn events_are_json() {
        let event: Json = serde_json::from_str(&event(3, "w1.2", "change", r#"{"frame":1}"#)).unwrap();
        let params = json!({"subscription": 3, "id": "w1.2", "event": "change", "data": {"frame": 1}});
        assert_eq!(event, json!({"jsonrpc": "2.0", "method": "event", "params": params}));
    }
}
