//! Facts of a small sale in which nothing is wrong, for the tests of every invariant.

use std::collections::BTreeMap;

use engine::domain::basics::ids::{Leg, Legs, SaleId, Seat};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::SeatLeg;
use engine::domain::order::attendee::AttendeeHash;
use engine::domain::order::fact::FactKind;
use engine::domain::order::refund::RefundState;
use engine::domain::order::{OrderState, PaymentKey};
use engine::domain::sale::Sale;

use super::super::facts::{
    AccountFact, CallFact, CallKey, CaptureFact, ClaimFact, CounterFact, DoubleFact, EntryFact,
    Facts, HeadFact, HeldFact, HoldFact, LedgerFacts, LineFact, OrderFact, PartKey, PaymentFact,
    RefundFact, SaleFacts, ShardFact, StopKey, TicketFact, TierBits, ToldFact,
};
use super::check;

pub(super) const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

pub(super) fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// An attendee by one digit of the hash.
pub(super) fn person(digit: char) -> AttendeeHash {
    id(&digit.to_string().repeat(32))
}

pub(super) fn order_number(order: u64) -> OrderNumber {
    id(&order.to_string())
}

pub(super) fn euros(amount: i64) -> Money {
    Money { amount_minor: MinorUnits(amount), currency: Currency::new("EUR").unwrap() }
}

pub(super) fn key(payment: &str) -> PaymentKey {
    PaymentKey { provider: id("stripe"), payment: id(payment) }
}

pub(super) fn at(tier: &str, leg: u16, seat: u32) -> SeatLeg {
    SeatLeg { tier: id(tier), leg: Leg(leg), seat: Seat(seat) }
}

/// Two legs; tier `a` has one row of A1 to A4, of which A4 is not for sale; `ga` has five spots.
pub(super) fn sale() -> Sale {
    let stop = |stop: &str| serde_json::json!({"stop": stop, "name": stop});
    let names = serde_json::json!(["A1", "A2", "A3", "A4"]);
    let file = serde_json::json!({
        "sale": "g1", "title": "G1", "currency": "EUR", "limit_per_buyer": 3,
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
        "pay_window_seconds": 600, "runs_on": "2026-11-21",
        "stops": [
            {"stop": "X", "name": "X", "departs": "08:05", "time_zone": "Europe/Vienna"}, stop("Y"), stop("Z")
        ],
        "tiers": [
            {"tier": "a", "name": "A", "price_minor": 50, "not_for_sale": ["A4"],
             "sections": [{"section": "1", "rows": [{"row": "1", "seats": names}]}]},
            {"tier": "ga", "name": "GA", "price_minor": 20, "general_admission": 5}
        ]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

pub(super) fn order(
    order: u64,
    user: &str,
    state: OrderState,
    tier: &str,
    legs: (u16, u16),
    seats: &[u32],
) -> OrderFact {
    let numbered = seats.to_vec();
    let seats: Vec<_> = seats.iter().map(|seat| (Seat(*seat), Vec::new())).collect();
    OrderFact {
        number: order_number(order),
        user: id(user),
        state,
        total: euros(50 * seats.len() as i64),
        lines: vec![LineFact {
            tier: id(tier),
            legs: Legs::new(legs.0, legs.1).unwrap(),
            price_minor: MinorUnits(50),
            seats,
            refunded: Vec::new(),
        }],
        pay_by: NOW.plus_seconds(60),
        changed_at: NOW,
        due_ms: None,
        payment: None,
        told: vec![told(FactKind::Made)],
        settled: 0,
        merchant: ("opera".to_owned(), 500),
        points: None,
        refunds: 0,
        refunds_back: 0,
        attempts: Vec::new(),
        unhanded: Vec::new(),
        absent: Vec::new(),
        steps: Vec::new(),
        extended_to: None,
        places: Vec::new(),
        paid_attempt: None,
        exchange: None,
        tickets: (1..).zip(&numbered).map(|(number, _)| ticket(number)).collect(),
    }
}

fn ticket(number: u8) -> TicketFact {
    TicketFact { number, refund: None, issue: 1, check_in: None }
}

pub(super) fn told(kind: FactKind) -> ToldFact {
    ToldFact {
        kind,
        at: NOW.plus_seconds(-300),
        by: "buyer".to_owned(),
        payment: None,
        amount_minor: None,
        currency: None,
        is_disputed: false,
        refund: None,
    }
}

/// A fact that speaks of money.
fn moved(kind: FactKind, payment: &str, amount: i64) -> ToldFact {
    ToldFact {
        payment: Some(("stripe".to_owned(), payment.to_owned())),
        amount_minor: Some(amount),
        currency: Some("EUR".to_owned()),
        ..told(kind)
    }
}

/// What the paid order has moved: of 150 the platform had 7, and has 5 of the 100 that are left.
fn books(facts: &mut SaleFacts) -> (Vec<AccountFact>, BTreeMap<PartKey, EntryFact>) {
    let [fees, owed, merchant, provider] = ["fees", "owed", "merchant:opera:g1", "provider:stripe"];
    for (from, to, code, amount) in [
        (provider, merchant, "sale", 143),
        (provider, fees, "commission", 7),
        (merchant, owed, "refund", 48),
        (fees, owed, "commission_back", 2),
        (owed, provider, "sent_back", 50),
    ] {
        let key = [from, to, code, "EUR"].map(str::to_owned).into();
        facts.transfers.insert(key, amount);
    }
    let part = |(account, incoming, outgoing): (&str, i128, i128)| AccountFact {
        part: (account.to_owned(), "EUR".to_owned(), "0".to_owned()),
        entry: EntryFact { incoming, outgoing },
        balance: incoming - outgoing,
    };
    let accounts: Vec<AccountFact> =
        [(fees, 7, 2), (owed, 50, 50), (merchant, 143, 48), (provider, 50, 150)].map(part).into();
    let booked = accounts.iter().map(|account| (account.part.clone(), account.entry)).collect();
    (accounts, booked)
}

pub(super) fn payment(order: u64, name: &str, accepted: bool, amount: i64) -> PaymentFact {
    PaymentFact {
        key: key(name),
        order: order_number(order),
        amount: euros(amount),
        attempt: None,
        accepted,
        refund: (!accepted).then_some(RefundState::Requested),
        back_minor: MinorUnits::ZERO,
        disputes: Vec::new(),
        listed: None,
        disputed: None,
        captured: None,
    }
}

#[allow(clippy::too_many_lines, reason = "a table of cases")]
/// Order 1 is paid (A1, A2, both legs, attendee a), 2 pending (a spot on leg 1), 3 cancelled,
/// 4 was paid too late, and money came for order 9, which never was. Of order 1 a third ticket, A7, was refunded.
pub(super) fn clean_facts() -> Facts {
    let mut paid = order(1, "alice", OrderState::Paid, "a", (0, 2), &[0, 1]);
    paid.payment = Some(key("pi_1"));
    paid.told.push(moved(FactKind::Paid, "pi_1", 150));
    paid.told.push(ToldFact { refund: Some(1), ..moved(FactKind::RefundMade, "pi_1", 50) });
    paid.told.push(ToldFact { refund: Some(1), ..moved(FactKind::Refunded, "pi_1", 50) });
    paid.settled = 4;
    paid.lines[0].refunded = vec![("A7".to_owned(), 1)];
    let first = (NOW.ms(), "north".to_owned());
    paid.tickets[0].check_in = Some(first.clone());
    paid.tickets[1].issue = 2;
    paid.tickets.push(TicketFact { refund: Some(1), ..ticket(3) });
    (paid.refunds, paid.refunds_back) = (1, 1);
    paid.total = euros(150);
    paid.lines[0].seats[0].1 = vec![person('a')];
    let mut pending = order(2, "bob", OrderState::Pending, "ga", (1, 2), &[0]);
    pending.due_ms = Some(pending.pay_by.ms());
    let mut cancelled = order(3, "bob", OrderState::Cancelled, "a", (0, 1), &[2]);
    cancelled.pay_by = NOW.plus_seconds(-300);
    let mut late = order(4, "carol", OrderState::RefundDue, "a", (0, 1), &[0]);
    late.payment = Some(key("pi_4"));

    let mut facts = SaleFacts::new(sale(), Some("e1".to_owned()));
    for at in paid.seat_legs() {
        facts.claims.push(ClaimFact { at, order: paid.number });
    }
    facts.claims.push(ClaimFact { at: at("ga", 1, 0), order: pending.number });
    facts.revoked.insert(paid.number, [(2, 2), (3, 0)].into());
    facts.check_ins = (1, 1);
    let again = (NOW.ms() + 5, "south".to_owned());
    facts.doubles.push(DoubleFact { order: paid.number, ticket: 1, first, again });
    facts.attendees.push((person('a'), paid.number));
    facts.named = [(id("alice"), [person('a')].into())].into();
    facts.counts = [(id("alice"), 2), (id("bob"), 1), (id("carol"), 0)].into();
    let counter = CounterFact { tickets: 2, revenue_minor: MinorUnits(100) };
    facts.counters.insert(id("a"), counter);

    let shape = || {
        let fields = [("rows", 1), ("row_bytes", 1), ("legs", 2)];
        fields.map(|(name, value)| (name.to_owned(), value.to_string())).into()
    };
    let ga = vec![0b0000_0111];
    let mut ga_later = ga.clone();
    ga_later[0] |= 0x80;
    let hold = HoldFact {
        user: pending.user.clone(),
        deadline: pending.pay_by,
        lines: vec![HeldFact {
            tier: id("ga"),
            legs: Legs::new(1, 2).unwrap(),
            seats: vec![Seat(0)],
        }],
    };
    let redis = &mut facts.redis;
    let terms = [
        ("state", "open".to_owned()),
        ("opens_ms", facts.sale.file().opens_at.ms().to_string()),
        ("closes_ms", facts.sale.sells_until().ms().to_string()),
        ("limit", "3".to_owned()),
        ("legs", "2".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    redis.heads.insert(None, HeadFact { epoch: Some("e1".to_owned()), terms });
    let a = TierBits {
        shape: shape(),
        taken: vec![vec![0b1101_1111]; 2],
        sold: vec![vec![0b1100_0000]; 2],
    };
    let ga = TierBits { shape: shape(), taken: vec![ga, ga_later], sold: vec![vec![0]; 2] };
    redis.tiers = [(id("a"), a), (id("ga"), ga)].into();
    redis.due_ms.insert(pending.number, pending.pay_by.ms());
    redis.holds.insert(pending.number, hold);
    redis.bought = [(id("alice"), 2), (id("bob"), 1)].into();
    // Order numbers without a time are of the first second of 2024.
    let shard = |used: i64| ShardFact {
        issued: 10,
        remaining: 10 - used,
        since: Timestamp::from_ms(1_704_067_199_000),
    };
    redis.gate = [(0, shard(1)), (1, shard(2)), (2, shard(1)), (3, shard(1))].into();
    let departs = facts.sale.departure(Legs::ONE).unwrap();
    for (stop, time, later) in [("x", "0805", ["y", "z"].as_slice()), ("y", "2400", &["z"])] {
        let [day, stop, time] = ["2026-11-21", stop, time].map(str::to_owned);
        let later = later.iter().map(|stop| (*stop).to_owned()).collect();
        facts.calls.insert(
            CallKey { day, stop, time },
            CallFact { version: 1, later, departs_ms: Some(departs.ms()) },
        );
    }
    let on_day =
        |name: &str| StopKey { day: "2026-11-21".to_owned(), mark: format!("{name}\t{name}") };
    facts.stops = ["x", "y", "z"].map(|name| (on_day(name), 1)).into();
    for mut order in [paid, pending, cancelled, late] {
        order.settled = order.settled.max(1);
        let numbered = (1..).zip(order.told.iter().cloned()).collect();
        facts.log.insert(order.number, numbered);
        facts.orders.insert(order.number, order);
    }
    let (accounts, booked) = books(&mut facts);
    let capture = |order: u64, name: &str, amount: i64| CaptureFact {
        key: key(name),
        order: order_number(order),
        amount: euros(amount),
    };
    Facts {
        stops: facts.stops.keys().cloned().collect(),
        sales: [(SaleId::new("g1").unwrap(), facts)].into(),
        payments: vec![
            PaymentFact { back_minor: MinorUnits(50), ..payment(1, "pi_1", true, 150) },
            payment(4, "pi_4", false, 50),
            payment(9, "pi_9", false, 7),
        ],
        ledger: Some(LedgerFacts {
            acknowledged: [1, 2, 3, 4].map(order_number).into(),
            captured: vec![capture(1, "pi_1", 150), capture(9, "pi_9", 7)],
        }),
        refunds: vec![RefundFact {
            order: order_number(1),
            number: 1,
            payment: key("pi_1"),
            tickets: [(id("a"), "A7".to_owned())].into(),
            amount: euros(50),
            state: RefundState::Refunded,
            is_due: false,
            is_of_cancelled_sale: false,
            dispute: None,
            is_by_dispute: false,
            ended: 0,
            kept_minor: MinorUnits::ZERO,
            exchanged_for: None,
        }],
        log_positions: [(0, [1, 2, 3].into())].into(),
        accounts,
        booked,
        ..Facts::default()
    }
}

pub(super) fn sale_of(facts: &mut Facts) -> &mut SaleFacts {
    facts.sales.values_mut().next().unwrap()
}

pub(super) fn order_of(facts: &mut Facts, order: u64) -> &mut OrderFact {
    sale_of(facts).orders.get_mut(&order_number(order)).unwrap()
}

pub(super) fn violations(facts: &Facts) -> Vec<String> {
    let findings = check(facts, NOW, 120);
    let all = findings.into_iter().flat_map(|finding| finding.violations);
    all.map(|violation| violation.to_string()).collect()
}

/// What each change must bring up, and nothing else.
pub(super) type Case = (fn(&mut Facts), &'static [&'static str]);

pub(super) fn assert_each(cases: &[Case]) {
    for (change, expected) in cases {
        let mut facts = clean_facts();
        change(&mut facts);
        assert_eq!(&violations(&facts), expected);
    }
}
