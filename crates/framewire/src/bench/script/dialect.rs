use framewire_loadtest::Failure;
use framewire_protocol::{
    Batch, Decoder, Frame, Hello, Op, Outcome, PROTOCOL_VERSION, Reply, Request, Value, Welcome, marker,
};

use super::{malformed, refused};

/// The longest reply of [`Dialect::Unframed`], in bytes. The server of the 2025 study (docs/study.md) had a buffer of
/// this size for a reply.
const UNFRAMED: u64 = 1024;
/// The longest text reply, in bytes. It is also the script's limit for a message.
const LONGEST: usize = 8 * 1024 * 1024;

/// The protocol of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialect {
    /// Framewire's binary frames, after a hello. A message is the argument of the operation `echo`.
    Binary,
    /// Marker text: the prefix, the message, `<|END|>`.
    ///
    /// The prefix `framewire.echo,` asks Framewire's script to send the message back. Scripts that send everything back
    /// unchanged need an empty prefix.
    Marker {
        /// The prefix of each message.
        prefix: String,
    },
    /// The message alone, as in version 6 of the study: the result of one read is the reply.
    Unframed,
}

impl Dialect {
    /// Marker text for Framewire's script.
    pub fn marker() -> Self {
        Dialect::Marker { prefix: "framewire.echo,".to_owned() }
    }

    pub(super) fn codec(&self) -> Codec {
        match self {
            Dialect::Binary => {
                Codec::Binary(Binary { welcome: Some(Vec::new()), decoder: Decoder::new(), next: 1 })
            }
            Dialect::Marker { prefix } => Codec::Marker(Marker {
                prefix: prefix.clone(),
                buffer: Vec::new(),
                searched: 0,
                sent: 0,
                answered: 0,
            }),
            Dialect::Unframed => Codec::Unframed(Vec::new()),
        }
    }
}

/// Identifies a message, so that a reply can be matched to it.
pub(super) type Ticket = u32;
/// The answer to a message.
pub(super) type Answer = Result<Vec<u8>, Failure>;

/// The bytes that the operation `echo` returned.
pub(super) fn answer(outcome: Outcome) -> Answer {
    match outcome.single() {
        Ok(Value::Bytes(bytes)) => Ok(bytes),
        Ok(other) => Err(malformed(format_args!("{other:?} to an echo"))),
        Err(error) => Err(refused(error)),
    }
}

/// Encodes the messages of one connection and decodes their replies. Does no I/O.
#[derive(Debug)]
pub(super) enum Codec {
    Binary(Binary),
    Marker(Marker),
    /// The result of one read.
    Unframed(Vec<u8>),
}

#[derive(Debug)]
pub(super) struct Binary {
    /// The part of the welcome that was received; `None` after its end, when only frames follow.
    welcome: Option<Vec<u8>>,
    decoder: Decoder,
    next: Ticket,
}

#[derive(Debug)]
pub(super) struct Marker {
    prefix: String,
    buffer: Vec<u8>,
    /// The number of bytes at the start of the buffer in which no end mark begins.
    searched: usize,
    sent: Ticket,
    answered: Ticket,
}

impl Codec {
    /// The greeting that must be sent and answered before the first message, if there is one.
    pub(super) fn greeting(&self) -> Option<Vec<u8>> {
        match self {
            Codec::Binary(_) => Some(Hello::new(fastrand::u64(..)).to_message().into_bytes()),
            Codec::Marker(_) | Codec::Unframed(_) => None,
        }
    }

    /// Whether the greeting was answered.
    pub(super) fn greeted(&self) -> bool {
        match self {
            Codec::Binary(binary) => binary.welcome.is_none(),
            Codec::Marker(_) | Codec::Unframed(_) => true,
        }
    }

    /// The largest number of bytes that may be read at once, if there is a limit.
    pub(super) fn longest_read(&self) -> Option<u64> {
        match self {
            Codec::Binary(_) | Codec::Marker(_) => None,
            Codec::Unframed(_) => Some(UNFRAMED),
        }
    }

    /// Whether it has bytes of a reply that was not requested. Binary replies have ids, so they cannot be taken for
    /// another reply.
    pub(super) fn has_surplus(&self) -> bool {
        matches!(self, Codec::Marker(marker) if !marker.buffer.is_empty())
    }

    /// Appends a message to `out`, and returns its ticket.
    pub(super) fn encode(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Ticket {
        match self {
            Codec::Binary(binary) => {
                let id = binary.next;
                binary.next = id.wrapping_add(1);
                let batch = Batch::from(Op::Echo { data: payload.to_vec() });
                // Requests are not repeated, so the script need not remember replies.
                Frame::Request(Request { id, answered: id, batch }).encode(out);
                id
            }
            Codec::Marker(marker) => {
                out.extend_from_slice(marker.prefix.as_bytes());
                out.extend_from_slice(payload);
                out.extend_from_slice(marker::END.as_bytes());
                marker.sent = marker.sent.wrapping_add(1);
                marker.sent.wrapping_sub(1)
            }
            Codec::Unframed(_) => {
                out.extend_from_slice(payload);
                0
            }
        }
    }

    /// Takes received bytes.
    ///
    /// # Errors
    /// If they answer the greeting with anything but a welcome of this protocol version.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Codec::Binary(binary) => binary.receive(bytes),
            Codec::Marker(marker) => {
                marker.buffer.extend_from_slice(bytes);
                Ok(())
            }
            Codec::Unframed(read) => {
                bytes.clone_into(read);
                Ok(())
            }
        }
    }

    /// The next answer, or `None` until more bytes arrive.
    ///
    /// # Errors
    /// If the connection cannot be used any more.
    pub(super) fn next(&mut self) -> Result<Option<(Ticket, Answer)>, Failure> {
        match self {
            Codec::Binary(binary) => binary.next_answer(),
            Codec::Marker(marker) => marker.next_answer(),
            Codec::Unframed(read) if read.is_empty() => Ok(None),
            Codec::Unframed(read) => Ok(Some((0, Ok(std::mem::take(read))))),
        }
    }
}

impl Binary {
    fn receive(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(text) = &mut self.welcome else {
            self.decoder.push(bytes);
            return Ok(());
        };
        text.extend_from_slice(bytes);
        let Some(end) = marker::find_end(text) else { return Ok(()) };
        let reply = String::from_utf8_lossy(&text[..end]);
        if Welcome::from_reply(&reply).is_none_or(|welcome| welcome.protocol != PROTOCOL_VERSION) {
            return Err(malformed(format_args!(
                "{reply:?} to our hello; load Framewire's script (`framewire script`), or use marker://"
            )));
        }
        self.decoder.push(&text[end + marker::END.len()..]);
        self.welcome = None;
        Ok(())
    }

    fn next_answer(&mut self) -> Result<Option<(Ticket, Answer)>, Failure> {
        loop {
            match self.decoder.next_frame().map_err(malformed)? {
                None => return Ok(None),
                Some(Frame::Reply(Reply { id, outcome })) => return Ok(Some((id, answer(outcome)))),
                Some(Frame::Goodbye(reason)) => return Err(refused(reason)),
                Some(_) => {}
            }
        }
    }
}

impl Marker {
    fn next_answer(&mut self) -> Result<Option<(Ticket, Answer)>, Failure> {
        let end = marker::find_end(&self.buffer[self.searched..]).map(|found| self.searched + found);
        let Some(end) = end else {
            self.searched = self.buffer.len().saturating_sub(marker::END.len() - 1);
            if self.buffer.len() > LONGEST {
                return Err(malformed(format_args!("more than {LONGEST} bytes without an end")));
            }
            return Ok(None);
        };
        let text = self.buffer[..end].to_vec();
        self.buffer.drain(..end + marker::END.len());
        self.searched = 0;
        let ticket = self.answered;
        if ticket == self.sent {
            return Err(Failure::Other("the script sent a reply that answers no message".to_owned()));
        }
        self.answered = ticket.wrapping_add(1);
        let answer = if text == marker::ERROR.as_bytes() { Err(refused(marker::ERROR)) } else { Ok(text) };
        Ok(Some((ticket, answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_answers_are_found_in_chunks_of_any_size() {
        let stream = b"one<|END|><|END|>th<|ree<|END|>";
        for size in 1..=stream.len() {
            let mut codec = Dialect::marker().codec();
            (0..3).for_each(|_| _ = codec.encode(b"message", &mut Vec::new()));
            let mut answers = Vec::new();
            for piece in stream.chunks(size) {
                codec.receive(piece).unwrap();
                while let Some((ticket, answer)) = codec.next().unwrap() {
                    answers.push((ticket, answer.unwrap()));
                }
            }
            assert_eq!(answers, [(0, b"one".to_vec()), (1, vec![]), (2, b"th<|ree".to_vec())], "{size}");
        }
    }

    #[test]
    fn frames_directly_after_the_welcome_are_decoded() {
        let mut stream = b"framewire.welcome,1,0.1.0,b,0<|END|>".to_vec();
        let outcome = Outcome { frame: 9, results: vec![Ok(Value::Bytes(b"x".to_vec()))] };
        Frame::Pong { id: 1, frame: 2 }.encode(&mut stream);
        Frame::Reply(Reply { id: 1, outcome }).encode(&mut stream);
        for size in 1..=stream.len() {
            let mut codec = Dialect::Binary.codec();
            let mut answers = Vec::new();
            for piece in stream.chunks(size) {
                codec.receive(piece).unwrap();
                answers.extend(codec.next().unwrap().map(|(ticket, answer)| (ticket, answer.unwrap())));
            }
            assert!(codec.greeted());
            assert_eq!(answers, [(1, b"x".to_vec())], "{size}");
        }
    }

    #[test]
    fn the_error_for_another_script_says_which_script_to_load() {
        let mut codec = Dialect::Binary.codec();
        let error = codec.receive(b"<|ERROR|><|END|>").unwrap_err().to_string();
        assert!(error.contains("framewire script"), "{error}");
    }
}
