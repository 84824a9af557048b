//! Checks of replies.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::target::Failure;

/// The largest file with a body, a list of requests or certificates that is accepted, in bytes.
pub(crate) const MAX_FILE: u64 = 64 << 20;

/// The condition for a reply to count as correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// It is a success (status 200 to 299, in protocols with a status) and equals the payload.
    Echo,
    /// It is a success, with any body.
    Success,
    /// It has this status.
    Status(u16),
    /// It is a success and equals these bytes.
    Equals(Vec<u8>),
    /// It is a success and contains these bytes.
    Contains(Vec<u8>),
    /// It is complete, with any status.
    Nothing,
}

/// Why a text is not a check.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The text does not have a known form.
    #[error(
        "{0:?} is not a check of replies; use echo, status, status=404, equals=TEXT, contains=TEXT or none; with @FILE as \
         TEXT, the text is read from that file"
    )]
    Unknown(String),
    /// The text to search for is empty, so every reply contains it.
    #[error("contains= has no text; every reply would pass; use status or none")]
    Empty,
    /// The file after `@` cannot be read.
    #[error("cannot read {0}")]
    File(String, #[source] std::io::Error),
}

/// The text itself or, after `@`, the content of a file. A relative path starts at `folder`.
///
/// # Errors
/// If the file cannot be read. The error has its path and the reason.
pub fn text_or_file(text: &str, folder: &Path) -> Result<Vec<u8>, (String, std::io::Error)> {
    match text.strip_prefix('@') {
        None => Ok(text.as_bytes().to_vec()),
        Some(name) => {
            let path = folder.join(name);
            framewire_files::read(&path, MAX_FILE).map_err(|error| (path.display().to_string(), error))
        }
    }
}

impl Check {
    /// Parses a check, as users type it. Relative paths of files start at `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Check, CheckError> {
        let unknown = || CheckError::Unknown(text.to_owned());
        let bytes =
            |value| text_or_file(value, folder).map_err(|(path, error)| CheckError::File(path, error));
        match text.split_once('=') {
            None => match text {
                "echo" => Ok(Check::Echo),
                "status" => Ok(Check::Success),
                "none" => Ok(Check::Nothing),
                _ => Err(unknown()),
            },
            Some(("status", status)) => {
                let status = status.parse().ok().filter(|status| (200..600).contains(status));
                status.map(Check::Status).ok_or_else(unknown)
            }
            Some(("equals", value)) => Ok(Check::Equals(bytes(value)?)),
            Some(("contains", value)) => {
                let wanted = bytes(value)?;
                if wanted.is_empty() { Err(CheckError::Empty) } else { Ok(Check::Contains(wanted)) }
            }
            Some(_) => Err(unknown()),
        }
    }

    /// Checks a status.
    ///
    /// # Errors
    /// [`Failure::Status`] if the status is not correct.
    pub fn status(&self, status: u16) -> Result<(), Failure> {
        let correct = match self {
            Check::Nothing => true,
            Check::Status(wanted) => status == *wanted,
            _ => (200..300).contains(&status),
        };
        if correct { Ok(()) } else { Err(Failure::Status(status)) }
    }

    /// Checks the reply to `payload`.
    ///
    /// # Errors
    /// [`Failure::Wrong`] if the reply is not correct.
    pub fn reply(&self, payload: &[u8], reply: &[u8]) -> Result<(), Failure> {
        let correct = match self {
            Check::Echo => reply == payload,
            Check::Equals(wanted) => reply == wanted,
            Check::Contains(wanted) => reply.windows(wanted.len()).any(|window| window == wanted),
            Check::Success | Check::Status(_) | Check::Nothing => true,
        };
        if correct { Ok(()) } else { Err(Failure::Wrong) }
    }
}

impl FromStr for Check {
    type Err = CheckError;

    fn from_str(text: &str) -> Result<Self, CheckError> {
        Check::parse(text, Path::new(""))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Echo => f.write_str("echo"),
            Check::Success => f.write_str("status"),
            Check::Status(status) => write!(f, "status={status}"),
            Check::Equals(wanted) => write!(f, "equals={}", String::from_utf8_lossy(wanted)),
            Check::Contains(wanted) => write!(f, "contains={}", String::from_utf8_lossy(wanted)),
            Check::Nothing => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_accepts_only_matching_replies() {
        let passes = |check: &str, status, reply: &str| {
            let check: Check = check.parse().unwrap();
            assert_eq!(check.to_string().parse::<Check>().unwrap(), check);
            check.status(status).and_then(|()| check.reply(b"payload", reply.as_bytes())).is_ok()
        };
        assert!(
            passes("echo", 200, "payload") && !passes("echo", 200, "x") && !passes("echo", 500, "payload")
        );
        assert!(passes("status", 204, "") && !passes("status", 304, "x"));
        assert!(passes("status=404", 404, "x") && !passes("status=404", 200, "x"));
        assert!(passes("equals=a=b", 200, "a=b") && !passes("equals=a", 200, "a=b"));
        assert!(passes("contains=lo w", 200, "hello world") && !passes("contains=x", 200, "hello"));
        assert!(passes("none", 500, "x"));
    }

    #[test]
    fn texts_that_are_not_checks_are_refused() {
        for text in ["", "yes", "status=x", "status=99", "contains=", "equals=@/nowhere/at/all"] {
            assert!(text.parse::<Check>().is_err(), "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_text_from_a_file_without_an_end_is_refused() {
        let CheckError::File(path, error) = "equals=@/dev/zero".parse::<Check>().unwrap_err() else {
            panic!("the file was used");
        };
        assert_eq!(path, "/dev/zero");
        assert_eq!(error.to_string(), "it is too large; use a file of at most 67108864 bytes");
    }
}
