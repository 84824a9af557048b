//! Who asks.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::{FORWARDED, VIA};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, StatusCode};

use crate::failure::Failure;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rights {
    /// Look.
    Read,
    /// Look and change.
    Full,
}

/// Where a caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// On this machine.
    Local,
    /// On another one, or behind a proxy that says so.
    Remote,
}

/// Whoever sent a request that was let in. Handlers find it among the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) reach: Reach,
    pub(crate) rights: Rights,
    /// The address or network that it is counted as.
    pub(crate) origin: IpAddr,
    /// What the emulator's log is to call the request.
    pub(crate) trace: Option<Arc<str>>,
}

impl Caller {
    /// The sender of a request, as the gate has noted it there. One that passed no gate may do the least.
    pub(crate) fn of(extensions: &Extensions) -> Caller {
        extensions.get().cloned().unwrap_or(Caller {
            reach: Reach::Remote,
            rights: Rights::Read,
            origin: IpAddr::from([0, 0, 0, 0]),
            trace: None,
        })
    }

    /// Whom what this caller makes belongs to.
    pub(crate) fn as_owner(&self) -> Owner {
        Owner { rights: self.rights, origin: self.origin }
    }
}

/// Who made a watch or a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    rights: Rights,
    origin: IpAddr,
}

impl Owner {
    /// Whether it may only look.
    pub(crate) fn only_looks(&self) -> bool {
        self.rights == Rights::Read
    }

    /// Whether it may change or end what `other` has made. Callers that may only look may do so with their own; they show
    /// the same token, and so are told apart by where they are.
    pub(crate) fn may_change(&self, other: &Owner) -> bool {
        self.rights == Rights::Full || self == other
    }

    /// The same as an error; `what` is what should be changed.
    pub(crate) fn check_change(&self, other: &Owner, what: &str) -> Result<(), Failure> {
        if self.may_change(other) {
            return Ok(());
        }
        let message = format!(
            "the token that was shown may only look: it changes and ends what was made with it from the same address, and \
             {what} was made by another"
        );
        Err(Failure::new(StatusCode::FORBIDDEN, message))
    }
}

impl<S: Sync> FromRequestParts<S> for Owner {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Owner, Infallible> {
        Ok(Caller::of(&parts.extensions).as_owner())
    }
}

/// The other end of a connection, as its requests are judged and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// IPv4 addresses in their short form.
    address: IpAddr,
    /// Whether the connection is encrypted.
    pub(crate) tls: bool,
}

impl Peer {
    pub(crate) fn new(address: IpAddr, tls: bool) -> Peer {
        Peer { address: address.to_canonical(), tls }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.address.is_loopback()
    }

    /// Whom to count it as: an address, or for IPv6 the network that one household or machine has (RFC 6177).
    pub(crate) fn origin(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => self.address,
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(network.into())
            }
        }
    }

    /// Where the sender of a request is. A proxy on this machine says by a header for whom it asks; whoever sends such a
    /// header without need only loses by it.
    pub(crate) fn reach(&self, headers: &HeaderMap) -> Reach {
        let forwarded = [FORWARDED, X_FORWARDED_FOR, VIA].iter().any(|name| headers.contains_key(name));
        match self.is_local() && !forwarded {
            true => Reach::Local,
            false => Reach::Remote,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::new(address.parse().unwrap(), false)
    }

    #[test]
    fn local_is_what_comes_from_this_machine_without_a_proxy() {
        for address in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(peer(address).reach(&HeaderMap::new()), Reach::Local, "{address}");
            for header in ["forwarded", "x-forwarded-for", "via"] {
                let mut headers = HeaderMap::new();
                headers.insert(HeaderName::from_static(header), "127.0.0.1".parse().unwrap());
                assert_eq!(peer(address).reach(&headers), Reach::Remote, "{address} {header}");
            }
        }
        for address in ["192.168.1.7", "::ffff:10.0.0.1", "fe80::1", "2001:db8::1", "0.0.0.0"] {
            assert_eq!(peer(address).reach(&HeaderMap::new()), Reach::Remote, "{address}");
        }
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        assert_eq!(peer("2001:db8::1").origin(), peer("2001:db8::ffff:1").origin());
        assert_ne!(peer("2001:db8::1").origin(), peer("2001:db8:0:1::1").origin());
        assert_ne!(peer("10.0.0.1").origin(), peer("10.0.0.2").origin());
        assert_eq!(peer("::ffff:10.0.0.1").origin(), peer("10.0.0.1").origin());
    }
}
