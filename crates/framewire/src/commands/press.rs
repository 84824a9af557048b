//! `framewire press`: plays keys.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::Client;
use super::server::ServerArgs;
use super::{EXIT_CODES, Failure, field, print};

/// The timeout of the request. It is longer than a server with the default `--deadline` waits for the keys.
const TIMEOUT: Duration = Duration::from_secs(3700);

/// Arguments of `framewire press`.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  framewire press A
  framewire press 'A:2 .:10 Up+B:30'

The keys are A, B, Select, Start, Right, Left, Up, Down, R and L. `+` joins keys that are held together, `.` means no \
key, and the number after the colon says for how many frames (1 without it). The emulator itself counts the frames. The \
output names the frames in which the game sees each press.

{EXIT_CODES}"))]
pub struct Args {
    /// The keys, one press after the other
    #[arg(value_name = "SEQUENCE", required = true)]
    sequence: Vec<String>,
    /// Do not wait until the keys are up again
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Plays the keys.
pub fn run(args: &Args) -> Result<(), Failure> {
    let session = args.server.open()?;
    let sequence = args.sequence.join(" ");
    #[cfg(feature = "embedded")]
    if session.game.is_some() {
        // The game is paused; it runs as many frames as the keys take.
        return show(args, &super::game::play(&session.client, &sequence)?);
    }
    let target = if args.no_wait { "/v1/input" } else { "/v1/input?wait=true" };
    let body = json!({"sequence": sequence}).to_string();
    let reply = session.client.change_within("POST", target, &body, TIMEOUT, None);
    let reply = reply.map_err(|failure| with_pause(failure, &session.client))?.json()?;
    show(args, &reply)?;
    if args.no_wait {
        return Ok(());
    }
    match reply["over"]["cancelled"].as_bool() {
        Some(false) => Ok(()),
        Some(true) => {
            Err(Failure::Refused("the keys were released early: another client cancelled them".to_owned()))
        }
        None => Err(Failure::Refused(
            "the keys are still being played; the emulator is paused or slow (--no-wait does not wait)"
                .to_owned(),
        )),
    }
}

/// The failure of a press. If the reason is a timeline, which is a sequence of keys that the emulator has not finished,
/// and the emulator is paused, the text also says that it is paused: the keys of this press, or of an earlier one, are
/// waiting for the game to continue.
fn with_pause(failure: Failure, client: &Client) -> Failure {
    let why = match failure {
        Failure::Refused(why) if why.contains("timeline") => why,
        other => return other,
    };
    let state = client.get("/v1/emulator").and_then(|reply| reply.json());
    if state.is_ok_and(|state| state["run"] == "paused") {
        Failure::Refused(format!(
            "{why}\n  the emulator is paused; POST /v1/resume continues it, and DELETE /v1/input cancels keys that wait"
        ))
    } else {
        Failure::Refused(why)
    }
}

fn show(args: &Args, reply: &Value) -> Result<(), Failure> {
    if args.server.json {
        return print(reply);
    }
    for press in field(reply, "presses")?.as_array().into_iter().flatten() {
        let keys: Vec<&str> =
            field(press, "keys")?.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (first, last) = (field(press, "first")?, field(press, "last")?);
        print(format_args!("{} in frames {first} to {last}", keys.join("+")))?;
    }
    Ok(())
}
