//! /v1/recordings, /v1/recording and /v1/replay.

use serde_json::{Value, json};

use super::problems::{problem, problem_says};
use super::{json_of, posted, sent};
use crate::support::{Reply, Server, field, wait_for};

/// Plays more than 200 frames with some keys.
fn play(server: &Server) {
    let step = |keys: Value, frames: u32| {
        [json!({"op": "set_keys", "keys": keys}), json!({"op": "advance", "frames": frames})]
    };
    let mut ops = Vec::new();
    for round in 0..12 {
        ops.extend(step(json!(["A", "Left"]), 3 + round));
        ops.extend(step(json!(["Right"]), 10));
        ops.extend(step(json!([]), 7 - round.min(7) + 1));
    }
    posted(server, "/v1/batch", &json!({"ops": ops}));
}

/// A paused server with a recording named `run`, and the number of its frames.
fn recorded(every: u32) -> (Server, u64) {
    let server = Server::paused();
    posted(&server, "/v1/advance", &json!({"frames": 100}));
    let request = json!({"name": "run", "every": every, "note": "n"}).to_string();
    let begun = server.request("POST", "/v1/recordings", request.as_bytes());
    assert_eq!(begun.header("location"), Some("/v1/recordings/run"));
    let begun = json_of(&begun, 201);
    assert_eq!((&begun["name"], &begun["frames"], &begun["ended"]), (&"run".into(), &0.into(), &Value::Null));
    play(&server);
    let ended = json_of(&server.request("DELETE", "/v1/recording", b""), 200);
    assert_eq!(ended["ended"], "stopped");
    let frames = ended["frames"].as_u64().unwrap();
    assert!(frames > 200);
    (server, frames)
}

#[test]
fn a_recording_that_another_client_ends_at_once_is_still_reported_as_begun() {
    let server = Server::paused();
    let names: Vec<String> = (0..40).map(|number| format!("run{number}")).collect();
    // The number of tries is limited, so that the test ends if one side fails.
    let tries = 0..10_000;
    let end = || tries.clone().any(|_| server.request("DELETE", "/v1/recording", b"").status == 200);
    let begin = |name: &String| {
        let send = |_| server.send("POST", "/v1/recordings", &json!({"name": name}));
        // The other client may not have ended the previous recording yet.
        tries.clone().map(send).find(|reply| reply.status != 409).unwrap()
    };
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        scope.spawn(|| names.iter().for_each(|name| assert!(end(), "{name} was not ended")));
        names.iter().map(begin).collect()
    });
    for (name, reply) in names.iter().zip(&replies) {
        assert_eq!(json_of(reply, 201)["name"], json!(name));
    }
}

#[test]
fn a_recording_is_replayed() {
    let (server, frames) = recorded(10);
    let listed = json_of(&server.get("/v1/recordings"), 200);
    assert_eq!((&listed["total"], &listed["recordings"][0]["frame"]), (&1.into(), &100.into()));
    let full = json_of(&server.get("/v1/recordings/run"), 200);
    assert_eq!(
        (&full["frames"], &full["pictures"], &full["memories"]),
        (&frames.into(), &(frames / 10).into(), &frames.div_ceil(10).into())
    );
    assert_eq!(
        (&full["note"], &full["start"], &full["damage"]),
        (&"n".into(), &"state".into(), &Value::Null)
    );
    let before = server.number("/core/currentframe");
    let replay = posted(&server, "/v1/recordings/run/replay", &json!({"restore": true}));
    assert_eq!(
        (&replay["equal"], &replay["played"], &replay["diverged"]),
        (&true.into(), &frames.into(), &Value::Null)
    );
    assert_eq!(
        (&replay["pictures"], &replay["memories"]),
        (&(frames / 10).into(), &frames.div_ceil(10).into())
    );
    assert_eq!(server.number("/core/currentframe"), before);
    assert_eq!(json_of(&server.get("/v1/replay"), 200), replay);
    posted(&server, "/v1/recordings/run/replay", &json!({}));
    assert_eq!(server.number("/core/currentframe"), 100 + frames as i64);
}

#[test]
fn files_are_downloaded_and_uploaded_and_damage_is_reported_with_its_frame() {
    let (server, frames) = recorded(1);
    let file = server.get("/v1/recordings/run/file");
    assert_eq!(file.status, 200);
    assert!(file.body.starts_with(b"FRAMEWIRE RECORDING 1\ntitle FRAMEWIRE\n"));
    assert!(file.header("content-disposition").unwrap().contains("run.fwr"));
    // After the header and the state, each frame takes 26 bytes: its keys, and the two hashes that `recorded(1)` asks
    // for. The last entry is the end: a letter, the number of frames in 2 bytes, the reason with its length, and a
    // checksum.
    let tail = 1 + 2 + 4 + "stopped".len() + 4;
    let of_frame = |frame: u64| file.body.len() - tail - 26 * (frames - frame + 1) as usize;
    let mut changed = file.body.clone();
    changed[of_frame(123) + 2] ^= 2;
    problem_says(&server.request("PUT", "/v1/recordings/copy/file", &changed), 422, "damaged at frame 123 ");
    problem(&server.get("/v1/recordings/copy"), 404);

    json_of(&server.request("PUT", "/v1/recordings/copy/file", &file.body), 201);
    problem_says(&server.request("PUT", "/v1/recordings/COPY/file", &file.body), 409, "?replace=true");
    json_of(&server.request("PUT", "/v1/recordings/COPY/file?replace=true", &file.body), 200);
    problem(&server.request("PUT", "/v1/recordings/other/file", b"FRAMEWIRE RECORDING 7\n"), 422);
    problem(&server.request("PUT", "/v1/recordings/a%20b/file", &file.body), 400);

    // A recording that was damaged on disk is played up to the damage.
    std::fs::write(server.folder.path().join("data/recordings/copy.fwr"), &changed).unwrap();
    let replay = posted(&server, "/v1/recordings/copy/replay", &json!({}));
    assert_eq!((&replay["equal"], &replay["played"]), (&false.into(), &122.into()));
    assert_eq!(replay["damage"]["frame"], 123);
    assert_eq!(server.request("DELETE", "/v1/recordings/copy", b"").status, 204);
    problem(&server.get("/v1/recordings/copy/file"), 404);
}

#[test]
fn a_replay_that_diverges_says_in_which_frame() {
    let server = Server::paused();
    posted(&server, "/v1/advance", &json!({"frames": 100}));
    sent(&server, "POST", "/v1/recordings", &json!({"name": "run", "every": 5}), 201);
    // Recordings do not contain writes to memory. This write changes the score on the screen, so the replay diverges.
    let score = field("score");
    let ops = json!({"ops": [
        {"op": "advance", "frames": 52}, {"op": "write32", "address": score, "value": 4321}, {"op": "advance", "frames": 30},
    ]});
    posted(&server, "/v1/batch", &ops);
    json_of(&server.request("DELETE", "/v1/recording", b""), 200);
    let replay = posted(&server, "/v1/recordings/run/replay", &json!({}));
    let diverged = &replay["diverged"];
    assert_eq!((&replay["equal"], &diverged["what"]), (&false.into(), &"picture".into()));
    assert_eq!((&diverged["frame"], &diverged["agreed"]), (&55.into(), &50.into()), "{replay}");
    assert_ne!(diverged["recorded"], diverged["played"]);
}

#[test]
fn only_one_recording_and_one_replay_run_at_a_time() {
    let (server, _) = recorded(60);
    let slow = json!({"speed": 0.1, "wait": false});
    let begun = sent(&server, "POST", "/v1/recordings/run/replay", &slow, 202);
    assert_eq!((&begun["over"], &begun["equal"]), (&false.into(), &Value::Null));
    problem(&server.request("POST", "/v1/recordings/run/replay", b""), 409);
    wait_for("a frame", || json_of(&server.get("/v1/replay"), 200)["played"].as_u64() > Some(0));
    let over = json_of(&server.request("DELETE", "/v1/replay", b""), 200);
    assert_eq!(
        (&over["over"], &over["cancelled"], &over["equal"]),
        (&true.into(), &true.into(), &false.into())
    );

    sent(&server, "POST", "/v1/recordings", &json!({"name": "next"}), 201);
    problem(&server.request("POST", "/v1/recordings", br#"{"name": "third"}"#), 409);
    for (method, target) in
        [("GET", ""), ("DELETE", ""), ("GET", "/file"), ("PUT", "/file?replace=true"), ("POST", "/replay")]
    {
        let error = problem(&server.request(method, &format!("/v1/recordings/next{target}"), b""), 409);
        assert!(error["detail"].as_str().unwrap().contains("DELETE /v1/recording?emulator=demo"), "{error}");
    }
    // A reset ends the recording at once, and then another one can begin.
    posted(&server, "/v1/advance", &json!({"frames": 59}));
    posted(&server, "/v1/reset", &json!({}));
    let ended = json_of(&server.get("/v1/recording"), 200);
    assert_eq!(
        (&ended["ended"], &ended["frames"]),
        (&"the console was reset after frame 59".into(), &59.into())
    );
    sent(&server, "POST", "/v1/recordings", &json!({"name": "third"}), 201);
    json_of(&server.request("DELETE", "/v1/recording", b""), 200);
    problem(&server.get("/v1/recording"), 404);
}

/// If a server was killed during a recording, the next server completes the file and lists it as recovered.
#[test]
fn a_recording_of_a_killed_server_is_listed_as_recovered() {
    let (first, _) = recorded(10);
    let file = first.get("/v1/recordings/run/file").body;
    let folder = tempfile::tempdir().unwrap();
    let recordings = folder.path().join("recordings");
    std::fs::create_dir(&recordings).unwrap();
    std::fs::write(recordings.join(".recording-run-Ab3dE6"), &file[..file.len() - 40]).unwrap();
    let server = Server::demo(true, |app| app.data = Some(folder.path().to_owned()));
    let listed = json_of(&server.get("/v1/recordings"), 200);
    let run = &listed["recordings"][0];
    assert_eq!((&run["name"], &run["recovered"]), (&"run".into(), &true.into()), "{listed}");
    let full = json_of(&server.get("/v1/recordings/run"), 200);
    assert!(
        full["ended"].as_str().unwrap().starts_with("the program ended in the middle; recovered"),
        "{full}"
    );
    assert_eq!(full["damage"], Value::Null);
    assert!(full["clock"].as_str().unwrap().starts_with("20"), "{full}");
    let replay = posted(&server, "/v1/recordings/run/replay", &json!({}));
    assert_eq!((&replay["equal"], &replay["clock"]), (&true.into(), &"recorded".into()), "{replay}");
}

#[test]
fn a_server_that_stops_completes_its_recordings() {
    let mut server = Server::paused();
    sent(&server, "POST", "/v1/recordings", &json!({"name": "last", "start": "power-on"}), 201);
    posted(&server, "/v1/advance", &json!({"frames": 20}));
    server.stop();
    wait_for("the shutdown", || server.has_stopped());
    let file = std::fs::read(server.folder.path().join("data/recordings/last.fwr")).unwrap();
    assert!(file.windows(7).any(|end| end == b"stopped"));
}

#[test]
fn errors_for_wrong_requests_say_what_is_accepted() {
    let (server, _) = recorded(60);
    for (request, parameter) in [
        (json!({"name": "../x"}), "name"),
        (json!({"name": "x", "every": 0}), "every"),
        (json!({"name": "x", "every": -1}), "every"),
        (json!({"name": "x", "every": 3601}), "every"),
        (json!({"name": "x", "note": "x".repeat(1025)}), "note"),
    ] {
        let error = problem(&server.send("POST", "/v1/recordings", &request), 400);
        assert_eq!(error["parameter"], parameter, "{error}");
        if parameter == "every" {
            assert!(error["detail"].as_str().unwrap().contains("from 1 to 3600"), "{error}");
        }
    }
    for request in
        [json!({}), json!({"name": "x", "start": "here"}), json!({"name": 1}), json!({"name": "x", "a": 1})]
    {
        problem(&server.send("POST", "/v1/recordings", &request), 400);
    }
    problem(&server.request("POST", "/v1/recordings", br#"{"name": "RUN"}"#), 409);
    for speed in [json!(0), json!(-1), json!(1001), json!("fast")] {
        let request = json!({"speed": speed}).to_string();
        problem(&server.request("POST", "/v1/recordings/run/replay", request.as_bytes()), 400);
    }
    problem(&server.request("POST", "/v1/recordings/none/replay", b""), 404);
    problem(&server.get("/v1/replay"), 404);
    problem(&server.request("DELETE", "/v1/recording", b""), 404);
    problem(&server.get("/v1/recordings?limit=9999"), 400);
}
