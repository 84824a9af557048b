//! Finds places in memory that contain given bytes: text, numbers in special formats, or a pointer.

use framewire_expression::{MAX_RANGE, Type};
use framewire_states::Console;
use framewire_states::search::Plan;
use framewire_symbols::Symbols;

use super::shapes::SearchArea;
use super::{areas, console, read};
use crate::reading::fields::{self, Encoding};
use crate::routing::prelude::*;
use crate::v1::schemas::AddressSchema;
use crate::v1::states::diff::MemoryPlace;

/// The largest number of places in one reply.
const MOST: usize = 10_000;
/// An upper limit for the size of a place in the reply, without its bytes.
const PLACE_SIZE: usize = 512;
/// The largest number that can be found in BCD. It has eight digits.
const MOST_BCD: u32 = 99_999_999;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(find).changes_nothing())
}

/// What to find: exactly one of text, bytes, float, bcd and pointer_to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"text": "FWDEMO"}))]
struct FindOptions {
    /// A text, in the game's character table (`--symbols game.tbl`), or else in UTF-8; at most 4,096 bytes.
    text: Option<String>,
    /// Bytes, as text in `encoding`; at most 4,096 bytes.
    bytes: Option<String>,
    /// A floating point number of 32 bits.
    float: Option<f32>,
    /// A binary-coded decimal number: each half of a byte is a digit. The lowest byte can be first or last.
    #[schema(maximum = 99_999_999)]
    bcd: Option<u32>,
    /// An address. Finds pointers to it, which have 4 bytes, or 2 on the Game Boy.
    #[schema(value_type = Option<AddressSchema>)]
    pointer_to: Option<serde_json::Value>,
    /// Where to look. By default, the console's work RAM and, on the Game Boy, the high RAM.
    #[serde(default)]
    #[schema(max_items = 16)]
    areas: Vec<SearchArea>,
    /// How bytes are written.
    #[serde(default)]
    encoding: Encoding,
    /// The largest number of places in the reply. Default: 100.
    #[serde(default = "usual")]
    #[schema(minimum = 1, maximum = 10_000)]
    limit: usize,
}

fn usual() -> usize {
    100
}

/// Places in memory.
#[derive(Serialize, ToSchema)]
struct Found {
    /// The frame counter when memory was read.
    frame: u32,
    /// How many places there are.
    count: usize,
    /// The first of them, in the order of areas and addresses.
    places: Vec<FoundPlace>,
}

/// A place in memory that matches.
#[derive(Serialize, ToSchema)]
struct FoundPlace {
    #[serde(flatten)]
    place: MemoryPlace,
    /// An expression that watches can use to read the bytes.
    watch: String,
    /// The bytes there.
    data: String,
}

impl FindOptions {
    /// The bytes to find, in each form that they can have.
    fn patterns(&self, console: Console, symbols: &Symbols) -> Result<Vec<Vec<u8>>> {
        let patterns = match (&self.text, &self.bytes, self.float, self.bcd, &self.pointer_to) {
            (Some(text), None, None, None, None) => {
                vec![symbols.encode_text(text).map_err(|problem| Problem::at("text", &problem))?]
            }
            (None, Some(bytes), None, None, None) => {
                let accepts = "base64 text, or hex with \"encoding\": \"hex\"";
                let wrong = || Problem::parameter("bytes", &format!("is {bytes:?}"), accepts);
                vec![self.encoding.bytes(bytes).ok_or_else(wrong)?]
            }
            (None, None, Some(number), None, None) if number.is_infinite() => {
                let accepts = "a number that fits into 32 bits, up to about 3.4e38";
                return Err(Problem::parameter("float", "is too large", accepts));
            }
            (None, None, Some(number), None, None) => vec![number.to_le_bytes().to_vec()],
            (None, None, None, Some(number), None) => bcd(number)?,
            (None, None, None, None, Some(address)) => {
                let address = fields::place(address, symbols, "pointer_to")?.address;
                let size = if console == Console::Gba { 4 } else { 2 };
                if size == 2 && address > u16::MAX.into() {
                    let problem = format!("is {address:#x}");
                    return Err(Problem::parameter("pointer_to", &problem, "0 to 0xffff on the Game Boy"));
                }
                vec![address.to_le_bytes()[..size].to_vec()]
            }
            _ => {
                let accepted = "exactly one of text, bytes, float, bcd and pointer_to is accepted";
                return Err(Problem::bad_request(accepted));
            }
        };
        if patterns.iter().any(Vec::is_empty) {
            return Err(Problem::bad_request("there are no bytes to look for; use 1 or more"));
        }
        if patterns.iter().any(|pattern| pattern.len() > MAX_RANGE.into()) {
            let name = if self.text.is_some() { "text" } else { "bytes" };
            return Err(Problem::parameter(name, "has too many bytes", format!("{MAX_RANGE} or fewer")));
        }
        Ok(patterns)
    }
}

/// The BCD forms of a number: with the lowest byte first, and with the highest byte first.
fn bcd(number: u32) -> Result<Vec<Vec<u8>>> {
    if number > MOST_BCD {
        return Err(Problem::parameter("bcd", &format!("is {number}"), format!("0 to {MOST_BCD}")));
    }
    let (mut left, mut bytes) = (number, Vec::new());
    while left > 0 || bytes.is_empty() {
        bytes.push((left % 100 / 10 * 16 + left % 10) as u8);
        left /= 100;
    }
    let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
    Ok(if reversed == bytes { vec![bytes] } else { vec![bytes, reversed] })
}

/// Finds a text, bytes, a floating point number, a BCD number, or pointers to an address in memory.
///
/// To find a number that changes, begin a search with POST /v1/search.
#[utoipa::path(post, path = "/v1/find", operation_id = "find", tag = "search", params(EmulatorParam),
    request_body = FindOptions, responses((status = 200, description = "The places.", body = Found)))]
async fn find(selected: SelectedEmulator, Payload(request): Payload<FindOptions>) -> Result<Response> {
    if !(1..=MOST).contains(&request.limit) {
        let problem = format!("is {}", request.limit);
        return Err(Problem::parameter("limit", &problem, format!("a number of places from 1 to {MOST}")));
    }
    let console = console(&selected).await?;
    let symbols = selected.symbols().await;
    let patterns = request.patterns(console, &symbols)?;
    let (limit, encoding) = (request.limit, request.encoding);
    let areas = areas(&selected, console, request.areas).await?;
    let plan = Plan::new(areas, Type::U8, None)?.of(console);
    let reading = read(&selected.operations, &selected, &plan).await?;
    let (mut memory, mut count, mut found) = (&reading.memory[..], 0, Vec::new());
    for area in plan.areas() {
        let (bytes, rest) = memory.split_at(memory.len().min(area.length as usize));
        memory = rest;
        for at in 0..bytes.len() {
            let Some(pattern) = patterns.iter().find(|pattern| bytes[at..].starts_with(pattern)) else {
                continue;
            };
            count += 1;
            if found.len() < limit {
                found.push((area.domain.as_deref(), area.address + at as u32, pattern));
            }
        }
    }
    // The bytes have at most two characters each, and all other parts of a place are short.
    let size = found.iter().map(|(_, _, pattern)| 2 * pattern.len() + PLACE_SIZE).sum();
    let share = selected.operations.replies.share_bytes(size)?;
    let places = found.iter().map(|(domain, address, _)| (*domain, *address, plan.on_bus(*domain, *address)));
    let places = MemoryPlace::all(places, &symbols).into_iter().zip(&found);
    let places = places.map(|(place, (_, _, pattern))| {
        let watch = format!("bytes[{}, {}]", place.in_brackets(), pattern.len());
        FoundPlace { place, watch, data: encoding.text(pattern) }
    });
    Ok(share.json(&Found { frame: reading.frame, count, places: places.collect() }))
}
