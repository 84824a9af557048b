//! mGBA-http's text messages: `key,arg1,arg2<|END|>`, answered by `reply<|END|>`.
//!
//! Not every operation has such a message. The format has no escapes, so some arguments cannot be sent either: see
//! [`NotCarried`]. The reference is mGBA-http 0.10.

use crate::error::OpError;
pub use crate::hex::{hex_pairs, parse_hex_pairs};
use crate::key::Keys;
use crate::op::{ArgKind, Op, ResultKind};
use crate::value::Value;

/// Ends every message and every reply.
pub const END: &str = "<|END|>";
/// The reply of an operation without a result.
pub const SUCCESS: &str = "<|SUCCESS|>";
/// The reply when anything went wrong.
pub const ERROR: &str = "<|ERROR|>";

/// An operation that the text form cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCarried {
    /// mGBA-http has no message for it.
    #[error("mGBA-http's script has no message for {0}; load Framewire's script (`framewire script`)")]
    NoMessage(&'static str),
    /// An argument holds a separator or is empty.
    #[error(
        "the {0} cannot be sent to mGBA-http's script: it holds a comma or {END:?}, or is empty; load Framewire's script (`framewire script`)"
    )]
    Separator(&'static str),
}

/// The message for an operation, end marker included.
///
/// # Errors
/// If mGBA-http has no message for the operation, or if a text among its arguments cannot be sent in a message.
pub fn message(op: &Op) -> Result<Vec<u8>, NotCarried> {
    let info = op.info();
    if let Some(special) = special_message(op) {
        return Ok(special.into_bytes());
    }
    let key = info.marker.ok_or(NotCarried::NoMessage(info.name))?;
    let mut out = key.as_bytes().to_vec();
    for (argument, info) in op.marker_args().into_iter().zip(info.args) {
        // Bytes have the form `[d3,00]`: never empty, and with commas that the script expects.
        let separated = argument.is_empty() || argument.contains(&b',') || find_end(&argument).is_some();
        if separated && info.kind != ArgKind::Bytes {
            return Err(NotCarried::Separator(info.name));
        }
        out.push(b',');
        out.extend_from_slice(&argument);
    }
    out.extend_from_slice(END.as_bytes());
    Ok(out)
}

/// The message of an operation for which the table has none, because the arguments of the message are different. `None`
/// for all other operations.
fn special_message(op: &Op) -> Option<String> {
    match op {
        Op::HoldKeys { keys, frames } => {
            let names = Keys::from_mask(*keys)?.names(";");
            Some(format!("mgba-http.button.holdMany,{names},{frames}{END}"))
        }
        // mGBA saves a state with a screenshot (flag 1) as a PNG of the screen, which has the state in a private chunk.
        // So this message returns a screenshot.
        Op::Screenshot {} => Some(format!("core.saveStateBuffer,1{END}")),
        _ => None,
    }
}

/// The offset of the first [`END`] in these bytes.
pub fn find_end(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, END.as_bytes())
}

/// Reads the reply to an operation, without its end marker.
///
/// mGBA-http's script gives no reason for an error. If the result is Lua's nil, `false` or an empty string, the reply
/// is [`SUCCESS`] without a value.
///
/// # Errors
/// If the script answered with an error, or the reply does not have the type of the operation's result.
pub fn parse_reply(op: &Op, reply: &str) -> Result<Value, OpError> {
    let info = op.info();
    if reply == ERROR {
        return Err(OpError::failed(format!(
            "the script could not do {}; mGBA's scripting window says more",
            info.name
        )));
    }
    let reply = if reply == SUCCESS { "" } else { reply };
    let unreadable = || match op {
        Op::ReadRegister { register } if reply.is_empty() => {
            OpError::bad_argument(format!("unknown register {register:?}"))
        }
        _ => OpError::failed(format!("the script answered {} with {reply:?}", info.name)),
    };
    match info.result {
        ResultKind::None => Ok(Value::None),
        ResultKind::Bool => Ok(Value::Bool(reply == "true")),
        ResultKind::Int => reply
            .parse::<f64>()
            .ok()
            .filter(|number| number.fract() == 0.0 && number.abs() < 9e15)
            .map(|number| Value::Int(number as i64))
            .ok_or_else(unreadable),
        ResultKind::Text => Ok(Value::Text(reply.to_owned())),
        ResultKind::Bytes => parse_hex_pairs(reply).map(Value::Bytes).ok_or_else(unreadable),
        ResultKind::Names => {
            let names = reply.split(',').filter(|name| !name.is_empty());
            Ok(Value::List(names.map(|name| Value::Text(name.to_owned())).collect()))
        }
    }
}
