//! The core on a channel: a client in another process steps it, reads it and sees its picture through shared memory.
//!
//! The client's messages are served on the core's own thread, between frames. While a client holds the clock the core runs
//! a frame only when it is told to, and the thread looks for the next message again and again for a moment before it sleeps;
//! so a step costs no system call on either side. The core draws into the shared memory itself.
//!
//! - `block`: the memory that the client sees;
//! - `message`: what is said.

mod block;
mod message;

use std::time::{Duration, Instant};

use framewire_channel::{Endpoint, Error, Options};
use framewire_libmgba::Level;
use framewire_protocol::{Access, Effect, Frame, Keys, Status};

use super::bounds;
use super::guest::{Bell, Clock, Guest};
use super::machine::Machine;
use block::{Block, Watch};
use message::Asked;

/// How long a client may hold up the core's thread by not taking its answers.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longest time that messages are served without a look at anything else.
const SERVICE: Duration = Duration::from_millis(4);
/// How long until a channel that could not be made is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A channel for one client after the other.
pub(super) struct Station {
    name: String,
    bell: Bell,
    line: Option<Line>,
    retry: Instant,
}

/// The channel of one client, from before it comes until it goes.
struct Line {
    endpoint: Endpoint,
    block: Block,
    watches: Vec<Watch>,
    /// Whether the client says when frames are run.
    holds_clock: bool,
    /// Frames that it has asked for and that were not run yet.
    steps: u32,
    /// The machine's frames when the channel was made.
    since: u64,
    gone: Option<Error>,
}

impl Station {
    /// Makes the channel, and has the core draw into it.
    ///
    /// # Errors
    /// Those of [`Endpoint::create`].
    pub fn open(name: &str, machine: &mut Machine, bell: Bell) -> Result<Station, Error> {
        let line = Line::open(name, machine, &bell)?;
        Ok(Station { name: name.to_owned(), bell, line: Some(line), retry: Instant::now() })
    }

    /// Makes a new channel in place of the one whose client is gone.
    fn reopen(&mut self, machine: &mut Machine) {
        if let Some(line) = self.line.take() {
            if let Some(error) = &line.gone
                && !matches!(error, Error::Closed | Error::Died)
            {
                let message = format!(
                    "channel {:?}: {error}; it was ended, and the next client gets a new one",
                    self.name
                );
                (machine.console)(Level::Warn, &message);
            }
            if line.holds_clock {
                // Nobody is left to let go of what it held.
                machine.set_keys(0);
            }
            // The name is free again when nothing holds the old memory any more.
            self.bell.hang(None);
            drop(machine.core.draw_into(None));
        } else if Instant::now() < self.retry {
            return;
        }
        match Line::open(&self.name, machine, &self.bell) {
            Ok(line) => self.line = Some(line),
            Err(error) => {
                self.retry = Instant::now() + RETRY;
                (machine.console)(Level::Error, &format!("{error}; trying again"));
            }
        }
    }
}

impl Guest for Station {
    fn serve(&mut self, machine: &mut Machine) -> Clock {
        if self.line.as_ref().is_none_or(|line| line.gone.is_some()) {
            self.reopen(machine);
        }
        let Some(line) = &mut self.line else { return Clock::Ours };
        if let Err(error) = line.serve(machine) {
            line.gone = Some(error);
        }
        match line {
            Line { gone: None, holds_clock: true, steps: 0, .. } => Clock::Still,
            Line { gone: None, holds_clock: true, .. } => Clock::Frame,
            _ => Clock::Ours,
        }
    }

    fn before(&mut self) {
        if let Some(line) = &self.line {
            line.block.begin();
        }
    }

    fn after(&mut self, machine: &mut Machine, frame: bool) {
        let Some(line) = &mut self.line else { return };
        line.block.end(line.ticks(machine));
        if frame && line.steps > 0 {
            line.steps -= 1;
            if line.steps == 0
                && let Err(error) = line.answer_done(machine)
            {
                line.gone = Some(error);
            }
        }
    }

    fn wait(&mut self, limit: Duration, stop: &dyn Fn() -> bool) {
        match &mut self.line {
            Some(line) => match line.endpoint.receiver.wait(Some(limit), stop) {
                Ok(_) | Err(Error::Timeout) => {}
                Err(error) => line.gone = Some(error),
            },
            None => {
                let end = Instant::now() + limit.min(RETRY);
                while !stop() && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    fn look(&mut self) {
        self.wait(Duration::ZERO, &|| false);
    }
}

impl Line {
    fn open(name: &str, machine: &mut Machine, bell: &Bell) -> Result<Line, Error> {
        let endpoint = Endpoint::create(name, Options { extra: block::SIZE, ..Options::default() })?;
        let block = Block::new(endpoint.extra());
        machine.core.draw_into(Some(block.canvas()));
        block.refresh(machine, &[], false);
        let waker = endpoint.waker();
        bell.hang(Some(Box::new(move || waker.wake())));
        Ok(Line {
            endpoint,
            block,
            watches: Vec::new(),
            holds_clock: false,
            steps: 0,
            since: machine.ticks,
            gone: None,
        })
    }

    /// Frames run since the channel was made.
    fn ticks(&self, machine: &Machine) -> u32 {
        (machine.ticks - self.since) as u32
    }

    /// Serves messages until there is none, or a frame is to be run first.
    fn serve(&mut self, machine: &mut Machine) -> Result<(), Error> {
        let mut end = None;
        while self.steps == 0 {
            let asked = match self.endpoint.receiver.try_receive()? {
                Some(message) => message::read(&message),
                None => return Ok(()),
            };
            match asked {
                Ok(asked) => self.do_asked(asked, machine)?,
                // The client does not speak this version; it is told so, and answered no more.
                Err(error) => {
                    let goodbye = Frame::Goodbye(format!("malformed message: {error}"));
                    self.send(&message::frame_bytes(&goodbye))?;
                    return Err(Error::Damaged("a client sent a malformed message"));
                }
            }
            let now = Instant::now();
            if now >= *end.get_or_insert(now + SERVICE) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn do_asked(&mut self, asked: Asked, machine: &mut Machine) -> Result<(), Error> {
        match asked {
            Asked::Step { keys, frames } => {
                if let Some(keys) = keys {
                    let Some(keys) = Keys::from_mask(keys) else {
                        let message = format!("keys: a mask of 0 to {} is accepted", Keys::MASK);
                        return self.send(&message::refused(Status::BadArgument, &message));
                    };
                    machine.set_keys(keys.mask());
                }
                self.holds_clock = true;
                self.steps = frames;
                if frames == 0 { self.answer_done(machine) } else { Ok(()) }
            }
            Asked::Run => {
                self.holds_clock = false;
                self.answer_done(machine)
            }
            Asked::Look => self.answer_done(machine),
            Asked::Watch(watches) => {
                let bus = bounds::bus(&machine.core);
                let refused = |watch: &Watch| {
                    let Watch { address, length } = *watch;
                    Access { domain: None, address, length, write: false }.on(bus).err()
                };
                if let Some(error) = watches.iter().find_map(refused) {
                    return self.send(&message::refused(error.status, &error.message));
                }
                self.watches = watches;
                self.answer_done(machine)
            }
            Asked::Batch(request) => {
                let changes = request.batch.effect() == Effect::Change;
                if changes {
                    self.block.begin();
                }
                let outcome = machine.perform(request.batch);
                if changes {
                    self.block.end(self.ticks(machine));
                }
                self.send(&message::reply(request.id, outcome))
            }
            Asked::Ping(id) => {
                let frame = machine.core.frame_counter();
                self.send(&message::frame_bytes(&Frame::Pong { id, frame }))
            }
        }
    }

    fn answer_done(&mut self, machine: &mut Machine) -> Result<(), Error> {
        self.block.refresh(machine, &self.watches, self.holds_clock);
        self.send(&message::done(machine.core.frame_counter()))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.endpoint.send(bytes, Some(PATIENCE))
    }
}
