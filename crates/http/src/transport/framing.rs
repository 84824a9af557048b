//! Finds heads of requests that can be understood in two ways. A proxy in front of this server might understand such a
//! head differently (request smuggling). This server refuses such heads, as RFC 9112 requires or allows.
//!
//! [`Framing`] examines the bytes before hyper gets them. It finds the faults that hyper ignores or answers without a
//! message. [`check`] finds the other faults in a head that hyper has parsed.

use axum::http::header::{HOST, ORIGIN, TRANSFER_ENCODING};
use axum::http::{HeaderMap, StatusCode, Uri, Version};
use memchr::memchr;

use super::closing::Refusal;
use crate::failure::Failure;

/// The name `Content-Length` with the colon, in lower case.
const LENGTH: &[u8] = b"content-length:";
/// The name `Transfer-Encoding` with the colon, in lower case.
const CODING: &[u8] = b"transfer-encoding:";
/// How many bytes of a line are examined. A valid length of a body or a chunk needs no more.
const LOOKED_AT: usize = 64;

/// Finds the heads of requests among the bytes that arrive on one connection, and checks them.
#[derive(Debug)]
pub(crate) struct Framing {
    state: FramingState,
    /// The beginning of a line whose end has not arrived.
    line: [u8; LOOKED_AT],
    /// How many bytes of `line` are filled.
    known: usize,
    /// How many requests have arrived to their end.
    complete: u32,
    /// How many bytes of an incomplete head have arrived; 0 if no head is arriving.
    head: usize,
    /// The part of the target that arrives, while the first line of the head arrives.
    part: TargetPart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FramingState {
    Head {
        /// Whether a line of the head has arrived.
        begun: bool,
        length: Option<u64>,
        /// Whether a body in chunks follows the head.
        chunked: bool,
    },
    /// This many bytes of a body are still to come.
    Body(u64),
    /// The line with the size of a chunk.
    ChunkSize,
    /// This many bytes of a chunk are still to come, including the CRLF after its data.
    Chunk(u64),
    /// The lines after the last chunk, up to an empty one.
    Trailer,
    /// The bytes are invalid, and hyper will end the connection.
    Unknown,
}

/// A part of the target of a request. The method before the target counts as a part of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetPart {
    Path,
    Query,
    /// hyper does not examine it.
    Fragment,
}

const START: FramingState = FramingState::Head { begun: false, length: None, chunked: false };

impl Default for Framing {
    fn default() -> Framing {
        Framing { state: START, line: [0; LOOKED_AT], known: 0, complete: 0, head: 0, part: TargetPart::Path }
    }
}

impl Framing {
    pub(crate) fn examine(&mut self, mut bytes: &[u8]) -> Result<(), Refusal> {
        while !bytes.is_empty() {
            let length = bytes.len();
            bytes = match self.state {
                FramingState::Unknown => return Ok(()),
                FramingState::Body(left) => {
                    let (left, rest) = skip(left, bytes);
                    self.state = FramingState::Body(left);
                    if left == 0 {
                        self.end_request();
                    }
                    rest
                }
                FramingState::Chunk(left) => {
                    let (left, rest) = skip(left, bytes);
                    self.state = if left == 0 { FramingState::ChunkSize } else { FramingState::Chunk(left) };
                    rest
                }
                FramingState::Head { .. } | FramingState::ChunkSize | FramingState::Trailer => {
                    self.next_line(bytes)?
                }
            };
            // Empty lines before a head do not count.
            let is_head = matches!(self.state, FramingState::Head { begun, .. } if begun || self.known > 0);
            self.head = if is_head { self.head + length - bytes.len() } else { 0 };
        }
        Ok(())
    }

    /// How many requests have arrived to their end. The number wraps around.
    pub(crate) fn complete(&self) -> u32 {
        self.complete
    }

    /// How many bytes of an incomplete head have arrived after the complete requests.
    pub(crate) fn head(&self) -> usize {
        self.head
    }

    fn end_request(&mut self) {
        self.state = START;
        self.part = TargetPart::Path;
        self.complete = self.complete.wrapping_add(1);
    }

    /// Examines one line, or the part of it that has arrived, and returns the remaining bytes.
    fn next_line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Refusal> {
        let end = memchr(b'\n', bytes);
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        if let FramingState::Head { begun: false, .. } = self.state {
            self.check_target(piece)?;
        }
        if let (Some(_), 0) = (end, self.known) {
            self.line(piece)?;
        } else {
            let room = piece.len().min(LOOKED_AT - self.known);
            self.line[self.known..self.known + room].copy_from_slice(&piece[..room]);
            self.known += room;
            if end.is_some() {
                let (line, known) = (self.line, std::mem::take(&mut self.known));
                self.line(&line[..known])?;
            }
        }
        Ok(end.map_or(&[], |end| &bytes[end + 1..]))
    }

    /// Examines a part of the first line of a head. Finds the characters of a target that hyper refuses.
    fn check_target(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        for byte in piece {
            match (self.part, byte) {
                (TargetPart::Path | TargetPart::Query, b'#') => self.part = TargetPart::Fragment,
                (TargetPart::Path, b'?') => self.part = TargetPart::Query,
                (TargetPart::Path, b'<' | b'>' | b'`') | (TargetPart::Query, b'<' | b'>' | b'"') => {
                    return Err(Refusal::NOT_ENCODED);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match &mut self.state {
            FramingState::Head { .. } => return self.head_line(line),
            FramingState::ChunkSize => self.state = after_size(line)?,
            FramingState::Trailer if line.is_empty() => self.end_request(),
            FramingState::Trailer
            | FramingState::Body(_)
            | FramingState::Chunk(_)
            | FramingState::Unknown => {}
        }
        Ok(())
    }

    fn head_line(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let FramingState::Head { begun, length, chunked } = &mut self.state else { return Ok(()) };
        if line.is_empty() {
            match (*begun, *chunked, *length) {
                // Empty lines before a request are ignored.
                (false, ..) => {}
                (true, false, None | Some(0)) => self.end_request(),
                (true, false, Some(length)) => self.state = FramingState::Body(length),
                (true, true, _) => self.state = FramingState::ChunkSize,
            }
            return Ok(());
        }
        *begun = true;
        let is = |name: &[u8]| line.len() >= name.len() && line[..name.len()].eq_ignore_ascii_case(name);
        if is(CODING) {
            if length.is_some() {
                return Err(Refusal::LENGTH_AND_CODING);
            }
            *chunked = true;
        } else if is(LENGTH) {
            if *chunked {
                return Err(Refusal::LENGTH_AND_CODING);
            }
            if length.is_some() {
                return Err(Refusal::TWO_LENGTHS);
            }
            if line.len() >= LOOKED_AT {
                return Err(Refusal::IMPOSSIBLE_LENGTH);
            }
            match number(&line[LENGTH.len()..])? {
                Some(number) => *length = Some(number),
                // hyper refuses it.
                None => self.state = FramingState::Unknown,
            }
        }
        Ok(())
    }
}

/// Skips up to `left` bytes of a body. Returns how many of them are still to come, and the part of `bytes` after them.
fn skip(left: u64, bytes: &[u8]) -> (u64, &[u8]) {
    let here = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
    (left - here as u64, &bytes[here..])
}

/// The state after the line with the size of a chunk.
fn after_size(line: &[u8]) -> Result<FramingState, Refusal> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    if end >= LOOKED_AT {
        return Err(Refusal::IMPOSSIBLE_LENGTH);
    }
    let size = str::from_utf8(&line[..end]).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok());
    Ok(match size {
        Some(0) => FramingState::Trailer,
        Some(size) => size.checked_add(2).map_or(FramingState::Unknown, FramingState::Chunk),
        // hyper refuses it.
        None => FramingState::Unknown,
    })
}

/// A length in decimal; `None` if the text is not a number.
fn number(text: &[u8]) -> Result<Option<u64>, Refusal> {
    let digits = text.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Ok(None);
    }
    let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok());
    // The two largest numbers have a special meaning within hyper.
    number.filter(|number| *number < u64::MAX - 1).map(Some).ok_or(Refusal::IMPOSSIBLE_LENGTH)
}

/// Refuses a head that can be understood in two ways, or that no server may accept. The connection must then end.
pub(crate) fn check(version: Version, target: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
    check_scheme(target)?;
    check_host(version, headers)?;
    check_origin(headers)?;
    check_framing(headers)
}

/// Checks the scheme, if the target of a request has one (RFC 9110, 7.4).
fn check_scheme(target: &Uri) -> Result<(), Failure> {
    match target.scheme_str() {
        None | Some("http" | "https") => Ok(()),
        Some(other) => Err(Failure::bad_request(format!("{other}: only http and https are served"))),
    }
}

/// Checks that there is exactly one `Host` (in HTTP/1.0, at most one), and that it could be part of a URL (RFC 9112,
/// 3.2).
fn check_host(version: Version, headers: &HeaderMap) -> Result<(), Failure> {
    let mut hosts = headers.get_all(HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    if second.is_some() || first.is_none() && version >= Version::HTTP_11 {
        return Err(Failure::bad_request("a request must have one Host header, such as Host: localhost"));
    }
    let sound =
        |host: &[u8]| host.iter().all(|byte| byte.is_ascii_graphic() && !b"/@?#\\\"<>,".contains(byte));
    if first.is_none_or(|host| sound(host.as_bytes())) {
        return Ok(());
    }
    Err(Failure::bad_request("Host: a name or an address is accepted, with or without a port"))
}

/// Refuses several `Origin` headers, because only the first one would be checked. Browsers send only one.
fn check_origin(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.get_all(ORIGIN).iter().nth(1).is_some() {
        return Err(Failure::bad_request("a request may have at most one Origin header"));
    }
    Ok(())
}

/// Refuses transfer codings other than one `chunked` (RFC 9112, 6.1). hyper itself refuses several `Content-Length`
/// headers that differ. [`Framing`] finds what hyper accepts: several equal `Content-Length` headers, and one together
/// with a transfer coding.
fn check_framing(headers: &HeaderMap) -> Result<(), Failure> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => {
            let message = "Transfer-Encoding: chunked is accepted, once and with nothing else";
            Err(Failure::new(StatusCode::NOT_IMPLEMENTED, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of [`Framing`]. It must not depend on the pieces in which the bytes arrive.
    fn found(text: &str) -> Result<(), Refusal> {
        let whole = Framing::default().examine(text.as_bytes());
        for size in [1, 2, 7, 64] {
            let mut framing = Framing::default();
            let pieces = text.as_bytes().chunks(size).try_for_each(|piece| framing.examine(piece));
            assert_eq!(pieces, whole, "in pieces of {size}: {text:?}");
        }
        whole
    }

    #[test]
    fn two_lengths_are_found_in_any_request_of_a_connection() {
        let plain = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nContent-Length: 35\r\n\r\ncontent-length: 1\ncontent-length: 2";
        let two = "\r\nPOST / HTTP/1.1\nContent-length: 2\r\nx: y\r\nCONTENT-LENGTH:2\r\n\r\nab";
        assert_eq!(found(plain), Ok(()));
        assert_eq!(post.split_once("\r\n\r\n").unwrap().1.len(), 35);
        assert_eq!(found(post), Ok(()), "a body is not a head");
        for before in ["", plain, post, &format!("{plain}{post}{plain}")] {
            assert_eq!(found(&format!("{before}{two}")), Err(Refusal::TWO_LENGTHS), "{before:?}");
        }
    }

    #[test]
    fn a_length_that_no_body_can_have_is_found() {
        let with = |length: &str| found(&format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n"));
        let zeros = format!("{}5", "0".repeat(70));
        for length in ["18446744073709551615", "18446744073709551614", "99999999999999999999999999", &zeros] {
            assert_eq!(with(length), Err(Refusal::IMPOSSIBLE_LENGTH), "{length}");
        }
        for length in ["9000000000000000000", "0", "1x", "", "-1", "00000000000000000005"] {
            assert_eq!(with(length), Ok(()), "{length}");
        }
    }

    #[test]
    fn requests_are_counted_when_their_bodies_have_arrived() {
        let mut framing = Framing::default();
        for (piece, complete) in [
            ("\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\n", 1),
            ("\r\nPOST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nab", 2),
            ("cPOST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n", 4),
            ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", 4),
            ("\r\n", 5),
        ] {
            framing.examine(piece.as_bytes()).unwrap();
            assert_eq!(framing.complete(), complete, "{piece:?}");
        }
    }

    #[test]
    fn characters_that_a_url_must_encode_are_found() {
        let with = |target: &str| {
            found(&format!("GET / HTTP/1.1\r\n\r\n\r\nPOST {target} HTTP/1.1\r\nx: <\"\r\n\r\n"))
        };
        for target in
            ["/a?b=<c", "/a?b=c>", "/a?b=\"c\"", "/<a>", "/`a`", &format!("/{}?b=\"", "a".repeat(100))]
        {
            assert_eq!(with(target), Err(Refusal::NOT_ENCODED), "{target}");
        }
        for target in ["/a?b=%3Cc", "/a\"b", "/a?b={c|d}\\^`'", "/a#<`>", "/a?b#\""] {
            assert_eq!(with(target), Ok(()), "{target}");
        }
        assert_eq!(
            found("GET /?a HTTP/1.1\r\n\r\nGET /\" HTTP/1.1\r\n\r\n"),
            Ok(()),
            "the query of another request"
        );
    }

    const TWO: &str = "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n";

    #[test]
    fn two_lengths_are_found_after_bodies_in_chunks() {
        let head = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        let line = "content-length: 1\r\n";
        let longest = format!("5;{}\r\nabcde\r\n0\r\n\r\n", "x".repeat(200));
        let inside = format!("{:x}\r\n{line}{line}\r\n0\r\n{line}{line}\r\n", 2 * line.len());
        for body in ["0\r\n\r\n", "3\r\nabc\r\n0A ;x\r\n0123456789\r\n0\r\nend: 1\r\n\r\n", &longest, &inside]
        {
            let chunked = format!("{head}{body}");
            assert_eq!(found(&chunked), Ok(()), "{body:?}");
            assert_eq!(found(&format!("{chunked}{TWO}")), Err(Refusal::TWO_LENGTHS), "{body:?}");
        }
        let zeros = format!("{head}{}5\r\nabcde\r\n0\r\n\r\n", "0".repeat(70));
        assert_eq!(found(&zeros), Err(Refusal::IMPOSSIBLE_LENGTH));
    }

    #[test]
    fn a_length_next_to_a_transfer_coding_is_found() {
        let (length, coding) = ("Content-length: 5\r\n", "transfer-Encoding: chunked\r\n");
        for lines in [
            format!("{length}{coding}"),
            format!("{coding}x: y\r\n{length}"),
            format!("{coding}content-length: x\r\n"),
        ] {
            let head = format!("POST / HTTP/1.1\r\n{lines}\r\n0\r\n\r\n");
            assert_eq!(found(&head), Err(Refusal::LENGTH_AND_CODING), "{lines}");
        }
        let (chunked, counted) = (
            format!("POST / HTTP/1.1\r\n{coding}\r\n0\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{length}\r\nabcde"),
        );
        assert_eq!(found(&format!("{chunked}{counted}{chunked}")), Ok(()), "in different requests");
    }

    #[test]
    fn two_lengths_are_found_after_an_upgrade_that_was_not_made() {
        let before = "GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n";
        assert_eq!(found(&format!("{before}{TWO}")), Err(Refusal::TWO_LENGTHS));
    }
}
