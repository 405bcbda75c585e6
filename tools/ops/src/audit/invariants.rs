//! The invariants, one function each: from facts to what breaks them. Nothing is read or written
//! here, and what time it is is an argument.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use engine::domain::ids::{AttendeeId, Seat, TierId, UserId};
use engine::domain::inventory::SeatLeg;
use engine::domain::number::OrderNumber;
use engine::domain::order::{OrderState, PaymentKey};
use engine::domain::refund::RefundState;
use engine::domain::sale::{SaleState, Tier};
use engine::domain::time::Timestamp;
use serde::Serialize;

use super::facts::{CaptureFact, CounterFact, Facts, OrderFact, PaymentFact, SaleFacts, TierBits};
use super::violation::{Rule, Subject, Violation};

/// What checking one rule came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule.
    pub rule: Rule,
    /// How many things were held against it, in the rule's unit.
    pub checked: u64,
    /// What breaks it.
    pub violations: Vec<Violation>,
}

impl Finding {
    fn of(rule: Rule) -> Self {
        Self { rule, checked: 0, violations: Vec::new() }
    }

    fn add(&mut self, sale: &SaleFacts, subject: Subject, what: impl Into<String>) {
        let (rule, sale) = (self.rule, Some(sale.sale.id().clone()));
        self.violations.push(Violation { rule, sale, subject, what: what.into() });
    }

    fn add_stray(&mut self, subject: Subject, what: impl Into<String>) {
        let rule = self.rule;
        self.violations.push(Violation { rule, sale: None, subject, what: what.into() });
    }
}

/// Checks everything. `bound_seconds` is how long after its deadline an order may still be pending.
#[must_use]
pub fn check(facts: &Facts, now: Timestamp, bound_seconds: u32) -> Vec<Finding> {
    let mut findings = vec![
        one_live_order_a_seat_leg(facts),
        claims_are_live_orders(facts),
        counts_are_live_tickets(facts),
        redis_equals_dynamodb(facts),
        payments_are_decided_once(facts),
        counters_are_sums(facts),
        nothing_pends_too_long(facts, now, bound_seconds),
    ];
    findings.extend(acknowledged_orders_exist(facts));
    findings.push(records_are_readable(facts));
    for finding in &mut findings {
        finding.violations.sort();
    }
    findings
}

/// I1: every seat-leg has at most one live order, by the lines of the orders and by the claims.
#[must_use]
pub fn one_live_order_a_seat_leg(facts: &Facts) -> Finding {
    let mut finding = Finding::of(Rule::I1);
    for sale in facts.sales.values() {
        let mut owners: HashMap<SeatLeg, Vec<OrderNumber>> = HashMap::new();
        for order in sale.live() {
            for at in order.seat_legs() {
                owners.entry(at).or_default().push(order.number);
            }
        }
        let mut claimants: HashMap<SeatLeg, Vec<OrderNumber>> = HashMap::new();
        for claim in &sale.claims {
            claimants.entry(claim.at.clone()).or_default().push(claim.order);
        }
        let seat_legs: HashSet<&SeatLeg> = owners.keys().chain(claimants.keys()).collect();
        finding.checked += seat_legs.len() as u64;
        for (at, orders) in owners.iter().filter(|(_, orders)| orders.len() > 1) {
            let what = format!("is in live orders {}", numbers(orders));
            finding.add(sale, Subject::seat_leg(&sale.sale, at), what);
        }
        for (at, orders) in claimants.iter().filter(|(_, orders)| orders.len() > 1) {
            let what = format!("is claimed by orders {}", numbers(orders));
            finding.add(sale, Subject::seat_leg(&sale.sale, at), what);
        }
    }
    finding
}

/// I2: every claim is of a live order that has the seat-leg, and every seat-leg of a live order has
/// its claim; the same for attendees.
#[must_use]
pub fn claims_are_live_orders(facts: &Facts) -> Finding {
    let mut finding = Finding::of(Rule::I2);
    for sale in facts.sales.values() {
        finding.checked += (sale.claims.len() + sale.attendees.len()) as u64;
        compare_claims(sale, &mut finding);
        compare_attendees(sale, &mut finding);
    }
    finding
}

fn compare_claims(sale: &SaleFacts, finding: &mut Finding) {
    let owned: HashSet<(SeatLeg, OrderNumber)> = sale
        .live()
        .flat_map(|order| order.seat_legs().into_iter().map(|at| (at, order.number)))
        .collect();
    let mut claimed: HashMap<&SeatLeg, Vec<OrderNumber>> = HashMap::new();
    for claim in &sale.claims {
        claimed.entry(&claim.at).or_default().push(claim.order);
        if !owned.contains(&(claim.at.clone(), claim.order)) {
            let why = why_dangling(sale, claim.order, "does not have it");
            let what = format!("is claimed by order {}, which {why}", claim.order);
            finding.add(sale, Subject::seat_leg(&sale.sale, &claim.at), what);
        }
        let is_sold_here = sale.sale.tier(&claim.at.tier).is_some_and(|tier| {
            tier.layout.sells(claim.at.seat) && claim.at.leg < sale.sale.leg_count()
        });
        if !is_sold_here {
            let what = format!("is claimed by order {} but is not for sale", claim.order);
            finding.add(sale, Subject::seat_leg(&sale.sale, &claim.at), what);
        }
    }
    for (at, order) in &owned {
        let claimants = claimed.get(at).map_or(&[][..], Vec::as_slice);
        if claimants.contains(order) {
            continue;
        }
        let what = if claimants.is_empty() {
            format!("is in live order {order} but nobody claims it")
        } else {
            format!("is in live order {order} but is claimed by {}", numbers(claimants))
        };
        finding.add(sale, Subject::seat_leg(&sale.sale, at), what);
    }
}

fn compare_attendees(sale: &SaleFacts, finding: &mut Finding) {
    let mut named: BTreeMap<&AttendeeId, Vec<OrderNumber>> = BTreeMap::new();
    for order in sale.live() {
        for (_, attendee) in order.lines.iter().flat_map(|line| &line.seats) {
            if let Some(attendee) = attendee {
                named.entry(attendee).or_default().push(order.number);
            }
        }
    }
    let claimed: BTreeSet<(&AttendeeId, OrderNumber)> =
        sale.attendees.iter().map(|(attendee, order)| (attendee, *order)).collect();
    for (attendee, order) in &claimed {
        if !named.get(attendee).is_some_and(|orders| orders.contains(order)) {
            let why = why_dangling(sale, *order, "does not name them");
            let subject = Subject::Attendee { attendee: (*attendee).clone() };
            finding.add(sale, subject, format!("is claimed by order {order}, which {why}"));
        }
    }
    for (attendee, orders) in &named {
        let subject = || Subject::Attendee { attendee: (*attendee).clone() };
        if orders.len() > 1 {
            let what = format!("has {} tickets: orders {}", orders.len(), numbers(orders));
            finding.add(sale, subject(), what);
        }
        for order in orders.iter().filter(|order| !claimed.contains(&(*attendee, **order))) {
            finding.add(sale, subject(), format!("is named by live order {order} without a claim"));
        }
    }
}

fn why_dangling(sale: &SaleFacts, order: OrderNumber, otherwise: &str) -> String {
    match sale.orders.get(&order) {
        None => "does not exist in this sale".to_owned(),
        Some(order) if order.is_live() => otherwise.to_owned(),
        Some(order) => format!("is {}", order.state.as_str()),
    }
}

/// I3: what is counted for a buyer is the tickets of the buyer's live orders, and not more than the
/// sale's limit.
#[must_use]
pub fn counts_are_live_tickets(facts: &Facts) -> Finding {
    let mut finding = Finding::of(Rule::I3);
    for sale in facts.sales.values() {
        let limit = i64::from(sale.sale.file().limit_per_buyer);
        let mut bought: BTreeMap<&UserId, i64> = BTreeMap::new();
        for order in sale.live() {
            *bought.entry(&order.user).or_default() += order.tickets();
        }
        let users: BTreeSet<&UserId> = bought.keys().copied().chain(sale.counts.keys()).collect();
        finding.checked += users.len() as u64;
        for user in users {
            let has = bought.get(user).copied().unwrap_or(0);
            let count = sale.counts.get(user).copied().unwrap_or(0);
            let subject = || Subject::Buyer { user: user.clone() };
            if has != count {
                let what = format!("has {has} tickets in live orders but a count of {count}");
                finding.add(sale, subject(), what);
            }
            if has > limit {
                finding.add(sale, subject(), format!("has {has} tickets; the limit is {limit}"));
            }
        }
    }
    finding
}

/// I4: Redis has what DynamoDB has. Taken is what is claimed or not for sale, sold is what is paid,
/// a hold is a pending order, a deadline is a hold's, and what a buyer bought is the buyer's count.
#[must_use]
pub fn redis_equals_dynamodb(facts: &Facts) -> Finding {
    let mut finding = Finding::of(Rule::I4);
    for sale in facts.sales.values() {
        // A sale that was put into the catalogue but never loaded has nothing in Redis yet.
        if sale.epoch.is_none() && sale.redis.epoch.is_none() && sale.orders.is_empty() {
            continue;
        }
        compare_terms(sale, &mut finding);
        for tier in sale.sale.tiers() {
            compare_bitmaps(sale, tier, &mut finding);
        }
        compare_holds(sale, &mut finding);
        compare_deadlines(sale, &mut finding);
        compare_bought(sale, &mut finding);
    }
    finding
}

fn compare_terms(sale: &SaleFacts, finding: &mut Finding) {
    finding.checked += 1;
    if sale.redis.epoch != sale.epoch {
        let named = |epoch: &Option<String>| epoch.clone().unwrap_or_else(|| "none".to_owned());
        let what = format!(
            "has epoch {} in Redis but {} in the catalogue",
            named(&sale.redis.epoch),
            named(&sale.epoch)
        );
        finding.add(sale, Subject::Sale, what);
    }
    let file = sale.sale.file();
    let state = match file.state {
        SaleState::Open => "open",
        SaleState::Paused => "paused",
    };
    let terms = [
        ("state", state.to_owned()),
        ("opens_ms", file.opens_at.ms().to_string()),
        ("closes_ms", file.closes_at.ms().to_string()),
        ("limit", file.limit_per_buyer.to_string()),
        ("legs", sale.sale.leg_count().to_string()),
    ];
    compare_fields(sale, &Subject::Sale, &sale.redis.terms, &terms, finding);
}

fn compare_fields(
    sale: &SaleFacts,
    subject: &Subject,
    found: &BTreeMap<String, String>,
    expected: &[(&str, String)],
    finding: &mut Finding,
) {
    for (name, expected) in expected {
        let found = found.get(*name).map_or("absent", String::as_str);
        if found != expected {
            let what = format!("has {name} {found} in Redis but {expected} in the catalogue");
            finding.add(sale, subject.clone(), what);
        }
    }
}

fn compare_bitmaps(sale: &SaleFacts, tier: &Tier, finding: &mut Finding) {
    let empty = TierBits::default();
    let bits = sale.redis.tiers.get(&tier.tier).unwrap_or(&empty);
    let shape = [
        ("rows", tier.layout.rows().len().to_string()),
        ("row_bytes", tier.layout.row_bytes().to_string()),
        ("legs", sale.sale.leg_count().to_string()),
    ];
    let subject = Subject::Tier { tier: tier.tier.clone() };
    compare_fields(sale, &subject, &bits.shape, &shape, finding);
    let legs = usize::from(sale.sale.leg_count());
    let initial = tier.layout.initial();
    let mut taken = vec![initial.to_vec(); legs];
    let mut sold = vec![vec![0; initial.len()]; legs];
    let of_tier = |at: &&SeatLeg| at.tier == tier.tier;
    for at in sale.claims.iter().map(|claim| &claim.at).filter(of_tier) {
        set(&mut taken, at);
    }
    for order in sale.in_state(OrderState::Paid) {
        order.seat_legs().iter().filter(of_tier).for_each(|at| set(&mut sold, at));
    }
    let kinds = [
        (&taken, &bits.taken, "taken", "is claimed", "nobody claims it"),
        (&sold, &bits.sold, "sold", "is paid", "no paid order has it"),
    ];
    for (expected, found, kind, yes, no) in kinds {
        for leg in 0..legs {
            let found = found.get(leg).map_or(&[][..], Vec::as_slice);
            let expected = expected.get(leg).map_or(&[][..], Vec::as_slice);
            finding.checked += expected.len() as u64 * 8;
            for (seat, is_set) in differences(expected, found) {
                let at = SeatLeg { tier: tier.tier.clone(), leg: leg as u16, seat };
                let yes = if tier.layout.sells(seat) { yes } else { "is not for sale" };
                let what = if is_set {
                    format!("is {kind} in Redis but {no}")
                } else {
                    format!("is not {kind} in Redis but {yes}")
                };
                finding.add(sale, Subject::seat_leg(&sale.sale, &at), what);
            }
        }
    }
}

/// Each bit in which two bitmaps differ, with its value in the second; past its end a bitmap is
/// zeros, as Redis has it.
fn differences(expected: &[u8], found: &[u8]) -> Vec<(Seat, bool)> {
    let byte = |bitmap: &[u8], index: usize| bitmap.get(index).copied().unwrap_or(0);
    let mut all = Vec::new();
    for index in 0..expected.len().max(found.len()) {
        let (expected, found) = (byte(expected, index), byte(found, index));
        for column in 0..8 {
            let mask = 0x80 >> column;
            if (expected ^ found) & mask != 0 {
                all.push((Seat(index as u32 * 8 + column), found & mask != 0));
            }
        }
    }
    all
}

/// Sets one seat-leg; one outside the grid is [`claims_are_live_orders`]'s to report.
fn set(bitmaps: &mut [Vec<u8>], at: &SeatLeg) {
    let bitmap = bitmaps.get_mut(usize::from(at.leg));
    if let Some(byte) = bitmap.and_then(|bitmap| bitmap.get_mut((at.seat.0 / 8) as usize)) {
        *byte |= 0x80 >> (at.seat.0 % 8);
    }
}

fn compare_holds(sale: &SaleFacts, finding: &mut Finding) {
    for (number, hold) in &sale.redis.holds {
        finding.checked += 1;
        let subject = Subject::Order { order: *number };
        let Some(order) = sale.orders.get(number) else {
            finding.add(sale, subject, "has a hold in Redis but does not exist");
            continue;
        };
        if order.state != OrderState::Pending {
            let what = format!("has a hold in Redis but is {}", order.state.as_str());
            finding.add(sale, subject, what);
            continue;
        }
        let held: BTreeSet<SeatLeg> = hold
            .lines
            .iter()
            .flat_map(|line| {
                let seats = line.seats.iter().copied();
                seats.flat_map(move |seat| {
                    let at = move |leg| SeatLeg { tier: line.tier.clone(), leg, seat };
                    (line.legs.from()..line.legs.to()).map(at)
                })
            })
            .collect();
        if held != order.seat_legs().into_iter().collect() {
            finding.add(sale, subject.clone(), "holds other seats in Redis than it claims");
        }
        if hold.user != order.user {
            let what = format!("is held for buyer {} in Redis but is {}'s", hold.user, order.user);
            finding.add(sale, subject.clone(), what);
        }
        if hold.deadline != order.pay_by {
            let what = format!(
                "is held until {} in Redis but may be paid until {}",
                hold.deadline, order.pay_by
            );
            finding.add(sale, subject, what);
        }
    }
    for order in sale.in_state(OrderState::Pending) {
        if !sale.redis.holds.contains_key(&order.number) {
            let subject = Subject::Order { order: order.number };
            finding.add(sale, subject, "is pending but has no hold in Redis");
        }
    }
}

fn compare_deadlines(sale: &SaleFacts, finding: &mut Finding) {
    for (number, hold) in &sale.redis.holds {
        let subject = || Subject::Order { order: *number };
        match sale.redis.due_ms.get(number) {
            None => finding.add(sale, subject(), "has a hold in Redis but no deadline there"),
            Some(due_ms) if *due_ms != hold.deadline.ms() => {
                let what = format!("has a deadline of {due_ms} ms in Redis, not its hold's");
                finding.add(sale, subject(), what);
            }
            Some(_) => {}
        }
    }
    finding.checked += sale.redis.due_ms.len() as u64;
    for number in sale.redis.due_ms.keys() {
        if !sale.redis.holds.contains_key(number) {
            let subject = Subject::Order { order: *number };
            finding.add(sale, subject, "has a deadline in Redis but no hold");
        }
    }
}

fn compare_bought(sale: &SaleFacts, finding: &mut Finding) {
    let users: BTreeSet<&UserId> = sale.redis.bought.keys().chain(sale.counts.keys()).collect();
    finding.checked += users.len() as u64;
    for user in users {
        let bought = sale.redis.bought.get(user).copied().unwrap_or(0);
        let count = sale.counts.get(user).copied().unwrap_or(0);
        if bought != count {
            let subject = Subject::Buyer { user: user.clone() };
            let what = format!("has bought {bought} in Redis but has a count of {count}");
            finding.add(sale, subject, what);
        }
    }
}

/// I5: an accepted payment is the one that paid its order, and does not go back; any other has its
/// refund request; the order that waits for the money is refunded exactly when it is back; a paid
/// order has exactly one accepted payment; what was captured is known.
#[must_use]
pub fn payments_are_decided_once(facts: &Facts) -> Finding {
    let mut finding = Finding::of(Rule::I5);
    let mut of_order: HashMap<OrderNumber, Vec<&PaymentFact>> = HashMap::new();
    for payment in &facts.payments {
        finding.checked += 1;
        of_order.entry(payment.order).or_default().push(payment);
        check_payment(facts, payment, &mut finding);
    }
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            let payments = of_order.get(&order.number).map_or(&[][..], Vec::as_slice);
            check_money_of(sale, order, payments, &mut finding);
        }
    }
    let ledger = facts.ledger.iter().flat_map(|ledger| &ledger.captured);
    for capture in ledger {
        finding.checked += 1;
        let payments = of_order.get(&capture.order).map_or(&[][..], Vec::as_slice);
        check_capture(facts, capture, payments, &mut finding);
    }
    finding
}

fn payment_subject(order: OrderNumber, key: &PaymentKey) -> Subject {
    Subject::Payment { order, key: key.clone() }
}

/// True if the refund of a payment is under way, or over.
fn is_requested(payment: &PaymentFact) -> bool {
    match payment.refund {
        None | Some(RefundState::Due) => false,
        Some(
            RefundState::Requested
            | RefundState::Pending
            | RefundState::Failed
            | RefundState::Refunded,
        ) => true,
    }
}

fn check_payment(facts: &Facts, payment: &PaymentFact, finding: &mut Finding) {
    let subject = || payment_subject(payment.order, &payment.key);
    let Some((sale, order)) = facts.order(payment.order) else {
        if payment.accepted {
            finding.add_stray(subject(), "was accepted but its order does not exist");
        } else if !is_requested(payment) {
            finding.add_stray(subject(), "is to be refunded but no refund was requested");
        }
        return;
    };
    let Some(sale) = facts.sales.get(sale) else { return };
    let decides = order.payment.as_ref() == Some(&payment.key);
    if payment.accepted {
        match order.state {
            OrderState::Paid | OrderState::RefundDue | OrderState::Refunded if decides => {}
            OrderState::Paid | OrderState::RefundDue | OrderState::Refunded => {
                finding.add(sale, subject(), "was accepted but did not pay its order");
            }
            OrderState::Pending | OrderState::Cancelled | OrderState::Expired => {
                let what = format!("was accepted but its order is {}", order.state.as_str());
                finding.add(sale, subject(), what);
            }
        }
        if payment.amount != order.total {
            let what = format!("of {} was accepted for {}", payment.amount, order.total);
            finding.add(sale, subject(), what);
        }
        if payment.refund.is_some() {
            finding.add(sale, subject(), "was accepted and yet goes back");
        }
    } else {
        if !is_requested(payment) {
            finding.add(sale, subject(), "is to be refunded but no refund was requested");
        }
        if decides && order.state == OrderState::Paid {
            finding.add(sale, subject(), "is refunded and yet paid its order");
        }
        // The order that waits for this money is refunded with it, in one transaction.
        let is_back = payment.refund == Some(RefundState::Refunded);
        let waits = order.state == OrderState::RefundDue;
        let has_it = order.state == OrderState::Refunded;
        if decides && ((is_back && waits) || (!is_back && has_it)) {
            let refund = payment.refund.map_or("not due", RefundState::as_str);
            let what = format!("is {refund} but its order is {}", order.state.as_str());
            finding.add(sale, subject(), what);
        }
    }
}

fn check_money_of(
    sale: &SaleFacts,
    order: &OrderFact,
    payments: &[&PaymentFact],
    finding: &mut Finding,
) {
    let subject = || Subject::Order { order: order.number };
    match order.state {
        OrderState::Paid => {
            finding.checked += 1;
            let accepted = payments.iter().filter(|payment| payment.accepted).count();
            if accepted != 1 {
                let what = format!("is paid but has {accepted} accepted payments");
                finding.add(sale, subject(), what);
            }
        }
        OrderState::RefundDue | OrderState::Refunded => {
            finding.checked += 1;
            let has = |key: &PaymentKey| payments.iter().any(|payment| payment.key == *key);
            if !order.payment.as_ref().is_some_and(has) {
                let what = format!("is {} but its payment is not there", order.state.as_str());
                finding.add(sale, subject(), what);
            }
        }
        OrderState::Pending | OrderState::Cancelled | OrderState::Expired => {
            if let Some(key) = &order.payment {
                let what = format!(
                    "is {} but names payment {} {}",
                    order.state.as_str(),
                    key.provider,
                    key.payment
                );
                finding.add(sale, subject(), what);
            }
        }
    }
}

fn check_capture(
    facts: &Facts,
    capture: &CaptureFact,
    payments: &[&PaymentFact],
    finding: &mut Finding,
) {
    let subject = payment_subject(capture.order, &capture.key);
    let what = match payments.iter().find(|payment| payment.key == capture.key) {
        None => format!("of {} was captured but is not known", capture.amount),
        Some(payment) if payment.amount != capture.amount => {
            format!("of {} was captured but {} is recorded", capture.amount, payment.amount)
        }
        Some(_) => return,
    };
    match facts.order(capture.order).and_then(|(sale, _)| facts.sales.get(sale)) {
        Some(sale) => finding.add(sale, subject, what),
        None => finding.add_stray(subject, what),
    }
}

/// I6: every paid order is counted, each tier's counter is their sum, and exactly their seat-legs
/// are noted as sold.
#[must_use]
pub fn counters_are_sums(facts: &Facts) -> Finding {
    let mut finding = Finding::of(Rule::I6);
    for sale in facts.sales.values() {
        let mut sums: BTreeMap<&TierId, CounterFact> = BTreeMap::new();
        let mut sold: BTreeSet<SeatLeg> = BTreeSet::new();
        for order in sale.in_state(OrderState::Paid) {
            finding.checked += 1;
            if !order.synced {
                let subject = Subject::Order { order: order.number };
                finding.add(sale, subject, "is paid but not counted");
            }
            for line in &order.lines {
                let sum = sums.entry(&line.tier).or_default();
                sum.tickets += line.tickets();
                sum.revenue_minor += line.tickets() * line.price_minor;
            }
            sold.extend(order.seat_legs());
        }
        for order in sale.orders.values().filter(|order| order.synced) {
            if matches!(
                order.state,
                OrderState::Pending | OrderState::Cancelled | OrderState::Expired
            ) {
                let what = format!("is counted but {}", order.state.as_str());
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
        }
        let tiers: BTreeSet<&TierId> = sums.keys().copied().chain(sale.counters.keys()).collect();
        for tier in tiers {
            let sum = sums.get(tier).copied().unwrap_or_default();
            let counter = sale.counters.get(tier).copied().unwrap_or_default();
            if sum != counter {
                let what = format!(
                    "counts {} tickets for {} but its paid orders are {} for {}",
                    counter.tickets, counter.revenue_minor, sum.tickets, sum.revenue_minor
                );
                finding.add(sale, Subject::Tier { tier: tier.clone() }, what);
            }
        }
        let noted: BTreeSet<SeatLeg> = sale.sold_notes.iter().cloned().collect();
        for at in noted.difference(&sold) {
            let subject = Subject::seat_leg(&sale.sale, at);
            finding.add(sale, subject, "is noted as sold but no paid order has it");
        }
        for at in sold.difference(&noted) {
            let subject = Subject::seat_leg(&sale.sale, at);
            finding.add(sale, subject, "is paid but not noted as sold");
        }
    }
    finding
}

/// I7: no order is pending longer than `bound_seconds` after its deadline, and each that is pending
/// will be found when its time comes.
#[must_use]
pub fn nothing_pends_too_long(facts: &Facts, now: Timestamp, bound_seconds: u32) -> Finding {
    let mut finding = Finding::of(Rule::I7);
    for sale in facts.sales.values() {
        for order in sale.in_state(OrderState::Pending) {
            finding.checked += 1;
            if order.pay_by.plus_seconds(i64::from(bound_seconds)) < now {
                let late = now.ms_since(order.pay_by) / 1000;
                let what = format!("is pending {late} s after its deadline of {}", order.pay_by);
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
            if order.due_ms != Some(order.pay_by.ms()) {
                let what = "is pending but the index of due work does not have its deadline";
                finding.add(sale, Subject::Order { order: order.number }, what);
            }
        }
    }
    finding
}

/// With a ledger: every order that was acknowledged is there, with what it bought.
#[must_use]
pub fn acknowledged_orders_exist(facts: &Facts) -> Option<Finding> {
    let ledger = facts.ledger.as_ref()?;
    let mut finding = Finding::of(Rule::Ledger);
    for number in &ledger.acknowledged {
        finding.checked += 1;
        let subject = Subject::Order { order: *number };
        match facts.order(*number) {
            None => finding.add_stray(subject, "was acknowledged but does not exist"),
            Some((sale, order)) if order.lines.is_empty() => {
                if let Some(sale) = facts.sales.get(sale) {
                    finding.add(sale, subject, "was acknowledged but is a tombstone");
                }
            }
            Some(_) => {}
        }
    }
    Some(finding)
}

/// Every record is one that the engine writes, and is where the engine looks for it.
#[must_use]
pub fn records_are_readable(facts: &Facts) -> Finding {
    let mut finding = Finding::of(Rule::Records);
    finding.checked = facts.records;
    for unreadable in &facts.unreadable {
        finding.violations.push(Violation {
            rule: Rule::Records,
            sale: unreadable.sale.clone(),
            subject: Subject::Record { record: unreadable.record.clone() },
            what: unreadable.what.clone(),
        });
    }
    finding
}

/// Order numbers in order, so that the same facts are reported in the same words.
fn numbers(orders: &[OrderNumber]) -> String {
    let mut orders = orders.to_vec();
    orders.sort();
    let texts: Vec<String> = orders.iter().map(OrderNumber::to_string).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use engine::domain::ids::{Legs, RequestFingerprint, SaleId};
    use engine::domain::inventory::{HeldLine, HoldRecord};
    use engine::domain::money::{Currency, Money};
    use engine::domain::sale::Sale;

    use super::super::facts::{ClaimFact, LedgerFacts, LineFact, Unreadable};
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
        text.parse().unwrap()
    }

    fn order_number(order: u64) -> OrderNumber {
        id(&order.to_string())
    }

    fn euros(amount_minor: i64) -> Money {
        Money { amount_minor, currency: Currency::new("EUR").unwrap() }
    }

    fn key(payment: &str) -> PaymentKey {
        PaymentKey { provider: id("stripe"), payment: id(payment) }
    }

    fn at(tier: &str, leg: u16, seat: u32) -> SeatLeg {
        SeatLeg { tier: id(tier), leg, seat: Seat(seat) }
    }

    /// Two legs; tier `a` has one row of A1 to A4, of which A4 is not for sale; `ga` has five spots.
    fn sale() -> Sale {
        let stop = |stop: &str| serde_json::json!({"stop": stop, "name": stop});
        let names = serde_json::json!(["A1", "A2", "A3", "A4"]);
        let file = serde_json::json!({
            "sale": "g1", "title": "G1", "currency": "EUR", "limit_per_buyer": 3,
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
            "pay_window_seconds": 600, "stops": [stop("X"), stop("Y"), stop("Z")],
            "tiers": [
                {"tier": "a", "name": "A", "price_minor": 50, "not_for_sale": ["A4"],
                 "sections": [{"section": "1", "rows": [{"row": "1", "seats": names}]}]},
                {"tier": "ga", "name": "GA", "price_minor": 20, "general_admission": 5}
            ]
        });
        Sale::new(serde_json::from_value(file).unwrap()).unwrap()
    }

    fn order(
        order: u64,
        user: &str,
        state: OrderState,
        tier: &str,
        legs: (u16, u16),
        seats: &[u32],
    ) -> OrderFact {
        let seats: Vec<_> = seats.iter().map(|seat| (Seat(*seat), None)).collect();
        OrderFact {
            number: order_number(order),
            user: id(user),
            state,
            total: euros(50 * seats.len() as i64),
            lines: vec![LineFact {
                tier: id(tier),
                legs: Legs::new(legs.0, legs.1).unwrap(),
                price_minor: 50,
                seats,
            }],
            pay_by: NOW.plus_seconds(60),
            changed_at: NOW,
            due_ms: None,
            payment: None,
            synced: false,
        }
    }

    fn payment(order: u64, name: &str, accepted: bool, amount_minor: i64) -> PaymentFact {
        PaymentFact {
            key: key(name),
            order: order_number(order),
            amount: euros(amount_minor),
            accepted,
            refund: (!accepted).then_some(RefundState::Requested),
        }
    }

    /// Order 1 is paid (A1, A2, both legs, attendee p), 2 pending (a spot on leg 1), 3 cancelled,
    /// 4 was paid too late, and money came for order 9, which never was.
    fn world() -> Facts {
        let mut paid = order(1, "alice", OrderState::Paid, "a", (0, 2), &[0, 1]);
        paid.payment = Some(key("pi_1"));
        paid.synced = true;
        paid.lines[0].seats[0].1 = Some(id("p"));
        let mut pending = order(2, "bob", OrderState::Pending, "ga", (1, 2), &[0]);
        pending.due_ms = Some(pending.pay_by.ms());
        let cancelled = order(3, "bob", OrderState::Cancelled, "a", (0, 1), &[2]);
        let mut late = order(4, "carol", OrderState::RefundDue, "a", (0, 1), &[0]);
        late.payment = Some(key("pi_4"));

        let mut facts = SaleFacts::new(sale(), Some("e1".to_owned()));
        for at in paid.seat_legs() {
            facts.claims.push(ClaimFact { at: at.clone(), order: paid.number });
            facts.sold_notes.push(at);
        }
        facts.claims.push(ClaimFact { at: at("ga", 1, 0), order: pending.number });
        facts.attendees.push((id("p"), paid.number));
        facts.counts = [(id("alice"), 2), (id("bob"), 1), (id("carol"), 0)].into();
        let counter = CounterFact { tickets: 2, revenue_minor: 100 };
        facts.counters.insert(id("a"), counter);

        let shape = || {
            let fields = [("rows", 1), ("row_bytes", 1), ("legs", 2)];
            fields.map(|(name, value)| (name.to_owned(), value.to_string())).into()
        };
        let ga = vec![0b0000_0111];
        let mut ga_later = ga.clone();
        ga_later[0] |= 0x80;
        let hold = HoldRecord {
            user: pending.user.clone(),
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            deadline: pending.pay_by,
            lines: vec![HeldLine {
                tier: id("ga"),
                legs: Legs::new(1, 2).unwrap(),
                seats: vec![Seat(0)],
            }],
        };
        let redis = &mut facts.redis;
        redis.epoch = Some("e1".to_owned());
        redis.terms = [
            ("state", "open".to_owned()),
            ("opens_ms", facts.sale.file().opens_at.ms().to_string()),
            ("closes_ms", facts.sale.file().closes_at.ms().to_string()),
            ("limit", "3".to_owned()),
            ("legs", "2".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
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
        for order in [paid, pending, cancelled, late] {
            facts.orders.insert(order.number, order);
        }
        let capture = |order: u64, name: &str, amount: i64| CaptureFact {
            key: key(name),
            order: order_number(order),
            amount: euros(amount),
        };
        Facts {
            sales: [(SaleId::new("g1").unwrap(), facts)].into(),
            payments: vec![
                payment(1, "pi_1", true, 100),
                payment(4, "pi_4", false, 50),
                payment(9, "pi_9", false, 7),
            ],
            ledger: Some(LedgerFacts {
                acknowledged: [1, 2, 3, 4].map(order_number).into(),
                captured: vec![capture(1, "pi_1", 100), capture(9, "pi_9", 7)],
            }),
            ..Facts::default()
        }
    }

    fn sale_of(facts: &mut Facts) -> &mut SaleFacts {
        facts.sales.values_mut().next().unwrap()
    }

    fn order_of(facts: &mut Facts, order: u64) -> &mut OrderFact {
        sale_of(facts).orders.get_mut(&order_number(order)).unwrap()
    }

    fn violations(facts: &Facts) -> Vec<String> {
        let findings = check(facts, NOW, 120);
        let all = findings.into_iter().flat_map(|finding| finding.violations);
        all.map(|violation| violation.to_string()).collect()
    }

    /// What each change must bring up, and nothing else.
    type Case = (fn(&mut Facts), &'static [&'static str]);

    fn assert_each(cases: &[Case]) {
        for (change, expected) in cases {
            let mut facts = world();
            change(&mut facts);
            assert_eq!(&violations(&facts), expected);
        }
    }

    #[test]
    fn a_consistent_world_is_clean_and_was_looked_at() {
        let findings = check(&world(), NOW, 120);
        let checked: Vec<(&str, u64)> =
            findings.iter().map(|finding| (finding.rule.name(), finding.checked)).collect();
        assert_eq!(violations(&world()), [""; 0]);
        // I4: the terms, 2 × 2 × (8 + 8) bits, a hold, a deadline, three buyers.
        assert_eq!(
            checked,
            [
                ("I1", 5),
                ("I2", 6),
                ("I3", 3),
                ("I4", 1 + 64 + 1 + 1 + 3),
                ("I5", 7),
                ("I6", 1),
                ("I7", 1),
                ("ledger", 4),
                ("records", 0)
            ]
        );
    }

    #[test]
    fn i1_finds_a_seat_leg_that_two_have() {
        assert_each(&[
            (
                |facts| {
                    // As if a second order had been let through, claims and counts and all.
                    let second = order(5, "dora", OrderState::Pending, "a", (1, 2), &[1]);
                    let sale = sale_of(facts);
                    sale.claims.push(ClaimFact { at: at("a", 1, 1), order: second.number });
                    sale.counts.insert(id("dora"), 1);
                    sale.redis.bought.insert(id("dora"), 1);
                    let hold = HoldRecord {
                        user: second.user.clone(),
                        lines: vec![HeldLine {
                            tier: id("a"),
                            legs: Legs::new(1, 2).unwrap(),
                            seats: vec![Seat(1)],
                        }],
                        ..sale.redis.holds[&order_number(2)].clone()
                    };
                    sale.redis.due_ms.insert(second.number, second.pay_by.ms());
                    sale.redis.holds.insert(second.number, hold);
                    let due_ms = Some(second.pay_by.ms());
                    sale.orders.insert(second.number, OrderFact { due_ms, ..second });
                },
                &[
                    "I1 g1: seat A2 of tier a on leg 1 is claimed by orders 1, 5",
                    "I1 g1: seat A2 of tier a on leg 1 is in live orders 1, 5",
                ],
            ),
            (
                |facts| sale_of(facts).claims.push(world().sales[&id("g1")].claims[0].clone()),
                &["I1 g1: seat A1 of tier a on leg 0 is claimed by orders 1, 1"],
            ),
        ]);
    }

    #[test]
    fn i2_finds_claims_and_orders_that_do_not_meet() {
        assert_each(&[
            (
                |facts| sale_of(facts).claims[4].order = order_number(8),
                &[
                    "I2 g1: seat ga-1 of tier ga on leg 1 is claimed by order 8, which does not exist in this sale",
                    "I2 g1: seat ga-1 of tier ga on leg 1 is in live order 2 but is claimed by 8",
                ],
            ),
            (
                |facts| sale_of(facts).claims[4].order = order_number(1),
                &[
                    "I2 g1: seat ga-1 of tier ga on leg 1 is claimed by order 1, which does not have it",
                    "I2 g1: seat ga-1 of tier ga on leg 1 is in live order 2 but is claimed by 1",
                ],
            ),
            (
                |facts| sale_of(facts).attendees.clear(),
                &["I2 g1: attendee p is named by live order 1 without a claim"],
            ),
            (
                |facts| sale_of(facts).attendees.push((id("q"), order_number(3))),
                &["I2 g1: attendee q is claimed by order 3, which is cancelled"],
            ),
            (
                |facts| order_of(facts, 1).lines[0].seats[1].1 = Some(id("p")),
                &["I2 g1: attendee p has 2 tickets: orders 1, 1"],
            ),
        ]);
    }

    #[test]
    fn i2_and_i4_find_a_claim_that_is_gone_or_too_many() {
        assert_each(&[
            (
                |facts| drop(sale_of(facts).claims.remove(4)),
                &[
                    "I2 g1: seat ga-1 of tier ga on leg 1 is in live order 2 but nobody claims it",
                    "I4 g1: seat ga-1 of tier ga on leg 1 is taken in Redis but nobody claims it",
                ],
            ),
            (
                |facts| {
                    let claim = ClaimFact { at: at("a", 0, 2), order: order_number(3) };
                    sale_of(facts).claims.push(claim);
                },
                &[
                    "I2 g1: seat A3 of tier a on leg 0 is claimed by order 3, which is cancelled",
                    "I4 g1: seat A3 of tier a on leg 0 is not taken in Redis but is claimed",
                ],
            ),
            (
                |facts| {
                    let claim = ClaimFact { at: at("a", 0, 3), order: order_number(1) };
                    sale_of(facts).claims.push(claim);
                },
                &[
                    "I2 g1: seat A4 of tier a on leg 0 is claimed by order 1 but is not for sale",
                    "I2 g1: seat A4 of tier a on leg 0 is claimed by order 1, which does not have it",
                ],
            ),
        ]);
    }

    #[test]
    fn i3_finds_a_count_that_is_wrong_or_too_high() {
        assert_each(&[
            (
                |facts| {
                    sale_of(facts).counts.insert(id("carol"), 1);
                    sale_of(facts).redis.bought.insert(id("carol"), 1);
                },
                &["I3 g1: buyer carol has 0 tickets in live orders but a count of 1"],
            ),
            (
                |facts| {
                    sale_of(facts).counts.remove(&id("alice"));
                    sale_of(facts).redis.bought.remove(&id("alice"));
                },
                &["I3 g1: buyer alice has 2 tickets in live orders but a count of 0"],
            ),
            (
                |facts| {
                    // The count is right, and over the limit.
                    order_of(facts, 2).user = id("alice");
                    let sale = sale_of(facts);
                    sale.redis.holds.get_mut(&order_number(2)).unwrap().user = id("alice");
                    let mut file = sale.sale.file().clone();
                    file.limit_per_buyer = 2;
                    sale.sale = Sale::new(file).unwrap();
                    sale.redis.terms.insert("limit".to_owned(), "2".to_owned());
                    sale.counts = [(id("alice"), 3)].into();
                    sale.redis.bought = [(id("alice"), 3)].into();
                },
                &["I3 g1: buyer alice has 3 tickets; the limit is 2"],
            ),
        ]);
    }

    fn redis(facts: &mut Facts) -> &mut super::super::facts::RedisFacts {
        &mut sale_of(facts).redis
    }

    fn hold(facts: &mut Facts) -> &mut HoldRecord {
        redis(facts).holds.get_mut(&order_number(2)).unwrap()
    }

    fn bits<'a>(facts: &'a mut Facts, tier: &str) -> &'a mut TierBits {
        redis(facts).tiers.get_mut(&id(tier)).unwrap()
    }

    #[test]
    fn i4_finds_bits_that_differ() {
        assert_each(&[
            (
                |facts| bits(facts, "a").taken[0][0] ^= 0x80,
                &["I4 g1: seat A1 of tier a on leg 0 is not taken in Redis but is claimed"],
            ),
            (
                |facts| bits(facts, "a").taken[1][0] ^= 0x10,
                &["I4 g1: seat A4 of tier a on leg 1 is not taken in Redis but is not for sale"],
            ),
            (
                |facts| bits(facts, "a").taken[1][0] ^= 0x08,
                &[
                    "I4 g1: bit 4 (no seat) of tier a on leg 1 is not taken in Redis but is not for sale",
                ],
            ),
            (
                |facts| bits(facts, "ga").taken[0][0] ^= 0x40,
                &["I4 g1: seat ga-2 of tier ga on leg 0 is taken in Redis but nobody claims it"],
            ),
            (
                |facts| bits(facts, "a").taken[0].push(0x01),
                &[
                    "I4 g1: bit 15 (no seat) of tier a on leg 0 is taken in Redis but nobody claims it",
                ],
            ),
            (
                |facts| bits(facts, "a").sold[0].clear(),
                &[
                    "I4 g1: seat A1 of tier a on leg 0 is not sold in Redis but is paid",
                    "I4 g1: seat A2 of tier a on leg 0 is not sold in Redis but is paid",
                ],
            ),
            (
                |facts| bits(facts, "ga").sold[1][0] ^= 0x80,
                &["I4 g1: seat ga-1 of tier ga on leg 1 is sold in Redis but no paid order has it"],
            ),
            (
                |facts| drop(bits(facts, "a").shape.remove("row_bytes")),
                &["I4 g1: tier a has row_bytes absent in Redis but 1 in the catalogue"],
            ),
        ]);
    }

    #[test]
    fn i4_finds_holds_deadlines_and_buyers_that_differ() {
        assert_each(&[
            (
                |facts| drop(redis(facts).holds.remove(&order_number(2))),
                &[
                    "I4 g1: order 2 has a deadline in Redis but no hold",
                    "I4 g1: order 2 is pending but has no hold in Redis",
                ],
            ),
            (
                |facts| {
                    let hold = hold(facts).clone();
                    redis(facts).due_ms.insert(order_number(3), hold.deadline.ms());
                    redis(facts).due_ms.insert(order_number(7), hold.deadline.ms());
                    redis(facts).holds.insert(order_number(3), hold.clone());
                    redis(facts).holds.insert(order_number(7), hold);
                },
                &[
                    "I4 g1: order 3 has a hold in Redis but is cancelled",
                    "I4 g1: order 7 has a hold in Redis but does not exist",
                ],
            ),
            (
                |facts| hold(facts).lines[0].seats[0] = Seat(1),
                &["I4 g1: order 2 holds other seats in Redis than it claims"],
            ),
            (
                |facts| hold(facts).user = id("eve"),
                &["I4 g1: order 2 is held for buyer eve in Redis but is bob's"],
            ),
            (
                |facts| {
                    hold(facts).deadline = NOW;
                    redis(facts).due_ms.insert(order_number(2), NOW.ms());
                },
                &[
                    "I4 g1: order 2 is held until 2027-01-15T08:00:00.000Z in Redis but may be paid until 2027-01-15T08:01:00.000Z",
                ],
            ),
            (
                |facts| redis(facts).due_ms.clear(),
                &["I4 g1: order 2 has a hold in Redis but no deadline there"],
            ),
            (
                |facts| *redis(facts).due_ms.get_mut(&order_number(2)).unwrap() = 5,
                &["I4 g1: order 2 has a deadline of 5 ms in Redis, not its hold's"],
            ),
            (
                |facts| *redis(facts).bought.get_mut(&id("alice")).unwrap() = 1,
                &["I4 g1: buyer alice has bought 1 in Redis but has a count of 2"],
            ),
            (
                |facts| redis(facts).epoch = Some("e0".to_owned()),
                &["I4 g1: the sale has epoch e0 in Redis but e1 in the catalogue"],
            ),
            (
                |facts| drop(redis(facts).terms.insert("limit".to_owned(), "9".to_owned())),
                &["I4 g1: the sale has limit 9 in Redis but 3 in the catalogue"],
            ),
        ]);
    }

    #[test]
    fn i4_asks_nothing_of_a_sale_that_was_never_loaded() {
        let facts =
            Facts { sales: [(id("g1"), SaleFacts::new(sale(), None))].into(), ..Facts::default() };
        assert_eq!(violations(&facts), [""; 0]);
    }

    #[test]
    fn i5_finds_money_that_is_undecided_or_decided_twice() {
        assert_each(&[
            (
                |facts| drop(facts.payments.remove(0)),
                &[
                    "I5 g1: order 1 is paid but has 0 accepted payments",
                    "I5 g1: payment stripe pi_1 for order 1 of 100 EUR was captured but is not known",
                ],
            ),
            (
                |facts| facts.payments.push(payment(1, "pi_2", true, 100)),
                &[
                    "I5 g1: order 1 is paid but has 2 accepted payments",
                    "I5 g1: payment stripe pi_2 for order 1 was accepted but did not pay its order",
                ],
            ),
            (
                |facts| facts.payments.push(payment(3, "pi_3", true, 50)),
                &["I5 g1: payment stripe pi_3 for order 3 was accepted but its order is cancelled"],
            ),
            (
                |facts| facts.payments.push(payment(8, "pi_8", true, 50)),
                &["I5 payment stripe pi_8 for order 8 was accepted but its order does not exist"],
            ),
            (
                |facts| {
                    facts.payments[0].accepted = false;
                    facts.payments[0].refund = Some(RefundState::Requested);
                },
                &[
                    "I5 g1: order 1 is paid but has 0 accepted payments",
                    "I5 g1: payment stripe pi_1 for order 1 is refunded and yet paid its order",
                ],
            ),
            (
                |facts| facts.payments[1].refund = Some(RefundState::Due),
                &[
                    "I5 g1: payment stripe pi_4 for order 4 is to be refunded but no refund was requested",
                ],
            ),
            (
                |facts| facts.payments[0].refund = Some(RefundState::Requested),
                &["I5 g1: payment stripe pi_1 for order 1 was accepted and yet goes back"],
            ),
            (
                |facts| facts.payments[1].refund = Some(RefundState::Refunded),
                &["I5 g1: payment stripe pi_4 for order 4 is refunded but its order is refund_due"],
            ),
            (
                |facts| facts.payments[2].refund = None,
                &[
                    "I5 payment stripe pi_9 for order 9 is to be refunded but no refund was requested",
                ],
            ),
            (
                |facts| facts.payments[0].amount = euros(99),
                &[
                    "I5 g1: payment stripe pi_1 for order 1 of 100 EUR was captured but 99 EUR is recorded",
                    "I5 g1: payment stripe pi_1 for order 1 of 99 EUR was accepted for 100 EUR",
                ],
            ),
            (
                |facts| drop(facts.payments.remove(1)),
                &["I5 g1: order 4 is refund_due but its payment is not there"],
            ),
            (
                |facts| drop(facts.payments.remove(2)),
                &["I5 payment stripe pi_9 for order 9 of 7 EUR was captured but is not known"],
            ),
            (
                |facts| order_of(facts, 3).payment = Some(key("pi_3")),
                &["I5 g1: order 3 is cancelled but names payment stripe pi_3"],
            ),
        ]);
    }

    #[test]
    fn i6_finds_sums_and_notes_that_are_wrong() {
        assert_each(&[
            (
                |facts| order_of(facts, 1).synced = false,
                &["I6 g1: order 1 is paid but not counted"],
            ),
            (
                |facts| order_of(facts, 3).synced = true,
                &["I6 g1: order 3 is counted but cancelled"],
            ),
            (
                |facts| sale_of(facts).counters.clear(),
                &["I6 g1: tier a counts 0 tickets for 0 but its paid orders are 2 for 100"],
            ),
            (
                |facts| {
                    sale_of(facts).counters.get_mut(&id("a")).unwrap().revenue_minor += 1;
                    let counter = CounterFact { tickets: 1, revenue_minor: 0 };
                    sale_of(facts).counters.insert(id("ga"), counter);
                },
                &[
                    "I6 g1: tier a counts 2 tickets for 101 but its paid orders are 2 for 100",
                    "I6 g1: tier ga counts 1 tickets for 0 but its paid orders are 0 for 0",
                ],
            ),
            (
                |facts| drop(sale_of(facts).sold_notes.remove(0)),
                &["I6 g1: seat A1 of tier a on leg 0 is paid but not noted as sold"],
            ),
            (
                |facts| sale_of(facts).sold_notes.push(at("a", 0, 2)),
                &["I6 g1: seat A3 of tier a on leg 0 is noted as sold but no paid order has it"],
            ),
        ]);
    }

    #[test]
    fn i7_finds_what_pends_too_long_or_would_never_be_found() {
        let mut facts = world();
        order_of(&mut facts, 2).due_ms = None;
        assert_eq!(
            violations(&facts),
            ["I7 g1: order 2 is pending but the index of due work does not have its deadline"]
        );
        let facts = world();
        let deadline = facts.sales[&id("g1")].orders[&order_number(2)].pay_by;
        let late = |seconds: i64| {
            nothing_pends_too_long(&facts, deadline.plus_seconds(seconds), 120).violations.len()
        };
        assert_eq!((late(120), late(121)), (0, 1));
    }

    #[test]
    fn what_was_acknowledged_is_there() {
        assert_each(&[
            (
                |facts| facts.ledger.as_mut().unwrap().acknowledged.push(order_number(8)),
                &["ledger order 8 was acknowledged but does not exist"],
            ),
            (
                |facts| order_of(facts, 3).lines.clear(),
                &["ledger g1: order 3 was acknowledged but is a tombstone"],
            ),
        ]);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_named() {
        assert_each(&[(
            |facts| {
                facts.unreadable.push(Unreadable {
                    sale: Some(id("g1")),
                    record: "item 7/order#x of table orders".to_owned(),
                    what: "has state lost".to_owned(),
                })
            },
            &["records g1: item 7/order#x of table orders has state lost"],
        )]);
    }

    #[test]
    fn a_ledger_of_several_sales_is_held_only_to_the_one_that_is_audited() {
        let mut facts = world();
        let mut ledger = facts.ledger.take().unwrap();
        facts.elsewhere.insert(order_number(77));
        ledger.acknowledged.push(order_number(77));
        facts.add_ledger(ledger);
        assert_eq!(violations(&facts), [""; 0]);
    }
}
