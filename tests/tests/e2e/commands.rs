//! The one-shot commands, such as `framewire read`, with each kind of emulator, and their exit codes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};
use std::time::Instant;

use framewire_e2e::{Framewire, Signal, demo, paths, ports};
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;

use super::served::{PATIENCE, Served, wait_until};

/// A command that has ended: its exit code, its standard output and its error output.
struct Ran {
    code: i32,
    out: String,
    said: String,
}

impl Ran {
    fn new(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap(),
            out: String::from_utf8_lossy(&output.stdout).trim_end().to_owned(),
            said: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
        }
    }

    /// The output of a command that succeeded.
    #[track_caller]
    fn done(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.said);
        self.out
    }

    #[track_caller]
    fn failed(self, code: i32, says: &str) {
        assert_eq!(self.code, code, "{}{}", self.out, self.said);
        assert!(self.said.contains(says), "{says}: {}", self.said);
    }
}

fn at(url: &str, args: &[&str]) -> Ran {
    Ran::new(Framewire::command(args).unwrap().env("FRAMEWIRE_URL", url).output().unwrap())
}

fn run(args: &[&str]) -> Ran {
    Ran::new(Framewire::command(args).unwrap().output().unwrap())
}

#[track_caller]
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn every_command_works(served: &Served) {
    let run = |args: &[&str]| at(served.server.url(), args);
    let scratch = format!("{:#x}", demo::field("scratch"));
    let frame = format!("u32[{:#x}]", demo::field("frame"));

    assert_eq!(run(&["write", &scratch, "0x01020304", "--type", "u32"]).done(), "");
    assert_eq!(run(&["read", &scratch, "--type", "u32"]).done(), "16909060");
    assert_eq!(run(&["read", &scratch, "--length", "5"]).done(), "0403020100");
    let reply = json(&run(&["read", &scratch, "--type", "u16", "--json"]).done());
    assert_eq!(reply["value"], 0x0304, "{reply}");
    run(&["write", &scratch, "--bytes", "ff00"]).done();
    let next = format!("{:#x}", demo::field("scratch") + 1);
    assert_eq!(run(&["read", &scratch, &next]).done(), format!("{scratch} 255\n{next} 0"));
    run(&["write", &scratch, "-2", "--type", "i8"]).done();
    assert_eq!(run(&["read", &scratch, "--type", "i8"]).done(), "-2");

    let pressed = run(&["press", "A:2", ".:3", "Up+B:2", "--json"]).done();
    let pressed = json(&pressed);
    assert_eq!(pressed["over"]["cancelled"], false, "{pressed}");
    assert_eq!(pressed["last"].as_u64().unwrap() - pressed["first"].as_u64().unwrap(), 6, "{pressed}");
    assert!(run(&["press", "A", "--no-wait"]).done().starts_with("A in frames "));

    let picture = served.folder.path().join("out.png");
    let said = run(&["screenshot", picture.to_str().unwrap()]).done();
    assert!(said.ends_with("240 x 160 pixels"), "{said}");
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));

    assert!(run(&["wait", &format!("{frame} % 7 == 3")]).done().starts_with("true after frame "));
    run(&["wait", &format!("{frame} == 0"), "--frames", "5"]).failed(1, "within 5 frames");
    let begun = Instant::now();
    run(&["wait", &format!("{frame} == 0"), "--timeout", "0.3"]).failed(1, "within 0.3 s");
    assert!(begun.elapsed() < PATIENCE);
    let waited = run(&["wait", &format!("{frame} == 0"), "--frames", "2", "--json"]);
    assert_eq!((waited.code, &json(&waited.out)["held"]), (1, &Value::Bool(false)));

    // The first line is the value at the start. Then come three changes.
    let watched = run(&["watch", &frame, "--count", "3"]).done();
    let values: Vec<u32> =
        watched.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
    assert_eq!(values, [values[0], values[0] + 1, values[0] + 2, values[0] + 3], "{watched}");

    let state = served.folder.path().join("state.png");
    let state = state.to_str().unwrap();
    run(&["write", &scratch, "77"]).done();
    run(&["state", "save", state]).done();
    run(&["state", "save", "--slot", "3"]).done();
    for place in [&[state][..], &["--slot", "3"]] {
        run(&["write", &scratch, "11"]).done();
        run(&[&["state", "load"], place].concat()).done();
        assert_eq!(run(&["read", &scratch]).done(), "77");
    }
    run(&["state", "load", "--slot", "9"]).failed(1, "slot 9");

    wrong_input_has_exit_code_2(served, &scratch);
}

fn wrong_input_has_exit_code_2(served: &Served, scratch: &str) {
    let picture = served.folder.path().join("out.png");
    for (args, says) in [
        (&["read", "no_such_name"][..], "no_such_name"),
        (&["read", "0x10000000"], "0x10000000"),
        (&["read", scratch, "--type", "u64"], "u64"),
        (&["read", scratch, scratch, "--length", "2"], "--length"),
        (&["read", scratch, "--emulator", "other"], "other"),
        (&["read"], "ADDRESS"),
        (&["write", scratch, "300", "--type", "u8"], "from 0 to 255"),
        (&["write", scratch, "five"], "whole number"),
        (&["write", scratch, "--bytes", "0g"], "hex digits"),
        (&["write", scratch], "VALUE"),
        (&["press", "Q"], "\"Q\""),
        (&["press", "A:0"], "A:0"),
        (&["wait", "1 +"], "column"),
        (&["wait", "1", "--timeout", "soon"], "number of seconds"),
        (&["wait", "1", "--frames", "0"], "0"),
        (&["watch", "u8["], "column"),
        (&["state", "load", "no-such-file"], "no-such-file"),
        (&["state", "load", picture.to_str().unwrap()], "state"),
        (&["state", "save"], "--slot"),
        (&["screenshot"], "FILE"),
    ] {
        at(served.server.url(), args).failed(2, says);
    }
}

#[test]
fn every_command_works_with_an_embedded_core() {
    every_command_works(&Served::embedded());
}

#[test]
fn every_command_works_with_a_window() {
    every_command_works(&Served::stock());
}

#[test]
fn names_of_symbols_are_accepted_and_completed() {
    let server = Framewire::serve(&["--speed", "1"]).unwrap();
    let run = |args: &[&str]| at(server.url(), args);
    run(&["write", "score", "500"]).done();
    assert!(run(&["read", "score"]).done().parse::<u32>().unwrap() >= 500);
    run(&["read", "scroe"]).failed(2, "did you mean \"score\"");
    assert!(run(&["wait", "score >= 500", "--timeout", "10"]).done().starts_with("true"));

    let complete = |words: &[&str]| {
        let words = [&["--", "framewire"], words].concat();
        let mut command = Framewire::command(&words).unwrap();
        command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (words.len() - 2).to_string());
        Ran::new(command.env("_CLAP_IFS", "\n").output().unwrap()).done()
    };
    let url = server.url();
    // A completion shows nothing if the server does not answer within 400 ms.
    for (words, found) in [
        (["read", "--url", url, "ball_d"], "ball_dx\nball_dy"),
        (["wait", "--url", url, "score>hi"], "score>high_score"),
    ] {
        wait_until(found, || {
            let shown = complete(&words);
            assert!(shown == found || shown.is_empty(), "{shown}");
            Ok(!shown.is_empty())
        });
    }
    assert_eq!(complete(&["read", "--url", "127.0.0.1:1", "bal"]), "");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(run(&["completions", shell]).done().contains("framewire"), "{shell}");
    }
}

#[test]
fn commands_with_a_rom_need_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let rom = paths::rom();
    let rom = rom.to_str().unwrap();
    let picture = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // Two runs give the same picture in the same frame.
    for name in ["a.png", "b.png"] {
        let args = ["screenshot", "--rom", rom, "--after", "200", "--keys", "Start:2 .:60", &picture(name)];
        assert!(run(&args).done().contains("frame 262"));
    }
    assert_eq!(fs::read(picture("a.png")).unwrap(), fs::read(picture("b.png")).unwrap());
    assert_eq!(run(&["read", "--rom", rom, "--after", "100", "score", "lives"]).done(), "score 100\nlives 3");

    // No frame runs before the wait begins, so the condition always holds after the same frame.
    let waited = || json(&run(&["wait", "--rom", rom, "u32[frame] == 1000", "--json"]).done());
    assert_eq!(waited(), waited());
    run(&["wait", "--rom", rom, "lives > 200", "--frames", "100"]).failed(1, "within 100 frames");
    run(&["wait", "--rom", rom, "lives > 200", "--timeout", "0.5"]).failed(1, "within 0.5 s");
    run(&["wait", "--rom", rom, "lifes > 200"]).failed(2, "lifes");
    assert!(run(&["watch", "--rom", rom, "lives", "u32[frame]", "--count", "2"]).done().lines().count() >= 4);

    run(&["state", "save", "--rom", rom, "--after", "100", &picture("state.png")]).done();
    assert_eq!(run(&["read", "--rom", rom, "--from", &picture("state.png"), "score"]).done(), "100");
    assert_eq!(run(&["press", "--rom", rom, "A:2 .:10"]).done(), "A in frames 1 to 2");
    run(&["write", "--rom", rom, "score", "5"]).done();

    run(&["read", "--rom", "no-such.gba", "score"]).failed(2, "no-such.gba");
    let text = folder.path().join("text.gba");
    fs::write(&text, "not a game").unwrap();
    run(&["read", "--rom", text.to_str().unwrap(), "score"]).failed(2, "text.gba");
    run(&["read", "--after", "10", "score"]).failed(2, "--rom");
    // The two pictures, the state and the text. The commands wrote no other file there.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn a_missing_server_has_exit_code_3() {
    let nobody = format!("127.0.0.1:{}", ports::free());
    for args in [
        &["read", "0"][..],
        &["write", "0x02000000", "1"],
        &["press", "A"],
        &["wait", "1"],
        &["watch", "frame"],
    ] {
        at(&nobody, args).failed(3, "framewire serve");
    }
    at("http://no-such-host.invalid:5000", &["read", "0"]).failed(3, "no server at");
    at("ftp://desk", &["read", "0"]).failed(2, "ftp://");

    // Another program listens at the address.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut client in other.incoming().flatten() {
            let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let _ = client.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnope");
        }
    });
    at(&address, &["read", "0"]).failed(3, "404");
}

#[test]
fn the_end_of_a_server_ends_a_watch_with_exit_code_3() {
    let mut server = Framewire::serve(&["--speed", "1"]).unwrap();
    let mut command = Framewire::command(&["watch", "frame", "--url", server.url()]).unwrap();
    let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watch.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(" frame "), "{line}");
    server.end(Signal::TERM, PATIENCE).unwrap();
    Ran::new(watch.wait_with_output().unwrap()).failed(3, "the server is stopping");
}

#[test]
fn a_closed_pipe_ends_a_watch() {
    let server = Framewire::serve(&["--speed", "1"]).unwrap();
    let mut command = Framewire::command(&["watch", "frame", "--url", server.url()]).unwrap();
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(watch.stdout.take());
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}

#[test]
fn commands_use_tokens_and_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    run(&["token", &file("token")]).done();
    let key = KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    fs::write(file("cert.pem"), certificate.pem()).unwrap();
    fs::write(file("key.pem"), key.serialize_pem()).unwrap();
    fs::set_permissions(file("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    let (token, cert, key) = (file("token"), file("cert.pem"), file("key.pem"));
    let args = ["--speed", "1", "--token-file", &token, "--tls-cert", &cert, "--tls-key", &key];
    let server = Framewire::serve(&args).unwrap();
    let url = server.url();
    at(url, &["read", "score"]).failed(3, "--cacert");
    at(url, &["read", "score", "--cacert", &cert]).failed(1, "--token-file");
    at(url, &["read", "score", "--cacert", &cert, "--token-file", &token]).done();
    let mut command = Framewire::command(&["read", "score", "--cacert", &cert, "--url", url]).unwrap();
    let secret = fs::read_to_string(&token).unwrap();
    Ran::new(command.env("FRAMEWIRE_TOKEN", secret).output().unwrap()).done();
    at(url, &["read", "score", "--cacert", &key]).failed(2, "has no certificate");
    at(url, &["read", "score", "--cacert", &cert, "--token-file", "none"]).failed(2, "none");
}
