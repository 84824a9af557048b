//! Clients receive the events that the script sends, from a stock mGBA in its window and from a core without a window.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use framewire_e2e::{FrameClient, demo};
use framewire_protocol::event::discontinuity::{GAME, RESET};
use framewire_protocol::event::{self, EventItem};
use framewire_protocol::{Op, watch};
use serde_json::{Value, json};

use super::served::{PATIENCE, Served, demo_copy, host, other_game};

/// A client of server-sent events over HTTP/1.0, which has no chunked encoding.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(served: &Served, target: &str) -> Events {
        let address = served.server.url().trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {target} HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
        Events(BufReader::new(stream))
    }

    /// Waits for the next event with this name, and returns its data.
    #[track_caller]
    fn wait_for(&mut self, name: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        let mut found = false;
        loop {
            // The comments of an idle stream restart the read time-out.
            assert!(Instant::now() < end, "no {name} in time");
            let mut line = String::new();
            assert!(
                self.0.read_line(&mut line).expect("a line in time") > 0,
                "the stream ended before {name}"
            );
            match line.trim_end().split_once(": ") {
                Some(("event", event)) => found = event == name,
                Some(("data", data)) if found => return serde_json::from_str(data).unwrap(),
                _ => {}
            }
        }
    }
}

#[test]
fn every_frame_reset_and_pause_of_a_window_is_reported() {
    let mut served = Served::stock();
    let game_frame = format!("u32[{:#x}]", demo::field("frame"));
    let target = format!("/v1/watch?watch={}", game_frame.replace('[', "%5B").replace(']', "%5D"));
    let mut memory = Events::open(&served, &target);
    let mut events = Events::open(&served, "/v1/events");
    let mut last = memory.wait_for("values")["values"][&game_frame].as_i64().unwrap();
    for _ in 0..180 {
        let change = &memory.wait_for("change")["changes"][&game_frame];
        assert_eq!((change["old"].as_i64(), change["new"].as_i64()), (Some(last), Some(last + 1)));
        last += 1;
    }
    let until = json!({"until": format!("{game_frame} >= {}", last + 60), "frames": 600});
    let reply = served.http.send_json("POST", "/v1/wait", &until).unwrap();
    assert_eq!(reply.json()["held"], true, "{}", reply.text());
    let mgba = served.mgba();
    mgba.reset().unwrap();
    events.wait_for("reset");
    mgba.pause().unwrap();
    events.wait_for("stalled");
    let reply = served.http.send_json("POST", "/v1/wait", &json!({"until": "frame == 0"})).unwrap();
    assert_eq!(reply.status, 504, "{}", reply.text());
    served.mgba().resume().unwrap();
    events.wait_for("running");
}

#[test]
fn a_watch_reports_whether_a_loaded_rom_is_another_game() {
    let folder = tempfile::tempdir().unwrap();
    let (rom, other) = (demo_copy(&folder), other_game(&folder));
    let (_host, script) = host(&folder, &rom);
    let mut client = FrameClient::connect(script, 7, PATIENCE).unwrap();
    client
        .perform(vec![Op::Watch { id: 1, every: 0, flags: watch::FLAG_KEYS, ranges: watch::encode(&[]) }])
        .unwrap();
    for (path, reason) in [(&other, GAME), (&other, RESET), (&rom, GAME)] {
        let load = Op::LoadRom { path: path.to_str().unwrap().into() };
        client.perform(vec![load]).unwrap().results[0].as_ref().unwrap();
        let bytes = loop {
            let items = client.event().unwrap().items;
            let values = items.into_iter().filter_map(|item| match item {
                EventItem::Changed { values, .. } => Some(values),
                _ => None,
            });
            if let Some(value) = values.flatten().find(|value| value.range == event::DISCONTINUITY) {
                break value.bytes;
            }
        };
        assert_eq!(bytes, [reason], "{}", path.display());
    }
}
