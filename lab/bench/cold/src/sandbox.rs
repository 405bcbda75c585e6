//! One sandbox: a function's real binary as a child process, fed by a Runtime API of its own. What it
//! costs is what the kernel has counted for its threads.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use axum::body::Bytes;
use tokio::process::{Child, Command};

use crate::Failure;
use crate::runtime_api::RuntimeApi;

/// A running function; killed when dropped.
pub struct Sandbox {
    child: Child,
    api: RuntimeApi,
}

/// Usage of a process so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    /// Processor time of all threads there are, in milliseconds.
    pub cpu_ms: f64,
    /// The most memory that it ever had, in megabytes.
    pub peak_mb: f64,
}

impl Sandbox {
    /// Starts a function and waits until it asks for its first event: its init is over then.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(
        bootstrap: &Path,
        environment: &[(String, String)],
    ) -> Result<Self, Failure> {
        let mut api = RuntimeApi::start().await?;
        let child = Command::new(bootstrap)
            .env_clear()
            .envs(environment.iter().cloned())
            .envs([
                ("AWS_LAMBDA_RUNTIME_API", api.address().as_str()),
                ("AWS_LAMBDA_FUNCTION_NAME", "cold"),
                ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
                ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
                ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
                ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
                ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/cold"),
                ("AWS_LAMBDA_LOG_STREAM_NAME", "cold"),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()?;
        api.ready().await?;
        Ok(Self { child, api })
    }

    /// Gives it an event and waits until it is done with it.
    ///
    /// # Errors
    /// It fails.
    pub async fn invoke(&mut self, event: String) -> Result<Bytes, Failure> {
        self.api.invoke(event).await
    }

    /// What it has used, read once it is quiescent.
    ///
    /// # Errors
    /// It has ended.
    pub async fn used(&self) -> Result<Used, Failure> {
        let id = self.child.id().ok_or("the function has ended")?;
        let mut before = threads_ns(id)?;
        loop {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let now = threads_ns(id)?;
            if now == before {
                let peak_mb = peak_kb(id)? as f64 / 1024.0;
                return Ok(Used { cpu_ms: now as f64 / 1e6, peak_mb });
            }
            before = now;
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// The operating system does not say how it ended.
    pub async fn stop(mut self) -> io::Result<()> {
        self.child.kill().await
    }
}

/// Processor time of every thread of a process, in nanoseconds. Those of threads that have ended are
/// lost; the runtime's end after ten idle seconds only.
fn threads_ns(id: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{id}/task"))? {
        let schedstat = fs::read_to_string(thread?.path().join("schedstat"))?;
        let on_processor = schedstat.split_whitespace().next().ok_or("an empty schedstat")?;
        sum += on_processor.parse::<u64>()?;
    }
    Ok(sum)
}

fn peak_kb(id: u32) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmHWM")?;
    Ok(kb.parse()?)
}
