//! The secrets that webhooks are signed with. None is kept: each is made from a key of the deployment.

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::hex::to_hex;
use crate::runtime::config::Secret;
use crate::runtime::listed_secrets::ListedSecrets;
use engine::domain::basics::ids::SubscriberId;
use engine::domain::basics::time::Timestamp;

pub const WEBHOOK_KEYS: &str = "ONSALE_WEBHOOK_KEYS";

/// Names one secret of a webhook: the key that it is made from, and which of those it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretName {
    /// The id of the key.
    pub key: String,
    /// The number of the secret, which goes up with each that follows another.
    pub generation: u32,
}

/// The keys that secrets are made from: the first makes new ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookKeys(pub ListedSecrets);

/// The id of a key, from which nobody finds the key.
fn id_of(Secret(key): &Secret) -> String {
    let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, key), b"id of a key of webhooks");
    to_hex(&tag.as_ref()[..6])
}

impl WebhookKeys {
    /// The name of a new secret that follows some other; `None` without keys. Its number is the time in seconds, or the
    /// next one: so a webhook that was removed and is made anew has another secret than before.
    #[must_use]
    pub fn next(&self, before: Option<&SecretName>, now: Timestamp) -> Option<SecretName> {
        let key = id_of(self.0.iter().next()?);
        let seconds = u32::try_from(now.ms() / 1000).unwrap_or(u32::MAX);
        let next = before.map_or(0, |before| before.generation.saturating_add(1));
        Some(SecretName { key, generation: seconds.max(next) })
    }

    /// The bytes of a secret; `None` if its key is gone.
    fn secret(&self, webhook: &SubscriberId, name: &SecretName) -> Option<hmac::Tag> {
        let Secret(key) = self.0.iter().find(|key| id_of(key) == name.key)?;
        let key = hmac::Key::new(HMAC_SHA256, key);
        let text = format!("onsale webhook {webhook} {}", name.generation);
        Some(hmac::sign(&key, text.as_bytes()))
    }

    /// A secret as the other side takes it, such as `whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw`.
    #[must_use]
    pub fn shown(&self, webhook: &SubscriberId, name: &SecretName) -> Option<String> {
        let secret = self.secret(webhook, name)?;
        Some(format!("whsec_{}", STANDARD.encode(secret.as_ref())))
    }

    /// The signatures of a message, one for each secret: what the header `webhook-signature` says. `None` if the keys
    /// of all are gone.
    #[must_use]
    pub fn sign(
        &self,
        webhook: &SubscriberId,
        names: &[&SecretName],
        id: &str,
        at: Timestamp,
        body: &str,
    ) -> Option<String> {
        let signed = format!("{id}.{}.{body}", at.ms() / 1000);
        let secrets = names.iter().filter_map(|name| self.secret(webhook, name));
        let signatures = secrets.map(|secret| {
            let key = hmac::Key::new(HMAC_SHA256, secret.as_ref());
            format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes())))
        });
        let signatures: Vec<String> = signatures.collect();
        (!signatures.is_empty()).then(|| signatures.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "the-first-key-of-this-deployment";
    const SECOND: &str = "a-second-key-of-this-deployment-";

    fn keys(all: &[&str]) -> WebhookKeys {
        let all = all.iter().map(|key| (*key).to_owned()).collect();
        WebhookKeys(ListedSecrets::new(all).unwrap())
    }

    #[test]
    fn secrets_are_of_a_key_a_webhook_and_a_generation() {
        let (both, old) = (keys(&[SECOND, FIRST]), keys(&[FIRST]));
        let [erp, crm] = ["erp", "crm"].map(|id| SubscriberId::new(id).unwrap());
        let now = Timestamp::from_ms(1_800_000_000_000);
        let first = old.next(None, now).unwrap();
        let second = both.next(Some(&first), now).unwrap();
        assert_eq!(second.generation, first.generation + 1);
        assert_ne!(old.next(None, now.plus_seconds(1)).unwrap(), first, "it was made anew");
        assert_ne!(second.key, first.key);
        let shown = |keys: &WebhookKeys, of, name| keys.shown(of, name);
        assert_eq!(shown(&both, &erp, &first), shown(&old, &erp, &first));
        assert_ne!(shown(&both, &erp, &first), shown(&both, &crm, &first));
        assert_ne!(shown(&both, &erp, &first), shown(&both, &erp, &second));
        assert_eq!(shown(&old, &erp, &second), None, "its key is gone");
        assert!(!format!("{both:?}").contains(FIRST), "nothing prints a key");
        let read = |text| ListedSecrets::read(WEBHOOK_KEYS, text);
        let as_text = both.0.text();
        assert_eq!(read(Some(&as_text)), Ok(both.0.clone()));
        assert_eq!(read(Some("short")).unwrap_err().variable, WEBHOOK_KEYS);
        assert!(read(None).unwrap().is_empty());
        let sign = |names: &[&SecretName]| {
            old.sign(&erp, names, "7-1", Timestamp::from_ms(1_800_000_000_000), "{}")
        };
        assert_eq!(sign(&[&second]), None);
        assert_eq!(sign(&[&first, &second]), sign(&[&first]));
    }
}
