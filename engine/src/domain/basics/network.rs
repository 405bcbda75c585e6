//! Networks: the addresses that have their first bits in common.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bits of an IPv6 address that one site or phone has to itself; it picks the others as it likes.
/// Source: RFC 4291, section 2.5.4; RFC 6459, section 5.2.
const SITE_BITS: u32 = 64;

/// Addresses that have their first bits in common: `203.0.113.0/24`, or one address without a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// Text that is no [`Network`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no network in CIDR notation")]
pub struct NoNetwork;

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| NoNetwork)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| NoNetwork)?;
        if bits <= most { Ok(Self { address, bits }) } else { Err(NoNetwork) }
    }
}

impl TryFrom<String> for Network {
    type Error = NoNetwork;

    fn try_from(text: String) -> Result<Self, NoNetwork> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    /// The network that counts as one sender: an IPv4 address, or the first 64 bits of an IPv6 address.
    #[must_use]
    pub fn of_sender(address: IpAddr) -> Self {
        match address.to_canonical() {
            address @ IpAddr::V4(_) => Self { address, bits: 32 },
            IpAddr::V6(address) => {
                let site = u128::from(address) & (u128::MAX << (128 - SITE_BITS));
                Self { address: Ipv6Addr::from(site).into(), bits: SITE_BITS }
            }
        }
    }

    /// The number of first bits that the network's addresses have in common: the more bits, the fewer addresses.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// True if an address is of the network. One of IPv4 that is written as one of IPv6 is one of IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = u32::from(own) ^ u32::from(other);
                differing.leading_zeros() >= self.bits
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = u128::from(own) ^ u128::from(other);
                differing.leading_zeros() >= self.bits
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_with_its_first_bits() {
        let cases = [
            ("203.0.113.0/24", "203.0.113.255", true),
            ("203.0.113.0/24", "203.0.114.0", false),
            ("203.0.113.7", "203.0.113.7", true),
            ("203.0.113.7", "203.0.113.6", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::1", false),
            ("203.0.113.0/24", "::ffff:203.0.113.9", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "2001:db9::1", true),
        ];
        for (network, address, expected) in cases {
            let contains = network.parse::<Network>().unwrap().contains(address.parse().unwrap());
            assert_eq!(contains, expected, "{network} {address}");
        }
        for wrong in ["", "203.0.113.0/33", "::/129", "203.0.113/24", "1.2.3.4/", "1.2.3.4/x"] {
            assert_eq!(wrong.parse::<Network>(), Err(NoNetwork), "{wrong}");
        }
    }

    #[test]
    fn a_sender_is_an_address_of_ipv4_or_a_site_of_ipv6() {
        for (address, sender) in [
            ("203.0.113.7", "203.0.113.7/32"),
            ("::ffff:203.0.113.7", "203.0.113.7/32"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ] {
            assert_eq!(Network::of_sender(address.parse().unwrap()).to_string(), sender);
        }
    }
}
