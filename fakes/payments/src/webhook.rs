//! Stripe's webhook: the event of a payment that its buyer has made, sent to the one endpoint that there is,
//! with Stripe's signature.
//! (<https://docs.stripe.com/webhooks#verify-manually>)

use std::fmt;
use std::time::Duration;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use engine::domain::basics::time::Timestamp;
use fake_limits::stripe::callback_gap;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Error;
use crate::account::{Intent, broken};
use crate::notices::{Letter, Notice, Notified, Notifier};

/// By what the gaps between tries are divided: none of them is published, and a buyer who tries things out waits
/// for none.
const HURRY: u32 = 600;

pub(crate) struct Webhook {
    url: String,
    secret: String,
    notifier: Notifier,
}

impl fmt::Debug for Webhook {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({:?})", self.notifier)
    }
}

impl Webhook {
    pub(crate) fn new(url: &str, secret: &str) -> Result<Self, Error> {
        let notifier = Notifier::new(HURRY, true)?;
        Ok(Self { url: url.to_owned(), secret: secret.to_owned(), notifier })
    }

    /// Tells of a payment.
    pub(crate) fn tell(&self, intent: &Intent) {
        let (body, secret) = (intent.event().to_string(), self.secret.clone());
        self.notifier.send(Notice {
            url: self.url.clone(),
            after: Duration::ZERO,
            write: Box::new(move || letter(&body, &secret)),
            probe: None,
            is_taken: |status, _| status.is_success(),
            gap: callback_gap,
            taken: Box::new(|| {}),
        });
    }

    pub(crate) fn notified(&self) -> Notified {
        self.notifier.notified()
    }

    pub(crate) fn stop(&self) {
        self.notifier.stop();
    }
}

/// The event, signed now.
fn letter(body: &str, secret: &str) -> Result<Letter, Error> {
    let seconds = Timestamp::now().ms().div_euclid(1000);
    let key = hmac::Key::new(HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{seconds}.{body}").as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let signature = HeaderValue::from_str(&format!("t={seconds},v1={digits}")).map_err(broken)?;
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    let headers = [(HeaderName::from_static("stripe-signature"), signature), (CONTENT_TYPE, kind)];
    Ok((HeaderMap::from_iter(headers), body.to_owned()))
}
