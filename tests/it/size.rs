//! The size of tests that are about large numbers: a tenth in `make test`, and all of it in `make test-all`.

/// The full size if `ONSALE_FULL_SIZE` is set, or else a tenth of it.
pub fn sized(full: u32) -> u32 {
    if is_full() { full } else { full / 10 }
}

/// How many mistakes are planted against each rule of the template, which is translated anew for each: the first, or all of them
/// at the full size.
pub fn planted() -> usize {
    if is_full() { usize::MAX } else { 1 }
}

fn is_full() -> bool {
    std::env::var_os("ONSALE_FULL_SIZE").is_some()
}
