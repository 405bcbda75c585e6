//! A train that leaves while it is sold: what has left is not sold, nobody has longer to pay for it, and money that comes
//! later goes back.

use engine::domain::basics::ids::{InventoryId, Legs, ProviderId, SaleId, TierId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::Mint;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::attempt::{PaymentChoice, PaymentMethod};
use engine::domain::order::exchange::ExchangeRequest;
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, Order, OrderState, PaymentOutcome, RefundReason, TicketName};
use engine::domain::sale::Sale;
use engine::flows::expire::Expired;
use engine::flows::pay::pay;
use engine::flows::publish::publish;
use engine::flows::reserve::{Refusal, Reservation, Reserved, reserve};
use engine::flows::start::{self, start};
use engine::ports::{Catalogue as _, Freshness, Orders as _, Ports};
use redis::AsyncCommands as _;
use serde_json::json;

use super::ended::ended;
use super::environment::{Fixture, NOW, epoch};

const NIGHTJAR: &str = "nightjar";
/// When it leaves its first stop and its second; `NOW` is at 08:00 UTC.
const LEAVES: [Timestamp; 2] = [NOW.plus_seconds(5 * 60), NOW.plus_seconds(20 * 60)];
/// The payment window, in seconds: longer than the train stays.
const PAY_WINDOW_SECONDS: i64 = 600;

fn nightjar() -> Sale {
    let file = json!({
        "sale": NIGHTJAR, "title": "Nightjar", "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": PAY_WINDOW_SECONDS,
        "exchanges": { "until": "2098-01-01T00:00:00Z" },
        "runs_on": "2027-01-15",
        "stops": [
            // Five minutes and twenty after eight in London, by the clocks of both.
            { "stop": "A", "name": "a", "departs": "09:05", "time_zone": "Europe/Vienna" },
            { "stop": "B", "name": "b", "departs": "08:20", "time_zone": "Europe/London" },
            { "stop": "C", "name": "c", "arrives": "09:00", "time_zone": "Europe/London" },
        ],
        "tiers": [{ "tier": "coach", "name": "Coach", "price_minor": 500, "general_admission": 20 }]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

struct Train {
    fixture: Fixture,
    mint: Mint,
}

impl Train {
    async fn published() -> Self {
        let fixture = Fixture::start().await;
        publish(&fixture.ports, &nightjar(), &epoch(NIGHTJAR), NOW).await.unwrap();
        Self { fixture, mint: Mint::new(9) }
    }

    /// A request for one seat on a journey.
    async fn wanted(&self, user: &str, legs: (u16, u16)) -> Reservation {
        let id = SaleId::new(NIGHTJAR).unwrap();
        let published = self.fixture.ports.catalogue().sale(&id, Freshness::Fresh).await;
        let user = UserId::new(user).unwrap();
        let line = Line {
            tier: TierId::new("coach").unwrap(),
            legs: Legs::new(legs.0, legs.1).unwrap(),
            choice: Choice::Best { count: 1, together: Together::Required },
        };
        let lines = vec![RequestedLine { line, price_minor: MinorUnits(500), attendees: vec![] }];
        let published = published.unwrap().unwrap();
        Reservation { published, number: self.mint.mint(NOW, &user), user, lines, exchange: None }
    }

    async fn ordered(
        &self,
        user: &str,
        legs: (u16, u16),
        now: Timestamp,
    ) -> Result<Order, Refusal> {
        let wanted = self.wanted(user, legs).await;
        reserve(&self.fixture.ports, &wanted, now).await.map(|Reserved { order, .. }| order)
    }

    fn captured(&self, order: &Order, now: Timestamp) -> Capture {
        let payment = format!("pi_{}", order.number);
        self.fixture.provider.capture(&payment, order.number, order.total, now).unwrap()
    }

    async fn state(&self, order: &Order) -> OrderState {
        self.fixture.ports.orders().get(order.number).await.unwrap().unwrap().state
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journey_sells_until_its_train_leaves() {
    let train = Train::published().await;
    assert_eq!(nightjar().departure(Legs::new(0, 2).unwrap()), Some(LEAVES[0]));
    let just_before = LEAVES[0].plus_ms(-1);
    let order = train.ordered("early", (0, 2), just_before).await.unwrap();
    assert_eq!(order.pay_by, LEAVES[0], "nobody has longer to pay");
    let refused = train.ordered("late", (0, 1), LEAVES[0]).await;
    assert_eq!(refused, Err(Refusal::Departed(LEAVES[0])));
    // From the next stop it sells on, and then nowhere: Redis has the last departure as the end of selling.
    let order = train.ordered("next", (1, 2), LEAVES[0]).await.unwrap();
    assert_eq!(order.pay_by, LEAVES[0].plus_seconds(PAY_WINDOW_SECONDS));
    assert_eq!(train.ordered("gone", (1, 2), LEAVES[1]).await, Err(Refusal::Departed(LEAVES[1])));
    let mut redis = train.fixture.redis().await;
    let closes_ms: i64 = redis.hget(format!("{{{NIGHTJAR}}}:sale"), "closes_ms").await.unwrap();
    assert_eq!(closes_ms, LEAVES[1].ms());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_has_its_order_finds_it_when_the_train_has_left() {
    let train = Train::published().await;
    let wanted = train.wanted("twice", (0, 2)).await;
    let first = reserve(&train.fixture.ports, &wanted, NOW).await.unwrap().order;
    let again = reserve(&train.fixture.ports, &wanted, LEAVES[0]).await.unwrap().order;
    assert_eq!(again, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_payment_is_started_when_the_train_has_left() {
    let train = Train::published().await;
    let order = train.ordered("slow", (0, 2), NOW).await.unwrap();
    let choice = PaymentChoice {
        provider: ProviderId::new("stripe").unwrap(),
        method: PaymentMethod::Form,
        return_url: None,
    };
    let refused = start(&train.fixture.ports, &order.user, order.number, &choice, LEAVES[0]).await;
    assert_eq!(refused.map(drop), Err(start::Refusal::TooLate(LEAVES[0])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_comes_when_the_train_has_left_goes_back() {
    let train = Train::published().await;
    let at = InventoryId::whole(SaleId::new(NIGHTJAR).unwrap());
    let expired = async |user: &str, legs, now: Timestamp| {
        let order = train.ordered(user, legs, now).await.unwrap();
        let expired = ended(&train.fixture.ports, &at, order.number, order.pay_by).await;
        assert_eq!(expired, Ok(Expired::Ended));
        order
    };
    // Its seats are free, and nobody can use them any more.
    let order = expired("first", (0, 2), NOW).await;
    let late = LEAVES[0];
    let record = pay(&train.fixture.ports, &train.captured(&order, late), late).await.unwrap();
    assert_eq!(record.outcome, PaymentOutcome::Refund(RefundReason::TooLate));
    assert_eq!(train.state(&order).await, OrderState::RefundDue);
    // From a stop that the train has not left, late money has its seat as on any other day.
    let order = expired("second", (1, 2), NOW).await;
    let late = order.pay_by.plus_seconds(1);
    let record = pay(&train.fixture.ports, &train.captured(&order, late), late).await.unwrap();
    assert_eq!(record.outcome, PaymentOutcome::Accepted);
    assert_eq!(train.state(&order).await, OrderState::Paid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_are_not_exchanged_for_what_has_left() {
    let train = Train::published().await;
    let old = train.ordered("changes", (1, 2), NOW).await.unwrap();
    pay(&train.fixture.ports, &train.captured(&old, NOW), NOW).await.unwrap();
    let line = &old.lines[0];
    let tickets: Vec<TicketName> = line.tickets.iter().map(|ticket| ticket.named(line)).collect();
    let exchange = Some(ExchangeRequest { order: old.number, tickets });
    let wanted = Reservation { exchange, ..train.wanted("changes", (0, 2)).await };
    let refused = reserve(&train.fixture.ports, &wanted, LEAVES[0]).await;
    assert_eq!(refused, Err(Refusal::Departed(LEAVES[0])));
    assert_eq!(train.state(&old).await, OrderState::Paid);
    // In time it is done at once, with the money of the old one.
    let new = reserve(&train.fixture.ports, &wanted, NOW).await.unwrap().order;
    assert_eq!(new.state, OrderState::Paid);
}
