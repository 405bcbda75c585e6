//! Paying as a person does: a payment is started at the engine and paid on the provider's page, and it is the
//! provider that tells the engine.

use std::str::FromStr;
use std::time::{Duration, Instant};

use engine::domain::basics::money::Currency;
use engine::domain::order::PaymentOutcome as Outcome;
use fake_payments::{Form, page_of_code};
use local::endpoints::Endpoints;
use local::payment::PROVIDER;
use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::{Bearer, Call, Reply};
use super::ledger::Entry;
use super::provider::Delivery;
use super::session::{Acknowledged, LoadTest};
use super::stopwatch::Endpoint;

/// Longest time that a page takes to answer.
const DEADLINE: Duration = Duration::from_secs(30);
/// When somebody who has paid looks at the order first: the provider tells it at once, as a rule.
const LOOKS: [Duration; 2] = [Duration::from_millis(150), Duration::from_millis(350)];
/// What the page says of a payment that it took, if it has nowhere to send the buyer.
const TAKEN: &str = "You can close this page.";

/// Which share of the buyers pays at which provider: WeChat Pay and Alipay take CNY only, so who owes another
/// currency pays at Stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Shares {
    pub stripe: u16,
    pub wechat: u16,
    pub alipay: u16,
}

impl Default for Shares {
    /// The same of each.
    fn default() -> Self {
        Self { stripe: 1, wechat: 1, alipay: 1 }
    }
}

/// Why text names no shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be shares such as stripe=2,wechat=1,alipay=1, of which one is not 0")]
pub struct InvalidShares;

impl FromStr for Shares {
    type Err = InvalidShares;
    fn from_str(text: &str) -> Result<Self, InvalidShares> {
        let mut shares = Self { stripe: 0, wechat: 0, alipay: 0 };
        for part in text.split(',') {
            let (name, share) = part.split_once('=').ok_or(InvalidShares)?;
            let share = share.parse().map_err(|_| InvalidShares)?;
            match name {
                "stripe" => shares.stripe = share,
                "wechat" => shares.wechat = share,
                "alipay" => shares.alipay = share,
                _ => return Err(InvalidShares),
            }
        }
        let sum = u64::from(shares.stripe) + u64::from(shares.wechat) + u64::from(shares.alipay);
        if sum == 0 { Err(InvalidShares) } else { Ok(shares) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Till {
    /// On a page of Stripe's.
    Stripe,
    /// By a code of WeChat Pay's, or on a page of Alipay's.
    Merchant(Form),
}

impl Till {
    #[must_use]
    pub const fn provider(self) -> &'static str {
        match self {
            Self::Stripe => PROVIDER,
            Self::Merchant(form) => form.as_str(),
        }
    }

    /// The till of a provider; `None` for a name that no local engine has.
    #[must_use]
    pub fn of(provider: &str) -> Option<Self> {
        let all = [Self::Stripe, Self::Merchant(Form::Wechat), Self::Merchant(Form::Alipay)];
        all.into_iter().find(|till| till.provider() == provider)
    }

    /// The body by which a payment of an order is started there.
    #[must_use]
    pub fn request(self, order: impl std::fmt::Display) -> String {
        let body = match self {
            Self::Merchant(Form::Wechat) => json!({ "provider": "wechat", "method": "code" }),
            Self::Stripe | Self::Merchant(Form::Alipay) => json!({
                "provider": self.provider(), "method": "page",
                "return_url": format!("https://shop.example/orders/{order}"),
            }),
        };
        body.to_string()
    }
}

impl Shares {
    /// Where the order of a number pays that owes this currency.
    #[must_use]
    pub fn till(self, number: u64, currency: Currency) -> Till {
        let stripe = u64::from(self.stripe);
        let (wechat, alipay) = match currency.to_string().as_str() {
            "CNY" => (u64::from(self.wechat), u64::from(self.alipay)),
            _ => (0, 0),
        };
        // The low bits are the buyer's, the next ones count.
        let turn = (number >> 10).checked_rem(stripe + wechat + alipay).unwrap_or_default();
        if turn < wechat {
            Till::Merchant(Form::Wechat)
        } else if turn < wechat + alipay {
            Till::Merchant(Form::Alipay)
        } else {
            Till::Stripe
        }
    }
}

/// A payment that was started, as the engine answers it.
#[derive(Debug, Deserialize)]
pub struct Started {
    url: Option<String>,
    code: Option<String>,
}

/// What a page made of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Paid {
    /// The money is captured, or will be: the provider's name of the payment.
    Taken(String),
    /// The page takes no payment any more.
    Over,
}

/// The browsers of people who pay, and where the provider's pages are.
#[derive(Debug)]
pub struct Pages {
    browser: reqwest::Client,
    wechat: String,
    /// Which share pays where.
    pub shares: Shares,
}

impl Pages {
    /// The pages of a local engine's providers.
    ///
    /// # Errors
    /// The system has no client of HTTP.
    pub fn new(endpoints: &Endpoints, shares: Shares) -> reqwest::Result<Self> {
        let browser = reqwest::Client::builder().timeout(DEADLINE).redirect(Policy::none());
        let wechat = endpoints.wechat.clone();
        let is_alone = endpoints.wechat.is_empty() || endpoints.alipay.is_empty();
        let shares = if is_alone { Shares { stripe: 1, wechat: 0, alipay: 0 } } else { shares };
        Ok(Self { browser: browser.build()?, wechat, shares })
    }

    /// A person opens the page of a payment that was started, and pays there.
    ///
    /// # Errors
    /// Says why, in words, if it cannot be opened.
    pub async fn pay(&self, till: Till, started: &Started) -> Result<Paid, String> {
        let address = match (&started.url, &started.code) {
            (Some(url), _) => url.clone(),
            (None, Some(code)) => {
                page_of_code(&self.wechat, code).ok_or_else(|| format!("{code} is no code"))?
            }
            (None, None) => return Err("there is nothing to pay on".to_owned()),
        };
        let opened = self.browser.get(&address).send().await.map_err(shown)?;
        let page = landed(&opened).ok_or_else(|| format!("{address} leads nowhere"))?;
        let name = page.path_segments().and_then(|mut parts| parts.next_back());
        let name = name.ok_or_else(|| format!("{page} names no payment"))?.to_owned();
        let press = self.browser.post(page).body("action=pay");
        let answer = press.send().await.map_err(shown)?;
        let is_sent_back = answer.status().is_redirection();
        let text = answer.text().await.map_err(shown)?;
        if !is_sent_back && !text.contains(TAKEN) {
            return Ok(Paid::Over);
        }
        Ok(Paid::Taken(match till {
            // The payment of a session.
            Till::Stripe => format!("pi_{name}"),
            Till::Merchant(_) => name,
        }))
    }
}

/// Where an address has led to.
fn landed(opened: &Response) -> Option<Url> {
    match opened.headers().get(LOCATION) {
        Some(to) => opened.url().join(to.to_str().ok()?).ok(),
        None => Some(opened.url().clone()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over")]
fn shown(error: reqwest::Error) -> String {
    format!("{error:?}")
}

impl LoadTest {
    /// The buyer starts a payment and pays on its page: what the engine makes of it, as its order shows. `None` if
    /// nothing was paid.
    pub(super) async fn pay_on_page(
        &self,
        pages: &Pages,
        order: &Acknowledged,
        bearer: &Bearer,
        due: Instant,
    ) -> Option<Outcome> {
        let amount = order.amount();
        let till = pages.shares.till(order.order.get(), amount.currency);
        let path = format!("/orders/{}/payments", order.order);
        let body = till.request(order.order);
        let call = self.made(Call::post(Endpoint::StartPayment, &path, body))?.by(bearer);
        let reply = self.persist(&call, due, None).await;
        let Some(started) = reply.read::<Started>() else {
            self.start_refused(order, &reply);
            return None;
        };
        let paid = match pages.pay(till, &started).await {
            Ok(paid) => paid,
            // A lost answer: pressed again, the button pays no second time.
            Err(_) => self.made(pages.pay(till, &started).await)?,
        };
        let Paid::Taken(payment) = paid else {
            self.tally.refuse("page-over");
            return None;
        };
        self.tally.pay_at(till.provider());
        self.record(Entry::Captured {
            order: order.order.to_string(),
            provider: till.provider().to_owned(),
            payment: payment.clone(),
            amount_minor: amount.amount_minor,
            currency: amount.currency.to_string(),
        });
        self.decision(order, bearer, &payment, amount, Delivery::Kept, &LOOKS).await
    }

    /// A start is refused whose order is over by now; that is the buyer's own fault.
    fn start_refused(&self, order: &Acknowledged, reply: &Reply) {
        let is_over = engine::domain::basics::time::Timestamp::now() >= order.pay_by;
        match reply {
            Reply::Problem(refused) if is_over => self.tally.refuse(refused.kind.clone()),
            Reply::Problem(_) | Reply::Ok(_) | Reply::Lost(_) => {
                self.refused(Endpoint::StartPayment, reply);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn currency(code: &str) -> Currency {
        Currency::new(code).unwrap()
    }

    #[test]
    fn shares_are_of_who_owes_yuan_and_others_pay_at_stripe() {
        let shares: Shares = "stripe=1,wechat=2,alipay=1".parse().unwrap();
        let count = |code: &str, provider: &str| {
            let tills = (0..400_u64).map(|turn| shares.till(turn << 10, currency(code)));
            tills.filter(|till| till.provider() == provider).count()
        };
        let of = |code: &str| ["stripe", "wechat", "alipay"].map(|name| count(code, name));
        assert_eq!((of("CNY"), of("EUR")), ([100, 200, 100], [400, 0, 0]));
        let none: Shares = "wechat=1".parse().unwrap();
        assert_eq!(none.till(7, currency("EUR")), Till::Stripe, "nobody else takes it");
        for wrong in ["", "stripe", "stripe=0", "stripe=x", "paypal=1", "stripe=1;wechat=1"] {
            assert_eq!(wrong.parse::<Shares>(), Err(InvalidShares), "{wrong}");
        }
    }

    #[test]
    fn each_till_asks_for_what_its_provider_offers() {
        let request = |provider: &str| Till::of(provider).unwrap().request(7);
        assert!(request("stripe").contains("\"page\"") && request("stripe").contains("orders/7"));
        assert!(request("wechat").contains("\"code\"") && !request("wechat").contains("return"));
        assert!(request("alipay").contains("\"page\""));
        assert_eq!(Till::of("paypal"), None);
    }
}
