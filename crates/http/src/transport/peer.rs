use std::net::IpAddr;

/// The other end of a connection.
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

    /// Whether it is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.address.is_loopback()
    }

    /// The address that its requests are counted under. For IPv6 it is the network, which one household or machine has
    /// (RFC 6177).
    pub(crate) fn origin(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => self.address,
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(network.into())
            }
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
    fn a_network_of_ipv6_counts_as_one() {
        assert_eq!(peer("2001:db8::1").origin(), peer("2001:db8::ffff:1").origin());
        assert_ne!(peer("2001:db8::1").origin(), peer("2001:db8:0:1::1").origin());
        assert_ne!(peer("10.0.0.1").origin(), peer("10.0.0.2").origin());
        assert_eq!(peer("::ffff:10.0.0.1").origin(), peer("10.0.0.1").origin());
    }
}
