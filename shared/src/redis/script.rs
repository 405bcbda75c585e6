//! The scripts of `lua/` with their includes.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, OnceLock};

use super::contract::Contract;

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

/// Writes [`Scripts`] from the names of the scripts, each of which has its file beside this one.
macro_rules! scripts {
    ($($name:ident)+) => {
        /// All scripts.
        #[derive(Debug, Clone)]
        pub struct Scripts {
            $(
                #[doc = concat!("`lua/", stringify!($name), ".lua`")]
                pub $name: Script,
            )+
        }

        static STANDARD: LazyLock<Arc<Scripts>> =
            LazyLock::new(|| Arc::new(Scripts { $($name: super::$name::script()),+ }));

        impl Scripts {
            /// Each of them.
            #[must_use]
            pub fn all(&self) -> [&Script; [$(stringify!($name)),+].len()] {
                [$(&self.$name),+]
            }
        }
    };
}

scripts!(load hold sell unsell release mark restore repair recount admit add_tokens unlock);

impl Scripts {
    /// The scripts as they are in `lua/`.
    #[must_use]
    pub fn standard() -> Arc<Self> {
        Arc::clone(&STANDARD)
    }
}
