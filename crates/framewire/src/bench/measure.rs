use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use framewire_loadtest::goal::Goal;
use framewire_loadtest::probe::Probe;
use framewire_loadtest::report::Report;
use framewire_loadtest::row::{Phase, Row};
use framewire_loadtest::search::{self, Search, Trial};
use framewire_loadtest::{Load, Plan, Stop};

use super::live::Live;
use super::output::Output;
use super::target::BenchTarget;

/// A measurement in progress.
pub struct Bench {
    /// What is measured.
    pub measured: BenchTarget,
    /// The counter that is sampled during runs.
    pub probe: Option<Box<dyn Probe>>,
    /// Ends the measurement early.
    pub stop: Stop,
    /// The files to write at the end.
    pub output: Output,
    /// The results so far.
    pub report: Report,
    /// The pause between two runs.
    pub rest: Duration,
}

impl Bench {
    /// Performs all runs in order.
    pub fn rows(&mut self, plans: &[Plan]) -> anyhow::Result<()> {
        for (index, plan) in plans.iter().enumerate() {
            let row = self.row(plan, Phase::Measure, &format!("{}/{}", index + 1, plans.len()))?;
            if row.is_none_or(|row| row.cut_short) {
                break;
            }
        }
        self.report.cut_short = self.stop.stopped();
        Ok(())
    }

    /// Searches for the highest rate that meets the goal.
    pub fn search(&mut self, plan: &Plan, search: &Search, goal: &Goal) -> anyhow::Result<()> {
        let limit = search::find(search, goal.to_string(), &mut |rate, phase| {
            let mut plan = plan.clone();
            if let Load::Open { rate: asked, .. } = &mut plan.load {
                *asked = rate;
            }
            let name = if phase == Phase::Confirm { "confirm" } else { "search" };
            let Some(row) = self.row(&plan, phase, name)? else {
                return anyhow::Ok(Trial { missed: Vec::new(), tester_limited: false, stopped: true });
            };
            anyhow::Ok(Trial {
                missed: goal.missed(row),
                tester_limited: row.tester_limited(),
                stopped: row.cut_short,
            })
        })?;
        self.report.limit = Some(limit);
        self.report.cut_short = self.stop.stopped();
        Ok(())
    }

    /// Performs one run and adds its row to the report. Returns `None` if a signal ends the wait before the run.
    fn row(&mut self, plan: &Plan, phase: Phase, place: &str) -> anyhow::Result<Option<&Row>> {
        if !self.report.rows.is_empty() {
            self.wait();
            if self.stop.stopped() {
                return Ok(None);
            }
        }
        let mut live = Live::start(plan, place, self.output.quiet);
        let tag = match &plan.load {
            Load::Open { rate, .. } => format!("asked-{rate}"),
            Load::Stages { .. } => "stages".to_owned(),
            Load::Closed { concurrency } => format!("closed-{concurrency}"),
        };
        let start = self.output.elapsed() + plan.warmup;
        let output = &self.output;
        let outcome = self
            .measured
            .run(plan, &mut self.probe, &self.stop, &mut |interval| {
                output.interval(&tag, start, interval);
                live.show(interval);
            })
            .context("the system did not provide a thread or an event queue for the load tester")?;
        let row = Row::new(plan, &outcome, phase);
        live.finish(&row);
        self.report.rows.push(row);
        Ok(self.report.rows.last())
    }

    fn wait(&self) {
        let end = Instant::now().checked_add(self.rest);
        while end.is_none_or(|end| Instant::now() < end) && !self.stop.stopped() {
            thread::sleep(Duration::from_millis(20).min(self.rest));
        }
    }
}
