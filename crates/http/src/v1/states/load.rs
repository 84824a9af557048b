//! Loads states, after a look at what they are of.

use axum::http::StatusCode;
use framewire_protocol::{Batch, Op, OpError, Value};
use framewire_states::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::Site;
use crate::operations::emulators::Served;
use crate::problem::Problem;
use crate::v1::control::{AtFrame, not_taken};

/// What is loaded unless told otherwise: all but the battery save, as mGBA does.
pub(super) const USUAL: u8 = 29;

/// mGBA's flags of states, added up.
const MOST: u8 = 31;

/// How to load.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct How {
    /// What to load, added up: 1 picture, 2 battery save (it overwrites the game's save file), 4 cheats, 8 clock.
    #[serde(default = "usual")]
    #[schema(default = 29, maximum = 31)]
    pub(super) flags: u8,
    /// Whether to load it although it is another game's.
    #[serde(default)]
    pub(super) force: bool,
}

fn usual() -> u8 {
    USUAL
}

/// Flags, if they are.
pub(super) fn check_flags(flags: u8) -> Result<u8, Problem> {
    match flags <= MOST {
        true => Ok(flags),
        false => {
            let accepts =
                "the sum of any of 1 (picture), 2 (battery save), 4 (cheats), 8 (clock), 16 (metadata)";
            Err(Problem::parameter("flags", &format!("is {flags}"), accepts))
        }
    }
}

/// Loads a state, if it is of the running game or is to be loaded all the same.
pub(super) async fn load(
    site: &Site,
    served: &Served,
    key: Option<String>,
    bytes: Vec<u8>,
    how: How,
) -> Result<AtFrame, Problem> {
    check_flags(how.flags)?;
    let state = State::read(&bytes)?;
    let mut ops = vec![Op::Checksum {}, Op::GameTitle {}];
    ops.extend(how.force.then_some(Op::SaveState { flags: 0 }));
    let mut results = site.perform(served, Batch::new(ops)).await?.results.into_iter();
    let (checksum, title) = (next(&mut results)?, next(&mut results)?);
    let (Value::Int(checksum), Value::Text(title)) = (checksum, title) else { return Err(odd()) };
    let ours = checksum as u32 == state.checksum();
    let data = match results.next() {
        _ if ours => bytes,
        Some(now) => {
            let Value::Bytes(now) = now? else { return Err(odd()) };
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
    let mut outcome = site.perform(served, batch).await?;
    match outcome.results.pop() {
        Some(Ok(Value::Bool(true))) => Ok(AtFrame { frame: outcome.frame }),
        Some(Ok(Value::Bool(false))) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "the emulator does not take this state: it is damaged, or of another game or version",
        )),
        Some(Err(error)) => Err(not_taken(error)),
        _ => Err(odd()),
    }
}

/// The next result of a batch, in which none may be missing.
pub(super) fn next(results: &mut impl Iterator<Item = Result<Value, OpError>>) -> Result<Value, Problem> {
    Ok(results.next().unwrap_or_else(|| Err(OpError::failed("the reply does not hold all results")))?)
}

pub(super) fn odd() -> Problem {
    OpError::failed("the emulator answered with something else than was asked for").into()
}
