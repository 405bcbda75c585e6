//! Random calls of the orders and the catalogue, drawn so that refusals, replays and conflicts are
//! frequent.

use engine::domain::admission::gate::tokens::{TokenCounts, TokenSnapshot};
use engine::domain::basics::ids::{
    DeploymentId, DisputeId, DoorName, Epoch, Legs, MerchantId, PaymentId, ProviderId,
    RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId,
};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::{Gene, OrderNumber};
use engine::domain::basics::reserved::WALLET;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::points::{Award, Points};
use engine::domain::order::attempt::{
    AttemptNumber, AttemptState, Attempts, PaymentChoice, PaymentMethod, PaymentStep,
};
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::exchange::Exchange;
use engine::domain::order::fact::{Cause, FactKind};
use engine::domain::order::order_refund::{AskedBy, OrderRefund, RefundNumber};
use engine::domain::order::place::Place;
use engine::domain::order::refund::{Refund, RefundState};
use engine::domain::order::{
    Capture, CheckIn, Issue, Order, OrderLine, OrderState, PaymentKey, PaymentOutcome,
    PaymentRecord, RefundReason, Ticket,
};
use engine::domain::payment::dispute::{DisputePlan, DisputeReport, DisputeStep, decide_dispute};
use engine::domain::payment::exchange::redeem;
use engine::domain::payment::ours::Mark;
use engine::domain::payment::refund::{RefundPlan, RefundRequest, RefundedTickets, decide_refund};
use engine::domain::sale::attachment::{Attachment, AttachmentKind};
use engine::domain::sale::{MerchantTerms, PointsTerms, RefundTerms, SaleFile};
use engine::domain::ticket::{
    CheckInDecision, Serial, TicketNumber, decide_check_in, decide_reissue,
};
use engine::ports::{DUE_SHARDS, Freshness, Settlement};
use model_stores::{Call, Stores, attendee as attendee_of};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

/// The time at which a sequence begins.
const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);
/// The names of disputes.
const DISPUTES: [&str; 2] = ["dp_1", "dp_2"];
/// Seats that are asked for: two of each block.
const SEATS: [u32; 4] = [0, 1, 128, 130];
/// The people whom tickets name: more than a buyer with a small limit may.
const PEOPLE: [&str; 6] = ["ada", "bob", "cleo", "dan", "eve", "fay"];
const LEGS: u16 = 3;
const PRICE: MinorUnits = MinorUnits(500);

/// What the payment of an order tells.
fn paid_by(order: &Order, key: &PaymentKey) -> Cause {
    let (key, number) = (key.clone(), order.number);
    Cause::capture(&Capture { key, order: number, amount: order.total, attempt: None }, None)
}

/// The values that a sequence draws from.
#[derive(Debug)]
pub struct SeededRng {
    rng: StdRng,
    now: Timestamp,
    /// The numbers that orders have, and whose they are.
    pub numbers: Vec<(OrderNumber, UserId)>,
    pub sales: Vec<SaleId>,
    /// The tiers of each sale.
    pub tiers: Vec<TierId>,
    /// A refund that was decided, and may be asked for once more.
    plan: Option<RefundPlan>,
    /// An exchange that was paid, and may be paid once more.
    exchanged: Option<Call>,
    /// A step of a dispute that was decided, and may be recorded once more.
    disputed: Option<DisputePlan>,
    /// An order as it was when it was to be counted.
    counted: Option<Order>,
    /// A paid order as it was.
    seen: Option<Order>,
}

impl SeededRng {
    pub fn new(seed: u64) -> Self {
        let numbers = ["7", "8", "7", "alice", "7", "8"].iter().enumerate().map(|(index, user)| {
            let user = UserId::new(*user).unwrap();
            let gene = Gene::from_text(user.as_str());
            let at = START.plus_seconds(index as i64 % 3);
            (OrderNumber::compose(at, 5, index as u16, gene), user)
        });
        Self {
            rng: StdRng::seed_from_u64(seed),
            now: START,
            plan: None,
            exchanged: None,
            disputed: None,
            counted: None,
            seen: None,
            numbers: numbers.collect(),
            sales: ["s1", "s2"].map(|id| SaleId::new(id).unwrap()).to_vec(),
            tiers: ["a", "b"].map(|id| TierId::new(id).unwrap()).to_vec(),
        }
    }

    /// True once in `times` calls, on average.
    fn once_in(&mut self, times: u32) -> bool {
        self.rng.random_range(0..times) == 0
    }

    fn of<T: Clone>(&mut self, some: &[T]) -> T {
        some[self.rng.random_range(0..some.len())].clone()
    }

    /// The number of calls of a sequence.
    pub fn length(&mut self) -> usize {
        self.rng.random_range(20..60)
    }

    /// The time at the stores.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    fn sale(&mut self) -> SaleId {
        // Most of it is about one sale, so that its seats run out.
        if self.once_in(8) { self.sales[1].clone() } else { self.sales[0].clone() }
    }

    fn ticket(&mut self, seat: u32) -> Ticket {
        let attendee = self.once_in(2).then(|| self.of(&PEOPLE));
        Ticket {
            seat: Seat(seat),
            name: SeatName::new(format!("x-{seat}")).unwrap(),
            attendee: attendee.map(attendee_of),
            refund: None,
            issue: Issue::FIRST,
            checked_in: None,
        }
    }

    fn line(&mut self, tier: TierId) -> OrderLine {
        let from = self.rng.random_range(0..LEGS);
        let to = self.rng.random_range(from + 1..=LEGS);
        let mut seats = SEATS.to_vec();
        // Seldom one seat twice, which breaks the contract.
        let count = if self.once_in(3) { 2 } else { 1 };
        let is_doubled = self.once_in(40);
        let mut tickets = Vec::new();
        for _ in 0..count {
            let seat = self.of(&seats);
            seats.retain(|other| *other != seat || is_doubled);
            tickets.push(self.ticket(seat));
        }
        let legs = Legs::new(from, to).unwrap();
        let until = self.now.plus_seconds(86_400);
        let exchange = Some(RefundTerms { until, fee_minor: MinorUnits(1) });
        OrderLine { tier, legs, price_minor: PRICE, terms: None, exchange, tickets }
    }

    /// An order of a known number that has not been made, or not like this.
    fn order(&mut self) -> Order {
        let (number, user) = {
            let numbers = self.numbers.clone();
            self.of(&numbers)
        };
        let tiers = self.tiers.clone();
        let mut lines = vec![self.line(tiers[0].clone())];
        if self.once_in(4) {
            lines.push(self.line(tiers[1].clone()));
        }
        let amount_minor = lines.iter().map(|line| PRICE * line.count()).sum();
        let window = self.of(&[5_003, 61_007, 120_011]);
        Order {
            number,
            sale: self.sale(),
            user,
            state: if self.once_in(40) { OrderState::Paid } else { OrderState::Pending },
            lines,
            total: Money { amount_minor, currency: Currency::new("EUR").unwrap() },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: self.now,
            pay_by: self.now.plus_ms(window),
            changed_at: self.now,
            payment: None,
            attempts: Attempts::default(),
            facts: engine::domain::order::fact::Facts::made(self.now),
            refunds: engine::domain::order::order_refund::RefundCounts::default(),
            merchant: self.merchant(),
            exchange: None,
        }
    }

    /// Whose money it is; sometimes it fills the buyer's wallet.
    fn merchant(&mut self) -> MerchantTerms {
        let wallet = MerchantId::new(WALLET).unwrap();
        let fills = MerchantTerms { merchant: wallet, ..MerchantTerms::house() };
        let points = PointsTerms { per_minor: 100.try_into().unwrap(), points: 2, growth: 1 };
        let gives = MerchantTerms { points: Some(points), ..MerchantTerms::house() };
        match self.rng.random_range(0..5) {
            0 => fills,
            1 | 2 => gives,
            _ => MerchantTerms::house(),
        }
    }

    /// An order as the store has it, or another one under a known number.
    fn known(&mut self, stores: &Stores) -> Order {
        let known: Vec<Order> = stores.orders.orders.values().cloned().collect();
        if known.is_empty() || self.once_in(12) { self.order() } else { self.of(&known) }
    }

    /// An order, sometimes one that shall replace a ticket of a paid one.
    fn replacing(&mut self, stores: &Stores, order: Order) -> Order {
        let is_tickets = |old: &&Order| old.state == OrderState::Paid && !old.tops_up();
        let paid = stores.orders.orders.values().filter(is_tickets);
        let paid: Vec<Order> = paid.filter(|old| old.number != order.number).cloned().collect();
        if paid.is_empty() || order.tops_up() || !self.once_in(2) {
            return order;
        }
        let old = self.of(&paid);
        let tickets = old.live_tickets().map(|(line, ticket)| ticket.named(line)).take(1).collect();
        let value_minor = MinorUnits(self.of(&[1, 500, 600]));
        let exchange = Exchange { order: old.number, sale: old.sale, tickets, value_minor };
        Order { exchange: Some(exchange), ..order }
    }

    /// The payment of an order that replaces tickets; `None` if it replaces none, or they cannot go.
    fn exchange(&mut self, stores: &Stores, paid: &Order, key: &PaymentKey) -> Option<Call> {
        let exchange = paid.exchange.clone()?;
        let old = stores.orders.get(exchange.order)?;
        let mut payment = stores.orders.payment(old.number, old.payment.as_ref()?)?;
        let limit = Tickets::new(self.of(&[1, 3, 6]));
        let record = if paid.is_covered() {
            payment.moved_to(paid, self.now).ok()?
        } else {
            let (key, number) = (key.clone(), paid.number);
            let capture = Capture { key, order: number, amount: paid.total, attempt: None };
            PaymentRecord::decided(&capture, PaymentOutcome::Accepted, self.now)
        };
        if self.once_in(4) {
            // Decided on a payment of which less had gone back, or before it was disputed.
            payment.back = MinorUnits::ZERO;
            payment.disputes.clear();
        }
        let by = record.capture.key.clone();
        let new = Order { payment: Some(by.clone()), ..paid.clone() };
        let plan = redeem(&new, &exchange, &old, Some(&payment), &by, self.now).ok()?;
        self.plan = self.once_in(3).then(|| plan.clone());
        let settlement = Settlement::Exchange(new, Box::new(plan));
        let call = Call::Settle { payment: record, settlement, limit };
        self.exchanged = self.once_in(3).then(|| call.clone());
        Some(call)
    }

    fn key(&mut self) -> PaymentKey {
        let payment = self.of(&["p1", "p2", "p3", "p4", "p5"]);
        let provider = if self.once_in(6) { WALLET } else { "bank" };
        let (provider, payment) = (ProviderId::new(provider), PaymentId::new(payment));
        PaymentKey { provider: provider.unwrap(), payment: payment.unwrap() }
    }

    /// A change of an order's attempts, sometimes of such as somebody else has changed.
    fn attempt(&mut self, stores: &Stores) -> Call {
        let order = self.known(stores);
        let provider = ProviderId::new("bank").unwrap();
        let choice = PaymentChoice { provider, method: PaymentMethod::Page, return_url: None };
        let expires_at = self.now.plus_seconds(1860);
        let (first, page) = (AttemptNumber::FIRST, PaymentStep::Page("https://pay".to_owned()));
        let deployment = self.of(&[None, DeploymentId::new("prod1").ok()]);
        let attempts = match self.rng.random_range(0..6) {
            0 => order.attempts.with_state(first, self.of(&AttemptState::ALL)),
            1 => order.attempts.with_answer(first, &PaymentId::new("cs_1").unwrap(), &page),
            2 => {
                let ahead_seconds = self.of(&[3, 50, 120]);
                let at = self.now.plus_seconds(ahead_seconds);
                order.with_place(Place { provider: choice.provider, at }, None).attempts
            }
            3 => order.attempts.with_place_used(&choice.provider),
            _ => match order.attempts.with_another(
                &choice,
                deployment.as_ref(),
                expires_at,
                self.now,
            ) {
                Some((attempts, _)) => attempts,
                None => order.attempts.with_state(first, AttemptState::Closed),
            },
        };
        let skips = u32::from(self.once_in(6));
        let version = attempts.version + skips;
        Call::KeepAttempts { order: Order { attempts: Attempts { version, ..attempts }, ..order } }
    }

    fn settle(&mut self, stores: &Stores) -> Call {
        let key = self.key();
        let waits = |order: &&Order| order.state == OrderState::Pending && order.exchange.is_some();
        let waiting: Vec<Order> = stores.orders.orders.values().filter(waits).cloned().collect();
        let is_exchange = !waiting.is_empty() && self.once_in(2);
        let order = if is_exchange { self.of(&waiting) } else { self.known(stores) };
        let becomes = |state| Order {
            state,
            changed_at: self.now,
            payment: Some(key.clone()),
            attempts: Attempts {
                paid: order.attempts.open().next().map(|attempt| attempt.number),
                ..order.attempts.clone()
            },
            facts: order.facts.with(FactKind::Paid, self.now, paid_by(&order, &key)),
            ..order.clone()
        };
        let too_late = PaymentOutcome::Refund(RefundReason::TooLate);
        let (pay, rescue) = (becomes(OrderState::Paid), becomes(OrderState::Paid));
        let late = becomes(OrderState::RefundDue);
        let fitting = match order.state {
            OrderState::Pending => 0,
            OrderState::Cancelled | OrderState::Expired => 1 + self.rng.random_range(0..2),
            OrderState::Paid | OrderState::RefundDue | OrderState::Refunded => 3,
        };
        if let Some(call) = self.exchanged.take().filter(|_| self.once_in(2)) {
            return call;
        }
        if fitting == 0
            && let Some(call) = self.exchange(stores, &pay, &key)
        {
            return call;
        }
        let which = if self.once_in(4) { self.rng.random_range(0..4) } else { fitting };
        let (settlement, outcome) = match which {
            0 => (Settlement::Pay(pay), PaymentOutcome::Accepted),
            1 => (Settlement::Rescue(rescue), PaymentOutcome::Accepted),
            2 => (Settlement::PayTooLate(late), too_late),
            _ => {
                let reason = self.of(&RefundReason::ALL);
                let known = stores.orders.get(order.number).filter(|order| !order.is_tombstone());
                let told = known.map(|order| {
                    order.append_fact(FactKind::CaptureRefused, Cause::BUYER, self.now)
                });
                (Settlement::RefundOnly(told), PaymentOutcome::Refund(reason))
            }
        };
        let attempt = order.attempts.open().next().map(|attempt| attempt.number);
        let capture = Capture { key, order: order.number, amount: order.total, attempt };
        let payment = PaymentRecord::decided(&capture, outcome, self.now);
        Call::Settle { payment, settlement, limit: Tickets::new(self.of(&[1, 3, 6])) }
    }

    /// A refund of a paid order, sometimes one that is decided on what has changed since.
    fn give_back(&mut self, stores: &Stores) -> Option<Call> {
        if let Some(plan) = self.plan.take().filter(|_| self.once_in(3)) {
            return Some(Call::GiveBack { plan });
        }
        let paid = stores.orders.orders.values().filter(|order| order.state == OrderState::Paid);
        let paid: Vec<Order> = paid.filter(|order| order.payment.is_some()).cloned().collect();
        if paid.is_empty() {
            return None;
        }
        let order = self.of(&paid);
        let key = order.payment.clone()?;
        let mut payment = stores.orders.payment(order.number, &key)?;
        let mut live = order.live_tickets().map(|(line, ticket)| ticket.named(line));
        let (first, amount) = (live.next()?, self.of(&[0, 1, 300, 1200]));
        let amount = Money { amount_minor: MinorUnits(amount), ..order.total };
        let (tickets, amount) = match self.rng.random_range(0..3) {
            0 => (RefundedTickets::All, None),
            1 => (RefundedTickets::Named(vec![first]), self.once_in(2).then_some(amount)),
            _ => (RefundedTickets::Named(Vec::new()), Some(amount)),
        };
        if self.once_in(8) {
            // Decided on a payment of which less had gone back.
            payment.back = MinorUnits::ZERO;
        }
        if self.once_in(3) {
            // Decided before it was disputed.
            payment.disputes.clear();
        }
        let request = RefundRequest {
            number: RefundNumber::try_from(order.refunds.made + 1).ok()?,
            tickets,
            amount,
            asked_by: AskedBy::Operator,
            reason: self.once_in(2).then(|| "rain".to_owned()),
        };
        let mut plan = decide_refund(&order, Some(&payment), &request, self.now).ok()?;
        // As if the order had been read before its tickets were used, or its payment was disputed.
        plan.refund.asked_by = self.of(&AskedBy::ALL);
        if plan.refund.asked_by == AskedBy::Dispute {
            plan.refund.reason = Some(self.of(&DISPUTES).to_owned());
        }
        self.plan = self.once_in(3).then(|| plan.clone());
        Some(Call::GiveBack { plan })
    }

    /// A step of a dispute of a paid order's payment, sometimes of one that has changed since.
    fn dispute(&mut self, stores: &Stores) -> Option<Call> {
        if let Some(plan) = self.disputed.take().filter(|_| self.once_in(2)) {
            return Some(Call::Dispute { plan });
        }
        let orders = stores.orders.orders.values();
        let with_payment: Vec<Order> =
            orders.filter(|order| order.payment.is_some()).cloned().collect();
        if with_payment.is_empty() {
            return None;
        }
        let order = self.of(&with_payment);
        let payment = stores.orders.payment(order.number, order.payment.as_ref()?)?;
        let report = DisputeReport {
            id: DisputeId::new(self.of(&DISPUTES)).unwrap(),
            payment: payment.capture.key.clone(),
            order: order.number,
            amount: Money {
                amount_minor: MinorUnits(self.of(&[1, 300])),
                ..payment.capture.amount
            },
            state: self.of(&DisputeState::ALL),
            mark: Mark::Ours,
        };
        let refunds = stores.orders.order_refunds(order.number);
        let step = decide_dispute(&order, &payment, &refunds, &report, false, self.now).ok()?;
        let with = |refund: OrderRefund, order: Order| DisputePlan {
            order,
            before: payment.disputes.clone(),
            payment: payment.clone(),
            refund: Some(refund),
        };
        let plan = match step {
            DisputeStep::Record(plan) => *plan,
            DisputeStep::Refund(request) => {
                let plan = decide_refund(&order, Some(&payment), &request, self.now).ok()?;
                return Some(Call::GiveBack { plan });
            }
            DisputeStep::Back(refund) | DisputeStep::Finish(refund) => {
                let told = order.after_part(&refund, self.now);
                with(*refund, told)
            }
            DisputeStep::Undo(refund) => {
                let told = order.after_reinstated(&refund, self.now);
                with(*refund, told)
            }
            DisputeStep::Nothing => return None,
        };
        self.disputed = self.once_in(2).then(|| plan.clone());
        Some(Call::Dispute { plan })
    }

    /// A new issue or a check-in of a ticket, sometimes of a paid order as it was before, or one at a second door.
    fn door(&mut self, stores: &Stores) -> Option<Call> {
        let paid = stores.orders.orders.values().filter(|order| order.state == OrderState::Paid);
        let paid: Vec<Order> = paid.cloned().collect();
        if paid.is_empty() {
            return None;
        }
        let now = self.of(&paid);
        let before = self.seen.take().filter(|_| self.once_in(2)).unwrap_or_else(|| now.clone());
        self.seen = Some(now);
        let count = before.numbered().count();
        if count == 0 {
            return None;
        }
        let ticket = u8::try_from(self.rng.random_range(1..=count)).ok()?;
        let ticket = TicketNumber::try_from(ticket).ok()?;
        if self.once_in(3) {
            return decide_reissue(&before, &[ticket]).ok().map(|plan| Call::Reissue { plan });
        }
        let door = DoorName::new(self.of(&["north", "south"])).unwrap();
        let check_in = CheckIn { at: START.plus_seconds(self.rng.random_range(0..3)), door };
        let issue = before.numbered().find(|of| of.number == ticket)?.ticket.issue;
        let serial = Serial { order: before.number, ticket, issue };
        match decide_check_in(Some(&before), &before.sale, &serial, &check_in) {
            CheckInDecision::Admit(plan) => Some(Call::CheckIn { plan: *plan }),
            CheckInDecision::Double(double) => Some(Call::CheckInAgain { double }),
            CheckInDecision::Repeated(_) | CheckInDecision::Revoked | CheckInDecision::Unknown => {
                None
            }
        }
    }

    /// What a provider says of a refund of an order.
    fn part_is_back(&mut self, stores: &Stores) -> Option<Call> {
        let known: Vec<OrderRefund> = stores.orders.refunds.values().cloned().collect();
        if known.is_empty() {
            return None;
        }
        let mut refund = self.of(&known);
        let state = self.of(&RefundState::ALL[1..]);
        let refusal = (state == RefundState::Failed).then(|| "no".to_owned());
        refund.refund = Refund { state, changed_at: self.now, refusal, turn_at: None };
        let order = stores.orders.get(refund.key.order);
        let order = order.filter(|_| state == RefundState::Refunded);
        let order = order.map(|order| order.after_part(&refund, self.now));
        Some(Call::RecordOrderRefund { refund, order })
    }

    fn refund(&mut self, stores: &Stores) -> Option<Call> {
        let known: Vec<PaymentRecord> = stores.orders.payments.values().cloned().collect();
        if known.is_empty() {
            return None;
        }
        let mut payment = self.of(&known);
        if self.once_in(10) {
            payment.capture.key.payment = PaymentId::new("unheard-of").unwrap();
        }
        let state = self.of(&RefundState::ALL);
        let refusal = (state == RefundState::Failed).then(|| "no".to_owned());
        if payment.refund.is_some() || self.once_in(4) {
            let turn_at = self.once_in(3).then_some(self.now);
            payment.refund = Some(Refund { state, changed_at: self.now, refusal, turn_at });
        }
        let order = stores.orders.get(payment.capture.order);
        let order = order.filter(|_| state == RefundState::Refunded || self.once_in(20));
        let order = order.and_then(|order| order.after_refund(&payment, self.now));
        Some(Call::RecordRefund { payment, order })
    }

    fn file(&mut self) -> SaleFile {
        let limit = self.rng.random_range(1..5);
        let runs_on = self.of(&[None, Some("2026-11-21"), Some("2026-11-22")]);
        let departs = runs_on.map(|_| self.of(&["08:05", "23:10", "24:10"]));
        let (first, last) = self.of(&[("A", "C"), ("C", "A")]);
        let stops = json!([
            { "stop": first, "name": "First", "departs": departs },
            { "stop": "B", "name": "Second" },
            { "stop": last, "name": "Last" }
        ]);
        serde_json::from_value(json!({
            "runs_on": runs_on, "stops": stops, "state": self.of(&["open", "open", "cancelled"]),
            "sale": self.sale(), "title": "Sale", "currency": "EUR",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
            "limit_per_buyer": limit, "pay_window_seconds": 60,
            "tiers": [{ "tier": "a", "name": "A", "price_minor": 500, "general_admission": 2 }],
            "map": self.of(&[None, Some(1), Some(2)]).map(|width| {
                json!({ "width": width, "height": 1, "sections": [] })
            }),
        }))
        .unwrap()
    }

    fn epoch(&mut self) -> Epoch {
        Epoch::new(self.of(&["e1", "e2", "e3"])).unwrap()
    }

    /// More often than not a sale under a lease and the epoch of who has it: only it may go on.
    fn leased(&mut self, stores: &Stores) -> (SaleId, Epoch) {
        let leased = stores.catalogue.sales.iter();
        let mut leased = leased.filter_map(|(id, sale)| Some((id, &sale.lease.as_ref()?.0)));
        match leased.next() {
            Some((id, epoch)) if !self.once_in(3) => (id.clone(), epoch.clone()),
            _ => (self.sale(), self.epoch()),
        }
    }

    fn of_the_catalogue(&mut self, stores: &Stores) -> Call {
        let id = self.sale();
        let now = self.now;
        match self.rng.random_range(0..10) {
            0 => {
                let file = self.file();
                let version = stores.catalogue.sales.get(&file.sale).map(|sale| sale.version);
                let replaces = if self.once_in(4) { Some(1) } else { version };
                Call::Publish { file, replaces }
            }
            1 => Call::Lease { id, epoch: self.epoch(), now, until: now.plus_ms(2_500) },
            2 => {
                let (id, epoch) = self.leased(stores);
                Call::Prolong { id, epoch, until: now.plus_ms(2_500) }
            }
            3 => {
                let (id, epoch) = self.leased(stores);
                Call::Loaded { id, epoch }
            }
            4 if self.once_in(3) => Call::Map { id },
            4 if self.once_in(3) => self.attachment(),
            4 if self.once_in(2) => {
                let stop = |name: &str| name.parse().unwrap();
                Call::Trains {
                    day: self.of(&["2026-11-21", "2026-11-22"]).parse().unwrap(),
                    from: stop(self.of(&["a", "B", "second"])),
                    to: stop(self.of(&["C", "last", "second"])),
                    after: self.once_in(2).then(|| format!("0805#{id}").parse().unwrap()),
                    now: self
                        .of(&["2026-11-21T07:05:00Z", "2026-11-22T00:00:00Z"])
                        .parse()
                        .unwrap(),
                    most: self.of(&[1, 2, 10]),
                }
            }
            4 if self.once_in(2) => Call::Stops {
                day: self.of(&["2026-11-21", "2026-11-22"]).parse().unwrap(),
                after: self
                    .once_in(2)
                    .then(|| self.of(&["first\ta", "second\tb"]).parse().unwrap()),
                most: self.of(&[1, 2, 10]),
            },
            4 => Call::Sale { id, freshness: Freshness::Fresh },
            5 => {
                let after = self.once_in(2).then(|| self.sale());
                Call::Listed { after, most: self.of(&[1, 2, 10]) }
            }
            // Seldom: nothing happens to an archived sale any more.
            6 if self.once_in(3) => {
                let (id, epoch) = self.leased(stores);
                let version = stores.catalogue.sales.get(&id).map(|sale| sale.version);
                let version = if self.once_in(4) { 1 } else { version.unwrap_or(1) };
                Call::Retire { id, epoch, version }
            }
            7 if self.once_in(2) => Call::Delist { id },
            8 if self.once_in(2) => {
                let since = now.plus_ms(self.of(&[-120_000, 0, 60_000]));
                Call::KeptTokens { id, since }
            }
            8 => {
                // Sometimes late: a later one of the minute may be there.
                let at = now.plus_ms(self.of(&[-30_000, -2000, 0, 0]));
                let mut count = || self.rng.random_range(-3..1_000_000);
                let counts = TokenCounts {
                    issued: count(),
                    by_hand: count(),
                    remaining: count(),
                    since: START,
                };
                let bought = self.rng.random_range(0..1000);
                Call::KeepTokens { id, snapshot: TokenSnapshot { at, counts, bought } }
            }
            _ => Call::Sales {},
        }
    }

    fn read(&mut self) -> Call {
        let numbers: Vec<OrderNumber> = self.numbers.iter().map(|(number, _)| *number).collect();
        let number = self.of(&numbers);
        match self.rng.random_range(0..9) {
            0 => Call::Order { number },
            1 => Call::ManyOrders { numbers: vec![number, numbers[0], number, numbers[3]] },
            2 => Call::Payment { order: number, payment: self.key() },
            3 => Call::Payments { order: number },
            4 => {
                let user = UserId::new(self.of(&["7", "8", "alice"])).unwrap();
                let before = self.once_in(2).then_some(number);
                Call::OrdersOf { user, before, most: self.of(&[0, 1, 2, 10]) }
            }
            5 => {
                let shard = self.rng.random_range(0..8);
                let later = self.of(&[0, 60_000, 600_000]);
                Call::Due { shard, now: self.now.plus_ms(later), most: self.of(&[1, 2, 100]) }
            }
            6 => {
                let block = self.rng.random_range(0..2);
                let tier = self.tiers[0].clone();
                Call::Claims { sale: self.sale(), tier, block }
            }
            7 if self.once_in(2) => {
                let user = UserId::new(self.of(&["7", "8", "alice"])).unwrap();
                Call::Wallet { user, currency: Currency::new("EUR").unwrap() }
            }
            7 => {
                let user = UserId::new(self.of(&["7", "8", "alice"])).unwrap();
                Call::TicketsOf { sale: self.sale(), user }
            }
            _ => Call::Statistics { sale: self.sale() },
        }
    }

    /// What an order gives is written in place of what is there, or of what was there.
    fn award(&mut self, stores: &Stores) -> Call {
        let Order { number: order, user, .. } = self.known(stores);
        let there = stores.orders.awarded(&user, order);
        if self.once_in(3) {
            return Call::Awarded { user, order };
        }
        let [points, growth] = [(); 2].map(|()| self.rng.random_range(0..5));
        let given = Points { points, growth };
        let before = if self.once_in(4) { None } else { there };
        let facts = before.map_or(0, |before| before.facts) + 1;
        Call::Award { user, order, award: Award { facts, given }, before }
    }

    /// A call about one of a few attachments.
    fn attachment(&mut self) -> Call {
        let (kind, bytes) = (self.of(&AttachmentKind::ALL), self.of(&["{}", "picture"]));
        let attachment = Attachment::new(kind, bytes.into());
        let hash = attachment.hash();
        match self.rng.random_range(0..3) {
            0 => Call::KeepAttachment { attachment },
            1 => Call::Attachment { hash },
            _ => Call::AttachmentKind { hash },
        }
    }

    /// The next call. Time goes on with each, so that no two things are due at one moment.
    pub fn call(&mut self, stores: &Stores) -> Call {
        self.now = self.now.plus_ms(997);
        match self.rng.random_range(0..26) {
            0..=4 => {
                let order = self.order();
                let order = self.replacing(stores, order);
                Call::Create { order, limit: Tickets::new(self.of(&[1, 3, 3, 6])) }
            }
            5..=6 => {
                let order = self.known(stores);
                let ends = [OrderState::Cancelled, OrderState::Expired];
                let state = if self.once_in(40) { OrderState::Paid } else { self.of(&ends) };
                // An end tells that it ends: neither side is asked to tell an earlier fact again.
                let (kind, cause) = match state {
                    OrderState::Cancelled => (FactKind::Cancelled, Cause::BUYER),
                    OrderState::Pending
                    | OrderState::Paid
                    | OrderState::Expired
                    | OrderState::RefundDue
                    | OrderState::Refunded => (FactKind::Expired, Cause::DEADLINE),
                };
                let end = order.append_fact(kind, cause, self.now);
                Call::End { end: Order { state, changed_at: self.now, ..end } }
            }
            7 => {
                let order = self.order();
                let lines = if self.once_in(10) { order.lines.clone() } else { Vec::new() };
                let state = OrderState::Expired;
                Call::WriteTombstone { tombstone: Order { lines, state, ..order } }
            }
            8..=10 => self.settle(stores),
            11 if self.once_in(2) => self.attempt(stores),
            16 => self.give_back(stores).unwrap_or_else(|| self.read()),
            17 if self.once_in(2) => self.part_is_back(stores).unwrap_or_else(|| self.read()),
            11 => self.refund(stores).unwrap_or_else(|| self.read()),
            12 => {
                let mut orders: Vec<Order> = (0..3).map(|_| self.known(stores)).collect();
                // As it was when it was counted before, or would have been.
                if let Some(before) = self.counted.take().filter(|_| self.once_in(2)) {
                    orders[0] = before;
                }
                self.counted = orders.first().cloned();
                Call::Count { orders, now: self.now }
            }
            13..=15 => self.of_the_catalogue(stores),
            25 => self.award(stores),
            23..=24 => self.dispute(stores).unwrap_or_else(|| self.read()),
            20..=22 => self.door(stores).unwrap_or_else(|| self.read()),
            _ => self.read(),
        }
    }

    /// Everything that is read at the end, through the ports.
    pub fn everything(&self) -> Vec<Call> {
        let numbers = self.numbers.iter().map(|(number, _)| *number);
        let mut calls: Vec<Call> = numbers
            .flat_map(|number| {
                let order = number;
                let refunds = Call::OrderRefunds { order };
                [Call::Order { number }, Call::Payments { order }, refunds]
            })
            .collect();
        calls.extend(["7", "8", "alice"].map(|user| {
            let user = UserId::new(user).unwrap();
            Call::Statement { user }
        }));
        calls.extend(["7", "8", "alice"].map(|user| {
            let user = UserId::new(user).unwrap();
            Call::Points { user }
        }));
        let late = self.now.plus_seconds(1_000_000);
        calls.extend((0..DUE_SHARDS).map(|shard| Call::Due { shard, now: late, most: 100 }));
        for sale in self.sales.clone() {
            for tier in self.tiers.clone() {
                calls.extend((0..2).map(|block| Call::Claims {
                    sale: sale.clone(),
                    tier: tier.clone(),
                    block,
                }));
            }
            calls.push(Call::Statistics { sale: sale.clone() });
            calls.push(Call::CheckIns { sale: sale.clone() });
            for most in [1, 100] {
                let after = Some("0".to_owned());
                calls.push(Call::Revoked { sale: sale.clone(), from: None, most });
                calls.push(Call::Revoked {
                    sale: sale.clone(),
                    from: Some(self.numbers[2].0),
                    most,
                });
                calls.push(Call::Doubles { sale: sale.clone(), after: None, most });
                calls.push(Call::Doubles { sale: sale.clone(), after, most });
            }
            calls.push(Call::Sale { id: sale, freshness: Freshness::Fresh });
        }
        calls
    }
}
