//! Runs against servers of the tests' own, each with one known fault.

mod failures;
mod freeze;
mod models;
mod reports;
mod server;

use std::sync::Arc;
use std::time::Duration;

use framewire_loadtest::http::{HttpTarget, Reuse};
use framewire_loadtest::row::{Phase, Row};
use framewire_loadtest::{Arrivals, Load, Plan, Stop};

/// Constant rate for a time.
pub fn plan(rate: f64, duration: Duration) -> Plan {
    let load = Load::Open { rate, arrivals: Arrivals::Constant };
    Plan { load, duration, timeout: Duration::from_secs(5), ..Plan::default() }
}

/// Runs a plan against a server on this machine.
pub fn run(port: u16, reuse: Reuse, plan: &Plan) -> Row {
    run_until(port, reuse, plan, &Stop::default())
}

/// Runs a plan that may be stopped.
pub fn run_until(port: u16, reuse: Reuse, plan: &Plan, stop: &Stop) -> Row {
    plan.check().unwrap();
    let url = format!("http://127.0.0.1:{port}/echo").parse().unwrap();
    let target = Arc::new(HttpTarget::new(&url, reuse).unwrap());
    let outcome = framewire_loadtest::run(&target, plan, &mut None, stop, &mut |_| {}).unwrap();
    Row::new(plan, &outcome, Phase::Measure)
}
