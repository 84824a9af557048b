//! Tests of channels between Rust and LuaJIT. `tests/peer.lua` is the other side.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use framewire_channel::{Endpoint, Error, MAX_MESSAGE, Options};

use crate::support::{LONG, check, fill, kills, length, name, spawn};

const SIDES: [&str; 2] = ["create", "connect"];

fn luajit(role: &str, name: &str, task: &str, count: u32) -> Child {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peer.lua");
    Command::new("luajit")
        .args([script, role, name, task, &count.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("LuaJIT on the path (apt-get install luajit)")
}

/// Opens our side of a channel. `role` is the role of the other side.
fn facing(role: &str, name: &str) -> Endpoint {
    let mine = match role {
        "create" => Endpoint::connect(name, LONG, Options::default()),
        _ => Endpoint::create(name, Options::default()),
    };
    let mine = mine.expect("our side");
    mine.accept(LONG).expect("the other side");
    mine
}

/// The text that the other side printed. Checks that it ended without an error.
fn output_of(mut peer: Child) -> String {
    let mut printed = String::new();
    peer.stdout.take().expect("a pipe").read_to_string(&mut printed).expect("text");
    assert!(peer.wait().expect("its end").success(), "it printed {printed:?}");
    printed.trim_end().to_owned()
}

#[test]
fn messages_of_every_size_go_to_luajit_and_back() {
    for role in SIDES {
        let name = name();
        let peer = luajit(role, &name, "echo", 0);
        let mut mine = facing(role, &name);
        // The mailbox holds messages of up to 19 bytes, and a slot messages of up to 112 bytes.
        for size in [1, 2, 19, 20, 111, 112, 113, 4096, MAX_MESSAGE - 1, MAX_MESSAGE] {
            let data: Vec<u8> = (0..size).map(|index| (index * 7 + index / 256 + size) as u8).collect();
            mine.sender.send(&data, LONG).expect("room");
            assert!(*mine.receiver.receive(LONG).expect("the echo") == data, "{size} bytes with {role}");
        }
        drop(mine);
        assert_eq!(output_of(peer), "closed");
    }
}

#[test]
fn many_messages_cross_both_ways_at_once() {
    const COUNT: u32 = 20_000;
    for role in SIDES {
        let name = name();
        let peer = luajit(role, &name, "answer", COUNT);
        let Endpoint { mut sender, mut receiver } = facing(role, &name);
        let writer = thread::spawn(move || {
            for number in 0..COUNT {
                let mut place = sender.reserve(length(number), LONG).expect("room");
                fill(&mut place, number);
                place.commit();
            }
            sender
        });
        for number in 0..COUNT {
            check(&receiver.receive(LONG).expect("a message"), number);
        }
        drop((writer.join().expect("the writer"), receiver));
        assert_eq!(output_of(peer), "closed");
    }
}

#[test]
fn a_killed_luajit_is_noticed_and_its_messages_are_whole() {
    let name = name();
    for role in SIDES.repeat(kills() as usize / 5) {
        let mut peer = luajit(role, &name, "send", 0);
        let mut mine = facing(role, &name);
        let kill_at = Instant::now() + Duration::from_micros(fastrand::u64(0..20_000));
        let mut killed = false;
        for number in 0.. {
            match mine.receiver.receive(LONG) {
                Ok(message) => check(&message, number),
                Err(Error::Died) => break,
                Err(error) => panic!("{error}"),
            }
            if !killed && Instant::now() >= kill_at {
                peer.kill().expect("a kill");
                killed = true;
            }
        }
        peer.wait().expect("its end");
    }
}

#[test]
fn luajit_notices_a_killed_side() {
    let name = name();
    for role in SIDES.repeat(kills() as usize / 10) {
        let mut peer = luajit(role, &name, "read_to_the_end", 0);
        let other = if role == "create" { "connect" } else { "create" };
        // Another process of this test program, which runs only this function.
        let mut victim = spawn("killed::victim", other, &name);
        let mut printed = String::new();
        let mut pipe = BufReader::new(peer.stdout.take().expect("a pipe"));
        pipe.read_line(&mut printed).expect("a line");
        thread::sleep(Duration::from_micros(fastrand::u64(0..20_000)));
        victim.kill().expect("a kill");
        victim.wait().expect("its end");
        pipe.read_to_string(&mut printed).expect("text");
        assert_eq!(printed, "reading\nthe other side has ended without closing\n");
        assert!(peer.wait().expect("its end").success());
    }
    // Creating the next channel removes the block of shared memory that the last killed process left.
    drop(Endpoint::create(&name, Options::default()).expect("a new channel"));
}
