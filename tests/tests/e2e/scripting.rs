//! Tests with clients that run Lua code in a window.

use framewire_e2e::Reply;
use serde_json::{Value, json};

use super::served::{Served, wait_until};

/// Opens a window whose script has these settings, and starts a server with these arguments.
fn window(settings: &str, arguments: &[&str]) -> Served {
    Served::window(|options| options.lua(settings), arguments)
}

fn ask(window: &Served, code: &str) -> Reply {
    window.http.send_json("POST", "/v1/script", &json!({"code": code})).unwrap()
}

#[track_caller]
fn run(window: &Served, code: &str) -> Value {
    window.ask("POST", "/v1/script", &json!({"code": code}), 200)
}

const PLACE: &str = "0x02000100";

#[test]
fn a_window_that_allows_code_runs_it() {
    let window = window("framewire.allow_script = true", &["--allow-script"]);
    let reply =
        run(&window, &format!("print(emu:getGameTitle()) emu:write8({PLACE}, 9) return emu:read8({PLACE})"));
    assert_eq!((&reply["values"], &reply["output"]), (&json!([9]), &json!(["FRAMEWIRE"])), "{reply}");
    let scratch = format!("/core/read8?address={PLACE}");
    assert_eq!(window.http.get(&scratch).unwrap().text(), "9");
    let reply = run(
        &window,
        "n = (n or 0) + 1\nreturn n, #emu:readRange(0x02000000, 300), emu.memory.wram:size() > 0",
    );
    assert_eq!(reply["values"], json!([1, 300, true]));
    assert_eq!(run(&window, "return n")["values"], json!([1]));
    let error = run(&window, "local x\nx.y = 1")["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("script:2: attempt to index"), "{error}");
    for code in ["while true do end", "while true do pcall(error) end", "emu:runFrame()", "emu:reset()"] {
        assert!(run(&window, code)["error"].is_string(), "{code}");
    }
    let frame = window.number("/core/currentframe");
    wait_until("more frames run", || Ok(window.number("/core/currentframe") > frame + 30));
}

#[test]
fn both_the_server_and_the_window_have_to_allow_code() {
    let code = format!("emu:write8({PLACE}, 9)");
    for (settings, arguments, status, says) in [
        ("framewire.allow_script = true", &[][..], 403, "--allow-script"),
        ("", &["--allow-script"][..], 501, "allow_script = true"),
    ] {
        let window = window(settings, arguments);
        let reply = ask(&window, &code);
        assert!(reply.status == status && reply.text().contains(says), "{} {}", reply.status, reply.text());
        assert_eq!(window.http.get(&format!("/core/read8?address={PLACE}")).unwrap().text(), "0");
    }
}
