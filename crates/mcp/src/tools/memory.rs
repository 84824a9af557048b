//! The tools for memory: read, write, search, symbols and text.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use framewire_protocol::hex::{hex_digits, parse_hex_digits};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::control::listed;
use super::{Reply, ToolError, check_uses, set};
use crate::backend::Object;
use crate::session::{Session, arguments};

/// How many numbers or bytes one call can read.
const MAX_COUNT: u32 = 1024;
/// The largest number of candidates or symbols in one reply.
const MAX_LISTED: usize = 50;
/// The largest number of places that are listed for a text.
const MAX_FOUND: usize = 20;
/// The largest number of bytes that one call of the method `find` searches.
const CHUNK: u32 = 1 << 20;
/// The types of numbers in memory.
const TYPES: [&str; 6] = ["u8", "u16", "u32", "i8", "i16", "i32"];
/// The longest text that is searched for, in bytes.
const MAX_TEXT: usize = 256;

// What follows are the schemas of the tools' arguments, for `Tool::arguments`.

pub(super) const READ: &str = r#"
"address":{"type":"string","description":"0x02000044, a symbol, score+2 or presses[3]"},
"type":{"type":"string","enum":["u8","u16","u32","i8","i16","i32","bytes"],"description":"Default: the symbol's, or u8"},
"count":{"type":"integer"},
"domain":{"type":"string","description":"address is an offset in this memory domain, such as wram"}"#;

pub(super) const WRITE: &str = r#"
"address":{"type":"string"},"value":{"type":"integer"},"bytes":{"type":"string","description":"Hex, instead of value"},
"type":{"type":"string","enum":["u8","u16","u32","i8","i16","i32"]},"domain":{"type":"string"}"#;

pub(super) const SEARCH: &str = r#"
"action":{"type":"string","enum":["begin","narrow","list","undo","end"]},
"type":{"type":"string","enum":["u8","u16","u32","i8","i16","i32"]},
"domain":{"type":"string","description":"Default: all work RAM"},
"id":{"type":"integer","description":"From begin"},
"is":{"type":"string","enum":["equal","not_equal","greater","less","at_least","at_most","changed","unchanged","increased",
"decreased","increased_by","decreased_by"]},
"value":{"type":"integer"}"#;

pub(super) const SYMBOLS: &str = r#"
"contains":{"type":"string"}"#;

pub(super) const TEXT: &str = r#"
"address":{"type":"string","description":"Read here"},"length":{"type":"integer","description":"Bytes (64)"},
"find":{"type":"string","description":"Or find this text"},
"domain":{"type":"string","description":"Where to find (wram, iwram)"},
"table":{"type":"object","additionalProperties":{"type":"string"},"description":"Default: ASCII. The text \"\" marks the end"}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    address: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    count: Option<u32>,
    domain: Option<String>,
}

pub(super) async fn read(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let ReadArguments { address, kind, count, domain } = arguments(given)?;
    let count = count.unwrap_or(1);
    if !(1..=MAX_COUNT).contains(&count) {
        return Err(ToolError(format!("count is {count}; use 1 to {MAX_COUNT}")));
    }
    if kind.as_deref() == Some("bytes") {
        let (frame, bytes) = bytes(&session, &address, count, domain.as_deref()).await?;
        return Ok(json!({"frame": frame, "bytes": hex_digits(&bytes)}).into());
    }
    let mut op = json!({"op": "read_many", "addresses": addresses(&address, kind.as_deref(), count)});
    set(&mut op, "type", kind);
    set(&mut op, "domain", domain);
    let (frame, mut values) = session.batch(vec![op]).await.map_err(of_address)?;
    let mut values = values.pop().unwrap_or_default();
    if count == 1 {
        values = values[0].take();
        return Ok(json!({"frame": frame, "value": values}).into());
    }
    Ok(json!({"frame": frame, "values": values}).into())
}

/// Turns an error about an address of `read_many` into an error about the tool's argument `address`.
fn of_address(ToolError(text): ToolError) -> ToolError {
    match text.strip_prefix("addresses[").and_then(|rest| rest.split_once(']')) {
        Some((_, rest)) => ToolError(format!("address{rest}")),
        None => ToolError(text),
    }
}

/// The addresses of `count` numbers in a row.
fn addresses(address: &str, kind: Option<&str>, count: u32) -> Vec<String> {
    let size = match kind {
        Some("u16" | "i16") => 2,
        Some("u32" | "i32") => 4,
        _ => 1,
    };
    let number = number(address);
    // Without a type, the elements have the size of the symbol's type.
    let element = if kind.is_none() { element(address) } else { None };
    // Without an index, the server reads an array in a structure, such as `party[1].moves`, as one u8.
    let needs_index = count > 1 && address.contains('.') && !address.ends_with(']');
    (0..count)
        .map(|index| match (number, element) {
            (Some(number), _) => number.wrapping_add(index * size).to_string(),
            (None, Some((name, first))) if index > 0 || needs_index => {
                format!("{name}[{}]", first.saturating_add(index))
            }
            (None, _) if index == 0 => address.to_owned(),
            (None, _) => format!("{address}+{}", index * size),
        })
        .collect()
}

/// The name and the index of an address such as `presses[3]` or `party[1].moves[3]`. If an address has no index, as in
/// `presses`, its index is 0.
fn element(address: &str) -> Option<(&str, u32)> {
    let (name, index) = match address.strip_suffix(']') {
        Some(rest) => {
            let (name, index) = rest.rsplit_once('[')?;
            (name, number(index.trim())?)
        }
        None => (address, 0),
    };
    let is_name = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    // `u16[0x02000038]` is an address that is read from memory, and not an element.
    if is_name && !TYPES.contains(&name) && !has_offset(name) { Some((name, index)) } else { None }
}

/// Whether an address has a `+` or a `-` outside of brackets, such as `score+2`.
fn has_offset(address: &str) -> bool {
    let mut depth = 0;
    address.chars().any(|letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && matches!(letter, '+' | '-')
    })
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')),
        None => text.parse().ok(),
    }
}

async fn bytes(
    session: &Session,
    address: &str,
    length: u32,
    domain: Option<&str>,
) -> Result<(u32, Vec<u8>), ToolError> {
    let mut op = json!({"op": "read_range", "address": address, "length": length});
    set(&mut op, "domain", domain);
    let (frame, values) = session.batch(vec![op]).await?;
    let text = values.first().and_then(Json::as_str).unwrap_or_default();
    let bytes = STANDARD
        .decode(text)
        .map_err(|error| ToolError(format!("the emulator's bytes cannot be read: {error}")))?;
    Ok((frame, bytes))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    parse_hex_digits(text).filter(|bytes| !bytes.is_empty())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    address: String,
    value: Option<i64>,
    bytes: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    domain: Option<String>,
}

pub(super) async fn write(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let WriteArguments { address, value, bytes, kind, domain } = arguments(given)?;
    let mut params = json!({"address": address});
    match (value, bytes) {
        (Some(value), None) => params["value"] = value.into(),
        (None, Some(bytes)) => {
            if unhex(&bytes).is_none() {
                let message = format!("bytes is {bytes:?}; use two hex digits for each byte, such as 01ff7f");
                return Err(ToolError(message));
            }
            if kind.is_some() {
                let message = "type is given with bytes; leave it out, or give value instead of bytes";
                return Err(ToolError(message.to_owned()));
            }
            params["data"] = bytes.into();
            params["encoding"] = "hex".into();
        }
        _ => return Err(ToolError("give either value or bytes".to_owned())),
    }
    set(&mut params, "type", kind);
    set(&mut params, "domain", domain);
    Ok(session.call("writeMemory", params).await?.into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    action: SearchAction,
    #[serde(rename = "type")]
    kind: Option<String>,
    domain: Option<String>,
    id: Option<u64>,
    is: Option<String>,
    value: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SearchAction {
    Begin,
    Narrow,
    List,
    Undo,
    End,
}

pub(super) async fn search(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    check_uses(
        &given,
        &[
            ("begin", &["type", "domain", "is", "value"]),
            ("narrow", &["id", "is", "value"]),
            ("list", &["id"]),
            ("undo", &["id"]),
            ("end", &["id"]),
        ],
    )?;
    let SearchArguments { action, kind, domain, id, is, value } = arguments(given)?;
    if is.is_none() && value.is_some() {
        return Err(ToolError("`is` is missing; value needs a comparison such as equal".to_owned()));
    }
    let id = match (&action, id) {
        (SearchAction::Begin, _) => 0,
        (_, Some(id)) => id,
        (_, None) => return Err(ToolError("id is missing; begin returns it".to_owned())),
    };
    let mut reply = match action {
        SearchAction::Begin => {
            let mut body = json!({"type": kind.unwrap_or_else(|| "u8".to_owned())});
            if let Some(domain) = domain {
                body["areas"] = json!([{"domain": domain}]);
            }
            let mut reply = session.call("beginSearch", body).await?;
            // A client may send the first comparison together with begin, which saves a call.
            if let Some(is) = is {
                let narrowed = narrow(&session, &reply["id"], is, value).await;
                if narrowed.is_err() {
                    // The client does not get the id, so it could not end the search.
                    let _ = session.call("endSearch", json!({"id": reply["id"]})).await;
                }
                reply = narrowed?;
            }
            reply
        }
        SearchAction::Narrow => {
            let is = is.ok_or_else(|| {
                ToolError("`is` is missing; use a comparison such as equal or increased".to_owned())
            })?;
            narrow(&session, &id.into(), is, value).await?
        }
        SearchAction::List => session.call("searchCandidates", json!({"id": id, "limit": 1})).await?,
        SearchAction::Undo => session.call("undoSearch", json!({"id": id})).await?,
        SearchAction::End => {
            session.call("endSearch", json!({"id": id})).await?;
            return Ok(json!({"ended": true}).into());
        }
    };
    // `searchCandidates` returns the search in a field of its reply; the other methods return only the search.
    if reply.get("search").is_some() {
        reply = reply["search"].take();
    }
    let mut json = json!({"id": reply["id"], "count": reply["count"], "frame": reply["frame"]});
    if reply["count"].as_u64().is_some_and(|count| count <= MAX_LISTED as u64) {
        let list = session.call("searchCandidates", json!({"id": reply["id"], "limit": MAX_LISTED})).await?;
        json["candidates"] = listed(&list, "candidates", &["watch", "value", "symbol"]);
    }
    Ok(json.into())
}

async fn narrow(session: &Session, id: &Json, is: String, value: Option<i64>) -> Result<Json, ToolError> {
    let mut body = json!({"id": id, "is": is});
    set(&mut body, "value", value);
    session.call("narrowSearch", body).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SymbolArguments {
    #[serde(default)]
    contains: String,
}

pub(super) async fn symbols(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let SymbolArguments { contains } = arguments(given)?;
    let found = session.call("symbols", json!({"contains": contains})).await?;
    let list = |field: &str| found[field].as_array().map(Vec::as_slice).unwrap_or_default();
    // Structures and pointers come first: there are few of them, and people have described them in memory maps.
    let all: Vec<&Json> = list("variables").iter().chain(list("symbols")).collect();
    let left_out = all.len().saturating_sub(MAX_LISTED);
    let listed: Json = all.into_iter().take(MAX_LISTED).map(described).collect();
    let mut json = json!({"symbols": listed});
    // The server does not count the symbols after the last one that it lists.
    if found["more"] == true {
        json["left_out"] = format!("more than {left_out}").into();
    } else if left_out > 0 {
        json["left_out"] = left_out.into();
    }
    if json.get("left_out").is_some() {
        json["hint"] = "use contains".into();
    }
    Ok(json.into())
}

/// Describes a symbol or a variable in one line, such as `presses u8[10] 0x02000060` or
/// `party monster[3] u32[scratch] + 4; .hp u16; .level u8`.
fn described(named: &Json) -> String {
    let mut text = name_and_type(named);
    match named["pointer"].as_str() {
        Some(pointer) => text += &format!(" {pointer}"),
        None => text += &format!(" {:#010x}", named["address"].as_u64().unwrap_or_default()),
    }
    let doc = |of: &Json| of["doc"].as_str().map(|doc| format!(" {doc}")).unwrap_or_default();
    text += &doc(named);
    for field in named["fields"].as_array().into_iter().flatten() {
        text += &format!("; .{}{}", name_and_type(field), doc(field));
    }
    text
}

fn name_and_type(named: &Json) -> String {
    let mut text = named["name"].as_str().unwrap_or_default().to_owned();
    if let Some(kind) = named["type"].as_str() {
        text += &format!(" {kind}");
    }
    if let Some(count @ 2..) = named["count"].as_u64() {
        text += &format!("[{count}]");
    }
    text
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextArguments {
    address: Option<String>,
    length: Option<u32>,
    find: Option<String>,
    domain: Option<String>,
    table: Option<BTreeMap<String, String>>,
}

/// A game's encoding of text: which bytes stand for which text.
struct CharacterTable(Vec<(Vec<u8>, String)>);

impl CharacterTable {
    fn new(table: Option<BTreeMap<String, String>>) -> Result<CharacterTable, ToolError> {
        let Some(table) = table else {
            let ascii = (0x20..0x7f_u8).map(|byte| (vec![byte], char::from(byte).to_string()));
            let ends = [(vec![0], String::new()), (vec![b'\n'], "\n".to_owned())];
            return Ok(CharacterTable(ascii.chain(ends).collect()));
        };
        let mut entries = Vec::with_capacity(table.len());
        for (bytes, text) in table {
            let bytes = unhex(&bytes).ok_or_else(|| {
                ToolError(format!("table: {bytes:?} is not hex; use one or more bytes, such as \"BB\""))
            })?;
            entries.push((bytes, text));
        }
        // Longer sequences of bytes come first, so that they are preferred.
        entries.sort_by_key(|(bytes, _)| std::cmp::Reverse(bytes.len()));
        Ok(CharacterTable(entries))
    }

    /// The text that these bytes stand for, up to a byte that ends the text.
    fn decode(&self, mut bytes: &[u8]) -> String {
        let mut text = String::new();
        while let Some(first) = bytes.first() {
            match self.0.iter().find(|(known, _)| bytes.starts_with(known)) {
                Some((_, part)) if part.is_empty() => break,
                Some((known, part)) => {
                    text += part;
                    bytes = &bytes[known.len()..];
                }
                None => {
                    text += &format!("\\x{first:02x}");
                    bytes = &bytes[1..];
                }
            }
        }
        text
    }

    /// The bytes that stand for a text.
    fn encode(&self, mut text: &str) -> Result<Vec<u8>, ToolError> {
        let mut bytes = Vec::new();
        while let Some(first) = text.chars().next() {
            let fits = |(_, part): &&(Vec<u8>, String)| !part.is_empty() && text.starts_with(part.as_str());
            let Some((known, part)) = self.0.iter().filter(fits).max_by_key(|(_, part)| part.len()) else {
                return Err(ToolError(format!("find: the table has no bytes for {first:?}")));
            };
            bytes.extend(known);
            text = &text[part.len()..];
        }
        Ok(bytes)
    }
}

pub(super) async fn text(session: Arc<Session>, given: Object) -> Result<Reply, ToolError> {
    let TextArguments { address, length, find, domain, table } = arguments(given)?;
    let table = CharacterTable::new(table)?;
    match (address, find) {
        (Some(address), None) => {
            let length = length.unwrap_or(64);
            if !(1..=MAX_COUNT).contains(&length) {
                return Err(ToolError(format!("length is {length}; use 1 to {MAX_COUNT}")));
            }
            let (frame, bytes) = bytes(&session, &address, length, domain.as_deref()).await?;
            Ok(json!({"frame": frame, "text": table.decode(&bytes)}).into())
        }
        (None, Some(find)) => {
            let wanted = table.encode(&find)?;
            if wanted.is_empty() || wanted.len() > MAX_TEXT {
                return Err(ToolError(format!("find has {} bytes; use 1 to {MAX_TEXT}", wanted.len())));
            }
            find_bytes(&session, &wanted, domain.as_deref()).await
        }
        _ => Err(ToolError("give either address, to read, or find".to_owned())),
    }
}

/// Finds bytes in a memory domain, or by default in all work RAM.
async fn find_bytes(session: &Session, wanted: &[u8], domain: Option<&str>) -> Result<Reply, ToolError> {
    let calls = match domain {
        Some(domain) => areas(session, domain, wanted.len() as u32).await?,
        // Without areas, the method `find` searches all work RAM.
        None => vec![json!([])],
    };
    let (mut places, mut total) = (Vec::new(), 0);
    for areas in calls {
        let params =
            json!({"bytes": hex_digits(wanted), "encoding": "hex", "areas": areas, "limit": MAX_FOUND});
        let reply = session.call("find", params).await?;
        total += reply["count"].as_u64().unwrap_or_default();
        // The domains of a Game Boy are banked, so only the server knows the address of a place.
        let found = listed(&reply, "places", &["domain", "offset", "bank", "address", "symbol"]);
        let room = MAX_FOUND - places.len();
        places.extend(found.as_array().into_iter().flatten().take(room).cloned());
    }
    for place in &mut places {
        if let Some(address) = place["address"].as_u64() {
            place["address"] = format!("{address:#010x}").into();
        }
    }
    Ok(json!({"found": places, "total": total}).into())
}

/// The areas of a memory domain for the method `find`, one list of areas for each call. All areas together cover the
/// domain. They overlap, so that `length` bytes that begin in one area and end in the next are found, and only once.
async fn areas(session: &Session, domain: &str, length: u32) -> Result<Vec<Json>, ToolError> {
    let reply = session.call("v1.domains", json!({})).await?;
    let all = reply["domains"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(known) = all.iter().find(|each| each["id"] == domain) else {
        let ids: Vec<&str> = all.iter().filter_map(|each| each["id"].as_str()).collect();
        return Err(ToolError(format!("domain is {domain:?}; use one of {}", ids.join(", "))));
    };
    let size = known["size"].as_u64().and_then(|size| u32::try_from(size).ok()).unwrap_or_default();
    let area =
        |offset: u32| json!([{"domain": domain, "address": offset, "length": CHUNK.min(size - offset)}]);
    let offsets = (0..size).step_by((CHUNK - length + 1) as usize);
    Ok(offsets.filter(|offset| size - offset >= length).map(area).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_reads_and_writes_a_games_own_encoding() {
        let table = [("BB", "A"), ("BC", "B"), ("FD01", "NAME"), ("FF", "")];
        let table = table.map(|(bytes, text)| (bytes.to_owned(), text.to_owned()));
        let table = CharacterTable::new(Some(table.into())).unwrap();
        assert_eq!(table.decode(&[0xbb, 0xfd, 0x01, 0x7a, 0xbc, 0xff, 0xbb]), "ANAME\\x7aB");
        assert_eq!(table.encode("BNAMEA").unwrap(), [0xbc, 0xfd, 0x01, 0xbb]);
        assert!(table.encode("C").unwrap_err().0.contains("'C'"));
    }

    #[test]
    fn bytes_are_hex_digits_without_signs() {
        assert_eq!(unhex("0aff"), Some(vec![10, 255]));
        for wrong in ["", "0", "+f", "0x", "é"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
        assert_eq!((number("0x+10"), number("0x10")), (None, Some(16)));
    }

    #[test]
    fn numbers_in_a_row_have_their_own_addresses() {
        assert_eq!(addresses("0x10", Some("u16"), 2), ["16", "18"]);
        assert_eq!(addresses("presses", None, 2), ["presses", "presses[1]"]);
        assert_eq!(addresses("presses[3]", None, 3), ["presses[3]", "presses[4]", "presses[5]"]);
        assert_eq!(addresses("presses[3]", Some("u16"), 2), ["presses[3]", "presses[3]+2"]);
        assert_eq!(addresses("score+2", None, 2), ["score+2", "score+2+1"]);
        assert_eq!(addresses("score", Some("u16"), 2), ["score", "score+2"]);
        assert_eq!(addresses("u16[0x02000038]", None, 2), ["u16[0x02000038]", "u16[0x02000038]+1"]);
    }

    #[test]
    fn elements_in_structures_and_with_an_index_in_hex_are_not_read_as_bytes() {
        assert_eq!(addresses("cells[0x1]", None, 2), ["cells[0x1]", "cells[2]"]);
        assert_eq!(addresses("party[1].moves[0]", None, 2), ["party[1].moves[0]", "party[1].moves[1]"]);
        assert_eq!(
            addresses("party[i - 1].moves[2]", None, 2),
            ["party[i - 1].moves[2]", "party[i - 1].moves[3]"]
        );
        assert_eq!(addresses("party[1].moves", None, 2), ["party[1].moves[0]", "party[1].moves[1]"]);
        assert_eq!(addresses("party[1].moves", None, 1), ["party[1].moves"]);
        // The server refuses an index of something that is not an array.
        assert_eq!(addresses("party[0].hp", None, 2), ["party[0].hp[0]", "party[0].hp[1]"]);
    }
}
