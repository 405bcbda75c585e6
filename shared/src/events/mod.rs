//! Events: the facts of orders as others are told of them, by webhooks.

mod addresses;
mod bus;
mod document;
pub mod eventbridge;
mod progress;
mod secrets;
mod webhook;
mod webhook_sender;

pub use addresses::Addresses;
pub use bus::{BUS_SUBSCRIBER, BusEntry, BusSender, EventBus, MAX_ENTRIES, SOURCE, bus_subscriber};
pub use progress::{SubscriberProgress, progress_of_all};
pub use secrets::{SecretName, WEBHOOK_KEYS, WebhookKeys};
pub use webhook::{MAX_WEBHOOKS, UrlDefect, Webhook, WebhookUrl};
pub use webhook_sender::{WebhookConnections, WebhookSender};
