//! Tests with clients that run Lua code in a window.

use framewire_e2e::{Framewire, Http, Reply, StockMgba, StockOptions, paths, ports, until};
use serde_json::{Value, json};

use super::served::{PATIENCE, demo_copy};

/// A window and a server that is attached to it.
struct Window {
    http: Http,
    _server: Framewire,
    _mgba: StockMgba,
    _folder: tempfile::TempDir,
}

impl Window {
    /// Opens a window whose script has these settings, and starts a server with these arguments.
    fn open(settings: &str, arguments: &[&str]) -> Window {
        let folder = tempfile::tempdir().unwrap();
        let rom = demo_copy(&folder);
        let port = ports::free();
        let options = StockOptions::new(&rom).script(&paths::script()).port(port).lua(settings);
        let mgba = StockMgba::start(&options).unwrap();
        let address = format!("127.0.0.1:{port}");
        let server = Framewire::serve(&[&["--attach", &address], arguments].concat()).unwrap();
        let http = server.http();
        until("the emulator answers", PATIENCE, || Ok(http.get("/core/currentframe")?.status == 200))
            .unwrap();
        Window { http, _server: server, _mgba: mgba, _folder: folder }
    }

    fn ask(&self, code: &str) -> Reply {
        let body = json!({"code": code}).to_string().into_bytes();
        self.http.send("POST", "/v1/script", "application/json", body).unwrap()
    }

    #[track_caller]
    fn run(&self, code: &str) -> Value {
        let reply = self.ask(code);
        assert_eq!(reply.status, 200, "{}", reply.text());
        serde_json::from_str(&reply.text()).unwrap()
    }

    fn frame(&self) -> u32 {
        self.http.get("/core/currentframe").unwrap().text().parse().unwrap()
    }
}

const PLACE: &str = "0x02000100";

#[test]
fn a_window_that_allows_code_runs_it() {
    let window = Window::open("framewire.allow_script = true", &["--allow-script"]);
    let reply =
        window.run(&format!("print(emu:getGameTitle()) emu:write8({PLACE}, 9) return emu:read8({PLACE})"));
    assert_eq!((&reply["values"], &reply["output"]), (&json!([9]), &json!(["FRAMEWIRE"])), "{reply}");
    let scratch = format!("/core/read8?address={PLACE}");
    assert_eq!(window.http.get(&scratch).unwrap().text(), "9");
    let reply =
        window.run("n = (n or 0) + 1\nreturn n, #emu:readRange(0x02000000, 300), emu.memory.wram:size() > 0");
    assert_eq!(reply["values"], json!([1, 300, true]));
    assert_eq!(window.run("return n")["values"], json!([1]));
    let error = window.run("local x\nx.y = 1")["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("script:2: attempt to index"), "{error}");
    for code in ["while true do end", "while true do pcall(error) end", "emu:runFrame()", "emu:reset()"] {
        assert!(window.run(code)["error"].is_string(), "{code}");
    }
    let frame = window.frame();
    until("further frames", PATIENCE, || Ok(window.frame() > frame + 30)).unwrap();
}

#[test]
fn both_the_server_and_the_window_have_to_allow_code() {
    let code = format!("emu:write8({PLACE}, 9)");
    for (settings, arguments, status, says) in [
        ("framewire.allow_script = true", &[][..], 403, "--allow-script"),
        ("", &["--allow-script"][..], 501, "allow_script = true"),
    ] {
        let window = Window::open(settings, arguments);
        let reply = window.ask(&code);
        assert!(reply.status == status && reply.text().contains(says), "{} {}", reply.status, reply.text());
        assert_eq!(window.http.get(&format!("/core/read8?address={PLACE}")).unwrap().text(), "0");
    }
}
