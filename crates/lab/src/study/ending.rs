//! Measures what happens to a script when the program that is connected to it ends, or when the network between them
//! fails.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use framewire_lab::{Framewire, Http, Proxy, Signal, TextClient, until};

use super::results::Ending;
use super::steps::Way;
use super::window::{StudyWindow, millis};
use crate::setup::{Script, bridge};

/// The longest wait for an answer, and for the end of a program.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for messages that the script still writes to its console after the connection has ended.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// The length of a network failure. It is longer than the 10 s after which Framewire's script closes the connection of
/// a silent link.
const SILENCE: Duration = Duration::from_secs(15);
/// How many clients close their connections in the normal way.
const ORDERLY: usize = 5;
/// The longest wait for one reply.
const CALL: Duration = Duration::from_secs(3);
/// The pause between two requests during a network failure.
const PAUSE: Duration = Duration::from_millis(50);
/// How many times the client of the study's script tries a request.
const TRIES: u32 = 3;
/// The pause before the second try of a request. The pause before the third try is twice as long.
const DELAY: Duration = Duration::from_millis(50);

/// Ends the connection to the window's script in the given way, and measures what happens.
pub fn run(window: &mut StudyWindow, way: Way, logs: &Path) -> anyhow::Result<Ending> {
    if window.setup.script == Script::Study {
        // From now on, the study's script writes about its connections to its console.
        window.set_talking(true)?;
    }
    let before = window.console()?.len();
    let mut ending = match (way, window.setup.script) {
        (Way::Signal(signal), Script::Ours) => end_bridge(window, signal)?,
        (Way::Signal(signal), Script::Study) => end_pool(window, signal, logs)?,
        (Way::Orderly, _) => close_in_order(window)?,
        (Way::Network, script) => fail_network(window, script)?,
    };
    thread::sleep(AFTERWARDS);
    ending.connections_left = window.connections()?;
    ending.console = window.console()?.split_off(before);
    if window.setup.script == Script::Study {
        // Lines about new clients are removed, because they have nothing to do with the ending.
        ending.console.retain(|line| !line.ends_with(" connected"));
        window.set_talking(false)?;
    }
    Ok(ending)
}

/// Ends a bridge that is connected to Framewire's script. Starts another bridge as soon as the script has answered a
/// new client.
fn end_bridge(window: &StudyWindow, signal: Signal) -> anyhow::Result<Ending> {
    let mut ended = answering_bridge(window.setup.address)?;
    let start = Instant::now();
    let status = ended.end(signal, PATIENCE)?;
    let ending = start.elapsed();
    let new_client = window.setup.first_answer(PATIENCE).map(|_| start.elapsed());
    let again = answering_bridge(window.setup.address)?;
    let through = start.elapsed();
    drop(again);
    Ok(Ending {
        ending: Some(millis(ending)),
        new_client: new_client.map(millis),
        through_client: Some(millis(through)),
        ..Ending::of("framewire serve --attach", status.to_string())
    })
}

/// Ends a client of the study's script. The client uses a pool and sends requests at a fixed rate.
fn end_pool(window: &StudyWindow, signal: Signal, logs: &Path) -> anyhow::Result<Ending> {
    let target = format!("marker://{}", window.setup.address);
    let args =
        ["bench", &target, "--raw", "--strategy", "pool", "--rates", "10", "--duration", "10m", "--quiet"];
    let mut process = Framewire::start(logs, &args)?;
    until("the pool was connected", PATIENCE, || {
        process.expect_running()?;
        Ok(window.connections().is_ok_and(|count| count > 0))
    })?;
    // This pause lets the pool send its first requests.
    thread::sleep(Duration::from_millis(500));
    let start = Instant::now();
    process.signal(signal)?;
    let status = process.wait_exit(PATIENCE)?;
    let ending = start.elapsed();
    let new_client = window.setup.first_answer(PATIENCE).map(|_| start.elapsed());
    Ok(Ending {
        ending: Some(millis(ending)),
        new_client: new_client.map(millis),
        ..Ending::of("framewire bench --strategy pool", status.to_string())
    })
}

/// Connects some clients one after another. Each closes its connection after its reply.
fn close_in_order(window: &StudyWindow) -> anyhow::Result<Ending> {
    for _ in 0..ORDERLY {
        let mut client = window.setup.client(PATIENCE)?;
        client.echo(window.setup.script.echo_prefix())?;
    }
    let new_client = window.setup.first_answer(PATIENCE).map(millis);
    Ok(Ending {
        new_client,
        ..Ending::of("clients with a request each", format!("{ORDERLY} connections closed"))
    })
}

/// Lets the network between the script and its client fail for a while.
fn fail_network(window: &StudyWindow, script: Script) -> anyhow::Result<Ending> {
    let network = Proxy::start(window.setup.address).context("no port for a proxy")?;
    let failure = "silence on its network".to_owned();
    match script {
        Script::Ours => {
            let bridge = answering_bridge(network.address())?;
            measure_network_failure(window, &network, Ending::of("framewire serve --attach", failure), || {
                ask(&bridge)
            })
        }
        Script::Study => {
            let mut kept = None;
            let ask = || ask_with_retries(&mut kept, &network).map_err(|error| error.to_string());
            measure_network_failure(window, &network, Ending::of("a pool with three tries", failure), ask)
        }
    }
}

/// Sends requests while the network fails. After the network is back, waits until the script has answered a new client,
/// and then sends requests again until one is answered. Both waits end after [`PATIENCE`].
fn measure_network_failure(
    window: &StudyWindow,
    network: &Proxy,
    mut ending: Ending,
    mut ask: impl FnMut() -> Result<(), String>,
) -> anyhow::Result<Ending> {
    if let Err(problem) = ask() {
        bail!("{} got no answer before the network failed: {problem}", ending.client);
    }
    let start = Instant::now();
    network.unplug().context("cannot unplug the network")?;
    while start.elapsed() < SILENCE {
        let answer = ask();
        if let (Err(problem), None) = (answer, ending.noticed) {
            ending.noticed = Some(millis(start.elapsed()));
            ending.error = Some(problem);
        }
        thread::sleep(PAUSE);
    }
    network.plug_in().context("cannot plug in the network")?;
    ending.silence = Some(millis(start.elapsed()));
    let back = Instant::now();
    ending.new_client = window.setup.first_answer(PATIENCE).map(millis);
    while back.elapsed() < PATIENCE && ending.through_client.is_none() {
        match ask() {
            Ok(()) => ending.through_client = Some(millis(back.elapsed())),
            Err(_) => thread::sleep(PAUSE),
        }
    }
    Ok(ending)
}

/// Starts a bridge to a script, and waits until the script has answered through it.
fn answering_bridge(script: std::net::SocketAddr) -> anyhow::Result<Framewire> {
    let bridge = bridge(script)?;
    let start = Instant::now();
    while let Err(problem) = ask(&bridge) {
        if start.elapsed() > PATIENCE {
            bail!("framewire serve --attach {script} does not answer: {problem}; {}", bridge.log());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(bridge)
}

/// Sends an echo request through a bridge. If the reply is not the same text, the error says why.
fn ask(bridge: &Framewire) -> Result<(), String> {
    let text = format!("{:032x}", fastrand::u128(..));
    let http = Http::with_limit(bridge.url(), CALL);
    let reply = http.get(&format!("/mgbaendpoint?message={text}")).map_err(|error| error.to_string())?;
    match reply.status {
        200 if reply.text() == text => Ok(()),
        200 => Err("a wrong reply".to_owned()),
        status => Err(format!("status {status}: {}", reply.text().trim())),
    }
}

/// Sends an echo request to the study's script, up to [`TRIES`] times. Uses the connection in `kept`. If there is none,
/// or after an error, makes a new connection.
fn ask_with_retries(kept: &mut Option<TextClient>, network: &Proxy) -> framewire_lab::Result<()> {
    let mut delay = DELAY;
    for left in (0..TRIES).rev() {
        let client = kept.take().map_or_else(|| TextClient::connect(network.address(), CALL), Ok);
        let asked = client.and_then(|mut client| client.echo(Script::Study.echo_prefix()).map(|_| client));
        match asked {
            Ok(client) => {
                *kept = Some(client);
                return Ok(());
            }
            Err(error) if left == 0 => return Err(error),
            Err(_) => thread::sleep(delay),
        }
        delay *= 2;
    }
    Ok(())
}
