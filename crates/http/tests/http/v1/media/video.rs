//! GET /v1/video. A *key* picture is complete; a *delta* contains the changes from an earlier picture.

use framewire_media::Kind;
use serde_json::json;
use tungstenite::Message;

use super::handshake;
use super::viewer::{Viewer, end_of, socket};
use crate::support::Server;
use crate::v1::batch::batch;
use crate::v1::measure_alone;
use crate::v1::problems::{problem, problem_says};

#[test]
fn the_first_picture_is_the_one_on_the_screen_even_if_the_emulator_is_paused() {
    let server = Server::paused();
    batch(&server, &json!({"ops": [{"op": "advance", "frames": 40}]}));
    let mut viewer = Viewer::new(&server, "/v1/video");
    let header = viewer.picture();
    assert_eq!((header.kind, header.width, header.height, header.frame), (Kind::Key, 240, 160, 40));
    assert!(viewer.pixels() == server.get("/v1/screen?format=rgb").body);

    batch(&server, &json!({"ops": [{"op": "set_keys", "keys": ["A"]}, {"op": "advance", "frames": 30}]}));
    let header = viewer.picture_with(|header| header.frame == 70);
    assert_eq!(header.kind, Kind::Delta);
    assert!(viewer.pixels() == server.get("/v1/screen?format=rgb").body);
    let mut second = Viewer::new(&server, "/v1/video");
    assert_eq!((second.picture().kind, second.pixels() == viewer.pixels()), (Kind::Key, true));
}

#[test]
fn a_viewer_sees_a_state_that_is_loaded_while_the_emulator_is_paused() {
    let server = Server::paused();
    let state =
        batch(&server, &json!({"ops": [{"op": "advance", "frames": 40}, {"op": "save_state", "flags": 31}]}));
    let state = &state["results"][1]["value"];
    batch(
        &server,
        &json!({"ops": [{"op": "set_keys", "keys": ["A", "L"]}, {"op": "advance", "frames": 60}]}),
    );
    let mut viewer = Viewer::new(&server, "/v1/video");
    assert_eq!(viewer.picture().frame, 100);
    batch(&server, &json!({"ops": [{"op": "load_state", "data": state, "flags": 29}]}));
    viewer.picture_with(|header| header.frame == 40);
    assert!(viewer.pixels() == server.get("/v1/screen?format=rgb").body);
}

#[test]
fn every_frame_is_sent_and_each_delta_is_based_on_the_picture_before_it() {
    // On a busy machine, the server may skip pictures, but at most three of ten.
    measure_alone(pictures_and_frames, |(pictures, frames)| pictures * 10 >= frames * 7);
}

/// How many pictures three viewers get in all, and how many frames run meanwhile, added up for the three viewers.
fn pictures_and_frames() -> (u32, u32) {
    let server = Server::start();
    let mut viewers: Vec<Viewer> = (0..3).map(|_| Viewer::new(&server, "/v1/video")).collect();
    let mut ticks: Vec<u32> = viewers.iter_mut().map(|viewer| viewer.picture().tick).collect();
    let begin = ticks.clone();
    let mut sent = 0;
    for _ in 0..90 {
        for (viewer, tick) in viewers.iter_mut().zip(&mut ticks) {
            let header = viewer.picture(); // the decoder fails if the delta does not fit
            assert_eq!((header.kind, header.base), (Kind::Delta, *tick));
            *tick = header.tick;
            sent += 1;
        }
    }
    (sent, ticks.iter().zip(begin).map(|(last, first)| last - first).sum())
}

#[test]
fn a_viewer_with_a_lower_rate_gets_fewer_pictures() {
    let server = Server::start();
    let frames_of_eleven_pictures = || {
        let mut viewer = Viewer::new(&server, "/v1/video?rate=10");
        for _ in 0..4 {
            viewer.picture();
        }
        let first = viewer.picture().tick;
        for _ in 0..10 {
            viewer.picture();
        }
        viewer.picture().tick - first
    };
    measure_alone(frames_of_eleven_pictures, |frames| (60..=90).contains(frames));
}

#[test]
fn a_key_picture_comes_on_request() {
    let server = Server::paused();
    let mut viewer = Viewer::new(&server, "/v1/video");
    viewer.picture();
    viewer.socket.send(Message::text("key")).unwrap();
    assert_eq!(viewer.picture().kind, Kind::Key);
}

#[test]
fn an_unknown_message_ends_the_stream_with_a_reason() {
    let server = Server::start();
    for message in [Message::text("faster"), Message::binary(vec![1, 2, 3])] {
        let mut socket = socket(&server, "/v1/video");
        socket.send(message).unwrap();
        let end = end_of(&mut socket);
        assert_eq!(u16::from(end.code), 1003);
        assert!(end.reason.contains("key"), "{}", end.reason);
    }
}

#[test]
fn a_viewer_may_send_any_number_of_messages() {
    let server = Server::paused();
    let mut viewer = Viewer::new(&server, "/v1/video");
    viewer.picture();
    // This is more data than the head of a request may have.
    for _ in 0..1000 {
        viewer.socket.send(Message::Ping(vec![7; 100].into())).unwrap();
    }
    viewer.socket.send(Message::text("key")).unwrap();
    while !matches!(viewer.socket.read().unwrap(), Message::Binary(_)) {}
}

#[test]
fn the_stream_ends_with_a_reason_when_the_server_stops() {
    let mut server = Server::start();
    let mut viewer = Viewer::new(&server, "/v1/video");
    viewer.picture();
    server.stop();
    let end = end_of(&mut viewer.socket);
    assert_eq!((u16::from(end.code), end.reason.as_str()), (1001, "the server is stopping"));
}

#[test]
fn the_number_of_viewers_is_limited() {
    let server = Server::with(|app| app.limits.max_viewers = 2);
    let mut viewer = Viewer::new(&server, "/v1/video");
    viewer.picture();
    let mut listener = socket(&server, "/v1/audio");
    while !listener.read().unwrap().is_binary() {}
    for target in ["/v1/video", "/v1/audio", "/v1/video.mjpeg"] {
        let reply = handshake(&server, target);
        assert!(problem(&reply, 503)["detail"].as_str().unwrap().starts_with("2 viewers"), "{target}");
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
    drop(listener);
    crate::support::wait_for("the listener to leave", || handshake(&server, "/v1/video").status == 101);
}

#[test]
fn errors_name_the_wrong_parameter() {
    let server = Server::start();
    for (target, parameter) in [
        ("/v1/video?rate=0", "rate"),
        ("/v1/video?rate=121", "rate"),
        ("/v1/video?rate=fast", "rate"),
        ("/v1/video.mjpeg?rate=61", "rate"),
        ("/v1/video.mjpeg?format=gif", "format"),
        ("/v1/screen?format=gif", "format"),
        ("/v1/screen?frame=-1", "frame"),
        ("/v1/screen?timeout=0", "timeout"),
    ] {
        let reply = handshake(&server, target);
        assert_eq!(problem(&reply, 400)["parameter"], parameter, "{target}");
    }
    for target in ["/v1/video?speed=1", "/v1/audio?rate=1", "/v1/video.mjpeg?frames=1", "/v1/screen?size=1"] {
        let reply = handshake(&server, target);
        let error = problem(&reply, 400);
        assert!(error["detail"].as_str().unwrap().contains("is not a parameter here"), "{target}: {error}");
    }
    for target in ["/v1/video", "/v1/audio"] {
        problem_says(&server.get(target), 400, "is a WebSocket");
    }
    let reply = handshake(&server, "/v1/video?emulator=other");
    problem(&reply, 404);
}
