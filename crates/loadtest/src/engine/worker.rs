use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};

use super::pace::Pacer;
use super::processor;
use super::slots::{Job, Slots};
use super::timeout::Timeout;
use super::{Message, Stop};
use crate::plan::{Load, Plan};
use crate::record::{Ended, Record};
use crate::schedule::Schedule;
use crate::target::{Call, Client, Failure, Session, Target};

/// The longest sleep of the pacer, so that the worker soon notices when the run is stopped.
const NAP: Duration = Duration::from_millis(50);
/// The time between two checks while the worker waits for the last replies.
const DRAIN: Duration = Duration::from_millis(1);
/// The longest wait for replies after a run that was cut short.
const CUT: Duration = Duration::from_secs(1);
/// How many requests are sent in a row before the next check for replies.
const BURST: usize = 32;

/// What a worker has to do.
pub(super) struct Task {
    /// Its number.
    pub(super) index: usize,
    /// When the run begins, for all workers.
    pub(super) start: Instant,
    /// Length of the intervals.
    pub(super) interval: Duration,
    pub(super) plan: Plan,
    pub(super) stop: Stop,
}

/// What a worker reports at the end. The fields mean the same as in [`Outcome`](super::Outcome).
pub(super) struct Done {
    pub(super) window: Duration,
    pub(super) cut_short: bool,
    pub(super) most_in_flight: usize,
    pub(super) busy: Option<f64>,
}

/// What the tasks of a worker share.
struct Shared {
    slots: Slots,
    record: RefCell<Record>,
    /// A counter that rises whenever a client does something.
    activity: Cell<u64>,
    /// The number of intervals that were sent to the collector.
    flushed: Cell<u64>,
    random: RefCell<fastrand::Rng>,
    plan: Plan,
    /// The start of the window, which is the measured part of the run.
    window: Instant,
    /// The end of the window; earlier than planned after a stop.
    end: Cell<Instant>,
}

/// Runs a worker on this thread.
pub(super) fn run<T: Target>(target: &T, task: Task, sender: &Sender<Message>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    let done = runtime.block_on(local.run_until(work(target.session(), task, sender.clone())))?;
    // Sending fails only if there is no receiver any more, because the run was given up.
    let _ = sender.send(Message::Done(done));
    Ok(())
}

async fn work<S: Session>(session: S, task: Task, sender: Sender<Message>) -> io::Result<Done> {
    let Task { index, start, interval, plan, stop } = task;
    let share = |total: usize| total / plan.workers + usize::from(index < total % plan.workers);
    let window = start + plan.warmup;
    let most = match plan.load {
        Load::Open { .. } | Load::Stages { .. } => share(plan.connections),
        Load::Closed { concurrency } => share(concurrency),
    };
    let shared = Rc::new(Shared {
        slots: Slots::new(most),
        record: RefCell::default(),
        activity: Cell::new(0),
        flushed: Cell::new(0),
        random: RefCell::new(fastrand::Rng::new()),
        window,
        end: Cell::new(window + plan.duration),
        plan,
    });
    let flusher = spawn_local(flush(Rc::clone(&shared), interval, sender.clone()));
    let mut pacer = Pacer::new()?;
    pacer.wait(start, || shared.activity.get()).await?;
    let usage_before = processor::usage();
    let idle_before = pacer.idle();

    let mut offer = Offer { shared: Rc::clone(&shared), session, tasks: Vec::new() };
    let cut_short = match &shared.plan.load {
        load @ (Load::Open { .. } | Load::Stages { .. }) => {
            let random = shared.random.borrow_mut().fork();
            let times = Schedule::new(load, shared.plan.warmup, index, shared.plan.workers, random);
            offer.open(times.map(|time| start + time), &mut pacer, &stop).await?
        }
        Load::Closed { .. } => offer.closed(most, start, &mut pacer, &stop).await?,
    };

    let idle = pacer.idle() - idle_before;
    let busy =
        processor::usage().zip(usage_before).map(|(after, before)| after.busy(before, idle, start.elapsed()));
    let cut_short = drain(&shared, cut_short, &stop).await;
    flusher.abort();
    let last = Message::Interval { index: shared.flushed.get(), record: Box::new(shared.record.take()) };
    let _ = sender.send(last);
    for task in &offer.tasks {
        task.abort();
    }
    for task in offer.tasks {
        if let Err(error) = task.await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
    Ok(Done {
        window: shared.end.get().saturating_duration_since(window),
        cut_short,
        most_in_flight: shared.slots.most_busy(),
        busy,
    })
}

/// Gives requests to clients.
struct Offer<S> {
    shared: Rc<Shared>,
    session: S,
    tasks: Vec<JoinHandle<()>>,
}

impl<S: Session> Offer<S> {
    /// Gives each request to a client when it is due. Returns whether the run was stopped.
    async fn open(
        &mut self,
        mut times: impl Iterator<Item = Instant>,
        pacer: &mut Pacer,
        stop: &Stop,
    ) -> io::Result<bool> {
        let shared = Rc::clone(&self.shared);
        let mut now = Instant::now();
        let mut in_a_row = 0;
        while let Some(due) = times.next().filter(|due| *due < shared.end.get()) {
            while due > now {
                in_a_row = 0;
                if stop.stopped() {
                    shared.end.set(Instant::now());
                    return Ok(true);
                }
                now = pacer.wait(due.min(now + NAP), || shared.activity.get()).await?;
            }
            self.give(due);
            in_a_row += 1;
            if in_a_row == BURST {
                in_a_row = 0;
                yield_now().await;
                now = Instant::now();
                if stop.stopped() {
                    shared.end.set(now);
                    return Ok(true);
                }
            }
        }
        self.wait_for_end(pacer, stop).await
    }

    /// Starts this number of clients, which continue by themselves. Returns whether the run was stopped.
    async fn closed(
        &mut self,
        clients: usize,
        start: Instant,
        pacer: &mut Pacer,
        stop: &Stop,
    ) -> io::Result<bool> {
        self.shared.slots.close_loop(self.shared.end.get());
        for _ in 0..clients {
            self.give(start);
        }
        let stopped = self.wait_for_end(pacer, stop).await?;
        // If the run was stopped, the end is earlier now. After this call, clients begin no more requests.
        self.shared.slots.close_loop(self.shared.end.get());
        Ok(stopped)
    }

    async fn wait_for_end(&mut self, pacer: &mut Pacer, stop: &Stop) -> io::Result<bool> {
        let end = self.shared.end.get();
        let mut now = Instant::now();
        while now < end {
            if stop.stopped() {
                self.shared.end.set(now);
                return Ok(true);
            }
            now = pacer.wait(end.min(now + NAP), || self.shared.activity.get()).await?;
        }
        Ok(false)
    }

    fn give(&mut self, due: Instant) {
        if let Some(index) = self.shared.slots.give(due) {
            let job = Job { intended: due, waited: false };
            let client = self.session.client();
            self.tasks.push(spawn_local(serve(Rc::clone(&self.shared), client, index, job)));
        }
    }
}

/// Runs one client, which performs one request after the other.
async fn serve<C: Client>(shared: Rc<Shared>, mut client: C, index: usize, mut job: Job) {
    let (mut payload, mut reply) = (Vec::new(), Vec::new());
    let mut limit = Timeout::new(shared.plan.timeout);
    loop {
        shared.plan.payload.fill(&mut shared.random.borrow_mut(), &mut payload);
        reply.clear();
        let start = Instant::now();
        shared.started(&job, start);
        let mut call = Call::new(&payload, &mut reply);
        let polled = || shared.activity.set(shared.activity.get().wrapping_add(1));
        let result = limit.run(start, polled, client.exchange(&mut call)).await;
        let end = Instant::now();
        let trace = call.trace();
        let result = result.unwrap_or(Err(Failure::TimedOut));
        let failed = result.is_err();
        shared.ended(Ended { intended: job.intended, end, trace, in_window: end < shared.end.get(), result });
        job = shared.slots.next(index).await;
        if failed {
            // A request can fail without waiting, for example if there is no free file descriptor. With a closed load, the
            // client would then never let other tasks run.
            yield_now().await;
        }
    }
}

impl Shared {
    fn started(&self, job: &Job, now: Instant) {
        if job.intended < self.window {
            return;
        }
        let mut record = self.record.borrow_mut();
        if job.waited {
            record.counts.waited += 1;
        } else {
            record.late.record(now.saturating_duration_since(job.intended));
        }
    }

    fn ended(&self, ended: Ended) {
        if ended.intended >= self.window {
            self.record.borrow_mut().ended(ended);
        }
    }
}

/// At the end of each interval, sends what was recorded in it to the collector.
async fn flush(shared: Rc<Shared>, interval: Duration, sender: Sender<Message>) {
    let mut end = shared.window;
    loop {
        end += interval;
        tokio::time::sleep_until(end.into()).await;
        let index = shared.flushed.get();
        shared.flushed.set(index + 1);
        if sender.send(Message::Interval { index, record: Box::new(shared.record.take()) }).is_err() {
            return;
        }
    }
}

/// Waits for the last replies. Requests that are still open after the wait count as failed. But if the run was cut
/// short, before or during the wait, they count neither as correct nor as failed. Returns whether the run was cut
/// short.
async fn drain(shared: &Shared, mut cut_short: bool, stop: &Stop) -> bool {
    let timeout = shared.plan.timeout;
    let mut end = Instant::now() + if cut_short { timeout.min(CUT) } else { timeout };
    while shared.slots.busy() > 0 && Instant::now() < end {
        if !cut_short && stop.stopped() {
            cut_short = true;
            end = end.min(Instant::now() + CUT);
        }
        tokio::time::sleep(DRAIN).await;
    }
    let (open, queued) = shared.slots.open_since(shared.window);
    let mut record = shared.record.borrow_mut();
    record.counts.waited += queued;
    if cut_short {
        record.counts.cut_off += open + queued;
    } else {
        record.failed(&Failure::TimedOut, open);
        record.failed(&Failure::NotSent, queued);
    }
    cut_short
}
