//! Character tables (`.tbl`): which bytes stand for which characters in the texts of a game.

use std::collections::HashMap;

use framewire_protocol::hex::parse_hex_digits;

/// The largest number of bytes of an entry.
const MAX_BYTES: usize = 4;

/// A character table: which bytes stand for which characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextTable {
    /// The text of each entry, by its bytes.
    characters: HashMap<Vec<u8>, String>,
    /// The bytes of each entry, by its text.
    bytes: HashMap<String, Vec<u8>>,
    /// The bytes that end a text.
    ends: Vec<Vec<u8>>,
    /// The number of characters in the longest text of an entry.
    longest: usize,
}

impl TextTable {
    /// Parses a table. It has lines such as `41=A`, `/FF` for the bytes that end a text, and `*FE` for a line break in
    /// a text. Empty lines, and lines that begin with `#`, `;` or `@`, are ignored.
    ///
    /// # Errors
    /// If the table has no entries, or a line is wrong. The error names the line.
    pub fn parse(text: &str) -> Result<TextTable, String> {
        let mut table = TextTable::default();
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim_end_matches('\r');
            if line.is_empty() || line.starts_with(['#', ';', '@']) {
                continue;
            }
            table.add(line).map_err(|problem| format!("line {}: {problem}", index + 1))?;
        }
        if table.characters.is_empty() {
            return Err("there is no line such as 41=A".to_owned());
        }
        Ok(table)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let wrong =
            || format!("{line:?} is not an entry; write BYTES=TEXT such as 41=A, /BYTES or *BYTES in hex");
        if let Some(digits) = line.strip_prefix('/') {
            let digits = digits.split_once('=').map_or(digits, |(digits, _)| digits);
            self.ends.push(hex(digits).ok_or_else(wrong)?);
            return Ok(());
        }
        let (digits, text) = match line.strip_prefix('*') {
            Some(digits) => (digits, "\n"),
            None => line.split_once('=').ok_or_else(wrong)?,
        };
        let bytes = hex(digits).ok_or_else(wrong)?;
        if text.is_empty() {
            return Err(wrong());
        }
        self.longest = self.longest.max(text.chars().count());
        self.bytes.entry(text.to_owned()).or_insert_with(|| bytes.clone());
        self.characters.insert(bytes, text.to_owned());
        Ok(())
    }

    /// The bytes of a text. Where several entries match, the longest one is used.
    ///
    /// # Errors
    /// If a character has no entry. The error names the first such character.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let ends = rest.char_indices().map(|(at, character)| at + character.len_utf8());
            let ends: Vec<usize> = ends.take(self.longest).collect();
            let entry = ends.into_iter().rev().find_map(|end| Some((end, self.bytes.get(&rest[..end])?)));
            let Some((end, entry)) = entry else {
                return Err(format!("{first:?} is not in the character table (.tbl) of this game"));
            };
            bytes.extend_from_slice(entry);
            rest = &rest[end..];
        }
        Ok(bytes)
    }

    /// The text of these bytes, up to the bytes that end a text. A byte without an entry is written in hex, as in
    /// `<3f>`.
    pub fn decode(&self, bytes: &[u8]) -> String {
        let mut text = String::new();
        let mut rest = bytes;
        while !rest.is_empty() && !self.ends.iter().any(|end| rest.starts_with(end)) {
            let length = rest.len().min(MAX_BYTES);
            let entry = (1..=length).rev().find_map(|end| Some((end, self.characters.get(&rest[..end])?)));
            let (used, character) = match entry {
                Some((end, character)) => (end, character.clone()),
                None => (1, format!("<{:02x}>", rest[0])),
            };
            text.push_str(&character);
            rest = &rest[used..];
        }
        text
    }
}

/// Decodes a text in memory: with a character table, or else as UTF-8 up to the first byte that is 0.
pub fn decode_text(table: Option<&TextTable>, bytes: &[u8]) -> String {
    if let Some(table) = table {
        return table.decode(bytes);
    }
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    parse_hex_digits(digits.trim()).filter(|bytes| (1..=MAX_BYTES).contains(&bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_encoded_and_decoded_with_a_table() {
        let table =
            TextTable::parse("# letters\n80=A\r\n81=B\n8200=か\n83=the\n84=t\n00= \n*FE\n/FF\n").unwrap();
        assert_eq!(table.encode("theA t\n"), Ok(vec![0x83, 0x80, 0, 0x84, 0xFE]));
        assert_eq!(table.decode(&[0x82, 0, 0x81, 0x3F, 0xFF, 0x80]), "かB<3f>");
        assert!(table.encode("AC").unwrap_err().contains("'C'"));
    }

    #[test]
    fn errors_name_the_wrong_line() {
        for (text, says) in [
            ("80=A\nxy=B", "line 2"),
            ("8=A", "line 1"),
            ("80", "line 1"),
            ("80=", "line 1"),
            ("/", "line 1"),
            ("8081828384=A", "line 1"),
            ("/FF", "no line such as"),
        ] {
            let message = TextTable::parse(text).expect_err(text);
            assert!(message.contains(says), "{text}: {message}");
        }
    }
}
