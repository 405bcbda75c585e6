//! Where webhooks may lead. Whoever enters an address must not have the engine ask what only the engine can reach.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use engine::domain::basics::network::Network;

/// Networks that are not the public internet.
/// Source: <https://www.iana.org/assignments/iana-ipv4-special-registry/>
const NOT_PUBLIC_V4: [&str; 15] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
];
/// The one block of IPv6 from which public addresses are given out, and what of it is not public: protocols' own
/// (Teredo among them), documentation, and what leads to an address of IPv4.
/// Source: <https://www.iana.org/assignments/iana-ipv6-special-registry/>
const PUBLIC_V6: &str = "2000::/3";
const NOT_PUBLIC_V6: [&str; 4] = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

fn is_of(network: &str, address: IpAddr) -> bool {
    Network::from_str(network).is_ok_and(|network| network.contains(address))
}

/// True for an address of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        address @ IpAddr::V4(_) => !NOT_PUBLIC_V4.iter().any(|network| is_of(network, address)),
        address @ IpAddr::V6(_) => {
            is_of(PUBLIC_V6, address)
                && !NOT_PUBLIC_V6.iter().any(|network| is_of(network, address))
        }
    }
}

/// Where webhooks may lead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Over TLS, to public addresses.
    #[default]
    Public,
    /// Anywhere, also without TLS: on one machine.
    Any,
}

impl Addresses {
    /// The setting as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Any => "any",
        }
    }

    /// True if a webhook may have this URL, as far as it says itself where it leads.
    #[must_use]
    pub fn allow(self, url: &Uri) -> bool {
        let host = url.host().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match self {
            Self::Any => true,
            Self::Public => url.scheme_str() == Some("https") && literal.map_or(true, is_public),
        }
    }
}

/// Finds the addresses of a name, at each connection anew, and gives none of a name that has one it must not have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolver(pub Addresses);

/// What was found, in the order in which it is tried.
pub(super) type Found = std::vec::IntoIter<SocketAddr>;

impl Service<Name> for Resolver {
    type Response = Found;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Found>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let addresses = self.0;
        Box::pin(async move {
            // The port is put in by whoever connects.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            allowed(addresses, found.collect())
        })
    }
}

fn allowed(addresses: Addresses, found: Vec<SocketAddr>) -> io::Result<Found> {
    let is_allowed = |address: &SocketAddr| addresses == Addresses::Any || is_public(address.ip());
    if found.iter().all(is_allowed) {
        Ok(found.into_iter())
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it leads to an address that is not public",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_engine_can_reach_is_not_public() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "198.19.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "2001::1",
            "ff02::1",
            "2001:db8::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in
            ["8.8.8.8", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn every_network_of_the_lists_is_one() {
        for network in NOT_PUBLIC_V4.iter().chain(&NOT_PUBLIC_V6).chain([&PUBLIC_V6]) {
            assert!(Network::from_str(network).is_ok(), "{network}");
        }
    }

    #[test]
    fn a_url_that_names_a_private_address_is_refused_and_one_without_tls() {
        let public = |url: &str| Addresses::Public.allow(&url.parse().unwrap());
        assert!(public("https://erp.example/") && public("https://8.8.8.8/"));
        for refused in [
            "http://erp.example/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]:8443/",
        ] {
            assert!(!public(refused), "{refused}");
            assert!(Addresses::Any.allow(&refused.parse().unwrap()));
        }
    }

    #[test]
    fn a_name_that_has_one_private_address_leads_nowhere() {
        let found = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let both: Vec<SocketAddr> = found(&["8.8.8.8:0", "10.0.0.1:0"]);
        assert!(allowed(Addresses::Public, both.clone()).is_err());
        assert_eq!(allowed(Addresses::Any, both).unwrap().count(), 2);
        assert_eq!(allowed(Addresses::Public, found(&["8.8.8.8:0"])).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_refused_when_it_is_resolved() {
        let name = || Name::from_str("localhost").unwrap();
        assert!(Resolver(Addresses::Public).call(name()).await.is_err());
        assert!(Resolver(Addresses::Any).call(name()).await.unwrap().count() > 0);
    }
}
