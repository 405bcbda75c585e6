//! The engine that a command looks at: the one that runs on the data directory, or the one that the
//! environment describes by the variables of its functions.

use std::path::Path;

use clap::Args;
use engine::domain::payment::grace::Grace;
use ops::audit::{Target, topology_of};
use ops::dead_letters::DeadLetterQueues;
use shared::runtime::app::{App, LivePorts};
use shared::runtime::config::Config;

use super::Failure;
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::merchants;
use local::queues::Queues;
use local::stores;
use local::up;

/// The choice of an engine, shared by audit, reconcile, stuck and dead-letters.
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// The engine that the environment describes by the variables of its functions
    /// (docs/configuration.md) instead of a running `onsale up`: one in AWS, for example.
    #[arg(long)]
    from_environment: bool,
}

/// An engine's adapters, and how they were set up.
#[derive(Debug)]
pub struct Reached {
    pub app: App,
    /// How they were set up.
    pub config: Config,
}

impl Reached {
    #[must_use]
    pub fn dead_letters(&self) -> DeadLetterQueues<'_, LivePorts> {
        use engine::ports::Ports as _;
        let sqs = self.app.ports.queue().0.client();
        DeadLetterQueues::new(&self.app.ports, sqs, &self.config.sqs.urls)
    }
}

impl EngineArgs {
    /// True if the environment describes it.
    #[must_use]
    pub fn is_from_environment(&self) -> bool {
        self.from_environment
    }

    /// Its adapters.
    ///
    /// # Errors
    /// No engine runs on the data directory, or the environment lacks something.
    pub async fn reach(&self, data_dir: &Path) -> Result<Reached, Failure> {
        let config =
            if self.from_environment { Config::from_env()? } else { running(data_dir).await? };
        let app = App::from_config(&config).await?;
        Ok(Reached { app, config })
    }

    /// How long its unpaid orders wait past their deadline.
    ///
    /// # Errors
    /// As [`EngineArgs::target`].
    pub fn grace(&self, data_dir: &Path) -> Result<Grace, Failure> {
        if self.from_environment {
            return Ok(Config::from_env()?.providers.grace);
        }
        Ok(Endpoints::read(data_dir)?.grace())
    }

    /// Its stores, to be read without its adapters.
    ///
    /// # Errors
    /// No engine runs on the data directory, or the environment lacks something.
    pub fn target(&self, data_dir: &Path) -> Result<Target, Failure> {
        if self.from_environment {
            return Ok(Target::from_config(&Config::from_env()?));
        }
        let Endpoints { redis, dynamodb, table_prefix, .. } = Endpoints::read(data_dir)?;
        Ok(Target::at(&redis, &dynamodb, &table_prefix))
    }
}

/// The configuration of the engine that runs on a data directory.
///
/// # Errors
/// None runs there.
pub async fn running(data_dir: &Path) -> Result<Config, Failure> {
    let endpoints = Endpoints::read(data_dir)?;
    let sqs = stores::sqs(&endpoints.sqs);
    let queues = Queues::find(&sqs, &endpoints.table_prefix).await?;
    let topology = topology_of(&endpoints.redis).await?;
    let mut config = up::config(topology, &endpoints, &queues, &Secrets::read(data_dir)?)?;
    config.providers.merchants = merchants::source(data_dir);
    Ok(config)
}
