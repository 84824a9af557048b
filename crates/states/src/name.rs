use std::fmt;
use std::str::FromStr;

/// The name of a snapshot or a recording. It is part of the file's name and is valid on every operating system.
///
/// A name has 1 to 64 characters: letters (a to z and A to Z), digits, `-`, `_` and `.`. It begins with a letter or
/// digit and does not end with `.`. Two kinds of names are not accepted: those that Windows reserves for devices, such
/// as `con` and `con.txt`, and those that a path of the server uses, such as `diff`. Names that differ only in letter
/// case are equal, as they are for the file systems of macOS and Windows.
#[derive(Debug, Clone)]
pub struct Name(String);

/// A text that is not a [`Name`], cut after 65 characters, and why it is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be a name: {1}")]
pub struct NameError(pub String, pub &'static str);

const LONGEST: usize = 64;
const ACCEPTED: &str =
    "use 1 to 64 of a-z, A-Z, 0-9, '-', '_' and '.'; begin with a letter or digit, and do not end with '.'";

/// Names that would conflict with a path of the server, such as `/v1/snapshots/diff`.
const ROUTES: [&str; 1] = ["diff"];

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        let refused = |why| Err(NameError(text.chars().take(LONGEST + 1).collect(), why));
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let bytes = text.as_bytes();
        if bytes.len() > LONGEST
            || !bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            || !bytes.iter().copied().all(inner)
            || bytes.last() == Some(&b'.')
        {
            return refused(ACCEPTED);
        }
        let stem = text.split('.').next().unwrap_or_default();
        if is_device(stem) {
            return refused("Windows reserves it for a device");
        }
        if ROUTES.iter().any(|route| text.eq_ignore_ascii_case(route)) {
            return refused("a path of the server uses it");
        }
        Ok(Name(text.to_owned()))
    }
}

/// Whether Windows uses this name for a device, with any extension.
fn is_device(stem: &str) -> bool {
    let lower = stem.to_ascii_lowercase();
    let numbered =
        matches!(lower.as_bytes(), [b'c', b'o', b'm', b'0'..=b'9'] | [b'l', b'p', b't', b'0'..=b'9']);
    numbered || matches!(lower.as_str(), "con" | "prn" | "aux" | "nul")
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for Name {}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_valid_on_every_system_are_accepted() {
        for text in ["a", "0", "before-boss_2.v1", "A.b", "con1", "console", &"x".repeat(64)] {
            assert_eq!(text.parse::<Name>().expect(text).as_str(), text);
        }
        assert_eq!("Boss".parse::<Name>(), "bOSS".parse());
    }

    #[test]
    fn other_names_are_refused() {
        let long = "x".repeat(65);
        for text in [
            "", ".", "..", ".a", "-a", "a.", "a/b", "a\\b", "../a", "a b", "ä", "a\0", "a\n", "CON",
            "nul.txt", "COM1", "lpt9.a", "diff", "Diff", &long,
        ] {
            let error = text.parse::<Name>().expect_err(text);
            assert!(error.to_string().contains("cannot be a name"), "{error}");
        }
    }
}
