//! `framewire read`: reads memory.

use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;

use super::client::encode;
use super::server::ServerArgs;
use super::{EXIT_CODES, Failure, complete, field, print};

/// The types of numbers in memory, with their names in the HTTP API.
pub const NUMBER_TYPES: [&str; 6] = ["u8", "u16", "u32", "i8", "i16", "i32"];

/// Arguments of `framewire read`.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  framewire read score
  framewire read 0x03005D8C --type u32
  framewire read bricks --length 70

For one address, the command prints the value. For several addresses, it prints one line for each, with the address \
and the value. All values are read in the same frame.

{EXIT_CODES}"))]
pub struct Args {
    /// What to read: the name of a symbol, such as score or presses[2], or a number, such as 0x02000044
    #[arg(value_name = "ADDRESS", required = true, value_parser = NonEmptyStringValueParser::new(),
        add = complete::symbols())]
    addresses: Vec<String>,
    /// The type of the numbers [default: the symbol's type, or u8]
    #[arg(long = "type", value_name = "TYPE", value_parser = NUMBER_TYPES, conflicts_with = "length")]
    kind: Option<String>,
    /// Read this number of bytes and print them in hex
    #[arg(long, value_name = "BYTES", value_parser = super::whole(0, u32::MAX))]
    length: Option<u32>,
    /// Read from this memory domain, such as wram; the addresses are offsets in it [default: the bus]
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Reads memory and prints it.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.length.is_some() && args.addresses.len() > 1 {
        return Err(Failure::Input(format!(
            "--length reads one address, and there are {}; name one address, or leave --length out",
            args.addresses.len()
        )));
    }
    let session = args.server.open()?;
    let reply = session.client.get(&target(args))?.json()?;
    if args.server.json {
        return print(reply);
    }
    if args.length.is_some() {
        return print(field(&reply, "data")?.as_str().unwrap_or_default());
    }
    if args.addresses.len() == 1 {
        return print(field(&reply, "value")?);
    }
    let values: &[Value] = field(&reply, "values")?.as_array().map_or(&[][..], Vec::as_slice);
    for (address, value) in args.addresses.iter().zip(values) {
        print(format_args!("{address} {value}"))?;
    }
    Ok(())
}

/// The path and query of the request.
fn target(args: &Args) -> String {
    let mut query: Vec<String> = Vec::new();
    let path = match args.addresses.as_slice() {
        [address] => format!("/v1/memory/{}", encode(address)),
        addresses => {
            query.extend(addresses.iter().map(|address| format!("address={}", encode(address))));
            "/v1/memory".to_owned()
        }
    };
    if let Some(kind) = &args.kind {
        query.push(format!("type={kind}"));
    }
    if let Some(length) = args.length {
        query.push(format!("length={length}&encoding=hex"));
    }
    if let Some(domain) = &args.domain {
        query.push(format!("domain={}", encode(domain)));
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}
