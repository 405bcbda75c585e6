//! I4: Redis has what DynamoDB has.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::ids::{Leg, Seat, TierId, UserId};
use engine::domain::inventory::SeatLeg;
use engine::domain::order::OrderState;
use engine::domain::sale::Tier;

use super::super::facts::{Facts, HeadFact, SaleFacts, TierBits};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I4: Redis has what DynamoDB has. Taken is what is claimed or not for sale, sold is what is paid,
/// a hold is a pending order, a deadline is a hold's, and what a buyer bought is the buyer's count.
#[must_use]
pub fn redis_equals_dynamodb(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I4);
    for sale in facts.sales.values() {
        // An archived sale has nothing in Redis, and needs nothing there.
        if sale.lifecycle.is_over() {
            continue;
        }
        // A sale that was put into the catalogue but never loaded has nothing in Redis yet.
        let has_load = sale.redis.heads.values().any(|head| head.epoch.is_some());
        if sale.epoch.is_none() && !has_load && sale.orders.is_empty() {
            continue;
        }
        for load in sale.loads() {
            compare_terms(sale, load, &mut finding);
        }
        for tier in sale.sale.tiers() {
            compare_bitmaps(sale, tier, &mut finding);
        }
        compare_holds(sale, &mut finding);
        compare_deadlines(sale, &mut finding);
        compare_bought(sale, &mut finding);
    }
    finding
}

fn compare_terms(sale: &SaleFacts, load: Option<TierId>, finding: &mut Finding) {
    finding.checked += 1;
    let none = HeadFact::default();
    let head = sale.redis.heads.get(&load).unwrap_or(&none);
    let subject = load.map_or(Subject::Sale, |tier| Subject::Tier { tier });
    if head.epoch != sale.epoch {
        let named = |epoch: &Option<String>| epoch.clone().unwrap_or_else(|| "none".to_owned());
        let what = format!(
            "has epoch {} in Redis but {} in the catalogue",
            named(&head.epoch),
            named(&sale.epoch)
        );
        finding.add(sale, subject.clone(), what);
    }
    let file = sale.sale.file();
    let terms = [
        ("state", file.state.as_str().to_owned()),
        ("opens_ms", file.opens_at.ms().to_string()),
        ("closes_ms", sale.sale.sells_until().ms().to_string()),
        ("limit", file.limit_per_buyer.to_string()),
        ("legs", sale.sale.leg_count().to_string()),
    ];
    compare_fields(sale, &subject, &head.terms, &terms, finding);
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
        for leg in Leg::first(sale.sale.leg_count()) {
            let found = found.get(leg.index()).map_or(&[][..], Vec::as_slice);
            let expected = expected.get(leg.index()).map_or(&[][..], Vec::as_slice);
            finding.checked += reporting::count(expected.len()) * 8;
            for (seat, is_set) in differences(expected, found) {
                let at = SeatLeg { tier: tier.tier.clone(), leg, seat };
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
    for (index, first) in (0..expected.len().max(found.len())).zip((0..).step_by(8)) {
        let (expected, found) = (byte(expected, index), byte(found, index));
        for column in 0..8 {
            let mask = 0x80 >> column;
            if (expected ^ found) & mask != 0 {
                all.push((Seat(first + column), found & mask != 0));
            }
        }
    }
    all
}

/// Sets one seat-leg; one outside the grid is I2's to report.
fn set(bitmaps: &mut [Vec<u8>], at: &SeatLeg) {
    let bitmap = bitmaps.get_mut(at.leg.index());
    let byte = bitmap.zip(usize::try_from(at.seat.0 / 8).ok());
    if let Some(byte) = byte.and_then(|(bitmap, index)| bitmap.get_mut(index)) {
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
        if hold.seat_legs() != order.seat_legs().into_iter().collect() {
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
    finding.checked += reporting::count(sale.redis.due_ms.len());
    for number in sale.redis.due_ms.keys() {
        if !sale.redis.holds.contains_key(number) {
            let subject = Subject::Order { order: *number };
            finding.add(sale, subject, "has a deadline in Redis but no hold");
        }
    }
}

fn compare_bought(sale: &SaleFacts, finding: &mut Finding) {
    let users: BTreeSet<&UserId> = sale.redis.bought.keys().chain(sale.counts.keys()).collect();
    finding.checked += reporting::count(users.len());
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

#[cfg(test)]
mod tests {
    use engine::domain::sale::Sale;

    use super::super::super::facts::{HoldFact, RedisFacts};
    use super::super::fixture::{
        NOW, assert_each, clean_facts, id, order_number, sale, sale_of, violations,
    };
    use super::*;

    fn redis(facts: &mut Facts) -> &mut RedisFacts {
        &mut sale_of(facts).redis
    }

    fn head(facts: &mut Facts) -> &mut HeadFact {
        redis(facts).heads.entry(None).or_default()
    }

    fn hold(facts: &mut Facts) -> &mut HoldFact {
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
                |facts| head(facts).epoch = Some("e0".to_owned()),
                &["I4 g1: the sale has epoch e0 in Redis but e1 in the catalogue"],
            ),
            (
                |facts| drop(head(facts).terms.insert("limit".to_owned(), "9".to_owned())),
                &["I4 g1: the sale has limit 9 in Redis but 3 in the catalogue"],
            ),
        ]);
    }

    #[test]
    fn i4_asks_for_the_load_of_each_tier_that_is_kept_apart() {
        // The sale of the fixture with its tiers apart, under one epoch and the same terms.
        let apart = |change: fn(&mut BTreeMap<Option<TierId>, HeadFact>)| {
            let mut facts = clean_facts();
            let sale = sale_of(&mut facts);
            let mut file = sale.sale.file().clone();
            file.tiers_apart = true;
            sale.sale = Sale::new(file).unwrap();
            let whole = sale.redis.heads.remove(&None).unwrap();
            let tiers: [TierId; 2] = [id("a"), id("ga")];
            let heads = tiers.map(|tier| (Some(tier), whole.clone()));
            sale.redis.heads = heads.into();
            change(&mut sale.redis.heads);
            violations(&facts)
        };
        fn ga(heads: &mut BTreeMap<Option<TierId>, HeadFact>) -> &mut HeadFact {
            heads.get_mut(&Some(id("ga"))).unwrap()
        }
        assert_eq!(apart(|_| {}), [""; 0]);
        assert_eq!(
            apart(|heads| ga(heads).epoch = Some("e0".to_owned())),
            ["I4 g1: tier ga has epoch e0 in Redis but e1 in the catalogue"]
        );
        assert_eq!(
            apart(|heads| drop(ga(heads).terms.insert("limit".to_owned(), "9".to_owned()))),
            ["I4 g1: tier ga has limit 9 in Redis but 3 in the catalogue"]
        );
        let lost = apart(|heads| *ga(heads) = HeadFact::default());
        let epoch = "I4 g1: tier ga has epoch none in Redis but e1 in the catalogue";
        assert!(lost.iter().any(|what| what == epoch), "{lost:?}");
        assert_eq!(lost.len(), 6, "and each of its terms is absent: {lost:?}");
    }

    #[test]
    fn i4_asks_nothing_of_a_sale_that_was_never_loaded() {
        let calls = std::mem::take(&mut sale_of(&mut clean_facts()).calls);
        let sale = SaleFacts { calls, ..SaleFacts::new(sale(), None) };
        let facts = Facts { sales: [(id("g1"), sale)].into(), ..Facts::default() };
        assert_eq!(violations(&facts), [""; 0]);
    }
}
