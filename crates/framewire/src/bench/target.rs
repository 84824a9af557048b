use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use framewire_loadtest::engine::{Interval, Outcome};
use framewire_loadtest::http::{HttpTarget, Reuse};
use framewire_loadtest::probe::Probe;
use framewire_loadtest::url::Url;
use framewire_loadtest::{Plan, Stop, Strategy};

use super::args::RunArgs;
use super::script::{Dialect, Options, ScriptTarget};

/// How long the check before the first run waits for the target.
const PATIENCE: Duration = Duration::from_secs(3);

/// What an address leads to, ready to be measured.
pub enum Measured {
    /// An HTTP server.
    Http {
        /// Where.
        url: Url,
        /// How its connections are used.
        strategy: Strategy,
        /// The target itself.
        target: Arc<HttpTarget>,
    },
    /// A script in an emulator.
    Script {
        /// Where.
        url: Url,
        /// The target itself.
        target: Arc<ScriptTarget>,
    },
    /// A core in this process.
    #[cfg(feature = "embedded")]
    Embedded(Arc<super::embedded_target::EmbeddedTarget>),
}

impl Measured {
    /// Of what was typed. Connects nowhere.
    pub fn new(args: &RunArgs) -> anyhow::Result<Measured> {
        let text = args.target()?;
        if text == "embedded" {
            return embedded(args);
        }
        let url: Url = text.parse()?;
        ensure!(!args.raw || url.scheme == "marker", "--raw is for marker:// targets");
        match url.scheme.as_str() {
            "http" => http(url, args),
            "link" => script(url, Dialect::Binary, args.strategy.unwrap_or(Strategy::Mux), args),
            "marker" => {
                let dialect =
                    if args.raw { Dialect::Marker { prefix: String::new() } } else { Dialect::marker() };
                script(url, dialect, args.strategy.unwrap_or(Strategy::Pool), args)
            }
            scheme => bail!(
                "{scheme}:// is not a kind of target; use http://, link:// or marker:// with HOST:PORT, or embedded"
            ),
        }
    }

    /// Fits a plan to the strategy.
    pub fn fit(&self, mut plan: Plan) -> anyhow::Result<Plan> {
        match self {
            Measured::Http { strategy, .. } => {
                if *strategy == Strategy::Single {
                    ensure!(plan.workers == 1, "--strategy single has one connection; leave --workers at 1");
                    plan.connections = 1;
                }
                if *strategy == Strategy::PoolRetry {
                    plan.timeout = with_retries(plan.timeout);
                }
            }
            Measured::Script { target, .. } => {
                ensure!(
                    plan.workers == 1,
                    "one connection cannot be shared by several workers; leave --workers at 1 (one is enough for any \
                     script)"
                );
                if target.strategy() == Strategy::PoolRetry {
                    plan.timeout = with_retries(plan.timeout);
                }
            }
            #[cfg(feature = "embedded")]
            Measured::Embedded(_) => {}
        }
        Ok(plan)
    }

    /// Refuses a target where nobody listens.
    pub fn check(&self) -> anyhow::Result<()> {
        let (url, advice) = match self {
            Measured::Http { url, .. } => {
                (url, "start the server first (`framewire serve`), or correct the address")
            }
            Measured::Script { url, .. } => (
                url,
                "start mGBA with a ROM and load the script (`framewire script`), or correct the address",
            ),
            #[cfg(feature = "embedded")]
            Measured::Embedded(_) => return Ok(()),
        };
        let attempt = || -> io::Result<()> {
            let address = (url.host.as_str(), url.port).to_socket_addrs()?.next();
            let address = address.ok_or(io::ErrorKind::NotFound)?;
            TcpStream::connect_timeout(&address, PATIENCE).map(drop)
        };
        attempt()
            .with_context(|| format!("{url} cannot be reached; {advice} (--skip-check measures it anyway)"))
    }

    /// Does one run.
    pub fn run(
        &self,
        plan: &Plan,
        probe: &mut Option<Box<dyn Probe>>,
        stop: &Stop,
        watch: &mut dyn FnMut(&Interval),
    ) -> io::Result<Outcome> {
        match self {
            Measured::Http { target, .. } => framewire_loadtest::run(target, plan, probe, stop, watch),
            Measured::Script { target, .. } => framewire_loadtest::run(target, plan, probe, stop, watch),
            #[cfg(feature = "embedded")]
            Measured::Embedded(target) => framewire_loadtest::run(target, plan, probe, stop, watch),
        }
    }

    /// Its address for the report.
    pub fn url(&self) -> String {
        match self {
            Measured::Http { url, .. } | Measured::Script { url, .. } => url.to_string(),
            #[cfg(feature = "embedded")]
            Measured::Embedded(_) => "embedded".to_owned(),
        }
    }

    /// How it is used, for the report.
    pub fn strategy(&self) -> String {
        match self {
            Measured::Http { strategy, .. } => strategy.to_string(),
            Measured::Script { target, .. } => target.strategy().to_string(),
            #[cfg(feature = "embedded")]
            Measured::Embedded(_) => "in this process".to_owned(),
        }
    }
}

/// Time for all tries and the waits between them.
fn with_retries(timeout: Duration) -> Duration {
    let Options { tries, delay, .. } = Options::default();
    timeout * tries + delay * (1 << tries)
}

fn http(url: Url, args: &RunArgs) -> anyhow::Result<Measured> {
    let strategy = args.strategy.unwrap_or(Strategy::Pool);
    let Options { tries, delay, .. } = Options::default();
    let reuse = match strategy {
        Strategy::Single | Strategy::Pool => Reuse { delay, ..Reuse::default() },
        Strategy::PerRequest => Reuse { keep_alive: false, delay, ..Reuse::default() },
        Strategy::PoolRetry => Reuse { tries, delay, ..Reuse::default() },
        Strategy::Mux => bail!("HTTP/1.1 has one request at a time on a connection; use --strategy pool"),
    };
    let target = Arc::new(HttpTarget::new(&url, reuse)?);
    Ok(Measured::Http { url, strategy, target })
}

fn script(url: Url, dialect: Dialect, strategy: Strategy, args: &RunArgs) -> anyhow::Result<Measured> {
    ensure!(url.path == "/", "{url} has a path; give only {}://HOST:PORT", url.scheme);
    url.resolve()?;
    let options = Options { timeout: args.timeout, ..Options::default() };
    let target = Arc::new(ScriptTarget::new(url.authority(), strategy, dialect, options));
    Ok(Measured::Script { url, target })
}

#[cfg(feature = "embedded")]
fn embedded(args: &RunArgs) -> anyhow::Result<Measured> {
    ensure!(args.strategy.is_none(), "the embedded core has no sockets; leave --strategy out");
    let target = super::embedded_target::EmbeddedTarget::start(args)?;
    Ok(Measured::Embedded(Arc::new(target)))
}

#[cfg(not(feature = "embedded"))]
fn embedded(_args: &RunArgs) -> anyhow::Result<Measured> {
    bail!("this build has no embedded core; measure http://, link:// or marker://HOST:PORT")
}
