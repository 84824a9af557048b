//! Tests the load tester with servers that the tests start, many of them with a known fault.

mod failures;
mod freeze;
mod http;
mod models;
mod reports;
#[path = "../../../../tests/src/reserved_port.rs"]
mod reserved_port;
mod server;
mod truth;
#[path = "../../../../tests/src/until_good.rs"]
mod until_good;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use framewire_loadtest::http::request::Request;
use framewire_loadtest::http::{HttpOptions, HttpTarget, Reuse};
use framewire_loadtest::row::{Phase, Row};
use framewire_loadtest::{Arrivals, Check, Load, Plan, Stop};

/// A lock for tests whose figures depend on the load of the processors.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A plan with a constant rate.
pub fn plan(rate: f64, duration: Duration) -> Plan {
    let load = Load::Open { rate, arrivals: Arrivals::Constant };
    Plan { load, duration, timeout: Duration::from_secs(5), ..Plan::default() }
}

/// Runs a plan against a server on this machine.
pub fn run(port: u16, reuse: Reuse, plan: &Plan) -> Row {
    run_until(port, reuse, plan, &Stop::default())
}

/// Stops a run after a second.
pub fn stop_soon() -> Stop {
    let stop = Stop::default();
    let stopper = stop.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        stopper.stop();
    });
    stop
}

/// Runs a plan that may be stopped.
pub fn run_until(port: u16, reuse: Reuse, plan: &Plan, stop: &Stop) -> Row {
    plan.check().unwrap();
    run_checked(port, reuse, plan, stop, Check::Echo)
}

/// A target for a server that echoes messages.
pub fn target(port: u16, reuse: Reuse, check: Check) -> HttpTarget {
    let url = format!("http://127.0.0.1:{port}/").parse().unwrap();
    let request = Request { check, ..Request::get("/echo?message={}") };
    HttpTarget::new(&url, &[request], &HttpOptions { reuse, ..HttpOptions::default() }).unwrap()
}

/// Runs a plan that may be stopped, with a check of the replies.
pub fn run_checked(port: u16, reuse: Reuse, plan: &Plan, stop: &Stop, check: Check) -> Row {
    let target = Arc::new(target(port, reuse, check));
    let outcome = framewire_loadtest::run(&target, plan, &mut None, stop, &mut |_| {}).unwrap();
    Row::new(plan, &outcome, Phase::Measure)
}
