//! The size of tests that are about large numbers, or about many of a kind: a part in `make test`, and all of it in
//! `make test-all`.

/// The full size if `ONSALE_FULL_SIZE` is set, or else a tenth of it.
#[must_use]
pub fn sized(full: u32) -> u32 {
    if is_full() { full } else { full / 10 }
}

/// All of these at the full size, or else the first `few`.
#[must_use]
pub fn first_of<T>(all: &[T], few: usize) -> &[T] {
    if is_full() { all } else { &all[..few.min(all.len())] }
}

/// True if `ONSALE_FULL_SIZE` is set, as in `make test-all`.
#[must_use]
pub fn is_full() -> bool {
    std::env::var_os("ONSALE_FULL_SIZE").is_some()
}
