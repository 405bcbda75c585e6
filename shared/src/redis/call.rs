//! One call of a script and its reply, both checked against the contract.

use redis::{Cmd, ToRedisArgs, Value};

use super::connection::Connection;
use super::contract::Contract;
use super::keys::InventoryKeys;
use super::script::Script;
use engine::domain::inventory::HeldLine;
use engine::ports::{MAX_REQUEST_ARGUMENTS, StoreError, Stored};

/// One call of a script, its keys and arguments named as the contract names them.
#[derive(Debug)]
pub(super) struct Call<'s> {
    script: &'s Script,
    keys: Vec<String>,
    key_names: Vec<&'static str>,
    args: Vec<Vec<u8>>,
    arg_names: Vec<&'static str>,
}

impl<'s> Call<'s> {
    pub(super) fn new(script: &'s Script) -> Self {
        let (keys, args) = (Vec::new(), Vec::new());
        Self { script, keys, key_names: Vec::new(), args, arg_names: Vec::new() }
    }

    /// A call of a script that is given lines whose seats are known: it takes the sale, what is due, and
    /// of each line the tier, its counters and both bitmaps.
    pub(super) fn over_freed_lines(
        script: &'s Script,
        keys: InventoryKeys<'_>,
        lines: &[HeldLine],
    ) -> Self {
        let mut call = Self::new(script).key("sale", keys.sale()).key("due", keys.due());
        for line in lines {
            call.add_key("tier[line]", keys.tier(&line.tier));
            call.add_key("freed[line]", keys.freed(&line.tier));
            call.add_key("taken[line]", keys.taken(&line.tier));
            call.add_key("sold[line]", keys.sold(&line.tier));
        }
        call
    }

    pub(super) fn key(mut self, name: &'static str, key: String) -> Self {
        self.add_key(name, key);
        self
    }

    pub(super) fn add_key(&mut self, name: &'static str, key: String) {
        self.keys.push(key);
        self.key_names.push(name);
    }

    pub(super) fn arg(mut self, name: &'static str, value: impl ToRedisArgs) -> Self {
        self.add_arg(name, value);
        self
    }

    pub(super) fn add_arg(&mut self, name: &'static str, value: impl ToRedisArgs) {
        value.write_redis_args(&mut self.args);
        self.arg_names.push(name);
        debug_assert_eq!(self.args.len(), self.arg_names.len(), "{name} is not one argument");
    }

    /// Number of the request's arguments: the command, the script, the number of keys, the keys, and the
    /// script's own arguments.
    fn argument_count(&self) -> usize {
        3 + self.keys.len() + self.args.len()
    }

    /// Refuses what a cache would, and another would not.
    fn refuse_too_many_arguments(&self) -> Stored<()> {
        let (name, count) = (self.script.contract().script, self.argument_count());
        if count > MAX_REQUEST_ARGUMENTS {
            let text = format!(
                "{name} is called with {count} arguments, the cache takes {MAX_REQUEST_ARGUMENTS}"
            );
            return Err(StoreError::Contract(text));
        }
        Ok(())
    }

    /// The call as a command of Redis: `verb` is `EVAL` or `EVALSHA`, `script` its source or hash.
    fn command(&self, verb: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(script).arg(self.keys.len()).arg(&self.keys);
        for arg in &self.args {
            command.arg(arg.as_slice());
        }
        command
    }

    /// The command that [`Call::send`] sends first.
    pub(super) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", self.script.hash())
    }

    /// Sends the call, by hash first: the source follows only if the server does not know it.
    ///
    /// # Errors
    /// As [`Connection::query`]; `Contract`, and nothing is sent, if it has more arguments than a request
    /// to the cache may have.
    pub(super) async fn send(self, connection: &Connection) -> Stored<Reply> {
        let contract = self.script.contract();
        let name = contract.script;
        debug_assert!(contract.takes_keys(&self.key_names), "{name}: {:?}", self.key_names);
        debug_assert!(contract.takes_args(&self.arg_names), "{name}: {:?}", self.arg_names);
        self.refuse_too_many_arguments()?;
        let value = match connection.call(&self.by_hash()).await? {
            Some(value) => value,
            None => {
                let by_source = self.command("EVAL", self.script.source());
                let missing = || StoreError::Contract(format!("{name}: no script to its source"));
                connection.call(&by_source).await?.ok_or_else(missing)?
            }
        };
        Reply::read(contract, value)
    }
}

/// The reply of a script: a tag of its contract and the values that belong to it.
#[derive(Debug)]
pub(super) struct Reply {
    script: &'static str,
    tag: String,
    values: Vec<String>,
}

impl Reply {
    fn read(contract: &Contract, value: Value) -> Stored<Self> {
        let script = contract.script;
        let broken = |what: String| StoreError::Contract(format!("{script} answered {what}"));
        let mut values: Vec<String> = redis::from_redis_value_ref(&value)
            .map_err(|error| broken(format!("{value:?}: {error}")))?;
        if values.is_empty() {
            return Err(broken("nothing".to_owned()));
        }
        let tag = values.remove(0);
        if !contract.answers(&tag, values.len()) {
            return Err(broken(format!("{tag:?} with {values:?}")));
        }
        Ok(Self { script, tag, values })
    }

    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    /// The value `index` places after the tag, as text.
    pub(super) fn text(&self, index: usize) -> Stored<&str> {
        self.values.get(index).map(String::as_str).ok_or_else(|| self.unexpected())
    }

    /// The value `index` places after the tag, as something else than text.
    pub(super) fn value<T: std::str::FromStr>(&self, index: usize) -> Stored<T> {
        self.text(index)?.parse().map_err(|_| self.unexpected())
    }

    /// The error of a reply whose tag or values cannot be decoded.
    pub(super) fn unexpected(&self) -> StoreError {
        let Self { script, tag, values } = self;
        StoreError::Contract(format!("{script} answered {tag:?} with {values:?}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use engine::domain::basics::ids::{Epoch, InventoryId, SaleId, TierId, UserId};
    use engine::domain::basics::tickets::Tickets;
    use engine::domain::basics::time::Timestamp;
    use engine::domain::inventory::{Freed, Load, LoadPart, PartLimit, Terms, TierGrid};
    use engine::domain::sale::SaleState;
    use engine::ports::MAX_REQUEST_ARGUMENTS;

    use super::*;
    use crate::redis::{Bounds, Scripts, Topology, load};

    /// A load of some tiers of 64 legs, and some buyers.
    fn load_of(tiers: usize, buyers: usize) -> Load {
        let terms = Terms {
            state: SaleState::Open,
            opens_at: Timestamp::from_ms(0),
            closes_at: Timestamp::from_ms(1),
            limit: Tickets::new(4),
            leg_count: 64,
        };
        let grid = |index: usize| TierGrid {
            tier: TierId::new(format!("t{index}")).unwrap(),
            row_bytes: 1,
            middles: Vec::new(),
            taken: vec![vec![0]; 64],
            sold: vec![vec![0]; 64],
            freed: Freed::default(),
        };
        let buyer = |index: usize| (UserId::new(index.to_string()).unwrap(), Tickets::new(1));
        Load {
            inventory: InventoryId::whole(SaleId::new("s").unwrap()),
            terms,
            expected: None,
            epoch: Epoch::new("e").unwrap(),
            tiers: (0..tiers).map(grid).collect(),
            holds: BTreeMap::new(),
            bought: (0..buyers).map(buyer).collect(),
        }
    }

    /// Arguments of a part of a load without tiers, holds and buyers.
    const PLAIN: usize = 21;

    /// Sends a part to where nobody listens.
    async fn send(part: &LoadPart, old_tiers: &str) -> (usize, Stored<Reply>) {
        let bounds =
            Bounds { connect: Duration::from_millis(200), attempts: 1, ..Bounds::default() };
        let nobody = Topology::Single("redis://127.0.0.1:1".to_owned());
        let connection = Connection::new(&nobody, bounds).unwrap();
        let scripts = Scripts::standard();
        let call = load::encode(&scripts.load, part, old_tiers).unwrap();
        (call.argument_count(), call.send(&connection).await)
    }

    #[tokio::test]
    async fn a_call_with_too_many_arguments_is_refused_before_it_is_sent() {
        // Planted: a load in one part, as a sale of 30,000 buyers once was.
        let (count, refused) = send(&load_of(1, 30_000).whole(), "").await;
        assert_eq!(count, 60_000 + PartLimit::TIER_ARGUMENTS + PLAIN);
        let Err(StoreError::Contract(says)) = refused else { panic!("{refused:?}") };
        assert_eq!(says, format!("load is called with {count} arguments, the cache takes 3999"));
        let most = (MAX_REQUEST_ARGUMENTS - PLAIN) / 2;
        let (count, fits) = send(&load_of(0, most).whole(), "").await;
        assert_eq!(count, MAX_REQUEST_ARGUMENTS);
        assert!(matches!(fits, Err(StoreError::Unavailable(_))), "it goes to the server: {fits:?}");
        let (_, one_more) = send(&load_of(0, most + 1).whole(), "").await;
        assert!(matches!(one_more, Err(StoreError::Contract(_))), "{one_more:?}");
    }

    #[tokio::test]
    async fn every_part_of_the_largest_load_fits_a_request_also_over_the_largest_of_before() {
        let parts = load_of(64, 30_000).into_parts(PartLimit::STANDARD);
        let old: Vec<String> = (0..64).map(|index| format!("old{index}")).collect();
        let mut most = 0;
        for part in &parts {
            let old_tiers = if part.place == 0 { old.join(";") } else { String::new() };
            let (count, sent) = send(part, &old_tiers).await;
            assert!(matches!(sent, Err(StoreError::Unavailable(_))), "{sent:?}");
            most = most.max(count);
        }
        println!("{} parts, the largest with {most} arguments", parts.len());
        assert!(most <= MAX_REQUEST_ARGUMENTS && parts.len() > 30);
    }
}
