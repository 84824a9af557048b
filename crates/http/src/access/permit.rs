//! What a caller may have an emulator do, for every operation that reaches one, by whatever route.

use std::sync::Arc;
use std::time::Instant;

use framewire_emulator::{Audio, Emulator, EmulatorError, Event, Pending, State, Video, Watch, WatchRequest};
use framewire_protocol::{Batch, Effect};
use tokio::sync::broadcast;

use super::caller::{Caller, Reach, Rights};
use super::files::Files;

/// A caller's rights over emulators.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permit<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) files: Option<&'a Files>,
}

impl Permit<'_> {
    /// Checks a batch, puts the files that it names where they belong, and has logs call it what its request is called.
    pub(crate) fn check(&self, batch: &mut Batch) -> Result<(), EmulatorError> {
        if self.caller.rights == Rights::Read
            && let Some(change) = batch.ops.iter().find(|op| op.info().effect == Effect::Change)
        {
            let name = change.info().name;
            return Err(EmulatorError::Forbidden(format!(
                "the token that was shown may only look, and {name} changes something"
            )));
        }
        batch.trace = self.caller.trace.as_deref().map(str::to_owned);
        batch.ops.iter_mut().try_for_each(|op| op.try_for_each_path(|path| self.check_path(path)))
    }

    fn check_path(&self, path: &mut String) -> Result<(), EmulatorError> {
        match (self.files, self.caller.reach) {
            (Some(files), _) => *path = files.resolve(path)?,
            (None, Reach::Local) => {}
            (None, Reach::Remote) => {
                return Err(EmulatorError::Forbidden(
                    "files cannot be named from another machine unless framewire is started with --files DIR"
                        .to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// Whether nothing is to be checked or added.
    pub(crate) fn is_unbounded(&self) -> bool {
        let Caller { reach, rights, trace } = self.caller;
        *rights == Rights::Full && *reach == Reach::Local && trace.is_none() && self.files.is_none()
    }

    /// The emulator as this caller may use it.
    pub(crate) fn over(&self, emulator: &Arc<dyn Emulator>) -> Arc<dyn Emulator> {
        Arc::new(Permitted {
            emulator: emulator.clone(),
            caller: self.caller.clone(),
            files: self.files.cloned(),
        })
    }
}

/// An emulator behind a permit.
struct Permitted {
    emulator: Arc<dyn Emulator>,
    caller: Caller,
    files: Option<Files>,
}

impl Emulator for Permitted {
    fn submit(&self, mut batch: Batch, deadline: Instant) -> Pending {
        let permit = Permit { caller: &self.caller, files: self.files.as_ref() };
        match permit.check(&mut batch) {
            Ok(()) => self.emulator.submit(batch, deadline),
            Err(refusal) => Pending::refused(refusal),
        }
    }

    fn state(&self) -> State {
        self.emulator.state()
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.emulator.events()
    }

    fn watch(&self, request: WatchRequest) -> Watch {
        self.emulator.watch(request)
    }

    fn video(&self) -> Option<Video> {
        self.emulator.video()
    }

    fn audio(&self) -> Option<Audio> {
        self.emulator.audio()
    }
}
