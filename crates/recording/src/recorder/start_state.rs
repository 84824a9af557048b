//! The state at the start of a recording.

use std::time::Instant;

use framewire_emulator::{Emulator, EmulatorError, Watch};
use framewire_protocol::{Batch, Keys, Op, OpError, Outcome, Status, Value};

use super::task::DEADLINE;
use crate::{ALL_PARTS, Start};

/// Performs these steps without a frame in between: starts the watch, resets the console for a recording from power-on,
/// and reads which game is running, which keys are held, and the state.
pub(super) async fn begin(
    emulator: &dyn Emulator,
    watch: &Watch,
    start: Start,
) -> Result<Outcome, EmulatorError> {
    // The watch comes first: if it is refused, the other operations are not performed.
    let mut ops = vec![watch.op()];
    if start == Start::PowerOn {
        ops.push(Op::Reset {});
    }
    ops.extend([Op::GameTitle {}, Op::GameCode {}, Op::Checksum {}, Op::Platform {}, Op::GetKeys {}]);
    ops.push(Op::SaveState { flags: ALL_PARTS });
    emulator.submit(Batch::new(ops), Instant::now() + DEADLINE).await
}

/// Whether the emulator refused the watch because it does not support it.
pub(super) fn refused(outcome: &Result<Outcome, EmulatorError>) -> bool {
    let refusal = match outcome {
        Ok(outcome) => outcome.results.first().and_then(|result| result.as_ref().err()),
        Err(EmulatorError::Refused(refusal)) => Some(refusal),
        Err(_) => None,
    };
    refusal.is_some_and(|refusal| refusal.status == Status::Unsupported)
}

/// The game and its state, as [`begin`] has read them.
pub(super) struct StartState {
    pub title: String,
    pub code: String,
    pub checksum: u32,
    pub console: u8,
    pub keys: u16,
    pub state: Vec<u8>,
}

impl StartState {
    pub fn read(outcome: Outcome) -> Result<StartState, OpError> {
        let mut values = outcome.results.into_iter().collect::<Result<Vec<Value>, OpError>>()?;
        // The last six results. The ones before them come from the watch and, if there was one, the reset.
        let last = values.split_off(values.len().saturating_sub(6));
        match <[Value; 6]>::try_from(last) {
            Ok(
                [
                    Value::Text(title),
                    Value::Text(code),
                    Value::Int(checksum),
                    Value::Int(console),
                    Value::Int(keys),
                    Value::Bytes(state),
                ],
            ) => {
                let (checksum, console) = (checksum as u32, console.clamp(0, 1) as u8);
                Ok(StartState { title, code, checksum, console, keys: keys as u16 & Keys::MASK, state })
            }
            _ => Err(OpError::failed("the emulator did not answer with its game and state")),
        }
    }
}
