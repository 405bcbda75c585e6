//! What Lambda's machines must be able to run, read from the binaries themselves.

use std::fs;

use super::rie::{FUNCTIONS, target};

/// The newest glibc that provided.al2023 has.
const NEWEST_GLIBC: (u32, u32) = (2, 34);

/// What a binary was built for, by the number that its header has for the processor, and the newest
/// glibc that it asks for.
fn needs(elf: &[u8]) -> (u16, (u32, u32)) {
    assert_eq!(&elf[..6], b"\x7fELF\x02\x01", "a 64-bit, little-endian ELF file");
    let machine = u16::from_le_bytes([elf[18], elf[19]]);
    let text = String::from_utf8_lossy(elf);
    let version = |rest: &str| {
        let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let mut numbers = digits.split('.').map(|number| number.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    };
    let newest = text.split("GLIBC_").skip(1).map(version).max();
    (machine, newest.unwrap_or_default())
}

/// The processor that this machine has not, as Lambda calls it, and its number in an ELF header.
///
/// Source: e_machine in the ELF specification and its supplement for 64-bit Arm.
const OTHER: (&str, u16) =
    if cfg!(target_arch = "x86_64") { ("arm64", 183) } else { ("x86_64", 62) };

#[test]
#[ignore = "needs the functions for the other processor: `scripts/functions-as-deployed` builds them and runs it"]
fn every_function_is_built_for_the_other_processor_and_the_runtime() {
    let (arch, machine) = OTHER;
    for function in FUNCTIONS {
        let place = target().join("quick").join(format!("lambda-{arch}")).join(function);
        let bootstrap = place.join("bootstrap");
        let elf = fs::read(&bootstrap).unwrap_or_else(|error| {
            panic!("{}: {error}: ARCH={arch} scripts/lambda --quick", bootstrap.display())
        });
        let (built_for, glibc) = needs(&elf);
        assert_eq!(built_for, machine, "{function}");
        assert!(glibc > (2, 0) && glibc <= NEWEST_GLIBC, "{function}: {glibc:?}");
        let zip = fs::metadata(place.join("bootstrap.zip")).unwrap();
        assert!(zip.len() > 0 && zip.len() < elf.len() as u64, "{function}");
    }
}

/// This test's own program needs the glibc of this machine: what it reads of binaries is so.
#[test]
fn a_binary_of_this_machine_is_read_aright() {
    let (machine, glibc) = needs(&fs::read(std::env::current_exe().unwrap()).unwrap());
    let expected = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    assert_eq!(machine, expected);
    assert!(glibc > (2, 17), "{glibc:?}");
}
