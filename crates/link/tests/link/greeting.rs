//! Tests of the script's answer to the hello, the first message of a link.

use std::sync::mpsc;
use std::time::Duration;

use framewire_link::{LinkError, Phase};
use framewire_protocol::PROTOCOL_VERSION;

use crate::peer::Peer;
use crate::{Client, read8};

#[test]
fn a_script_of_another_protocol_is_refused_and_the_error_says_what_to_load() {
    for version in [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1] {
        let (received, more) = mpsc::channel();
        let peer = Peer::start(move |_, mut script| {
            script.message()?;
            script.reply(&format!("framewire.welcome,{version},9.9.9,boot,0"))?;
            received.send(script.message()).ok()
        });
        let client = Client::start(&peer.address);
        client.wait_for("a refusal", |status| status.phase == Phase::Absent);
        let problem = client.link.status().problem.expect("a problem");
        for part in
            ["9.9.9", &format!("protocol {version}"), "load this program's script", "framewire script"]
        {
            assert!(problem.contains(part), "{problem}");
        }
        match client.call(read8()) {
            Err(LinkError::Absent { problem: reported, .. }) => assert_eq!(reported, problem),
            other => panic!("{other:?}"),
        }
        let more = more.recv_timeout(Duration::from_secs(20));
        assert_eq!(more, Ok(None), "the link sends nothing more");
    }
}

#[test]
fn the_error_about_another_kind_of_server_has_its_answer() {
    let answers = [
        (
            "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n",
            "not an emulator's script listens there: it answered \"HTTP/1.1 400 Bad Request\"",
        ),
        ("", "it closed the connection without an answer"),
    ];
    for (answer, part) in answers {
        let peer = Peer::start(move |_, mut server| {
            server.message()?;
            server.send(answer.as_bytes())
        });
        let client = Client::start(&peer.address);
        client.wait_for("a refusal", |status| status.phase == Phase::Absent);
        let problem = client.link.status().problem.expect("a problem");
        assert!(problem.contains(part), "{problem}");
    }
}
