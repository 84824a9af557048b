//! Counters for Prometheus: `GET /metrics`.
//!
//! A request of mGBA-http's is counted without looking anything up: the counters of its route are found by the route's
//! number. Those of other routes are found by their labels. The state of emulators is read when the counters are asked for.

mod emulators;
mod labels;
mod text;

use std::sync::OnceLock;
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};
use framewire_emulator::State as EmulatorState;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use self::emulators::EmulatorGauges;
use self::labels::{AnswerLabels, BuildLabels, LimitLabels, RouteLabels, StreamLabels, method_name};

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

/// The counters of a server.
pub(crate) struct Meter {
    registry: Registry,
    answers: Family<AnswerLabels, Counter>,
    seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    /// mGBA-http's routes, in the order of their numbers.
    compat_routes: Vec<CompatRoute>,
    /// The counters of those that were asked for, by number.
    compat: Vec<OnceLock<Handles>>,
    /// Requests that are being answered.
    in_flight: Gauge,
    /// Connections that are open, those that became WebSockets left out.
    pub(crate) connections: Gauge,
    turned_away: Family<LimitLabels, Counter>,
    streams: Family<StreamLabels, Gauge>,
    watches: Gauge,
    readers: Gauge,
    /// Events that readers of watches did not take in time.
    pub(crate) events_missed: Counter,
    /// Pictures that viewers were not sent.
    pub(crate) pictures_skipped: Counter,
    emulators: EmulatorGauges,
}

/// The path and the method of one of mGBA-http's routes.
pub(crate) type CompatRoute = (&'static str, &'static str);

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
    /// Answers with status 200.
    ok: Counter,
    route: &'static str,
}

impl Meter {
    /// Counters for a server with these of mGBA-http's routes.
    pub(crate) fn new(compat_routes: Vec<CompatRoute>) -> Meter {
        let mut registry = Registry::with_prefix("framewire");
        let answers = Family::<AnswerLabels, Counter>::default();
        registry.register("http_requests", "Requests answered, by route, method and status", answers.clone());
        let seconds: Family<RouteLabels, Histogram, fn() -> Histogram> =
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
        let watches = gauge("watches", "Feeds of watches and events, each for any number of readers");
        let readers = gauge("watch_readers", "Readers of watches");
        let mut counter = |name, help| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let events_missed = counter("watch_events_missed", "Events that readers did not take in time");
        let help =
            "Pictures not sent to a viewer over WebSocket, because of its rate limit or because it was slow";
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
        let build = Family::<BuildLabels, Gauge>::default();
        build.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        registry.register("build_info", "The version of framewire", build);
        let compat = compat_routes.iter().map(|_| OnceLock::new()).collect();
        Meter {
            registry,
            answers,
            seconds,
            compat_routes,
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
                    handles.ok.inc();
                    return;
                }
                (handles.route, None)
            }
            Answered::Own(path) => (path.as_str(), Some(time)),
            Answered::Nobody => ("", Some(time)),
        };
        let route = RouteLabels { route: route.into(), method };
        if let Some(time) = seconds {
            self.seconds.get_or_create(&route).observe(time.as_secs_f64());
        }
        self.answers
            .get_or_create(&AnswerLabels { route: route.route, method, status: status.as_u16() })
            .inc();
    }

    fn handles(&self, number: usize) -> Handles {
        let (route, method) = self.compat_routes[number];
        let ok = AnswerLabels { route: route.into(), method, status: StatusCode::OK.as_u16() };
        Handles {
            seconds: self.seconds.get_or_create_owned(&RouteLabels { route: route.into(), method }),
            ok: self.answers.get_or_create_owned(&ok),
            route,
        }
    }

    /// The pattern of the route that answered; empty if none did.
    #[cfg(feature = "otlp")]
    pub(crate) fn route<'a>(&'a self, by: &'a Answered) -> &'a str {
        match by {
            Answered::Compat(number) => self.compat_routes[*number].0,
            Answered::Own(path) => path.as_str(),
            Answered::Nobody => "",
        }
    }

    /// Counts a connection that was refused because of this limit: `all` connections, or those of its `address`.
    pub(crate) fn turn_away(&self, limit: &'static str) {
        self.turned_away.get_or_create(&LimitLabels { limit }).inc();
    }

    /// Sets how an emulator is, and how many batches it has not answered yet.
    pub(crate) fn set_emulator(&self, name: &str, state: &EmulatorState, waiting: i64) {
        self.emulators.set(name, state, waiting);
    }

    /// Sets how many streams of this kind are open.
    pub(crate) fn set_streams(&self, kind: &'static str, count: usize) {
        self.streams.get_or_create(&StreamLabels { kind }).set(gauge_value(count));
    }

    /// Sets how many feeds of watches there are, and how many readers they have.
    pub(crate) fn set_watches(&self, feeds: usize, readers: usize) {
        self.watches.set(gauge_value(feeds));
        self.readers.set(gauge_value(readers));
    }

    /// Everything in the text format of Prometheus, or in OpenMetrics.
    pub(crate) fn text(&self, open_metrics: bool) -> String {
        text::encode(&self.registry, open_metrics)
    }
}

fn gauge_value(count: usize) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
