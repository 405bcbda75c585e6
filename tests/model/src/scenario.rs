//! A small scenario to explore: a sale of two seats over two legs, its buyers, what they do, and how
//! much may go wrong.

use std::future::Future;
use std::sync::Arc;

use engine::domain::admission::room::join::BUCKETS;
use engine::domain::basics::counting::Counting;
use engine::domain::basics::guard::Guard;
use engine::domain::basics::ids::{
    DisputeId, Epoch, Legs, PaymentId, ProviderId, ReaderId, SaleId, Seat, SeatName, TierId, UserId,
};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::{Gene, NUMBER_EPOCH_MS, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::choice::Choice;
use engine::domain::inventory::{Line, PartLimit};
use engine::domain::ledger::Balance;
use engine::domain::ledger::wallet::Wallet;
use engine::domain::order::attempt::{PaymentChoice, PaymentMethod};
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::exchange::ExchangeRequest;
use engine::domain::order::order_refund::AskedBy;
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, PaymentKey, PaymentOutcome, TicketName};
use engine::domain::payment::captures::{ListLag, Listing};
use engine::domain::payment::dispute::DisputeReport;
use engine::domain::payment::grace::Grace;
use engine::domain::payment::ours::Mark;
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::domain::payment::start::Offer;
use engine::domain::sale::Sale;
use engine::domain::sale::archive::Lifecycle;
use engine::flows::reserve::Reservation;
use engine::ports::Published;
use model_stores::{Caller, Driver, Message, QueuesModel, Sent, Stores};
use serde_json::json;

use crate::direct;
use crate::flow::{Flow, Outcome};
use crate::task::{Deployment, Setting};

/// The time at which a scenario begins.
pub const START: Timestamp = Timestamp::from_ms(NUMBER_EPOCH_MS + 86_400_000);
/// The payment window, in seconds.
pub const PAY_WINDOW_SECONDS: i64 = 60;
/// Seconds by which a provider that lags lists a capture late; below the grace.
pub const LAG_SECONDS: i64 = 100;
/// Seconds by which its list then has a capture late; below the lag that is stated.
pub const LIST_LAG_SECONDS: i64 = 50;
/// The shortest life of a page, in seconds: longer than a payment window and its grace.
pub const PAGE_SECONDS: u32 = 1860;
/// The price of a ticket.
pub const PRICE_MINOR: MinorUnits = MinorUnits(500);

/// A refund that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Refunded {
    /// The number that it shall have, from 1.
    pub number: u8,
    /// The seat of the only ticket that is taken back; `None` takes all of them.
    pub seat: Option<u32>,
}

/// A buyer and what is requested.
#[derive(Debug, Clone)]
pub struct Buyer {
    pub user: UserId,
    /// The number in the buyer's admission.
    pub number: OrderNumber,
    /// The lines of the request.
    pub lines: Vec<RequestedLine>,
    /// The number of times that the request is sent.
    pub requests: u8,
    /// The number of cancellations.
    pub cancels: u8,
    /// The amounts that the buyer pays once the order is acknowledged, each a payment.
    pub payments: Vec<MinorUnits>,
    /// The refunds that an operator is asked for, each once, in any order.
    pub refunds: Vec<Refunded>,
    /// The number of times that the buyer begins to pay; the last of several times by another choice.
    pub starts: u8,
    /// The number of times that the buyer asks to pay from the wallet.
    pub from_wallet: u8,
    /// The ticket that is given for it: of whose order, by the buyer's index, and of which seat.
    pub exchange: Option<(usize, u32)>,
    /// True if the order is of the sale that fills wallets.
    pub tops_up: bool,
}

/// The number of times that each thing may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Callbacks of each payment.
    pub callbacks: u8,
    /// Copies of messages that are delivered besides.
    pub copies: u8,
    /// Runs of the sweeper.
    pub sweeps: u8,
    /// Runs of the reader of the provider's list.
    pub reads: u8,
    /// Loads, by whoever finds that Redis has lost the sale.
    pub loads: u8,
    /// Faults: a process dies, a call is turned away, a request or an answer is lost.
    pub faults: u8,
    /// Losses of Redis, of everything or of the newest writes.
    pub losses: u8,
}

/// The queues that deliver their messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivers {
    /// Orders whose time is up.
    pub expiry: bool,
    /// Orders to be counted.
    pub sync: bool,
    /// Sales to be loaded again.
    pub load: bool,
    /// Money to be sent back.
    pub refund: bool,
    /// Captures that are kept until they can be decided.
    pub callback: bool,
    /// Orders whose payments are to be closed.
    pub close: bool,
}

impl Delivers {
    /// True if a message may reach its consumer.
    #[must_use]
    pub const fn reaches(self, message: &Message) -> bool {
        match message {
            Message::Expiry { .. } => self.expiry,
            Message::Sync(_) => self.sync,
            Message::Load(_) => self.load,
            Message::Refund(_) => self.refund,
            Message::Callback(_) => self.callback,
            Message::Close(_) => self.close,
            Message::Draw(_) | Message::Points(_) => false,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Scenario {
    /// The name, unique among the scenarios.
    pub name: &'static str,
    pub sale: Arc<Sale>,
    /// The sale that fills wallets, if somebody fills one.
    pub purse: Option<Arc<Sale>>,
    pub buyers: Vec<Buyer>,
    /// The moments that the clock shows, one after the other.
    pub times: Vec<Timestamp>,
    /// The stores at the start.
    pub stores: Stores,
    /// The buyers that have an order at the start, by index.
    pub ordered: Vec<usize>,
    /// The number of times that each thing may happen.
    pub budget: Budget,
    /// How long an unpaid order waits past its deadline.
    pub grace: Grace,
    /// How much one part of a load carries.
    pub part_limit: PartLimit,
    /// True if Redis has lost everything before the start: the first loss of the budget.
    pub is_lost: bool,
    /// True if the provider may list a capture [`LAG_SECONDS`] late.
    pub lags: bool,
    /// The lag that is stated of the provider's list; `None` if it has none.
    pub lists: Option<ListLag>,
    /// True if a capture that no store can take now is kept in its queue before the provider is answered;
    /// else the provider calls again.
    pub keeps: bool,
    /// True if the bank takes back what the first buyer has paid. The provider says so from the start on, and whose the
    /// money is at some time later; runs of the reader are spent on that.
    pub is_disputed: bool,
    /// The queues that deliver. The sweeper must compensate for the others, at rest.
    pub delivers: Delivers,
    /// The guard that is away.
    pub without: Option<Guard>,
}

fn tier() -> TierId {
    TierId::new("hall").unwrap()
}

/// The name of a ticket of a seat.
fn ticket(seat: u32) -> TicketName {
    TicketName { tier: tier(), seat: SeatName::new(format!("hall-{}", seat + 1)).unwrap() }
}

/// The second tier, of the sale that keeps its tiers apart.
#[must_use]
pub fn balcony() -> TierId {
    TierId::new("balcony").unwrap()
}

/// A concert with a seat in each of two tiers, which are kept apart.
fn concert(limit: u16) -> Sale {
    let tier = |tier: TierId| json!({ "tier": tier, "name": "Tier", "price_minor": PRICE_MINOR, "general_admission": 1 });
    let file = json!({
        "sale": "concert", "title": "Concert", "currency": "EUR",
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "merchant": { "merchant": "opera", "commission_basis_points": 350 },
        "limit_per_buyer": limit, "pay_window_seconds": PAY_WINDOW_SECONDS, "tiers_apart": true,
        "tiers": [tier(self::tier()), tier(balcony())],
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

/// A train with two seats and three stops.
fn sale(limit: u16) -> Sale {
    let file = json!({
        "sale": "train", "title": "Train", "currency": "EUR",
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "merchant": { "merchant": "opera", "commission_basis_points": 350 },
        "limit_per_buyer": limit, "pay_window_seconds": PAY_WINDOW_SECONDS,
        "exchanges": { "until": "2098-01-01T00:00:00Z" }, "wallet": true,
        "stops": [
            { "stop": "A", "name": "a" }, { "stop": "B", "name": "b" }, { "stop": "C", "name": "c" }
        ],
        "tiers": [{ "tier": tier(), "name": "Hall", "price_minor": PRICE_MINOR,
            "general_admission": 2 }],
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

/// The sale of what fills a wallet: one amount, once.
fn purse() -> Sale {
    let file = json!({
        "sale": "purse", "title": "Purse", "currency": "EUR",
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "merchant": { "merchant": "wallet" },
        "limit_per_buyer": 1, "pay_window_seconds": PAY_WINDOW_SECONDS,
        "tiers": [{ "tier": tier(), "name": "Amount", "price_minor": PRICE_MINOR, "general_admission": 1 }],
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

/// The epoch of load number `load`.
#[must_use]
pub fn epoch(load: usize) -> Epoch {
    Epoch::new(format!("e{load}")).unwrap()
}

/// The name of a run of the reader, by how many may still come.
#[must_use]
pub fn reader(left: u8) -> ReaderId {
    ReaderId::new(format!("r{left}")).unwrap()
}

/// The dispute of the first buyer's payment.
#[must_use]
pub fn dispute() -> DisputeId {
    DisputeId::new("dp").unwrap()
}

#[must_use]
pub fn provider() -> ProviderId {
    ProviderId::new("bank").unwrap()
}

impl Buyer {
    /// A buyer who asks once. Numbers share a shard of the index of what is due.
    #[must_use]
    pub fn new(user: &str, attempt: u16, legs: (u16, u16), choice: Choice) -> Self {
        let user = UserId::new(user).unwrap();
        let number = OrderNumber::compose(START, attempt, 0, Gene::from_text(user.as_str()));
        let line = Line { tier: tier(), legs: Legs::new(legs.0, legs.1).unwrap(), choice };
        let requested = RequestedLine { line, price_minor: PRICE_MINOR, attendees: Vec::new() };
        Self {
            user,
            number,
            lines: vec![requested],
            requests: 1,
            cancels: 0,
            payments: Vec::new(),
            refunds: Vec::new(),
            starts: 0,
            from_wallet: 0,
            exchange: None,
            tops_up: false,
        }
    }

    /// A buyer of this very seat.
    #[must_use]
    pub fn of_seat(user: &str, attempt: u16, legs: (u16, u16), seat: u32) -> Self {
        Self::new(user, attempt, legs, Choice::Seats(vec![Seat(seat)]))
    }

    /// This buyer, of another tier.
    #[must_use]
    pub fn in_tier(mut self, tier: TierId) -> Self {
        self.lines[0].line.tier = tier;
        self
    }

    /// This buyer, naming an attendee.
    #[must_use]
    pub fn naming(mut self, attendee: &str) -> Self {
        self.lines[0].attendees = vec![model_stores::attendee(attendee)];
        self
    }

    /// This buyer, sending the request this number of times.
    #[must_use]
    pub fn requests(self, requests: u8) -> Self {
        Self { requests, ..self }
    }

    /// This buyer, cancelling the order once.
    #[must_use]
    pub fn cancels(self) -> Self {
        Self { cancels: 1, ..self }
    }

    /// This buyer, whose order is refunded so.
    #[must_use]
    pub fn refunded(self, refunds: &[(u8, Option<u32>)]) -> Self {
        let refund = |(number, seat): &(u8, Option<u32>)| Refunded { number: *number, seat: *seat };
        Self { refunds: refunds.iter().map(refund).collect(), ..self }
    }

    /// This buyer, beginning to pay so often.
    #[must_use]
    pub fn starts(self, starts: u8) -> Self {
        Self { starts, ..self }
    }

    /// This buyer, asking so often to pay from the wallet.
    #[must_use]
    pub fn from_wallet(self, times: u8) -> Self {
        Self { from_wallet: times, ..self }
    }

    /// This buyer, who gives the ticket of a seat for it that the buyer of this index has paid: the same person.
    #[must_use]
    pub fn exchanging(self, buyer: usize, seat: u32) -> Self {
        Self { exchange: Some((buyer, seat)), ..self }
    }

    /// This buyer, whose order fills the wallet.
    #[must_use]
    pub fn tops_up(self) -> Self {
        Self { tops_up: true, ..self }
    }

    /// This buyer, of tickets at this price.
    #[must_use]
    pub fn costing(mut self, price_minor: MinorUnits) -> Self {
        self.lines[0].price_minor = price_minor;
        self
    }

    /// This buyer, paying these amounts.
    #[must_use]
    pub fn pays(self, payments: &[MinorUnits]) -> Self {
        Self { payments: payments.to_vec(), ..self }
    }
}

impl Setting for Scenario {
    type Flow = Flow;
    type Outcome = Outcome;

    fn deployment(&self) -> Deployment {
        let (grace, part_limit, listings) = (self.grace, self.part_limit, self.listings());
        let (offers, started_elsewhere) = (self.offers(), !self.has_starts());
        Deployment { grace, part_limit, listings, offers, started_elsewhere, buckets: BUCKETS }
    }

    fn run<D: Driver>(&self, flow: &Flow, ports: &Caller<D>) -> impl Future<Output = Outcome> {
        flow.run(self, ports)
    }
}

impl Scenario {
    /// A scenario in which the sale is loaded and nobody has bought.
    #[must_use]
    pub fn new(name: &'static str, limit: u16, buyers: Vec<Buyer>) -> Self {
        Self::of_sale(name, sale(limit), buyers)
    }

    /// [`Scenario::new`] of a concert whose two tiers, of a seat each, are kept apart.
    #[must_use]
    pub fn apart(name: &'static str, limit: u16, buyers: Vec<Buyer>) -> Self {
        Self::of_sale(name, concert(limit), buyers)
    }

    fn of_sale(name: &'static str, sale: Sale, buyers: Vec<Buyer>) -> Self {
        let purse = buyers.iter().any(|buyer| buyer.tops_up).then(|| Arc::new(purse()));
        let mut scenario = Self {
            name,
            sale: Arc::new(sale),
            purse,
            buyers,
            times: vec![START],
            stores: Stores::default(),
            ordered: Vec::new(),
            budget: Budget::default(),
            grace: Grace::NONE,
            part_limit: PartLimit::STANDARD,
            is_lost: false,
            lags: false,
            lists: None,
            keeps: false,
            is_disputed: false,
            delivers: Delivers::default(),
            without: None,
        };
        let mut stores = Stores::default();
        for sale in scenario.sales() {
            stores.catalogue.publish(sale.file(), None).unwrap();
            let message = Message::Load(sale.id().clone());
            let sent = Sent { visible_at: START, message };
            let load = Flow::Consume { sent, is_copy: false, epoch: epoch(0), now: START };
            assert_eq!(direct::run(&scenario, &mut stores, START, &load), Outcome::Done);
            // Readers share one laid out sale.
            if let Some(listed) = stores.catalogue.sales.get_mut(sale.id()) {
                listed.sale = Arc::clone(sale);
            }
        }
        scenario.stores = stores;
        scenario
    }

    /// This scenario with a budget.
    #[must_use]
    pub fn budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// This scenario with the queues that deliver.
    #[must_use]
    pub fn delivering(self, delivers: Delivers) -> Self {
        Self { delivers, ..self }
    }

    /// The clock goes on to these moments, in seconds after the start.
    #[must_use]
    pub fn until(mut self, seconds: &[i64]) -> Self {
        self.times.extend(seconds.iter().map(|seconds| START.plus_seconds(*seconds)));
        self
    }

    /// The provider has no free start before this moment, in seconds after the start.
    #[must_use]
    pub fn busy_until(mut self, seconds: i64) -> Self {
        self.stores.provider.next_start = Some(START.plus_seconds(seconds));
        self
    }

    /// This scenario at a provider that lags, with the grace of a deployment.
    #[must_use]
    pub fn lagging(self) -> Self {
        Self { grace: Grace::DEFAULT, lags: true, ..self }
    }

    /// This scenario with the grace of a deployment.
    #[must_use]
    pub fn graced(self) -> Self {
        Self { grace: Grace::DEFAULT, ..self }
    }

    /// Redis has lost everything before the start, and loads are in as many parts as they can be.
    #[must_use]
    pub fn lost_and_loaded_in_parts(mut self) -> Self {
        self.stores.lose_redis();
        Self { part_limit: PartLimit::SMALLEST, is_lost: true, ..self }
    }

    /// Redis has lost one tier before the start, and has the other.
    #[must_use]
    pub fn without_tier(mut self, tier: &TierId) -> Self {
        self.stores.seats.unload(&self.sale.inventory_of(tier));
        Self { is_lost: true, ..self }
    }

    /// This scenario at a provider that has nothing of a page before its buyer opens it.
    #[must_use]
    pub fn lazy(mut self) -> Self {
        self.stores.provider.is_lazy = true;
        self
    }

    /// This scenario at a provider that lists its captures.
    #[must_use]
    pub fn listing(self) -> Self {
        Self { lists: Some(ListLag::DEFAULT), ..self }
    }

    /// This scenario, in which the bank takes back what the first buyer has paid.
    #[must_use]
    pub fn disputed(mut self) -> Self {
        let Capture { key: payment, order, amount, .. } = self.capture(0, 0);
        let (id, state) = (dispute(), DisputeState::Open);
        let report =
            DisputeReport { id: id.clone(), payment, order, amount, state, mark: Mark::Ours };
        self.stores.provider.disputes.insert(id, report);
        Self { is_disputed: true, ..self }
    }

    /// This scenario, in which a capture that cannot be decided now is kept.
    #[must_use]
    pub fn keeping(self) -> Self {
        Self { keeps: true, ..self }
    }

    /// The provider, as the ports name it.
    #[must_use]
    pub fn listings(&self) -> Vec<Listing> {
        self.lists.map(|lag| Listing { provider: provider(), lag: Some(lag) }).into_iter().collect()
    }

    /// True if payments are started here, and nowhere else.
    #[must_use]
    pub fn has_starts(&self) -> bool {
        self.buyers.iter().any(|buyer| buyer.starts > 0)
    }

    /// What can be paid with: a page that outlives the order's deadline.
    #[must_use]
    pub fn offers(&self) -> Vec<Offer> {
        let methods = PaymentMethod::ALL.map(|method| (method, PAGE_SECONDS)).to_vec();
        let (currencies, counting, deployment) = (None, Counting::Iso, None);
        let offer = Offer { provider: provider(), methods, currencies, counting, deployment };
        self.has_starts().then_some(offer).into_iter().collect()
    }

    /// What a buyer chooses to pay with.
    #[must_use]
    pub fn choice(&self, is_other: bool) -> PaymentChoice {
        let method = if is_other { PaymentMethod::Form } else { PaymentMethod::Page };
        PaymentChoice { provider: provider(), method, return_url: None }
    }

    /// A buyer has an order at the start, and knows it.
    #[must_use]
    pub fn with_order(mut self, buyer: usize) -> Self {
        let request = Flow::Reserve { buyer, epoch: Some(epoch(0)), now: START };
        let mut stores = std::mem::take(&mut self.stores);
        let outcome = direct::run(&self, &mut stores, START, &request);
        assert!(matches!(outcome, Outcome::Ordered(_)), "{outcome:?}");
        self.stores = stores;
        self.ordered.push(buyer);
        self
    }

    /// The wallet of a buyer has the price of one ticket at the start.
    #[must_use]
    pub fn with_wallet(mut self, buyer: usize) -> Self {
        let key = (self.buyers[buyer].user.clone(), self.sale.file().currency);
        let incoming = i128::from(PRICE_MINOR);
        let balance = Balance { incoming, ..Balance::default() };
        self.stores.orders.wallets.insert(key, Wallet { balance, ..Wallet::default() });
        self
    }

    /// A buyer has a paid order at the start, and knows it; its facts are settled, its seats sold.
    #[must_use]
    pub fn with_paid(self, buyer: usize) -> Self {
        let mut scenario = self.with_order(buyer);
        let mut stores = std::mem::take(&mut scenario.stores);
        let capture = scenario.capture(buyer, 0);
        stores.provider.capture(capture.clone());
        let order = capture.order;
        let paid = direct::run(&scenario, &mut stores, START, &Flow::Pay { capture, now: START });
        assert!(matches!(paid, Outcome::Decided(PaymentOutcome::Accepted)), "{paid:?}");
        let sent = Sent { visible_at: START, message: Message::Sync(order) };
        let sync = Flow::Consume { sent, is_copy: false, epoch: epoch(0), now: START };
        assert_eq!(direct::run(&scenario, &mut stores, START, &sync), Outcome::Done);
        stores.queues = QueuesModel::default();
        scenario.stores = stores;
        scenario
    }

    /// A refund, as an operator asks for it. A ticket costs [`PRICE_MINOR`] over the number of the order's.
    #[must_use]
    pub fn refund(&self, refund: Refunded) -> RefundRequest {
        let named = |seat: u32| RefundedTickets::Named(vec![ticket(seat)]);
        RefundRequest {
            number: refund.number.try_into().unwrap(),
            tickets: refund.seat.map_or(RefundedTickets::All, named),
            amount: None,
            asked_by: AskedBy::Operator,
            reason: None,
        }
    }

    /// The same scenario without a guard.
    #[must_use]
    pub fn without(self, guard: Guard) -> Self {
        Self { without: Some(guard), ..self }
    }

    /// The sales that there are.
    fn sales(&self) -> impl Iterator<Item = &Arc<Sale>> {
        std::iter::once(&self.sale).chain(&self.purse)
    }

    /// A buyer's request, as the handler checked it.
    #[must_use]
    pub fn reservation(&self, buyer: usize, epoch: Option<Epoch>) -> Reservation {
        let Buyer { user, number, lines, exchange, tops_up, .. } = &self.buyers[buyer];
        let exchange = exchange.map(|(old, seat)| ExchangeRequest {
            order: self.buyers[old].number,
            tickets: vec![ticket(seat)],
        });
        let sale = self.purse.as_ref().filter(|_| *tops_up).unwrap_or(&self.sale);
        let published = Published {
            sale: Arc::clone(sale),
            map: None,
            epoch,
            version: 1,
            lifecycle: Lifecycle::Listed,
        };
        Reservation {
            published,
            number: *number,
            user: user.clone(),
            lines: lines.clone(),
            exchange,
        }
    }

    /// A buyer's payment, counted from 0.
    #[must_use]
    pub fn capture(&self, buyer: usize, payment: usize) -> Capture {
        let Buyer { number, payments, .. } = &self.buyers[buyer];
        let key = PaymentKey {
            provider: provider(),
            payment: PaymentId::new(format!("p{}.{}", buyer + 1, payment + 1)).unwrap(),
        };
        let amount = Money { amount_minor: payments[payment], ..self.sale.money(MinorUnits::ZERO) };
        Capture { key, order: *number, amount, attempt: None }
    }

    #[must_use]
    pub fn id(&self) -> &SaleId {
        self.sale.id()
    }
}
