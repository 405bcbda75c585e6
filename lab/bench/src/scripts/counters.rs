//! What the server counts by itself: how often each command ran, and for how long.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;

use super::Error;

/// One command since the server began, or between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of times that it ran, also inside of scripts.
    pub calls: u64,
    /// Time that it ran, in microseconds. The time of a script contains that of its commands.
    pub micros: u64,
}

/// Each command by its name, as `INFO commandstats` has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, Count>);

impl Counters {
    /// Reads what the server has counted.
    ///
    /// # Errors
    /// Fails if it does not say.
    pub async fn read(connection: &mut MultiplexedConnection) -> Result<Self, Error> {
        let info: String = redis::cmd("INFO").arg("commandstats").query_async(connection).await?;
        Ok(Self::parse(&info))
    }

    /// Reads `cmdstat_<name>:calls=1,usec=2,…`, one command a line.
    fn parse(info: &str) -> Self {
        let count = |line: &str| {
            let (name, fields) = line.strip_prefix("cmdstat_")?.split_once(':')?;
            let field = |name: &str| {
                let of = |field: &str| field.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
                fields.split(',').find_map(of)
            };
            Some((name.to_owned(), Count { calls: field("calls")?, micros: field("usec")? }))
        };
        Self(info.lines().filter_map(count).collect())
    }

    /// The counts since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |(name, now): (&String, &Count)| {
            let before = earlier.of(name);
            let calls = now.calls - before.calls;
            let micros = now.micros - before.micros;
            (calls > 0).then(|| (name.clone(), Count { calls, micros }))
        };
        Self(self.0.iter().filter_map(less).collect())
    }

    /// Adds what was counted at another time.
    pub fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            sum.calls += count.calls;
            sum.micros += count.micros;
        }
    }

    /// One command; nothing if it never ran.
    #[must_use]
    pub fn of(&self, name: &str) -> Count {
        self.0.get(name).copied().unwrap_or_default()
    }

    #[must_use]
    pub fn scripts(&self) -> Count {
        self.of("evalsha")
    }

    /// What ran inside of the scripts. Nothing else may have run but scripts and looks.
    #[must_use]
    pub fn inside(&self) -> Count {
        let outside = ["evalsha", "info"];
        let inside = self.0.iter().filter(|(name, _)| !outside.contains(&name.as_str()));
        inside.fold(Count::default(), |sum, (_, count)| Count {
            calls: sum.calls + count.calls,
            micros: sum.micros + count.micros,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_what_runs_inside_of_them_are_told_apart() {
        let before = "# Commandstats\r\ncmdstat_info:calls=1,usec=50,usec_per_call=50.00\r\n\
                      cmdstat_evalsha:calls=2,usec=20,usec_per_call=10.00,rejected_calls=0\r\n";
        let after = "# Commandstats\r\ncmdstat_evalsha:calls=5,usec=60,usec_per_call=12.00\r\n\
                     cmdstat_info:calls=2,usec=99,usec_per_call=49.50\r\n\
                     cmdstat_hget:calls=6,usec=7,usec_per_call=1.17\r\n\
                     cmdstat_config|get:calls=1,usec=2,usec_per_call=2.00\r\n";
        let between = Counters::parse(after).since(&Counters::parse(before));
        assert_eq!(between.scripts(), Count { calls: 3, micros: 40 });
        assert_eq!(between.of("hget"), Count { calls: 6, micros: 7 });
        assert_eq!(between.inside(), Count { calls: 7, micros: 9 });
        assert_eq!(between.of("hset"), Count::default());
        let mut twice = between.clone();
        twice.add(&between);
        assert_eq!(twice.scripts(), Count { calls: 6, micros: 80 });
    }
}
