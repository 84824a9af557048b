//! Metrics, and the ids of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use super::support::{Reply, Server, repository, sample, wait_for};

/// Metrics by their names: the kind, the names of the labels, and the values of the labels in [`LISTED`].
type Metrics = BTreeMap<String, (String, BTreeSet<String>, BTreeSet<String>)>;

/// The labels whose values docs/metrics.md lists.
const LISTED: [&str; 2] = ["kind", "limit"];

/// The words of a list with commas between them.
fn words(list: &str) -> BTreeSet<String> {
    list.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// The metrics in the table of docs/metrics.md.
fn documented_metrics() -> Metrics {
    let page = std::fs::read_to_string(repository("docs/metrics.md")).unwrap().replace('`', "");
    let rows = page.lines().filter(|line| line.starts_with("| framewire_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (labels, values) = cells[3].split_once(':').unwrap_or((cells[3], ""));
        (cells[1].to_owned(), (cells[2].to_owned(), words(labels), words(values)))
    })
    .collect()
}

/// The metrics in a reply of `/metrics`.
fn served_metrics(text: &str) -> Metrics {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types
        .map(|(name, kind)| {
            let samples = text.lines().filter_map(|line| {
                let (sample, labels) = line.split_once('{')?;
                [name, &format!("{name}_count")].contains(&sample).then(|| labels.split_once('}'))?
            });
            let labels: Vec<(&str, &str)> = samples
                .flat_map(|(labels, _)| labels.split(','))
                .filter_map(|label| label.split_once('='))
                .collect();
            let names = labels.iter().map(|(label, _)| (*label).to_owned()).collect();
            let listed = labels.iter().filter(|(label, _)| LISTED.contains(label));
            let values = listed.map(|(_, value)| value.trim_matches('"').to_owned()).collect();
            (name.to_owned(), (kind.to_owned(), names, values))
        })
        .collect()
}

#[test]
fn a_new_server_has_all_documented_metrics_and_no_others() {
    let server = Server::start();
    // The metrics of requests begin with the first reply.
    server.text("/v1/emulator");
    assert_eq!(served_metrics(&server.text("/metrics")), documented_metrics());
}

#[test]
fn requests_are_counted_by_route_and_status() {
    let server = Server::start();
    for _ in 0..3 {
        server.text("/core/currentFrame");
    }
    assert_eq!(server.request("HEAD", "/core/currentFrame", b"").status, 200);
    assert_eq!(server.get("/CORE/read8").status, 400);
    assert_eq!(server.get("/v1/emulator").status, 200);
    assert_eq!(server.get("/no/such/path").status, 404);
    assert_eq!(server.get("/some/other").status, 404);
    assert_eq!(server.request("BREW", "/core/step", b"").status, 405);
    let reply = server.get("/metrics");
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = reply.text();
    let counted = |route: &str, method: &str, status: u16| {
        let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
        sample(&text, &format!("framewire_http_requests_total{{{labels}}}"))
    };
    assert_eq!(counted("/core/currentFrame", "GET", 200), Some(3.0), "{text}");
    assert_eq!(counted("/core/currentFrame", "HEAD", 200), Some(1.0));
    assert_eq!(counted("/core/read8", "GET", 400), Some(1.0));
    assert_eq!(counted("/v1/emulator", "GET", 200), Some(1.0));
    assert_eq!(counted("", "GET", 404), Some(2.0), "unknown paths get no counters of their own");
    assert_eq!(counted("", "other", 405), Some(1.0));
    let labels = "route=\"/core/currentFrame\",method=\"GET\"";
    let histogram = "framewire_http_request_seconds";
    assert_eq!(sample(&text, &format!("{histogram}_count{{{labels}}}")), Some(3.0));
    assert_eq!(sample(&text, &format!("{histogram}_bucket{{le=\"+Inf\",{labels}}}")), Some(3.0));
    assert!(text.contains("# TYPE framewire_http_requests_total counter"));
    assert_eq!(sample(&text, "framewire_emulator_connected{emulator=\"demo\"}"), Some(1.0));
    assert_eq!(sample(&text, "framewire_emulator_run{emulator=\"demo\",run=\"running\"}"), Some(1.0));
    assert_eq!(sample(&text, "framewire_http_requests_in_flight"), Some(1.0), "only this request");
    assert!(sample(&text, "framewire_http_connections").is_some_and(|open| open >= 1.0));
}

#[test]
fn the_count_of_connections_contains_the_connection_of_the_request() {
    let server = Server::start();
    for _ in 0..400 {
        let open = sample(&server.text("/metrics"), "framewire_http_connections");
        assert!(open >= Some(1.0), "{open:?}");
        // Lets the server notice that the connection ended, so that the next request is the only one.
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn open_streams_and_watches_are_counted() {
    let server = Server::start();
    let value = |name: &str| sample(&server.text("/metrics"), name);
    assert_eq!(value("framewire_streams{kind=\"events\"}"), Some(0.0));
    assert_eq!(value("framewire_watches"), Some(0.0));
    let mut stream = server.connect();
    stream.write_all(b"GET /v1/watch?watch=score HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200);
    assert_eq!(value("framewire_streams{kind=\"events\"}"), Some(1.0));
    assert_eq!(value("framewire_watches"), Some(1.0));
    assert_eq!(value("framewire_watch_readers"), Some(1.0));
    assert_eq!(value("framewire_watch_events_missed_total"), Some(0.0));
    assert_eq!(value("framewire_video_pictures_skipped_total"), Some(0.0));
    drop(stream);
    wait_for("the stream's end", || value("framewire_streams{kind=\"events\"}") == Some(0.0));
}

#[test]
fn the_openmetrics_format_is_sent_to_clients_that_accept_it() {
    let server = Server::start();
    let headers = "accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let reply = server.request_with("GET", "/metrics", headers, b"");
    assert!(reply.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(reply.text().ends_with("# EOF\n"));
}

#[test]
fn every_reply_has_an_id_and_keeps_the_one_that_the_client_sent() {
    let server = Server::start();
    for target in ["/core/currentFrame", "/v1/emulator", "/no/such/path"] {
        let (one, other) = (server.get(target), server.get(target));
        assert_eq!(one.header("x-request-id").map(str::len), Some(16), "{target}");
        assert_ne!(one.header("x-request-id"), other.header("x-request-id"), "{target}");
        let reply = server.request_with("GET", target, "x-request-id: tool-7\r\n", b"");
        assert_eq!(reply.header("x-request-id"), Some("tool-7"), "{target}");
    }
    let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    let reply = server.request_with("GET", "/healthz", trace, b"");
    assert_eq!(reply.header("x-request-id"), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
}
