//! The encrypted part of a notification: AES-256-GCM with the merchant's API v3 key.
//! (<https://pay.weixin.qq.com/wiki/doc/apiv3/apis/chapter3_2_5.shtml>)

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// Bytes of a key.
pub(crate) const API_V3_KEY_BYTES: usize = 32;
/// The name of the only algorithm.
const ALGORITHM: &str = "AEAD_AES_256_GCM";

/// An API v3 key. A merchant has two while one replaces the other.
pub(crate) struct ApiV3Key(LessSafeKey);

impl ApiV3Key {
    /// The key that a text is; `None` unless it has 32 bytes.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, text.as_bytes()).ok()?;
        (text.len() == API_V3_KEY_BYTES).then(|| Self(LessSafeKey::new(key)))
    }
}

impl fmt::Debug for ApiV3Key {
    /// Leaves the key out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiV3Key")
    }
}

/// The encrypted part as it comes.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Resource {
    algorithm: String,
    ciphertext: String,
    #[serde(default)]
    associated_data: Option<String>,
    nonce: String,
}

/// Why there is no plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Sealed {
    /// The algorithm is another.
    #[error("its algorithm is not AEAD_AES_256_GCM")]
    Algorithm,
    /// The nonce has not 12 bytes, or the cipher text is no base64.
    #[error("its nonce or its cipher text cannot be read")]
    Malformed,
    /// No key opens it.
    #[error("no API v3 key opens it")]
    Key,
}

impl Resource {
    /// The plain text, opened with the first key that fits.
    ///
    /// # Errors
    /// Returns why there is none.
    pub(super) fn open(&self, keys: &[ApiV3Key]) -> Result<Vec<u8>, Sealed> {
        if self.algorithm != ALGORITHM {
            return Err(Sealed::Algorithm);
        }
        let sealed = STANDARD.decode(&self.ciphertext).map_err(|_| Sealed::Malformed)?;
        let nonce: [u8; 12] = self.nonce.as_bytes().try_into().map_err(|_| Sealed::Malformed)?;
        let associated = self.associated_data.as_deref().unwrap_or_default().as_bytes();
        let open = |key: &ApiV3Key| {
            let mut bytes = sealed.clone();
            let nonce = Nonce::assume_unique_for_key(nonce);
            let length = key.0.open_in_place(nonce, Aad::from(associated), &mut bytes).ok()?.len();
            bytes.truncate(length);
            Some(bytes)
        };
        keys.iter().find_map(open).ok_or(Sealed::Key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::{text, vectors};
    use serde_json::{Value, json};

    fn resource(change: impl Fn(&mut Value)) -> Resource {
        let body = text(&vectors()["wechat"]["notifications"][0]["body"]);
        let mut body: Value = serde_json::from_str(&body).unwrap();
        change(&mut body["resource"]);
        serde_json::from_value(body["resource"].take()).unwrap()
    }

    fn own_key() -> ApiV3Key {
        ApiV3Key::read(&text(&vectors()["wechat"]["api_v3_key"])).unwrap()
    }

    #[test]
    fn what_others_seal_is_opened_with_either_of_two_keys() {
        let other = || ApiV3Key::read(&"x".repeat(32)).unwrap();
        for notification in vectors()["wechat"]["notifications"].as_array().unwrap() {
            let body: Value = serde_json::from_str(&text(&notification["body"])).unwrap();
            let resource: Resource = serde_json::from_value(body["resource"].clone()).unwrap();
            let plain = text(&notification["plaintext"]).into_bytes();
            assert_eq!(resource.open(&[own_key()]), Ok(plain.clone()));
            assert_eq!(resource.open(&[other(), own_key()]), Ok(plain));
            assert_eq!(resource.open(&[other()]), Err(Sealed::Key));
            assert_eq!(resource.open(&[]), Err(Sealed::Key));
        }
    }

    #[test]
    fn a_byte_that_was_changed_closes_it() {
        let opened = |change: fn(&mut Value)| resource(change).open(&[own_key()]);
        assert_eq!(opened(|sealed| sealed["associated_data"] = json!("refund")), Err(Sealed::Key));
        assert_eq!(opened(|sealed| sealed["associated_data"] = json!(null)), Err(Sealed::Key));
        assert_eq!(opened(|sealed| sealed["nonce"] = json!("fdasflkja485")), Err(Sealed::Key));
        assert_eq!(opened(|sealed| sealed["nonce"] = json!("short")), Err(Sealed::Malformed));
        assert_eq!(opened(|sealed| sealed["ciphertext"] = json!("?")), Err(Sealed::Malformed));
        assert_eq!(opened(|sealed| sealed["ciphertext"] = json!("AAAA")), Err(Sealed::Key));
        assert_eq!(opened(|sealed| sealed["algorithm"] = json!("NONE")), Err(Sealed::Algorithm));
        let sealed = resource(|_| ()).ciphertext;
        let mut bytes = STANDARD.decode(sealed).unwrap();
        bytes[0] ^= 1;
        let changed = resource(|sealed| sealed["ciphertext"] = json!(STANDARD.encode(&bytes)));
        assert_eq!(changed.open(&[own_key()]), Err(Sealed::Key));
    }

    #[test]
    fn a_key_has_thirty_two_bytes_and_is_not_shown() {
        for wrong in ["", "hunter2", &"k".repeat(31), &"k".repeat(33)] {
            assert!(ApiV3Key::read(wrong).is_none(), "{wrong}");
        }
        assert_eq!(format!("{:?}", own_key()), "ApiV3Key");
    }
}
