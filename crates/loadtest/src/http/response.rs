//! Finds the end of a response in a stream that arrives in pieces.

use crate::target::Failure;

/// The largest number of header lines that are accepted.
const LINES: usize = 64;
/// The longest head that is accepted, in bytes.
const HEAD: usize = 64 * 1024;
/// The longest body that is accepted, in bytes.
pub(super) const BODY: usize = 64 * 1024 * 1024;

/// What the head of a response says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Whether the connection may be used again.
    pub(super) keep_alive: bool,
}

/// How the end of a body is recognised.
#[derive(Debug, Clone, Copy)]
enum Length {
    /// This many bytes are still to come.
    Left(usize),
    /// The body comes in chunks.
    Chunks(Chunk),
    /// The body ends when the connection is closed.
    UntilClose,
}

#[derive(Debug, Clone, Copy)]
enum Chunk {
    /// The next line says how long the next chunk is.
    Size,
    /// A chunk of this many bytes comes next, and then a line end.
    Data(usize),
    /// Lines after the last chunk, up to an empty one.
    Trailer,
}

#[derive(Debug)]
pub(super) enum Step {
    Done(Head),
    More,
}

#[derive(Debug, Default)]
pub(super) struct Parser {
    head: Option<(Head, Length)>,
    /// Whether the request was a HEAD. Then there is no body, whatever the head says.
    bodiless: bool,
}

fn malformed(what: &str) -> Failure {
    Failure::Other(format!("the response is not HTTP/1.1: {what}"))
}

impl Parser {
    pub(super) fn new(bodiless: bool) -> Parser {
        Parser { head: None, bodiless }
    }

    /// Processes as many bytes of `buffer` as possible, removes them from it, and appends the body's bytes to `body`.
    pub(super) fn step(&mut self, buffer: &mut Vec<u8>, body: &mut Vec<u8>) -> Result<Step, Failure> {
        let mut used = 0;
        let (head, length) = loop {
            match &mut self.head {
                Some((head, length)) => break (*head, length),
                None => match read_head(&buffer[used..], self.bodiless)? {
                    None => {
                        buffer.drain(..used);
                        return Ok(Step::More);
                    }
                    Some((size, head, length)) => {
                        used += size;
                        // After a status such as 100 or 103, the final response follows.
                        if head.status >= 200 {
                            self.head = Some((head, length));
                        }
                    }
                },
            }
        };
        let done = match length {
            Length::Left(left) => {
                let count = (*left).min(buffer.len() - used);
                body.extend_from_slice(&buffer[used..used + count]);
                used += count;
                *left -= count;
                *left == 0
            }
            Length::UntilClose => {
                body.extend_from_slice(&buffer[used..]);
                used = buffer.len();
                false
            }
            Length::Chunks(chunk) => loop {
                match step_chunk(chunk, &buffer[used..], body)? {
                    Some((count, finished)) => {
                        used += count;
                        if finished {
                            break true;
                        }
                    }
                    None => break false,
                }
            },
        };
        if body.len() > BODY {
            return Err(Failure::Other(format!("a body of more than {BODY} bytes")));
        }
        buffer.drain(..used);
        Ok(if done { Step::Done(head) } else { Step::More })
    }

    /// Call this when the server has closed the connection. Returns the head if this is the end of the body.
    pub(super) fn closed(&self) -> Result<Head, Failure> {
        match self.head {
            Some((head, Length::UntilClose)) => Ok(head),
            _ => Err(Failure::Reset),
        }
    }
}

/// Parses a head. Returns its size, its content, and how the end of the body is recognised; `None` if it is not
/// complete.
fn read_head(bytes: &[u8], bodiless: bool) -> Result<Option<(usize, Head, Length)>, Failure> {
    let mut lines = [httparse::EMPTY_HEADER; LINES];
    let mut response = httparse::Response::new(&mut lines);
    let size = match response.parse(bytes) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) if bytes.len() > HEAD => {
            return Err(malformed("its head does not end"));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Failure::Other(format!("a head of more than {LINES} header lines")));
        }
        Err(error) => return Err(malformed(&error.to_string())),
    };
    let status = response.code.unwrap_or(0);
    let mut keep_alive = response.version == Some(1);
    let mut closes = false;
    let mut length = Length::UntilClose;
    for line in response.headers {
        let value = line.value.trim_ascii();
        if line.name.eq_ignore_ascii_case("content-length") {
            let number = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            match length {
                Length::Chunks(_) => {}
                Length::Left(known) if number != Some(known) => {
                    return Err(malformed("two different lengths"));
                }
                _ => {
                    let number = number.ok_or_else(|| malformed("a length that is not a number"))?;
                    length = Length::Left(number);
                }
            }
        } else if line.name.eq_ignore_ascii_case("transfer-encoding") {
            length = Length::Chunks(Chunk::Size);
        } else if line.name.eq_ignore_ascii_case("connection") {
            for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                // An HTTP/1.0 server closes the connection, unless it says otherwise.
                keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                closes |= option.eq_ignore_ascii_case(b"close");
            }
        }
    }
    if bodiless || matches!(status, 100..200 | 204 | 304) {
        length = Length::Left(0);
    }
    keep_alive &= !closes && !matches!(length, Length::UntilClose);
    Ok(Some((size, Head { status, keep_alive }, length)))
}

/// Processes a part of a chunked body. Returns the number of bytes used, and whether the body is complete; `None` if
/// more bytes are needed.
fn step_chunk(chunk: &mut Chunk, bytes: &[u8], body: &mut Vec<u8>) -> Result<Option<(usize, bool)>, Failure> {
    let line = || match bytes.windows(2).position(|pair| pair == b"\r\n") {
        None if bytes.len() > HEAD => Err(malformed("a line of its chunked body does not end")),
        end => Ok(end),
    };
    match *chunk {
        Chunk::Size => {
            let Some(end) = line()? else { return Ok(None) };
            let text = bytes[..end].split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            let size = std::str::from_utf8(text).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
            let size =
                size.filter(|size| *size <= BODY).ok_or_else(|| malformed("a chunk without a valid size"))?;
            *chunk = if size == 0 { Chunk::Trailer } else { Chunk::Data(size) };
            Ok(Some((end + 2, false)))
        }
        Chunk::Data(size) => {
            let Some(data) = bytes.get(..size + 2) else { return Ok(None) };
            if !data.ends_with(b"\r\n") {
                return Err(malformed("a chunk is longer than its size"));
            }
            body.extend_from_slice(&data[..size]);
            *chunk = Chunk::Size;
            Ok(Some((size + 2, false)))
        }
        Chunk::Trailer => Ok(line()?.map(|end| (end + 2, end == 0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a response several times: once for each size of the pieces in which it can arrive.
    fn read(response: &[u8]) -> Vec<Result<(Head, Vec<u8>), Failure>> {
        (1..=response.len())
            .map(|size| {
                let (mut parser, mut buffer, mut body) = (Parser::default(), Vec::new(), Vec::new());
                for piece in response.chunks(size) {
                    buffer.extend_from_slice(piece);
                    if let Step::Done(head) = parser.step(&mut buffer, &mut body)? {
                        return Ok((head, body));
                    }
                }
                parser.closed().map(|head| (head, body))
            })
            .collect()
    }

    /// Checks the result of reading a response, for each size of the pieces.
    fn all(response: &str, status: u16, keep_alive: bool, body: &str) {
        for result in read(response.as_bytes()) {
            assert_eq!(result, Ok((Head { status, keep_alive }, body.as_bytes().to_vec())), "{response:?}");
        }
    }

    #[test]
    fn bodies_of_each_kind_are_read_in_pieces_of_each_size() {
        all("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, true, "hello");
        all("HTTP/1.1 503 Busy\r\nconnection: Close\r\ncontent-length: 2\r\n\r\nno", 503, false, "no");
        all("HTTP/1.1 204 None\r\n\r\n", 204, true, "");
        all("HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, false, "until the end");
        all("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, false, "x");
        all("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\nx", 200, false, "x");
        all(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n",
            200,
            true,
            "hello",
        );
        all("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, true, "x");
    }

    #[test]
    fn the_response_to_a_head_request_has_no_body() {
        let mut buffer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec();
        let step = Parser::new(true).step(&mut buffer, &mut Vec::new());
        assert!(matches!(step, Ok(Step::Done(Head { status: 200, keep_alive: true }))), "{step:?}");
    }

    #[test]
    fn a_connection_that_an_http_1_0_server_keeps_is_used_again() {
        let head = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n";
        all(&format!("{head}Content-Length: 1\r\n\r\nx"), 200, true, "x");
        // Without a length, the end of the body is the end of the connection.
        all(&format!("{head}\r\nx"), 200, false, "x");
    }

    #[test]
    fn a_broken_connection_is_a_reset_and_an_invalid_reply_is_reported() {
        for result in read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell") {
            assert_eq!(result, Err(Failure::Reset));
        }
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for response in [
            "SSH-2.0-OpenSSH\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".to_owned(),
            format!("{chunked}3\r\nhello\r\n0\r\n\r\n"),
        ] {
            assert!(read(response.as_bytes()).iter().all(|result| matches!(result, Err(Failure::Other(_)))));
        }
    }

    #[test]
    fn two_different_lengths_are_invalid_and_two_equal_ones_are_not() {
        let response = |other: u32| {
            format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: {other}\r\n\r\nhello")
        };
        all(&response(5), 200, true, "hello");
        let invalid = |result| matches!(result, Err(Failure::Other(_)));
        assert!(read(response(3).as_bytes()).into_iter().all(invalid));
    }

    #[test]
    fn a_head_with_too_many_lines_is_not_called_invalid() {
        let lines = "a: b\r\n".repeat(LINES + 1);
        for result in read(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").as_bytes()) {
            assert_eq!(result, Err(Failure::Other("a head of more than 64 header lines".to_owned())));
        }
    }

    #[test]
    fn a_line_of_a_chunked_body_that_does_not_end_is_an_error() {
        for line in ["", "0\r\n"] {
            let mut buffer =
                format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{line}").into_bytes();
            buffer.resize(buffer.len() + HEAD + 1, b'a');
            let step = Parser::new(false).step(&mut buffer, &mut Vec::new());
            assert!(matches!(step, Err(Failure::Other(_))), "{step:?}");
        }
    }
}
