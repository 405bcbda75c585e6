//! Events: the facts of orders as others are told of them, by webhooks.

mod addresses;
mod document;
mod secrets;
mod webhook;
mod webhook_sender;

pub use addresses::{Addresses, is_public};
pub use document::{Documents, event_document, event_type};
pub use secrets::{MAX_WEBHOOK_KEYS, SecretName, WEBHOOK_KEYS, WebhookKeys};
pub use webhook::{MAX_WEBHOOKS, UrlDefect, Webhook, WebhookUrl};
pub use webhook_sender::{MAX_EVENTS_AT_ONCE, WebhookConnections, WebhookSender};
