//! The engine of Onsale.
//!
//! - [`domain`] holds the rules: ids, sales, the seat grid, choosing, holding, the order's states.
//! - [`flows`] says what happens, step by step, against the ports.
//! - [`ports`] says what the flows need from the world.
//! - [`scripts`] is the inventory and the gate in Redis.
//! - [`store`] keeps orders and the catalogue in DynamoDB; [`queue`] sends through SQS;
//!   [`provider`] asks the payment provider.
//! - [`http`] checks requests and writes replies.
//! - [`metrics`] counts what comes of it all.
//! - [`wire`] is what the adapters connect by: whom they trust, and HTTP.
//! - [`config`] and [`app`] put it all together for one process.

pub mod app;
pub mod config;
pub mod domain;
pub mod flows;
pub mod http;
pub mod metrics;
pub mod ports;
pub mod provider;
pub mod queue;
pub mod scripts;
pub mod store;
pub mod wire;
