//! The table of tools.
//!
//! - `acting`: act, observe, screenshot, wait, watch; `control`: snapshot, control, record, load, script;
//! - `memory`: read, write, search, symbols, text; `resuming`: resume.

mod acting;
mod control;
mod memory;
mod resuming;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::backend::{Object, Problem};
use crate::picture::Picture;
use crate::session::{Session, Toolset};

/// The future of a call of a tool.
pub(crate) type ToolFuture = Pin<Box<dyn Future<Output = Result<Reply, ToolError>> + Send>>;

/// Why a tool failed, for the model: what was wrong, what is accepted, what to do.
#[derive(Debug)]
pub(crate) struct ToolError(pub(crate) String);

impl From<Problem> for ToolError {
    fn from(problem: Problem) -> ToolError {
        ToolError(in_tools(problem.detail))
    }
}

/// Advice in the server's errors, and the corresponding advice for a client that has only tools.
const INSTEAD: [(&str, &str); 13] = [
    ("POST /v1/search", "the action begin of search"),
    (
        "DELETE /v1/recording completes it, and GET says",
        "the action stop of record completes it, and status says",
    ),
    ("wait for it, or end it with DELETE /v1/replay", "wait until it ends"),
    ("POST /v1/resume", "the action resume of control"),
    ("GET /v1/symbols", "the tool symbols"),
    ("with \"force\" it", "with force it"),
    (", or text in hex", ""),
    (", or \"unlimited\"", ", or 0 for unlimited"),
    (
        "a list of the names A, B, Select, Start, Right, Left, Up, Down, R and L, or a mask from 0 to 1023",
        "the names A, B, Select, Start, Right, Left, Up, Down, R and L, with + between, such as Up+B",
    ),
    ("idempotency_key is", "key is"),
    ("Idempotency-Key: the key", "key: it"),
    ("`bytes[ADDRESS, LENGTH]` can only be watched alone", "the tool read returns bytes"),
    ("`text[ADDRESS, LENGTH]` can only be watched alone", "the tool text returns texts"),
];

/// Replaces the routes in an error of the server with tools.
fn in_tools(mut text: String) -> String {
    // A session has only one emulator, so an error need not name it.
    if let Some((before, rest)) = text.split_once("?emulator=") {
        let after = rest.find(' ').map_or("", |at| &rest[at..]);
        text = format!("{before}{after}");
    }
    for (route, tool) in INSTEAD {
        text = text.replace(route, tool);
    }
    text
}

/// Refuses arguments that the action of a call does not use: the call would not do what they say. `uses` has the
/// arguments of each action. An argument that is null, false or empty counts as not given.
fn check_uses(given: &Object, uses: &[(&str, &[&str])]) -> Result<(), ToolError> {
    let action = given.get("action").and_then(Json::as_str);
    let Some((action, used)) = uses.iter().find(|(name, _)| action == Some(name)) else { return Ok(()) };
    let is_given = |value: &Json| !matches!(value, Json::Null | Json::Bool(false)) && value != "";
    let unused = given
        .iter()
        .find(|(name, value)| *name != "action" && !used.contains(&name.as_str()) && is_given(value));
    let Some((name, _)) = unused else { return Ok(()) };
    let accepted = if used.is_empty() { "no other argument".to_owned() } else { used.join(", ") };
    Err(ToolError(format!(
        "{name} is given, but the action {action} does not use it; accepted is {accepted}"
    )))
}

/// Sets a field of an object, if there is a value for it.
pub(crate) fn set(object: &mut Json, name: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        object[name] = value.into();
    }
}

/// What a tool returns.
pub(crate) struct Reply {
    pub(crate) json: Json,
    pub(crate) picture: Option<Picture>,
}

impl From<Json> for Reply {
    fn from(json: Json) -> Reply {
        Reply { json, picture: None }
    }
}

/// What a tool may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Read,
    /// The game advances.
    Change,
    /// A value is set. A second call with the same arguments changes nothing more.
    Set,
    /// Something that cannot be restored may be replaced or removed.
    Destroy,
    /// Anything, even outside of the emulator.
    Arbitrary,
}

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) toolset: Toolset,
    pub(crate) effect: Effect,
    pub(crate) description: &'static str,
    /// The schemas of its arguments by name: a JSON object without the braces around it.
    pub(crate) arguments: &'static str,
    pub(crate) required: &'static [&'static str],
    pub(crate) run: fn(Arc<Session>, Object) -> ToolFuture,
}

/// Turns an asynchronous function into a value for [`Tool::run`].
macro_rules! run {
    ($function:path) => {
        |session, arguments| Box::pin($function(session, arguments))
    };
}

/// All tools, in the order in which clients see them.
pub(crate) const ALL: [Tool; 16] = [
    Tool {
        name: "act",
        toolset: Toolset::Play,
        effect: Effect::Change,
        description: "Play and look: one call is one decision. Give `keys` (\"A:2 .:10 Up+B:30\" presses A for 2 frames, nothing for 10, \
            Up and B for 30), or `steps` that hold keys until a condition. Returns the frame, why it ended, values, what changed, and a \
            picture. 60 frames are a second.",
        arguments: acting::ACT,
        required: &[],
        run: run!(acting::act),
    },
    Tool {
        name: "observe",
        toolset: Toolset::Play,
        effect: Effect::Read,
        description: "The state of the emulator and the values of expressions, without playing a frame.",
        arguments: acting::OBSERVE,
        required: &[],
        run: run!(acting::observe),
    },
    Tool {
        name: "screenshot",
        toolset: Toolset::Play,
        effect: Effect::Read,
        description: "The picture of the last frame.",
        arguments: acting::SCREENSHOT,
        required: &[],
        run: run!(acting::screenshot),
    },
    Tool {
        name: "snapshot",
        toolset: Toolset::Play,
        effect: Effect::Destroy,
        description: "Named states. compare lists memory that differs between `name` and now, or `to`.",
        arguments: control::SNAPSHOT,
        required: &["action"],
        run: run!(control::snapshot),
    },
    Tool {
        name: "control",
        toolset: Toolset::Play,
        effect: Effect::Destroy,
        description: "The clock. While paused, frames pass only in act, wait and watch. speed: a factor, 0 is \
            unlimited. reset restarts the console.",
        arguments: control::CONTROL,
        required: &["action"],
        run: run!(control::control),
    },
    Tool {
        name: "resume",
        toolset: Toolset::Play,
        effect: Effect::Read,
        description: "A digest to continue earlier play: state, last notes of act, snapshots, recording, picture.",
        arguments: "",
        required: &[],
        run: run!(resuming::resume),
    },
    Tool {
        name: "read",
        toolset: Toolset::Debug,
        effect: Effect::Read,
        description: "Read numbers or bytes (hex) from memory.",
        arguments: memory::READ,
        required: &["address"],
        run: run!(memory::read),
    },
    Tool {
        name: "write",
        toolset: Toolset::Debug,
        effect: Effect::Set,
        description: "Write a number or bytes to memory.",
        arguments: memory::WRITE,
        required: &["address"],
        run: run!(memory::write),
    },
    Tool {
        name: "search",
        toolset: Toolset::Debug,
        effect: Effect::Read,
        description: "Find where a value is. begin, then play, then narrow until few candidates are left.",
        arguments: memory::SEARCH,
        required: &["action"],
        run: run!(memory::search),
    },
    Tool {
        name: "watch",
        toolset: Toolset::Debug,
        effect: Effect::Change,
        description: "Set the expressions whose changes act reports. With `frames`, also play these frames without keys and list each \
            change with its frame.",
        arguments: acting::WATCH,
        required: &["values"],
        run: run!(acting::watch),
    },
    Tool {
        name: "wait",
        toolset: Toolset::Debug,
        effect: Effect::Change,
        description: "Let the game run without keys until a condition holds.",
        arguments: acting::WAIT,
        required: &["until"],
        run: run!(acting::wait),
    },
    Tool {
        name: "symbols",
        toolset: Toolset::Debug,
        effect: Effect::Read,
        description: "Names of addresses, for expressions.",
        arguments: memory::SYMBOLS,
        required: &[],
        run: run!(memory::symbols),
    },
    Tool {
        name: "text",
        toolset: Toolset::Debug,
        effect: Effect::Read,
        description: "Read text from memory, or find it. `table` maps hex bytes to letters for a game's own encoding, such as \
            {\"BB\": \"A\", \"BC\": \"B\"}.",
        arguments: memory::TEXT,
        required: &[],
        run: run!(memory::text),
    },
    Tool {
        name: "record",
        toolset: Toolset::Files,
        effect: Effect::Destroy,
        description: "Record all inputs with their frames, or replay a recording and compare it.",
        arguments: control::RECORD,
        required: &["action"],
        run: run!(control::record),
    },
    Tool {
        name: "load",
        toolset: Toolset::Files,
        effect: Effect::Destroy,
        description: "Load another ROM and start it.",
        arguments: control::LOAD,
        required: &["path"],
        run: run!(control::load),
    },
    Tool {
        name: "script",
        toolset: Toolset::Script,
        effect: Effect::Arbitrary,
        description: "Run Lua in the emulator, between two frames, with mGBA's globals (emu, C). Returns the \
            `return` values and what print writes, as JSON. Globals are kept. It cannot run frames: use act.",
        arguments: control::SCRIPT,
        required: &["code"],
        run: run!(control::script),
    },
];

impl Tool {
    /// The schema of its arguments.
    pub(crate) fn schema(&self) -> Object {
        let text = format!(
            r#"{{"type":"object","properties":{{{}}},"additionalProperties":false}}"#,
            self.arguments
        );
        let mut schema: Object = serde_json::from_str(&text).unwrap_or_default();
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), self.required.into());
        }
        schema
    }

    /// Whether a session offers the tool.
    pub(crate) fn is_offered(&self, session: &Session) -> bool {
        let chosen = session.options.toolsets.contains(&self.toolset);
        chosen && (self.effect == Effect::Read || !session.only_reads())
    }
}
