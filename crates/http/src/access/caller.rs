//! The callers of the server and their rights.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::header::{FORWARDED, VIA};
use axum::http::{Extensions, HeaderMap, HeaderName};

use crate::failure::Failure;
use crate::transport::connection::Peer;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The rights of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rights {
    /// The caller may only read.
    Read,
    /// The caller may read and change everything.
    Full,
}

/// Whether a caller is on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    Local,
    /// Not known to be on this machine: the connection comes from another machine, or a proxy passed the request on.
    Remote,
}

impl Reach {
    /// Where the sender of a request is. Proxies add `Forwarded`, `X-Forwarded-For` or `Via`, so a request with one of
    /// these headers counts as remote. A client that adds such a header itself only loses rights.
    pub(crate) fn of(peer: &Peer, headers: &HeaderMap) -> Reach {
        let forwarded = [FORWARDED, X_FORWARDED_FOR, VIA].iter().any(|name| headers.contains_key(name));
        if peer.is_local() && !forwarded { Reach::Local } else { Reach::Remote }
    }
}

/// The sender of an accepted request. Handlers find it among the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) reach: Reach,
    pub(crate) rights: Rights,
    /// The address or network under which limits count the caller.
    pub(crate) origin: IpAddr,
    /// The id of the request, for the emulator's log; `None` if the log does not need it.
    pub(crate) trace: Option<Arc<str>>,
}

impl Caller {
    /// The sender of a request, from the request's extensions. If no caller is stored there, the sender may only read.
    pub(crate) fn of(extensions: &Extensions) -> Caller {
        extensions.get().cloned().unwrap_or(Caller {
            reach: Reach::Remote,
            rights: Rights::Read,
            origin: IpAddr::from([0, 0, 0, 0]),
            trace: None,
        })
    }

    /// The owner of the watches and searches that this caller creates.
    pub(crate) fn as_owner(&self) -> Owner {
        Owner { rights: self.rights, origin: self.origin }
    }
}

/// The owner of a watch or a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    rights: Rights,
    origin: IpAddr,
}

impl Owner {
    pub(crate) fn is_read_only(&self) -> bool {
        self.rights == Rights::Read
    }

    /// Whether this owner may change or end a watch or a search of `other`. A read-only caller may change and end only
    /// its own. All read-only callers use the same token, so they are distinguished by their addresses.
    pub(crate) fn may_change(&self, other: &Owner) -> bool {
        self.rights == Rights::Full || self == other
    }

    /// Refuses a caller that may not change `what`, which `other` has created.
    pub(crate) fn check_change(&self, other: &Owner, what: &str) -> Result<(), Failure> {
        if self.may_change(other) {
            return Ok(());
        }
        let message = format!(
            "the token of the request is read-only: it can change and end only what was made with it from the same \
             address, and another caller made {what}"
        );
        Err(Failure::forbidden(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::new(address.parse().unwrap(), false)
    }

    #[test]
    fn only_direct_requests_from_this_machine_are_local() {
        for address in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(Reach::of(&peer(address), &HeaderMap::new()), Reach::Local, "{address}");
            for header in ["forwarded", "x-forwarded-for", "via"] {
                let mut headers = HeaderMap::new();
                headers.insert(HeaderName::from_static(header), "127.0.0.1".parse().unwrap());
                assert_eq!(Reach::of(&peer(address), &headers), Reach::Remote, "{address} {header}");
            }
        }
        for address in ["192.168.1.7", "::ffff:10.0.0.1", "fe80::1", "2001:db8::1", "0.0.0.0"] {
            assert_eq!(Reach::of(&peer(address), &HeaderMap::new()), Reach::Remote, "{address}");
        }
    }
}
