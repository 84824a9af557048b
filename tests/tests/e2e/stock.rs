//! Tests of the test helpers: a stock mGBA starts and can be controlled, and no process or file is left when it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use framewire_e2e::{Error, Key, Signal, StockMgba, StockOptions, TextClient, demo, paths, ports, until};

/// The time limit for an answer that should come in the next frame.
const SOON: Duration = Duration::from_secs(5);

/// A script that echoes data once per frame, like mGBA's own examples.
const ECHO: &str = r#"
local server = assert(socket.bind("127.0.0.1", framewire.port))
assert(server:listen(16))
console:log("echo on " .. framewire.port)
local clients = {}
callbacks:add("frame", function()
  local client = server:accept()
  while client do
    clients[#clients + 1] = client
    client = server:accept()
  end
  for _, client in ipairs(clients) do
    local data = client:receive(1024)
    if data then client:send(data) end
  end
end)
"#;

fn echo_script(folder: &Path) -> PathBuf {
    let script = folder.join("echo server.lua");
    fs::write(&script, ECHO).unwrap();
    script
}

fn start_echo() -> StockMgba {
    let folder = tempfile::tempdir().unwrap();
    let script = echo_script(folder.path());
    StockMgba::start(&StockOptions::new(&paths::rom()).script(&script).port(ports::free())).unwrap()
}

fn runs(pid: u32) -> bool {
    // A zombie (state Z) has ended, but its parent has not collected it yet.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

#[test]
fn a_script_answers_only_while_the_game_runs() {
    let mut mgba = start_echo();
    assert_eq!(mgba.console(), format!("log echo on {}\n", mgba.address().port()));
    assert!(mgba.title().unwrap().contains("FRAMEWIRE"), "{}", mgba.title().unwrap());

    let mut client = TextClient::connect(mgba.address(), SOON).unwrap();
    assert_eq!(client.ask("are you there").unwrap(), "are you there");

    mgba.pause().unwrap();
    client.set_limit(Duration::from_millis(300)).unwrap();
    assert!(client.ask("are you paused").is_err());

    mgba.next_frame().unwrap();
    client.set_limit(SOON).unwrap();
    assert_eq!(client.reply().unwrap(), "are you paused");

    mgba.resume().unwrap();
    assert_eq!(client.ask("and now").unwrap(), "and now");
}

#[test]
fn two_windows_run_at_the_same_time_and_leave_no_process_and_no_folder() {
    let (one, two) = (start_echo(), start_echo());
    let pids = [one.pid(), two.pid()];
    let folders = [one.dir().to_path_buf(), two.dir().to_path_buf()];
    for mgba in [&one, &two] {
        let mut client = TextClient::connect(mgba.address(), SOON).unwrap();
        assert_eq!(client.ask("hello").unwrap(), "hello");
    }
    drop((one, two));
    assert!(!pids.iter().any(|&pid| runs(pid)));
    assert!(!folders.iter().any(|folder| folder.exists()));
}

#[test]
fn closing_the_window_ends_the_program() {
    let mut mgba = start_echo();
    mgba.close_window().unwrap();
    assert_eq!(mgba.wait_exit(SOON).unwrap().code(), Some(0));
}

#[test]
fn a_signal_ends_the_program_and_the_next_call_reports_it() {
    let mut mgba = start_echo();
    mgba.signal(Signal::TERM).unwrap();
    assert!(!mgba.wait_exit(SOON).unwrap().success());
    let error = mgba.lua("return 1").unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error}");
}

#[test]
fn lua_code_reaches_the_game_and_its_errors_are_returned() {
    let mut mgba = StockMgba::start(&StockOptions::new(&paths::rom())).unwrap();
    assert_eq!(mgba.lua("return 1 + 1, 'two'").unwrap(), "2\ttwo");
    assert_eq!(mgba.lua("return emu:getGameTitle()").unwrap(), "FRAMEWIRE");
    let error = mgba.lua("error('no such luck', 0)").unwrap_err();
    assert!(matches!(&error, Error::Lua(message) if message == "no such luck"), "{error}");
    let error = mgba.lua("return +").unwrap_err();
    assert!(matches!(&error, Error::Lua(message) if message.contains("unexpected symbol")), "{error}");
}

#[test]
fn a_script_loads_from_the_menu_and_ends_with_a_reset() {
    let folder = tempfile::tempdir().unwrap();
    let script = echo_script(folder.path());
    let port = ports::free();
    let mut mgba = StockMgba::start(&StockOptions::new(&paths::rom()).port(port)).unwrap();
    mgba.load_script_by_menu(&script).unwrap();
    let mut client = TextClient::connect(mgba.address(), SOON).unwrap();
    assert_eq!(client.ask("hello").unwrap(), "hello");

    mgba.reset_scripts().unwrap();
    assert!(client.reply().is_err());
    assert!(TextClient::connect(mgba.address(), SOON).is_err());
}

#[test]
fn games_are_closed_and_opened_in_the_window() {
    let mut mgba = StockMgba::start(&StockOptions::without_game()).unwrap();
    assert_eq!(mgba.lua("return emu").unwrap(), "nil");
    mgba.open_rom(&paths::rom()).unwrap();
    let picture = mgba.picture().unwrap();
    assert!(picture.height > 160, "{}x{}", picture.width, picture.height);
    mgba.close_game().unwrap();
    assert_eq!(mgba.lua("return emu").unwrap(), "nil");
}

#[test]
fn a_keyboard_key_reaches_the_game() {
    let mut mgba = StockMgba::start(&StockOptions::new(&paths::rom())).unwrap();
    // The script waits for bit 0, the key A, in the demo game's field `held`. The test cannot run `mgba.lua` repeatedly
    // instead, because that types at a prompt, which takes the keyboard focus from the game.
    let watch = format!(
        r#"callbacks:add("frame", function()
        if emu:read16({}) & 1 == 1 then io.open("seen", "w"):close() end
    end)"#,
        demo::field("held")
    );
    mgba.lua(&watch).unwrap();
    let seen = mgba.dir().join("seen");
    assert!(!seen.exists());
    mgba.hold_key(Key::of('x')).unwrap();
    until("the game saw A held", SOON, || Ok(seen.exists())).unwrap();
    mgba.release_key(Key::of('x')).unwrap();
}

/// Not a test: [`nothing_outlives_a_test_process_that_is_killed`] runs and kills it.
#[test]
#[ignore = "holds a window until it is killed"]
fn hold_a_window() {
    let mgba = start_echo();
    println!("\nholding {} {}", mgba.pid(), mgba.dir().display());
    std::thread::sleep(Duration::from_secs(120));
}

#[test]
fn nothing_outlives_a_test_process_that_is_killed() {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stock::hold_a_window", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| line.unwrap().strip_prefix("holding ").map(str::to_owned)).unwrap();
    let (pid, folder) = line.split_once(' ').unwrap();
    let pid = pid.parse().unwrap();
    assert!(runs(pid));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let gone = until("mGBA was gone too", SOON, || Ok(!runs(pid)));
    // A killed process cannot remove its files.
    fs::remove_dir_all(folder).unwrap();
    gone.unwrap();
}
