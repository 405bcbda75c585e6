//! What a function links besides the rules: the adapters to Redis, DynamoDB, SQS, payment providers, the
//! beacon and HTTP, and what runs them in one process.
//!
//! - [`redis`] is the inventory and the gate in Redis.
//! - [`dynamodb`] keeps orders and the catalogue; [`sqs`] sends and takes messages;
//!   [`providers`] asks the payment providers, [`beacon`] the randomness beacon.
//! - [`bills`] are what providers report of each day.
//! - [`debts`] are what merchants and wallets owe.
//! - [`events`] are facts as others are told of them, by webhooks.
//! - [`challenges`] are what buyers answer first; [`figures`] are what the metrics say of the last minutes.
//! - [`http`] checks requests and writes replies; [`tickets`] are the codes that doors check.
//! - [`runtime`] is the configuration, the application, metrics and connections.

pub mod beacon;
pub mod bills;
pub mod challenges;
pub mod debts;
pub mod dynamodb;
pub mod events;
pub mod figures;
pub mod hex;
pub mod http;
pub mod providers;
pub mod redis;
pub mod runtime;
pub mod sqs;
pub mod tickets;
