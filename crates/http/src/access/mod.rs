//! Who may ask for what.
//!
//! - `pages`: which web pages may ask at all;
//! - `token`: the secrets that callers show, `session`: the browsers that have logged in by one, `attempts`: those
//!   who guess;
//! - `caller`: who asks; `gate` finds that out and lets the request in; `login` is the page for people;
//! - `permit`: what a caller may have an emulator do, and `files`: where it may name files;
//! - `shield`: what replies tell browsers to beware of.

mod attempts;
mod caller;
mod files;
mod gate;
mod login;
mod pages;
mod permit;
mod session;
mod shield;
mod token;

pub(crate) use caller::{Caller, Owner, Peer, Reach, Rights};
pub use files::{Files, FilesError};
pub use gate::CHALLENGE;
pub(crate) use gate::{Audience, Entry, Gate, Visit};
pub(crate) use login::{LOGIN, LOGOUT, page, wants_page};
pub(crate) use pages::tell_page;
pub use pages::{PageError, Pages};
pub(crate) use permit::Permit;
pub(crate) use shield::shield;
pub(crate) use token::private_to_owner;
pub use token::{Token, TokenError, Tokens};

/// Whom a server lets in, and how far. By default programs and its own pages, on this machine only.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Which web pages may ask.
    pub pages: Pages,
    /// What every caller has to show one of. Without tokens only callers on this machine are let in.
    pub tokens: Option<Tokens>,
    /// The folder in which callers may name files. Without one, callers on this machine may name any file, and others
    /// none.
    pub files: Option<Files>,
}
