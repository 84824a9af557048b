//! Tests of the program on the command line: its streams, signals and error messages.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use framewire_e2e::{Framewire, Http, Signal, TextClient, paths, ports, until_some};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::served::{PATIENCE, wait_until};

#[test]
fn the_program_serves_an_emulator_without_arguments() {
    let server = Framewire::serve(&[]).unwrap();
    let http = server.http();
    wait_until("there is a title", || Ok(http.get("/core/getgametitle")?.status == 200));
}

#[test]
fn the_script_is_printed_as_it_is_in_the_checkout() {
    let (status, said, _) = Framewire::run(&["script"], PATIENCE).unwrap();
    assert!(status.success());
    assert_eq!(said, fs::read_to_string(paths::script()).unwrap());
}

#[test]
fn an_emulator_on_the_command_line_replaces_one_from_the_environment() {
    let address = format!("127.0.0.1:{}", ports::free());
    let mut command =
        Framewire::command(&["serve", "--listen", "127.0.0.1:0", "--attach", &address]).unwrap();
    command.env("FRAMEWIRE_ROM", "no-such-file.gba").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Piped::start(command);
    let state = Http::new(server.url()).get("/v1/emulator").unwrap().text();
    assert!(state.contains(r#""kind":"attached""#), "{state}");

    for other in [["--speed", "2"], ["--lua", "a.lua"], ["--channel", "a"]] {
        let args = [&["serve", "--attach", &address][..], &other[..]].concat();
        let (status, _, said) = Framewire::run(&args, PATIENCE).unwrap();
        assert_eq!(status.code(), Some(2), "{args:?}");
        assert!(said.contains(other[0]) && said.contains("--attach"), "{said}");
    }
}

#[test]
fn paths_of_scripts_may_contain_commas() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, three] = ["one, two.lua", "two.lua", "three.lua"].map(|name| folder.path().join(name));
    for (path, done) in [(&one, "done 1"), (&two, "done 2"), (&three, "done 3")] {
        let done = folder.path().join(done);
        fs::write(path, format!("io.open({:?}, 'w'):close()", done.to_str().unwrap())).unwrap();
    }
    let server = Framewire::serve(&["--lua", one.to_str().unwrap()]).unwrap();
    assert!(folder.path().join("done 1").exists(), "{}", server.log());

    let mut command = Framewire::command(&["serve", "--listen", "127.0.0.1:0"]).unwrap();
    command.env("FRAMEWIRE_LUA", format!("{},{}", two.display(), three.display()));
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    Piped::start(command).url();
    assert!(folder.path().join("done 2").exists() && folder.path().join("done 3").exists());
}

#[test]
fn a_script_that_does_not_end_while_it_is_loaded_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let script = folder.path().join("forever.lua");
    let text = format!("io.open({:?}, 'w'):close() while true do end", begun.to_str().unwrap());
    fs::write(&script, text).unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--lua", script.to_str().unwrap()];
    let mut command = Framewire::command(&args).unwrap();
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Piped::start(command);
    wait_until("the script runs", || Ok(begun.exists()));
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn more_http_clients_than_select_supports_do_not_end_a_program_with_scripts() {
    let may = getrlimit(Resource::Nofile);
    let enough = may.maximum.map_or(4096, |most| most.min(4096));
    assert!(enough > 1600, "this test needs 1,600 open files; raise the hard limit (ulimit -Hn)");
    setrlimit(Resource::Nofile, Rlimit { current: Some(enough), ..may }).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let (mut server, script) = Framewire::host_script(folder.path(), &paths::script(), "", &[]).unwrap();
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let crowd: Vec<TcpStream> = (0..1100).map(|_| TcpStream::connect(&address).unwrap()).collect();
    // The server accepts, rejects or closes each connection. When the last one is handled, all of them are.
    let last = crowd.last().unwrap();
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut said = String::new();
    let _ = last.take(12).read_to_string(&mut said);
    assert!(["", "HTTP/1.1 503"].contains(&said.as_str()), "{said}");
    for _ in 0..20 {
        let mut client = TextClient::connect(script, PATIENCE).unwrap();
        assert_eq!(client.ask("core.getGameTitle").unwrap(), "FRAMEWIRE");
    }
    drop(crowd);
    let http = server.http();
    wait_until("there is room again", || Ok(http.get("/healthz").is_ok_and(|reply| reply.status == 200)));
    assert_eq!(server.end(Signal::TERM, PATIENCE).unwrap().code(), Some(0), "{}", server.log());
}

/// The program with streams that the test chooses. It is killed at the end of the test.
struct Piped(Child);

impl Piped {
    fn start(mut command: Command) -> Piped {
        Piped(command.stdin(Stdio::null()).spawn().unwrap())
    }

    /// The address that the program prints when it listens.
    fn url(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.trim().strip_prefix("listening on ").unwrap().to_owned()
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

/// An output stream whose reader has closed its end.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_log_without_a_reader_does_not_block_requests() {
    let mut command = Framewire::command(&["serve", "--listen", "127.0.0.1:0", "--speed", "1"]).unwrap();
    command.stdout(Stdio::piped()).stderr(unread());
    let mut server = Piped::start(command);
    let http = Http::new(server.url());
    for _ in 0..3 {
        assert_eq!(http.get("/core/getgametitle").unwrap().text(), "FRAMEWIRE");
    }
    server.signal("HUP");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn output_without_a_reader_does_not_end_the_program() {
    let address = format!("127.0.0.1:{}", ports::free());
    let mut command = Framewire::command(&["serve", "--listen", &address, "--speed", "1"]).unwrap();
    command.stdout(unread()).stderr(Stdio::null());
    let mut server = Piped::start(command);
    let http = Http::new(format!("http://{address}"));
    wait_until("it serves", || Ok(http.get("/healthz").is_ok_and(|reply| reply.status == 200)));
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));

    let address = format!("127.0.0.1:{}", ports::free());
    let mut command = Framewire::command(&["doctor", "--attach", &address, "--listen", &address]).unwrap();
    command.stdout(unread()).stderr(Stdio::null());
    assert_eq!(Piped::start(command).wait().code(), Some(1));
}

/// A machine whose clock has no battery may start with a time before 1970.
#[test]
fn no_request_panics_with_a_clock_before_1970() {
    let clock = [
        "env",
        "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
        "FAKETIME=@1965-01-01 00:00:00",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
    ];
    let server = Framewire::serve_by(&clock, &["--speed", "1"]).unwrap();
    for _ in 0..2 {
        let reply = server.http().get("/healthz").unwrap();
        assert_eq!((reply.status, reply.text().contains("the clock")), (503, true), "{}", reply.text());
    }
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn a_second_interrupt_ends_the_program_immediately() {
    let mut server = Framewire::serve(&["--speed", "1"]).unwrap();
    let mut client = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // The body never arrives, so without a second signal the server would wait for longer than this test.
    let head =
        "POST /mgbaendpoint HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    let mut reply = [0; 12];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"HTTP/1.1 100");
    server.signal(Signal::INT).unwrap();
    wait_until("the server got the signal", || Ok(server.log().contains("SIGINT")));
    let status = server.end(Signal::INT, Duration::from_secs(5)).unwrap();
    assert_eq!(status.code(), Some(130), "{}", server.log());
}

#[test]
fn each_cause_is_reported_once() {
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

#[test]
fn a_game_needs_no_option() {
    let rom = paths::rom().display().to_string();
    let server = Framewire::serve(&[&rom, "--rom", &format!("second={rom}")]).unwrap();
    let list = server.http().get("/v1/emulators").unwrap().text();
    let (first, second) = (list.find(r#""name":"framewire-demo""#), list.find(r#""name":"second""#));
    assert!(first.is_some() && first < second, "{list}");
    let (status, _, said) = Framewire::run(&[&rom], PATIENCE).unwrap();
    assert!(!status.success() && said.contains(&format!("framewire serve {rom}")), "{said}");
}

#[test]
fn an_unusable_game_is_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("game.zip");
    fs::write(&archive, b"PK\x03\x04 and no more").unwrap();
    let (status, _, said) =
        Framewire::run(&["serve", "--listen", "127.0.0.1:0", archive.to_str().unwrap()], PATIENCE).unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("game.zip is a zip archive that is cut short"), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("because")).count(), 0, "{said}");
}

#[test]
fn an_invalid_port_is_reported() {
    let (status, _, said) =
        Framewire::run(&["serve", "--listen", "127.0.0.1:0", "--attach", "127.0.0.1:99999"], PATIENCE)
            .unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("\"99999\" is not a port; use a number from 1 to 65535"), "{said}");
}

#[test]
fn a_damaged_game_causes_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.gb");
    let mut rom = vec![0u8; 0x8000];
    rom[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]);
    rom[0x148] = 1;
    fs::write(&path, rom).unwrap();
    let server = Framewire::serve(&[path.to_str().unwrap()]).unwrap();
    let log = server.log();
    assert!(log.contains("the ROM has 32768 bytes and its header says 65536"), "{log}");
    assert!(log.contains("checksum of the ROM's header"), "{log}");
}

#[cfg(target_os = "linux")]
#[test]
fn truncating_the_channels_memory_leaves_the_server_running() {
    let name = format!("e2e-truncated-{}", std::process::id());
    let mut server = Framewire::serve(&["--channel", &name]).unwrap();
    let path = Path::new("/dev/shm").join(format!("framewire.{name}"));
    let size = fs::metadata(&path).unwrap().len();
    for (round, other) in [0, 4096, size / 2, size - 4096, size + 4096].into_iter().enumerate() {
        // The first round is like `: > FILE`, and the others are like `truncate --size SIZE FILE`.
        let file = fs::OpenOptions::new().write(true).truncate(other == 0).open(&path).unwrap();
        file.set_len(other).unwrap();
        wait_until("there is a new channel", || Ok(fs::metadata(&path).is_ok_and(|data| data.len() == size)));
        let answer = server.http().get("/v1/emulator").unwrap();
        assert_eq!(answer.status, 200, "round {round}: {}", answer.text());
    }
    let log = server.log();
    assert!(log.contains(&name) && log.contains("changed the size of its file"), "{log}");
    assert!(server.end(Signal::TERM, PATIENCE).unwrap().success());
    assert!(!path.exists());
}
