//! The secrets that callers send, the files that contain them, and limits on wrong ones.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use framewire_protocol::hex::hex_digits;
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::{Choice, ConstantTimeEq};

use super::caller::Rights;
use crate::transport::tls::check_owner_only;

/// The number of random bytes in a token that [`Token::random`] makes.
const RANDOM: usize = 32;
/// Accepted lengths of a token. The shortest holds 128 bits even if it is written in hex.
const SHORTEST: usize = 32;
const LONGEST: usize = 512;
/// How many bytes of a token file are read: more than the longest token with any white space that an editor may leave
/// after it.
const LARGEST_FILE: u64 = 4096;

/// A secret that callers send as `Authorization: Bearer …`.
#[derive(Clone)]
pub struct Token(Box<str>);

/// Why a token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {}", .0.display())]
    Unreadable(PathBuf, #[source] std::io::Error),
    /// The file's permissions let other users read or change the token.
    #[error(
        "other users can read or change the token file {} (mode {mode:03o}); type: chmod 600 {}", path.display(), path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file does not contain a token.
    #[error("the token file {}: {reason}; `framewire token FILE` makes a good one", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The full and the read-only token are the same, so one of them has the wrong rights.
    #[error("the token and the read-only token are the same; put a different token into each file")]
    Same,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl Token {
    /// A token that nobody can guess: 64 hex digits.
    ///
    /// # Errors
    /// [`TokenError::NoRandomness`].
    pub fn random() -> Result<Token, TokenError> {
        Ok(Token(hex_digits(&random::<RANDOM>()?).into()))
    }

    /// Reads the token from a file that holds it and nothing else. Only the file's owner may have access to it. (On
    /// systems other than Unix, this is not checked.)
    ///
    /// # Errors
    /// If the file cannot be read, others have access to it, or it holds no token.
    pub fn from_file(path: &Path) -> Result<Token, TokenError> {
        let unreadable = |error| TokenError::Unreadable(path.to_owned(), error);
        let file = File::open(path).map_err(unreadable)?;
        check_owner_only(&file.metadata().map_err(unreadable)?)
            .map_err(|mode| TokenError::Exposed { path: path.to_owned(), mode })?;
        let mut text = String::new();
        file.take(LARGEST_FILE).read_to_string(&mut text).map_err(unreadable)?;
        Token::parse(&text).map_err(|reason| TokenError::Unfit { path: path.to_owned(), reason })
    }

    /// Reads a token. It may contain only the characters that RFC 6750 allows in the header.
    fn parse(text: &str) -> Result<Token, String> {
        let token = text.trim();
        let characters = token.chars().count();
        if !(SHORTEST..=LONGEST).contains(&characters) {
            return Err(format!(
                "it has {characters} characters; a token has {SHORTEST} to {LONGEST} characters that nobody can guess"
            ));
        }
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
        match token.bytes().find(|byte| !fits(byte)) {
            None => Ok(Token(token.into())),
            Some(_) => Err("a token is one word of letters, digits and - . _ ~ + / =".to_owned()),
        }
    }

    /// The secret text of the token.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in constant time. The lengths are not secret.
    fn is(&self, shown: &[u8]) -> Choice {
        self.0.as_bytes().ct_eq(shown)
    }
}

/// Hides the secret from logs.
impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// The tokens of a server: at least one.
#[derive(Debug, Clone)]
pub struct Tokens {
    full: Option<Token>,
    read: Option<Token>,
}

impl Tokens {
    /// The tokens of a server: one for full rights, and a read-only one. Returns `None` if there is neither.
    ///
    /// # Errors
    /// [`TokenError::Same`].
    pub fn new(full: Option<Token>, read: Option<Token>) -> Result<Option<Tokens>, TokenError> {
        match (&full, &read) {
            (None, None) => Ok(None),
            (Some(full), Some(read)) if full.is(read.0.as_bytes()).into() => Err(TokenError::Same),
            _ => Ok(Some(Tokens { full, read })),
        }
    }

    /// The rights of a caller that sends this token; `None` if the token is wrong.
    pub(crate) fn rights(&self, shown: &[u8]) -> Option<Rights> {
        let is = |token: &Option<Token>| token.as_ref().map_or(Choice::from(0), |token| token.is(shown));
        // Both are always compared, so the time does not depend on the result of the first comparison.
        let (full, read) = (is(&self.full), is(&self.read));
        match (full.into(), read.into()) {
            (true, _) => Some(Rights::Full),
            (false, true) => Some(Rights::Read),
            (false, false) => None,
        }
    }
}

/// Random bytes that nobody can guess.
pub(crate) fn random<const SIZE: usize>() -> Result<[u8; SIZE], TokenError> {
    let mut bytes = [0; SIZE];
    SystemRandom::new().fill(&mut bytes).map_err(|_| TokenError::NoRandomness)?;
    Ok(bytes)
}

/// The number of wrong tokens that an address may send without waiting.
const BURST: u32 = 10;
/// The time after which an address may send one more wrong token.
const REFILL: Duration = Duration::from_secs(6);
/// The largest number of addresses that are remembered.
const ADDRESSES: usize = 4096;

/// Counts wrong tokens by address. After [`BURST`] of them, a caller must wait before it sends another. Wrong tokens
/// that it sends without waiting are neither counted nor logged. Even without this limit, tokens are too long to be
/// guessed.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// For each address, the time at which its wrong tokens no longer count.
    expiries: Mutex<HashMap<IpAddr, Instant>>,
}

impl Attempts {
    /// How long a caller from this address must wait until it may send another wrong token. `None` if it may send one
    /// now.
    pub(crate) fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let expiry = *self.expiries.lock().get(&address)?;
        let left = expiry.saturating_duration_since(now);
        left.checked_sub(REFILL * (BURST - 1)).filter(|wait| !wait.is_zero())
    }

    pub(crate) fn failed(&self, address: IpAddr, now: Instant) {
        let mut expiries = self.expiries.lock();
        if expiries.len() >= ADDRESSES && !expiries.contains_key(&address) {
            expiries.retain(|_, expiry| *expiry > now);
        }
        // If there is still no room, this wrong token is not counted. An attacker with this many addresses still has to
        // guess a token of at least 32 characters.
        if expiries.len() >= ADDRESSES && !expiries.contains_key(&address) {
            return;
        }
        let expiry = expiries.entry(address).or_insert(now);
        *expiry = (*expiry).max(now) + REFILL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "0123456789abcdef0123456789abcdef";
    const READ: &str = "0123456789abcdef0123456789abcdeF";

    fn token(text: &str) -> Token {
        Token::parse(text).unwrap()
    }

    #[test]
    fn only_the_exact_token_gives_its_rights() {
        let tokens = Tokens::new(Some(token(FULL)), Some(token(READ))).unwrap().unwrap();
        assert_eq!(tokens.rights(FULL.as_bytes()), Some(Rights::Full));
        assert_eq!(tokens.rights(READ.as_bytes()), Some(Rights::Read));
        for wrong in
            ["", "0", &FULL[1..], &format!("{FULL}0"), &FULL.to_uppercase(), &format!("{FULL}{READ}")]
        {
            assert_eq!(tokens.rights(wrong.as_bytes()), None, "{wrong}");
        }
        let only_read = Tokens::new(None, Some(token(READ))).unwrap().unwrap();
        assert_eq!((only_read.rights(FULL.as_bytes()), only_read.rights(b"")), (None, None));
    }

    #[test]
    fn a_token_is_one_long_word() {
        assert_eq!(token(&format!("  {FULL}\r\n")).reveal(), FULL);
        for wrong in
            ["", "short", &format!("{FULL} {FULL}"), &format!("{FULL}\u{e9}"), &"x".repeat(LONGEST + 1)]
        {
            assert!(Token::parse(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(Tokens::new(Some(token(FULL)), Some(token(FULL))), Err(TokenError::Same)));
        assert!(Tokens::new(None, None).unwrap().is_none());
    }

    #[test]
    fn the_error_for_a_short_token_counts_characters_and_not_bytes() {
        let error = Token::parse(&"\u{e9}".repeat(20)).unwrap_err();
        assert!(error.contains("it has 20 characters"), "{error}");
    }

    #[test]
    fn random_tokens_differ_and_stay_out_of_logs() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().len(), 2 * RANDOM);
        assert!(Token::parse(one.reveal()).is_ok());
        assert!(!format!("{one:?}").contains(one.reveal()));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), FULL).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o666] {
            file.as_file().set_permissions(PermissionsExt::from_mode(mode)).unwrap();
            let error = Token::from_file(file.path()).unwrap_err().to_string();
            assert!(error.contains("chmod 600") && error.contains(&format!("{mode:o}")), "{error}");
        }
        for mode in [0o600, 0o400] {
            file.as_file().set_permissions(PermissionsExt::from_mode(mode)).unwrap();
            assert!(Token::from_file(file.path()).is_ok(), "{mode:o}");
        }
        assert!(Token::from_file(Path::new("/no/such/file")).is_err());
        assert!(Token::from_file(Path::new("/")).is_err());
    }

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn the_eleventh_wrong_token_has_to_wait() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(attempts.wait(address(1), start), None);
            attempts.failed(address(1), start);
        }
        assert_eq!(attempts.wait(address(1), start), Some(REFILL));
        assert_eq!(attempts.wait(address(2), start), None, "other addresses do not have to wait");
        assert_eq!(attempts.wait(address(1), start + REFILL), None);
        attempts.failed(address(1), start + REFILL);
        assert_eq!(attempts.wait(address(1), start + REFILL), Some(REFILL));
        assert_eq!(attempts.wait(address(1), start + REFILL * 100), None);
    }

    #[test]
    fn the_number_of_remembered_addresses_is_bounded() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for number in 0..2 * ADDRESSES as u32 {
            attempts.failed(IpAddr::V4(number.into()), start);
        }
        assert_eq!(attempts.expiries.lock().len(), ADDRESSES);
        attempts.failed(address(1), start + REFILL * 2);
        assert_eq!(attempts.expiries.lock().len(), 1);
    }
}
