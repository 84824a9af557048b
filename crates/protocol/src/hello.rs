//! The text exchange that makes a connection binary.
//!
//! It has the form of a marker message, so that mGBA-http's script answers it too, with an error: after one round trip
//! the caller knows which of the two it reached.

use crate::PROTOCOL_VERSION;
use crate::marker::END;

/// Key of the message.
pub const KEY: &str = "framewire.hello";

/// The first message of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Newest protocol version it speaks.
    pub protocol: u32,
    /// Its session: a random number it keeps over reconnections.
    pub session: u64,
}

impl Hello {
    /// A hello of this version for a session.
    pub fn new(session: u64) -> Self {
        Hello { protocol: PROTOCOL_VERSION, session }
    }

    /// The message, end marker included.
    pub fn to_message(&self) -> String {
        format!("{KEY},{},{:016x}{END}", self.protocol, self.session)
    }
}

/// The answer of a Framewire script. Everything after it is binary in both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The protocol version that both speak from here on.
    pub protocol: u32,
    /// The script's version.
    pub script_version: String,
    /// Names the script's memory: another name means that the script was loaded again and remembers nothing.
    pub boot: String,
    /// Whether the script remembers this session.
    pub known: bool,
    /// The emulator's frame counter; older scripts leave it out.
    pub frame: Option<u32>,
    /// How many events the script has sent to links since it was loaded, without those of watches. When a link reconnects, the
    /// events that it has not received were lost. Older scripts leave this out.
    pub events: Option<u32>,
}

impl Welcome {
    /// Reads a reply, end marker taken off; `None` if it is not a Framewire script's.
    pub fn from_reply(reply: &str) -> Option<Welcome> {
        let mut fields = reply.strip_prefix("framewire.welcome,")?.split(',');
        Some(Welcome {
            protocol: fields.next()?.parse().ok()?,
            script_version: fields.next()?.to_owned(),
            boot: fields.next()?.to_owned(),
            known: fields.next()? == "1",
            frame: fields.next().and_then(|field| field.parse().ok()),
            events: fields.next().and_then(|field| field.parse().ok()),
        })
    }
}
