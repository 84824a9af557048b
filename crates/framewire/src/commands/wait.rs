//! `framewire wait`: waits for a condition.

use std::time::Instant;

use serde_json::{Value, json};

use super::server::{ServerArgs, Session};
use super::{EXIT_CODES, Failure, complete, field, print};
use crate::settings::Seconds;

/// The largest number of frames that one request can wait for.
const MOST: u32 = 216_000;

/// Arguments of `framewire wait`.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  framewire wait 'lives < 3'
  framewire wait 'score >= 100 or lives == 0' --timeout 30 && framewire screenshot end.png

docs/watches.md describes the expressions. The condition is checked after each frame. Without --timeout and --frames, the \
command waits until the condition is true.

{EXIT_CODES}"))]
pub struct Args {
    /// The condition
    #[arg(value_name = "CONDITION", add = complete::expressions())]
    condition: String,
    /// Give up after this number of seconds, from 0.01 to 3600
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<Seconds>,
    /// Give up after this number of frames
    #[arg(long, value_name = "N", value_parser = super::whole(1, MOST))]
    frames: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Waits until the condition is true.
pub fn run(args: &Args) -> Result<(), Failure> {
    let session = args.server.open()?;
    let condition = &args.condition;
    let begun = Instant::now();
    // The frames of earlier requests.
    let mut earlier = 0;
    loop {
        let Some(mut reply) = ask(args, &session, begun, earlier > 0)? else {
            let seconds = args.timeout.map_or(0.0, |timeout| timeout.0.as_secs_f64());
            return Err(Failure::Refused(format!("{condition:?} did not become true within {seconds} s")));
        };
        let held = field(&reply, "held")? == &Value::Bool(true);
        let frames = earlier + field(&reply, "frames")?.as_u64().unwrap_or(0);
        // The request ended after `MOST` frames, which is an hour of play; send it again.
        if !held && args.frames.is_none() {
            earlier = frames;
            continue;
        }
        reply["frames"] = frames.into();
        if args.server.json {
            print(&reply)?;
        } else if held {
            let frame = field(&reply, "frame")?;
            print(format_args!("true after frame {frame}, {frames} frames later"))?;
        }
        if held {
            return Ok(());
        }
        return Err(Failure::Refused(format!("{condition:?} did not become true within {frames} frames")));
    }
}

/// Sends one request. Returns `None` if the time of `--timeout` is up. `reached` says whether an earlier request has
/// reached the server.
fn ask(args: &Args, session: &Session, begun: Instant, reached: bool) -> Result<Option<Value>, Failure> {
    let frames = args.frames.unwrap_or(MOST);
    let limit = args.timeout.map(|timeout| timeout.0.saturating_sub(begun.elapsed()));
    #[cfg(feature = "embedded")]
    if let Some(game) = &session.game {
        return game.wait(&args.condition, frames, limit);
    }
    let condition = json!({"until": args.condition, "frames": frames});
    session
        .client
        .ask("/v1/wait", &condition.to_string(), limit, reached)?
        .map(|reply| reply.json())
        .transpose()
}
