//! Origins: the scheme, host and port of an address.

use http::Uri;

/// The origin of a web address: `https://shop.example`, or `http://127.0.0.1:8080`. A port that is its
/// scheme's own is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// Reads an origin; `None` if the text has a path, a query or anything else behind the origin.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let origin = Self::of_address(text)?;
        let uri: Uri = text.parse().ok()?;
        let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        (is_bare && !text.ends_with('/') && !text.contains('#')).then_some(origin)
    }

    /// The origin of a web address; `None` if the text is no web address, or has a name or a password before its host,
    /// because browsers would not show to whom such an address leads.
    #[must_use]
    pub fn of_address(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "https" | "http"))?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
        let host = authority.host().to_ascii_lowercase();
        let own = if scheme == "https" { 443 } else { 80 };
        let port = authority.port_u16().filter(|port| *port != own);
        // What follows the colon must be a port: another parser might read it otherwise.
        let has_colon = authority.as_str().rsplit(']').next().is_some_and(|end| end.contains(':'));
        if host.is_empty() || (has_colon && authority.port_u16().is_none()) {
            return None;
        }
        Some(Self(match port {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        }))
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let shop = Origin::new("https://shop.example").unwrap();
        let same = [
            "https://shop.example/x?y#z",
            "https://SHOP.example:443/",
            "https://shop.example",
            "HTTPS://shop.example/",
        ];
        for address in same {
            assert_eq!(Origin::of_address(address).as_ref(), Some(&shop), "{address}");
        }
        let others = [
            "http://shop.example/",
            "https://shop.example.evil.example/",
            "https://shop.example@evil.example/",
            "https://evil.example/https://shop.example",
            "https://shop.example:444/",
            "https://evil.example\\@shop.example/",
            "https://shop.example:/",
            "//shop.example",
            "/x",
            "javascript:alert(1)",
            "",
        ];
        for address in others {
            assert_ne!(Origin::of_address(address).as_ref(), Some(&shop), "{address}");
        }
        let local = Origin::new("http://127.0.0.1:8080").unwrap();
        assert_eq!(Origin::of_address("http://127.0.0.1:8080/back"), Some(local));
        let wrong = ["https://shop.example/", "https://shop.example/x", "https://a?b", "shop", ""];
        assert!(wrong.iter().all(|text| Origin::new(text).is_none()));
    }
}
