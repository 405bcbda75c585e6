//! Finds the Valkey or Redis server binary to run.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::Error;

/// Directory into which `make setup` installs the servers, below the root of the repository.
const SETUP_DIR: &str = ".onsale/tools";

/// The oldest major version of either server that can be told its cluster port.
const MIN_MAJOR: u32 = 7;

/// The server program to run: Valkey or Redis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Flavour {
    /// Whichever is found first, Valkey before Redis.
    #[default]
    Auto,
    Valkey,
    Redis,
}

impl Flavour {
    /// The one flavour, or both in order of preference.
    fn choices(self) -> &'static [Self] {
        match self {
            Self::Auto => &[Self::Valkey, Self::Redis],
            Self::Valkey => &[Self::Valkey],
            Self::Redis => &[Self::Redis],
        }
    }

    /// The name of the program.
    fn program(self) -> &'static str {
        match self {
            Self::Auto => "valkey-server or redis-server",
            Self::Valkey => "valkey-server",
            Self::Redis => "redis-server",
        }
    }

    /// The environment variable that names the binary and overrules every other place.
    fn variable(self) -> &'static str {
        match self {
            Self::Auto | Self::Valkey => "ONSALE_VALKEY_SERVER",
            Self::Redis => "ONSALE_REDIS_SERVER",
        }
    }

    /// Beginning of the program's output of `--version`.
    fn signature(self) -> &'static str {
        match self {
            Self::Auto => "",
            Self::Valkey => "Valkey server v=",
            Self::Redis => "Redis server v=",
        }
    }
}

/// Directories in which a binary may be.
#[derive(Debug, Default)]
struct Places {
    /// Directories of the PATH.
    path: Vec<PathBuf>,
    /// Directories that may be, or lie in, a repository where `make setup` has run.
    starts: Vec<PathBuf>,
}

impl Places {
    /// The directories as this process sees them.
    fn from_this_process() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // The binary may run anywhere (its target directory may lie outside the repository), so
        // look from the current directory, from the binary, and from where it was built.
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf();
        Self {
            path: std::env::split_paths(&path).collect(),
            starts: [std::env::current_dir().ok(), std::env::current_exe().ok()]
                .into_iter()
                .flatten()
                .chain([built_from])
                .collect(),
        }
    }

    /// Paths at which a program of `flavours` may be, the preferred one first.
    fn candidates(&self, flavours: &[Flavour]) -> Vec<(Flavour, PathBuf)> {
        let set_up = self.starts.iter().flat_map(|start| start.ancestors());
        let directories = [set_up.map(|root| root.join(SETUP_DIR)).collect(), self.path.clone()];
        let mut seen = HashSet::new();
        directories
            .iter()
            .flat_map(|directories| {
                flavours.iter().flat_map(move |flavour| {
                    let at = move |directory: &PathBuf| directory.join(flavour.program());
                    directories.iter().map(move |d| (*flavour, at(d)))
                })
            })
            .filter(|(_, path)| seen.insert(path.clone()))
            .collect()
    }
}

/// The binary to run for `flavour`, and which of the two it is.
///
/// The environment variable is looked at first, then what `scripts/setup` decided on, which it has seen run a script
/// (a program on the PATH may say its version and not run), then PATH. Each binary is asked its version, because some
/// systems install Valkey under the name `redis-server`.
///
/// # Errors
///
/// [`Error::NoBinary`] when there is none, [`Error::WrongBinary`] when the environment names
/// something else.
pub(super) async fn find(flavour: Flavour) -> Result<(Flavour, PathBuf), Error> {
    for choice in flavour.choices() {
        if let Some(named) = std::env::var_os(choice.variable()) {
            return named_in_environment(*choice, named).await;
        }
    }
    for (choice, path) in Places::from_this_process().candidates(flavour.choices()) {
        if is_server(choice, &path).await {
            return Ok((choice, path));
        }
    }
    Err(Error::NoBinary { requested: flavour.program(), variable: flavour.variable() })
}

/// The binary the environment names, which must be of that flavour.
async fn named_in_environment(
    flavour: Flavour,
    named: OsString,
) -> Result<(Flavour, PathBuf), Error> {
    let path = PathBuf::from(named);
    if is_server(flavour, &path).await {
        return Ok((flavour, path));
    }
    Err(Error::WrongBinary { variable: flavour.variable(), requested: flavour.program(), path })
}

/// True if `path` runs here and says that it is a server of this flavour, and new enough.
async fn is_server(flavour: Flavour, path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    match Command::new(path).arg("--version").output().await {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            major_version(flavour, &said).is_some_and(|major| major >= MIN_MAJOR)
        }
        Err(_) => false,
    }
}

/// The major version in what a server of this flavour says to `--version`.
fn major_version(flavour: Flavour, said: &str) -> Option<u32> {
    let version = said.strip_prefix(flavour.signature())?;
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_setup_installed_comes_before_the_path_and_valkey_before_redis() {
        let places = Places {
            path: vec!["/bin".into(), "/opt".into()],
            starts: vec!["/repo/tests".into(), "/repo".into()],
        };
        let paths = |flavour: Flavour| {
            let found = places.candidates(flavour.choices());
            let shown = found.iter().map(|(_, path)| path.display().to_string());
            shown.collect::<Vec<_>>()
        };
        assert_eq!(
            paths(Flavour::Redis),
            [
                "/repo/tests/.onsale/tools/redis-server",
                "/repo/.onsale/tools/redis-server",
                "/.onsale/tools/redis-server",
                "/bin/redis-server",
                "/opt/redis-server",
            ]
        );
        assert_eq!(
            paths(Flavour::Auto)[6..],
            ["/bin/valkey-server", "/opt/valkey-server", "/bin/redis-server", "/opt/redis-server",]
        );
    }

    #[test]
    fn a_version_counts_only_for_its_own_flavour() {
        let valkey = "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64";
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64";
        assert_eq!(major_version(Flavour::Valkey, valkey), Some(9));
        assert_eq!(major_version(Flavour::Redis, redis), Some(7));
        assert_eq!(major_version(Flavour::Redis, valkey), None);
        assert_eq!(major_version(Flavour::Valkey, "GNU bash, version 5"), None);
    }

    #[tokio::test]
    async fn a_program_that_is_no_server_is_refused() {
        let refused = named_in_environment(Flavour::Valkey, "/bin/sh".into()).await;
        assert!(matches!(refused, Err(Error::WrongBinary { .. })));
    }
}
