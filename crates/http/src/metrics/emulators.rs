//! What emulators say of themselves.

use std::sync::atomic::AtomicU64;

use framewire_emulator::Run;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{Emulator, Running};
use crate::operations::emulators::Emulators;

const RUNS: [(Run, &str); 4] = [
    (Run::Running, "running"),
    (Run::Paused, "paused"),
    (Run::Stalled, "stalled"),
    (Run::Unknown, "unknown"),
];

#[derive(Default)]
pub(super) struct EmulatorGauges {
    connected: Family<Emulator, Gauge>,
    run: Family<Running, Gauge>,
    rate: Family<Emulator, Gauge<f64, AtomicU64>>,
    frame: Family<Emulator, Gauge>,
    waiting: Family<Emulator, Gauge>,
}

impl EmulatorGauges {
    pub(super) fn register(registry: &mut Registry) -> EmulatorGauges {
        let gauges = EmulatorGauges::default();
        registry.register(
            "emulator_connected",
            "Whether the emulator can be reached",
            gauges.connected.clone(),
        );
        let help = "How the emulator's frames go by: 1 for what is so";
        registry.register("emulator_run", help, gauges.run.clone());
        let help = "Frames finished a second, over the last second or so";
        registry.register("emulator_frames_per_second", help, gauges.rate.clone());
        let help = "The emulator's frame counter, which begins anew with a reset";
        registry.register("emulator_frame", help, gauges.frame.clone());
        let help = "Batches that were handed to the emulator and are not answered yet";
        registry.register("emulator_batches_waiting", help, gauges.waiting.clone());
        gauges
    }

    /// Asks all of them, without waiting for any.
    pub(super) fn look(&self, emulators: &Emulators) {
        for served in emulators.iter() {
            let state = served.emulator.state();
            let labels = Emulator { emulator: served.name.clone() };
            self.connected.get_or_create(&labels).set(state.connected.into());
            self.rate.get_or_create(&labels).set(state.frames_per_second);
            self.frame.get_or_create(&labels).set(state.frame.into());
            self.waiting.get_or_create(&labels).set(served.waiting.count());
            for (run, name) in RUNS {
                let labels = Running { emulator: served.name.clone(), run: name };
                self.run.get_or_create(&labels).set((run == state.run).into());
            }
        }
    }
}
