use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use framewire_loadtest::goal::Goal;
use framewire_loadtest::http::request;
use framewire_loadtest::http::request::{HeaderName, HeaderValue, Method};
use framewire_loadtest::payload::Payload;
use framewire_loadtest::search::Search;
use framewire_loadtest::stages::Stages;
use framewire_loadtest::{Arrivals, Check, Load, Plan, Retries, Strategy, rates};

/// What to measure and how.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// What to measure: http://HOST:PORT/PATH or https:// (`{}` in it stands for the message; if the path is just
    /// /mgbaendpoint, `?message={}` is added), link://HOST:PORT (the script, binary frames), marker://HOST:PORT (the
    /// script, text), or embedded
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,

    /// Requests per second: a list (1,5,10), ranges with a step (10..100/10) or a factor (1..1000*2)
    #[arg(short, long, value_name = "LIST", default_value = "10", value_parser = rate_list, help_heading = "Load")]
    pub rates: Rates,
    /// Instead of a rate, use this many clients, each of which sends its next request after it has received a reply
    #[arg(short, long, value_name = "N", value_parser = count, conflicts_with_all = ["rates", "poisson", "find_limit"], help_heading = "Load")]
    pub concurrency: Option<usize>,
    /// Rates that change during one run: TIME@RATE, or TIME@FROM..TO for a ramp, such as 10s@100,30s@100..1000
    #[arg(long, value_name = "LIST", conflicts_with_all = ["rates", "concurrency", "duration", "find_limit"], help_heading = "Load")]
    pub stages: Option<Stages>,
    /// Random gaps between requests, as from many independent users, instead of equal gaps with the same mean
    #[arg(long, help_heading = "Load")]
    pub poisson: bool,
    /// Length of a run
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration, help_heading = "Load")]
    pub duration: Duration,
    /// Send load for this time before each run, without measuring it; otherwise the first measured request opens a
    /// connection
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration, help_heading = "Load")]
    pub warmup: Duration,
    /// Wait between two runs
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = humantime::parse_duration, help_heading = "Load")]
    pub rest: Duration,
    /// The message in a request: uuid, a number of random bytes, or 1..5000 for random sizes [default: uuid]
    #[arg(short, long, value_name = "uuid|BYTES|A..B", help_heading = "Load")]
    pub payload: Option<Payload>,
    /// Which replies are correct: echo (equal to the message), status (200 to 299), status=404, equals=TEXT,
    /// contains=TEXT (or @FILE), or none (all of them) [default: echo if the message is sent, else status]
    #[arg(long, value_name = "CHECK", help_heading = "Load")]
    pub check: Option<Check>,

    /// The method [default: GET; with --body: POST]
    #[arg(long, value_name = "METHOD", value_parser = request::method, help_heading = "Request (http:// and https://)")]
    pub method: Option<Method>,
    /// Add a header line, 'Name: value'; can be repeated
    #[arg(long = "header", short = 'H', value_name = "LINE", value_parser = request::header, help_heading = "Request (http:// and https://)")]
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, or @FILE with the body; `{}` stands for the message (`{{}}` means `{}` itself)
    #[arg(long, value_name = "TEXT|@FILE", help_heading = "Request (http:// and https://)")]
    pub body: Option<String>,
    /// A TOML file with several requests and their weights, instead of a path, --method and --body
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body", "check"], help_heading = "Request (http:// and https://)")]
    pub requests: Option<PathBuf>,
    /// Send the token in this file: Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE", help_heading = "Request (http:// and https://)")]
    pub token_file: Option<PathBuf>,

    /// Trust the certificates in this PEM file instead of the system's
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        help_heading = "Connection (http:// and https://)"
    )]
    pub cacert: Option<PathBuf>,
    /// Trust every certificate
    #[arg(long, help_heading = "Connection (http:// and https://)")]
    pub insecure: bool,
    /// Connect to this Unix socket instead of the host and port
    #[arg(long, value_name = "FILE", help_heading = "Connection (http:// and https://)")]
    pub unix_socket: Option<PathBuf>,
    /// Use HTTP/2, with one connection per worker and many requests in flight; over http:// with prior knowledge
    #[arg(long, help_heading = "Connection (http:// and https://)")]
    pub http2: bool,

    /// Search for the highest rate that meets --goal, starting at the rate of --rates; the exit code is 1 if
    /// there is no such rate
    #[arg(long, requires = "goal", help_heading = "Goal")]
    pub find_limit: bool,
    /// Conditions such as success=100%,p99<40ms; without --find-limit, the exit code is 1 if a run does not meet them
    #[arg(short, long, value_name = "CONDITIONS", help_heading = "Goal")]
    pub goal: Option<Goal>,

    /// How sockets are used: single, per-request, pool, pool-retry, pool-keep-broken (marker:// and link://) or mux
    /// [default: pool; link:// and --http2: mux]
    #[arg(short, long, value_name = "NAME", help_heading = "Client")]
    pub strategy: Option<Strategy>,
    /// pool-retry: the time to wait before each retry, such as 400ms,1200ms [default: 50ms,100ms]
    #[arg(long, value_name = "TIMES", help_heading = "Client")]
    pub retries: Option<Retries>,
    /// Let the system hold back small packets (Nagle's algorithm) instead of sending each at once
    #[arg(long, help_heading = "Client")]
    pub nagle: bool,
    /// The largest number of requests in flight; further requests wait, and their latency includes the wait
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = count, help_heading = "Client")]
    pub connections: usize,
    /// Threads that send
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count, help_heading = "Client")]
    pub workers: usize,
    /// Longest wait for a reply
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration, help_heading = "Client")]
    pub timeout: Duration,
    /// marker://: send only the message instead of framewire.echo,MESSAGE, for scripts that return whatever they
    /// receive
    #[arg(long, help_heading = "Client")]
    pub raw: bool,
    /// marker://: send only the message, without an end mark, and use the result of one read of at most 1,024 bytes as
    /// the reply, to show what happens to longer messages
    #[arg(long, conflicts_with = "raw", help_heading = "Client")]
    pub unframed: bool,
    /// Do not check before the first run whether the target accepts connections
    #[arg(long, help_heading = "Client")]
    pub skip_check: bool,

    /// embedded: the ROM to run instead of the demo game
    #[arg(long, value_name = "FILE", help_heading = "Emulator")]
    pub rom: Option<PathBuf>,
    /// embedded: the speed; 1 is the console's own speed, and 0 is as fast as the processor allows [default: 1]
    #[arg(long, value_name = "TIMES", value_parser = times, help_heading = "Emulator")]
    pub speed: Option<f64>,
    /// Where to read the emulator's frame counter: a URL that returns JSON, auto (the target's own counter, if any), or
    /// none
    #[arg(long, value_name = "URL", default_value = "auto", help_heading = "Emulator")]
    pub emulator: String,
    /// The counter's name in that JSON
    #[arg(long, value_name = "NAME", default_value = "frame", help_heading = "Emulator")]
    pub counter: String,

    /// Write all results as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write an HTML page with plots
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Write the histograms as an HDR log
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub hdr: Option<PathBuf>,
    /// Write the rows of the table as CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Write gauges in Prometheus' text format
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub prometheus: Option<PathBuf>,
    /// Print only the result
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// A list of rates. It has its own type, because clap would treat a `Vec` as an option that can be repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates(Vec<f64>);

fn rate_list(text: &str) -> Result<Rates, rates::RatesError> {
    rates::parse(text).map(Rates)
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a whole number, such as 1 or 256".to_owned())
}

fn times(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "write a number, such as 1 or 2.5; 0 is as fast as possible".to_owned())
}

impl RunArgs {
    /// The target's address.
    pub fn target(&self) -> anyhow::Result<&str> {
        self.target.as_deref().context(
            "no target; name one, such as http://127.0.0.1:5000/mgbaendpoint, link://127.0.0.1:8888 or embedded",
        )
    }

    /// One of the given options that are only for HTTP servers, if there is one.
    pub fn http_option(&self) -> Option<&'static str> {
        let given = [
            ("--method", self.method.is_some()),
            ("--header", !self.headers.is_empty()),
            ("--body", self.body.is_some()),
            ("--requests", self.requests.is_some()),
            ("--token-file", self.token_file.is_some()),
            ("--cacert", self.cacert.is_some()),
            ("--insecure", self.insecure),
            ("--unix-socket", self.unix_socket.is_some()),
            ("--http2", self.http2),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// One of the given options that are only for the embedded core, if there is one.
    pub fn embedded_option(&self) -> Option<&'static str> {
        if self.rom.is_some() { Some("--rom") } else { self.speed.map(|_| "--speed") }
    }

    /// The requested runs, in order. At least one.
    pub fn plans(&self) -> anyhow::Result<Vec<Plan>> {
        let arrivals = if self.poisson { Arrivals::Poisson } else { Arrivals::Constant };
        let loads = match (self.concurrency, &self.stages) {
            (Some(concurrency), _) => vec![Load::Closed { concurrency }],
            (None, Some(stages)) => vec![Load::Stages { stages: stages.clone(), arrivals }],
            (None, None) => self.rates.0.iter().map(|rate| Load::Open { rate: *rate, arrivals }).collect(),
        };
        let plan = |load| {
            let plan = Plan {
                load,
                duration: self.stages.as_ref().map_or(self.duration, Stages::length),
                warmup: self.warmup,
                payload: self.payload.unwrap_or(Payload::Uuid),
                workers: self.workers,
                // A closed load has one request in flight for each client. `max` lets the check below report a load
                // with 0 clients as such, and not as a load with too few connections.
                connections: self.concurrency.map_or(self.connections, |clients| clients.max(self.workers)),
                timeout: self.timeout,
            };
            plan.check()?;
            Ok(plan)
        };
        loads.into_iter().map(plan).collect()
    }

    /// The search of `--find-limit` with its goal, if it was requested.
    pub fn search(&self) -> anyhow::Result<Option<(Search, Goal)>> {
        if !self.find_limit {
            return Ok(None);
        }
        let [start] = self.rates.0[..] else {
            bail!("--find-limit begins at one rate; give one with --rates, such as --rates 10");
        };
        // A run must contain at least two requests.
        let lowest = 2.0 / self.duration.as_secs_f64();
        let search = Search { start: start.max(lowest), lowest, ..Search::default() };
        Ok(self.goal.clone().map(|goal| (search, goal)))
    }
}
