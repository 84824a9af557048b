//! Whole numbers as text, in the two forms that mGBA-http's clients use.

/// Reads a whole number in the forms that Lua's `tonumber` accepts: decimal, or hex after `0x` or `0X`. A sign and
/// surrounding white space are allowed. A decimal number can have a fraction or an exponent if its value is whole
/// (`16.0`, `1e3`). A number beyond the range of `i64` becomes `i64::MAX` or, if it is negative, `-i64::MAX`. But a
/// number that is infinite as a float, such as `1e400`, is refused.
pub fn lua_integer(text: &str) -> Option<i64> {
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => saturating(hex, 16)?,
        None => saturating(digits, 10).or_else(|| whole_float(digits))?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// Reads a whole number as .NET's `int.Parse` does: decimal digits. A sign and surrounding white space are allowed. A
/// number beyond the range of `i64` is treated as in [`lua_integer`].
pub fn decimal_integer(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.strip_prefix('-') {
        Some(digits) => saturating(digits, 10).map(|magnitude| -magnitude),
        None => saturating(text.strip_prefix('+').unwrap_or(text), 10),
    }
}

/// Reads digits only. A number that is too large becomes `i64::MAX`, which is outside of every accepted range.
fn saturating(digits: &str, radix: u32) -> Option<i64> {
    if digits.is_empty() {
        return None;
    }
    digits.chars().try_fold(0i64, |number, digit| {
        let digit = digit.to_digit(radix)?;
        Some(number.saturating_mul(i64::from(radix)).saturating_add(i64::from(digit)))
    })
}

/// Reads a decimal float that is a whole number. Unlike Rust, Lua does not accept `inf` and `nan`.
fn whole_float(text: &str) -> Option<i64> {
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !numeric || text.starts_with(['+', '-']) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    if number.fract() == 0.0 { Some(number as i64) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lua_integer_reads_decimal_hex_and_whole_floats() {
        let cases = [
            ("0", Some(0)),
            ("33554688", Some(0x0200_0100)),
            ("0x02000100", Some(0x0200_0100)),
            ("0X02000aBc", Some(0x0200_0ABC)),
            ("  0x10\t", Some(16)),
            ("010", Some(10)),
            ("-1", Some(-1)),
            ("-0x10", Some(-16)),
            ("+7", Some(7)),
            ("1e3", Some(1000)),
            ("16.0", Some(16)),
            ("4294967296", Some(1 << 32)),
            ("0xFFFFFFFFFFFFFFFFFF", Some(i64::MAX)),
            ("99999999999999999999", Some(i64::MAX)),
            ("16.5", None),
            ("", None),
            (" ", None),
            ("0x", None),
            ("x10", None),
            ("10h", None),
            ("0b1", None),
            ("--1", None),
            ("-+1", None),
            ("1 0", None),
            ("1_0", None),
            ("inf", None),
            ("nan", None),
            ("1e", None),
            ("wram", None),
            ("１", None),
        ];
        for (text, number) in cases {
            assert_eq!(lua_integer(text), number, "{text:?}");
        }
    }

    #[test]
    fn decimal_integer_reads_only_decimal_digits() {
        let cases = [
            ("0", Some(0)),
            (" 12 ", Some(12)),
            ("+5", Some(5)),
            ("-2147483648", Some(-2_147_483_648)),
            ("99999999999999999999", Some(i64::MAX)),
            ("0x10", None),
            ("1e3", None),
            ("1.0", None),
            ("", None),
            ("-", None),
            ("+-1", None),
            ("abc", None),
        ];
        for (text, number) in cases {
            assert_eq!(decimal_integer(text), number, "{text:?}");
        }
    }
}
