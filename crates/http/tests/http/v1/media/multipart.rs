//! GET /v1/video.mjpeg.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::json;
use socket2::{Domain, Socket, Type};

use crate::support::{PATIENCE, Server, wait_for};
use crate::until_good::until_good;
use crate::v1::batch::batch;

/// Reads the parts of an endless multipart reply.
struct Parts {
    stream: BufReader<TcpStream>,
    /// Bytes that have arrived but have not been used yet.
    rest: Vec<u8>,
}

impl Parts {
    fn open(server: &Server, target: &str) -> Parts {
        Parts::over(server.connect(), target)
    }

    fn over(mut stream: TcpStream, target: &str) -> Parts {
        write!(stream, "GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("content-type: multipart/x-mixed-replace; boundary=framewire\r\n"), "{head}");
        let mut parts = Parts { stream, rest: Vec::new() };
        assert_eq!(parts.line().unwrap(), "--framewire");
        parts
    }

    /// Reads the next part, up to the boundary after it. Returns its content type and its picture.
    fn next(&mut self) -> (String, Vec<u8>) {
        let kind = self.line().unwrap().strip_prefix("content-type: ").unwrap().to_owned();
        let length = self.line().unwrap().strip_prefix("content-length: ").unwrap().parse().unwrap();
        assert_eq!(self.line().unwrap(), "");
        while self.rest.len() < length {
            assert!(self.chunk());
        }
        let picture = self.rest.drain(..length).collect();
        assert_eq!((self.line().unwrap().as_str(), self.line().unwrap().as_str()), ("", "--framewire"));
        (kind, picture)
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.rest.drain(..end + 2).take(end).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            if !self.chunk() {
                return None;
            }
        }
    }

    /// Reads a chunk. Returns `false` if it was the last one.
    fn chunk(&mut self) -> bool {
        let mut size = String::new();
        self.stream.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        let begin = self.rest.len();
        self.rest.resize(begin + size + 2, 0);
        self.stream.read_exact(&mut self.rest[begin..]).unwrap();
        self.rest.truncate(begin + size);
        size > 0
    }
}

#[test]
fn parts_are_pictures_in_jpeg_or_png() {
    let server = Server::start();
    for (target, kind, start) in [
        ("/v1/video.mjpeg", "image/jpeg", &[0xFF, 0xD8, 0xFF][..]),
        ("/v1/video.mjpeg?format=png&rate=60", "image/png", b"\x89PNG"),
    ] {
        let mut parts = Parts::open(&server, target);
        for _ in 0..10 {
            let (said, picture) = parts.next();
            assert_eq!(said, kind);
            assert!(picture.starts_with(start));
        }
    }
}

#[test]
fn an_unchanged_picture_is_repeated_about_once_a_second() {
    let server = Server::paused();
    batch(&server, &json!({"ops": [{"op": "advance", "frames": 60}]}));
    let screen = server.get("/v1/screen?format=rgb").body;
    // If the test reads the first picture late, it measures less than the time between the two pictures.
    let time_between_pictures = || {
        let mut parts = Parts::open(&server, "/v1/video.mjpeg?format=png&rate=60");
        let (_, first) = parts.next();
        let begin = std::time::Instant::now();
        let (_, second) = parts.next();
        let time = begin.elapsed();
        assert!(first == second);
        assert!(framewire_media::png::decode(&first).unwrap().rgb == screen);
        time
    };
    until_good(time_between_pictures, |time| time.as_millis() >= 900);
}

#[test]
fn a_reader_that_paused_gets_only_a_few_old_pictures() {
    let server = Server::start();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(8 * 1024).unwrap();
    socket.connect(&server.address.into()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut parts = Parts::over(socket.into(), "/v1/video.mjpeg?format=png&rate=60");
    parts.next();

    let frame = || server.number("/core/currentframe");
    let begin = frame();
    wait_for("four seconds of frames", || frame() > begin + 240);
    batch(&server, &json!({"ops": [{"op": "pause"}]}));
    // The last picture follows the old ones, and is repeated.
    let mut old = 0;
    let mut last = parts.next().1;
    loop {
        let (_, next) = parts.next();
        if next == last {
            break;
        }
        last = next;
        old += 1;
    }
    assert!(old < 60, "{old} of 240 pictures were kept for the paused reader");
}

#[test]
fn the_stream_ends_when_the_server_stops() {
    let mut server = Server::start();
    let mut parts = Parts::open(&server, "/v1/video.mjpeg");
    parts.next();
    server.stop();
    while parts.line().is_some() {
        // A chunk is a part: after its first line comes a picture, which cannot be read as lines.
        parts.rest.clear();
    }
}
