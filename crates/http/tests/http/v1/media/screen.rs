//! GET /v1/screen.

use framewire_http::{Files, Token, Tokens};
use framewire_media::ColorCorrection;
use framewire_media::png::{self, Pixels};
use serde_json::json;

use super::handshake;
use crate::failures::attached;
use crate::reserved_port::reserved_port;
use crate::support::{Reply, Server, sample, wait_for};
use crate::v1::batch::batch;
use crate::v1::live::client::wait_for_waiters;
use crate::v1::problems::{problem, problem_says};

fn number(reply: &Reply, header: &str) -> u32 {
    reply.header(header).unwrap().parse().unwrap()
}

fn pixels(png: &[u8]) -> Vec<u8> {
    png::decode(png).unwrap().rgb
}

#[test]
fn the_picture_is_sent_as_a_png_file_or_as_pixels() {
    let server = Server::paused();
    batch(&server, &json!({"ops": [{"op": "advance", "frames": 60}]}));
    let png = server.get("/v1/screen");
    assert_eq!((png.status, png.header("content-type")), (200, Some("image/png")));
    let rgb = server.get("/v1/screen?format=rgb");
    let rgba = server.get("/v1/screen?format=rgba");
    for reply in [&png, &rgb, &rgba] {
        let said = ["framewire-frame", "framewire-width", "framewire-height"].map(|name| number(reply, name));
        assert_eq!(said, [60, 240, 160]);
    }
    assert!(pixels(&png.body) == rgb.body);
    assert!(pixels(&png.body) == pixels(&server.get("/screen.png").body));
    assert_eq!(rgba.body.len(), 240 * 160 * 4);
    let opaque: Vec<u8> = rgb.body.chunks(3).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]).collect();
    assert!(rgba.body == opaque);
}

#[test]
fn a_request_waits_for_the_picture_of_exactly_the_given_frame() {
    let server = Server::start();
    for format in ["png", "rgb"] {
        // While the game is paused, the wanted frame cannot pass before the request arrives.
        batch(&server, &json!({"ops": [{"op": "pause"}]}));
        let wanted = server.number("/core/currentframe") as u32 + 25;
        let reply = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| server.get(&format!("/v1/screen?format={format}&frame={wanted}")));
            wait_for_waiters(&server, 1);
            batch(&server, &json!({"ops": [{"op": "resume"}]}));
            waiting.join().unwrap()
        });
        assert_eq!((reply.status, number(&reply, "framewire-frame")), (200, wanted));
    }
    // This holds at any speed: here, frames run as fast as possible.
    let fast = Server::paused();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fast.get("/v1/screen?format=rgb&frame=777"));
        wait_for_waiters(&fast, 1);
        while !waiting.is_finished() {
            batch(&fast, &json!({"ops": [{"op": "advance", "frames": 50}]}));
        }
        let reply = waiting.join().unwrap();
        assert_eq!((reply.status, number(&reply, "framewire-frame")), (200, 777));
        let again = Server::paused();
        batch(&again, &json!({"ops": [{"op": "advance", "frames": 777}]}));
        assert!(
            reply.body == again.get("/v1/screen?format=rgb").body,
            "this is not the picture of frame 777"
        );
    });
}

/// A request gets the picture of exactly the frame that it names, even if it has an id, if the server must check its
/// permissions, or if the server has a folder for files.
#[test]
fn the_picture_of_a_frame_is_as_exact_for_requests_with_more_checks() {
    let (full, read) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(Some(full.clone()), Some(read.clone())).unwrap();
    let authorization = |token: &Token| format!("authorization: Bearer {}\r\n", token.reveal());
    let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    // For each case: its name, whether the server has a folder for files, and the headers of the request.
    let cases = [
        ("a request with an id", false, authorization(&full) + "x-request-id: a-1\r\n"),
        ("a traced request", false, authorization(&full) + trace),
        ("a read-only token", false, authorization(&read)),
        ("another machine", false, authorization(&full) + "x-forwarded-for: 10.0.0.7\r\n"),
        ("--files", true, authorization(&full)),
    ];
    let start = |files: bool| {
        let tokens = tokens.clone();
        Server::demo(true, move |app| {
            app.access.tokens = tokens;
            if files {
                app.access.files = Some(Files::within(std::path::Path::new("/")).unwrap());
            }
        })
    };
    for (name, files, headers) in &cases {
        let server = start(*files);
        let advance = json!({"ops": [{"op": "advance", "frames": 50}]}).to_string();
        std::thread::scope(|scope| {
            let waiting =
                scope.spawn(|| server.request_with("GET", "/v1/screen?format=rgb&frame=777", headers, b""));
            wait_for("the request", || {
                let metrics = server.request_with("GET", "/metrics", &authorization(&full), b"").text();
                sample(&metrics, "framewire_streams{kind=\"wait\"}") == Some(1.0)
            });
            while !waiting.is_finished() {
                server.request_with("POST", "/v1/batch", &authorization(&full), advance.as_bytes());
            }
            let reply = waiting.join().unwrap();
            let frame = reply.header("framewire-frame").map(str::to_owned);
            assert_eq!((reply.status, frame.as_deref()), (200, Some("777")), "{name}: {}", reply.body.len());
        });
    }
}

#[test]
fn a_picture_is_cropped_and_scaled() {
    let server = Server::paused();
    batch(&server, &json!({"ops": [{"op": "advance", "frames": 60}]}));
    let get = |query: &str| server.get(&format!("/v1/screen?format=rgb{query}"));
    let whole = get("");
    assert_eq!((number(&whole, "framewire-width"), number(&whole, "framewire-height")), (240, 160));
    let part = get("&crop=10,20,30,5");
    let expected: Vec<u8> = (20..25).flat_map(|y| whole.body[3 * (240 * y + 10)..][..90].to_vec()).collect();
    assert!(part.body == expected);
    let large = get("&crop=10,20,30,5&scale=4");
    assert_eq!((number(&large, "framewire-width"), number(&large, "framewire-height")), (120, 20));
    assert_eq!(large.body[..3], part.body[..3]);
    let png = server.get("/v1/screen?scale=4");
    assert_eq!(number(&png, "framewire-width"), 960);
    assert_eq!(png::size(&png.body).unwrap(), (960, 640));
    for (query, says) in [
        ("&colors=lcd", "is not a colour correction; use gba or gbc"),
        ("&scale=5", "scale is 5; use 0.25"),
        ("&crop=1,2,3", "accepted is x,y,width,height"),
        ("&crop=0,0,0,1", "crop is 0 by 1 pixels"),
        ("&crop=200,0,41,1", "it must lie in the picture of 240 by 160 pixels"),
    ] {
        problem_says(&get(query), 400, says);
    }
}

#[test]
fn an_error_about_the_size_of_a_picture_names_the_parameter() {
    let server = Server::paused();
    batch(&server, &json!({"ops": [{"op": "advance", "frames": 60}]}));
    for (query, parameter) in [
        ("scale=5", "scale"),
        ("crop=0,0,0,1", "crop"),
        ("crop=200,0,41,1", "crop"),
        ("crop=1,2,3", "crop"),
        ("colors=lcd", "colors"),
    ] {
        let error = problem(&server.get(&format!("/v1/screen?{query}")), 400);
        assert_eq!(error["parameter"], parameter, "{error}");
    }
}

#[test]
fn a_picture_can_have_the_colours_of_a_consoles_screen() {
    let server = Server::paused();
    batch(&server, &json!({"ops": [{"op": "advance", "frames": 60}]}));
    let rgb = server.get("/v1/screen?format=rgb").body;
    for name in ["gba", "gbc"] {
        let mut expected = Pixels { width: 240, height: 160, rgb: rgb.clone() };
        name.parse::<ColorCorrection>().unwrap().apply(&mut expected);
        assert!(expected.rgb != rgb);
        assert!(server.get(&format!("/v1/screen?format=rgb&colors={name}")).body == expected.rgb, "{name}");
        let png = server.get(&format!("/v1/screen?colors={name}")).body;
        assert!(png::decode(&png).unwrap() == expected, "{name}");
    }
}

#[test]
fn a_frame_that_is_past_or_does_not_come_is_an_error() {
    let server = Server::paused();
    batch(&server, &json!({"ops": [{"op": "advance", "frames": 10}]}));
    assert_eq!(server.get("/v1/screen?frame=10").status, 200);
    let past = problem(&server.get("/v1/screen?frame=9"), 409);
    assert_eq!(past["detail"], "frame 9 is past: the emulator is at frame 10");
    let late = problem(&server.get("/v1/screen?frame=11&timeout=50"), 504);
    assert_eq!(late["detail"], "frame 11 did not come within 50 ms: the emulator is at frame 10");
}

#[test]
fn without_an_emulator_there_is_no_picture() {
    let (_socket, address) = reserved_port();
    let server = attached(address.to_string(), |_| {});
    for target in ["/v1/screen", "/v1/screen?frame=5", "/v1/video.mjpeg"] {
        problem(&server.get(target), 502);
    }
    problem(&handshake(&server, "/v1/video"), 502);
    problem_says(&handshake(&server, "/v1/audio"), 501, "stock mGBA");
}

#[test]
fn the_openapi_document_describes_pictures_as_binary() {
    let document: serde_json::Value = serde_json::from_str(&Server::paused().text("/openapi.json")).unwrap();
    for (path, kind) in [
        ("/v1/screen", "image/png"),
        ("/v1/screen", "application/octet-stream"),
        ("/v1/video.mjpeg", "multipart/x-mixed-replace; boundary=framewire"),
    ] {
        let content = &document["paths"][path]["get"]["responses"]["200"]["content"][kind];
        assert_eq!(content["schema"], json!({"type": "string", "format": "binary"}), "{path}");
    }
}
