//! A script in an embedded core loops forever.

use std::fs;
use std::time::{Duration, Instant};

use framewire_e2e::{Framewire, Signal, until_good};

use super::served::{PATIENCE, wait_for_run};

#[test]
fn a_looping_script_does_not_block_requests_or_the_programs_end() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("loops.lua");
    fs::write(&script, "callbacks:add('frame', function() while true do end end)").unwrap();
    let args = ["--lua", script.to_str().unwrap(), "--deadline", "0.5"];
    let mut server = Framewire::serve(&args).unwrap();
    let http = server.http();
    for _ in 0..3 {
        let answered = || {
            let asked = Instant::now();
            let reply = http.get("/core/currentframe").unwrap();
            let time = asked.elapsed();
            assert_eq!(reply.status, 504, "{}", reply.text());
            assert!(reply.text().contains("script"), "{}", reply.text());
            time
        };
        until_good(answered, |time| *time < Duration::from_secs(2));
    }
    wait_for_run(&http, "stalled");
    server.signal(Signal::TERM).unwrap();
    let signalled = Instant::now();
    let status = server.wait_exit(PATIENCE).unwrap();
    assert_eq!(status.code(), Some(0), "{}", server.log());
    assert!(signalled.elapsed() < Duration::from_secs(6), "{:?}", signalled.elapsed());
    assert!(server.log().contains("abandoned"), "{}", server.log());
}
