//! The engine as a process of its own, `onsale up` on servers that are not its own and always on the
//! same port: what is killed and frozen.

use std::fs::File;
use std::path::{Path, PathBuf};

use local::endpoints::Endpoints;
use local::servers::{Deadline, Kept, Signal, signal};

use super::Error;

/// Time that it may take to come up; on servers that answer badly it may have to begin again.
const UP_SECONDS: u64 = 120;
/// The file with what it logs.
const LOG_FILE: &str = "engine.log";

/// `onsale up` on a data directory of its own.
#[derive(Debug)]
pub struct EngineProcess {
    program: PathBuf,
    dir: PathBuf,
    arguments: Vec<String>,
    child: Option<Kept>,
}

impl EngineProcess {
    /// Starts `program` with `up` and these arguments, and waits until it answers.
    ///
    /// # Errors
    /// It does not come up.
    pub(super) async fn start(
        program: &Path,
        dir: &Path,
        arguments: Vec<String>,
    ) -> Result<Self, Error> {
        let (program, dir) = (program.to_owned(), dir.to_owned());
        let mut engine = Self { program, dir, arguments, child: None };
        engine.start_again().await?;
        Ok(engine)
    }

    /// Kills it as `kill -9` does; returns when it is gone.
    ///
    /// # Errors
    /// The operating system does not say how it ended.
    pub fn kill(&mut self) -> Result<(), Error> {
        match self.child.take() {
            Some(mut child) => child.kill().map_err(Error::io("killing the engine")),
            None => Ok(()),
        }
    }

    /// Starts it again on what it left, as whoever runs it would, and waits until it answers. If it
    /// gives up because its servers answer badly, it is started once more.
    ///
    /// # Errors
    /// It does not come up.
    pub async fn start_again(&mut self) -> Result<(), Error> {
        self.kill()?;
        let deadline = Deadline::with("the engine to come up", UP_SECONDS);
        loop {
            Endpoints::remove(&self.dir)?;
            let mut child = self.launch()?;
            loop {
                if Endpoints::read(&self.dir).is_ok() {
                    self.child = Some(child);
                    return Ok(());
                }
                if child.ended().map_err(Error::io("watching the engine"))?.is_some() {
                    break;
                }
                deadline.pause().await?;
            }
            tracing::warn!("the engine did not come up, and is started again");
        }
    }

    fn launch(&self) -> Result<Kept, Error> {
        let log = File::options().create(true).append(true).open(self.dir.join(LOG_FILE));
        let log = log.map_err(Error::io("opening the engine's log"))?;
        let mut arguments =
            vec!["--data-dir".to_owned(), self.dir.display().to_string(), "up".to_owned()];
        arguments.extend(self.arguments.iter().cloned());
        let output = (std::process::Stdio::null(), log.into());
        Kept::start(&self.program, arguments, &self.dir, output, &[("ONSALE_LOG", "warn")])
            .map_err(Error::io(format!("running {}", self.program.display())))
    }

    /// Makes it stand still, or lets it go on.
    ///
    /// # Errors
    /// It does not run.
    pub(super) fn signal(&self, what: Signal) -> Result<(), Error> {
        let pid = Endpoints::read(&self.dir)?.pid.to_string();
        signal(&pid, what).map_err(Error::io("signalling the engine"))
    }

    /// What must not be: that it ended by itself, or that anything in it panicked.
    pub(super) fn defects(&mut self) -> Result<Vec<String>, Error> {
        let mut defects = Vec::new();
        if let Some(child) = &mut self.child
            && let Some(status) = child.ended().map_err(Error::io("watching the engine"))?
        {
            defects.push(format!("the engine ended by itself: {status}"));
        }
        let log = std::fs::read_to_string(self.dir.join(LOG_FILE));
        let log = log.map_err(Error::io("reading the engine's log"))?;
        let panics = log.lines().filter(|line| line.contains("panicked at"));
        defects.extend(panics.map(|line| format!("the engine panicked: {line}")));
        Ok(defects)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}
