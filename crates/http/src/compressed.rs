//! Compresses replies with gzip, for clients that accept gzip.

use std::io::Write;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Whether a client accepts gzip. `*` stands for each coding that the client does not name.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let weight_of = |name: &str| {
        let texts = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        texts.flat_map(|text| text.split(',')).find_map(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            parts.next().filter(|coding| coding.eq_ignore_ascii_case(name))?;
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            Some(weight.and_then(|weight| weight.parse::<f32>().ok()).unwrap_or(1.0))
        })
    };
    weight_of("gzip").or_else(|| weight_of("*")).is_some_and(|weight| weight > 0.0)
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_as_rfc_9110_says() {
        for (text, accepted) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("gzip;Q=0", false),
            ("gzip;q=0, *", false),
            ("*, gzip;q=0", false),
            ("*;q=0, gzip", true),
            ("br", false),
            ("x-gzip2", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, text.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), accepted, "{text}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
