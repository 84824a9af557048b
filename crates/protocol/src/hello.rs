//! The text exchange that makes a connection binary.
//!
//! The link, which is Framewire's end of the connection, sends the first message. This message has the form of
//! mGBA-http's text messages, and mGBA-http's script answers it with an error. So one round trip shows which of the two
//! scripts the link has reached.

use crate::PROTOCOL_VERSION;
use crate::marker::END;

/// The key of the message: the text before its first comma.
pub const KEY: &str = "framewire.hello";

/// The first message of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The newest protocol version that the link supports.
    pub protocol: u32,
    /// The link's session: a random number that it keeps across reconnections.
    pub session: u64,
}

impl Hello {
    /// The hello of a session, with this crate's protocol version.
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
    /// The script's protocol version. A link that does not support it closes the connection.
    pub protocol: u32,
    /// The script's version.
    pub script_version: String,
    /// Identifies one run of the script, from its loading to its end. A different value means that the script was
    /// loaded again, and has forgotten all sessions.
    pub boot: String,
    /// Whether the script remembers this session.
    pub known: bool,
    /// The emulator's frame counter; older scripts leave it out.
    pub frame: Option<u32>,
    /// How many events the script has sent to links since it was loaded; events of watches do not count. If a link that
    /// reconnects has received fewer events than this, the others were lost. Older scripts leave this out.
    pub events: Option<u32>,
}

impl Welcome {
    /// Reads a reply without its end marker; `None` if the reply does not come from Framewire's script.
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
