//! How many files this process may have open: connections are files, too.

/// Files that an engine needs in the worst case: every connection of the gateway, and two connections to
/// the stores for each invocation, both ends of which are in this process.
pub const NEEDED: u64 = 1024;
/// Fewer than this are not enough for a handful of buyers.
pub const LEAST: u64 = 256;
/// The line of the kernel's table. Source: proc(5).
const LINE: &str = "Max open files";

/// The limit of open files (`ulimit -n`); `None` where the system does not say, and without a limit.
#[must_use]
pub fn limit() -> Option<u64> {
    read(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

fn read(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(LINE))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What a limit means for an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Enough,
    /// It runs, with fewer connections than it is meant to have.
    Few(u64),
    /// It would not run for long.
    TooFew(u64),
}

impl Verdict {
    /// The verdict on a limit.
    #[must_use]
    pub fn of(limit: Option<u64>) -> Self {
        match limit {
            Some(limit) if limit < LEAST => Self::TooFew(limit),
            Some(limit) if limit < NEEDED => Self::Few(limit),
            Some(_) | None => Self::Enough,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_read_and_judged() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max core file size        0                    unlimited            bytes     \n\
            Max open files            200                  20000                files     \n";
        assert_eq!(read(table), Some(200));
        assert_eq!(read(&table.replace("200 ", "unlimited ")), None);
        assert_eq!(read(""), None);
        assert!(limit().is_none_or(|limit| limit > 2));
        assert_eq!(Verdict::of(None), Verdict::Enough);
        assert_eq!(Verdict::of(Some(1024)), Verdict::Enough);
        assert_eq!(Verdict::of(Some(1023)), Verdict::Few(1023));
        assert_eq!(Verdict::of(Some(255)), Verdict::TooFew(255));
    }
}
