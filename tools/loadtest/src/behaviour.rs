//! What buyers do once they have an order: they pay, in the many ways of the profile, or do not.

use std::rc::Rc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::rngs::StdRng;

use engine::domain::money::{MinorUnits, Money};
use engine::domain::order::{OrderState, PaymentOutcome as Outcome, RefundReason};
use engine::domain::time::Timestamp;

use fake_payments::API_KEY;
use local::payment::{CAPTURE_PATH, PROVIDER, callback_path, capture_form, captured};

use super::client::{Bearer, Call, Reply};
use super::ledger::Entry;
use super::profile::{Behaviour, Buyer};
use super::session::{Acknowledged, LoadTest, is_refused};
use super::stopwatch::Endpoint;

/// Number of times that a buyer tries to pay at a provider that does not answer.
const MAX_CHARGES: u32 = 60;
/// Time that they wait in between.
const CHARGE_AGAIN: Duration = Duration::from_millis(250);
/// Time that a person takes to pay or to cancel, in milliseconds; a third of the payment window at
/// most.
const PAYING_MS: std::ops::Range<u64> = 1000..6000;
/// Delay of late payments after the end of the payment window, or of the grace, in milliseconds.
const LATE_MS: std::ops::Range<u64> = 500..5000;
/// Time after its grace for which an order may still be pending: reconcile runs every minute.
const EXPIRY: Duration = Duration::from_secs(90);
/// Number of times that a capture that is kept is reported again; its signature is good for longer.
const MAX_KEPT: u32 = 120;
/// Pause between two looks whether an order has expired.
const LOOK: Duration = Duration::from_secs(1);

/// True if a callback is answered that its capture is kept in a queue.
fn is_kept(reply: &Reply) -> bool {
    reply.read::<serde_json::Value>().is_some_and(|said| said["outcome"] == "kept")
}

impl LoadTest {
    /// Does with an order what the buyer's behaviour says. What has to wait for the end of the payment
    /// window goes on by itself.
    pub(super) async fn conclude(
        self: &Rc<Self>,
        buyer: Buyer,
        bearer: Bearer,
        order: Acknowledged,
        mut random: StdRng,
    ) {
        match buyer.behaviour {
            Behaviour::NeverPay | Behaviour::PayLate => {
                self.tally.unpaid_until(order.pay_by);
                let test = Rc::clone(self);
                let task = self.tasks.begin();
                tokio::task::spawn_local(async move {
                    if buyer.behaviour == Behaviour::PayLate {
                        test.pay_late(&order, random).await;
                    } else {
                        test.never_pay(&order, &bearer).await;
                    }
                    drop(task);
                });
            }
            Behaviour::Cancel => {
                let due = self.deliberate(&buyer, &mut random).await;
                self.cancel(&order, &bearer, due).await;
            }
            Behaviour::Pay
            | Behaviour::PayAgain
            | Behaviour::PaySecond
            | Behaviour::PayWrongAmount
            | Behaviour::ForgeCallback
            | Behaviour::Cut
            | Behaviour::DoubleSubmit
            | Behaviour::Hammer
            | Behaviour::ForgeAdmission
            | Behaviour::ForgeIdentity => {
                let due = self.deliberate(&buyer, &mut random).await;
                self.pay_as(buyer.behaviour, &order, due).await;
            }
        }
    }

    async fn deliberate(&self, buyer: &Buyer, random: &mut StdRng) -> Instant {
        let window = u64::from(self.venues[buyer.sale].sale.file().pay_window_seconds) * 1000;
        let most = PAYING_MS.end.min(window / 3);
        self.think(PAYING_MS.start.min(most - 1)..most, random).await
    }

    /// Pays, with what the behaviour adds before and after.
    async fn pay_as(&self, behaviour: Behaviour, order: &Acknowledged, mut due: Instant) {
        let whole = order.amount();
        let first = format!("pi_{}", order.order);
        if behaviour == Behaviour::ForgeCallback {
            let forged = self.credentials.forged_signature(Timestamp::now());
            let event = captured(&first, order.order, whole, Timestamp::now()).to_string();
            let Some(call) = self.callback(&callback_path(), event, forged) else { return };
            let reply = self.persist(&call, due, None).await;
            self.tally.shown(behaviour, is_refused(&reply, 401, "not-authenticated"));
            due = Instant::now();
        }
        if behaviour == Behaviour::PayWrongAmount {
            let off = MinorUnits(if whole.amount_minor > MinorUnits::ZERO { -1 } else { 1 });
            let wrong = Money { amount_minor: whole.amount_minor + off, ..whole };
            let outcome = self.capture(order, &format!("{first}_wrong"), wrong, due).await;
            if let Some(outcome) = outcome {
                self.expect(behaviour, outcome, Outcome::Refund(RefundReason::WrongAmount));
            }
            due = Instant::now();
        }
        let Some(paid) = self.pay(order, &first, due).await else { return };
        match behaviour {
            Behaviour::Pay => self.tally.shown(behaviour, Ok(())),
            Behaviour::PayAgain => {
                if let Some(again) = self.capture(order, &first, whole, Instant::now()).await {
                    self.expect(behaviour, again, paid);
                }
            }
            Behaviour::PaySecond => {
                let second = format!("{first}_second");
                if let Some(second) = self.capture(order, &second, whole, Instant::now()).await {
                    self.expect(behaviour, second, Outcome::Refund(RefundReason::SecondPayment));
                }
            }
            Behaviour::PayWrongAmount
            | Behaviour::ForgeCallback
            | Behaviour::PayLate
            | Behaviour::NeverPay
            | Behaviour::Cancel
            | Behaviour::Cut
            | Behaviour::DoubleSubmit
            | Behaviour::Hammer
            | Behaviour::ForgeAdmission
            | Behaviour::ForgeIdentity => {}
        }
    }

    fn expect(&self, behaviour: Behaviour, is: Outcome, expected: Outcome) {
        let answer = if is == expected { Ok(()) } else { Err(format!("{is:?}")) };
        self.tally.shown(behaviour, answer);
    }

    /// Pays what the order costs. Money that came too late is given back; nothing else may be.
    pub(super) async fn pay(
        &self,
        order: &Acknowledged,
        payment: &str,
        due: Instant,
    ) -> Option<Outcome> {
        let outcome = self.capture(order, payment, order.amount(), due).await?;
        match outcome {
            Outcome::Accepted => self.tally.sold(order.tickets()),
            Outcome::Refund(RefundReason::TooLate) if Timestamp::now() >= order.pay_by => {
                self.tally.refunds.one();
            }
            Outcome::Refund(_) => {
                let number = order.order;
                self.tally.anomaly(format!("order {number} was paid in time: {outcome:?}"));
            }
        }
        Some(outcome)
    }

    /// The provider captures money for the order, and calls until it is heard.
    async fn capture(
        &self,
        order: &Acknowledged,
        payment: &str,
        amount: Money,
        due: Instant,
    ) -> Option<Outcome> {
        self.record(Entry::Captured {
            order: order.order.to_string(),
            provider: PROVIDER.to_owned(),
            payment: payment.to_owned(),
            amount_minor: amount.amount_minor,
            currency: amount.currency.to_string(),
        });
        if !self.charge(order, payment, amount).await {
            return None;
        }
        let now = Timestamp::now();
        let event = captured(payment, order.order, amount, now).to_string();
        let signature = self.credentials.signature(event.as_bytes(), now);
        let call = self.callback(&callback_path(), event, signature)?;
        let mut reply = self.persist(&call, due, None).await;
        // It will be decided without being reported again; whoever reports it again learns how.
        for _ in 0..MAX_KEPT {
            if !is_kept(&reply) {
                break;
            }
            tokio::time::sleep(LOOK).await;
            reply = self.persist(&call, Instant::now(), None).await;
        }
        let outcome = reply.read();
        if outcome.is_none() {
            self.refused(Endpoint::PayCallback, &reply);
        }
        outcome
    }

    /// The buyer's bank gives the provider the money, if the crowd knows a provider and there is
    /// something to give; false if that fails, so that there is no payment. Giving it twice under one
    /// name is giving it once, so that a lost answer is asked for again.
    async fn charge(&self, order: &Acknowledged, payment: &str, amount: Money) -> bool {
        let costs = amount.amount_minor > MinorUnits::ZERO;
        let Some(provider) = self.provider.as_ref().filter(|_| costs) else { return true };
        let form = capture_form(payment, order.order, amount);
        let call = self.made(Call::post(Endpoint::PayCallback, CAPTURE_PATH, form));
        let Some((call, bearer)) = call.zip(self.made(Bearer::new(API_KEY))) else { return false };
        let call = call.by(&bearer);
        for _ in 0..MAX_CHARGES {
            match provider.send(&call).await {
                Reply::Ok(_) => return true,
                Reply::Problem(_) | Reply::Lost(_) => tokio::time::sleep(CHARGE_AGAIN).await,
            }
        }
        false
    }

    /// Pays when the window is over: the order still has its grace, or is rescued if its seats are still
    /// free, or the money is given back.
    async fn pay_late(&self, order: &Acknowledged, mut random: StdRng) {
        let wait = u64::try_from(order.pay_by.ms_since(Timestamp::now())).unwrap_or(0);
        let grace_ms =
            if random.random_bool(0.5) { u64::from(self.grace.seconds()) * 1000 } else { 0 };
        let wait = wait + grace_ms + random.random_range(LATE_MS);
        let due = self.later(Duration::from_millis(wait)).await;
        let payment = format!("pi_{}", order.order);
        let _turn = self.turn().await;
        match self.pay(order, &payment, due).await {
            Some(Outcome::Accepted) => {
                self.tally.rescued.one();
                self.tally.shown(Behaviour::PayLate, Ok(()));
            }
            Some(Outcome::Refund(RefundReason::TooLate)) => {
                self.tally.shown(Behaviour::PayLate, Ok(()));
            }
            Some(other @ Outcome::Refund(_)) => {
                self.tally.shown(Behaviour::PayLate, Err(format!("{other:?}")));
            }
            None => {}
        }
    }

    /// Lets the payment window pass, and looks until the order has expired.
    async fn never_pay(&self, order: &Acknowledged, bearer: &Bearer) {
        self.tally.never_paid.one();
        let Some(call) = self.made(Call::get(&format!("/orders/{}", order.order))) else { return };
        let call = call.by(bearer);
        let window = u64::try_from(order.pay_by.ms_since(Timestamp::now())).unwrap_or(0);
        let grace = Duration::from_secs(self.grace.seconds().into());
        let mut wait = Duration::from_millis(window) + grace + LOOK;
        let until = Instant::now() + wait + EXPIRY;
        loop {
            let reply = self.persist(&call, self.later(wait).await, None).await;
            let state = reply.read::<Acknowledged>().map(|order| order.state);
            match state {
                Some(OrderState::Expired) => return self.tally.shown(Behaviour::NeverPay, Ok(())),
                Some(OrderState::Pending) if Instant::now() < until => wait = LOOK,
                Some(_) | None => {
                    return self.tally.shown(Behaviour::NeverPay, Err(reply.to_string()));
                }
            }
        }
    }

    async fn cancel(&self, order: &Acknowledged, bearer: &Bearer, due: Instant) {
        let path = format!("/orders/{}/cancel", order.order);
        let Some(call) = self.made(Call::post(Endpoint::Cancel, &path, "")) else { return };
        let reply = self.persist(&call.by(bearer), due, None).await;
        match reply.read::<Acknowledged>() {
            Some(cancelled) if cancelled.state == OrderState::Cancelled => {
                self.tally.cancelled.one();
                self.tally.shown(Behaviour::Cancel, Ok(()));
            }
            Some(_) => self.tally.shown(Behaviour::Cancel, Err(reply.to_string())),
            // Whoever cancels when the window is over is refused.
            None => match &reply {
                Reply::Problem(refused)
                    if refused.kind == "order-resolved" && Timestamp::now() >= order.pay_by =>
                {
                    self.refused(Endpoint::Cancel, &reply);
                }
                Reply::Ok(_) | Reply::Problem(_) | Reply::Lost(_) => {
                    self.tally.shown(Behaviour::Cancel, Err(reply.to_string()));
                }
            },
        }
    }
}
