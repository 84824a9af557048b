//! Tests that end or stop mGBA, a server or a client. When the program is back, requests work again, and no socket is
//! left open.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use framewire_e2e::{
    Framewire, Signal, StockMgba, StockOptions, TextClient, paths, ports, sockets, until, until_good,
};

use super::served::{PATIENCE, Served, demo_copy, host, other_game};

/// How long the server may take to answer after the emulator is back.
pub const SERVICE: Duration = Duration::from_secs(1);

/// Checks that these lines, from a log of the server or of mGBA, contain no warning.
#[track_caller]
pub fn assert_no_warnings(lines: &str) {
    let levels = [" WARN ", " ERROR ", "panicked", "stack traceback"];
    for line in lines.lines() {
        let is_warning = levels.iter().any(|word| line.contains(word))
            || line.starts_with("warn")
            || line.starts_with("error");
        assert!(!is_warning, "{line:?} in {lines}");
    }
}

/// Waits until the script answers. Returns the time until the server answers after that.
fn time_after_script(served: &Served, script: SocketAddr) -> Duration {
    until("the script answers", PATIENCE, || {
        let limit = Duration::from_millis(500);
        let asked = TextClient::connect(script, limit).and_then(|mut client| client.ask("framewire.version"));
        Ok(asked.is_ok())
    })
    .unwrap();
    time_to_answer(served)
}

/// The time until the emulator answers through the server.
fn time_to_answer(served: &Served) -> Duration {
    let begun = Instant::now();
    served.ready();
    begun.elapsed()
}

/// Whether a server has answered soon enough.
fn is_soon(time: &Duration) -> bool {
    *time < SERVICE
}

#[test]
fn an_mgba_that_is_started_again_after_a_kill_or_close_is_found() {
    let port = ports::free();
    let script = SocketAddr::from(([127, 0, 0, 1], port));
    let options = StockOptions::new(&paths::rom()).script(&paths::script()).port(port);
    let mut mgba = StockMgba::start(&options).unwrap();
    let server = Framewire::serve(&["--attach", &script.to_string()]).unwrap();
    let mut served =
        Served { http: server.http(), server, mgba: None, host: None, folder: tempfile::tempdir().unwrap() };
    served.ready();
    let sockets = sockets::held_by(served.server.pid()).unwrap();
    for ending in ["killed", "closed"] {
        let answered = || {
            match ending {
                "killed" => mgba.signal(Signal::KILL).unwrap(),
                _ => mgba.close_window().unwrap(),
            }
            mgba.wait_exit(PATIENCE).unwrap();
            until("the server reports that the script is gone", PATIENCE, || {
                Ok(served.get("/core/currentframe").status == 502)
            })
            .unwrap();
            mgba = StockMgba::start(&options).unwrap();
            time_after_script(&served, script)
        };
        until_good(answered, is_soon);
    }
    until("no socket is left over", PATIENCE, || Ok(sockets::held_by(served.server.pid())? <= sockets))
        .unwrap();
    assert_no_warnings(&served.server.log());
    assert_no_warnings(&mgba.console());
    served.mgba = Some(mgba);
}

#[test]
fn only_a_reset_of_the_scripts_ends_the_connection_to_a_window() {
    let mut served = Served::stock();
    let other = other_game(&served.folder);
    let mgba = served.mgba.as_ref().unwrap();
    let (script, pid) = (mgba.address(), mgba.pid());
    let sockets = sockets::held_by(pid).unwrap();
    let connected = |served: &Served| served.server.log().matches("connected to script").count();
    assert_eq!(connected(&served), 1);

    let reset = || {
        mgba_of(&mut served).reset().unwrap();
        time_to_answer(&served)
    };
    until_good(reset, is_soon);
    let opened = || {
        mgba_of(&mut served).open_rom(&other).unwrap();
        time_to_answer(&served)
    };
    until_good(opened, is_soon);
    assert_eq!(served.text("/core/getgametitle"), "OTHERWIRE");
    mgba_of(&mut served).close_game().unwrap();
    served.refused("GET", "/core/currentframe", 504, "no ROM");
    let opened = || {
        mgba_of(&mut served).open_rom(&paths::rom()).unwrap();
        time_to_answer(&served)
    };
    until_good(opened, is_soon);
    assert_eq!(served.text("/core/getgametitle"), "FRAMEWIRE");
    assert_eq!(connected(&served), 1, "{}", served.server.log());

    let answered = || {
        mgba_of(&mut served).reset_scripts().unwrap();
        until("the server reports that the script is gone", PATIENCE, || {
            Ok(served.get("/core/currentframe").status == 502)
        })
        .unwrap();
        mgba_of(&mut served).lua(&format!("framewire = {{port = {}}}", script.port())).unwrap();
        mgba_of(&mut served).load_script(&paths::script()).unwrap();
        time_after_script(&served, script)
    };
    until_good(answered, is_soon);
    until("no socket is left over", PATIENCE, || Ok(sockets::held_by(pid)? <= sockets)).unwrap();
    assert_no_warnings(&served.server.log());
    assert_no_warnings(&served.mgba.as_ref().unwrap().console());
}

fn mgba_of(served: &mut Served) -> &mut StockMgba {
    served.mgba.as_mut().unwrap()
}

/// Stops programs in the same way as a sleeping machine or a debugger: without notice, with all connections open.
#[test]
fn requests_work_again_after_mgba_or_the_server_was_stopped() {
    let mut served = Served::stock();
    let answered = || {
        mgba_of(&mut served).signal(Signal::STOP).unwrap();
        wait_until_stopped(served.mgba.as_ref().unwrap().pid());
        served.refused("GET", "/core/currentframe", 504, "does not answer");
        mgba_of(&mut served).signal(Signal::CONT).unwrap();
        time_to_answer(&served)
    };
    until_good(answered, is_soon);

    // The server is stopped for longer than the script waits for a heartbeat.
    let missed =
        |served: &Served| served.mgba.as_ref().unwrap().console().matches("nothing was heard").count();
    let answered = || {
        let before = missed(&served);
        served.server.signal(Signal::STOP).unwrap();
        until("the script misses the heartbeat", PATIENCE, || Ok(missed(&served) > before)).unwrap();
        served.server.signal(Signal::CONT).unwrap();
        time_to_answer(&served)
    };
    until_good(answered, is_soon);

    // Both are stopped, as when the machine sleeps. The clock continues meanwhile.
    let answered = || {
        served.server.signal(Signal::STOP).unwrap();
        mgba_of(&mut served).signal(Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_secs(3));
        mgba_of(&mut served).signal(Signal::CONT).unwrap();
        served.server.signal(Signal::CONT).unwrap();
        time_to_answer(&served)
    };
    until_good(answered, is_soon);
    assert_no_warnings(&served.mgba.as_ref().unwrap().console());
    assert_no_warnings(&served.server.log());
}

/// Waits until a process has stopped after a stop signal.
fn wait_until_stopped(pid: u32) {
    until("the process stood still", PATIENCE, || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        Ok(stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')))
    })
    .unwrap();
}

#[test]
fn clients_that_disconnect_leave_no_socket() {
    let folder = tempfile::tempdir().unwrap();
    let rom = demo_copy(&folder);
    let port = ports::free();
    let script = SocketAddr::from(([127, 0, 0, 1], port));
    let host = host(&folder, port, &paths::script(), &["--rom", rom.to_str().unwrap()]);
    let before = sockets::held_by(host.pid()).unwrap();
    for round in 0..5 {
        let mut bridge = Framewire::serve(&["--attach", &script.to_string()]).unwrap();
        let http = bridge.http();
        until("the script answers", PATIENCE, || Ok(http.get("/core/currentframe")?.status == 200)).unwrap();
        // The clients disconnect at different times: before their request, in the middle of it, before the answer,
        // after it.
        let ends: [&[u8]; 4] = [b"", b"core.get", b"framewire.echo,x<|END|>", b"framewire.echo,x<|END|>rest"];
        for (number, bytes) in ends.into_iter().cycle().take(40).enumerate() {
            let mut client = TextClient::connect(script, PATIENCE).unwrap();
            client.send(bytes).unwrap();
            if number >= 20 && bytes.ends_with(b"END|>") {
                assert_eq!(client.reply().unwrap(), "x");
            }
        }
        let signal = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL, Signal::KILL][round];
        bridge.signal(signal).unwrap();
        bridge.wait_exit(PATIENCE).unwrap();
        until("no socket is left over", PATIENCE, || Ok(sockets::held_by(host.pid())? <= before)).unwrap();
    }
    assert_no_warnings(&host.log());
}
