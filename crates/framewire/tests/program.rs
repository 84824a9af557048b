//! Tests the program as users run it: one-shot commands, settings, and the MCP front end.
#![cfg(all(feature = "embedded", unix))]

#[path = "../../../tests/src/without_settings.rs"]
mod without_settings;

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use ureq::Agent;
use without_settings::without_settings;

const PROGRAM: &str = env!("CARGO_BIN_EXE_framewire");

/// A folder with a copy of the demo game.
fn folder_with_game() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let game = folder.path().join("game.gba");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rom/framewire-demo.gba"), &game).unwrap();
    (folder, game)
}

/// The names of the files in a folder, in alphabetical order.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A command that runs the program without the caller's settings in the environment.
fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    without_settings(&mut command);
    command
}

fn run(args: &[&str]) -> Output {
    program().args(args).output().unwrap()
}

#[track_caller]
fn succeeds(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command that must fail with this exit code. Returns what it wrote to standard error.
#[track_caller]
fn fails(args: &[&str], code: i32) -> String {
    let output = run(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    said
}

/// A process of `framewire serve`. It ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts the server in this folder, in which it also keeps its data.
    fn start(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Server {
        let mut child = program()
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .envs(variables.iter().copied())
            .env("FRAMEWIRE_DATA", folder.join("data"))
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Server { child, url }
    }

    /// Sends a `POST` request with a JSON body. Returns the status and the reply.
    fn post(&self, path: &str, body: &Json) -> (u16, Json) {
        post(&format!("{}{path}", self.url), body)
    }

    /// Whether clients can run Lua code.
    fn runs_scripts(&self) -> bool {
        self.post("/v1/script", &json!({"code": "return 1"})).0 == 200
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn post(url: &str, body: &Json) -> (u16, Json) {
    let agent: Agent = Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
    let request = agent
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    let mut reply = request.send(body.to_string()).unwrap();
    let text = reply.body_mut().read_to_string().unwrap();
    (reply.status().as_u16(), serde_json::from_str(&text).unwrap_or_default())
}

/// The message that calls a tool.
fn tool_call(name: &str, arguments: Json) -> Json {
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

/// The JSON in the reply to a call of a tool that succeeded.
#[track_caller]
fn result_of(reply: &Json) -> Json {
    assert_ne!(reply["result"]["isError"], true, "{reply}");
    let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"));
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_command_with_a_rom_leaves_no_files_even_if_it_is_killed() {
    let ((_folder, game), temporary) = (folder_with_game(), tempfile::tempdir().unwrap());
    let command = |args: &[&str]| {
        let mut command = program();
        command.args(args).arg("--rom").arg(&game).env("TMPDIR", temporary.path());
        command
    };
    assert_eq!(command(&["read", "lives"]).output().unwrap().status.code(), Some(0));
    assert_eq!(command(&["wait", "0", "--timeout", "0.3"]).output().unwrap().status.code(), Some(1));
    let mut watch = command(&["watch", "lives"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watch.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("lives"), "{line}");
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!(files(temporary.path()), [""; 0]);
}

#[test]
fn the_error_for_a_wrong_environment_variable_names_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let said = |args: &[&str], variable: &str, value: &str| {
        let mut command = program();
        let output = command.args(args).env(variable, value).current_dir(folder.path()).output().unwrap();
        assert!(!output.status.success(), "{args:?} {variable}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (args, variable, value) in [
        (&["serve"][..], "FRAMEWIRE_SPEED", "abc"),
        (&[], "FRAMEWIRE_HISTORY", "x"),
        (&["serve"], "FRAMEWIRE_QUIET", "maybe"),
        (&["serve"], "FRAMEWIRE_LOG_FORMAT", "x"),
        (&["serve"], "FRAMEWIRE_GB_MODEL", "x"),
        (&["serve"], "FRAMEWIRE_ALLOW_ORIGIN", "x"),
        (&["serve"], "FRAMEWIRE_SAVE_TYPE", "x"),
        (&["read", "lives"], "FRAMEWIRE_URL", "ftp://x"),
        (&["read", "lives"], "FRAMEWIRE_TOKEN_FILE", "missing"),
    ] {
        let text = said(args, variable, value);
        let option = format!("--{}", variable.replace("FRAMEWIRE_", "").replace('_', "-").to_lowercase());
        assert!(text.contains(variable) && !text.contains(&option), "{text}");
    }
    for args in [["serve", "--speed", "x"], ["serve", "--quiet", "--speed=x"]] {
        let text = said(&args, "FRAMEWIRE_SPEED", "2");
        assert!(text.contains("--speed") && !text.contains("FRAMEWIRE_SPEED"), "{text}");
    }
    let mut doctor = program();
    doctor.args(["doctor", "--listen", "127.0.0.1:0"]).env("FRAMEWIRE_TOKEN_FILE", "missing");
    let text = String::from_utf8(doctor.current_dir(folder.path()).output().unwrap().stdout).unwrap();
    assert!(text.contains("look FRAMEWIRE_TOKEN_FILE: ") && !text.contains("--token-file"), "{text}");
}

#[test]
fn the_error_for_a_wrong_value_in_the_settings_file_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("framewire.toml"), "gb-model = \"x\"\nlisten = \"y\"\n").unwrap();
    let said = |args: &[&str]| {
        let output = program().arg("serve").args(args).current_dir(folder.path()).output().unwrap();
        assert!(!output.status.success(), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (args, source) in [
        (&["--listen", "127.0.0.1:0"][..], "framewire.toml: gb-model x"),
        (&[], "framewire.toml: listen y"),
        (&["--listen", "z"], "--listen z"),
    ] {
        let text = said(args);
        assert!(text.contains(&format!("framewire: {source}")), "{text}");
    }
}

#[test]
fn the_folder_of_the_demo_game_of_a_killed_server_is_removed_at_the_next_start() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let start = || {
        let variables = [("TMPDIR", temporary.path().to_str().unwrap()), ("FRAMEWIRE_SPEED", "1")];
        Server::start(folder.path(), &[], &variables)
    };
    let killed = start();
    let first = files(temporary.path());
    assert_eq!(first.len(), 1, "{first:?}");
    let other = start();
    assert_eq!(files(temporary.path()).len(), 2, "the first server still uses its folder");
    drop(killed);
    let second = start();
    let left = files(temporary.path());
    assert!(left.len() == 2 && !left.contains(&first[0]), "{left:?}");
    drop((other, second));
}

#[test]
fn a_command_with_a_rom_uses_the_slots_next_to_the_rom_and_no_battery_save() {
    let (folder, game) = folder_with_game();
    let game = game.to_str().unwrap();
    let missing = fails(&["state", "load", "--rom", game, "--slot", "1"], 1);
    assert!(missing.contains("slot 1") && !missing.contains("ops[0]"), "{missing}");
    succeeds(&["state", "save", "--rom", game, "--after", "100", "--slot", "1"]);
    assert_eq!(files(folder.path()), ["game.gba", "game.ss1"]);
    let loaded = succeeds(&["state", "load", "--rom", game, "--slot", "1"]);
    assert!(loaded.starts_with("slot 1: loaded"), "{loaded}");
    fs::write(folder.path().join("game.sav"), [7_u8; 16]).unwrap();
    succeeds(&["read", "--rom", game, "--after", "10", "lives"]);
    assert_eq!(fs::read(folder.path().join("game.sav")).unwrap(), [7_u8; 16]);
}

#[test]
fn a_replay_opens_the_file_of_the_rom_and_not_a_temporary_copy() {
    let (folder, game) = folder_with_game();
    let server = Server::start(folder.path(), &["game.gba"], &[]);
    assert_eq!(server.post("/v1/pause", &json!({})).0, 200);
    assert_eq!(server.post("/v1/recordings", &json!({"name": "run"})).0, 201);
    assert_eq!(server.post("/v1/advance", &json!({"frames": 120})).0, 200);
    let ended = result_of(&server.post("/mcp", &tool_call("record", json!({"action": "stop"}))).1);
    assert_eq!(ended["frames"], 120, "{ended}");
    let save = folder.path().join("other.sav");
    let rom = folder.path().join("other.gba");
    fs::copy(&game, &rom).unwrap();
    fs::write(&save, [7_u8; 16]).unwrap();
    // A temporary copy cannot be written, because there is no such folder.
    let replay = |rom: &Path| {
        let mut command = program();
        command.arg("replay").arg(folder.path().join("data/recordings/run.fwr")).arg("--rom").arg(rom);
        command.env("TMPDIR", folder.path().join("missing")).output().unwrap()
    };
    let output = replay(&rom);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read(&save).unwrap(), [7_u8; 16]);
    fs::write(&rom, [1; 64]).unwrap();
    let output = replay(&rom);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("other.gba is not a Game Boy Advance"), "{said}");
}

#[test]
fn an_error_about_a_savestate_names_its_file() {
    let (_folder, game) = folder_with_game();
    let game = game.to_str().unwrap();
    for args in
        [&["state", "load", "--rom", game, game][..], &["read", "--rom", game, "--from", game, "lives"]]
    {
        let said = fails(args, 2);
        assert!(said.contains("game.gba: not a savestate"), "{said}");
    }
}

#[test]
fn doctor_checks_scripts_and_the_channel_as_serve_does() {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let broken = script("broken.lua", "local a = 1\nlocal = 2\n");
    let sound = script("sound.lua", "io.open('ran', 'w'):close()\n");
    let channel = format!("doctor-{}", std::process::id());
    let doctor = |options: &[&str]| {
        let args = [&["doctor", "--listen", "127.0.0.1:0"], options].concat();
        let output = program().args(args).current_dir(folder.path()).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (well, said) = doctor(&["--lua", &sound, "--channel", &channel]);
    assert!(well && said.contains("sound.lua is a Lua script") && said.contains(&channel), "{said}");
    assert!(!folder.path().join("ran").exists(), "doctor runs no scripts");
    let server = Server::start(folder.path(), &["--channel", &channel], &[]);
    for (options, problem) in [
        (["--lua", "missing.lua"], "cannot read missing.lua"),
        (["--lua", &broken], "broken.lua:2: "),
        (["--channel", "a/b"], "a channel cannot be called \"a/b\""),
        (["--channel", &channel], "is served already"),
    ] {
        let (well, said) = doctor(&options);
        let found = said.lines().any(|line| line.starts_with("look ") && line.contains(problem));
        assert!(!well && found, "{options:?}: {said}");
    }
    drop(server);
    // The server was killed, so it has left its shared memory.
    fs::remove_file(format!("/dev/shm/framewire.{channel}")).unwrap();
}

#[test]
fn a_variable_switches_off_what_the_settings_file_allows() {
    let (folder, _game) = folder_with_game();
    fs::write(folder.path().join("framewire.toml"), "rom = \"game.gba\"\nallow-script = true\n").unwrap();
    assert!(Server::start(folder.path(), &[], &[]).runs_scripts());
    assert!(!Server::start(folder.path(), &[], &[("FRAMEWIRE_ALLOW_SCRIPT", "false")]).runs_scripts());
    let server = Server::start(folder.path(), &["--allow-script"], &[("FRAMEWIRE_ALLOW_SCRIPT", "false")]);
    assert!(server.runs_scripts());
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_an_end_is_refused() {
    let cases: [(&[&str], i32, &str); 4] = [
        (&["serve", "--config", "/dev/zero"], 1, "at most 1048576 bytes"),
        (&["state", "load", "/dev/zero"], 2, "at most 16777216 bytes"),
        (&["replay", "/dev/zero"], 2, "at most 33554432 bytes"),
        (
            &["read", "score", "--url", "https://localhost:1", "--cacert", "/dev/zero"],
            2,
            "at most 16777216 bytes",
        ),
    ];
    for (args, code, limit) in cases {
        let said = fails(args, code);
        assert!(said.contains("cannot read /dev/zero") && said.contains(limit), "{args:?}: {said}");
    }
    let endless = fs::File::open("/dev/zero").unwrap();
    let output = program().args(["state", "load", "-"]).stdin(endless).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot read -: it is too large"), "{said}");
}

/// A shell passes `<(...)` as such a pipe.
#[test]
fn a_settings_file_can_be_a_pipe() {
    let mut command = program();
    let mut child = command
        .args(["serve", "--config", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"speed = 0").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/dev/stdin is not a valid settings file"), "{said}");
}

#[test]
fn an_empty_address_is_refused_before_a_request() {
    for args in [&["read", ""][..], &["write", "", "5"]] {
        let said = fails(args, 2);
        assert!(said.contains("ADDRESS"), "{said}");
    }
}

#[test]
fn a_press_that_fails_says_that_the_game_is_paused() {
    let (folder, _game) = folder_with_game();
    let server = Server::start(folder.path(), &["game.gba", "--deadline", "0.3"], &[]);
    assert_eq!(server.post("/v1/pause", &json!({})).0, 200);
    // The second press fails at once, because the keys of the first one are still waiting.
    for _ in 0..2 {
        let said = fails(&["press", "A", "--url", &server.url], 1);
        assert!(said.contains("the emulator is paused; POST /v1/resume continues it"), "{said}");
    }
}

/// Starts a server over TLS. Writes its certificate to the file `cert.pem` in the folder.
fn secure_server(folder: &Path, certificate: &CertificateParams) -> Server {
    let key = KeyPair::generate().unwrap();
    fs::write(folder.join("cert.pem"), certificate.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    fs::set_permissions(folder.join("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    Server::start(folder, &["game.gba", "--tls-cert", "cert.pem", "--tls-key", "key.pem"], &[])
}

#[test]
fn an_error_about_a_certificate_says_what_to_do_about_this_error() {
    let certificate = |name: &str| CertificateParams::new(vec![name.to_owned()]).unwrap();
    let (valid, other_name) = (certificate("127.0.0.1"), certificate("desk.example"));
    let mut expired = valid.clone();
    expired.not_after = date_time_ymd(2020, 1, 1);
    for (certificate, advice) in [
        (&other_name, "use a name or an address that is in the server's certificate"),
        (&expired, "make a new certificate for the server, or check the clock of this machine"),
    ] {
        let (folder, _game) = folder_with_game();
        let server = secure_server(folder.path(), certificate);
        let own = folder.path().join("cert.pem");
        let args = ["read", "0x02000000", "--url", &server.url, "--cacert", own.to_str().unwrap()];
        let said = fails(&args, 3);
        assert!(said.contains(advice) && !said.contains("--cacert"), "{said}");
    }
    let (folder, _game) = folder_with_game();
    let server = secure_server(folder.path(), &valid);
    let [own, other] =
        ["cert.pem", "other.pem"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    fs::write(&other, valid.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()).unwrap();
    succeeds(&["read", "0x02000000", "--url", &server.url, "--cacert", &own]);
    let said = fails(&["read", "0x02000000", "--url", &server.url, "--cacert", &other], 3);
    assert!(said.contains("--cacert must name the server's certificate"), "{said}");
    let said = fails(&["read", "0x02000000", "--url", &server.url], 3);
    assert!(said.contains("name the server's certificate with --cacert FILE"), "{said}");
}

#[test]
fn a_tool_on_one_emulator_does_not_wait_for_a_tool_on_another() {
    let (folder, game) = folder_with_game();
    fs::copy(&game, folder.path().join("other.gba")).unwrap();
    let server = Server::start(folder.path(), &["--rom", "one=game.gba", "--rom", "two=other.gba"], &[]);
    let url = format!("{}/mcp?emulator=one", server.url);
    // This takes four seconds, because the game runs at the console's speed.
    let waiting =
        std::thread::spawn(move || post(&url, &tool_call("wait", json!({"until": "0", "frames": 240}))));
    sleep(Duration::from_millis(300));
    let (_, reply) = server.post("/mcp?emulator=two", &tool_call("act", json!({"keys": "A"})));
    assert_eq!(result_of(&reply)["frames"], 1);
    assert!(!waiting.is_finished(), "the tools ran one after the other");
    assert_eq!(result_of(&waiting.join().unwrap().1)["frames"], 240);
}

/// A process of `framewire mcp`, and a session with it.
struct Mcp {
    child: Child,
    writer: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Mcp {
    fn start(args: &[&str]) -> Mcp {
        let mut child = program()
            .arg("mcp")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (writer, reader) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut mcp = Mcp { child, writer, lines: BufReader::new(reader).lines() };
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        mcp.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        mcp.receive();
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        mcp
    }

    fn send(&mut self, message: &Json) {
        writeln!(self.writer, "{message}").unwrap();
    }

    fn receive(&mut self) -> Json {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    #[track_caller]
    fn call(&mut self, tool: &str, arguments: Json) -> Json {
        self.send(&tool_call(tool, arguments));
        result_of(&self.receive())
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_text_is_found_in_this_process_and_on_another_server() {
    let (folder, game) = folder_with_game();
    let server = Server::start(folder.path(), &["game.gba"], &[]);
    let data = folder.path().join("mcp");
    let data = ["--data", data.to_str().unwrap()];
    for place in [["--rom", game.to_str().unwrap()], ["--url", &server.url]] {
        let mut mcp = Mcp::start(&[place, data].concat());
        // The game does not use the end of its work RAM.
        mcp.call("write", json!({"address": "0x0203fff0", "bytes": "48414c4c4f"}));
        let found = mcp.call("text", json!({"find": "HALLO", "domain": "wram"}));
        assert_eq!(found["total"], 1, "{found}");
        assert_eq!(found["found"][0]["address"], "0x0203fff0", "{found}");
        let found = mcp.call("text", json!({"find": "HALLO"}));
        assert_eq!(found["total"], 1, "{found}");
    }
}

#[test]
fn options_for_a_server_are_refused_by_framewire_mcp_without_one() {
    for option in ["--emulator", "--token-file", "--cacert"] {
        for emulator in [&["game.gba"][..], &["--rom", "game.gba"], &["--attach", "127.0.0.1:1"], &[]] {
            let said = fails(&[&["mcp", option, "x"], emulator].concat(), 2);
            assert!(said.contains(option), "{emulator:?}: {said}");
        }
    }
}

#[test]
fn options_for_a_server_are_refused_with_a_rom_but_not_its_variables() {
    let (_folder, game) = folder_with_game();
    let rom = game.to_str().unwrap();
    for (option, value) in [
        ("--url", "http://127.0.0.1:1"),
        ("--emulator", "x"),
        ("--token-file", "missing"),
        ("--cacert", "missing"),
    ] {
        let said = fails(&["read", "lives", "--rom", rom, option, value], 2);
        assert!(said.contains(&format!("--rom cannot be used with {option}")), "{said}");
        fails(&["screenshot", "--rom", rom, &format!("{option}={value}")], 2);
    }
    let mut command = program();
    command.args(["read", "lives", "--rom", rom]);
    command.env("FRAMEWIRE_URL", "http://127.0.0.1:1").env("FRAMEWIRE_TOKEN_FILE", "missing");
    assert!(command.output().unwrap().status.success());
}

#[test]
fn the_battery_save_is_written_when_a_signal_ends_framewire_mcp() {
    let (folder, game) = folder_with_game();
    let data = folder.path().join("data");
    // A save that is written too late is lost only sometimes, so the test is repeated.
    for byte in ["11", "22", "33", "44", "55"] {
        let mut mcp = Mcp::start(&["--rom", game.to_str().unwrap(), "--data", data.to_str().unwrap()]);
        mcp.call("write", json!({"address": "0x0e000100", "bytes": byte}));
        let killed = Command::new("kill").args(["-TERM", &mcp.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert!(mcp.child.wait().unwrap().success());
        let save = fs::read(folder.path().join("game.sav")).unwrap();
        assert_eq!(save.get(0x100), Some(&u8::from_str_radix(byte, 16).unwrap()));
    }
}

#[test]
fn calls_that_arrive_together_run_their_frames_in_the_order_of_the_calls() {
    let (folder, game) = folder_with_game();
    let data = folder.path().join("data");
    let mut mcp = Mcp::start(&["--rom", game.to_str().unwrap(), "--data", data.to_str().unwrap()]);
    let calls: Vec<Json> = (10..30)
        .map(|id| {
            let mut call = tool_call("act", json!({"keys": "A:2 .:3"}));
            call["id"] = id.into();
            call
        })
        .collect();
    let text: String = calls.iter().map(|call| format!("{call}\n")).collect();
    mcp.writer.write_all(text.as_bytes()).unwrap();
    for number in 0..calls.len() {
        let reply = mcp.receive();
        let expected = (json!(10 + number), json!(5 * (number + 1)));
        assert_eq!((reply["id"].clone(), result_of(&reply)["frame"].clone()), expected);
    }
}

#[test]
fn a_wait_that_ends_with_the_server_does_not_look_like_a_condition_that_is_not_true() {
    let (folder, _game) = folder_with_game();
    let mut server = Server::start(folder.path(), &["game.gba"], &[]);
    let mut wait = program()
        .args(["wait", "0", "--timeout", "60", "--url", &server.url])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let agent: Agent = Agent::config_builder().proxy(None).build().into();
    let has_begun = || {
        let mut metrics = agent.get(format!("{}/metrics", server.url)).call().unwrap();
        metrics.body_mut().read_to_string().unwrap().contains("framewire_streams{kind=\"wait\"} 1")
    };
    while !has_begun() {
        assert!(wait.try_wait().unwrap().is_none(), "the wait has ended");
        sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap().success());
    let output = wait.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the server is stopping"), "{said}");
    server.child.wait().unwrap();
}
