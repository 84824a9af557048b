//! `framewire doctor`: what it finds in each case that people meet, and what it advises.

use std::fs;
use std::io::Write;
use std::net::TcpListener;

use framewire_e2e::{Framewire, paths, ports};

use super::served::{PATIENCE, host};

/// What it says of an address where a script should be, and whether it finds all well.
fn of(attach: &str) -> (bool, String) {
    let listen = format!("localhost:{}", ports::free());
    let (status, said, _) =
        Framewire::run(&["doctor", "--attach", attach, "--listen", &listen], PATIENCE).unwrap();
    assert!(said.contains("is free for HTTP"), "{said}");
    (status.success(), said)
}

#[track_caller]
fn says(said: &str, finding: &str, advice: &str) {
    let mut lines = said.lines().skip_while(|line| !line.contains(finding));
    assert!(lines.next().is_some_and(|line| line.starts_with("look ")), "{finding}: {said}");
    assert!(lines.next().is_some_and(|line| line.contains(advice)), "{advice}: {said}");
}

#[test]
fn no_script() {
    let address = format!("localhost:{}", ports::free());
    let (well, said) = of(&address);
    assert!(!well);
    says(&said, &format!("no script at {address}"), "Load script");
}

#[test]
fn our_script_of_this_version_and_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let port = ports::free();
    let _host = host(&folder, port, &paths::script(), &[]);
    let (well, said) = of(&format!("localhost:{port}"));
    assert!(well, "{said}");

    let version = env!("CARGO_PKG_VERSION");
    let script = fs::read_to_string(paths::script()).unwrap();
    assert!(script.contains(&format!("script = \"{version}\"")));
    let older = folder.path().join("older.lua");
    fs::write(&older, script.replace(&format!("script = \"{version}\""), "script = \"0.0.9\"")).unwrap();
    let port = ports::free();
    let _host = host(&folder, port, &older, &[]);
    let (well, said) = of(&format!("127.0.0.1:{port}"));
    assert!(!well);
    says(&said, &format!("script 0.0.9 answers at 127.0.0.1:{port}"), "framewire script -o");
}

#[test]
fn a_program_that_is_silent_and_one_that_is_something_else() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    says(&of(&address).1, &format!("{address} accepts connections and does not answer"), "paused");

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for client in other.incoming().flatten() {
            let _ = (&client).write_all(b"220 mail.example ready\r\n<|END|>");
        }
    });
    let said = of(&address).1;
    says(&said, &format!("something else listens at {address} by e2e"), "another port");
    assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
}

#[test]
fn a_port_that_is_taken_and_by_whom() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let args = ["doctor", "--speed", "1", "--listen", &format!("http://localhost:{}", address.port())];
    let (status, said, _) = Framewire::run(&args, PATIENCE).unwrap();
    assert_eq!(status.code(), Some(1));
    says(&said, &format!("{address} is taken by e2e"), "--listen");
    assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
}

#[test]
fn it_looks_for_what_serve_would_use() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", ports::free());
    fs::write(folder.path().join("framewire.toml"), format!("attach = \"{address}\"")).unwrap();
    let run = |args: &[&str]| {
        let mut command =
            Framewire::command(&[&["doctor", "--listen", "127.0.0.1:0"], args].concat()).unwrap();
        let output = command.current_dir(folder.path()).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    says(&run(&[]).1, &format!("no script at {address}"), "Load script");
    let (well, said) = run(&["--rom", paths::rom().to_str().unwrap()]);
    assert!(well && said.contains("is a ROM (FRAMEWIRE)"), "{said}");
    says(&run(&["--rom", "no-such-file.gba"]).1, "no-such-file.gba", "--rom");
}
