//! Bytes as text: pairs of hexadecimal digits joined by commas, as mGBA-http writes them.

/// Bytes as mGBA-http writes them: `d3,00,ea`.
pub fn hex_pairs(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 3);
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Reads the text that [`hex_pairs`] writes, in either letter case, with white space anywhere. A single digit is also
/// accepted instead of a pair. Returns `None` if the text has another form.
pub fn parse_hex_pairs(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 3 + 1);
    let mut pair = None;
    let mut digits = 0;
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        if byte == b',' {
            bytes.push(pair.take()?);
            digits = 0;
            continue;
        }
        let digit = char::from(byte).to_digit(16)? as u8;
        digits += 1;
        if digits > 2 {
            return None;
        }
        pair = Some(pair.unwrap_or(0) << 4 | digit);
    }
    match pair {
        Some(last) => bytes.push(last),
        // Empty text means no bytes. A text that ends with a comma is not accepted.
        None if bytes.is_empty() => {}
        None => return None,
    }
    Some(bytes)
}
