//! Tests that end or stop mGBA, a server or a client. Afterwards, requests work again, and no socket is left open.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use framewire_e2e::{
    Framewire, Signal, StockMgba, StockOptions, TextClient, paths, ports, sockets, until_good,
};

use super::served::{PATIENCE, Served, demo_copy, host, other_game, ready, wait_until};

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

/// Waits until the script answers.
fn wait_for_script(script: SocketAddr) {
    wait_until("the script answers", || {
        let limit = Duration::from_millis(500);
        let asked = TextClient::connect(script, limit).and_then(|mut client| client.ask("framewire.version"));
        Ok(asked.is_ok())
    });
}

/// Checks that the emulator answers through the server soon after this action.
#[track_caller]
fn check_answers_after(served: &mut Served, mut action: impl FnMut(&mut Served)) {
    let time_to_answer = || {
        action(served);
        let begun = Instant::now();
        served.ready();
        begun.elapsed()
    };
    until_good(time_to_answer, |time| *time < SERVICE);
}

#[test]
fn an_mgba_that_is_started_again_after_a_kill_or_close_is_found() {
    let options = StockOptions::new(&paths::rom()).script(&paths::script()).port(ports::free());
    let mgba = StockMgba::start(&options).unwrap();
    let script = mgba.address();
    let mut served = Served::attached(tempfile::tempdir().unwrap(), Some(mgba), None, script, &[]);
    let sockets = sockets::held_by(served.server.pid()).unwrap();
    for ending in ["killed", "closed"] {
        check_answers_after(&mut served, |served| {
            match ending {
                "killed" => served.mgba().signal(Signal::KILL).unwrap(),
                _ => served.mgba().close_window().unwrap(),
            }
            served.mgba().wait_exit(PATIENCE).unwrap();
            served.wait_until_gone();
            served.mgba = Some(StockMgba::start(&options).unwrap());
            wait_for_script(script);
        });
    }
    wait_until("no socket is left over", || Ok(sockets::held_by(served.server.pid())? <= sockets));
    assert_no_warnings(&served.server.log());
    assert_no_warnings(&served.console());
}

#[test]
fn only_a_reset_of_the_scripts_ends_the_connection_to_a_window() {
    let mut served = Served::stock();
    let other = other_game(&served.folder);
    let mgba = served.mgba();
    let (script, pid) = (mgba.address(), mgba.pid());
    let sockets = sockets::held_by(pid).unwrap();
    let connected = |served: &Served| served.server.log().matches("connected to script").count();
    assert_eq!(connected(&served), 1);

    check_answers_after(&mut served, |served| served.mgba().reset().unwrap());
    check_answers_after(&mut served, |served| served.mgba().open_rom(&other).unwrap());
    assert_eq!(served.text("/core/getgametitle"), "OTHERWIRE");
    served.mgba().close_game().unwrap();
    served.refused("GET", "/core/currentframe", 504, "no ROM");
    check_answers_after(&mut served, |served| served.mgba().open_rom(&paths::rom()).unwrap());
    assert_eq!(served.text("/core/getgametitle"), "FRAMEWIRE");
    assert_eq!(connected(&served), 1, "{}", served.server.log());

    check_answers_after(&mut served, |served| {
        served.mgba().reset_scripts().unwrap();
        served.wait_until_gone();
        served.mgba().lua(&format!("framewire = {{port = {}}}", script.port())).unwrap();
        served.mgba().load_script(&paths::script()).unwrap();
        wait_for_script(script);
    });
    wait_until("no socket is left over", || Ok(sockets::held_by(pid)? <= sockets));
    assert_no_warnings(&served.server.log());
    assert_no_warnings(&served.console());
}

/// Stops programs without notice and with all connections open, as when a machine sleeps or a debugger halts them.
#[test]
fn requests_work_again_after_mgba_or_the_server_was_stopped() {
    let mut served = Served::stock();
    check_answers_after(&mut served, |served| {
        served.mgba().signal(Signal::STOP).unwrap();
        wait_until_stopped(served.mgba().pid());
        served.refused("GET", "/core/currentframe", 504, "does not answer");
        served.mgba().signal(Signal::CONT).unwrap();
    });

    // The server is stopped for longer than the script waits for a heartbeat.
    let missed = |served: &Served| served.console().matches("nothing was heard").count();
    check_answers_after(&mut served, |served| {
        let before = missed(served);
        served.server.signal(Signal::STOP).unwrap();
        wait_until("the script misses the heartbeat", || Ok(missed(served) > before));
        served.server.signal(Signal::CONT).unwrap();
    });

    // Both are stopped, as when the machine sleeps. The clock continues meanwhile.
    check_answers_after(&mut served, |served| {
        served.server.signal(Signal::STOP).unwrap();
        served.mgba().signal(Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_secs(3));
        served.mgba().signal(Signal::CONT).unwrap();
        served.server.signal(Signal::CONT).unwrap();
    });
    assert_no_warnings(&served.console());
    assert_no_warnings(&served.server.log());
}

/// Waits until a process has stopped after a stop signal.
fn wait_until_stopped(pid: u32) {
    wait_until("the process stood still", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        Ok(stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')))
    });
}

#[test]
fn clients_that_disconnect_leave_no_socket() {
    let folder = tempfile::tempdir().unwrap();
    let (host, script) = host(&folder, &demo_copy(&folder));
    let before = sockets::held_by(host.pid()).unwrap();
    for round in 0..5 {
        let mut bridge = Framewire::serve(&["--attach", &script.to_string()]).unwrap();
        ready(&bridge.http());
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
        bridge.end(signal, PATIENCE).unwrap();
        wait_until("no socket is left over", || Ok(sockets::held_by(host.pid())? <= before));
    }
    assert_no_warnings(&host.log());
}
