//! Decides who may send which request.
//!
//! - `pages`: which web pages may send requests at all;
//! - `token`: the secrets that callers show, and wrong ones; `session`: the browsers that have logged in;
//! - `caller`: the sender of a request; `gate` identifies it and lets the request in; `login` is the page for people;
//! - `permit`: what a caller may have an emulator do, and where it may name files.

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

/// Who may use a server, and for what. By default programs and its own pages, on this machine only.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Which web pages may send requests.
    pub pages: Pages,
    /// The tokens. Every caller must send one of them. Without tokens, only callers on this machine are accepted.
    pub tokens: Option<Tokens>,
    /// The folder in which callers may name files. Without one, callers on this machine may name any file, and others
    /// none.
    pub files: Option<Files>,
}
