//! The entry of callbacks: its key, and the addresses that may call it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use aws_lc_rs::constant_time::verify_slices_are_equal;

use crate::runtime::config::Secret;
use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::network::Network;

/// Fewest characters of a key of the entry: as many as 190 bits of letters and digits have.
pub const MIN_ENTRY_KEY_CHARS: usize = 32;
/// Most characters of a key of the entry.
pub const MAX_ENTRY_KEY_CHARS: usize = 128;

/// The key and the provider that a path of the entry names: `KEY/PROVIDER`.
#[derive(Clone, PartialEq, Eq)]
pub struct CallbackAddress {
    key: String,
    provider: ProviderId,
}

/// Text that is no [`CallbackAddress`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no key and provider")]
pub struct NoAddress;

impl CallbackAddress {
    /// The key that the path has, which may be wrong.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    #[must_use]
    pub fn provider(&self) -> &ProviderId {
        &self.provider
    }
}

impl FromStr for CallbackAddress {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let (key, provider) = text.split_once('/').ok_or(NoAddress)?;
        let provider = provider.parse().map_err(|_| NoAddress)?;
        if is_key(key) { Ok(Self { key: key.to_owned(), provider }) } else { Err(NoAddress) }
    }
}

impl fmt::Debug for CallbackAddress {
    /// Leaves the key out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackAddress").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// True if text may be a key of the entry: letters, digits, `-` and `_`, which a path has as they are.
#[must_use]
pub fn is_key(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (MIN_ENTRY_KEY_CHARS..=MAX_ENTRY_KEY_CHARS).contains(&text.len()) && text.bytes().all(is_plain)
}

/// These texts as secrets, if there are no more than `most` and each may be a key; `None` otherwise.
pub(crate) fn secrets(texts: Vec<String>, most: usize) -> Option<Vec<Secret>> {
    let are_good = texts.len() <= most && texts.iter().all(|text| is_key(text));
    are_good.then(|| texts.into_iter().map(|text| Secret(text.into_bytes())).collect())
}

/// The texts of secrets, for variables.
pub(crate) fn texts(secrets: &[Secret]) -> Vec<String> {
    secrets.iter().map(|secret| String::from_utf8_lossy(&secret.0).into_owned()).collect()
}

/// The entry of callbacks, as a deployment configures it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallbackEntry {
    /// Its keys, any of which may be in the path; empty in functions that are not the entry.
    pub keys: Vec<Secret>,
    /// The networks that may call; empty for all.
    pub sources: Vec<Network>,
}

impl CallbackEntry {
    /// True if text is one of the keys. How long the answer takes says nothing of a key but its length.
    #[must_use]
    pub fn has_key(&self, key: &str) -> bool {
        let is_it = |own: &Secret| verify_slices_are_equal(&own.0, key.as_bytes()).is_ok();
        self.keys.iter().fold(false, |found, own| found | is_it(own))
    }

    /// True if a sender at this address may call; a sender without one only if all may.
    #[must_use]
    pub fn allows(&self, source: Option<IpAddr>) -> bool {
        let is_listed = |source| self.sources.iter().any(|network| network.contains(source));
        self.sources.is_empty() || source.is_some_and(is_listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdefghijklmnopqrstuv";

    #[test]
    fn an_address_is_a_key_and_a_provider() {
        let address: CallbackAddress = format!("{KEY}/stripe").parse().unwrap();
        assert_eq!((address.key(), address.provider().as_str()), (KEY, "stripe"));
        assert!(!format!("{address:?}").contains(KEY));
        for wrong in ["", "/", KEY, "short/stripe", &format!("{KEY}/"), &format!("{KEY}/A/b")] {
            assert_eq!(wrong.parse::<CallbackAddress>(), Err(NoAddress), "{wrong}");
        }
        let (long, odd) = ("k".repeat(129), format!("{}%", &KEY[1..]));
        assert!(is_key(&"k".repeat(128)) && !is_key(&long) && !is_key(&odd));
    }

    #[test]
    fn a_key_is_one_of_the_entrys_and_a_source_one_that_is_listed() {
        let keys = [KEY, "another-key-that-is-being-replaced"];
        let keys = keys.map(|key| Secret(key.as_bytes().to_vec())).into();
        let open = CallbackEntry { keys, sources: Vec::new() };
        assert!(open.has_key(KEY) && open.has_key("another-key-that-is-being-replaced"));
        assert!(
            !open.has_key("") && !open.has_key(&KEY[1..]) && !open.has_key(&KEY.to_uppercase())
        );
        assert!(!CallbackEntry::default().has_key("") && !CallbackEntry::default().has_key(KEY));
        let one: IpAddr = "203.0.113.7".parse().unwrap();
        assert!(open.allows(None) && open.allows(Some(one)));
        let sources = vec!["198.51.100.0/24".parse().unwrap(), "203.0.113.0/24".parse().unwrap()];
        let closed = CallbackEntry { sources, ..open };
        let other = "192.0.2.1".parse().unwrap();
        assert!(closed.allows(Some(one)) && !closed.allows(Some(other)) && !closed.allows(None));
    }
}
