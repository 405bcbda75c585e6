//! The keys that sign codes and lists, and the public halves by which anybody checks them.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode_header};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::runtime::config::Secret;
use crate::runtime::listed_secrets::ListedSecrets;

/// The variable that has the secrets.
pub(crate) const TICKET_KEYS: &str = "ONSALE_TICKET_KEYS";
/// Letters of a key's id: 72 bits of its thumbprint. A code has it in it, and its picture should stay small.
const KID_LETTERS: usize = 12;
/// Most bytes of a document of keys: those of two have some 300.
const MAX_KEYS_BYTES: usize = 64 * 1024;

/// The secrets that the keys are made from; none where nothing is signed.
pub type TicketSecrets = ListedSecrets;

/// A public key as RFC 8037 writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TicketKey")]
pub struct Jwk {
    /// Type of the key: `OKP`.
    pub kty: String,
    /// Its curve: `Ed25519`.
    pub crv: String,
    /// Its id: the first 12 letters of its thumbprint (RFC 7638).
    pub kid: String,
    /// The key, 32 bytes in base64url.
    pub x: String,
    /// What it is for: `sig`.
    #[serde(rename = "use", default = "signatures")]
    pub purpose: String,
    /// How it signs: `EdDSA`.
    #[serde(default = "eddsa")]
    pub alg: String,
}

fn signatures() -> String {
    "sig".to_owned()
}

fn eddsa() -> String {
    "EdDSA".to_owned()
}

impl Jwk {
    fn new(public: &[u8]) -> Self {
        let x = URL_SAFE_NO_PAD.encode(public);
        let kid = kid_of(&x);
        let (kty, crv) = ("OKP".to_owned(), "Ed25519".to_owned());
        Self { kty, crv, kid, x, purpose: signatures(), alg: eddsa() }
    }

    /// True if it is an Ed25519 key under its own id.
    fn is_good(&self) -> bool {
        let bytes = URL_SAFE_NO_PAD.decode(&self.x);
        self.kty == "OKP"
            && self.crv == "Ed25519"
            && self.kid == kid_of(&self.x)
            && bytes.is_ok_and(|bytes| bytes.len() == 32)
    }
}

/// The id of a key: the beginning of the SHA-256 of its members in their canonical order (RFC 7638, RFC 8037).
fn kid_of(x: &str) -> String {
    let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    let thumbprint = URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes()));
    thumbprint.chars().take(KID_LETTERS).collect()
}

/// The public keys of a deployment: a JWK set that also says whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TicketKeys")]
pub struct PublicKeys {
    /// The deployment, as its codes name it.
    pub deployment: String,
    /// The keys: the signing one first, and while it is replaced another.
    pub keys: Vec<Jwk>,
}

/// A text is no document of ticket keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no JSON Web Key Set of ticket keys")]
pub struct NotKeys;

/// Why a JWS cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unverified {
    /// It is no JWS of this kind.
    Malformed,
    /// It is signed with a key of this id, which is none of these.
    OtherKey(String),
    /// It is not what its key has signed.
    Forged,
}

impl PublicKeys {
    /// Reads a document as `GET /ticket-keys` answers it.
    ///
    /// # Errors
    /// Returns [`NotKeys`], also for a key under an id that is not its own.
    pub fn read(text: &str) -> Result<Self, NotKeys> {
        if text.len() > MAX_KEYS_BYTES {
            return Err(NotKeys);
        }
        let keys: Self = serde_json::from_str(text).map_err(|_unreadable| NotKeys)?;
        let are_good = !keys.keys.is_empty() && keys.keys.iter().all(Jwk::is_good);
        are_good.then_some(keys).ok_or(NotKeys)
    }

    /// Reads what a JWS of a kind says, if one of these keys has signed it. Algorithm and kind are fixed: a JWS
    /// that says otherwise is refused (RFC 8725, sections 3.1 and 3.11).
    pub(super) fn verified<T: DeserializeOwned>(
        &self,
        jws: &str,
        kind: &str,
    ) -> Result<T, Unverified> {
        let header = decode_header(jws).map_err(|_unreadable| Unverified::Malformed)?;
        if header.alg != Algorithm::EdDSA || header.typ.as_deref() != Some(kind) {
            return Err(Unverified::Malformed);
        }
        let kid = header.kid.ok_or(Unverified::Malformed)?;
        let Some(key) = self.keys.iter().find(|key| key.kid == kid) else {
            return Err(Unverified::OtherKey(kid));
        };
        let key = DecodingKey::from_ed_components(&key.x);
        let key = key.map_err(|_no_key| Unverified::Malformed)?;
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        match jsonwebtoken::decode::<T>(jws, &key, &validation) {
            Ok(verified) => Ok(verified.claims),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidSignature) => {
                Err(Unverified::Forged)
            }
            Err(_unreadable) => Err(Unverified::Malformed),
        }
    }
}

/// There is no key to sign with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no ticket key is configured")]
pub struct NoKey;

/// The keys of a deployment: the first signs, all are published.
pub struct TicketKeys {
    signing: Option<EncodingKey>,
    public: PublicKeys,
}

impl fmt::Debug for TicketKeys {
    /// Leaves the private key out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys").field("public", &self.public).finish_non_exhaustive()
    }
}

impl TicketKeys {
    /// The keys of a deployment that are made from these secrets: the seed of each is the SHA-256 of its secret.
    #[must_use]
    pub fn new(deployment: &str, secrets: &TicketSecrets) -> Self {
        let mut public = PublicKeys { deployment: deployment.to_owned(), keys: Vec::new() };
        let mut signing = None;
        for Secret(secret) in secrets.iter() {
            // 32 bytes are a seed, whichever they are.
            let Ok(pair) = Ed25519KeyPair::from_seed_unchecked(digest(&SHA256, secret).as_ref())
            else {
                continue;
            };
            let Ok(document) = pair.to_pkcs8() else { continue };
            public.keys.push(Jwk::new(pair.public_key().as_ref()));
            signing.get_or_insert_with(|| EncodingKey::from_ed_der(document.as_ref()));
        }
        Self { signing, public }
    }

    /// True if there is none: nothing can be signed, and no code is ours.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.signing.is_none()
    }

    #[must_use]
    pub fn public(&self) -> &PublicKeys {
        &self.public
    }

    #[must_use]
    pub fn deployment(&self) -> &str {
        &self.public.deployment
    }

    /// Signs what a JWS of a kind says.
    pub(super) fn signed<T: Serialize>(&self, kind: &str, says: &T) -> Result<String, NoKey> {
        let (signing, key) = self.signing.as_ref().zip(self.public.keys.first()).ok_or(NoKey)?;
        let header = Header {
            typ: Some(kind.to_owned()),
            kid: Some(key.kid.clone()),
            ..Header::new(Algorithm::EdDSA)
        };
        // Neither a text of ours nor a key that was made here can be refused.
        jsonwebtoken::encode(&header, says, signing).map_err(|_unsigned| NoKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdefghijklmnopqrstuv";
    const OLD: &str = "the-secret-that-is-being-replaced";

    #[test]
    fn one_or_two_secrets_are_read_and_written_again() {
        for (text, listed) in [
            (format!("[\"{SECRET}\"]"), SECRET.to_owned()),
            (format!("[\"{SECRET}\",\"{OLD}\"]"), format!("{SECRET},{OLD}")),
        ] {
            let secrets = TicketSecrets::read(TICKET_KEYS, Some(&text)).unwrap();
            assert_eq!(secrets.text(), listed);
            assert_eq!(TicketSecrets::read(TICKET_KEYS, Some(&listed)), Ok(secrets.clone()));
            assert!(!secrets.is_empty() && !format!("{secrets:?}").contains(SECRET));
        }
        assert!(TicketSecrets::read(TICKET_KEYS, None).unwrap().is_empty());
        let three = format!("[\"{SECRET}\",\"{SECRET}\",\"{SECRET}\"]");
        for text in ["[]", "[\"\"]", "[\"short\"]", "short", "{}", "[1]", ",", &three] {
            assert_eq!(
                TicketSecrets::read(TICKET_KEYS, Some(text)).unwrap_err().variable,
                TICKET_KEYS
            );
        }
    }

    /// The key and the thumbprint of RFC 8037, appendices A.2 and A.3.
    #[test]
    fn the_id_of_a_key_is_its_thumbprint_cut_short() {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        assert!("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k".starts_with(&kid_of(x)));
        let mut key = Jwk::new(&URL_SAFE_NO_PAD.decode(x).unwrap());
        assert!(key.is_good() && key.kid.len() == KID_LETTERS);
        let public = PublicKeys { deployment: "d".to_owned(), keys: vec![key.clone()] };
        let text = serde_json::to_string(&public).unwrap();
        assert_eq!(PublicKeys::read(&text), Ok(public));
        key.kid = "AAAAAAAAAAAA".to_owned();
        let other = PublicKeys { deployment: "d".to_owned(), keys: vec![key] };
        for text in [serde_json::to_string(&other).unwrap().as_str(), "{}", "[]", ""] {
            assert_eq!(PublicKeys::read(text), Err(NotKeys));
        }
    }

    #[test]
    fn a_secret_always_makes_the_same_key_and_another_another() {
        let of = |secrets: &[&str]| {
            let secrets = secrets.iter().map(|text| (*text).to_owned()).collect();
            TicketKeys::new("d", &TicketSecrets::new(secrets).unwrap())
        };
        let (one, both) = (of(&[SECRET]), of(&[OLD, SECRET]));
        assert_eq!(one.public().keys[0], both.public().keys[1]);
        assert_ne!(one.public().keys[0], both.public().keys[0]);
        assert!(of(&[]).is_empty() && of(&[]).signed("ticket", &1) == Err(NoKey));
        assert!(!format!("{both:?}").contains(SECRET));
    }
}
