//! The cipher suite that a connection offers first.

use std::sync::Once;

use rustls::CipherSuite;
use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// Makes every TLS connection of the process ask for AES-128 before AES-256, as AWS's own endpoints
/// prefer it: its handshake hashes by SHA-256, for which processors have instructions, and not by
/// SHA-384, which took a tenth of a function's cold start (docs/cold-start.md). A server still chooses.
pub(super) fn ask_for_aes_128_first() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut provider = aws_lc_rs::default_provider();
        let is_first = |suite| suite == CipherSuite::TLS13_AES_128_GCM_SHA256;
        provider.cipher_suites.sort_by_key(|suite| !is_first(suite.suite()));
        // Whoever has chosen one for the process before keeps it.
        let _: Result<(), _> = CryptoProvider::install_default(provider);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aes_128_comes_first_and_nothing_is_lost() {
        ask_for_aes_128_first();
        let of = |provider: &CryptoProvider| {
            provider.cipher_suites.iter().map(|suite| suite.suite()).collect::<Vec<_>>()
        };
        let chosen = of(CryptoProvider::get_default().unwrap());
        assert_eq!(chosen[0], CipherSuite::TLS13_AES_128_GCM_SHA256);
        let (mut chosen, mut default) = (chosen, of(&aws_lc_rs::default_provider()));
        chosen.sort_by_key(|suite| u16::from(*suite));
        default.sort_by_key(|suite| u16::from(*suite));
        assert_eq!(chosen, default);
    }
}
