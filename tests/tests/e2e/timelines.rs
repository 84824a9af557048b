//! Keys are pressed in exactly their frames, even if the network is slow or fails. The demo game shows this: it counts
//! presses and logs the keys of each frame.

use std::time::Duration;

use framewire_e2e::{FrameClient, Framewire, Http, Proxy, Signal, demo, paths, until};
use framewire_protocol::event::{self, EventItem};
use framewire_protocol::hex::{hex_digits, parse_hex_digits};
use framewire_protocol::{KeyStep, MemoryRange, Op, Value, timeline, watch};
use serde_json::{Value as Json, json};

use super::served::{PATIENCE, Served, demo_copy, host, ready, stock, wait_until};

/// The number of taps in a test.
const TAPS: usize = 1000;
/// The longest delay that the network adds to a piece of data.
const DELAY: Duration = Duration::from_millis(50);
/// The keys that are tapped.
const KEYS: [u16; 5] = [1, 2, 16, 32, 512];

/// A timeline of taps.
struct Taps {
    steps: Vec<KeyStep>,
    /// The keys held in each frame, starting with the first.
    frames: Vec<u16>,
}

impl Taps {
    /// Makes taps at random times, each for one to three frames. A key is released before its next tap. All taps fit
    /// into the 2,048 frames of the game's log.
    fn random(seed: u64) -> Taps {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut frames = vec![0; 2000];
        let mut free = [0; KEYS.len()];
        for tap in 0..TAPS {
            let number = tap % KEYS.len();
            let start = free[number] + random.usize(0..=4);
            let end = start + random.usize(1..=3);
            frames[start..end].iter_mut().for_each(|held| *held |= KEYS[number]);
            free[number] = end + 1;
        }
        let end = free.iter().max().expect("keys");
        frames.truncate(*end);
        let changes =
            (0..frames.len()).filter(|&at| frames[at] != at.checked_sub(1).map_or(0, |at| frames[at]));
        let steps = changes.map(|at| KeyStep { offset: at as u32, keys: frames[at] }).collect();
        Taps { steps, frames }
    }

    fn bytes(&self) -> Vec<u8> {
        timeline::encode(&self.steps)
    }

    /// Checks the demo game's memory. `before` and `presses` are its counts of presses before the first tap and after
    /// the last one. `log` is its log of keys after the last tap. The timeline begins in the frame after `frame`, which
    /// the game's own frame counter showed.
    #[track_caller]
    fn check(&self, frame: u32, before: &[u8], log: &[u8], presses: &[u8]) {
        for (offset, held) in self.frames.iter().enumerate() {
            let index = (frame as usize + 1 + offset) % 2048;
            let logged = u16::from_le_bytes([log[2 * index], log[2 * index + 1]]);
            assert_eq!(logged, *held, "the keys of frame {offset} of {}", self.frames.len());
        }
        let number =
            |bytes: &[u8], key: usize| u32::from_le_bytes(bytes[4 * key..4 * key + 4].try_into().unwrap());
        for key in 0..10 {
            let taps = if KEYS.contains(&(1 << key)) { TAPS / KEYS.len() } else { 0 };
            let counted = number(presses, key) - number(before, key);
            assert_eq!(counted as usize, taps, "presses of key {key}");
        }
    }
}

fn read(name: &str, length: u32) -> Op {
    Op::ReadRange { address: demo::field(name), length }
}

fn bytes(value: Result<Value, framewire_protocol::OpError>) -> Vec<u8> {
    match value {
        Ok(Value::Bytes(bytes)) => bytes,
        other => panic!("{other:?} instead of bytes"),
    }
}

#[test]
fn a_thousand_taps_arrive_on_their_frames_in_a_window() {
    let mgba = stock(&paths::rom());
    let proxy = Proxy::start(mgba.address()).unwrap();
    proxy.delay(DELAY);
    let mut client = FrameClient::connect(proxy.address(), 1, PATIENCE).unwrap();
    // The game reads keys and counts frames only after its initialization.
    wait_until("the game has begun", || {
        let frame = client.perform(vec![Op::Read32 { address: demo::field("frame") }])?;
        Ok(matches!(frame.results[..], [Ok(Value::Int(60..))]))
    });

    let taps = Taps::random(1);
    let held = MemoryRange::new(None, demo::field("held"), 2);
    let ranges = watch::encode(&[held]);
    let begun = client
        .perform(vec![
            read("presses", 40),
            Op::Read32 { address: demo::field("frame") },
            Op::Watch { id: 1, every: 0, flags: watch::FLAG_KEYS, ranges },
            Op::PlayKeys { steps: taps.bytes() },
        ])
        .unwrap();
    let mut results = begun.results.into_iter();
    let before = bytes(results.next().unwrap());
    let Some(Ok(Value::Int(frame))) = results.next() else { panic!("no frame") };
    assert!(results.next().unwrap().is_ok());
    let Some(Ok(Value::Int(id))) = results.next() else { panic!("no timeline") };

    // For each frame since the watch began: the keys that the watch reported, and the keys that the game read.
    let (mut reported, mut seen) = (vec![0], vec![0]);
    'over: loop {
        let event = client.event().unwrap();
        for item in event.items {
            match item {
                EventItem::Changed { watch: 1, ticks, values } => {
                    assert_eq!(event.frame, begun.frame + ticks);
                    for value in values {
                        let list = if value.range == event::KEYS { &mut reported } else { &mut seen };
                        let last = *list.last().unwrap();
                        list.resize(ticks as usize, last);
                        list.push(u16::from_le_bytes(value.bytes.try_into().unwrap()));
                    }
                }
                EventItem::TimelineOver { id: ended, cancelled: false } if i64::from(ended) == id => {
                    break 'over;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let end = client.perform(vec![read("key_log", 4096), read("presses", 40)]).unwrap();
    let [log, presses] = <[_; 2]>::try_from(end.results).unwrap().map(bytes);
    taps.check(frame as u32, &before, &log, &presses);
    // The timeline ends before the frame in which all keys are up.
    let frames = &taps.frames[..taps.frames.len() - 1];
    for (what, mut list) in [("reported", reported), ("seen by the game", seen)] {
        list.resize(1 + frames.len(), *list.last().unwrap());
        assert_eq!(list[1..], *frames, "the keys that were {what}");
    }
}

/// The values of a batch over HTTP, with bytes as hexadecimal digits.
fn batch(http: &Http, ops: Json) -> Vec<Json> {
    let body = json!({ "encoding": "hex", "ops": ops });
    let reply = http.send_json("POST", "/v1/batch", &body).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    let Json::Array(results) = reply.json()["results"].take() else { panic!("{}", reply.text()) };
    let value = |mut result: Json| {
        assert!(result.get("error").is_none(), "{result}");
        result["value"].take()
    };
    results.into_iter().map(value).collect()
}

fn unhex(digits: &Json) -> Vec<u8> {
    parse_hex_digits(digits.as_str().unwrap()).unwrap()
}

#[test]
fn a_thousand_taps_arrive_on_their_frames_in_an_embedded_core() {
    let rom = paths::rom();
    let server = Framewire::serve(&["--rom", rom.to_str().unwrap(), "--speed", "4"]).unwrap();
    let proxy = Proxy::start(server.url().strip_prefix("http://").unwrap().parse().unwrap()).unwrap();
    proxy.delay(DELAY);
    let http = Http::new(format!("http://{}", proxy.address()));

    let taps = Taps::random(2);
    let presses = json!({ "op": "read_range", "address": demo::field("presses"), "length": 40 });
    let log = json!({ "op": "read_range", "address": demo::field("key_log"), "length": 4096 });
    let frame = json!({ "op": "read32", "address": demo::field("frame") });
    let play = json!({ "op": "play_keys", "steps": hex_digits(&taps.bytes()) });
    let count = || batch(&http, json!([frame]))[0].as_u64().unwrap();
    // The game reads keys and counts frames only after its initialization.
    wait_until("the game has begun", || Ok(count() > 60));
    let begun = batch(&http, json!([presses, frame, play]));
    let first = begun[1].as_u64().unwrap();
    let last = first + taps.frames.len() as u64;
    until("all was played", 2 * PATIENCE, || Ok(count() > last)).unwrap();
    let end = batch(&http, json!([log, presses]));
    taps.check(first as u32, &unhex(&begun[0]), &unhex(&end[0]), &unhex(&end[1]));
}

/// Taps B for this many frames, waits for the end of the tap and returns the reply. On a busy machine, frames may run
/// much more slowly than usual, so the time limit is longer than the default.
fn tap_and_wait(http: &Http, frames: u32, key: Option<&str>) -> Json {
    let body = json!({ "keys": ["B"], "frames": frames }).to_string();
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(key.map(|key| ("idempotency-key", key)));
    let reply = http.exchange("POST", "/v1/tap?wait=true&timeout=25000", &headers, body.into()).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// Checks that the reply came at the end of the timeline.
#[track_caller]
fn assert_over(played: &Json) {
    assert_eq!(played["over"], json!({ "frame": played["last"], "cancelled": false }), "{played}");
}

fn reset_and_tap(http: &Http) {
    for _ in 0..20 {
        assert_eq!(http.post("/v1/reset").unwrap().status, 200);
        assert_over(&tap_and_wait(http, 30, None));
    }
}

#[test]
fn waiting_for_a_tap_right_after_a_reset_lasts_until_the_tap_ends_in_a_window() {
    let served = Served::stock();
    // Before the reset, the frame counter must be higher than it is in the last frame of the tap.
    wait_until("120 frames have run", || Ok(served.number("/core/currentframe") > 120));
    reset_and_tap(&served.http);
}

#[test]
fn waiting_for_a_tap_right_after_a_reset_lasts_until_the_tap_ends_in_an_embedded_core() {
    let rom = paths::rom();
    let server = Framewire::serve(&["--rom", rom.to_str().unwrap(), "--speed", "4"]).unwrap();
    reset_and_tap(&server.http());
}

#[test]
fn the_end_of_a_timeline_is_reported_after_a_reconnection_and_by_the_next_server() {
    let folder = tempfile::tempdir().unwrap();
    let (host, script) = host(&folder, &demo_copy(&folder));
    let game = host.http();
    let held = || game.get(&format!("/core/read16?address={}", demo::field("held"))).unwrap().text() != "0";
    let network = Proxy::start(script).unwrap();
    let attach = || {
        let bridge = Framewire::serve(&["--attach", &network.address().to_string()]).unwrap();
        ready(&bridge.http());
        bridge
    };
    let mut bridge = attach();
    let http = bridge.http();
    std::thread::scope(|scope| {
        // The test must see the key while it is held, so the tap takes two seconds.
        let played = scope.spawn(|| tap_and_wait(&http, 120, Some("key")));
        wait_until("it plays", || Ok(held()));
        network.fall_silent();
        wait_until("it is over", || Ok(!held()));
        network.come_back();
        assert_over(&played.join().unwrap());
    });
    bridge.signal(Signal::KILL).unwrap();
    let bridge = attach();
    assert_over(&tap_and_wait(&bridge.http(), 120, Some("key")));
}
