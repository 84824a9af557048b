//! Loads games that clients send.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path as FilePath;

use axum::body::Body;
use framewire_emulator::EmulatorError;
use framewire_protocol::{Op, Outcome, Status};
use framewire_states::Name;

use super::control::{AtFrame, taken};
use crate::limits::LARGEST_ROM;
use crate::routing::prelude::*;
use crate::storage::{Uploads, blocking};
use crate::transport::incoming::BodyReader;

/// The file name extensions of games.
const ENDINGS: [&str; 6] = ["gba", "agb", "gb", "gbc", "cgb", "sgb"];

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(upload))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct UploadQuery {
    /// The name of the file, with the ending for its console, such as `game.gba`. The battery save has the same
    /// name, but with the ending `.sav`.
    name: String,
    /// Whether to replace a different game that was sent under this name before.
    #[serde(default)]
    #[param(default = false)]
    replace: bool,
}

/// Loads a game that the client sends, and resets the console.
///
/// The body is a ROM of at most 32 MiB. The server keeps it in the folder `uploads` of `--files`, or of its data folder
/// if it was started without `--files`. Clients on other machines can load games only if the server was started with
/// `--files`. If the emulator is a stock mGBA, it must run on the server's machine.
#[utoipa::path(put, path = "/v1/rom", operation_id = "uploadRom", tag = "control", params(EmulatorParam, UploadQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, description = "The game was loaded.", body = AtFrame)))]
async fn upload(
    State(bodies): State<Arc<BodyReader>>,
    State(uploads): State<Storage<Uploads>>,
    selected: SelectedEmulator,
    Query(UploadQuery { name, replace }): Query<UploadQuery>,
    body: Body,
) -> Result<Json<AtFrame>> {
    let name = checked(&name)?;
    selected.may_name_files()?;
    let uploads = uploads.get()?;
    let rom = bodies.read_within(body, LARGEST_ROM).await?;
    if rom.is_empty() {
        return Err(Problem::bad_request("the body is empty; send the bytes of the ROM"));
    }
    let path = uploads.folder.join(name.as_str());
    let text = path.to_str().map(str::to_owned).ok_or_else(|| {
        Problem::unsupported(
            "the folder for uploads has a name that is not UTF-8; choose another with --data DIR",
        )
    })?;
    let (place, shown) = (path.clone(), text.clone());
    // The threads that write the file hold `turn`, because they continue if the client leaves.
    let turn = uploads.turn(&name).await;
    let (before, turn) = blocking(move || keep(&place, &rom, replace).map(|before| (before, turn))).await?;
    let outcome = selected.perform(selected.keyed(Op::LoadRom { path: text })).await;
    let is_known = is_outcome_known(&outcome);
    let loaded = outcome.map_err(Problem::from).and_then(|mut outcome| {
        for error in outcome.results.iter_mut().filter_map(|result| result.as_mut().err()) {
            // Clients must not learn where the server keeps its files.
            error.message = error.message.replace(&shown, name.as_str());
        }
        let refusal =
            "is not a ROM of this console, or the emulator cannot read it; the current game continues";
        taken(outcome, format!("{} {refusal}", name.as_str()))
    });
    if loaded.is_err() && is_known {
        // If this fails, the refused file remains.
        let restoring = move || {
            let _turn = turn;
            restore(&path, before)
        };
        let _ = tokio::task::spawn_blocking(restoring).await;
    }
    loaded
}

/// Whether the server knows the outcome: that the emulator has loaded the game, or that it has not and will not.
/// Without an answer, the server does not know: the emulator may have loaded the game before its connection broke, or
/// may load it after the deadline.
fn is_outcome_known(outcome: &Result<Outcome, EmulatorError>) -> bool {
    let error = match outcome {
        Ok(outcome) => outcome.results.first().and_then(|result| result.as_ref().err()),
        Err(EmulatorError::Refused(error)) => Some(error),
        Err(EmulatorError::Busy(_) | EmulatorError::Forbidden(_)) => None,
        Err(_) => return false,
    };
    error.is_none_or(|error| error.status != Status::Lost)
}

fn checked(name: &str) -> Result<Name> {
    let accepts = "a name such as game.gba: letters, digits, '-', '_' and '.', with the ending .gba, .agb, .gb, .gbc, .cgb or .sgb";
    let refused = || Problem::parameter("name", &format!("is {name:?}"), accepts);
    let checked: Name = name.parse().map_err(|_| refused())?;
    let ending = checked.as_str().rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    if ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) { Ok(checked) } else { Err(refused()) }
}

/// What existed under the name of a game before the game was written.
enum Before {
    /// The same game.
    Same,
    Nothing,
    /// A file with this content.
    Other(Vec<u8>),
}

/// Writes a game, unless the same file exists already.
fn keep(path: &FilePath, rom: &[u8], replace: bool) -> Result<Before> {
    let failed = |error: io::Error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the game cannot be kept: {error}"))
    };
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    let before = match framewire_files::read(path, LARGEST_ROM as u64) {
        Ok(existing) if existing == rom => return Ok(Before::Same),
        Ok(_) if !replace => {
            let detail = "another game of this name was sent before; send ?replace=true to replace it, or choose another name";
            return Err(Problem::conflict(detail));
        }
        Ok(existing) => Before::Other(existing),
        Err(error) if error.kind() == ErrorKind::NotFound => Before::Nothing,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            let detail = "another file has this name, and is too large to be a game; choose another name";
            return Err(Problem::conflict(detail));
        }
        Err(error) => return Err(failed(error)),
    };
    framewire_files::replace(path, rom).map_err(failed)?;
    Ok(before)
}

/// Undoes `keep`.
fn restore(path: &FilePath, before: Before) -> io::Result<()> {
    match before {
        Before::Same => Ok(()),
        Before::Nothing => fs::remove_file(path),
        Before::Other(rom) => framewire_files::replace(path, &rom).map(drop),
    }
}
