//! The scripts of `lua/` against the pure model, on real servers.

mod calls;
mod commands;
mod docs;
mod environment;
mod large_loads;
pub mod log;
mod property;
mod releases;
mod secured;
mod wire;

use local::servers::{Error, Flavour, RedisCluster, RedisOptions, RedisServer};
use shared::redis::{Bounds, Connection, Topology};

/// Starts a server of one flavour; a machine without it has not run `make setup`.
async fn server(flavour: Flavour) -> RedisServer {
    let options = RedisOptions::default().flavour(flavour);
    RedisServer::start(options).await.unwrap_or_else(|error| panic!("{}", hint(&error)))
}

/// Starts three masters of Valkey.
async fn cluster() -> RedisCluster {
    let cluster = RedisCluster::start(Flavour::Valkey).await;
    cluster.unwrap_or_else(|error| panic!("{}", hint(&error)))
}

fn hint(error: &Error) -> String {
    let is_missing = matches!(error, Error::NoBinary { .. });
    if is_missing { format!("run make setup ({error})") } else { error.to_string() }
}

fn connect(server: &RedisServer) -> Connection {
    Connection::new(&Topology::Single(server.url()), long_deadlines()).unwrap()
}

/// Bounds that a busy machine keeps: nothing here is about being late.
fn long_deadlines() -> Bounds {
    let seconds = std::time::Duration::from_secs(30);
    Bounds { connect: seconds, response: seconds, attempts: 1, ..Bounds::default() }
}
