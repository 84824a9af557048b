//! Reads the bodies of requests to mGBA-http's routes.

use axum::http::StatusCode;
use bytes::Bytes;
use framewire_protocol::marker::parse_hex_pairs;

use crate::failure::Failure;

/// Texts with more bytes than this are read on another thread, so that they do not delay other requests.
const LONG: usize = 64 * 1024;

/// Reads a savestate as `savestatebuffer` writes it: hex pairs joined by commas. Brackets around them are optional, and
/// white space is allowed anywhere.
pub(super) async fn savestate(body: Bytes) -> Result<Vec<u8>, Failure> {
    if body.len() <= LONG {
        return parse(&body);
    }
    let parsed = tokio::task::spawn_blocking(move || parse(&body)).await;
    parsed.unwrap_or_else(|error| Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())))
}

fn parse(body: &[u8]) -> Result<Vec<u8>, Failure> {
    let refusal = |problem: &str| {
        Failure::bad_request(format!(
            "the body {problem}: send a savestate as hex pairs, such as [d3,00,ea], as POST /core/savestatebuffer \
             gives it"
        ))
    };
    let text = std::str::from_utf8(body).map_err(|_| refusal("is not text"))?.trim();
    let pairs = match (text.strip_prefix('['), text.strip_suffix(']')) {
        (Some(_), Some(_)) if text.len() >= 2 => &text[1..text.len() - 1],
        (None, None) => text,
        _ => return Err(refusal("has a bracket at one end only")),
    };
    if pairs.trim().is_empty() {
        return Err(refusal("is empty"));
    }
    parse_hex_pairs(pairs).ok_or_else(|| refusal("holds something other than hex pairs joined by commas"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn savestates_are_accepted_in_all_their_spellings() {
        for text in ["[d3,00,ea]", "d3,00,ea", " [ D3 , 0 0,\r\n\tea ]\n", "[d3,0,ea]"] {
            assert_eq!(parse(text.as_bytes()).unwrap(), [0xd3, 0x00, 0xea], "{text:?}");
        }
    }

    #[test]
    fn malformed_savestates_are_refused() {
        for text in [
            "", " ", "[]", "[ ]", "[", "]", "[d3", "d3]", "[d3,]", "[d3,,00]", "[d3;00]", "[g0]", "[d300]",
            "[0x1]",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(parse(b"[\xff]").is_err());
    }
}
