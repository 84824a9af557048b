use std::fmt;

use crate::sys;

/// The version of the libmgba in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// 0 in "0.10.1".
    pub major: u32,
    /// 10 in "0.10.1".
    pub minor: u32,
    /// 1 in "0.10.1"; 0 if the version has no third number.
    pub patch: u32,
    /// The library's own text, such as "0.10.1" or "0.11-7906-1a2b3c4".
    pub string: String,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.string)
    }
}

/// How the libmgba of this program was built: its source and its optimisation, or that it is the installed library.
pub const BUILD: &str = env!("FRAMEWIRE_LIBMGBA_BUILD");

/// The version of the libmgba that this process is linked with.
pub fn version() -> Version {
    parse(sys::version_string())
}

fn parse(string: String) -> Version {
    // A development build is "0.11-COUNT-COMMIT": the numbers end at the dash.
    let release = string.split('-').next().unwrap_or_default();
    let mut numbers = release.split('.').map(|n| n.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    Version { major: next(), minor: next(), patch: next(), string }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(string: &str) -> (u32, u32, u32) {
        let v = parse(string.to_owned());
        (v.major, v.minor, v.patch)
    }

    #[test]
    fn versions_of_releases_and_development_builds_are_parsed() {
        assert_eq!(numbers("0.10.1"), (0, 10, 1));
        assert_eq!(numbers("0.11-7906-1a2b3c4"), (0, 11, 0));
        assert_eq!(numbers("nonsense"), (0, 0, 0));
    }
}
