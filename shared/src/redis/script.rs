//! The scripts of `lua/` with their includes.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, OnceLock};

use super::contract::Contract;

/// A script from its files in `lua/`, includes first. `refused_when_full` is for
/// scripts that take something: Redis refuses them before they begin when its memory is full.
/// `runs_when_full` is for scripts that settle what is there already.
macro_rules! script {
    (refused_when_full: $($file:literal)+) => {
        $crate::redis::script::Script::new(
            concat!("#!lua\n", $(include_str!(concat!("../../../lua/", $file))),+),
        )
    };
    (runs_when_full: $($file:literal)+) => {
        $crate::redis::script::Script::new(
            concat!("#!lua flags=allow-oom\n", $(include_str!(concat!("../../../lua/", $file))),+),
        )
    };
}
pub(super) use script;

/// One script: its source with all includes, its hash and its contract.
#[derive(Debug, Clone)]
pub struct Script {
    source: Cow<'static, str>,
    /// The source whose header is the contract; a planted mistake leaves it as it is.
    header: &'static str,
    // Both are worked out at the first call: no function calls all scripts.
    contract: OnceLock<Contract>,
    hash: OnceLock<String>,
}

impl Script {
    pub(super) fn new(source: &'static str) -> Self {
        let (contract, hash) = (OnceLock::new(), OnceLock::new());
        Self { source: source.into(), header: source, contract, hash }
    }

    /// The keys, arguments and replies that the header names.
    ///
    /// # Panics
    /// If the header cannot be read. A test reads that of each script.
    pub fn contract(&self) -> &Contract {
        let read = || Contract::from_header(self.header).unwrap_or_else(|fault| panic!("{fault}"));
        self.contract.get_or_init(read)
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
        occurs_once.then(|| Self {
            source: self.source.replace(fragment, with).into(),
            header: self.header,
            contract: self.contract.clone(),
            hash: OnceLock::new(),
        })
    }
}

/// Writes [`Scripts`] from the names of the scripts, each of which has its file beside this one.
macro_rules! scripts {
    ($($name:ident)+) => {
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
