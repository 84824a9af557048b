use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use framewire_emulator::embedded::{Config, Embedded, Options, Patching, Speed};
use framewire_emulator::history::DEFAULT_HISTORY;
use framewire_emulator::{Emulator, EmulatorError};
use framewire_loadtest::probe::Probe;
use framewire_loadtest::{Call, Check, Client, Failure, Target};
use framewire_protocol::{Op, Value};

use super::args::RunArgs;
use crate::choose::config_without_save;

/// An embedded core as a target: the core's thread sends each message back.
#[derive(Clone)]
pub struct EmbeddedTarget {
    emulator: Arc<Embedded>,
    timeout: Duration,
    /// Which replies are correct.
    pub check: Check,
}

impl EmbeddedTarget {
    /// Starts the core.
    pub fn start(args: &RunArgs, check: Check) -> anyhow::Result<Self> {
        let times = args.speed.unwrap_or(1.0);
        ensure!(
            times.is_finite() && times >= 0.0,
            "--speed {times} is not a speed; use 1, 2.5, or 0 for as fast as the processor allows"
        );
        let speed = if times == 0.0 { Speed::Unlimited } else { Speed::Times(times) };
        let options = Options { patching: Patching::NextTo, ..Options::default() };
        let config = config_without_save(args.rom.as_deref(), options);
        let config = Config { speed, history: DEFAULT_HISTORY, ..config };
        let emulator = Embedded::start(config).context("cannot start the embedded core")?;
        Ok(EmbeddedTarget { emulator: Arc::new(emulator), timeout: args.timeout, check })
    }
}

impl Probe for EmbeddedTarget {
    /// The core's frame counter.
    fn read(&mut self) -> Option<f64> {
        Some(f64::from(self.emulator.state().frame))
    }
}

impl Target for EmbeddedTarget {
    type Session = EmbeddedTarget;

    fn session(&self) -> EmbeddedTarget {
        self.clone()
    }
}

impl Client for EmbeddedTarget {
    async fn exchange(&mut self, call: &mut Call<'_>) -> Result<(), Failure> {
        let op = Op::Echo { data: call.payload.to_vec() };
        // Bytes are not counted, because there is no connection.
        call.mark_sent(0);
        let outcome = self.emulator.submit(op.into(), Instant::now() + self.timeout).await;
        let value = outcome.map_err(failure)?.single().map_err(|error| Failure::Other(error.to_string()))?;
        match value {
            Value::Bytes(bytes) => self.check.reply(call.payload, &bytes),
            other => Err(Failure::Other(format!("the reply to an echo is {other:?}"))),
        }
    }
}

fn failure(error: EmulatorError) -> Failure {
    match error {
        EmulatorError::Deadline(_) => Failure::TimedOut,
        EmulatorError::NotConnected(_) => Failure::Refused,
        EmulatorError::Lost(_) | EmulatorError::Stopped => Failure::Reset,
        EmulatorError::Busy(_) | EmulatorError::Forbidden(_) | EmulatorError::Refused(_) => {
            Failure::Other(error.to_string())
        }
    }
}
