//! The program as those see it who start it: its streams, its signals, what it says when something is wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use framewire_e2e::{Framewire, Http, Signal, ports, until, until_some};

use super::served::PATIENCE;

#[test]
fn without_arguments_there_is_always_something_to_drive() {
    let server = Framewire::serve(&[]).unwrap();
    let http = server.http();
    until("a title", PATIENCE, || Ok(http.get("/core/getgametitle")?.status == 200)).unwrap();
}

#[test]
fn doctor_and_script_say_something_useful() {
    let (status, said, _) = Framewire::run(&["script"], PATIENCE).unwrap();
    assert!(status.success() && said.contains("Framewire"));
    let (_, said, _) = Framewire::run(&["doctor", "--attach", "127.0.0.1:1"], PATIENCE).unwrap();
    assert!(said.contains("no script at 127.0.0.1:1") && said.contains("Load script"), "{said}");
    let (status, _, said) = Framewire::run(&["serve", "--rom", "no-such-file.gba"], PATIENCE).unwrap();
    assert!(!status.success() && said.contains("no-such-file.gba"), "{said}");
}

/// The program with streams of the test's own. Killed with the test.
struct Piped(Child);

impl Piped {
    fn start(mut command: Command) -> Piped {
        Piped(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    fn wait(&mut self) -> ExitStatus {
        until_some("the program ended", PATIENCE, || Ok(self.0.try_wait().unwrap())).unwrap()
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A stream that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_log_that_nobody_reads_keeps_nobody_from_being_served() {
    let mut command = Framewire::command(&["serve", "--listen", "127.0.0.1:0", "--speed", "1"]).unwrap();
    command.stdout(Stdio::piped()).stderr(unread());
    let mut server = Piped::start(command);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let http = Http::new(line.trim().strip_prefix("listening on ").unwrap());
    for _ in 0..3 {
        assert_eq!(http.get("/core/getgametitle").unwrap().text(), "FRAMEWIRE");
    }
    server.signal("HUP");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn output_that_nobody_reads_ends_nothing() {
    let address = format!("127.0.0.1:{}", ports::free());
    let mut command = Framewire::command(&["serve", "--listen", &address, "--speed", "1"]).unwrap();
    command.stdout(unread()).stderr(Stdio::null());
    let mut server = Piped::start(command);
    let http = Http::new(format!("http://{address}"));
    until("it serves", PATIENCE, || Ok(http.get("/healthz").is_ok_and(|reply| reply.status == 200))).unwrap();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));

    let address = format!("127.0.0.1:{}", ports::free());
    let mut command = Framewire::command(&["doctor", "--attach", &address, "--listen", &address]).unwrap();
    command.stdout(unread()).stderr(Stdio::null());
    assert_eq!(Piped::start(command).wait().code(), Some(1));
}

#[test]
fn a_second_interrupt_ends_it_at_once() {
    let mut server = Framewire::serve(&["--speed", "1"]).unwrap();
    let mut client = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // Its body never comes, so the server would wait for it, for longer than this test does.
    let head =
        "POST /mgbaendpoint HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    let mut reply = [0; 12];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"HTTP/1.1 100");
    server.signal(Signal::INT).unwrap();
    until("it is about to end", PATIENCE, || Ok(server.log().contains("SIGINT"))).unwrap();
    server.signal(Signal::INT).unwrap();
    let status = server.wait_exit(Duration::from_secs(5)).unwrap();
    assert_eq!(status.code(), Some(130), "{}", server.log());
}

#[test]
fn causes_are_told_once_each() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (status, _, said) =
        Framewire::run(&["serve", "--listen", &address, "--speed", "1"], PATIENCE).unwrap();
    assert_eq!(status.code(), Some(1));
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].starts_with(&format!("framewire: cannot listen at {address}; choose another port")),
        "{said}"
    );
    assert_eq!(lines[1..], ["  because: Address already in use (os error 98)"], "{said}");
    let (status, _, said) = Framewire::run(&["serve", "--rom", "no-such-file.gba"], PATIENCE).unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
}
