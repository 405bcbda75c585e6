//! Which engine a command repairs: the one that runs on the data directory, or the one that the
//! environment describes, as its functions are described.

use std::path::Path;

use clap::Args;
use shared::redis::Topology;
use shared::runtime::app::App;
use shared::runtime::config::Config;

use super::Failure;
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::queues::Queues;
use local::stores;
use local::up;

/// Which engine.
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
    /// The adapters.
    pub app: App,
    /// How they were set up.
    pub config: Config,
}

impl EngineArgs {
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
}

/// The configuration of the engine that runs on a data directory.
///
/// # Errors
/// None runs there.
pub async fn running(data_dir: &Path) -> Result<Config, Failure> {
    let endpoints = Endpoints::read(data_dir)?;
    let sqs = stores::sqs(&endpoints.sqs);
    let queues = Queues::find(&sqs, &endpoints.table_prefix).await?;
    let topology = topology(&endpoints.redis).await?;
    Ok(up::config(topology, &endpoints, &queues, &Secrets::read(data_dir)?)?)
}

/// Whether the server at `url` is one of a cluster, by its own word.
async fn topology(url: &str) -> Result<Topology, redis::RedisError> {
    let mut server = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    let says: String = redis::cmd("INFO").arg("cluster").query_async(&mut server).await?;
    Ok(if says.contains("cluster_enabled:1") {
        Topology::Cluster(vec![url.to_owned()])
    } else {
        Topology::Single(url.to_owned())
    })
}
