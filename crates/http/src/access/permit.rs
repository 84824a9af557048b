//! What a caller may have an emulator do, for every operation that reaches one, by whatever route.

use framewire_emulator::EmulatorError;
use framewire_protocol::{Batch, Effect};

use super::caller::{Caller, Reach, Rights};
use super::files::Files;

/// A caller's rights over emulators.
#[derive(Debug, Clone)]
pub(crate) struct Permit {
    caller: Caller,
    /// The only folder in which the caller may name files.
    files: Option<Files>,
}

impl Permit {
    /// The permit of a caller; `None` if it may do everything and nothing is to be added to its batches.
    pub(crate) fn of(caller: &Caller, files: Option<&Files>) -> Option<Permit> {
        let Caller { reach, rights, trace, .. } = caller;
        let is_unbounded =
            *rights == Rights::Full && *reach == Reach::Local && trace.is_none() && files.is_none();
        (!is_unbounded).then(|| Permit { caller: caller.clone(), files: files.cloned() })
    }

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
        match (&self.files, self.caller.reach) {
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
}
