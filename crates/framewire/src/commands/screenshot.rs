//! `framewire screenshot`: takes a picture.

use std::path::PathBuf;

use serde_json::json;

use super::server::ServerArgs;
use super::state::store;
use super::{EXIT_CODES, Failure, print, print_bytes};

/// Arguments of `framewire screenshot`.
#[derive(Debug, clap::Args)]
#[cfg_attr(feature = "embedded", command(after_help = format!("\
Examples:
  framewire screenshot out.png
  framewire screenshot - | display
  framewire screenshot --rom game.gba --after 600 out.png

{EXIT_CODES}")))]
#[cfg_attr(not(feature = "embedded"), command(after_help = format!("\
Example:
  framewire screenshot out.png

{EXIT_CODES}")))]
pub struct Args {
    /// Write the picture to this PNG file; - is standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    server: ServerArgs,
}

/// Writes the picture of the last frame.
pub fn run(args: &Args) -> Result<(), Failure> {
    let session = args.server.open()?;
    let reply = session.client.get("/v1/screen")?;
    if args.file.as_os_str() == "-" {
        return print_bytes(&reply.body);
    }
    store(&args.file, &reply.body)?;
    let number = |name: &str| reply.number(name).unwrap_or_default();
    let (frame, width, height) =
        (number("framewire-frame"), number("framewire-width"), number("framewire-height"));
    if args.server.json {
        return print(json!({"file": args.file, "frame": frame, "width": width, "height": height}));
    }
    print(format_args!("{}: frame {frame}, {width} x {height} pixels", args.file.display()))
}
