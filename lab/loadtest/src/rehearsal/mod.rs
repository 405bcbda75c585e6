//! A rehearsal: a small load test of a deployment of one's own, under a ceiling of the rate.
//!
//! - [`Target`] is an address that is not used before its host was confirmed;
//! - [`ceiling`] spaces requests, so that no second has more than the ceiling;
//! - [`abort`] is the switch that ends it, by hand, by a file or by too many errors of the target;
//! - [`tokens`] asks a program for the tokens of buyers.

pub mod abort;
pub mod ceiling;
pub mod tokens;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http::Uri;
use serde::Serialize;
use shared::runtime::connections::Trust;

use self::abort::AbortSwitch;

/// Requests a second unless chosen otherwise.
pub const DEFAULT_PER_SECOND: u32 = 10;
/// Largest ceiling that can be chosen, in requests a second.
pub const MAX_PER_SECOND: u32 = 100_000;

/// Why an address is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not the address of a gateway.
    #[error("{0} is no address of a gateway: https://HOST or https://HOST:PORT is one")]
    Malformed(String),
    /// Tokens would cross a network in the clear.
    #[error("plain http is for this machine only, and {0} is another: use https")]
    Plain(String),
    /// Nobody has confirmed the host.
    #[error("{0} would be loaded: confirm with --confirm-host {0}")]
    Unconfirmed(String),
    /// Another host was confirmed.
    #[error("{confirmed} was confirmed, and the target is {host}")]
    OtherHost {
        /// The host of the target.
        host: String,
        /// The host that was confirmed.
        confirmed: String,
    },
}

/// The address of a gateway, as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    url: String,
    host: String,
    is_secure: bool,
}

/// The address of a gateway that may be loaded: its host was confirmed, or it is plain http on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed(Target);

impl Target {
    /// Reads an address. Nothing is connected.
    ///
    /// # Errors
    /// [`Refused::Malformed`] if it has another scheme, no host, a user, a path or a query;
    /// [`Refused::Plain`] if it is plain http to another machine.
    pub fn read(url: &str) -> Result<Self, Refused> {
        let malformed = || Refused::Malformed(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| malformed())?;
        let authority = uri.authority().ok_or_else(malformed)?;
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(malformed()),
        };
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        let is_bare = uri.path().trim_start_matches('/').is_empty() && uri.query().is_none();
        if host.is_empty() || authority.as_str().contains('@') || !is_bare {
            return Err(malformed());
        }
        let target = Self { url: url.trim_end_matches('/').to_owned(), host, is_secure };
        if target.is_secure || target.is_this_machine() {
            Ok(target)
        } else {
            Err(Refused::Plain(target.host))
        }
    }

    /// Its host, in lower case.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    fn is_this_machine(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// True if it may be loaded only when its host was confirmed.
    #[must_use]
    pub fn needs_confirmation(&self) -> bool {
        self.is_secure || !self.is_this_machine()
    }

    /// The address as one that may be loaded; `host` is the one that somebody has confirmed.
    ///
    /// # Errors
    /// [`Refused::Unconfirmed`] or [`Refused::OtherHost`].
    pub fn confirm(self, host: Option<&str>) -> Result<Confirmed, Refused> {
        match host.map(str::trim) {
            Some(confirmed) if !confirmed.eq_ignore_ascii_case(&self.host) => {
                Err(Refused::OtherHost { host: self.host, confirmed: confirmed.to_owned() })
            }
            None if self.needs_confirmation() => Err(Refused::Unconfirmed(self.host)),
            Some(_) | None => Ok(Confirmed(self)),
        }
    }
}

impl Confirmed {
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.url
    }

    #[must_use]
    pub fn host(&self) -> &str {
        &self.0.host
    }
}

/// The options of a rehearsal.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    /// Address of the deployment.
    pub target: Confirmed,
    /// Certificate authorities that are trusted.
    pub trust: Trust,
    /// Most requests a second.
    pub per_second: u32,
    /// The program that prints the token of a buyer: it is given the buyer's number.
    pub token_command: PathBuf,
    /// The switch that ends the rehearsal.
    pub abort: Arc<AbortSwitch>,
    /// File that ends the rehearsal once it exists.
    pub abort_file: Option<PathBuf>,
    /// Largest share of errors among the target's last answers, in percent, before it ends by itself.
    pub max_error_percent: u32,
}

/// What a report says of a rehearsal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rehearsed {
    /// The host that was loaded.
    pub host: String,
    /// The ceiling, in requests a second.
    pub per_second: u32,
    /// Why it was aborted; absent if it was not.
    pub aborted: Option<String>,
}

impl Rehearsal {
    /// What the report is to say.
    #[must_use]
    pub fn rehearsed(&self) -> Rehearsed {
        Rehearsed {
            host: self.target.host().to_owned(),
            per_second: self.per_second,
            aborted: self.abort.reason(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmed(url: &str, host: Option<&str>) -> Result<Confirmed, Refused> {
        Target::read(url)?.confirm(host)
    }

    #[test]
    fn only_this_machine_is_loaded_without_confirmation() {
        for url in
            ["http://127.0.0.1:8080", "http://localhost:80/", "http://[::1]:80", "http://127.9.0.1"]
        {
            assert!(confirmed(url, None).is_ok(), "{url}");
        }
        for url in ["https://tickets.example", "https://127.0.0.1:8443", "https://localhost"] {
            let refused = confirmed(url, None);
            assert!(matches!(refused, Err(Refused::Unconfirmed(_))), "{url}: {refused:?}");
        }
        let right = confirmed("https://Tickets.example:8443/", Some("tickets.EXAMPLE\n")).unwrap();
        assert_eq!(
            (right.host(), right.url()),
            ("tickets.example", "https://Tickets.example:8443")
        );
        for (url, host) in [
            ("https://tickets.example", "tickets.example.org"),
            ("https://tickets.example", ""),
            ("http://127.0.0.1:8080", "tickets.example"),
        ] {
            let refused = confirmed(url, Some(host));
            assert!(matches!(refused, Err(Refused::OtherHost { .. })), "{url} {host}: {refused:?}");
        }
    }

    #[test]
    fn plain_http_to_another_machine_is_refused_whatever_is_confirmed() {
        for host in ["tickets.example", "10.0.0.1", "127.0.0.1.example", "localhost.example"] {
            let refused = confirmed(&format!("http://{host}"), Some(host));
            assert_eq!(refused, Err(Refused::Plain(host.to_owned())));
        }
    }

    #[test]
    fn what_is_no_address_of_a_gateway_is_refused() {
        for url in [
            "",
            "tickets.example",
            "ftp://a",
            "https://a/prod",
            "https://a?b",
            "https://u@a",
            "https://",
            "/a",
        ] {
            assert!(matches!(Target::read(url), Err(Refused::Malformed(_))), "{url}");
        }
    }
}
