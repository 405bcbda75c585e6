//! The scripts of `lua/` with their includes.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, OnceLock};

use super::contract::Contract;
use super::{admit, hold, load, mark, release, repair, restore, sell};

/// A script from its contract and its files in `lua/`, includes first. `refused_when_full` is for
/// scripts that take something: Redis refuses them before they begin when its memory is full.
/// `runs_when_full` is for scripts that settle what is there already.
macro_rules! script {
    ($contract:expr, refused_when_full: $($file:literal)+) => {
        $crate::redis::script::Script::new(
            &$contract,
            concat!("#!lua\n", $(include_str!(concat!("../../../lua/", $file))),+).into(),
        )
    };
    ($contract:expr, runs_when_full: $($file:literal)+) => {
        $crate::redis::script::Script::new(
            &$contract,
            concat!(
                "#!lua flags=allow-oom\n",
                $(include_str!(concat!("../../../lua/", $file))),+
            )
            .into(),
        )
    };
}
pub(super) use script;

/// One script: its source with all includes, its hash and its contract.
#[derive(Debug, Clone)]
pub struct Script {
    contract: &'static Contract,
    source: Cow<'static, str>,
    /// Computed when it is first called: no function calls all scripts.
    hash: OnceLock<String>,
}

impl Script {
    pub(super) fn new(contract: &'static Contract, source: Cow<'static, str>) -> Self {
        Self { contract, source, hash: OnceLock::new() }
    }

    /// Its keys, arguments and replies.
    #[must_use]
    pub fn contract(&self) -> &'static Contract {
        self.contract
    }

    /// The SHA-1 of its source, by which a server that has seen the script knows it.
    pub(super) fn hash(&self) -> &str {
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
        load: load::script(),
        hold: hold::script(),
        sell: sell::script(),
        release: release::script(),
        mark: mark::script(),
        restore: restore::script(),
        repair: repair::script(),
        admit: admit::script(),
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
