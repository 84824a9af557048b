//! Viewers that stop reading the stream of pictures.

use std::time::Duration;

use super::viewer::Viewer;
use crate::support::{Server, wait_for};
use crate::v1::measure_alone;

/// How old a viewer's next picture may be, in frames. This allows for a busy machine.
const FRESH: u32 = 12;

fn frame(server: &Server) -> u32 {
    server.number("/core/currentframe") as u32
}

#[test]
fn a_viewer_that_stops_reading_disturbs_no_other_and_gets_the_newest_picture_when_it_reads_again() {
    // The reader gets most of 240 pictures. The sleeper first gets only a few old ones.
    measure_alone(with_a_sleeper, |(pictures, old, late)| *pictures >= 160 && *old <= 40 && *late <= FRESH);
}

/// How many pictures a viewer gets while another does not read, how many old pictures the other gets when it reads
/// again, and how old its next picture is, in frames.
fn with_a_sleeper() -> (u32, u32, u32) {
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

    // When `sleeper` reads again, it first gets the pictures that were already sent, and then new ones.
    let mut old = 0;
    while sleeper.picture().tick < asleep + 200 {
        old += 1;
    }
    let late = frame(&server).saturating_sub(sleeper.picture().frame);

    // Then both get new pictures again.
    let tick = sleeper.picture().tick + 30;
    reader.picture_with(|header| header.tick >= tick);
    sleeper.picture_with(|header| header.tick >= tick);
    (pictures, old, late)
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
