//! Bytes as text: pairs of hexadecimal digits, either joined by commas, as mGBA-http writes them, or without
//! separators.

/// The two digits of a byte.
fn pair(byte: u8) -> [char; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]))
}

/// Two digits for each byte, in lower case: `d300ea`.
pub fn hex_digits(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| pair(*byte)).collect()
}

/// Reads two digits for each byte, in either letter case. Returns `None` if the text has another form.
pub fn parse_hex_digits(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Bytes as mGBA-http writes them: `d3,00,ea`.
pub fn hex_pairs(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 3);
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.extend(pair(*byte));
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
