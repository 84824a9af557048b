//! Loads states, after checking which game they are of.

use axum::http::StatusCode;
use framewire_protocol::{Batch, Op, OpError, Value};
use framewire_states::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::operations::Operations;
use crate::operations::emulators::Served;
use crate::problem::Problem;
use crate::v1::control::{AtFrame, not_taken};

/// What is loaded by default: everything except the battery save, as mGBA does.
pub(in crate::v1) const USUAL: u8 = 29;

/// mGBA's flags of states, added up.
const MOST: u8 = 31;

/// How to load a state.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = How)]
pub(in crate::v1) struct LoadOptions {
    /// What to load, added up: 1 picture, 2 battery save (it overwrites the game's save file), 4 cheats, 8 clock.
    #[serde(default = "usual")]
    #[schema(default = 29, maximum = 31)]
    pub(in crate::v1) flags: u8,
    /// Whether to load it although it is another game's.
    #[serde(default)]
    pub(in crate::v1) force: bool,
}

fn usual() -> u8 {
    USUAL
}

/// Checks the flags of a state.
pub(in crate::v1) fn check_flags(flags: u8) -> Result<u8, Problem> {
    if flags <= MOST {
        return Ok(flags);
    }
    let accepts = "the sum of any of 1 (picture), 2 (battery save), 4 (cheats), 8 (clock), 16 (metadata)";
    Err(Problem::parameter("flags", &format!("is {flags}"), accepts))
}

/// Loads a state, if it is of the running game or is to be loaded all the same.
pub(in crate::v1) async fn load(
    operations: &Operations,
    served: &Served,
    key: Option<String>,
    bytes: Vec<u8>,
    how: LoadOptions,
) -> Result<AtFrame, Problem> {
    check_flags(how.flags)?;
    let state = State::read(&bytes)?;
    let mut ops = vec![Op::Checksum {}, Op::GameTitle {}];
    ops.extend(how.force.then_some(Op::SaveState { flags: 0 }));
    let mut results = operations.perform(served, Batch::new(ops)).await?.results.into_iter();
    let (checksum, title) = (next(&mut results)?, next(&mut results)?);
    let (Value::Int(checksum), Value::Text(title)) = (checksum, title) else {
        return Err(unexpected_reply());
    };
    let ours = checksum as u32 == state.checksum();
    let data = match results.next() {
        _ if ours => bytes,
        Some(now) => {
            let Value::Bytes(now) = now? else { return Err(unexpected_reply()) };
            state.as_of(&State::read(&now)?)?
        }
        None => {
            let detail = format!(
                "the state is of {} (checksum {:08x}), and {title} (checksum {checksum:08x}) is running; with \"force\" it \
                 is loaded all the same, and the game may crash",
                state.title(),
                state.checksum(),
            );
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
    };
    let batch = Batch { key, ..Op::LoadState { data, flags: how.flags }.into() };
    let mut outcome = operations.perform(served, batch).await?;
    match outcome.results.pop() {
        Some(Ok(Value::Bool(true))) => Ok(AtFrame { frame: outcome.frame }),
        Some(Ok(Value::Bool(false))) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "the emulator does not take this state: it is damaged, or of another game or version",
        )),
        Some(Err(error)) => Err(not_taken(error)),
        _ => Err(unexpected_reply()),
    }
}

/// The next result of a batch, in which none may be missing.
pub(in crate::v1) fn next(
    results: &mut impl Iterator<Item = Result<Value, OpError>>,
) -> Result<Value, Problem> {
    Ok(results.next().unwrap_or_else(|| Err(OpError::failed("the reply does not hold all results")))?)
}

pub(in crate::v1) fn unexpected_reply() -> Problem {
    OpError::failed("the emulator answered with something else than was asked for").into()
}
