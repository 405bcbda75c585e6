//! The payment providers, asked over HTTP in the form of Stripe's API: what they have captured for
//! an order ([`captures`](engine::ports::Provider::captures)), and money going back
//! ([`refund`](engine::ports::Provider::refund)).
//!
//! Each provider is one account with a key of its own. Where none is configured, nobody is asked:
//! orders expire without a question, and refunds wait.

pub mod stripe;

use std::collections::BTreeMap;

use futures_util::future::try_join_all;

use self::stripe::Account;

use crate::runtime::config::{ProviderApi, ProvidersConfig};
use crate::runtime::connections::Https;
use engine::domain::ids::ProviderId;
use engine::domain::order::{Capture, Order, PaymentRecord};
use engine::domain::refund::RefundReply;
use engine::ports::{Provider, StoreError, Stored};

/// The payment providers that can be asked.
#[derive(Debug, Default)]
pub struct Providers {
    accounts: BTreeMap<ProviderId, Account>,
}

impl Providers {
    /// The providers that a configuration names. None connects before its first use.
    ///
    /// # Errors
    /// [`StoreError::Contract`] if a key cannot be a header.
    pub fn new(config: &ProvidersConfig, https: &Https) -> Stored<Self> {
        let account =
            |api: &ProviderApi| Ok((api.provider.clone(), Account::new(api, https.clone())?));
        Ok(Self { accounts: config.apis.iter().map(account).collect::<Stored<_>>()? })
    }
}

impl Provider for Providers {
    async fn captures(&self, order: &Order) -> Stored<Option<Vec<Capture>>> {
        if self.accounts.is_empty() {
            return Ok(None);
        }
        let each = self.accounts.values().map(|account| account.captures(order.number));
        Ok(Some(try_join_all(each).await?.concat()))
    }

    async fn refund(&self, payment: &PaymentRecord) -> Stored<RefundReply> {
        let provider = &payment.capture.key.provider;
        match self.accounts.get(provider) {
            Some(account) => account.refund(payment).await,
            None => {
                Err(StoreError::Unavailable(format!("no API key of provider {provider} is set")))
            }
        }
    }
}
