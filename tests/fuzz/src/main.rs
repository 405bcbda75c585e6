//! The fuzzer: libFuzzer with one of the targets, which `ONSALE_FUZZ_TARGET` names. `scripts/fuzz`
//! builds and runs it; the library behind it has what is tried.

#![no_main]

use std::sync::OnceLock;

use fuzz::Target;

/// The variable that names the target.
const VARIABLE: &str = "ONSALE_FUZZ_TARGET";

static TARGET: OnceLock<&Target> = OnceLock::new();

fn target() -> &'static Target {
    TARGET.get_or_init(|| {
        let name = std::env::var(VARIABLE).unwrap_or_default();
        fuzz::target(&name).unwrap_or_else(|| panic!("{VARIABLE}={name} names no target"))
    })
}

libfuzzer_sys::fuzz_target!(
    init: {
        target();
    },
    |input: &[u8]| {
        (target().run)(input);
    }
);
