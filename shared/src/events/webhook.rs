//! A webhook: an address that is told of facts.

use std::fmt;
use std::str::FromStr;

use http::Uri;

use super::secrets::SecretName;
use engine::domain::basics::ids::SubscriberId;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::subscriber::Wishes;

/// Most webhooks of a deployment.
pub const MAX_WEBHOOKS: usize = 20;
/// Longest address, in bytes.
const MAX_URL_BYTES: usize = 1024;

/// An address on the web. Where it leads is checked when it is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl(Uri);

/// Why a text is no address of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlDefect {
    /// It is no URL.
    #[error("it is no URL of at most 1024 bytes")]
    Malformed,
    /// Its scheme is another one.
    #[error("it does not begin with https://")]
    Scheme,
    /// It names somebody, as `user:password@`.
    #[error("it has a user or a password")]
    User,
}

impl FromStr for WebhookUrl {
    type Err = UrlDefect;
    fn from_str(text: &str) -> Result<Self, UrlDefect> {
        let uri: Uri = text.parse().map_err(|_| UrlDefect::Malformed)?;
        // A fragment is cut off by whoever parses it.
        if text.len() > MAX_URL_BYTES || uri.host().is_none_or(str::is_empty) || text.contains('#')
        {
            return Err(UrlDefect::Malformed);
        }
        if !matches!(uri.scheme_str(), Some("https" | "http")) {
            return Err(UrlDefect::Scheme);
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(UrlDefect::User);
        }
        Ok(Self(uri))
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl WebhookUrl {
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.0
    }
}

/// A webhook, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub id: SubscriberId,
    /// Where it is told.
    pub url: WebhookUrl,
    /// What it wants to hear.
    pub wishes: Wishes,
    /// The secret that signs.
    pub secret: SecretName,
    /// The one before, which signs as well until a time.
    pub former: Option<(SecretName, Timestamp)>,
    /// When it was made: it is told what is settled from then on.
    pub since: Timestamp,
}

impl Webhook {
    /// The secrets that sign at a time.
    #[must_use]
    pub fn secrets(&self, now: Timestamp) -> Vec<&SecretName> {
        let former = self.former.as_ref().filter(|(_, until)| now < *until);
        std::iter::once(&self.secret).chain(former.map(|(name, _)| name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_of_the_web_without_a_password() {
        let read = |text: &str| WebhookUrl::from_str(text).map(|url| url.to_string());
        for good in [
            "https://erp.example/hooks?of=onsale",
            "https://erp.example:8443/",
            "http://127.0.0.1:9/x",
        ] {
            assert_eq!(read(good).as_deref(), Ok(good));
        }
        for (bad, defect) in [
            ("", UrlDefect::Malformed),
            ("/hooks", UrlDefect::Malformed),
            ("https://", UrlDefect::Malformed),
            ("https://erp.example/#x", UrlDefect::Malformed),
            ("https://erp.example/\n", UrlDefect::Malformed),
            ("ftp://erp.example/", UrlDefect::Scheme),
            ("https://me:secret@erp.example/", UrlDefect::User),
        ] {
            assert_eq!(read(bad), Err(defect), "{bad}");
        }
        assert_eq!(
            read(&format!("https://erp.example/{}", "a".repeat(1024))),
            Err(UrlDefect::Malformed)
        );
    }
}
