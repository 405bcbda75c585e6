//! Signatures computed apart from the engine's own code, and what a forger does to signed text.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The HMAC-SHA256 of a text.
pub(crate) fn tag(key: &[u8], text: &[u8]) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, key), text).as_ref().to_vec()
}

/// The claims of a token (RFC 7515, compact) that one of these keys has signed.
pub(crate) fn claims(token: &str, keys: &[&[u8]]) -> Option<Value> {
    let (signed, signature) = token.rsplit_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    let is_signed = keys.iter().any(|key| tag(key, signed.as_bytes()) == signature);
    let (_, claims) = signed.split_once('.').filter(|_| is_signed)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// A token of any header and claims, signed.
pub(crate) fn token(key: &[u8], header: &[u8], claims: &[u8]) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let tag = tag(key, signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

/// A text with edits: of each four bytes two say where, one what is done (replace, insert, remove),
/// and one with which character.
pub(crate) fn edited(text: &str, edits: &[u8]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for edit in edits.chunks_exact(4).take(8) {
        let at = usize::from(u16::from_be_bytes([edit[0], edit[1]])) % (bytes.len() + 1);
        let byte = edit[3] & 0x7f;
        match edit[2] % 3 {
            0 if at < bytes.len() => bytes[at] = byte,
            1 if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.insert(at, byte),
        }
    }
    // Characters of seven bits put into text of seven bits.
    String::from_utf8_lossy(&bytes).into_owned()
}
