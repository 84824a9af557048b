//! Decides who may send which request.
//!
//! - `pages`: which web pages may send requests at all;
//! - `token`: the secrets that callers send, and the limit on wrong ones; `session`: the browsers that have logged in;
//! - `caller`: the sender of a request; `gate` identifies the sender, and accepts or refuses the request; `login` is
//!   the login page;
//! - `permit`: which operations a caller may use, and which files it may name.

pub(crate) mod caller;
pub(crate) mod gate;
pub(crate) mod login;
pub(crate) mod pages;
pub(crate) mod permit;
mod session;
pub(crate) mod token;

pub use gate::CHALLENGE;
pub use pages::{PageError, Pages};
pub use permit::{Files, FilesError};
pub use token::{Token, TokenError, Tokens};

/// The rules of access to a server. By default, programs and the server's own pages can use it, on this machine only.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The web pages that may send requests.
    pub pages: Pages,
    /// The tokens. Every caller must send one of them, or the cookie of a login. Without tokens, only callers on this
    /// machine are accepted.
    pub tokens: Option<Tokens>,
    /// The folder in which callers may name files. Without a folder, callers on this machine may name any file, and
    /// other callers may not name files.
    pub files: Option<Files>,
    /// Whether callers may run Lua code in emulators. The code has all rights of the emulator's process, so read-only
    /// callers may never run it.
    pub scripts: bool,
}
