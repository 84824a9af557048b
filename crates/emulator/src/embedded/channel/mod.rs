//! The core on a channel: through shared memory, a client in another process runs frames, reads the game's memory and
//! sees the picture.
//!
//! The core's own thread serves the client's messages, between frames. A client can *hold the clock*: then frames run
//! only when it requests them. Before the thread sleeps, it polls for the next message for a short time. So a client
//! that requests frames one after another needs no system calls, and neither does the thread. The core draws directly
//! into the shared memory.
//!
//! - `block`: the memory that the client reads;
//! - `message`: the messages.

mod block;
mod message;

use std::time::{Duration, Instant};

use framewire_channel::{Endpoint, Error, Options};
use framewire_libmgba::Level;
use framewire_protocol::{Access, DecodeError, Effect, Frame, Op};

use super::bounds;
use super::driver::{Driver, NextFrame, ThreadWaker};
use super::machine::Machine;
use super::operation::check_keys;
use block::{Block, WatchedRange};
use message::ClientMessage;

/// The longest time that a client may block the core's thread by not reading its answers.
const SEND_TIMEOUT: Duration = Duration::from_millis(100);
/// After this time, the thread serves no further message before it does its other work.
const SERVICE: Duration = Duration::from_millis(4);
/// The time before the next attempt to create the channel.
const RETRY: Duration = Duration::from_secs(1);

/// Serves clients on a channel, one after another.
pub(super) struct ChannelHost {
    name: String,
    waker: ThreadWaker,
    /// The current channel; `None` if it could not be created.
    client: Option<ChannelClient>,
    /// When to try again to create the channel.
    retry: Instant,
    /// Why the last attempt to create the channel failed; empty if it succeeded.
    problem: String,
}

/// The channel of one client: created before the client connects, dropped when the client is gone.
struct ChannelClient {
    endpoint: Endpoint,
    block: Block,
    watches: Vec<WatchedRange>,
    /// Whether the client decides when frames run.
    holds_clock: bool,
    /// The keys that the client holds: the keys that it last set with a step, changed by the operations of its later
    /// batches. Batches count only while the client holds the clock.
    keys: u16,
    /// The number of frames that the client has requested and that have not run yet.
    steps: u32,
    /// The machine's `ticks` when the channel was created.
    since: u64,
    /// Why the client is gone; `None` while it is there.
    gone: Option<End>,
}

/// Why a channel ends.
enum End {
    /// The client has left, or its channel failed.
    Channel(Error),
    /// The client has sent a message that is not valid. It probably uses another version of the protocol.
    Malformed(DecodeError),
}

impl End {
    /// What to log; `None` if the client has just left.
    fn problem(&self) -> Option<String> {
        match self {
            End::Channel(Error::Closed | Error::Died) => None,
            End::Channel(Error::Timeout) => {
                Some("there was no room for a reply, because the client read no replies".to_owned())
            }
            End::Channel(error) => Some(error.to_string()),
            End::Malformed(error) => Some(format!("the client sent a malformed message: {error}")),
        }
    }
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        End::Channel(error)
    }
}

impl ChannelHost {
    /// Creates the channel, and makes the core draw into it.
    ///
    /// # Errors
    /// Those of [`Endpoint::create`].
    pub fn open(name: &str, machine: &mut Machine, waker: ThreadWaker) -> Result<ChannelHost, Error> {
        let client = ChannelClient::open(name, machine, &waker)?;
        Ok(ChannelHost {
            name: name.to_owned(),
            waker,
            client: Some(client),
            retry: Instant::now(),
            problem: String::new(),
        })
    }

    /// If the client is gone, replaces its channel with a new one. If there is no channel, tries again to create one.
    fn reopen(&mut self, machine: &mut Machine) {
        if let Some(client) = self.client.take() {
            if let Some(problem) = client.gone.as_ref().and_then(End::problem) {
                let message = format!(
                    "channel {:?}: {problem}; the channel was closed, and the next client gets a new one",
                    self.name
                );
                (machine.console)(Level::Warn, &message);
            }
            // Release the keys that the client held, because the client can no longer do that.
            if client.keys != 0 {
                machine.clear_keys(client.keys);
            }
            // The channel's name is free only when the waker and the core no longer use the old memory.
            self.waker.set(None);
            drop(machine.core.draw_into(None));
        } else if Instant::now() < self.retry {
            return;
        }
        match ChannelClient::open(&self.name, machine, &self.waker) {
            Ok(client) => {
                self.client = Some(client);
                self.problem.clear();
            }
            Err(error) => {
                self.retry = Instant::now() + RETRY;
                let problem = error.to_string();
                if problem != self.problem {
                    (machine.console)(Level::Error, &format!("{problem}; trying again every second"));
                    self.problem = problem;
                }
            }
        }
    }
}

impl Driver for ChannelHost {
    fn serve(&mut self, machine: &mut Machine) {
        if self.client.as_ref().is_none_or(|client| client.gone.is_some()) {
            self.reopen(machine);
        }
        if let Some(client) = &mut self.client
            && let Err(end) = client.serve(machine)
        {
            client.gone = Some(end);
        }
    }

    fn next_frame(&self) -> NextFrame {
        match &self.client {
            Some(ChannelClient { gone: None, holds_clock: true, steps: 0, .. }) => NextFrame::NotYet,
            Some(ChannelClient { gone: None, holds_clock: true, .. }) => NextFrame::Now,
            _ => NextFrame::Scheduled,
        }
    }

    fn needs_picture(&self) -> bool {
        // A client that holds the clock sees only the last frame of each request. Any other client can look at any
        // time, including one that is about to connect.
        self.client.as_ref().is_none_or(|client| !client.holds_clock || client.steps <= 1)
    }

    fn before(&mut self) {
        if let Some(client) = &self.client {
            client.block.begin();
        }
    }

    fn after(&mut self, machine: &mut Machine, frame: bool) {
        let Some(client) = &mut self.client else { return };
        client.block.end(client.ticks(machine));
        if frame && client.steps > 0 {
            client.steps -= 1;
            if client.steps == 0
                && let Err(error) = client.answer_done(machine)
            {
                client.gone = Some(error.into());
            }
        }
    }

    fn wait(&mut self, limit: Duration, stop: &dyn Fn() -> bool) {
        match &mut self.client {
            // `serve` replaces the channel at once, and logs the first reason why it ended.
            Some(ChannelClient { gone: Some(_), .. }) => {}
            Some(client) => match client.endpoint.receiver.wait(Some(limit), stop) {
                Ok(_) | Err(Error::Timeout) => {}
                Err(error) => client.gone = Some(error.into()),
            },
            None => {
                let end = Instant::now() + limit.min(RETRY);
                while !stop() && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    fn check(&mut self) {
        self.wait(Duration::ZERO, &|| false);
        if let Some(client) = &mut self.client
            && client.gone.is_none()
            && client.steps > 0
            && let Some(error) = client.endpoint.receiver.peer_gone()
        {
            // `wait` reports that the client is gone only when every message has been read, and no message is read
            // before the requested frames have run.
            client.gone = Some(error.into());
        }
    }
}

impl ChannelClient {
    fn open(name: &str, machine: &mut Machine, thread_waker: &ThreadWaker) -> Result<ChannelClient, Error> {
        let endpoint = Endpoint::create(name, Options { extra: block::SIZE, ..Options::default() })?;
        let block = Block::new(endpoint.extra());
        machine.core.draw_into(Some(block.canvas()));
        block.refresh(machine, &[], false);
        let waker = endpoint.waker();
        thread_waker.set(Some(Box::new(move || waker.wake())));
        Ok(ChannelClient {
            endpoint,
            block,
            watches: Vec::new(),
            holds_clock: false,
            keys: 0,
            steps: 0,
            since: machine.ticks,
            gone: None,
        })
    }

    /// The number of frames that have run since the channel was created.
    fn ticks(&self, machine: &Machine) -> u32 {
        (machine.ticks - self.since) as u32
    }

    /// Serves messages until there are no more, the time is up, or a requested frame has to run first.
    fn serve(&mut self, machine: &mut Machine) -> Result<(), End> {
        let mut end = None;
        while self.steps == 0 {
            let message = match self.endpoint.receiver.try_receive()? {
                Some(message) => message::read(&message),
                None => return Ok(()),
            };
            match message {
                Ok(message) => self.handle(message, machine)?,
                // Send the client the reason and close the channel.
                Err(error) => {
                    let goodbye = Frame::Goodbye(format!("malformed message: {error}"));
                    self.send(&message::frame_bytes(&goodbye))?;
                    return Err(End::Malformed(error));
                }
            }
            let now = Instant::now();
            if now >= *end.get_or_insert(now + SERVICE) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn handle(&mut self, message: ClientMessage, machine: &mut Machine) -> Result<(), Error> {
        match message {
            ClientMessage::Step { keys, frames } => {
                if let Some(keys) = keys {
                    match check_keys(keys) {
                        Ok(keys) => self.keys = keys,
                        Err(error) => return self.send(&message::refused(&error)),
                    }
                    machine.set_keys(self.keys);
                }
                self.holds_clock = true;
                self.steps = frames;
                if frames == 0 { self.answer_done(machine) } else { Ok(()) }
            }
            ClientMessage::Run => {
                self.holds_clock = false;
                self.answer_done(machine)
            }
            ClientMessage::Look => self.answer_done(machine),
            ClientMessage::Watch(watches) => {
                let bus = bounds::bus(&machine.core);
                let refused = |watch: &WatchedRange| {
                    let WatchedRange { address, length } = *watch;
                    Access { domain: None, address, length, write: false }.on(bus).err()
                };
                if let Some(error) = watches.iter().find_map(refused) {
                    return self.send(&message::refused(&error));
                }
                self.watches = watches;
                self.answer_done(machine)
            }
            ClientMessage::Batch(request) => {
                let changes = request.batch.effect() == Effect::Change;
                if changes {
                    self.block.begin();
                }
                let mut key_changes = Vec::new();
                if self.holds_clock {
                    let ops = request.batch.ops.iter().enumerate();
                    key_changes.extend(ops.filter_map(|(index, op)| Some((index, key_change(op)?))));
                }
                let outcome = machine.perform(request.batch);
                for (index, (released, held)) in key_changes {
                    // A batch can be refused, or stop at an operation that fails.
                    if matches!(outcome.results.get(index), Some(Ok(_))) {
                        self.keys = self.keys & !released | held;
                    }
                }
                if changes {
                    self.block.end(self.ticks(machine));
                    // Update the report before the reply is sent, so a client that has the reply also finds the new
                    // frame counter and run state in the report.
                    machine.report();
                }
                self.send(&message::reply(request.id, outcome))
            }
            ClientMessage::Ping(id) => {
                let frame = machine.core.frame_counter();
                self.send(&message::frame_bytes(&Frame::Pong { id, frame }))
            }
        }
    }

    /// Updates the block and reports that a message was performed.
    fn answer_done(&mut self, machine: &mut Machine) -> Result<(), Error> {
        self.block.refresh(machine, &self.watches, self.holds_clock);
        self.send(&message::done(machine.core.frame_counter()))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.endpoint.send(bytes, Some(SEND_TIMEOUT))
    }
}

/// The keys that an operation releases, and those that it then holds, until another operation changes that.
fn key_change(op: &Op) -> Option<(u16, u16)> {
    match *op {
        Op::SetKeys { keys } => Some((u16::MAX, keys)),
        Op::AddKeys { keys } => Some((0, keys)),
        Op::ClearKeys { keys } => Some((keys, 0)),
        _ => None,
    }
}
