//! `framewire state`: saves and loads savestates.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::server::ServerArgs;
use super::{EXIT_CODES, Failure, field, print, print_bytes};

/// The flags with which `POST /v1/batch` saves and loads the same parts of a state as `/v1/state`: 31 saves all parts,
/// and 29 loads all of them except the battery save (2).
const SAVED: u8 = 31;
const LOADED: u8 = 29;

/// The largest savestate that is read, in bytes; libmgba accepts none that is larger.
const MAX_STATE: u64 = 16 << 20;

/// Arguments of `framewire state`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Save the state of the game to a file on this machine, or to a slot next to the ROM
    ///
    /// The file is a PNG picture of the game, and also a savestate that mGBA can load.
    #[command(after_help = format!("\
Examples:
  framewire state save boss.png
  framewire state save --slot 1

{EXIT_CODES}"))]
    Save {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Load a state of the game from a file on this machine, or from a slot next to the ROM
    #[command(after_help = format!("\
Examples:
  framewire state load boss.png
  framewire state load --slot 1

{EXIT_CODES}"))]
    Load {
        #[command(flatten)]
        place: Place,
        /// Load the state even if it was saved by another game, for example by another version of this game
        #[arg(long, conflicts_with = "slot")]
        force: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Place {
    /// The file; - is standard output or input
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The number of a slot, as in mGBA: a file with the ROM's name and the extension .ssN in the ROM's folder
    #[arg(long, value_name = "N", value_parser = super::whole(0, 0x7fff_ffff))]
    slot: Option<u32>,
}

/// Saves or loads a state.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Save { place, server } => save(place, server),
        Action::Load { place, force, server } => load(place, *force, server),
    }
}

fn save(place: &Place, server: &ServerArgs) -> Result<(), Failure> {
    let session = server.open()?;
    let Some(file) = &place.file else {
        return slot("save_state_slot", SAVED, place, server, &session.client);
    };
    let reply = session.client.get("/v1/state")?;
    if file.as_os_str() == "-" {
        return print_bytes(&reply.body);
    }
    store(file, &reply.body)?;
    let frame = reply.number("framewire-frame").unwrap_or_default();
    if server.json {
        return print(json!({"file": file, "frame": frame}));
    }
    print(format_args!("{}: the state after frame {frame}", file.display()))
}

fn load(place: &Place, force: bool, server: &ServerArgs) -> Result<(), Failure> {
    let Some(file) = &place.file else {
        let session = server.open()?;
        return slot("load_state_slot", LOADED, place, server, &session.client);
    };
    // The file comes first, so that a missing file is reported even if there is no server.
    let state = load_file(file)?;
    let session = server.open()?;
    let target = if force { "/v1/state?force=true" } else { "/v1/state" };
    let reply = session.client.upload(target, &state).map_err(|failure| failure.with_file(file))?.json()?;
    if server.json {
        return print(reply);
    }
    print(format_args!("{}: loaded; the frame counter is {}", file.display(), field(&reply, "frame")?))
}

/// Reads a file with a state; `-` is standard input.
pub fn load_file(file: &Path) -> Result<Vec<u8>, Failure> {
    let shown = file.display();
    let read = if file.as_os_str() == "-" {
        framewire_files::read_from(std::io::stdin(), MAX_STATE)
    } else {
        framewire_files::read(file, MAX_STATE)
    };
    let bytes = read.map_err(|error| Failure::Input(format!("cannot read {shown}: {error}")))?;
    if bytes.is_empty() {
        return Err(Failure::Input(format!("{shown} is empty; name a file with a savestate")));
    }
    Ok(bytes)
}

/// Saves or loads a slot with the operation `op`.
fn slot(
    op: &str,
    flags: u8,
    place: &Place,
    server: &ServerArgs,
    client: &super::client::Client,
) -> Result<(), Failure> {
    let number = place.slot.unwrap_or_default();
    let ops = json!({"ops": [{"op": op, "slot": number, "flags": flags}]});
    let reply = client.change("POST", "/v1/batch", &ops.to_string())?.json()?;
    let result = &field(&reply, "results")?[0];
    if let Some(problem) = result.get("error") {
        // The user does not know of the batch, so the error does not name its operation.
        let detail = problem["detail"].as_str().map(|detail| {
            let rest = detail.strip_prefix("ops[0]");
            rest.map_or(detail, |rest| rest.trim_start_matches(['.', ':', ' ']))
        });
        return Err(Failure::Refused(detail.map_or_else(|| problem.to_string(), str::to_owned)));
    }
    // A stock mGBA returns false, without a reason.
    if result["value"] == false {
        return Err(Failure::Refused(format!(
            "the emulator could not do it ({op}, slot {number}); to load a slot, save it first; to save one, make the \
             ROM's folder writable"
        )));
    }
    if server.json {
        return print(reply);
    }
    let what = if op.starts_with("save") { "saved" } else { "loaded" };
    print(format_args!("slot {number}: {what} at frame {}", field(&reply, "frame")?))
}

/// Replaces a file completely, or leaves it unchanged.
pub fn store(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    framewire_files::replace(file, bytes).map(drop).map_err(|error| {
        Failure::Refused(format!(
            "cannot write {}: {error}; name a file in a folder that exists and that you may write to",
            file.display()
        ))
    })
}
