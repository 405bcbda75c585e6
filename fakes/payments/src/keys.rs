//! RSA keys, made when a fake is started: the merchant's, whose private half the fake hands out, and the
//! provider's own.

use std::fmt;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{
    KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::Error;
use crate::account::broken;

/// Both halves of a key.
pub(crate) struct Key(KeyPair);

impl Key {
    /// A new key of 2,048 bits.
    pub(crate) fn generate() -> Result<Self, Error> {
        KeyPair::generate(KeySize::Rsa2048).map(Self).map_err(broken)
    }

    /// The private half: PKCS#8 in base64.
    pub(crate) fn private(&self) -> Result<String, Error> {
        let der = self.0.as_der().map_err(broken)?;
        Ok(STANDARD.encode(der.as_ref()))
    }

    /// The public half: a `SubjectPublicKeyInfo` in base64.
    pub(crate) fn public(&self) -> Result<String, Error> {
        let der = self.0.public_key().as_der().map_err(broken)?;
        Ok(STANDARD.encode(der.as_ref()))
    }

    /// A signature in base64.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<String, Error> {
        let mut signature = vec![0; self.0.public_modulus_len()];
        self.0
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
            .map_err(broken)?;
        Ok(STANDARD.encode(signature))
    }

    /// True if this key made the signature.
    pub(crate) fn verify(&self, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else { return false };
        let public =
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, self.0.public_key().as_ref());
        public.verify(message, &signature).is_ok()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// The merchant's key and the provider's, which are made side by side.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) merchant: Key,
    pub(crate) own: Key,
}

impl Keys {
    pub(crate) fn generate() -> Result<Self, Error> {
        let (merchant, own) = std::thread::scope(|scope| {
            let other = scope.spawn(Key::generate);
            (Key::generate(), other.join())
        });
        let own = own.map_err(|_| Error::Provider("no key could be made".to_owned()))??;
        Ok(Self { merchant: merchant?, own })
    }
}

/// So many characters of letters and digits that nobody has seen before.
pub(crate) fn nonce<const N: usize>() -> Result<String, Error> {
    const DIGITS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let mut bytes = [0_u8; N];
    SystemRandom::new().fill(&mut bytes).map_err(broken)?;
    Ok(bytes.iter().map(|byte| char::from(DIGITS[usize::from(byte % 32)])).collect())
}
