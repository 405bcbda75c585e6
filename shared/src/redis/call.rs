//! One call of a script and its reply, both checked against the contract.

use redis::{Cmd, ToRedisArgs, Value};

use super::connection::Connection;
use super::contract::Contract;
use super::keys::SaleKeys;
use super::script::Script;
use engine::domain::inventory::HeldLine;
use engine::ports::{StoreError, Stored};

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

    /// A call of a script that is given lines whose seats are known: it takes the sale, what is due,
    /// and every bitmap of the lines.
    pub(super) fn over_held_lines(
        script: &'s Script,
        keys: SaleKeys<'_>,
        lines: &[HeldLine],
    ) -> Self {
        let mut call = Self::new(script).key("sale", keys.sale()).key("due", keys.due());
        for line in lines {
            call.add_key("tier[line]", keys.tier(&line.tier));
            for leg in line.legs.iter() {
                call.add_key("taken[line,leg]", keys.taken(&line.tier, leg));
                call.add_key("sold[line,leg]", keys.sold(&line.tier, leg));
            }
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
    pub(super) async fn send(self, connection: &Connection) -> Stored<Reply> {
        let contract = self.script.contract();
        let name = contract.script;
        debug_assert!(contract.takes_keys(&self.key_names), "{name}: {:?}", self.key_names);
        debug_assert!(contract.takes_args(&self.arg_names), "{name}: {:?}", self.arg_names);
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
    fn read(contract: &'static Contract, value: Value) -> Stored<Self> {
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
