//! Tests the tools with backends that have fixed replies.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use framewire_media::png::Pixels;
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::backend::{Backend, CallFuture, EndFuture};
use crate::session::Options;

#[test]
fn each_schema_is_an_object_without_alternatives() {
    for tool in &ALL {
        let schema = tool.schema();
        assert_eq!(schema.get("type"), Some(&Json::from("object")), "{}", tool.name);
        for name in tool.required {
            assert!(schema["properties"].get(name).is_some(), "{}: {name}", tool.name);
        }
        let text = Json::Object(schema).to_string();
        for word in ["anyOf", "oneOf", "allOf", "$ref"] {
            assert!(!text.contains(word), "{}: {word}", tool.name);
        }
    }
}

/// A backend whose replies are the results of this function.
struct FixedBackend<F>(F);

impl<F: Fn(&str, &Json) -> Result<Json, Problem> + Send + Sync> Backend for FixedBackend<F> {
    fn call<'a>(&'a self, method: &'a str, params: Object) -> CallFuture<'a> {
        let reply = (self.0)(method, &params.into());
        Box::pin(async { reply })
    }

    fn only_reads(&self) -> bool {
        false
    }

    fn stopped(&self) -> EndFuture<'_> {
        Box::pin(std::future::pending())
    }
}

fn session_with(replies: fn(&str, &Json) -> Option<Json>) -> Arc<Session> {
    session_of(replies, Options::default())
}

/// A session with a backend that has replies to some methods. The others fail.
fn session_of(replies: fn(&str, &Json) -> Option<Json>, options: Options) -> Arc<Session> {
    let backend = FixedBackend(move |method: &str, params: &Json| {
        let missing = || Problem { status: 404, detail: format!("{method} has no reply") };
        replies(method, params).ok_or_else(missing)
    });
    Arc::new(Session::new(Arc::new(backend), options, Arc::default()))
}

/// A session with a backend whose methods all fail for this reason.
fn session_that_fails(why: &'static str) -> Arc<Session> {
    let problem = move |_: &str, _: &Json| Err(Problem { status: 409, detail: why.to_owned() });
    Arc::new(Session::new(Arc::new(FixedBackend(problem)), Options::default(), Arc::default()))
}

/// The arguments of a call.
fn given(arguments: Json) -> Object {
    let Json::Object(arguments) = arguments else { panic!("{arguments} is not an object") };
    arguments
}

#[tokio::test]
async fn resume_lists_the_latest_snapshots_and_not_the_first_by_name() {
    let session = session_with(|method, params| {
        let snapshot =
            |name: &str, second: u32| json!({"name": name, "time": format!("2026-11-25T07:00:{second:02}Z")});
        let offset = params["offset"].as_u64().unwrap();
        (method == "snapshots").then(|| match offset {
            0 => json!({"snapshots": [snapshot("a", 1), snapshot("b", 9)], "next": 2}),
            _ => {
                json!({"snapshots": [snapshot("c", 5), snapshot("d", 5), snapshot("e", 3)], "next": null})
            }
        })
    });
    let latest = control::latest_snapshots(&session, 3).await.ok().unwrap();
    let names: Vec<&str> = latest.iter().filter_map(|snapshot| snapshot["name"].as_str()).collect();
    assert_eq!(names, ["b", "d", "c"]);
}

#[tokio::test]
async fn symbols_lists_structures_and_says_if_there_are_more_names() {
    let session = session_with(|_, params| {
        let party = json!({"name": "party", "pointer": "u32[scratch] + 4", "type": "monster", "count": 3, "size": 8,
            "fields": [{"name": "hp", "offset": 2, "type": "u16", "count": 1, "doc": "What is left."},
                {"name": "moves", "offset": 4, "type": "u8", "count": 4}]});
        let scratch = json!({"name": "scratch", "address": 0x0200_0100, "type": "u8", "count": 256});
        let (count, more) = if params["contains"] == "a" { (1, false) } else { (60, true) };
        Some(json!({"symbols": vec![scratch; count], "more": more, "variables": [party]}))
    });
    let symbols = async |contains: &str| {
        let arguments = given(json!({"contains": contains}));
        memory::symbols(session.clone(), arguments).await.ok().unwrap().json
    };
    let party = "party monster[3] u32[scratch] + 4; .hp u16 What is left.; .moves u8[4]";
    assert_eq!(symbols("a").await, json!({"symbols": [party, "scratch u8[256] 0x02000100"]}));
    let all = symbols("").await;
    assert_eq!((all["symbols"].as_array().unwrap().len(), &all["symbols"][0]), (50, &json!(party)));
    assert_eq!((&all["left_out"], &all["hint"]), (&json!("more than 11"), &json!("use contains")));
}

#[tokio::test]
async fn a_refused_watch_does_not_change_the_watched_expressions() {
    let session = session_with(|method, _| {
        (method == "batch").then(|| json!({"frame": 1, "results": [{"value": {"score": 0}}]}))
    });
    for (frames, is_accepted) in [(json!(null), true), (json!(0), false), (json!(36_001), false)] {
        let values = if is_accepted { json!(["score"]) } else { json!(["lives"]) };
        let arguments = given(json!({"values": values, "frames": frames}));
        let reply = acting::watch(session.clone(), arguments).await;
        assert_eq!(reply.is_ok(), is_accepted, "{frames}");
        assert_eq!(session.memory.lock().watched, ["score"], "{frames}");
    }
}

/// The reply to the first call was lost, with its picture.
#[tokio::test]
async fn a_call_repeated_with_its_key_returns_its_picture_again() {
    let session = session_with(|method, _| {
        let ran =
            json!({"frame": 2, "why": "frames", "frames": 2, "steps": [{}], "then": [{"value": "AAAA"}]});
        (method == "run").then_some(ran)
    });
    let mut pictures = Vec::new();
    for key in [Some("k"), Some("k"), Some("l"), None] {
        let arguments = given(json!({"keys": "A:2", "picture": {}, "key": key}));
        let reply = acting::act(session.clone(), arguments).await.ok().unwrap();
        pictures.push(reply.picture.is_some());
    }
    // The last two calls repeat no call, and the client already has this picture.
    assert_eq!(pictures, [true, true, false, false]);
}

#[tokio::test]
async fn a_call_with_a_key_does_not_depend_on_the_watched_expressions() {
    let session = session_with(|method, params| {
        let ran = json!({"frame": 2, "why": "frames", "frames": 2, "steps": [{}], "then": []});
        (method == "run" && params["ops"].is_null() && params["then"] == json!([])).then_some(ran)
    });
    session.memory.lock().watched = vec!["score".to_owned()];
    let reply = acting::act(session, given(json!({"keys": "A:2", "key": "k"}))).await.ok().unwrap();
    assert!(reply.json["changed"].is_null(), "{}", reply.json);
}

#[tokio::test]
async fn a_replay_waits_for_calls_that_run_frames() {
    let session = session_with(|method, _| (method == "replayRecording").then(|| json!({"equal": true})));
    let playing = session.playing.lock().await;
    let arguments = given(json!({"action": "replay", "name": "run"}));
    let mut waiting = std::pin::pin!(control::record(session.clone(), arguments));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(playing);
    assert_eq!(waiting.await.ok().unwrap().json, json!({"equal": true}));
}

#[tokio::test]
async fn a_picture_does_not_count_as_sent_if_the_note_fails() {
    let replies = |method: &str, _: &Json| match method {
        "run" => Some(
            json!({"frame": 2, "why": "frames", "frames": 2, "steps": [{}], "then": [{"value": "AAAA"}]}),
        ),
        "emulatorState" => Some(json!({"title": "GAME", "checksum": "00000000"})),
        _ => None,
    };
    // There can be no folder here, because a file is in its place.
    let file = tempfile::NamedTempFile::new().unwrap();
    let options = Options { notes: Some(file.path().join("notes")), ..Options::default() };
    let session = session_of(replies, options);
    let act = async |arguments: Json| acting::act(session.clone(), given(arguments)).await;
    let ToolError(error) = act(json!({"keys": "A:2", "picture": {}, "note": "here"})).await.err().unwrap();
    assert!(error.contains("the note cannot be written"), "{error}");
    let reply = act(json!({"keys": "A:2", "picture": {}})).await.ok().unwrap();
    assert!(reply.picture.is_some(), "{}", reply.json);
}

#[tokio::test]
async fn the_note_of_a_call_is_left_out_only_if_the_call_is_a_repeat() {
    let replies = |method: &str, _: &Json| match method {
        // A snapshot is loaded before each attempt, so each ends in the same frame.
        "run" => Some(json!({"frame": 9, "why": "frames", "frames": 2, "steps": [{}], "then": []})),
        "emulatorState" => Some(json!({"title": "GAME", "checksum": "00000000"})),
        _ => None,
    };
    let folder = tempfile::tempdir().unwrap();
    let options = Options { notes: Some(folder.path().to_owned()), ..Options::default() };
    let session = session_of(replies, options);
    for (key, note) in [
        (Some("first"), "a door"),
        (Some("second"), "a key"),
        (Some("first"), "a door"),
        (Some("third"), "a door"),
        (None, "a wall"),
        (None, "a wall"),
    ] {
        let arguments = given(json!({"keys": "A:2", "note": note, "key": key}));
        acting::act(session.clone(), arguments).await.ok().unwrap();
    }
    let notes = crate::notes::last(&session, 12).await.ok().unwrap();
    let texts: Vec<&str> = notes.iter().map(|note| note.note.as_str()).collect();
    assert_eq!(texts, ["a door", "a key", "a door", "a wall", "a wall"]);
}

#[tokio::test]
async fn a_recording_that_has_ended_is_not_said_to_be_under_way() {
    let running: fn(&str, &Json) -> Option<Json> = |method, _| resumed(method, Json::Null);
    let over: fn(&str, &Json) -> Option<Json> =
        |method, _| resumed(method, "the console was reset after frame 9".into());
    for (replies, expected) in [(running, json!("run")), (over, Json::Null)] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { notes: Some(folder.path().to_owned()), ..Options::default() };
        let session = session_of(replies, options);
        acting::act(session.clone(), given(json!({"keys": "A:2", "note": "here"}))).await.ok().unwrap();
        let notes = crate::notes::last(&session, 1).await.ok().unwrap();
        assert_eq!(json!(notes[0].recording), expected);
        let reply = resuming::resume(session, Object::new()).await.ok().unwrap();
        assert_eq!(reply.json["recording"], expected);
    }
}

/// The replies for a note and for `resume`, with a recording that has `ended` for this reason.
fn resumed(method: &str, ended: Json) -> Option<Json> {
    match method {
        "run" => Some(json!({"frame": 2, "why": "frames", "frames": 2, "steps": [{}], "then": []})),
        "batch" => Some(json!({"frame": 2, "results": [{"value": {}}, {"value": "AAAA"}]})),
        "emulatorState" => Some(json!({"title": "GAME", "checksum": "00000000", "run": "paused"})),
        "recordingUnderWay" => Some(json!({"name": "run", "ended": ended})),
        _ => None,
    }
}

#[tokio::test]
async fn a_found_text_has_the_address_of_its_bank() {
    let session = session_with(|method, _| {
        let place = json!({"domain": "wram", "offset": 0x2010, "bank": 2, "address": 0xd010, "symbol": null,
            "watch": "bytes[wram:0x2010, 2]", "data": "4841"});
        (method == "find").then(|| json!({"frame": 1, "count": 1, "places": [place]}))
    });
    let reply = memory::text(session, given(json!({"find": "HA"}))).await.ok().unwrap().json;
    let place = json!({"domain": "wram", "offset": 0x2010, "bank": 2, "address": "0x0000d010"});
    assert_eq!(reply, json!({"found": [place], "total": 1}));
}

#[tokio::test]
async fn a_text_in_a_large_domain_is_found_once_even_where_two_searches_meet() {
    // The emulator has the text at these offsets.
    const PLACES: [u64; 4] = [0, 0xf_ffff, 0x10_0000, 0x1f_fffd];
    let session = session_with(|method, params| match method {
        "v1.domains" => {
            Some(json!({"domains": [{"id": "wram", "size": 4}, {"id": "cart0", "size": 0x20_0000}]}))
        }
        "find" => {
            let area = &params["areas"][0];
            let (first, length) = (area["address"].as_u64()?, area["length"].as_u64()?);
            assert!(area["domain"] == "cart0" && length <= 1 << 20, "{area}");
            let found = PLACES.into_iter().filter(|at| *at >= first && at + 3 <= first + length);
            let places: Vec<Json> = found.map(|at| json!({"domain": "cart0", "offset": at})).collect();
            Some(json!({"count": places.len(), "places": places}))
        }
        _ => None,
    });
    let find = async |domain: &str| {
        memory::text(session.clone(), given(json!({"find": "HAL", "domain": domain}))).await
    };
    let reply = find("cart0").await.ok().unwrap().json;
    let offsets: Vec<u64> =
        reply["found"].as_array().unwrap().iter().map(|place| place["offset"].as_u64().unwrap()).collect();
    assert_eq!((offsets, &reply["total"]), (PLACES.to_vec(), &json!(4)));
    let ToolError(error) = find("sram").await.err().unwrap();
    assert_eq!(error, "domain is \"sram\"; use one of wram, cart0");
}

#[tokio::test]
async fn an_argument_that_an_action_does_not_use_is_refused_and_not_ignored() {
    let session = session_with(|method, _| match method {
        "recordingUnderWay" => Some(json!({"name": "run"})),
        _ => Some(json!({"id": 1, "count": 1000, "frame": 0})),
    });
    let call = async |name: &str, arguments: Json| {
        let tool = ALL.iter().find(|tool| tool.name == name).unwrap();
        (tool.run)(session.clone(), given(arguments)).await.err().map(|ToolError(error)| error)
    };
    for (name, arguments, says) in [
        ("search", json!({"action": "begin", "type": "u8", "value": 4}), "`is` is missing"),
        ("search", json!({"action": "narrow", "id": 1, "is": "changed", "type": "u8"}), "type is given, but"),
        (
            "snapshot",
            json!({"action": "delete", "name": "a", "to": "b"}),
            "to is given, but the action delete",
        ),
        ("control", json!({"action": "resume", "speed": 2}), "speed is given, but the action resume"),
        ("record", json!({"action": "start", "name": "run", "replace": true}), "replace is given, but"),
        ("record", json!({"action": "stop", "name": "other"}), "name is \"other\", but the recording is run"),
    ] {
        let error = call(name, arguments.clone()).await.expect("an error");
        assert!(error.starts_with(says), "{name} {arguments}: {error}");
    }
    for (name, arguments) in [
        ("search", json!({"action": "begin", "id": null, "domain": ""})),
        ("snapshot", json!({"action": "list", "name": null, "force": false, "note": ""})),
        ("record", json!({"action": "stop", "name": "Run"})),
        ("record", json!({"action": "stop", "name": ""})),
        ("record", json!({"action": "status", "name": "run"})),
    ] {
        assert_eq!(call(name, arguments.clone()).await, None, "{name} {arguments}");
    }
}

#[tokio::test]
async fn a_recording_that_exists_is_not_said_to_be_replaceable() {
    let session = session_that_fails(
        "there is a recording a already; choose another name, or replace it with \"replace\": true",
    );
    let arguments = given(json!({"action": "start", "name": "a"}));
    let ToolError(error) = control::record(session, arguments).await.err().unwrap();
    assert_eq!(error, "there is a recording a already; choose another name");
}

#[tokio::test]
async fn an_error_about_keys_names_keys_and_not_a_step() {
    let session = session_that_fails("steps[0].frames is 432000; accepted is a whole number");
    let ToolError(error) =
        acting::act(session.clone(), given(json!({"keys": ".:432000"}))).await.err().unwrap();
    assert_eq!(error, "keys: frames is 432000; accepted is a whole number");
    let steps = json!({"steps": [{"frames": 432_000}]});
    let ToolError(error) = acting::act(session, given(steps)).await.err().unwrap();
    assert_eq!(error, "steps[0].frames is 432000; accepted is a whole number");
    let session = session_that_fails("the steps take up to 432000 frames; at most 216000 are accepted");
    let ToolError(error) = acting::act(session, given(json!({"keys": "A:432000"}))).await.err().unwrap();
    assert_eq!(error, "keys take 432000 frames; at most 216000 are accepted");
}

/// A backend that takes a moment for each call, and keeps the keys of each run.
#[derive(Default)]
struct SlowBackend(Mutex<Vec<Json>>);

impl Backend for SlowBackend {
    fn call<'a>(&'a self, method: &'a str, params: Object) -> CallFuture<'a> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let picture = STANDARD.encode(Pixels { width: 1, height: 1, rgb: vec![0; 3] }.encode());
            if method != "run" {
                return Ok(json!({"frame": 0, "results": [{"value": {}}, {"value": picture}]}));
            }
            self.0.lock().push(params["steps"][0]["sequence"].clone());
            Ok(json!({"frame": 2, "why": "frames", "frames": 2, "steps": [{}], "then": [{"value": picture}]}))
        })
    }

    fn only_reads(&self) -> bool {
        false
    }

    fn stopped(&self) -> EndFuture<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_call_with_crop_runs_its_frames_before_a_later_call_without() {
    let backend = Arc::new(SlowBackend::default());
    let session = Arc::new(Session::new(backend.clone(), Options::default(), Arc::default()));
    let first = given(json!({"keys": "A:2", "picture": {"crop": [0, 0, 1, 1]}}));
    let second = given(json!({"keys": "B:2"}));
    let (first, second) = tokio::join!(acting::act(session.clone(), first), acting::act(session, second));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(*backend.0.lock(), ["A:2", "B:2"]);
}

#[tokio::test]
async fn whole_numbers_with_a_decimal_point_are_integers() {
    let session = session_with(|method, params| {
        let is_written = method == "writeMemory" && params["value"].as_i64() == Some(5);
        is_written.then(|| json!({"frame": 1}))
    });
    for (value, is_accepted) in
        [(json!(5), true), (json!(5.0), true), (json!(5.5), false), (json!(1e300), false)]
    {
        let arguments = given(json!({"address": "score", "value": value}));
        let reply = memory::write(session.clone(), arguments).await;
        assert_eq!(reply.is_ok(), is_accepted, "{value}");
    }
}

#[test]
fn errors_advise_tools_and_not_routes() {
    for (detail, text) in [
        (
            "there is no search 3; begin a new one with POST /v1/search (a search ends",
            "there is no search 3; begin a new one with the action begin of search (a search ends",
        ),
        (
            "DELETE /v1/recording?emulator=demo completes it, and GET says how far it is",
            "the action stop of record completes it, and status says how far it is",
        ),
        (
            "demo is busy with a replay of run (frame 3 of 9); wait for it, or end it with DELETE /v1/replay",
            "demo is busy with a replay of run (frame 3 of 9); wait until it ends",
        ),
        ("with \"force\" it is loaded all the same", "with force it is loaded all the same"),
        (
            "value is -1; accepted is a whole number from 0 to 255 (u8), or text in hex",
            "value is -1; accepted is a whole number from 0 to 255 (u8)",
        ),
        (
            "speed is -1; accepted is a number from 0.01 to 1000, or \"unlimited\"",
            "speed is -1; accepted is a number from 0.01 to 1000, or 0 for unlimited",
        ),
        (
            "steps[0].hold is \"Q\"; accepted is a list of the names A, B, Select, Start, Right, Left, Up, Down, R and L, or a \
                mask from 0 to 1023",
            "steps[0].hold is \"Q\"; accepted is the names A, B, Select, Start, Right, Left, Up, Down, R and L, with + \
                between, such as Up+B",
        ),
        ("idempotency_key is \"\"; accepted is one key", "key is \"\"; accepted is one key"),
        (
            "Idempotency-Key: the key was used for another request; choose a new one",
            "key: it was used for another request; choose a new one",
        ),
        (
            "`bytes[ADDRESS, LENGTH]` can only be watched alone; to compare, write",
            "the tool read returns bytes; to compare, write",
        ),
        (
            "`text[ADDRESS, LENGTH]` can only be watched alone; to compare, write",
            "the tool text returns texts; to compare, write",
        ),
    ] {
        let problem = Problem { status: 409, detail: detail.to_owned() };
        assert_eq!(ToolError::from(problem).0, text);
    }
}

#[tokio::test]
async fn each_tool_accepts_the_arguments_of_its_schema_and_no_others() {
    let session = session_with(|_, _| None);
    for tool in &ALL {
        let unknown: Object = [("?".to_owned(), Json::Null)].into_iter().collect();
        let ToolError(error) = (tool.run)(session.clone(), unknown).await.err().unwrap();
        assert!(error.contains("unknown field `?`"), "{}: {error}", tool.name);
        // The error has names in backticks. The first is the unknown field, and the others are the accepted ones.
        let mut accepted: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        accepted.sort_unstable();
        let schema = tool.schema();
        let mut properties: Vec<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        properties.sort_unstable();
        assert_eq!(accepted, properties, "{}: {error}", tool.name);
    }
}

/// Values of types that a schema does not accept, each with its place: in the value itself, in the first entry of a
/// list, and in each field of an object.
fn wrong_values(schema: &Json) -> Vec<(String, Json)> {
    let kind = schema["type"].as_str().unwrap();
    let is_accepted = |value: &Json| match kind {
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => false,
    };
    let values = [json!(true), json!(1), json!(1.5), json!("x"), json!([]), json!({"?": 1})];
    let mut wrong: Vec<(String, Json)> =
        values.into_iter().filter(|value| !is_accepted(value)).map(|value| (String::new(), value)).collect();
    if kind == "array" {
        let entries = wrong_values(&schema["items"]);
        wrong.extend(entries.into_iter().map(|(place, value)| (format!("[0]{place}"), json!([value]))));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let values = wrong_values(field);
        wrong.extend(
            values.into_iter().map(|(place, value)| (format!(".{name}{place}"), json!({name: value}))),
        );
    }
    wrong
}

/// The backend of this session has no replies, so its errors would not begin with a place.
#[tokio::test]
async fn each_argument_that_is_missing_or_has_a_wrong_type_is_named_before_anything_is_done() {
    let session = session_with(|_, _| None);
    let error = async |tool: &Tool, arguments: Json| {
        let ToolError(error) = (tool.run)(session.clone(), given(arguments)).await.err().unwrap();
        error
    };
    for tool in &ALL {
        let mut count = 0;
        for (place, arguments) in wrong_values(&tool.schema().into()) {
            // The other places are those of the arguments as a whole, which are always an object.
            if let Some(place) = place.strip_prefix('.') {
                let error = error(tool, arguments.clone()).await;
                assert!(error.starts_with(place), "{} with {arguments}: {error}", tool.name);
                assert!(
                    error.ends_with("; see the tool's schema"),
                    "{} with {arguments}: {error}",
                    tool.name
                );
                count += 1;
            }
        }
        assert!(count > 0 || tool.arguments.is_empty(), "{}", tool.name);
        if let Some(name) = tool.required.first() {
            let error = error(tool, json!({})).await;
            assert!(error.starts_with(&format!("{name} is missing; see")), "{}: {error}", tool.name);
        }
    }
}

#[tokio::test]
async fn errors_about_arguments_name_the_argument_and_what_is_accepted() {
    let session = session_with(|method, _| {
        let problem =
            json!({"error": {"status": 400, "detail": "ops[0].addresses[0]: no symbol is called \"x\""}});
        (method == "batch").then(|| json!({"frame": 1, "results": [problem]}))
    });
    for (name, arguments, says) in [
        ("read", json!({}), "address is missing; see"),
        (
            "read",
            json!({"address": "score", "count": "5"}),
            "count: invalid type: string \"5\"; use a whole number",
        ),
        ("read", json!({"address": "x"}), "address: no symbol is called \"x\""),
        (
            "act",
            json!({"steps": ["A"]}),
            "steps[0]: invalid type: string \"A\", expected an object with hold",
        ),
        ("act", json!({"picture": {"crop": [1, 2]}}), "picture.crop: invalid length 2; use a list of 4"),
        ("observe", json!({"values": "score"}), "values: invalid type: string \"score\"; use a list"),
        ("search", json!({"action": "begni"}), "action: unknown value `begni`"),
        ("write", json!({"address": "score", "bytes": "zz"}), "bytes is \"zz\"; use two hex digits"),
    ] {
        let tool = ALL.iter().find(|tool| tool.name == name).unwrap();
        let ToolError(error) = (tool.run)(session.clone(), given(arguments)).await.err().unwrap();
        assert!(error.starts_with(says), "{name}: {error}");
    }
}

#[test]
fn a_query_chooses_tools() {
    let mut options = Options::default();
    options.read_query("toolsets=play%2Cfiles&read_only=true&emulator=left").unwrap();
    assert_eq!(options.toolsets, [Toolset::Play, Toolset::Files]);
    let session = session_of(|_, _| None, options);
    let offered: Vec<&str> =
        ALL.iter().filter(|tool| tool.is_offered(&session)).map(|tool| tool.name).collect();
    assert_eq!(offered, ["observe", "screenshot", "resume"]);
    assert!(
        Options::default().toolsets.iter().all(|set| *set != Toolset::Script),
        "clients get the script toolset only if they ask for it"
    );
    for (query, says) in
        [("toolsets=ply", "\"ply\" is not a toolset"), ("tools=play", "tools=play is not accepted")]
    {
        let error = Options::default().read_query(query).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}
