//! Gauges of the state of emulators.

use std::sync::atomic::AtomicU64;

use framewire_emulator::{Run, State};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{EmulatorLabels, RunLabels};

const RUNS: [(Run, &str); 4] = [
    (Run::Running, "running"),
    (Run::Paused, "paused"),
    (Run::Stalled, "stalled"),
    (Run::Unknown, "unknown"),
];

#[derive(Default)]
pub(super) struct EmulatorGauges {
    connected: Family<EmulatorLabels, Gauge>,
    run: Family<RunLabels, Gauge>,
    rate: Family<EmulatorLabels, Gauge<f64, AtomicU64>>,
    frame: Family<EmulatorLabels, Gauge>,
    waiting: Family<EmulatorLabels, Gauge>,
}

impl EmulatorGauges {
    pub(super) fn register(registry: &mut Registry) -> EmulatorGauges {
        let gauges = EmulatorGauges::default();
        registry.register(
            "emulator_connected",
            "Whether the emulator can be reached",
            gauges.connected.clone(),
        );
        let help = "How the emulator runs: 1 for the current state, 0 for the others";
        registry.register("emulator_run", help, gauges.run.clone());
        let help = "Frames finished each second, over about the last second";
        registry.register("emulator_frames_per_second", help, gauges.rate.clone());
        let help = "The emulator's frame counter, which starts again with a reset";
        registry.register("emulator_frame", help, gauges.frame.clone());
        let help = "Batches that the emulator has not answered yet";
        registry.register("emulator_batches_waiting", help, gauges.waiting.clone());
        gauges
    }

    /// Sets how an emulator is.
    pub(super) fn set(&self, name: &str, state: &State, waiting: i64) {
        let labels = EmulatorLabels { emulator: name.to_owned() };
        self.connected.get_or_create(&labels).set(state.connected.into());
        self.rate.get_or_create(&labels).set(state.frames_per_second);
        self.frame.get_or_create(&labels).set(state.frame.into());
        self.waiting.get_or_create(&labels).set(waiting);
        for (run, run_name) in RUNS {
            let labels = RunLabels { emulator: name.to_owned(), run: run_name };
            self.run.get_or_create(&labels).set((run == state.run).into());
        }
    }
}
