//! `framewire write`: writes memory.

use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};

use super::client::encode;
use super::read::NUMBER_TYPES;
use super::server::ServerArgs;
use super::{EXIT_CODES, Failure, complete, print};

/// Arguments of `framewire write`.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  framewire write score 500
  framewire write 0x03005D8C 0xffff --type u16
  framewire write scratch --bytes 01ff7f

Without --json, the command prints nothing if the value was written.

{EXIT_CODES}"))]
pub struct Args {
    /// Where to write: the name of a symbol, such as score or presses[2], or a number, such as 0x02000044
    #[arg(value_name = "ADDRESS", value_parser = NonEmptyStringValueParser::new(), add = complete::symbols())]
    address: String,
    /// The number to write, such as 500, -1 or 0x1f4
    #[arg(value_name = "VALUE", value_parser = number, allow_negative_numbers = true, required_unless_present = "bytes")]
    value: Option<i64>,
    /// Write these bytes, in hex, in place of a number
    #[arg(long, value_name = "HEX", value_parser = hex, conflicts_with_all = ["value", "kind"])]
    bytes: Option<String>,
    /// The type of the number [default: the symbol's type, or u8]
    #[arg(long = "type", value_name = "TYPE", value_parser = NUMBER_TYPES)]
    kind: Option<String>,
    /// Write to this memory domain, such as wram; the address is an offset in it [default: the bus]
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Writes a number or bytes.
pub fn run(args: &Args) -> Result<(), Failure> {
    let session = args.server.open()?;
    let domain =
        args.domain.as_deref().map_or_else(String::new, |domain| format!("?domain={}", encode(domain)));
    let target = format!("/v1/memory/{}{domain}", encode(&args.address));
    let reply = session.client.change("PUT", &target, &content(args).to_string())?;
    if args.server.json {
        return print(reply.json()?);
    }
    Ok(())
}

fn content(args: &Args) -> Value {
    match (&args.bytes, &args.kind) {
        (Some(bytes), _) => json!({"data": bytes, "encoding": "hex"}),
        (None, Some(kind)) => json!({"value": args.value, "type": kind}),
        (None, None) => json!({"value": args.value}),
    }
}

fn number(text: &str) -> Result<i64, String> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((digits, 10), |digits| (digits, 16));
    // `from_str_radix` would accept a second sign.
    let number = if digits.starts_with(['+', '-']) { None } else { i64::from_str_radix(digits, radix).ok() };
    number
        .map(|number| sign * number)
        .ok_or_else(|| "write a whole number, such as 500, -1 or 0x1f4".to_owned())
}

fn hex(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() % 2 == 1 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("write two hex digits for each byte, such as 01ff7f".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_decimal_and_hex() {
        for (text, value) in [("500", 500), ("-1", -1), ("0x1F4", 500), ("-0x10", -16), ("0", 0)] {
            assert_eq!(number(text), Ok(value), "{text}");
        }
        for text in ["", "-", "0x", "12a", "--1", "-+1", "1.5", "0x-1"] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_have_two_digits_each() {
        assert_eq!(hex("01fF").as_deref(), Ok("01fF"));
        for text in ["", "1", "0x01", "zz"] {
            assert!(hex(text).is_err(), "{text}");
        }
    }
}
