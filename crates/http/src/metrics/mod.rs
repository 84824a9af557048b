//! What is counted, for Prometheus: `GET /metrics`.
//!
//! A request of mGBA-http's is counted without looking anything up: the counters of its route are found by the route's
//! number. Those of other routes are found by their labels. What an emulator says of itself is asked for when somebody
//! looks.

mod emulators;
mod labels;
mod text;

use std::sync::OnceLock;
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use self::emulators::EmulatorGauges;
use self::labels::{Answer, Build, Reason, Route, StreamKind, method_name};
use crate::app::Site;
use crate::compat;

/// Upper bounds of the histograms of latency, in seconds: an embedded core answers within the first, a stalled emulator
/// is given up at the last but one.
const SECONDS: [f64; 16] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0,
    10.0,
];

/// Which route answered a request.
pub(crate) enum Answered {
    /// One of mGBA-http's, by its number in the table.
    Compat(usize),
    /// One of Framewire's own, by its pattern.
    Own(MatchedPath),
    /// None: the request was refused before, or asks for nothing that is there.
    Nobody,
}

#[cfg(feature = "otlp")]
impl Answered {
    /// The route's pattern, empty if there is none.
    pub(crate) fn route(&self) -> &str {
        match self {
            Answered::Compat(number) => compat::numbered().nth(*number).map_or("", |route| route.path),
            Answered::Own(path) => path.as_str(),
            Answered::Nobody => "",
        }
    }
}

/// The counters of a server.
pub(crate) struct Meter {
    registry: Registry,
    answers: Family<Answer, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    /// Those of mGBA-http's routes that were asked, by number.
    compat: Vec<OnceLock<Handles>>,
    /// Requests that are being answered.
    in_flight: Gauge,
    /// Connections that are open, those that became WebSockets left out.
    pub(crate) connections: Gauge,
    turned_away: Family<Reason, Counter>,
    streams: Family<StreamKind, Gauge>,
    watches: Gauge,
    readers: Gauge,
    /// Events that readers of watches did not take in time.
    pub(crate) events_missed: Counter,
    /// Pictures that viewers were not sent.
    pub(crate) pictures_skipped: Counter,
    emulators: EmulatorGauges,
}

/// A request that is being answered, or whose client went away meanwhile.
pub(crate) struct InFlight<'a>(&'a Gauge);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The counters of one route.
struct Handles {
    seconds: Histogram,
    /// Of answers with status 200.
    well: Counter,
    route: &'static str,
}

impl Meter {
    pub(crate) fn new() -> Meter {
        let mut registry = Registry::with_prefix("framewire");
        let answers = Family::<Answer, Counter>::default();
        registry.register("http_requests", "Requests answered, by route, method and status", answers.clone());
        let seconds: Family<Route, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(SECONDS));
        let help = "Time from a request's head to its answer's, by route and method";
        registry.register_with_unit("http_request", help, Unit::Seconds, seconds.clone());
        let mut gauge = |name, help| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let in_flight = gauge("http_requests_in_flight", "Requests that are being answered");
        let connections = gauge("http_connections", "HTTP connections that are open");
        let watches = gauge(
            "watches",
            "Feeds of watches and events that are collected, each for any number of readers",
        );
        let readers = gauge("watch_readers", "Who reads them");
        let mut counter = |name, help| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let events_missed =
            counter("watch_events_missed", "Events that readers did not take in time, and were told so");
        let help = "Pictures that were drawn while somebody looked by WebSocket, and not sent: of the rate, or of slowness";
        let pictures_skipped = counter("video_pictures_skipped", help);
        let streams = Family::default();
        let help = "Event streams, WebSockets, subscriptions and long waits that are open, by kind";
        registry.register("streams", help, streams.clone());
        let turned_away = Family::default();
        registry.register(
            "http_turned_away",
            "Connections refused because too many were open",
            turned_away.clone(),
        );
        let emulators = EmulatorGauges::register(&mut registry);
        let build = Family::<Build, Gauge>::default();
        build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);
        registry.register("build_info", "The version of framewire", build);
        let compat = compat::numbered().map(|_| OnceLock::new()).collect();
        Meter {
            registry,
            answers,
            seconds,
            compat,
            in_flight,
            connections,
            turned_away,
            streams,
            watches,
            readers,
            events_missed,
            pictures_skipped,
            emulators,
        }
    }

    /// Counts a request as being answered until the guard is dropped.
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.in_flight.inc();
        InFlight(&self.in_flight)
    }

    /// Counts an answer.
    pub(crate) fn count(&self, by: &Answered, method: &Method, status: StatusCode, time: Duration) {
        let method = method_name(method);
        let (route, seconds) = match by {
            Answered::Compat(number) => {
                let handles = self.compat[*number].get_or_init(|| self.handles(*number));
                handles.seconds.observe(time.as_secs_f64());
                if status == StatusCode::OK {
                    handles.well.inc();
                    return;
                }
                (handles.route, None)
            }
            Answered::Own(path) => (path.as_str(), Some(time)),
            Answered::Nobody => ("", Some(time)),
        };
        let route = Route { route: route.into(), method };
        if let Some(time) = seconds {
            self.seconds.get_or_create(&route).observe(time.as_secs_f64());
        }
        self.answers.get_or_create(&Answer { route: route.route, method, status: status.as_u16() }).inc();
    }

    fn handles(&self, number: usize) -> Handles {
        let route = compat::numbered().nth(number);
        let method = match route.map(|route| route.verb) {
            Some(compat::Verb::Post) => "POST",
            _ => "GET",
        };
        let route = route.map_or("", |route| route.path);
        let well = Answer { route: route.into(), method, status: StatusCode::OK.as_u16() };
        Handles {
            seconds: self.seconds.get_or_create_owned(&Route { route: route.into(), method }),
            well: self.answers.get_or_create_owned(&well),
            route,
        }
    }

    /// Counts a client for whom there is no connection left: `all` of them, or those of its `address`.
    pub(crate) fn turn_away(&self, limit: &'static str) {
        self.turned_away.get_or_create(&Reason { limit }).inc();
    }

    /// Everything in the text format of Prometheus, or in OpenMetrics.
    pub(crate) fn text(&self, site: &Site, open_metrics: bool) -> String {
        let whole = |count: usize| count.try_into().unwrap_or(i64::MAX);
        self.emulators.look(&site.app.emulators);
        for (kind, count) in site.streams.counts() {
            self.streams.get_or_create(&StreamKind { kind }).set(whole(count));
        }
        let (watches, readers) = site.live.counts();
        self.watches.set(whole(watches));
        self.readers.set(whole(readers));
        text::encode(&self.registry, open_metrics)
    }
}
