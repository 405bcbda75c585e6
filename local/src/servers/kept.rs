//! A child process that cannot outlive us, and the signals that stop and wake a process.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Runs a program (`$0` with `$@`) and kills it when this process is gone.
///
/// Our end of the pipe at standard input closes when we close it and also when we are killed with
/// -9, so the program cannot outlive us. The shell ends when the program ends, with its exit code.
const KEEPER: &str = r#"
exec 3<&0
"$0" "$@" </dev/null 3<&- & server=$!
{ read -r _; kill -9 "$server"; } <&3 >/dev/null 2>&1 & watch=$!
wait "$server"; code=$?
kill "$watch" 2>/dev/null
exit "$code"
"#;

/// A child process; killed as `kill -9` does when dropped, and when this process dies, however it
/// does.
#[derive(Debug)]
pub struct Kept(Child);

impl Kept {
    /// Runs `program` in `dir`; its standard output and error go to `output`.
    pub fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        dir: &Path,
        output: (Stdio, Stdio),
        environment: &[(&str, &str)],
    ) -> io::Result<Self> {
        Command::new("sh")
            .arg("-c")
            .arg(KEEPER)
            .arg(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(output.0)
            .stderr(output.1)
            // A group of its own: Ctrl-C at the terminal is for us, who stop it when we are done.
            .process_group(0)
            .spawn()
            .map(Self)
    }

    /// Kills the program as `kill -9` does, and waits until it is gone.
    pub fn kill(&mut self) -> io::Result<()> {
        // Closing our end of the pipe makes the keeper kill it. The keeper exits only after that.
        drop(self.0.stdin.take());
        self.0.wait().map(drop)
    }

    /// The exit status; `None` while it runs.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            tracing::warn!(%error, "a child process could not be stopped");
        }
    }
}

/// A signal to a process by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Suspend the process (`SIGSTOP`).
    Stop,
    /// Resume it (`SIGCONT`).
    Continue,
    /// End it at once (`SIGKILL`).
    Kill,
}

/// Sends a signal. The standard library can only signal its own children; every shell can signal the
/// rest.
pub fn signal(pid: &str, signal: Signal) -> io::Result<()> {
    let name = match signal {
        Signal::Stop => "-STOP",
        Signal::Continue => "-CONT",
        Signal::Kill => "-KILL",
    };
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill \"$0\" \"$1\"", name, pid]).stdin(Stdio::null()).stderr(Stdio::null());
    let status = kill.status()?;
    let failed = || io::Error::other(format!("process {pid} cannot be sent {name}"));
    status.success().then_some(()).ok_or_else(failed)
}
