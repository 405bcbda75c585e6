//! Hashes, secrets, nonces, signatures and keys: bytes of a fixed number, written as lower-case hexadecimal digits.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The text is not as many bytes in lower-case hexadecimal digits as it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} must be {digits} lower-case hexadecimal digits")]
pub struct InvalidHex {
    /// The kind of bytes that the text should have been, for example `hash`.
    pub kind: &'static str,
    /// Number of digits.
    pub digits: usize,
}

/// The value of a lower-case hexadecimal digit.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// The bytes of a text of exactly twice as many digits.
fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    bytes?.try_into().ok()
}

macro_rules! hex_bytes {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(pub [u8; $bytes]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidHex;
            fn from_str(text: &str) -> Result<Self, InvalidHex> {
                from_hex(text).map(Self).ok_or(InvalidHex { kind: $kind, digits: 2 * $bytes })
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidHex;
            fn try_from(text: String) -> Result<Self, InvalidHex> {
                text.parse()
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let digits = 2 * $bytes;
                schemars::json_schema!({
                    "type": "string",
                    "pattern": format!("^[0-9a-f]{{{digits}}}$"),
                    "description": concat!($kind, ": lower-case hexadecimal digits"),
                })
            }
        }

        impl From<$name> for String {
            fn from(bytes: $name) -> String {
                bytes.to_string()
            }
        }
    };
}

hex_bytes!(
    /// A SHA-256.
    Hash, 32, "a hash"
);
hex_bytes!(
    /// What a commitment commits to. Known to nobody before the draw; printed as its digits, because it is
    /// part of a record only once it is revealed.
    Secret, 32, "a secret"
);
hex_bytes!(
    /// What keeps outsiders from testing who joined: random, one for each who joins, known to its holder.
    Nonce, 16, "a nonce"
);
hex_bytes!(
    /// A beacon's signature: a compressed point of the group G1 of BLS12-381.
    Signature, 48, "a signature"
);
hex_bytes!(
    /// The public key of a beacon's chain: a compressed point of the group G2 of BLS12-381.
    PublicKey, 96, "a public key"
);

hex_bytes!(
    /// The name of a map: the first half of the SHA-256 of its document.
    MapHash, 16, "a map's hash"
);

impl Hash {
    /// The SHA-256 of some parts, one behind the other.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        parts.iter().for_each(|part| hash.update(part));
        Self(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_has_one_text() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        // FIPS 180-2, appendix B.1.
        let hash = Hash::of_parts(&[b"a", b"", b"bc"]);
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.parse(), Ok(hash));
        assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{text}\""));
        for bad in
            ["", "ba", &text[1..], &text.to_uppercase(), &format!("{text}00"), &"g".repeat(64)]
        {
            assert!(bad.parse::<Hash>().is_err(), "{bad}");
            assert!(serde_json::from_str::<Hash>(&format!("\"{bad}\"")).is_err(), "{bad}");
        }
        assert!("00".repeat(16).parse::<Nonce>().is_ok());
        assert!("00".repeat(48).parse::<Signature>().is_ok());
        assert!("00".repeat(96).parse::<PublicKey>().is_ok());
        assert!("00".repeat(32).parse::<Secret>().is_ok());
    }
}
