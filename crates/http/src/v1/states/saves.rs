//! The game's battery save as a file of bytes.

use axum::body::Body;
use framewire_protocol::Op;
use framewire_states::{Console, State as Savestate};

use super::{next_result, saved};
use crate::headers::FRAME;
use crate::routing::prelude::*;
use crate::transport::incoming::BodyReader;
use crate::v1::control::{AtFrame, not_taken};

/// mGBA's flag for the battery save in a state.
const SAVE: u8 = 2;
/// Without the bytes of a clock, the size of a save is a multiple of this number. mGBA appends at most 136 bytes for a
/// clock, so rounding down to a multiple removes them. The only smaller save is that of a TAMA5 cartridge: it has 32
/// bytes.
const SAVE_UNIT: usize = 256;
/// The largest file, in bytes. The largest save of a cartridge has 128 KiB; files of other emulators have some bytes
/// for a clock after it.
const LARGEST: usize = (128 << 10) + 64;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(battery_save, load_battery_save))
}

/// Returns the battery save of the game, in the format of a `.sav` file.
#[utoipa::path(get, path = "/v1/save", operation_id = "batterySave", tag = "states", params(EmulatorParam), responses(
    (status = 200, description = "The save. The header Framewire-Frame has the frame counter.", body = Vec<u8>,
        content_type = "application/octet-stream")))]
async fn battery_save(selected: SelectedEmulator) -> Result<Response> {
    let (share, frame, state) = saved(&selected, SAVE).await?;
    let save = Savestate::read(&state)?.save().unwrap_or_default().to_vec();
    if save.is_empty() {
        return Err(Problem::not_found("the game has no battery save, or has not saved yet"));
    }
    Ok(([(FRAME, frame.to_string())], share.bytes("application/octet-stream", save)).into_response())
}

/// If a save is shorter than the old one, extends it with the bytes of erased memory, as mGBA does when it opens a save
/// file. Without this, mGBA would keep the rest of the old save. The bytes of a clock after the old save are kept.
fn fill(save: &mut Vec<u8>, old: usize) {
    let length = old - old % SAVE_UNIT;
    if save.len() < length {
        save.resize(length, 0xFF);
    }
}

/// Replaces the battery save of the game, and resets the console.
///
/// The body is a `.sav` file of at most 128 KiB, and at most 64 more bytes for a clock. If it is shorter than the save,
/// the rest is filled with the byte FF. The game's save file is replaced too.
#[utoipa::path(put, path = "/v1/save", operation_id = "loadBatterySave", tag = "states", params(EmulatorParam),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "The battery save was replaced.", body = AtFrame)))]
async fn load_battery_save(
    State(bodies): State<Arc<BodyReader>>,
    selected: SelectedEmulator,
    body: Body,
) -> Result<Json<AtFrame>> {
    let mut save = Vec::from(bodies.read_within(body, LARGEST).await?);
    if save.is_empty() {
        return Err(Problem::bad_request("the body is empty; send the bytes of a .sav file"));
    }
    // mGBA takes the bytes of a save only as a part of a state. So it loads its own current state with the new save.
    let (_share, _, now) = saved(&selected, SAVE).await?;
    let now = Savestate::read(&now)?;
    // A game for the Game Boy Advance can get its save later: its kind is known only when the game uses it.
    if now.console() == Console::Gb && now.save().unwrap_or_default().is_empty() {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "this cartridge has no memory for a battery save",
        ));
    }
    fill(&mut save, now.save().unwrap_or_default().len());
    let (current, data) = (now.core().to_vec(), now.with_save(&save));
    // A state that was loaded before can have a save of its own, which hides the game's save until the next reset. A
    // temporary save, which a user of mGBA can load, hides it, too. So the console is reset before the save is loaded;
    // otherwise the last reset would drop the new save. If another game runs by now, an embedded core refuses the first
    // operation, and performs none of the others.
    let batch = selected.keyed(vec![
        Op::LoadState { data: current, flags: 0 },
        Op::Reset {},
        Op::LoadState { data, flags: SAVE },
        Op::Reset {},
    ]);
    let outcome = selected.perform(batch).await?;
    let frame = outcome.frame;
    let mut results = outcome.results.into_iter();
    next_result(&mut results).map_err(not_taken)?;
    next_result(&mut results)?;
    let loaded = bool::try_from(next_result(&mut results).map_err(not_taken)?)?;
    next_result(&mut results)?;
    if loaded {
        return Ok(Json(AtFrame { frame }));
    }
    Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the emulator does not accept this save"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_save_is_filled_up_to_the_bytes_of_a_clock() {
        for (old, length) in [(0, 1), (512, 512), (0x8010, 0x8000), (0x8030, 0x8000), (0x8088, 0x8000)] {
            let mut save = vec![1];
            fill(&mut save, old);
            assert_eq!(save.len(), length, "{old}");
        }
    }
}
