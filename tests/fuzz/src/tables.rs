//! Several files in one input: each begins with a line `=== NAME`.

use std::collections::HashMap;

/// The files of an input by name; what stands before the first is under no name at all.
pub(crate) fn files(input: &[u8]) -> HashMap<&str, Vec<u8>> {
    let mut files: HashMap<&str, Vec<u8>> = HashMap::new();
    let mut name = "";
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        let heading = line.strip_prefix(b"=== ").and_then(|name| std::str::from_utf8(name).ok());
        match heading {
            Some(heading) => name = heading.trim(),
            None => files.entry(name).or_default().extend_from_slice(line),
        }
    }
    files
}
