//! The adapter to Redis: the scripts of `lua/`, and the ports [`Seats`](engine::ports::Seats) and
//! [`Gate`](engine::ports::Gate) over them.
//!
//! - [`contract`] says what each script takes and answers;
//! - [`hold_record`] is the text form of a hold;
//! - [`keys`] names every key;
//! - [`connection`] hides which client is behind, and bounds how long it may take.

pub mod connection;
pub mod contract;
pub mod hold_record;
pub mod keys;
mod redis_gate;
mod redis_seats;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, OnceLock};

use redis::{Cmd, ToRedisArgs, Value};

use contract::Contract;
use engine::ports::StoreError;

pub use connection::{Bounds, Connection, Topology};
pub use redis_gate::RedisGate;
pub use redis_seats::RedisSeats;

/// The first line of a script that only takes: it is refused before it begins when memory is full.
macro_rules! needs_memory {
    () => {
        "#!lua\n"
    };
}

/// The first line of a script that settles what is there already, which must go on when memory is
/// full.
macro_rules! needs_no_memory {
    () => {
        "#!lua flags=allow-oom\n"
    };
}

macro_rules! script {
    ($contract:expr, $kind:ident: $($file:literal)+) => {
        Script::new(
            &$contract,
            Cow::Borrowed(concat!($kind!(), $(include_str!(concat!("../../../lua/", $file))),+)),
        )
    };
}

/// One script: its source with all includes, its hash and its contract.
#[derive(Debug, Clone)]
pub struct Script {
    contract: &'static Contract,
    source: Cow<'static, str>,
    /// Computed when it is first called: no function calls all scripts.
    hash: OnceLock<String>,
}

impl Script {
    fn new(contract: &'static Contract, source: Cow<'static, str>) -> Self {
        Self { contract, source, hash: OnceLock::new() }
    }

    /// What it takes and answers.
    #[must_use]
    pub fn contract(&self) -> &'static Contract {
        self.contract
    }

    fn hash(&self) -> &str {
        self.hash.get_or_init(|| redis::Script::new(&self.source).get_hash().to_owned())
    }

    /// Its source, includes first.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The script with one fragment of its source replaced; `None` unless the fragment occurs
    /// exactly once. For tests that plant a mistake and expect it to be found.
    #[must_use]
    pub fn replaced(&self, fragment: &str, with: &str) -> Option<Self> {
        let occurs_once = self.source.matches(fragment).count() == 1;
        occurs_once.then(|| Self::new(self.contract, self.source.replace(fragment, with).into()))
    }
}

/// All scripts.
#[derive(Debug, Clone)]
pub struct Scripts {
    /// `lua/load.lua`
    pub load: Script,
    /// `lua/hold.lua`
    pub hold: Script,
    /// `lua/sell.lua`
    pub sell: Script,
    /// `lua/release.lua`
    pub release: Script,
    /// `lua/mark.lua`
    pub mark: Script,
    /// `lua/restore.lua`
    pub restore: Script,
    /// `lua/repair.lua`
    pub repair: Script,
    /// `lua/admit.lua`
    pub admit: Script,
}

static STANDARD: LazyLock<Arc<Scripts>> = LazyLock::new(|| {
    Arc::new(Scripts {
        load: script!(contract::LOAD_CONTRACT, needs_memory: "include/names.lua" "load.lua"),
        hold: script!(contract::HOLD_CONTRACT, needs_memory:
            "include/names.lua" "include/record.lua" "include/runs.lua" "include/search.lua"
            "hold.lua"),
        sell: script!(contract::SELL_CONTRACT, needs_no_memory:
            "include/names.lua" "include/record.lua" "include/lines.lua" "include/runs.lua"
            "include/bits.lua" "include/grid.lua" "include/walk.lua" "include/bought.lua"
            "sell.lua"),
        release: script!(contract::RELEASE_CONTRACT, needs_no_memory:
            "include/names.lua" "include/record.lua" "include/lines.lua" "include/runs.lua"
            "include/bits.lua" "include/grid.lua" "include/walk.lua" "include/bought.lua"
            "include/freed.lua" "include/give_back.lua" "release.lua"),
        mark: script!(contract::MARK_CONTRACT, needs_no_memory:
            "include/names.lua" "include/record.lua" "include/lines.lua" "include/runs.lua"
            "include/bits.lua" "include/grid.lua" "include/walk.lua" "include/bought.lua"
            "include/freed.lua" "include/give_back.lua" "mark.lua"),
        restore: script!(contract::RESTORE_CONTRACT, needs_memory:
            "include/names.lua" "include/record.lua" "include/lines.lua" "include/runs.lua"
            "include/bits.lua" "include/grid.lua" "include/walk.lua" "include/bought.lua"
            "restore.lua"),
        repair: script!(contract::REPAIR_CONTRACT, needs_no_memory:
            "include/names.lua" "include/lines.lua" "include/runs.lua" "include/bits.lua"
            "include/grid.lua" "include/freed.lua" "repair.lua"),
        admit: script!(contract::ADMIT_CONTRACT, needs_memory: "include/names.lua" "admit.lua"),
    })
});

impl Scripts {
    /// The scripts as they are in `lua/`.
    #[must_use]
    pub fn standard() -> Arc<Self> {
        Arc::clone(&STANDARD)
    }

    /// Each of them.
    #[must_use]
    pub fn all(&self) -> [&Script; 8] {
        let Self { load, hold, sell, release, mark, restore, repair, admit } = self;
        [load, hold, sell, release, mark, restore, repair, admit]
    }
}

/// One call of a script, its keys and arguments named as the contract names them.
#[derive(Debug)]
struct Call<'s> {
    script: &'s Script,
    keys: Vec<String>,
    key_names: Vec<&'static str>,
    args: Vec<Vec<u8>>,
    arg_names: Vec<&'static str>,
}

impl<'s> Call<'s> {
    fn new(script: &'s Script) -> Self {
        let (keys, args) = (Vec::new(), Vec::new());
        Self { script, keys, key_names: Vec::new(), args, arg_names: Vec::new() }
    }

    fn key(mut self, name: &'static str, key: String) -> Self {
        self.add_key(name, key);
        self
    }

    fn add_key(&mut self, name: &'static str, key: String) {
        self.keys.push(key);
        self.key_names.push(name);
    }

    fn arg(mut self, name: &'static str, value: impl ToRedisArgs) -> Self {
        self.add_arg(name, value);
        self
    }

    fn add_arg(&mut self, name: &'static str, value: impl ToRedisArgs) {
        value.write_redis_args(&mut self.args);
        self.arg_names.push(name);
        debug_assert_eq!(self.args.len(), self.arg_names.len(), "{name} is not one argument");
    }

    fn command(&self, verb: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(script).arg(self.keys.len()).arg(&self.keys);
        for arg in &self.args {
            command.arg(arg.as_slice());
        }
        command
    }

    /// Sends the call, by hash first: the source follows only if the server does not know it.
    async fn send(self, connection: &Connection) -> Result<Reply, StoreError> {
        let contract = self.script.contract;
        let name = contract.script;
        debug_assert!(contract.takes_keys(&self.key_names), "{name}: {:?}", self.key_names);
        debug_assert!(contract.takes_args(&self.arg_names), "{name}: {:?}", self.arg_names);
        let by_hash = self.command("EVALSHA", self.script.hash());
        let value = match connection.call(&by_hash).await? {
            Some(value) => value,
            None => {
                let by_source = self.command("EVAL", &self.script.source);
                let missing = || StoreError::Contract(format!("{name}: no script to its source"));
                connection.call(&by_source).await?.ok_or_else(missing)?
            }
        };
        Reply::read(contract, value)
    }
}

/// What a script answered: a tag of its contract and the values that go with it.
#[derive(Debug)]
struct Reply {
    script: &'static str,
    tag: String,
    values: Vec<String>,
}

impl Reply {
    fn read(contract: &'static Contract, value: Value) -> Result<Self, StoreError> {
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

    /// Value `index` as something else than text.
    fn value<T: std::str::FromStr>(&self, index: usize) -> Result<T, StoreError> {
        let value = self.values.get(index).and_then(|text| text.parse().ok());
        value.ok_or_else(|| self.unexpected())
    }

    /// The error of a reply whose tag or values nobody understands.
    fn unexpected(&self) -> StoreError {
        let Self { script, tag, values } = self;
        StoreError::Contract(format!("{script} answered {tag:?} with {values:?}"))
    }
}
