//! `framewire watch`: prints each change.

use serde_json::Value;

use super::client::encode;
use super::server::ServerArgs;
use super::sse::{Event, events};
use super::{EXIT_CODES, Failure, complete, field, print};

/// Arguments of `framewire watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  framewire watch score
  framewire watch score lives 'ball_x >> 8'
  framewire watch score --count 1

The first lines show the current values. Then each change is a line with the frame, the expression and the new value. \
docs/watches.md describes the expressions. Ctrl+C ends the command.

{EXIT_CODES}"))]
pub struct Args {
    /// What to watch
    #[arg(value_name = "EXPRESSION", required = true, add = complete::expressions())]
    expressions: Vec<String>,
    /// Stop after this number of changes; with --json, after this number of events, each of which can have several
    /// changes
    #[arg(long, value_name = "N", value_parser = super::whole(1, u32::MAX))]
    count: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Prints changes until Ctrl+C, until there were as many as `--count` says, or until the server ends the watch.
pub fn run(args: &Args) -> Result<(), Failure> {
    let session = args.server.open()?;
    let query: Vec<String> =
        args.expressions.iter().map(|expression| format!("watch={}", encode(expression))).collect();
    let target = format!("/v1/watch?encoding=hex&{}", query.join("&"));
    let mut left = args.count.map_or(u64::MAX, u64::from);
    for event in events(session.client.stream(&target)?) {
        let Event { name, data } = event.map_err(|error| {
            Failure::Connection(format!("the connection to {} broke: {error}", session.client.url()))
        })?;
        let data: Value = serde_json::from_str(&data).unwrap_or_default();
        left -= show(args, &name, &data, left)?;
        if left == 0 {
            return Ok(());
        }
        if name == "values" {
            // A game of --rom begins to run only now, so that no change comes before the first values.
            session.run()?;
        }
    }
    Err(Failure::Connection(format!("the server at {} ended the watch", session.client.url())))
}

/// Prints an event, with at most `most` changes. Returns how many changes it printed. With `--json`, an event with
/// changes is printed as a whole and counts as one.
fn show(args: &Args, name: &str, data: &Value, most: u64) -> Result<u64, Failure> {
    if name == "end" {
        let detail = data["detail"].as_str().unwrap_or("the server gave no reason");
        return Err(Failure::Connection(format!("the watch ended: {detail}")));
    }
    if args.server.json {
        let mut line = serde_json::json!({"event": name});
        if let (Some(line), Some(data)) = (line.as_object_mut(), data.as_object()) {
            line.extend(data.clone());
        }
        print(line)?;
        return Ok(u64::from(name == "change"));
    }
    let frame = field(data, "frame")?;
    match name {
        "values" | "missed" => {
            if name == "missed" {
                let missed = field(data, "missed")?;
                crate::output::notice(format_args!("framewire: changes were lost: {missed}"));
            }
            let values = field(data, "values")?;
            for expression in &args.expressions {
                print(format_args!("{frame} {expression} {}", plain(values.get(expression))))?;
            }
            Ok(0)
        }
        "change" => {
            let changes = field(data, "changes")?;
            let mut shown = 0;
            for expression in &args.expressions {
                if let Some(change) = changes.get(expression)
                    && shown < most
                {
                    print(format_args!("{frame} {expression} {}", plain(change.get("new"))))?;
                    shown += 1;
                }
            }
            Ok(shown)
        }
        _ => Ok(0),
    }
}

/// Formats a value; a text gets no quotes.
fn plain(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "null".to_owned(),
    }
}
