//! Counters for Prometheus: `GET /metrics`.
//!
//! If a request for one of mGBA-http's routes succeeds, it is counted without a lookup: the route's number is the
//! index of its counters. Other counters are looked up by their labels. The state of emulators is read when a client
//! requests the metrics.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};
use framewire_emulator::{Run, State};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

/// Upper bounds of the buckets of the latency histograms, in seconds. An embedded core usually answers within the first
/// bound. With the default deadline, requests to a stalled emulator fail just after 3 s, so they are counted in the
/// bucket from 3 s to 10 s.
const SECONDS: [f64; 16] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0,
    10.0,
];

const RUNS: [(Run, &str); 4] = [
    (Run::Running, "running"),
    (Run::Paused, "paused"),
    (Run::Stalled, "stalled"),
    (Run::Unknown, "unknown"),
];

/// The limit on all connections, in the label of refused connections.
pub(crate) const LIMIT_ON_ALL: &str = "all";
/// The limit on the connections of one address, in the same label.
pub(crate) const LIMIT_ON_ADDRESS: &str = "address";

/// The route that answered a request.
pub(crate) enum Answered {
    /// One of mGBA-http's, by its number in the table.
    Compat(usize),
    /// One of Framewire's own, by its pattern.
    Own(MatchedPath),
    /// No route: for example, because the request was refused earlier, or because its path does not exist.
    NoRoute,
}

/// The names and values of a counter's labels.
type Labels<const COUNT: usize> = [(&'static str, Cow<'static, str>); COUNT];

/// The counters of a server.
pub(crate) struct Meter {
    registry: Registry,
    answers: Family<Labels<3>, Counter>,
    seconds: Family<Labels<2>, Histogram, fn() -> Histogram>,
    /// mGBA-http's routes with their counters. The number of a route is its index, and the first request for a route
    /// creates its counters.
    compat: Vec<(CompatRoute, OnceLock<Handles>)>,
    /// Requests that are being answered. Work that continues after the connection has ended, because the request has an
    /// `Idempotency-Key`, does not count.
    pub(crate) in_flight: InProgress,
    /// Open connections, without those that became WebSockets.
    pub(crate) connections: Gauge,
    watches: Gauge,
    readers: Gauge,
    /// Events that readers of watches did not take in time.
    pub(crate) events_missed: Counter,
    /// Pictures that were not sent to a viewer over a WebSocket.
    pub(crate) pictures_skipped: Counter,
    streams: Family<Labels<1>, Gauge>,
    turned_away: Family<Labels<1>, Counter>,
    emulator_connected: Family<Labels<1>, Gauge>,
    emulator_run: Family<Labels<2>, Gauge>,
    emulator_rate: Family<Labels<1>, Gauge<f64, AtomicU64>>,
    emulator_frame: Family<Labels<1>, Gauge>,
    emulator_waiting: Family<Labels<1>, Gauge>,
}

/// The path and the method of one of mGBA-http's routes.
pub(crate) type CompatRoute = (&'static str, &'static str);

/// Counts what is in progress. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct InProgress(Gauge);

impl InProgress {
    pub(crate) fn count(&self) -> i64 {
        self.0.get()
    }

    /// Counts one more until the guard is dropped.
    pub(crate) fn begin(&self) -> InProgressGuard {
        self.0.inc();
        InProgressGuard(self.0.clone())
    }
}

/// An [`InProgress`] counts one more until this guard is dropped.
#[derive(Debug)]
pub(crate) struct InProgressGuard(Gauge);

impl Drop for InProgressGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The counters of one route.
struct Handles {
    seconds: Histogram,
    /// Answers with status 200.
    ok: Counter,
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Meter {
    pub(crate) fn new(compat_routes: Vec<CompatRoute>) -> Meter {
        let mut all = Registry::with_prefix("framewire");
        let answers = add(&mut all, "http_requests", "Requests answered, by route, method and status");
        let seconds: Family<_, _, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(SECONDS));
        let help = "Time from the head of a request to the head of its response, by route and method";
        all.register_with_unit("http_request", help, Unit::Seconds, seconds.clone());
        let mut meter = Meter {
            answers,
            seconds,
            compat: compat_routes.into_iter().map(|route| (route, OnceLock::new())).collect(),
            in_flight: InProgress(add(
                &mut all,
                "http_requests_in_flight",
                "Requests that are being answered",
            )),
            connections: add(&mut all, "http_connections", "HTTP connections that are open"),
            watches: add(&mut all, "watches", "Feeds of watches and events, each for any number of readers"),
            readers: add(&mut all, "watch_readers", "Readers of watches"),
            events_missed: add(&mut all, "watch_events_missed", "Events that readers did not take in time"),
            pictures_skipped: add(
                &mut all,
                "video_pictures_skipped",
                "Pictures not sent to a viewer over WebSocket, because of its rate limit or because it was slow",
            ),
            streams: add(
                &mut all,
                "streams",
                "Event streams, WebSockets, subscriptions, long waits and runs that are open, by kind",
            ),
            turned_away: add(&mut all, "http_turned_away", "Connections refused because too many were open"),
            emulator_connected: add(&mut all, "emulator_connected", "Whether the emulator can be reached"),
            emulator_run: add(
                &mut all,
                "emulator_run",
                "How the emulator runs: 1 for the current state, 0 for the others",
            ),
            emulator_rate: add(
                &mut all,
                "emulator_frames_per_second",
                "Frames finished each second, over about the last second",
            ),
            emulator_frame: add(
                &mut all,
                "emulator_frame",
                "The emulator's frame counter, which starts again with a reset",
            ),
            emulator_waiting: add(
                &mut all,
                "emulator_batches_waiting",
                "Batches that the emulator has not answered yet",
            ),
            registry: all,
        };
        let build: Family<Labels<1>, Gauge> =
            add(&mut meter.registry, "build_info", "The version of framewire");
        build.get_or_create(&[("version", env!("CARGO_PKG_VERSION").into())]).set(1);
        // These counters start at 0: if they appeared with the first refusal, `rate` would not count it.
        for limit in [LIMIT_ON_ALL, LIMIT_ON_ADDRESS] {
            meter.turned_away.get_or_create_owned(&[("limit", limit.into())]);
        }
        meter
    }

    pub(crate) fn count(&self, by: &Answered, method: &Method, status: StatusCode, time: Duration) {
        let (method, seconds) = (method_name(method), time.as_secs_f64());
        let route: Cow<'static, str> = match by {
            Answered::Compat(number) => {
                let (labels, handles) = &self.compat[*number];
                let (route, own_method) = *labels;
                // For a HEAD request, the methods differ: the route's own counters are those of GET.
                if method == own_method {
                    let handles = handles.get_or_init(|| self.handles(route, own_method));
                    if status == StatusCode::OK {
                        handles.seconds.observe(seconds);
                        handles.ok.inc();
                        return;
                    }
                }
                route.into()
            }
            Answered::Own(path) => path.as_str().to_owned().into(),
            Answered::NoRoute => "".into(),
        };
        self.seconds.get_or_create(&route_labels(route.clone(), method)).observe(seconds);
        self.answers.get_or_create(&answer_labels(route, method, status)).inc();
    }

    fn handles(&self, route: &'static str, method: &'static str) -> Handles {
        Handles {
            seconds: self.seconds.get_or_create_owned(&route_labels(route.into(), method)),
            ok: self.answers.get_or_create_owned(&answer_labels(route.into(), method, StatusCode::OK)),
        }
    }

    /// The pattern of the route that answered; empty if none did.
    #[cfg(feature = "otlp")]
    pub(crate) fn route<'a>(&'a self, by: &'a Answered) -> &'a str {
        match by {
            Answered::Compat(number) => self.compat[*number].0.0,
            Answered::Own(path) => path.as_str(),
            Answered::NoRoute => "",
        }
    }

    /// Counts a connection that was refused because of a limit, [`LIMIT_ON_ALL`] or [`LIMIT_ON_ADDRESS`].
    pub(crate) fn turn_away(&self, limit: &'static str) {
        self.turned_away.get_or_create(&[("limit", limit.into())]).inc();
    }

    /// Sets the state of an emulator, and how many batches it has not answered yet.
    pub(crate) fn set_emulator(&self, name: &str, state: &State, waiting: i64) {
        let name: Cow<'static, str> = name.to_owned().into();
        let labels = [("emulator", name.clone())];
        self.emulator_connected.get_or_create(&labels).set(state.connected.into());
        self.emulator_rate.get_or_create(&labels).set(state.frames_per_second);
        self.emulator_frame.get_or_create(&labels).set(state.frame.into());
        self.emulator_waiting.get_or_create(&labels).set(waiting);
        for (run, run_name) in RUNS {
            let labels = [("emulator", name.clone()), ("run", run_name.into())];
            self.emulator_run.get_or_create(&labels).set((run == state.run).into());
        }
    }

    pub(crate) fn set_streams(&self, kind: &'static str, count: usize) {
        self.streams.get_or_create(&[("kind", kind.into())]).set(gauge_value(count));
    }

    pub(crate) fn set_watches(&self, feeds: usize, readers: usize) {
        self.watches.set(gauge_value(feeds));
        self.readers.set(gauge_value(readers));
    }

    /// All metrics, in the OpenMetrics format or in Prometheus's older text format.
    pub(crate) fn text(&self, open_metrics: bool) -> String {
        let mut written = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut written, &self.registry);
        if open_metrics { written } else { classic(&written) }
    }
}

/// The label of a route is a pattern from the table of routes, never text from a client. It is empty if no route
/// answered.
fn route_labels(route: Cow<'static, str>, method: &'static str) -> Labels<2> {
    [("route", route), ("method", method.into())]
}

fn answer_labels(route: Cow<'static, str>, method: &'static str, status: StatusCode) -> Labels<3> {
    [("route", route), ("method", method.into()), ("status", status.as_str().to_owned().into())]
}

fn gauge_value(count: usize) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// The name of a common method. All other methods share one name, because clients can invent methods.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Converts OpenMetrics to Prometheus's older text format. In that format, the name of a counter includes `_total`, and
/// there are no units and no end marker.
fn classic(open_metrics: &str) -> String {
    let mut written = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), ..) => help = line,
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let suffix = if kind == "counter" { "_total" } else { "" };
                let text = help.splitn(4, ' ').nth(3).unwrap_or_default();
                written.push_str(&format!("# HELP {name}{suffix} {text}\n# TYPE {name}{suffix} {kind}\n"));
            }
            (Some("#"), ..) => {}
            _ => {
                written.push_str(line);
                written.push('\n');
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_older_format_the_names_of_counters_end_in_total() {
        let written = classic(
            "# HELP a_b Some words.\n# TYPE a_b counter\na_b_total{x=\"# y\"} 1\n# HELP c C.\n# TYPE c gauge\n# UNIT c s\nc 2\n# EOF\n",
        );
        assert_eq!(
            written,
            "# HELP a_b_total Some words.\n# TYPE a_b_total counter\na_b_total{x=\"# y\"} 1\n# HELP c C.\n# TYPE c gauge\nc 2\n"
        );
    }
}
