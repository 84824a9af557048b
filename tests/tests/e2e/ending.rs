//! Tests of how programs and their connections end.

use std::io::{Read, Write};
use std::net::TcpStream;

use framewire_e2e::Signal;

use super::served::{PATIENCE, Served, wait_until};

#[test]
fn requests_in_flight_are_answered_when_the_server_is_stopped() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut served = Served::hosted();
        // The stopped host of the script answers nothing until it continues.
        served.host.as_mut().unwrap().signal(Signal::STOP).unwrap();
        let mut clients: Vec<_> = (0..20).map(|client| Open::start(&served, client)).collect();
        served.server.signal(signal).unwrap();
        wait_until("the server got the signal", || Ok(served.server.log().contains("SIG")));
        served.host.as_mut().unwrap().signal(Signal::CONT).unwrap();
        for (number, client) in clients.iter_mut().enumerate() {
            let reply = client.reply();
            assert!(
                reply.starts_with("HTTP/1.1 200 ") && reply.ends_with(&message_of(number)),
                "{number}: {reply}"
            );
        }
        let status = served.server.wait_exit(PATIENCE).unwrap();
        assert_eq!(status.code(), Some(0), "{}", served.server.log());
    }
}

/// A request that the server has started to read and that waits for the emulator.
struct Open(TcpStream);

impl Open {
    fn start(served: &Served, client: usize) -> Open {
        let mut stream = TcpStream::connect(served.server.url().strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let message = message_of(client);
        let head = format!(
            "POST /mgbaendpoint HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
             expect: 100-continue\r\n\r\n",
            message.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut go_on = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
        stream.read_exact(&mut go_on).unwrap();
        assert!(go_on.starts_with(b"HTTP/1.1 100 "), "{}", String::from_utf8_lossy(&go_on));
        stream.write_all(message.as_bytes()).unwrap();
        Open(stream)
    }

    /// Reads until the server closes the connection.
    fn reply(&mut self) -> String {
        let mut reply = String::new();
        self.0.read_to_string(&mut reply).unwrap();
        reply
    }
}

fn message_of(client: usize) -> String {
    format!("client {client:02}")
}

#[test]
fn the_script_logs_no_warning_when_a_server_ends() {
    let mut served = Served::stock();
    for signal in [Signal::INT, Signal::KILL] {
        let before = served.console().len();
        served.server.end(signal, PATIENCE).unwrap();
        wait_until("the script notices", || Ok(served.console().len() > before));
        let said = served.console().split_off(before);
        assert!(!said.contains("error") && !said.contains("warn"), "{said}");
        let address = served.mgba().address().to_string();
        served.server = framewire_e2e::Framewire::serve(&["--attach", &address]).unwrap();
        served.http = served.server.http();
        served.ready();
    }
}

#[test]
fn a_paused_and_a_closed_mgba_are_distinguished() {
    let mut served = Served::stock();
    served.mgba().pause().unwrap();
    served.refused("GET", "/core/currentframe", 504, "paused");
    let state = served.text("/v1/emulator");
    assert!(state.contains(r#""run":"stalled""#), "{state}");
    served.mgba().resume().unwrap();
    served.ready();
    served.mgba().signal(Signal::KILL).unwrap();
    served.wait_until_gone();
    served.refused("GET", "/core/currentframe", 502, "start mGBA");
}

#[test]
fn a_script_loaded_again_takes_over() {
    let mut served = Served::stock();
    served.mgba().load_script(&framewire_e2e::paths::script()).unwrap();
    served.ready();
    let said = served.console();
    assert!(!said.contains("in use"), "{said}");
}
