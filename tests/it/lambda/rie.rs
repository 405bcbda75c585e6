//! One function in AWS's Runtime Interface Emulator, which comes with aws-sam-cli: the very loop that
//! hands events to a `bootstrap` in Lambda, without a container.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Mutex;

use local::environment::Variables;
use local::servers::free_port;
use shared::runtime::functions::Function;
use text::root;

/// The longest time until the emulator listens.
const DEADLINE: Duration = Duration::from_secs(120);

pub const FUNCTIONS: [&str; Function::ALL.len()] = Function::NAMES;

pub fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// The program of a function, as cargo has built it beside the tests.
pub fn bootstrap(function: &str) -> PathBuf {
    crate::program::program(function)
}

/// This machine's processor as Lambda calls it.
fn arch() -> &'static str {
    if std::env::consts::ARCH == "aarch64" { "arm64" } else { std::env::consts::ARCH }
}

fn emulator() -> PathBuf {
    let libraries = root().join(".onsale/tools/sam/lib");
    let python = std::fs::read_dir(&libraries).into_iter().flatten().flatten();
    let name = format!("site-packages/samcli/local/rapid/aws-lambda-rie-{}", arch());
    let found = python.map(|python| python.path().join(&name)).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("no {name} below {}: make setup", libraries.display()))
}

/// A function in an emulator of its own; stopped when dropped.
pub struct Sandbox {
    child: Child,
    url: String,
    http: reqwest::Client,
    /// Two calls at once are more than the emulator bears.
    one_at_a_time: Mutex<()>,
    directory: TempDir,
}

impl Sandbox {
    /// Starts a function with these variables and no others.
    pub async fn start(function: &str, variables: &Variables) -> Self {
        Self::run(&bootstrap(function), function, variables).await
    }

    /// Starts a program as a function.
    pub async fn run(bootstrap: &Path, name: &str, variables: &Variables) -> Self {
        let asked_since = Instant::now();
        loop {
            if let Some(sandbox) = Self::attempt(bootstrap, name, variables).await {
                return sandbox;
            }
            assert!(asked_since.elapsed() < DEADLINE, "the emulator does not start for {name}");
        }
    }

    /// Starts it on two free ports; `None` if somebody else was quicker to take one.
    async fn attempt(bootstrap: &Path, name: &str, variables: &Variables) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let (port, runtime_port) = (free_port().unwrap(), free_port().unwrap());
        let log = File::create(directory.path().join("log")).unwrap();
        let mut command = Command::new(emulator());
        command
            .args(["--log-level", "info"])
            .args(["--runtime-interface-emulator-address", &format!("127.0.0.1:{port}")])
            .args(["--runtime-api-address", &format!("127.0.0.1:{runtime_port}")])
            .arg(bootstrap)
            .env_clear()
            .env("AWS_LAMBDA_FUNCTION_NAME", name)
            .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
            .env("AWS_LAMBDA_FUNCTION_TIMEOUT", "30")
            .envs(variables)
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            // It and its function are one group, so that both can be stopped by their own handle.
            .process_group(0);
        let child = command.spawn().unwrap();
        let url = format!("http://127.0.0.1:{port}/2015-03-31/functions/function/invocations");
        let http = reqwest::Client::new();
        let mut sandbox = Self { child, url, http, one_at_a_time: Mutex::default(), directory };
        let started = Instant::now();
        while started.elapsed() < DEADLINE {
            if sandbox.child.try_wait().unwrap().is_some() {
                return None;
            }
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Some(sandbox);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the emulator does not listen: {}", sandbox.log());
    }

    /// The function's answer to an event.
    pub async fn invoke(&self, event: &Value) -> Value {
        let _turn = self.one_at_a_time.lock().await;
        let sent = self.http.post(&self.url).body(event.to_string()).send().await;
        let answered = match sent {
            Ok(reply) => reply.text().await,
            Err(error) => Err(error),
        };
        let text = answered.unwrap_or_else(|error| panic!("{error}: {}", self.log()));
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}: {}", self.log()))
    }

    /// What the emulator and the function have written.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _gone = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ended = self.child.wait();
    }
}
