//! Text with placeholders for the payload.

/// The placeholder for the payload.
pub const PLACE: &str = "{}";
/// The text that stands for `{}` itself.
const ESCAPED: &str = "{{}}";

/// Bytes with placeholders for the payload, `{}`. A literal `{}` is written `{{}}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// The bytes before the first placeholder.
    first: Vec<u8>,
    /// The bytes after each placeholder.
    rest: Vec<Vec<u8>>,
}

impl Template {
    /// Parses a text.
    pub fn new(text: &[u8]) -> Template {
        let mut template = Template::default();
        let mut left = text;
        while let Some(byte) = left.first() {
            if let Some(after) = left.strip_prefix(ESCAPED.as_bytes()) {
                template.last().extend_from_slice(PLACE.as_bytes());
                left = after;
            } else if let Some(after) = left.strip_prefix(PLACE.as_bytes()) {
                template.rest.push(Vec::new());
                left = after;
            } else {
                template.last().push(*byte);
                left = &left[1..];
            }
        }
        template
    }

    fn last(&mut self) -> &mut Vec<u8> {
        self.rest.last_mut().unwrap_or(&mut self.first)
    }

    /// Whether there is a placeholder.
    pub fn has_placeholder(&self) -> bool {
        !self.rest.is_empty()
    }

    /// The length of the text with a payload of this length.
    pub fn len(&self, payload: usize) -> usize {
        self.first.len() + self.rest.iter().map(|part| payload + part.len()).sum::<usize>()
    }

    /// Appends the bytes to `out`, with the payload in place of each placeholder.
    pub fn fill(&self, payload: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.first);
        for part in &self.rest {
            out.extend_from_slice(payload);
            out.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_goes_into_every_place_and_braces_can_be_escaped() {
        for (text, filled) in [
            ("", ""),
            ("plain", "plain"),
            ("/a?b={}", "/a?b=P"),
            ("{}-{}", "P-P"),
            (r#"{"a": {{}}, "b": "{}"}"#, r#"{"a": {}, "b": "P"}"#),
            (r#"{"a": {"b": 1}}"#, r#"{"a": {"b": 1}}"#),
        ] {
            let template = Template::new(text.as_bytes());
            let mut out = Vec::new();
            template.fill(b"P", &mut out);
            assert_eq!(out, filled.as_bytes(), "{text}");
            assert_eq!(template.len(1), filled.len());
            assert_eq!(template.has_placeholder(), filled.contains('P'));
        }
    }
}
