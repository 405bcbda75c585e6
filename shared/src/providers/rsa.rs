//! RSA signatures with SHA-256 and PKCS#1 v1.5 padding, as WeChat Pay (`SHA256-RSA2048`) and Alipay
//! (`RSA2`) use them, and keys in the forms in which both hand them out.
//!
//! A key is text: PEM, or the base64 of its DER without any armour. A private key is PKCS#8 or PKCS#1
//! (RFC 5958, RFC 8017), a public key is a `SubjectPublicKeyInfo` or PKCS#1. At least 2,048 bits.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::{ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

/// Fewest bytes of a modulus: 2,048 bits.
const MIN_MODULUS_BYTES: usize = 256;
/// Most characters of a key's text: one of 8,192 bits has some 6,500.
const MAX_KEY_CHARS: usize = 16 * 1024;
/// Most characters of a signature: that of a key of 8,192 bits has 1,368.
const MAX_SIGNATURE_CHARS: usize = 2048;

/// Why text is not a key. It never says what the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyDefect {
    /// It is no private key.
    #[error("must be an RSA private key of at least 2048 bits, as PEM or base64, PKCS#8 or PKCS#1")]
    Private,
    /// It is no public key.
    #[error("must be an RSA public key of at least 2048 bits, as PEM or base64")]
    Public,
}

/// The system gave no signature: it has no entropy, or no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature could not be made")]
pub struct Unsigned;

pub struct SigningKey(KeyPair);

impl SigningKey {
    /// Reads a key.
    ///
    /// # Errors
    /// [`KeyDefect::Private`].
    pub fn read(text: &str) -> Result<Self, KeyDefect> {
        let text = bounded(text).ok_or(KeyDefect::Private)?;
        let pair = if text.starts_with("-----BEGIN") {
            match PrivateKeyDer::from_pem_slice(text.as_bytes()) {
                Ok(PrivateKeyDer::Pkcs8(der)) => KeyPair::from_pkcs8(der.secret_pkcs8_der()),
                Ok(PrivateKeyDer::Pkcs1(der)) => KeyPair::from_der(der.secret_pkcs1_der()),
                Ok(_) | Err(_) => return Err(KeyDefect::Private),
            }
        } else {
            let der = plain(text).ok_or(KeyDefect::Private)?;
            KeyPair::from_pkcs8(&der).or_else(|_| KeyPair::from_der(&der))
        };
        let pair = pair.map_err(|_| KeyDefect::Private)?;
        if pair.public_modulus_len() < MIN_MODULUS_BYTES {
            return Err(KeyDefect::Private);
        }
        Ok(Self(pair))
    }

    /// The signature of a message, in base64. The same message has the same signature.
    ///
    /// # Errors
    /// [`Unsigned`].
    pub fn sign(&self, message: &[u8]) -> Result<String, Unsigned> {
        let mut signature = vec![0; self.0.public_modulus_len()];
        let random = SystemRandom::new();
        let signed = self.0.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature);
        signed.map_err(|_| Unsigned)?;
        Ok(STANDARD.encode(signature))
    }
}

impl fmt::Debug for SigningKey {
    /// Leaves the key out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

pub struct VerifyingKey(ParsedPublicKey);

impl VerifyingKey {
    /// Reads a key.
    ///
    /// # Errors
    /// [`KeyDefect::Public`].
    pub fn read(text: &str) -> Result<Self, KeyDefect> {
        let text = bounded(text).ok_or(KeyDefect::Public)?;
        let der = if text.starts_with("-----BEGIN") {
            // PKCS#1 has a label of its own, which the reader of PEM does not know. The DER says which
            // form it is.
            let text = text.replace("RSA PUBLIC KEY-----", "PUBLIC KEY-----");
            let der = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes());
            der.map_err(|_| KeyDefect::Public)?.to_vec()
        } else {
            plain(text).ok_or(KeyDefect::Public)?
        };
        // A shorter key is parsed, and then verifies nothing: it is refused where somebody reads why.
        if der.len() < MIN_MODULUS_BYTES {
            return Err(KeyDefect::Public);
        }
        let key = ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, der);
        key.map(Self).map_err(|_| KeyDefect::Public)
    }

    /// True if this is the key's signature, in base64, of the message.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &str) -> bool {
        if signature.len() > MAX_SIGNATURE_CHARS {
            return false;
        }
        let signature = STANDARD.decode(signature);
        signature.is_ok_and(|signature| self.0.verify_sig(message, &signature).is_ok())
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifyingKey")
    }
}

/// A key's text without blanks around it; `None` if it is too long.
fn bounded(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| text.len() <= MAX_KEY_CHARS)
}

/// The bytes of base64 that may be broken into lines.
fn plain(text: &str) -> Option<Vec<u8>> {
    let digits: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::key;

    #[test]
    fn a_key_is_read_in_each_of_its_forms() {
        let sign =
            |form: &str| SigningKey::read(&key("merchant", form)).unwrap().sign(b"m").unwrap();
        let signature = sign("pkcs8_pem");
        for form in ["pkcs1_pem", "pkcs8_base64", "pkcs1_base64"] {
            assert_eq!(sign(form), signature, "{form}");
        }
        for form in ["public_pem", "public_pkcs1_pem", "public_base64"] {
            let public = VerifyingKey::read(&key("merchant", form)).unwrap();
            assert!(public.verify(b"m", &signature) && !public.verify(b"n", &signature), "{form}");
        }
        let broken: String = key("merchant", "pkcs8_base64")
            .as_bytes()
            .chunks(64)
            .map(|line| format!("  {}\r\n", String::from_utf8_lossy(line)))
            .collect();
        assert_eq!(SigningKey::read(&broken).unwrap().sign(b"m").unwrap(), signature);
    }

    #[test]
    fn another_key_or_signature_does_not_fit() {
        let signature =
            SigningKey::read(&key("merchant", "pkcs8_pem")).unwrap().sign(b"m").unwrap();
        let other = VerifyingKey::read(&key("platform", "public_pem")).unwrap();
        assert!(!other.verify(b"m", &signature));
        let own = VerifyingKey::read(&key("merchant", "public_pem")).unwrap();
        for wrong in
            ["", "?", "AAAA", &signature[..340], &format!("{signature}AAAA"), &"A".repeat(4096)]
        {
            assert!(!own.verify(b"m", wrong), "{wrong:.20}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        let small = key("small", "pkcs8_pem");
        let public = key("merchant", "public_pem");
        let private = key("merchant", "pkcs8_pem");
        let cut = &private[..private.len() / 2];
        let long = "A".repeat(MAX_KEY_CHARS + 4);
        for wrong in
            ["", "hunter2", "AAAA", &small, &public, cut, &long, "-----BEGIN PRIVATE KEY-----"]
        {
            assert_eq!(SigningKey::read(wrong).err(), Some(KeyDefect::Private), "{wrong:.20}");
        }
        let [small, half] = [key("small", "public_pem"), public[..public.len() / 2].to_owned()];
        for wrong in ["", "hunter2", "AAAA", &small, &private, &half, &long] {
            assert_eq!(VerifyingKey::read(wrong).err(), Some(KeyDefect::Public), "{wrong:.20}");
        }
        let shown = format!("{:?}", SigningKey::read(&private).unwrap());
        assert_eq!(shown, "SigningKey");
    }
}
