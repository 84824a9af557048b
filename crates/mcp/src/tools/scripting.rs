//! The tool `script`, which runs Lua code in the emulator.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::{Reply, ToolError};
use crate::backend::Object;
use crate::session::{Session, arguments};

/// The schemas of the tool's arguments, for `Tool::arguments`.
pub(super) const SCRIPT: &str = r#"
"code":{"type":"string"}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptArguments {
    code: String,
}

pub(super) async fn script(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let ScriptArguments { code } = arguments(given)?;
    let _playing = session.playing.lock().await;
    let reply = session.call("v1.script", json!({"code": code})).await?;
    // The error contains the whole reply, because the output before an error helps to find its cause.
    if reply["error"].is_string() {
        return Err(ToolError(reply.to_string()));
    }
    Ok(reply.into())
}
