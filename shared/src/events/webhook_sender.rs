//! Tells webhooks: one signed request for each event, without following anybody anywhere.

use std::time::Duration;

use futures_util::future::join_all;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;
use tokio::time::timeout;

use super::addresses::{Addresses, Resolver};
use super::document::event_document;
use super::secrets::WebhookKeys;
use super::webhook::{MAX_WEBHOOKS, Webhook};
use crate::runtime::connections::Trust;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::LOG_SHARDS;
use engine::domain::ledger::subscriber::Event;
use engine::ports::{Catalogue, Freshness, Receiver};

/// Most events that one shard of the log tells a webhook at once.
const MAX_EVENTS_AT_ONCE: usize = 8;
/// Files and connections that a function may have open at once.
/// Source: <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const MAX_OPEN: usize = 1024;
// Every webhook is told of every shard at the same time, and none waits for another.
const _: () = assert!(MAX_WEBHOOKS * MAX_EVENTS_AT_ONCE * LOG_SHARDS as usize <= MAX_OPEN * 3 / 4);
/// Time that a webhook has for an answer, with the connection.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of an answer that are read, so that its connection can be used again. They are not looked at.
const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// Longest time that a connection may rest.
const MAX_REST: Duration = Duration::from_secs(20);

type Pool = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// Connections to webhooks; clones share them.
#[derive(Debug, Clone)]
pub struct WebhookConnections {
    addresses: Addresses,
    pool: Pool,
}

impl WebhookConnections {
    /// Connections to where webhooks may lead. Nothing is connected.
    #[must_use]
    pub fn new(addresses: Addresses, trust: &Trust) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Resolver(addresses));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trust.client_config())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let pool = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(MAX_REST)
            .pool_max_idle_per_host(MAX_EVENTS_AT_ONCE)
            .build(connector);
        Self { addresses, pool }
    }
}

/// One webhook, as somebody who can be told something.
#[derive(Debug)]
pub struct WebhookSender<'a, C> {
    pub webhook: &'a Webhook,
    /// The keys of its secrets.
    pub keys: &'a WebhookKeys,
    pub connections: &'a WebhookConnections,
    /// The catalogue, for the names of seats.
    pub catalogue: &'a C,
}

impl<C: Catalogue> Receiver for WebhookSender<'_, C> {
    fn at_once(&self) -> usize {
        MAX_EVENTS_AT_ONCE
    }

    async fn tell(&self, events: &[Event]) -> Vec<bool> {
        let mut documents = Vec::with_capacity(events.len());
        for event in events {
            match self.catalogue.sale(&event.sale, Freshness::Cached).await {
                Ok(published) => {
                    let sale = published.map(|published| published.sale);
                    documents.push(event_document(event, sale.as_deref()));
                }
                Err(error) => {
                    tracing::warn!(%error, "no names of seats");
                    return vec![false; events.len()];
                }
            }
        }
        let each = events.iter().zip(&documents);
        join_all(each.map(|(event, document)| self.tell_one(event, document))).await
    }
}

impl<C: Catalogue> WebhookSender<'_, C> {
    async fn tell_one(&self, event: &Event, document: &Value) -> bool {
        let id = event.id();
        match timeout(TIMEOUT, self.send(&id, document)).await {
            Ok(Ok(())) => true,
            Ok(Err(why)) => {
                tracing::info!(webhook = %self.webhook.id, event = id, why, "an event was not taken");
                false
            }
            Err(_) => {
                tracing::info!(webhook = %self.webhook.id, event = id, "no answer in time");
                false
            }
        }
    }

    /// Sends one event; why it was not taken.
    async fn send(&self, id: &str, document: &Value) -> Result<(), String> {
        let Webhook { id: webhook, url, .. } = self.webhook;
        let WebhookConnections { addresses, pool } = self.connections;
        // A literal address is connected to without being resolved.
        if !addresses.allow(url.uri()) {
            return Err("its address may not be called".to_owned());
        }
        let (now, body) = (Timestamp::now(), document.to_string());
        let signature = self.keys.sign(webhook, &self.webhook.secrets(now), id, now, &body);
        let signature = signature.ok_or("the key of its secret is gone")?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(url.uri())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, "onsale")
            .header("webhook-id", id)
            .header("webhook-timestamp", (now.ms() / 1000).to_string())
            .header("webhook-signature", signature)
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())?;
        // A redirection is an answer like any other: it is not followed.
        let answer = pool.request(request).await.map_err(|error| with_causes(&error))?;
        let (head, body) = answer.into_parts();
        if !head.status.is_success() {
            return Err(format!("it answered {}", head.status.as_u16()));
        }
        // Taken is taken, however the answer goes on.
        let _unread = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        Ok(())
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
