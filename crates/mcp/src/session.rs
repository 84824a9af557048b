//! The state of one client.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde_json::{Value as Json, json};
use tokio::sync::Mutex as AsyncMutex;

use crate::backend::{Backend, Object};
use crate::play;
use crate::tools::ToolError;

/// A group of tools that clients can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolset {
    /// To play.
    Play,
    /// To find and change what is in memory.
    Debug,
    /// To record, and to load games.
    Files,
    /// To run Lua code in the emulator. Only a client that asks for this toolset gets it, and the server has to allow
    /// it.
    Script,
}

impl Toolset {
    /// The toolsets in a list of names, with commas between them.
    ///
    /// # Errors
    /// If one of the names is unknown.
    pub fn list(text: &str) -> Result<Vec<Toolset>, UnknownToolset> {
        let named = |name: &str| match name.trim() {
            "play" => Ok(Toolset::Play),
            "debug" => Ok(Toolset::Debug),
            "files" => Ok(Toolset::Files),
            "script" => Ok(Toolset::Script),
            name => Err(UnknownToolset(name.to_owned())),
        };
        text.split(',').map(named).collect()
    }
}

/// A name that is not the name of a toolset.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a toolset; use one or more of play, debug, files and script, with commas between them")]
pub struct UnknownToolset(String);

/// What a client or its user has chosen.
#[derive(Debug, Clone)]
pub struct Options {
    /// The groups of tools that are offered.
    pub toolsets: Vec<Toolset>,
    /// Whether only tools that change nothing are offered.
    pub read_only: bool,
    /// The emulator that the tools act on. `None` is the server's first emulator.
    pub emulator: Option<String>,
    /// The folder for notes. Without a folder, notes are refused.
    pub notes: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        let toolsets = vec![Toolset::Play, Toolset::Debug, Toolset::Files];
        Options { toolsets, read_only: false, emulator: None, notes: None }
    }
}

impl Options {
    /// Reads the choices in a query: `toolsets=play,debug&read_only=true&emulator=NAME`.
    ///
    /// # Errors
    /// If the query is wrong. The error says what is accepted.
    pub fn read_query(&mut self, query: &str) -> Result<(), String> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            match (name, &*value) {
                ("toolsets", list) => {
                    self.toolsets = Toolset::list(list).map_err(|error| error.to_string())?
                }
                ("read_only", "true") => self.read_only = true,
                ("read_only", "false") => {}
                ("emulator", name) => self.emulator = Some(name.to_owned()),
                _ => {
                    return Err(format!(
                        "{pair} is not accepted here; use toolsets=LIST, read_only=true or emulator=NAME"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The state of a client, with what tools remember for it between calls.
pub struct Session {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) options: Options,
    pub(crate) memory: Arc<Mutex<SessionMemory>>,
    /// Locked while a tool runs frames, so that the keys of two calls do not mix.
    pub(crate) playing: Arc<AsyncMutex<()>>,
}

/// What tools remember between calls.
#[derive(Default)]
pub(crate) struct SessionMemory {
    /// The picture that was sent last: its mark (a checksum of the screenshot and of the options for its size, part and
    /// colours), and the idempotency key of the call that sent it.
    pub(crate) picture: Option<(String, Option<String>)>,
    /// Expressions whose changes `act` reports.
    pub(crate) watched: Vec<String>,
}

impl Session {
    /// A session that calls methods through `backend`. Tools of sessions that share `playing` run frames one after the
    /// other.
    pub fn new(backend: Arc<dyn Backend>, options: Options, playing: Arc<AsyncMutex<()>>) -> Session {
        Session { backend, options, memory: Arc::default(), playing }
    }

    /// Whether only tools that change nothing are offered.
    pub(crate) fn only_reads(&self) -> bool {
        self.options.read_only || self.backend.only_reads()
    }

    /// Calls a method on the session's emulator.
    pub(crate) async fn call(&self, method: &str, params: Json) -> Result<Json, ToolError> {
        let mut params = match params {
            Json::Object(params) => params,
            _ => Object::new(),
        };
        if let Some(name) = &self.options.emulator {
            params.insert("emulator".to_owned(), name.as_str().into());
        }
        Ok(self.backend.call(method, params).await?)
    }

    /// The name of the recording that is being made, if there is one.
    pub(crate) async fn recording(&self) -> Option<String> {
        let status = self.call("recordingUnderWay", json!({})).await.ok()?;
        // The server also returns a recording that has ended, for example because the console was reset.
        if status["ended"].is_null() { status["name"].as_str().map(str::to_owned) } else { None }
    }

    /// Performs operations in one batch: no frame runs between them, except in operations such as `run`. Returns the
    /// frame counter, and the value of each operation.
    pub(crate) async fn batch(&self, ops: Vec<Json>) -> Result<(u32, Vec<Json>), ToolError> {
        let mut reply = self.call("batch", json!({"ops": ops})).await.map_err(without_operation)?;
        let frame = reply["frame"].as_u64().and_then(|frame| u32::try_from(frame).ok()).unwrap_or_default();
        let values = play::take_values(&mut reply, "results").map_err(without_operation)?;
        Ok((frame, values))
    }
}

pub(crate) fn arguments<T: DeserializeOwned>(arguments: Object) -> Result<T, ToolError> {
    let mut arguments = Json::Object(arguments);
    write_whole_numbers_as_integers(&mut arguments);
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let place = error.path().to_string();
        let problem = error.into_inner().to_string();
        let missing = problem.strip_prefix("missing field `").and_then(|name| name.strip_suffix('`'));
        if let Some(name) = missing {
            return ToolError(format!("{name} is missing; see the tool's schema"));
        }
        // The path `.` means the arguments as a whole.
        let place = if place == "." { "the arguments".to_owned() } else { place };
        let problem = in_words(&problem.replacen("unknown variant", "unknown value", 1));
        ToolError(format!("{place}: {problem}; see the tool's schema"))
    })
}

/// Replaces numbers such as 2.0 with integers. In JSON Schema, such a number is an integer too, and some clients write
/// all numbers in this way.
fn write_whole_numbers_as_integers(value: &mut Json) {
    match value {
        Json::Number(number) => {
            let fraction = number.as_f64().filter(|_| number.is_f64());
            if let Some(whole) = fraction.filter(|number| number.fract() == 0.0 && number.abs() < 1e15) {
                *value = (whole as i64).into();
            }
        }
        Json::Array(values) => values.iter_mut().for_each(write_whole_numbers_as_integers),
        Json::Object(values) => values.values_mut().for_each(write_whole_numbers_as_integers),
        _ => {}
    }
}

/// A deserializer that accepts only objects. Without it, serde would also read a struct from a list with the values of
/// its fields.
pub(crate) struct ObjectOnly<D>(pub(crate) D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Replaces the names of Rust's types in an error of serde with words that clients know.
fn in_words(problem: &str) -> String {
    let Some((what, expected)) = problem.rsplit_once(", expected ") else { return problem.to_owned() };
    let accepted = match expected {
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number, 0 or more",
        "i64" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string or map" | "map with a single key" => "a text",
        "a sequence" => "a list",
        "a map" => "an object",
        "an array of length 4" => "a list of 4 whole numbers",
        _ => return problem.to_owned(),
    };
    format!("{what}; use {accepted}")
}

/// The error without the place of the operation in the batch, such as `ops[0]`: the client did not write the batch.
fn without_operation(ToolError(text): ToolError) -> ToolError {
    match text.strip_prefix("ops[").and_then(|rest| rest.split_once(']')) {
        Some((_, rest)) => ToolError(rest.trim_start_matches(['.', ':', ' ']).to_owned()),
        None => ToolError(text),
    }
}
