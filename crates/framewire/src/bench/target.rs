use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use framewire_loadtest::engine::{Interval, Outcome};
use framewire_loadtest::http::request::{self, HeaderName, HeaderValue, Method, Request};
use framewire_loadtest::http::template::Template;
use framewire_loadtest::http::{HttpOptions, HttpTarget, Reuse, Trust};
use framewire_loadtest::probe::Probe;
use framewire_loadtest::report::TargetInfo;
use framewire_loadtest::url::Url;
use framewire_loadtest::{Check, Load, Plan, Retries, Stop, Strategy};

use super::args::RunArgs;
use super::emulator;
use super::script::{Dialect, Options, ScriptTarget};

/// How long the check before the first run waits for the target.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The waits before retries, if `--retries` does not set others.
const WAITS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(100)];
/// The largest file of `--token-file` that is accepted, in bytes.
const MAX_TOKEN_FILE: u64 = 64 << 10;
/// The path to which `?message={}` is added for a plain GET. It is the endpoint of the study of 2025 (docs/study.md).
const ECHO: &str = "/mgbaendpoint";

type Headers = Vec<(HeaderName, HeaderValue)>;

/// A target, ready to be measured.
pub enum BenchTarget {
    /// An HTTP server.
    Http(Box<Http>),
    /// A script in an emulator.
    Script {
        /// The script's address.
        url: Url,
        /// The target itself.
        target: Arc<ScriptTarget>,
    },
    /// A core in this process.
    #[cfg(feature = "embedded")]
    Embedded(Arc<super::embedded_target::EmbeddedTarget>),
}

/// An HTTP server.
pub struct Http {
    /// The server's address.
    url: Url,
    /// How connections are used.
    strategy: Strategy,
    /// The target itself.
    target: Arc<HttpTarget>,
    /// The requests that the server gets.
    requests: Vec<Request>,
    /// How to connect to the server.
    options: HttpOptions,
    /// The headers that all requests have.
    headers: Headers,
}

impl Http {
    /// A target for another request: `GET` of `url`. If `url` is on the same server, the request has the headers of
    /// the other requests, and uses HTTP/2 if they do.
    pub fn with_path(&self, url: &Url) -> anyhow::Result<HttpTarget> {
        let same = url.authority() == self.url.authority();
        let headers = if same { self.headers.clone() } else { Vec::new() };
        let unix_socket = self.options.unix_socket.clone().filter(|_| same);
        let http2 = self.options.http2 && same;
        let options = HttpOptions { reuse: Reuse::default(), unix_socket, http2, ..self.options.clone() };
        Ok(HttpTarget::new(url, &[Request { headers, ..Request::get(&url.path) }], &options)?)
    }

    /// A target for the state of the emulator, which Framewire's server returns at `path`.
    pub fn state(&self, path: &str) -> anyhow::Result<HttpTarget> {
        self.with_path(&Url { path: path.to_owned(), ..self.url.clone() })
    }
}

impl BenchTarget {
    /// The target that the command line names. It does not connect yet.
    pub fn new(args: &RunArgs) -> anyhow::Result<BenchTarget> {
        let text = args.target()?;
        if text == "embedded" {
            return embedded(args);
        }
        let url: Url = text.parse()?;
        ensure!(!args.raw || url.scheme == "marker", "--raw is for marker:// targets");
        ensure!(!args.unframed || url.scheme == "marker", "--unframed is for marker:// targets");
        let is_http = matches!(url.scheme.as_str(), "http" | "https");
        if let Some(option) = args.http_option().filter(|_| !is_http) {
            bail!("{option} is for http:// and https:// targets, and {url} is neither");
        }
        if let Some(option) = args.embedded_option() {
            bail!(
                "{option} is for the target `embedded`; leave it out, or measure `embedded` instead of {url}"
            );
        }
        match url.scheme.as_str() {
            "http" | "https" => http(url, args),
            "link" => {
                let strategy = args.strategy.unwrap_or(Strategy::Mux);
                ensure!(
                    !args.nagle || strategy != Strategy::Mux,
                    "--nagle does not work on a link, which sends at once; use marker://, or a --strategy other than \
                     mux"
                );
                script(url, Dialect::Binary, strategy, args)
            }
            "marker" => {
                let strategy = args.strategy.unwrap_or(Strategy::Pool);
                ensure!(
                    !args.unframed || strategy != Strategy::Mux,
                    "--unframed replies do not say which message they belong to; use a --strategy other than mux"
                );
                let dialect = match (args.unframed, args.raw) {
                    (true, _) => Dialect::Unframed,
                    (false, true) => Dialect::Marker { prefix: String::new() },
                    (false, false) => Dialect::marker(),
                };
                script(url, dialect, strategy, args)
            }
            scheme => bail!(
                "{scheme}:// is not a kind of target; use http://, https://, link:// or marker:// with HOST:PORT, or embedded"
            ),
        }
    }

    /// Adapts a plan to the target and its strategy.
    pub fn fit(&self, mut plan: Plan) -> anyhow::Result<Plan> {
        match self {
            BenchTarget::Http(http) => {
                if http.strategy == Strategy::Single {
                    ensure!(plan.workers == 1, "--strategy single has one connection; leave --workers at 1");
                    ensure!(
                        !matches!(plan.load, Load::Closed { concurrency: 2.. }),
                        "--strategy single has one connection, which is for one client; use --concurrency 1, or \
                         --strategy pool"
                    );
                    plan.connections = 1;
                }
                plan.timeout = http.options.reuse.retries.longest(plan.timeout);
            }
            BenchTarget::Script { target, .. } => {
                ensure!(
                    plan.workers == 1,
                    "several workers cannot share connections to a script; leave --workers at 1 (one is enough for \
                     any script)"
                );
                plan.timeout = target.options.retries.longest(plan.timeout);
            }
            #[cfg(feature = "embedded")]
            BenchTarget::Embedded(_) => {}
        }
        Ok(plan)
    }

    /// Checks that the target accepts connections.
    pub fn check(&self) -> anyhow::Result<()> {
        let (url, reached, advice) = match self {
            BenchTarget::Http(http) => {
                let advice = if http.url.scheme == "https" {
                    "start the server first, correct the address, or name its certificate with --cacert"
                } else {
                    "start the server first (`framewire serve`), or correct the address"
                };
                (&http.url, http.target.reach(TIMEOUT), advice)
            }
            BenchTarget::Script { url, .. } => (
                url,
                emulator::connect(&url.authority(), TIMEOUT).map(drop),
                "start mGBA with a ROM and load the script (`framewire script`), or correct the address",
            ),
            #[cfg(feature = "embedded")]
            BenchTarget::Embedded(_) => return Ok(()),
        };
        reached
            .with_context(|| format!("{url} cannot be reached; {advice} (--skip-check measures it anyway)"))
    }

    /// Performs one run.
    pub fn run(
        &self,
        plan: &Plan,
        probe: &mut Option<Box<dyn Probe>>,
        stop: &Stop,
        watch: &mut dyn FnMut(&Interval),
    ) -> io::Result<Outcome> {
        match self {
            BenchTarget::Http(http) => framewire_loadtest::run(&http.target, plan, probe, stop, watch),
            BenchTarget::Script { target, .. } => framewire_loadtest::run(target, plan, probe, stop, watch),
            #[cfg(feature = "embedded")]
            BenchTarget::Embedded(target) => framewire_loadtest::run(target, plan, probe, stop, watch),
        }
    }

    /// What the report says about the target. `counter` is the unit of the sampled counter, such as `frames`.
    pub fn info(&self, args: &RunArgs, counter: Option<String>) -> TargetInfo {
        let (url, strategy, check, requests) = match self {
            BenchTarget::Http(http) => {
                let (check, requests) = match &http.requests[..] {
                    [one] => (one.check.to_string(), vec![one.to_string()]),
                    several => {
                        let named = several
                            .iter()
                            .map(|request| format!("{} x {request} ({})", request.weight, request.check));
                        ("a list".to_owned(), named.collect())
                    }
                };
                (http.url.to_string(), http.strategy.to_string(), check, requests)
            }
            BenchTarget::Script { url, target } => {
                let check = target.options.check.to_string();
                (url.to_string(), target.strategy.to_string(), check, Vec::new())
            }
            #[cfg(feature = "embedded")]
            BenchTarget::Embedded(target) => {
                ("embedded".to_owned(), "in this process".to_owned(), target.check.to_string(), Vec::new())
            }
        };
        TargetInfo { url, strategy, counter, check, requests, options: Some(options(args)) }
    }
}

/// The options that change what is measured and that no other field of a report names. Leaves out those that have their
/// default value, and secrets in headers.
fn options(args: &RunArgs) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(rom) = &args.rom {
        let name = rom.file_name().unwrap_or(rom.as_os_str());
        options.push(format!("rom {}", name.to_string_lossy()));
    }
    if let Some(speed) = args.speed.filter(|speed| *speed != 1.0) {
        options.push(format!("speed {speed}"));
    }
    if let Some(retries) = args.retries.as_ref().filter(|retries| retries.waits() != WAITS) {
        options.push(format!("retries {retries}"));
    }
    let flags = [
        ("raw", args.raw),
        ("unframed", args.unframed),
        ("nagle", args.nagle),
        ("http2", args.http2),
        ("unix-socket", args.unix_socket.is_some()),
    ];
    options.extend(flags.into_iter().filter(|(_, given)| *given).map(|(name, _)| name.to_owned()));
    for (name, value) in &args.headers {
        let line = format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()));
        options.push(format!("header {}", super::without_secret(&line)));
    }
    if let Some(body) = &args.body {
        options.push(format!("body {}", super::without_folder(body)));
    }
    options
}

/// The waits before the retries of a request. Only `pool-retry` uses them, so other strategies refuse `--retries`.
fn retries(strategy: Strategy, args: &RunArgs) -> anyhow::Result<Retries> {
    match &args.retries {
        Some(_) if strategy != Strategy::PoolRetry => {
            bail!("--retries is for --strategy pool-retry; leave it out for {strategy}")
        }
        Some(retries) => Ok(retries.clone()),
        None => Ok(Retries::new(WAITS)),
    }
}

fn http(url: Url, args: &RunArgs) -> anyhow::Result<BenchTarget> {
    let strategy = args.strategy.unwrap_or(if args.http2 { Strategy::Mux } else { Strategy::Pool });
    let retries = retries(strategy, args)?;
    let reuse = match strategy {
        Strategy::PerRequest => Reuse { keep_alive: false, ..Reuse::default() },
        Strategy::Mux if args.http2 => Reuse::default(),
        _ if args.http2 => bail!(
            "--strategy {strategy} is for HTTP/1.1; with --http2, requests share a connection (mux), or each has its own \
             (per-request)"
        ),
        Strategy::Single | Strategy::Pool => Reuse::default(),
        Strategy::PoolRetry => Reuse { retries, attempt_timeout: Some(args.timeout), ..Reuse::default() },
        Strategy::PoolKeepBroken => {
            bail!("--strategy pool-keep-broken is for marker:// and link:// targets; use pool")
        }
        Strategy::Mux => {
            bail!("HTTP/1.1 has one request at a time on a connection; use --strategy pool, or --http2")
        }
    };
    ensure!(
        !args.nagle || args.unix_socket.is_none(),
        "--nagle has no effect on a Unix socket; leave --nagle out"
    );
    let trust = match &args.cacert {
        _ if args.insecure => Trust::AnyCertificate,
        Some(path) => Trust::File(path.clone()),
        None => Trust::System,
    };
    let unix_socket = args.unix_socket.clone();
    let options = HttpOptions { reuse, trust, unix_socket, http2: args.http2, nagle: args.nagle };
    let headers = headers(args)?;
    let requests = match &args.requests {
        Some(path) => {
            ensure!(
                url.path == "/",
                "{url} has a path, and so do the requests in {}; give only {}://HOST:PORT",
                path.display(),
                url.scheme
            );
            request::read_list(path, &headers)?
        }
        None => vec![one_request(&url, &headers, args)?],
    };
    ensure!(
        args.payload.is_none() || requests.iter().any(sends_message),
        "--payload sets the message, but no request contains the message; write {{}} where it goes, in the address, a \
         header or the body"
    );
    let target = Arc::new(HttpTarget::new(&url, &requests, &options)?);
    Ok(BenchTarget::Http(Box::new(Http { url, strategy, target, requests, options, headers })))
}

/// Whether the request contains the message.
fn sends_message(request: &Request) -> bool {
    let in_header =
        |(_, value): &(HeaderName, HeaderValue)| Template::new(value.as_bytes()).has_placeholder();
    request.has_placeholder() || request.headers.iter().any(in_header)
}

/// The headers of the command line, and a header with the token of `--token-file`.
fn headers(args: &RunArgs) -> anyhow::Result<Headers> {
    let mut headers = args.headers.clone();
    if let Some(path) = &args.token_file {
        ensure!(
            headers.iter().all(|(name, _)| name != "authorization"),
            "--token-file and --header both set Authorization; leave one of them out"
        );
        let text = framewire_files::read_text(path, MAX_TOKEN_FILE)
            .with_context(|| format!("cannot read the token in {}", path.display()))?;
        let token = text.trim();
        ensure!(!token.is_empty(), "{} is empty; `framewire token FILE` writes a token", path.display());
        headers.push(request::header(&format!("Authorization: Bearer {token}")).with_context(|| {
            format!("{} has more than a token; it must be one line of printable characters", path.display())
        })?);
    }
    Ok(headers)
}

/// The request that the command line describes.
fn one_request(url: &Url, headers: &Headers, args: &RunArgs) -> anyhow::Result<Request> {
    let mut path = url.path.clone();
    if path == ECHO && args.method.is_none() && args.body.is_none() {
        path += "?message={}";
    }
    let body = args.body.as_deref().map(|text| request::body(text, Path::new(""))).transpose()?;
    let default = if body.is_some() { Method::POST } else { Method::GET };
    let method = args.method.clone().unwrap_or(default);
    let mut request = Request { method, headers: headers.clone(), body, ..Request::get(&path) };
    if request.has_placeholder() {
        request.check = Check::Echo;
    }
    if let Some(check) = &args.check {
        ensure!(
            *check != Check::Echo || request.has_placeholder(),
            "--check echo needs a message to compare with; write {{}} where it goes, in the address or in --body"
        );
        request.check = check.clone();
    }
    Ok(request)
}

/// The check of replies for a target whose replies have no status.
fn check_without_status(args: &RunArgs) -> anyhow::Result<Check> {
    let check = args.check.clone().unwrap_or(Check::Echo);
    ensure!(
        !matches!(check, Check::Status(_)),
        "--check {check} is for http:// and https:// targets, because other replies have no status; use echo, \
         equals=TEXT, contains=TEXT or none"
    );
    Ok(check)
}

fn script(url: Url, dialect: Dialect, strategy: Strategy, args: &RunArgs) -> anyhow::Result<BenchTarget> {
    ensure!(url.path == "/", "{url} has a path; give only {}://HOST:PORT", url.scheme);
    // A host that cannot be found is reported now, before the first run.
    url.resolve()?;
    let check = check_without_status(args)?;
    let retries = retries(strategy, args)?;
    let options = Options { timeout: args.timeout, check, retries, nagle: args.nagle };
    let target = Arc::new(ScriptTarget::new(url.authority(), strategy, dialect, options));
    Ok(BenchTarget::Script { url, target })
}

#[cfg(feature = "embedded")]
fn embedded(args: &RunArgs) -> anyhow::Result<BenchTarget> {
    ensure!(args.strategy.is_none(), "the embedded core has no sockets; leave --strategy out");
    ensure!(!args.nagle, "the embedded core has no sockets; leave --nagle out");
    ensure!(args.retries.is_none(), "the embedded core has no sockets; leave --retries out");
    ensure!(!args.raw, "--raw is for marker:// targets; leave it out for the embedded core");
    ensure!(!args.unframed, "--unframed is for marker:// targets; leave it out for the embedded core");
    if let Some(option) = args.http_option() {
        bail!("{option} is for http:// and https:// targets");
    }
    let check = check_without_status(args)?;
    let target = super::embedded_target::EmbeddedTarget::start(args, check)?;
    Ok(BenchTarget::Embedded(Arc::new(target)))
}

#[cfg(not(feature = "embedded"))]
fn embedded(_args: &RunArgs) -> anyhow::Result<BenchTarget> {
    bail!("this build has no embedded core; measure http://, link:// or marker://HOST:PORT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArgs,
    }

    #[test]
    fn a_report_has_the_options_that_its_other_fields_do_not_show() {
        let of = |words: &[&str]| {
            let line = <Line as clap::Parser>::parse_from([&["bench"], words].concat());
            options(&line.run)
        };
        assert!(of(&["embedded", "--speed", "1", "--rates", "5"]).is_empty());
        let embedded = of(&["embedded", "--speed", "0", "--rom", "/home/someone/game.gba"]);
        assert_eq!(embedded, ["rom game.gba", "speed 0"]);
        assert_eq!(of(&["marker://localhost:1", "--raw", "--nagle"]), ["raw", "nagle"]);
        let strategy = ["http://localhost:1/", "--strategy", "pool-retry", "--retries"];
        assert_eq!(of(&[&strategy[..], &["1s"]].concat()), ["retries 1s"]);
        assert!(of(&[&strategy[..], &["50ms,100ms"]].concat()).is_empty());
        let request =
            ["-H", "Authorization: Bearer x", "-H", "Accept: text/plain", "--body", "@/home/x.json"];
        let expected = ["http2", "header authorization: ...", "header accept: text/plain", "body @x.json"];
        assert_eq!(of(&[&["http://localhost:1/", "--http2"], &request[..]].concat()), expected);
    }
}
