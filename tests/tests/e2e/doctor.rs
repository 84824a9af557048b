//! Tests of `framewire doctor`: its findings and its advice in each common case.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;

use framewire_e2e::{Framewire, paths, ports};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::served::PATIENCE;

/// Runs `doctor` for the address of a script. Returns whether it reports success, and its output.
fn doctor_for(attach: &str) -> (bool, String) {
    let listen = format!("localhost:{}", ports::free());
    let (well, said) = doctor(&["--attach", attach, "--listen", &listen]);
    assert!(said.contains("is free for HTTP"), "{said}");
    (well, said)
}

/// Checks that the output has a line with this finding, and that the next line gives this advice.
#[track_caller]
fn says(said: &str, finding: &str, advice: &str) {
    let mut lines = said.lines().skip_while(|line| !line.contains(finding));
    assert!(lines.next().is_some_and(|line| line.starts_with("look ")), "{finding}: {said}");
    assert!(lines.next().is_some_and(|line| line.contains(advice)), "{advice}: {said}");
}

#[test]
fn a_missing_script_is_reported() {
    let address = format!("localhost:{}", ports::free());
    let (well, said) = doctor_for(&address);
    assert!(!well);
    says(&said, &format!("no script at {address}"), "Load script");
}

#[test]
fn a_script_of_another_version_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (_host, address) = Framewire::host_script(folder.path(), &paths::script(), "", &[]).unwrap();
    let (well, said) = doctor_for(&format!("localhost:{}", address.port()));
    assert!(well, "{said}");

    let version = env!("CARGO_PKG_VERSION");
    let script = fs::read_to_string(paths::script()).unwrap();
    assert!(script.contains(&format!("script = \"{version}\"")));
    let older = folder.path().join("older.lua");
    fs::write(&older, script.replace(&format!("script = \"{version}\""), "script = \"0.0.9\"")).unwrap();
    let (_host, address) = Framewire::host_script(folder.path(), &older, "", &[]).unwrap();
    let (well, said) = doctor_for(&address.to_string());
    assert!(!well);
    says(&said, &format!("script 0.0.9 answers at {address}"), "framewire script -o");
}

#[test]
fn a_silent_program_and_another_program_at_the_scripts_address_are_reported() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    says(&doctor_for(&address).1, &format!("{address} accepts connections and does not answer"), "paused");

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for client in other.incoming().flatten() {
            let _ = (&client).write_all(b"220 mail.example ready\r\n<|END|>");
        }
    });
    let said = doctor_for(&address).1;
    says(&said, &format!("another program listens at {address} by e2e"), "another port");
    assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
}

#[test]
fn a_taken_port_and_its_program_are_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let args = ["doctor", "--speed", "1", "--listen", &format!("http://localhost:{}", address.port())];
    let (status, said, _) = Framewire::run(&args, PATIENCE).unwrap();
    assert_eq!(status.code(), Some(1));
    says(&said, &format!("{address} is taken by e2e"), "--listen");
    assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
}

#[test]
fn doctor_checks_the_emulator_that_serve_would_use() {
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

/// Runs `doctor`. Returns whether it reports success, and its output.
fn doctor(args: &[&str]) -> (bool, String) {
    let (status, said, _) = Framewire::run(&[&["doctor"], args].concat(), PATIENCE).unwrap();
    (status.success(), said)
}

#[test]
fn a_running_framewire_is_not_reported_as_a_taken_port() {
    let framewire = Framewire::serve(&["--speed", "1"]).unwrap();
    let (well, said) = doctor(&["--listen", framewire.url()]);
    assert!(well, "{said}");
    let version = env!("CARGO_PKG_VERSION");
    let address = framewire.url().trim_start_matches("http://");
    assert!(
        said.contains(&format!("ok   framewire {version} serves at {address} by framewire (process")),
        "{said}"
    );
    assert!(said.contains("ok   its emulator demo (embedded) is running: FRAMEWIRE, frame "), "{said}");
    // The port and the process id may contain these digits too.
    let other = said.replace(address, "").replace(&format!("(process {})", framewire.pid()), "");
    assert!(!other.contains("8888"), "no window was requested: {said}");
}

#[test]
fn a_running_framewire_without_its_mgba_is_reported() {
    let address = format!("127.0.0.1:{}", ports::free());
    let framewire = Framewire::serve(&["--attach", &address]).unwrap();
    let (well, said) = doctor(&["--listen", framewire.url()]);
    assert!(!well, "{said}");
    says(&said, &format!("no connection to the mGBA at {address}"), "the server connects by itself");
}

#[test]
fn doctor_sends_its_token_to_a_running_framewire() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token").display().to_string();
    Framewire::run(&["token", &token], PATIENCE).unwrap();
    let framewire = Framewire::serve(&["--speed", "1", "--token-file", &token]).unwrap();
    let (well, said) = doctor(&["--listen", framewire.url()]);
    assert!(!well, "{said}");
    says(&said, "requires a token", "--token-file");
    let (well, said) = doctor(&["--listen", framewire.url(), "--token-file", &token]);
    assert!(well && said.contains("its emulator demo"), "{said}");
}

#[test]
fn settings_for_symbols_data_and_tokens_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file").display().to_string();
    fs::write(&file, "no folder").unwrap();
    let at = ["--speed", "1", "--listen", "127.0.0.1:0"];
    let (well, said) = doctor(&[&at[..], &["--symbols", "no-such-file.sym"]].concat());
    assert!(!well && said.contains("no-such-file.sym"), "{said}");
    let (well, said) = doctor(&[&at[..], &["--data", &format!("{file}/data")]].concat());
    assert!(!well, "{said}");
    says(&said, "cannot be kept in", "--data");
    let (well, said) = doctor(&[&at[..], &["--token-file", &file]].concat());
    assert!(!well && said.contains("--token-file"), "{said}");
    let data = folder.path().join("new/data").display().to_string();
    let map = paths::root().join("rom/memory-map.toml").display().to_string();
    let (well, said) = doctor(&[&at[..], &["--data", &data, "--symbols", &map]].concat());
    assert!(well && said.contains("are kept in") && said.contains("contains symbols"), "{said}");
    assert!(!folder.path().join("new").exists(), "doctor creates nothing");
}

#[test]
fn a_collector_of_traces_that_serve_refuses_is_reported() {
    let (well, said) =
        doctor(&["--speed", "1", "--listen", "127.0.0.1:0", "--otlp", "grpc://127.0.0.1:4317"]);
    // A build without the feature `otlp` refuses every collector.
    assert!(!well && said.lines().any(|line| line.starts_with("look --otlp")), "{said}");
}

#[test]
fn settings_of_games_that_serve_refuses_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    fs::write(file("file"), "nothing").unwrap();
    let (rom, text, missing) = (paths::rom().display().to_string(), file("file"), file("none/game.sav"));
    let two = format!("two={rom}");
    for (options, problem) in [
        (vec!["--gb-model", "vcs"], "--gb-model vcs: a model of the Game Boy is one of"),
        (vec!["--gb-palette", "red"], "--gb-palette red: a palette is four colours"),
        (vec!["--save-type", "disk"], "--save-type disk: the type of a save is one of"),
        (vec!["--bios", &text], "is not a BIOS"),
        (vec!["--patch", &text], text.as_str()),
        (vec!["--cheats", &text], text.as_str()),
        (vec!["--save", &missing], "cannot write"),
        (vec!["--save", folder.path().to_str().unwrap()], "is not a file"),
        (vec!["--save", &rom], "is the game itself"),
        (vec!["--cheats", "other=a.cheats"], "--cheats other=a.cheats: there is no emulator other"),
        (vec!["--rom", &two, "--save", "a.sav"], "--save a.sav: say for which emulator it is"),
    ] {
        let args = [&["--rom", &rom, "--listen", "127.0.0.1:0"], &options[..]].concat();
        let (well, said) = doctor(&args);
        let found = said.lines().any(|line| line.starts_with("look ") && line.contains(problem));
        assert!(!well && found, "{options:?}: {said}");
    }
    let save = file("new.sav");
    let (well, said) = doctor(&["--gb-model", "sgb", "--save", &save, "--listen", "127.0.0.1:0"]);
    assert!(well, "{said}");
    assert!(!folder.path().join("new.sav").exists(), "doctor creates nothing");
}

#[test]
fn a_running_framewire_with_a_certificate_is_not_reported_as_a_taken_port() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let (cert, key) = (file("cert.pem", cert.pem()), file("key.pem", signing_key.serialize_pem()));
    let framewire = Framewire::serve(&["--speed", "1", "--tls-cert", &cert, "--tls-key", &key]).unwrap();
    let address = framewire.url().trim_start_matches("https://");
    let (well, said) = doctor(&["--listen", address]);
    assert!(well, "{said}");
    assert!(
        said.contains(&format!("ok   framewire serves HTTPS at {address} by framewire (process")),
        "{said}"
    );
}

#[test]
fn the_token_is_not_sent_to_another_program_that_mentions_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token").display().to_string();
    Framewire::run(&["token", &token], PATIENCE).unwrap();
    for reply in [
        "HTTP/1.0 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"other\"\r\n\r\nsend a token",
        "HTTP/1.0 200 OK\r\n\r\n{\"status\":\"ok\",\"connected\":true,\"token\":\"none\"}",
        "HTTP/1.0 200 OK\r\n\r\na token",
    ] {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap().to_string();
        let (heard, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for mut client in other.incoming().flatten() {
                let mut request = [0; 4096];
                let length = client.read(&mut request).unwrap_or(0);
                heard.send(String::from_utf8_lossy(&request[..length]).into_owned()).unwrap();
                let _ = client.write_all(reply.as_bytes());
            }
        });
        let (well, said) = doctor(&["--speed", "1", "--listen", &address, "--token-file", &token]);
        assert!(!well && said.contains(&format!("{address} is taken by e2e")), "{said}");
        let requests: Vec<String> = requests.try_iter().collect();
        assert!(requests[0].starts_with("GET /healthz"), "{requests:?}");
        assert!(!requests.iter().any(|request| request.contains("Authorization")), "{requests:?}");
    }
}
