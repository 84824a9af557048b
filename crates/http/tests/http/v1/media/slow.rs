//! Viewers that stop reading the stream of pictures.

use std::time::Duration;

use super::viewer::Viewer;
use crate::support::{Server, wait_for};

/// By how many frames the next picture of a viewer may be older than the emulator's current frame, on a busy machine.
const FRESH: u32 = 12;

fn frame(server: &Server) -> u32 {
    server.number("/core/currentframe") as u32
}

#[test]
fn a_viewer_that_stops_reading_disturbs_no_other_and_gets_the_newest_picture_when_it_reads_again() {
    let server = Server::start();
    let mut reader = Viewer::new(&server, "/v1/video");
    let mut sleeper = Viewer::new(&server, "/v1/video");
    for _ in 0..30 {
        reader.picture();
        sleeper.picture();
    }

    // `sleeper` does not read for four seconds. `reader` still gets pictures.
    let asleep = reader.picture().tick;
    let mut pictures = 0;
    while reader.picture().tick < asleep + 240 {
        pictures += 1;
    }
    assert!(pictures >= 160, "the reader got {pictures} pictures of 240 frames");

    // When `sleeper` reads again, it first gets the pictures that were already sent, and then new ones.
    let mut old = 0;
    while sleeper.picture().tick < asleep + 200 {
        old += 1;
    }
    assert!(old <= 40, "{old} old pictures came first");
    let late = frame(&server).saturating_sub(sleeper.picture().frame);
    assert!(late <= FRESH, "the newest picture was {late} frames old");

    // Then both get new pictures again.
    let tick = sleeper.picture().tick + 30;
    reader.picture_with(|header| header.tick >= tick);
    sleeper.picture_with(|header| header.tick >= tick);
}

#[test]
fn a_viewer_that_never_reads_delays_neither_the_emulator_nor_the_shutdown() {
    let mut server = Server::start();
    let silent = Viewer::new(&server, "/v1/video");
    let begin = frame(&server);
    wait_for("frames", || frame(&server) > begin + 120);
    server.stop();
    wait_for("the shutdown", || {
        std::thread::sleep(Duration::from_millis(10));
        server.has_stopped()
    });
    drop(silent);
}
