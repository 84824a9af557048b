//! `framewire read`: reads memory.

use std::process::ExitCode;

use serde_json::Value;

use super::client::encode;
use super::server::ServerArgs;
use super::{EXIT_CODES, Failure, complete, end, field, print};

/// The type of a number in memory.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum NumberType {
    U8,
    U16,
    U32,
    I8,
    I16,
    I32,
}

impl NumberType {
    /// The type's name in the HTTP API.
    pub fn name(self) -> &'static str {
        match self {
            NumberType::U8 => "u8",
            NumberType::U16 => "u16",
            NumberType::U32 => "u32",
            NumberType::I8 => "i8",
            NumberType::I16 => "i16",
            NumberType::I32 => "i32",
        }
    }
}

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
    #[arg(value_name = "ADDRESS", required = true, add = complete::symbols())]
    addresses: Vec<String>,
    /// The type of the numbers [default: the symbol's type, or u8]
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "length")]
    kind: Option<NumberType>,
    /// Read this number of bytes and print them in hex
    #[arg(long, value_name = "BYTES")]
    length: Option<u32>,
    /// Read from this memory domain, such as wram; the addresses are offsets in it [default: the bus]
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Reads memory and prints it.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    end(read(args))
}

fn read(args: &Args) -> Result<(), Failure> {
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
    if let Some(kind) = args.kind {
        query.push(format!("type={}", kind.name()));
    }
    if let Some(length) = args.length {
        query.push(format!("length={length}&encoding=hex"));
    }
    if let Some(domain) = &args.domain {
        query.push(format!("domain={}", encode(domain)));
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}
