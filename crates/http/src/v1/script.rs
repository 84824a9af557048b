//! Runs Lua code that clients send.

use framewire_protocol::{Op, OpError, Value};
use serde_json::Value as Json;

use crate::routing::prelude::*;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(script))
}

/// Lua code.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"code": "print(emu:getGameTitle()) return emu:read8(0x02000000), emu:currentFrame()"}))]
struct Code {
    /// A chunk of Lua 5.4 with mGBA's globals, such as `emu` and `C`. Its own globals are kept for the next request.
    code: String,
}

// The emulator's reply has the same fields, but no frame counter.
/// What the code returned.
#[derive(Deserialize, Serialize, ToSchema)]
struct ScriptReply {
    /// The values that it returned. Text that is not UTF-8 is `{"hex": "..."}`; functions and objects are text.
    values: Vec<Json>,
    /// The lines that it wrote with `print` and `console`.
    output: Vec<String>,
    /// Whether `output` was cut off after 1,000 lines or 256 KiB.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    /// The error that ended the code, with the line. What the code did before the error is not undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The frame counter at that time. The code ran between this frame and the next.
    #[serde(default)]
    #[schema(required = true)]
    frame: u32,
}

/// Runs Lua code in the emulator, between two frames. The server allows it only with `--allow-script`.
///
/// The code has all rights of the emulator's process, including access to files. It is stopped after 5,000,000
/// instructions. It cannot run frames, reset, or load another game.
#[utoipa::path(post, path = "/v1/script", operation_id = "script", tag = "script", params(EmulatorParam),
    request_body = Code, responses((status = 200, description = "The code ran to its end, or until an error.", body = ScriptReply)))]
async fn script(
    selected: SelectedEmulator,
    Payload(Code { code }): Payload<Code>,
) -> Result<axum::Json<ScriptReply>> {
    let outcome = selected.perform(selected.keyed(Op::Script { code })).await?;
    let frame = outcome.frame;
    let unreadable = || OpError::failed("the emulator's reply to the code cannot be read");
    let Value::Text(text) = outcome.single()? else { return Err(unreadable().into()) };
    let reply: ScriptReply = serde_json::from_str(&text).map_err(|_| unreadable())?;
    Ok(axum::Json(ScriptReply { frame, ..reply }))
}
