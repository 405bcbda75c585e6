//! What buyers do once they have an order: they pay, in the many ways of the profile, or do not.

use std::rc::Rc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::rngs::StdRng;

use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::{OrderState, PaymentOutcome as Outcome, RefundReason};

use local::payment::{callback_path, captured};

use super::client::{Bearer, Call, Reply};
use super::profile::{Behaviour, Buyer};
use super::session::{Acknowledged, LoadTest, is_refused};
use super::stopwatch::Endpoint;

/// Time that a person takes to pay or to cancel, in milliseconds; a third of the payment window at
/// most.
const PAYING_MS: std::ops::Range<u64> = 1000..6000;
/// Delay of late payments after the end of the payment window, or of the grace, in milliseconds.
const LATE_MS: std::ops::Range<u64> = 500..5000;
/// Time after its grace for which an order may still be pending: reconcile runs every minute.
const EXPIRY: Duration = Duration::from_secs(90);
/// The first pause between two requests of an order.
const POLL: Duration = Duration::from_secs(1);
const MAX_POLL: Duration = Duration::from_secs(3);

/// Pauses between requests of an order that is not decided, each longer than the one before: an on-sale has
/// thousands of such orders, and a look at each of them every second costs more than the sale.
pub(super) fn polls() -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(POLL), |pause| Some((*pause * 2).min(MAX_POLL)))
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
                        test.pay_late(&order, &bearer, random).await;
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
                self.pay_as(buyer.behaviour, &order, &bearer, due).await;
            }
        }
    }

    async fn deliberate(&self, buyer: &Buyer, random: &mut StdRng) -> Instant {
        let window = u64::from(self.venues[buyer.sale].sale.file().pay_window_seconds) * 1000;
        let most = PAYING_MS.end.min(window / 3);
        self.think(PAYING_MS.start.min(most - 1)..most, random).await
    }

    /// Pays, with what the behaviour adds before and after.
    async fn pay_as(
        &self,
        behaviour: Behaviour,
        order: &Acknowledged,
        bearer: &Bearer,
        mut due: Instant,
    ) {
        let whole = order.amount();
        let first = format!("pi_{}", order.order);
        if behaviour == Behaviour::ForgeCallback {
            let forged = self.credentials.forged_signature(Timestamp::now());
            let event = captured(&first, order.order, whole, Timestamp::now()).to_string();
            // Who forges does not know the entry, only the route that everybody knows.
            let call = self.callback(Endpoint::PayCallback, &callback_path(), event, forged);
            let Some(call) = call else { return };
            let reply = self.persist(&call, due, None).await;
            self.tally.shown(behaviour, is_refused(&reply, 401, "not-authenticated"));
            due = Instant::now();
        }
        if behaviour == Behaviour::PayWrongAmount {
            let off = MinorUnits(if whole.amount_minor > MinorUnits::ZERO { -1 } else { 1 });
            let wrong = Money { amount_minor: whole.amount_minor + off, ..whole };
            let payment = format!("{first}_wrong");
            let outcome = self.capture(order, bearer, &payment, wrong, due).await;
            if let Some(outcome) = outcome {
                self.expect(behaviour, outcome, Outcome::Refund(RefundReason::WrongAmount));
            }
            due = Instant::now();
        }
        let pages = self.pages.as_ref().filter(|_| behaviour == Behaviour::Pay);
        let paid = match pages {
            Some(pages) => {
                let paid = self.pay_on_page(pages, order, bearer, due).await;
                paid.map(|outcome| self.paid(order, bearer, outcome))
            }
            None => self.pay(order, bearer, &first, due).await,
        };
        let Some(paid) = paid else { return };
        match behaviour {
            Behaviour::Pay => self.tally.shown(behaviour, Ok(())),
            Behaviour::PayAgain => {
                let now = Instant::now();
                if let Some(again) = self.capture(order, bearer, &first, whole, now).await {
                    self.expect(behaviour, again, paid);
                }
            }
            // Of two payments that came too late, neither is the second of a paid order.
            Behaviour::PaySecond if paid != Outcome::Accepted => {}
            Behaviour::PaySecond => {
                let second = format!("{first}_second");
                let now = Instant::now();
                if let Some(second) = self.capture(order, bearer, &second, whole, now).await {
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
        bearer: &Bearer,
        payment: &str,
        due: Instant,
    ) -> Option<Outcome> {
        let outcome = self.capture(order, bearer, payment, order.amount(), due).await?;
        Some(self.paid(order, bearer, outcome))
    }

    /// Counts what became of a payment of what the order costs.
    fn paid(&self, order: &Acknowledged, bearer: &Bearer, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Accepted => self.tally.sold(bearer.class(), order.tickets()),
            Outcome::Refund(RefundReason::TooLate) if Timestamp::now() >= order.pay_by => {
                self.tally.refunds.one();
            }
            Outcome::Refund(_) => {
                let number = order.order;
                self.tally.anomaly(format!("order {number} was paid in time: {outcome:?}"));
            }
        }
        outcome
    }

    /// Pays when the window is over: the order still has its grace, or is rescued if its seats are still
    /// free, or the money is given back.
    async fn pay_late(&self, order: &Acknowledged, bearer: &Bearer, mut random: StdRng) {
        let wait = u64::try_from(order.pay_by.ms_since(Timestamp::now())).unwrap_or(0);
        let grace_ms =
            if random.random_bool(0.5) { u64::from(self.grace.seconds()) * 1000 } else { 0 };
        let wait = wait + grace_ms + random.random_range(LATE_MS);
        let due = self.later(Duration::from_millis(wait)).await;
        let payment = format!("pi_{}", order.order);
        let _turn = self.turn().await;
        match self.pay(order, bearer, &payment, due).await {
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
        let mut wait = Duration::from_millis(window) + grace + POLL;
        let until = Instant::now() + wait + EXPIRY;
        for pause in polls() {
            let reply = self.persist(&call, self.later(wait).await, None).await;
            let state = reply.read::<Acknowledged>().map(|order| order.state);
            match state {
                Some(OrderState::Expired) => return self.tally.shown(Behaviour::NeverPay, Ok(())),
                Some(OrderState::Pending) if Instant::now() < until => wait = pause,
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
