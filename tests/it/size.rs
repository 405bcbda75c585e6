//! The size of tests that are about large numbers: a tenth in `make test`, and all of it in `make test-all`.

/// The full size if `ONSALE_FULL_SIZE` is set, or else a tenth of it.
pub fn sized(full: u32) -> u32 {
    if std::env::var_os("ONSALE_FULL_SIZE").is_some() { full } else { full / 10 }
}
