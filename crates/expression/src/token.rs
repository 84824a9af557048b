//! Splits text into tokens.

use crate::ParseError;

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Number(i64),
    /// A number with a decimal point, such as `0.5`.
    Real(f64),
    /// A name or a word such as `and`.
    Word(String),
    /// A text in quotes.
    Text(String),
    /// An operator, a bracket, a comma or a colon.
    Sign(&'static str),
    End,
}

impl Token {
    /// Its form in messages.
    pub(crate) fn shown(&self) -> String {
        match self {
            Token::Number(number) => format!("`{number}`"),
            Token::Real(number) => format!("`{number:?}`"),
            Token::Word(word) => format!("`{word}`"),
            Token::Text(text) => format!("the text {text:?}"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        }
    }
}

/// All signs. A longer sign comes before the shorter signs that it starts with.
const SIGNS: [&str; 26] = [
    "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "<", ">", "+", "-", "*", "/", "%", "|", "^", "&", "~",
    "!", "(", ")", "[", "]", ",", ":",
];

/// The tokens of `text`, each with its column. The last one is [`Token::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ParseError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let column = |rest: &str| text[..text.len() - rest.len()].chars().count() + 1;
    loop {
        rest = rest.trim_start();
        let at = column(rest);
        let Some(first) = rest.chars().next() else {
            tokens.push((at, Token::End));
            return Ok(tokens);
        };
        let token = match first {
            '0'..='9' => {
                let (word, after) = split_word(rest);
                rest = after;
                number(word).map_err(|message| ParseError::new(at, message))?
            }
            '"' => {
                let (inner, after) = rest[1..].split_once('"').ok_or_else(|| {
                    ParseError::new(at, "the text that begins here has no end; write \" after it")
                })?;
                rest = after;
                Token::Text(inner.to_owned())
            }
            _ if can_start_word(first) => {
                let (word, after) = split_word(rest);
                rest = after;
                Token::Word(word.to_owned())
            }
            _ => {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                let sign = sign.ok_or_else(|| ParseError::new(at, unknown(first)))?;
                rest = &rest[sign.len()..];
                Token::Sign(sign)
            }
        };
        tokens.push((at, token));
    }
}

fn unknown(sign: char) -> String {
    match sign {
        '=' => "`=` means nothing here; write `==` to compare".to_owned(),
        '\'' => "texts are written in double quotes: text[ADDRESS] == \"RED\"".to_owned(),
        '$' | '#' => format!("`{sign}` is not an operator; a hexadecimal number starts with 0x"),
        _ => format!("{sign:?} is not an operator; use numbers, names and operators"),
    }
}

/// Whether a word may start with this character. Names in symbol files contain dots and `@`, too.
fn can_start_word(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '_' | '.' | '@')
}

/// Splits off the word at the start of `text`. After its first character, a word can also contain `$`.
fn split_word(text: &str) -> (&str, &str) {
    let is_within = |sign: char| can_start_word(sign) || sign == '$';
    text.split_at(text.find(|sign| !is_within(sign)).unwrap_or(text.len()))
}

fn number(word: &str) -> Result<Token, String> {
    let plain = word.replace('_', "").to_ascii_lowercase();
    let (digits, radix) = match (plain.strip_prefix("0x"), plain.strip_prefix("0b")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 2),
        _ => (plain.as_str(), 10),
    };
    if let Some((whole, fraction)) = plain.split_once('.') {
        let is_decimal =
            |digits: &str| !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit());
        if is_decimal(whole) && is_decimal(fraction) {
            return match plain.parse::<f64>() {
                Ok(real) if real.is_finite() => Ok(Token::Real(real)),
                _ => Err(format!("`{word}` is too large; use numbers up to {:e}", f64::MAX)),
            };
        }
        return Err(format!("`{word}` is not a number; write for example 0.5"));
    }
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(format!("`{word}` is not a number; write for example 10, 0x0a or 0b1010"));
    }
    i64::from_str_radix(digits, radix)
        .map(Token::Number)
        .map_err(|_| format!("`{word}` is too large; use numbers up to {}", i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Vec<Token> {
        tokens(text).unwrap().into_iter().map(|(_, token)| token).collect()
    }

    #[test]
    fn numbers_have_three_radices() {
        for (text, number) in [("10", 10), ("0x0A", 10), ("0b1010", 10), ("1_000", 1000), ("0X_ff", 255)] {
            assert_eq!(only(text), [Token::Number(number), Token::End], "{text}");
        }
        assert_eq!(only("0.5"), [Token::Real(0.5), Token::End]);
        for text in ["0x", "0b2", "12a", "0xg", "1.", "1.2.3", "9223372036854775808"] {
            assert!(tokens(text).is_err(), "{text}");
        }
        let error = tokens(&format!("1{}.0", "0".repeat(400))).unwrap_err();
        assert!(error.message.contains("too large"), "{error}");
    }

    #[test]
    fn the_longest_sign_is_taken_and_columns_count_characters() {
        let columns = tokens("é<=  b>>1").unwrap();
        let expected = [
            (1, Token::Word("é".into())),
            (2, Token::Sign("<=")),
            (6, Token::Word("b".into())),
            (7, Token::Sign(">>")),
            (9, Token::Number(1)),
            (10, Token::End),
        ];
        assert_eq!(columns, expected);
    }

    #[test]
    fn errors_name_the_character_and_its_column() {
        for (text, column, part) in
            [("a = 1", 3, "=="), ("a == 'x'", 6, "texts"), ("$c000", 1, "0x"), ("a ? b", 3, "'?'")]
        {
            let error = tokens(text).unwrap_err();
            assert_eq!(error.column, column, "{text}");
            assert!(error.message.contains(part), "{error}");
        }
    }
}
