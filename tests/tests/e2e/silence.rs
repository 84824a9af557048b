//! Networks that stop forwarding data without notice, and idle connections.

use std::time::{Duration, Instant};

use framewire_e2e::{Framewire, Proxy, sockets, until_good};
use tempfile::TempDir;

use super::comeback::{SERVICE, assert_no_warnings};
use super::served::{demo_copy, host, ready, wait_for_run, wait_until};

/// The longest time until a silence is noticed. The heartbeat's interval and its timeout take 1.25 s together.
const NOTICED: Duration = Duration::from_secs(2);

/// A bridge, a network, and a script at the network's other end.
struct Chain {
    bridge: Framewire,
    network: Proxy,
    host: Framewire,
    _folder: TempDir,
}

impl Chain {
    fn start() -> Chain {
        let folder = tempfile::tempdir().unwrap();
        let (host, script) = host(&folder, &demo_copy(&folder));
        let network = Proxy::start(script).unwrap();
        let bridge = Framewire::serve(&["--attach", &network.address().to_string()]).unwrap();
        let chain = Chain { bridge, network, host, _folder: folder };
        ready(&chain.bridge.http());
        let asked = chain.network.bytes().1;
        wait_until("a heartbeat passes", || Ok(chain.network.bytes().1 > asked));
        chain
    }

    /// The status of a request to the script.
    fn status(&self) -> u16 {
        self.bridge.http().get("/core/currentframe").unwrap().status
    }

    /// Lets the network fall silent and come back. Returns the time until the silence is noticed, and the time until
    /// the script answers again.
    fn interrupt(&self) -> (Duration, Duration) {
        let made = self.network.connections();
        self.network.fall_silent();
        let begun = Instant::now();
        wait_for_run(&self.bridge.http(), "stalled");
        let noticed = begun.elapsed();
        assert_eq!(self.status(), 504);

        self.network.come_back();
        let begun = Instant::now();
        wait_until("the script answers again", || Ok(self.status() == 200));
        let answered = begun.elapsed();
        assert!(self.network.connections() > made);
        (noticed, answered)
    }

    fn sockets_of_script(&self) -> usize {
        sockets::held_by(self.host.pid()).unwrap()
    }
}

#[test]
fn a_silent_network_is_noticed_and_the_bridge_reconnects() {
    let chain = Chain::start();
    let before = chain.sockets_of_script();
    for _ in 0..3 {
        until_good(|| chain.interrupt(), |(noticed, answered)| *noticed < NOTICED && *answered < SERVICE);
    }
    // The script closes connections on which nothing arrives any more.
    wait_until("no socket is left over", || Ok(chain.sockets_of_script() <= before));
    assert_no_warnings(&chain.bridge.log());
}

#[test]
fn a_script_closes_the_connection_of_a_silent_bridge() {
    let Chain { bridge, network, host, _folder } = Chain::start();
    let before = sockets::held_by(host.pid()).unwrap();
    network.fall_silent();
    drop(bridge);
    wait_until("the script closes it", || Ok(sockets::held_by(host.pid())? < before));
}

#[test]
fn an_idle_connection_costs_little_and_answers_immediately() {
    const IDLE: Duration = Duration::from_secs(12);
    let chain = Chain::start();
    let made = chain.network.connections();
    let answered = || {
        let before = chain.network.bytes();
        std::thread::sleep(IDLE);
        let after = chain.network.bytes();
        for (before, after) in [(before.0, after.0), (before.1, after.1)] {
            let each_second = (after - before) / IDLE.as_secs();
            assert!((9..200).contains(&each_second), "{each_second} bytes per second for the heartbeat");
        }
        let begun = Instant::now();
        assert_eq!(chain.status(), 200);
        assert_eq!(chain.network.connections(), made, "it is the same connection");
        begun.elapsed()
    };
    until_good(answered, |time| *time < Duration::from_millis(200));
}
