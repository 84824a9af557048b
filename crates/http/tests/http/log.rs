//! The log of requests.

use std::io;
use std::sync::Mutex;

use serde_json::Value;

use super::support::{Server, wait_for};

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Writes the log to [`LINES`].
struct Lines;

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines about requests for `path` so far.
fn lines_about(path: &str) -> Vec<Value> {
    let lines = String::from_utf8(LINES.lock().unwrap().clone()).unwrap();
    lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["fields"]["path"] == path)
        .collect()
}

/// Servers run on their own threads, so this test sets the log subscriber of the whole process, for all tests.
#[test]
fn each_request_is_logged_unless_the_log_is_switched_off() {
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).with_writer(|| Lines).init();
    let (logged, silent) = (Server::start(), Server::with(|app| app.log_requests = false));
    assert_eq!(silent.get("/no/such/path/silent").status, 404);
    assert_eq!(logged.get("/no/such/path/logged?secret=1").status, 404);
    wait_for("the line", || !lines_about("/no/such/path/logged").is_empty());
    let line = &lines_about("/no/such/path/logged")[0];
    assert_eq!((&line["target"], &line["level"]), (&"framewire::http".into(), &"INFO".into()));
    assert_eq!((&line["fields"]["method"], &line["fields"]["status"]), (&"GET".into(), &404.into()));
    assert!(line["fields"]["micros"].is_u64());
    assert!(!line.to_string().contains("secret"), "the query was logged");
    assert!(lines_about("/no/such/path/silent").is_empty());
}
