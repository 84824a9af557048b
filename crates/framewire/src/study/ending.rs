//! Ways of ending: what becomes of a script when the program that talks to it is ended, or the network between them.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use framewire_link::strategy::{Dialect, Echoes, Options, Strategy, Trace};
use framewire_stock::{Process, Signal, until};

use super::clients::first_answer;
use super::programs::{self, Bridge};
use super::results::Ending;
use super::silent::Network;
use super::steps::{Script, Way};
use super::window::{StudyWindow, millis};

/// Longest wait for service.
const PATIENCE: Duration = Duration::from_secs(20);
/// For which a script may still write about what happened.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// For which the network is silent: longer than a link waits for a machine that acknowledges nothing.
const SILENCE: Duration = Duration::from_secs(15);
/// Longest wait of a caller for one reply.
const CALL: Duration = Duration::from_secs(3);
/// Between two requests while the network is watched.
const PAUSE: Duration = Duration::from_millis(50);

/// Ends what talks to the window's script.
///
/// # Errors
/// If something does not start or end that must.
pub fn run(window: &mut StudyWindow, way: Way, logs: &Path) -> anyhow::Result<Ending> {
    if window.script() == Script::Study {
        window.set_talking(true)?;
    }
    let before = window.console().len();
    let mut ending = match (way, window.script()) {
        (Way::Signal(signal), Script::Ours) => bridge(window, signal, logs)?,
        (Way::Signal(signal), Script::Study) => pool(window, signal, logs)?,
        (Way::Network, script) => network(window, script, logs)?,
    };
    thread::sleep(AFTERWARDS);
    ending.connections_left = window.connections()?;
    ending.console = window.console().split_off(before);
    if window.script() == Script::Study {
        // What it says of newcomers is no news.
        ending.console.retain(|line| !line.ends_with(" connected"));
        window.set_talking(false)?;
    }
    Ok(ending)
}

/// Of our script: a bridge in front of it, which is started again at once.
fn bridge(window: &StudyWindow, signal: Signal, logs: &Path) -> anyhow::Result<Ending> {
    let bridge = Bridge::start(window.address(), logs)?;
    let start = Instant::now();
    let (ended, ending) = bridge.end(signal)?;
    let new_client = first_answer(window.address(), Script::Ours, PATIENCE).map(|_| start.elapsed());
    let again = Bridge::start(window.address(), logs)?;
    let through = start.elapsed();
    drop(again);
    Ok(Ending {
        ending: Some(millis(ending)),
        new_client: new_client.map(millis),
        through_client: Some(millis(through)),
        ..of("framewire serve --attach", ended)
    })
}

/// Of the study's script: a client with a pool under load.
fn pool(window: &mut StudyWindow, signal: Signal, logs: &Path) -> anyhow::Result<Ending> {
    let target = format!("marker://{}", window.address());
    let args =
        ["bench", &target, "--raw", "--strategy", "pool", "--rates", "10", "--duration", "10m", "--quiet"];
    let mut process = programs::ourselves(logs, args, logs)?;
    wait_for_connection(window, &mut process)?;
    let start = Instant::now();
    let (ended, ending) = programs::end(&mut process, signal)?;
    let new_client = first_answer(window.address(), Script::Study, PATIENCE).map(|_| start.elapsed());
    Ok(Ending {
        ending: Some(millis(ending)),
        new_client: new_client.map(millis),
        ..of("framewire bench --strategy pool", ended)
    })
}

fn wait_for_connection(window: &StudyWindow, process: &mut Process) -> anyhow::Result<()> {
    until("the pool was connected", PATIENCE, || {
        process.expect_running()?;
        Ok(window.connections().is_ok_and(|count| count > 0))
    })?;
    // So that it is at work, not only connected.
    thread::sleep(Duration::from_millis(500));
    Ok(())
}

/// Silence on the network to either script.
fn network(window: &StudyWindow, script: Script, logs: &Path) -> anyhow::Result<Ending> {
    let network = Network::start(window.address()).context("no port for a network")?;
    match script {
        Script::Ours => {
            let bridge = Bridge::start(network.address(), logs)?;
            let ending = of("framewire serve --attach", "silence on its network".to_owned());
            watch(window, &network, ending, || bridge.ask(CALL))
        }
        Script::Study => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let options = Options { timeout: CALL, connect_timeout: CALL, ..Options::default() };
            let dialect = Dialect::Marker { prefix: String::new() };
            let address = network.address().to_string();
            let pool = Echoes::new(address, Strategy::PoolRetry, dialect, options);
            let ask = || {
                let text = format!("{:032x}", fastrand::u128(..));
                let reply = runtime.block_on(pool.exchange(text.as_bytes(), &mut Trace::default()));
                match reply {
                    Ok(reply) if reply == text.as_bytes() => Ok(()),
                    Ok(_) => Err("a wrong reply".to_owned()),
                    Err(error) => Err(error.to_string()),
                }
            };
            let ending = of("a pool with three tries", "silence on its network".to_owned());
            watch(window, &network, ending, ask)
        }
    }
}

/// Asks on and on while the network falls silent and comes back.
fn watch(
    window: &StudyWindow,
    network: &Network,
    mut ending: Ending,
    mut ask: impl FnMut() -> Result<(), String>,
) -> anyhow::Result<Ending> {
    if let Err(problem) = ask() {
        bail!("{} has no answer before anything happened: {problem}", ending.client);
    }
    let start = Instant::now();
    network.fall_silent().context("cannot silence the network")?;
    while start.elapsed() < SILENCE {
        let answer = ask();
        if let (Err(problem), None) = (answer, ending.noticed) {
            ending.noticed = Some(millis(start.elapsed()));
            ending.error = Some(problem);
        }
        thread::sleep(PAUSE);
    }
    network.come_back().context("cannot end the silence")?;
    ending.silence = Some(millis(start.elapsed()));
    let back = Instant::now();
    ending.new_client = first_answer(window.address(), window.script(), PATIENCE).map(millis);
    while back.elapsed() < PATIENCE && ending.through_client.is_none() {
        match ask() {
            Ok(()) => ending.through_client = Some(millis(back.elapsed())),
            Err(_) => thread::sleep(PAUSE),
        }
    }
    Ok(ending)
}

fn of(client: &str, ended: String) -> Ending {
    Ending {
        client: client.to_owned(),
        ended,
        ending: None,
        console: Vec::new(),
        new_client: None,
        through_client: None,
        silence: None,
        noticed: None,
        error: None,
        connections_left: 0,
    }
}
