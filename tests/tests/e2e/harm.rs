//! Tests that no client can crash, freeze or slow down a stock mGBA.

use std::io::Read;
use std::net::Shutdown;
use std::process::Command;
use std::time::{Duration, Instant};

use framewire_e2e::{FrameClient, StockMgba, TextClient, paths, until_good};
use framewire_protocol::{Op, OpError, Status, Value};
use rustix::net::sockopt::set_socket_linger;

use super::gameboy;
use super::served::{PATIENCE, Served, demo_copy, host, stock};

const ROM: u32 = 0x0800_0000;
const RAM: u32 = 0x0200_0000;
const MIB: u32 = 1024 * 1024;

fn link(mgba: &StockMgba) -> FrameClient {
    FrameClient::connect(mgba.address(), fastrand::u64(..), PATIENCE).unwrap()
}

fn read_range(address: u32, length: u32) -> Op {
    Op::ReadRange { address, length }
}

fn current_frame(client: &mut FrameClient) -> i64 {
    match client.perform(vec![Op::CurrentFrame {}]).unwrap().results[..] {
        [Ok(Value::Int(frame))] => frame,
        ref other => panic!("{other:?}"),
    }
}

/// The default of `FRAMEWIRE_VANISHING`.
const USUAL_ROUNDS: u32 = 20;

/// A client requests a lot of data and reads a little of it. Then it closes its sending side, and resets the connection
/// while replies are being sent. If the script wrote to the socket after that, SIGPIPE would end mGBA.
/// `FRAMEWIRE_VANISHING` sets how many clients of each kind do this; the default takes a few seconds.
#[test]
fn clients_that_vanish_in_a_reply_leave_mgba_running() {
    let count = std::env::var("FRAMEWIRE_VANISHING").map_or(USUAL_ROUNDS, |text| text.parse().unwrap());
    let mgba = stock(&paths::rom());
    let begun = Instant::now();
    for _ in 0..count {
        for (address, length, times) in [(ROM, MIB, 3), (RAM, 256 * 1024, 4), (ROM, 16 * MIB, 3)] {
            let mut client = link(&mgba);
            for _ in 0..times {
                client.send(vec![read_range(address, length)]).unwrap();
            }
            let mut stream = client.into_stream();
            let mut part = vec![0; fastrand::usize(1..300_000)];
            assert!(stream.read(&mut part).unwrap() > 0);
            vanish(&stream);
        }
        // This client closes its sending side before the first reply.
        let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
        client.send(format!("framewire.echo,{}<|END|>", "x".repeat(100_000)).as_bytes()).unwrap();
        vanish(&client.into_parts().0);
        // This client closes its sending side and then resets the connection, both before the first reply.
        let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
        client.send(b"core.getGameTitle<|END|>").unwrap();
        let (stream, _) = client.into_parts();
        stream.shutdown(Shutdown::Write).unwrap();
        set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    }
    let mut client = TextClient::connect(mgba.address(), PATIENCE).unwrap();
    assert_eq!(client.ask("core.platform").unwrap(), "0");
    println!("{} clients vanished in {:.1} s", 5 * count, begun.elapsed().as_secs_f64());
}

/// Closes the sending side, and waits for a very short random time. Then the caller closes the connection, which resets
/// it, because there are unread bytes.
fn vanish(stream: &std::net::TcpStream) {
    stream.shutdown(Shutdown::Write).unwrap();
    let begun = Instant::now();
    let moment = Duration::from_micros(fastrand::u64(0..200));
    while begun.elapsed() < moment {
        std::hint::spin_loop();
    }
}

#[test]
fn a_fifo_or_a_device_does_not_freeze_or_end_mgba() {
    for served in [Served::stock(), Served::hosted()] {
        let fifo = served.folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let null = served.folder.path().join("null.sav");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        let files =
            [fifo.to_str().unwrap(), null.to_str().unwrap(), "/dev/null", "/dev/full", "/proc/self/maps"];
        for file in files {
            for route in [
                "/core/loadsavefile?temporary=true&path=",
                "/core/loadsavefile?temporary=false&path=",
                "/core/loadfile?path=",
                "/core/loadstatefile?flags=29&path=",
                "/core/savestatefile?flags=31&path=",
                "/core/screenshot?path=",
                "/mgba-http/extension/loadfile?path=",
            ] {
                let reply = served.http.post(&format!("{route}{file}")).unwrap();
                assert_eq!(reply.status, 400, "{route}{file}: {}", reply.text());
                assert!(reply.text().contains("regular file"), "{route}{file}: {}", reply.text());
            }
        }
        assert_eq!(served.text("/core/getgametitle"), "FRAMEWIRE");
    }
}

#[test]
fn a_step_of_a_halted_game_boy_does_not_freeze_mgba() {
    let folder = tempfile::tempdir().unwrap();
    // di; xor a; ldh [IE], a; halt; and then a jump back to `halt`, in case it ends.
    let rom = gameboy::rom(&folder, &[0xF3, 0xAF, 0xE0, 0xFF, 0x76, 0x00, 0x18, 0xFC]);
    let mgba = stock(&rom);
    let mut client = link(&mgba);
    let before = current_frame(&mut client);
    let outcome = client.perform(vec![Op::Step {}]).unwrap();
    match &outcome.results[..] {
        [Err(OpError { status: Status::Unsupported, message: text, .. })] => {
            assert!(text.contains("halted"), "{text}")
        }
        other => panic!("{other:?}"),
    }
    let end = Instant::now() + PATIENCE;
    while current_frame(&mut client) < before + 10 {
        assert!(Instant::now() < end, "no frames run any more");
    }
}

#[test]
fn two_large_writes_delay_other_requests_by_less_than_a_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let rom = demo_copy(&folder);
    let (_host, hosted) = host(&folder, &rom);
    let mgba = stock(&rom);
    for address in [mgba.address(), hosted] {
        let mut client = FrameClient::connect(address, fastrand::u64(..), PATIENCE).unwrap();
        let data = match client.perform(vec![read_range(RAM, 256 * 1024)]).unwrap().single() {
            Ok(Value::Bytes(data)) => data,
            other => panic!("{other:?}"),
        };
        let times = || {
            let begun = Instant::now();
            for _ in 0..2 {
                client.send(vec![Op::WriteRange { address: RAM, data: data.clone() }]).unwrap();
            }
            let last = client.send(vec![Op::CurrentFrame {}]).unwrap();
            client.outcome(last - 2).unwrap().single().unwrap();
            // A write takes longer if other programs are busy, so the limit depends on how long one write took.
            let one_write = begun.elapsed();
            client.outcome(last - 1).unwrap().single().unwrap();
            client.outcome(last).unwrap().single().unwrap();
            (begun.elapsed() - one_write, one_write)
        };
        until_good(times, |(waited, one_write)| *waited < Duration::from_secs(2) + 2 * *one_write);

        let write = Op::WriteRange { address: RAM, data: vec![0; data.len() + 1] };
        let refused = client.perform(vec![write]).unwrap().single().unwrap_err();
        assert!(refused.message.contains("at most 262144 bytes"), "{refused}");
    }
}

/// Frames per second, measured over three seconds.
fn frame_rate(client: &mut FrameClient) -> f64 {
    let (begun, first) = (Instant::now(), current_frame(client));
    std::thread::sleep(Duration::from_secs(3));
    (current_frame(client) - first) as f64 / begun.elapsed().as_secs_f64()
}

/// These clients once slowed the game to a quarter of its speed or less. There are several attempts, because other
/// programs on this machine may slow the game too.
#[test]
fn large_reads_and_unread_replies_do_not_slow_the_frames() {
    let mgba = stock(&paths::rom());
    let mut probe = link(&mgba);
    let mut rates = Vec::new();
    for _ in 0..5 {
        let idle = frame_rate(&mut probe);
        let mut clients: Vec<FrameClient> = (0..20).map(|_| link(&mgba)).collect();
        for client in &mut clients {
            for _ in 0..40 {
                client.send(vec![read_range(RAM, 256 * 1024)]).unwrap();
            }
        }
        let mut readers: Vec<FrameClient> = (0..4).map(|_| link(&mgba)).collect();
        for reader in &mut readers {
            for address in [ROM, RAM, ROM, RAM] {
                reader.send(vec![read_range(address, 16 * MIB)]).unwrap();
            }
        }
        // Only this client reads its reply.
        let mut patient = link(&mgba);
        patient.send(vec![read_range(ROM, 16 * MIB)]).unwrap();
        let busy = frame_rate(&mut probe);
        rates.push((idle, busy));
        drop((clients, readers));
        let rom = patient.outcome(1).unwrap().single().unwrap();
        assert!(matches!(&rom, Value::Bytes(bytes) if bytes.len() == 16 * MIB as usize), "the ROM");
        if busy > 0.6 * idle {
            return;
        }
    }
    panic!("frames per second without and with these clients: {rates:?}");
}
