//! Points in I8 and I10: a buyer has what the orders have given, and each order has given what its facts say.

use std::collections::BTreeMap;

use engine::domain::basics::time::Timestamp;
use engine::domain::order::fact::FactKind;

use super::super::facts::{AwardFact, Facts, OrderFact, PointsFact, PointsTermsFact};
use super::super::violation::Subject;
use super::{Finding, i10::is_over_since};

/// Whose orders buy money instead of tickets.
const WALLET: &str = "wallet";

fn shown(PointsFact { points, growth }: PointsFact) -> String {
    format!("{points} points and {growth} growth")
}

/// I8: a buyer has what the orders have given.
pub(super) fn are_what_was_given(facts: &Facts, finding: &mut Finding) {
    let mut left = facts.points.clone();
    let mut given: BTreeMap<&str, PointsFact> = BTreeMap::new();
    for award in facts.awards.values() {
        let sum = given.entry(&award.user).or_default();
        sum.points += award.given.points;
        sum.growth += award.given.growth;
    }
    let mut check = |user: &str, has: PointsFact, given: PointsFact| {
        finding.checked += 1;
        if has != given {
            let what = format!("are {}, and the orders have given {}", shown(has), shown(given));
            finding.add_stray(Subject::Record { record: format!("the points of {user}") }, what);
        }
    };
    for (user, given) in given {
        check(user, left.remove(user).unwrap_or_default(), given);
    }
    for (user, has) in left {
        check(&user, has, PointsFact::default());
    }
}

/// What an order gives by the first `count` of its facts; `None` if it gives nothing by any.
fn gives(order: &OrderFact, count: usize) -> Option<PointsFact> {
    let PointsTermsFact { per_minor, points, growth } = order.points?;
    let (mut kept, mut is_paid) = (0_i64, false);
    for told in order.told.iter().take(count) {
        let amount = told.amount_minor.unwrap_or(0);
        if matches!(told.kind, FactKind::Paid | FactKind::Rescued) {
            (kept, is_paid) = (amount, true);
        } else if told.kind == FactKind::RefundMade {
            kept -= amount;
        }
    }
    let times = u64::try_from(kept).unwrap_or(0) / per_minor.max(1);
    let gives = is_paid && order.merchant.0 != WALLET;
    gives.then(|| PointsFact { points: times * points, growth: times * growth })
}

/// I10: what an order has given is what the facts say that it was written by; and by `bound_seconds` after its last
/// one was settled, it was written by all of them.
pub(super) fn are_what_orders_say(
    facts: &Facts,
    now: Timestamp,
    bound_seconds: u32,
    finding: &mut Finding,
) {
    for sale in facts.sales.values() {
        for order in sale.orders.values() {
            let subject = || Subject::Order { order: order.number };
            let award = facts.awards.get(&order.number);
            let count = order.told.len();
            let is_settled = usize::try_from(order.settled).is_ok_and(|settled| settled == count);
            finding.checked += u64::from(order.points.is_some());
            match award {
                Some(AwardFact { user, facts: by, given }) => {
                    let by = usize::try_from(*by).unwrap_or(usize::MAX);
                    let expected = gives(order, by).filter(|_| by <= count);
                    if expected != Some(*given) || *user != order.user.as_str() {
                        let expected = shown(expected.unwrap_or_default());
                        let what = format!(
                            "has given {} to {user}, and gives {expected} by {by} of its facts",
                            shown(*given)
                        );
                        finding.add(sale, subject(), what);
                    } else if by < count && is_settled && is_over_since(order, now, bound_seconds) {
                        let what = format!("was never looked at after fact {by} for what it gives");
                        finding.add(sale, subject(), what);
                    }
                }
                None => {
                    let missing = gives(order, count).filter(|it| *it != PointsFact::default());
                    let is_due = is_settled && is_over_since(order, now, bound_seconds);
                    if let Some(missing) = missing.filter(|_| is_due) {
                        finding.add(sale, subject(), format!("has not given {}", shown(missing)));
                    }
                }
            }
        }
    }
    if facts.elsewhere.is_empty() {
        let is_order = |order| facts.sales.values().any(|sale| sale.orders.contains_key(order));
        for (order, AwardFact { given, .. }) in &facts.awards {
            if !is_order(order) {
                let record = format!("what order {order} has given");
                let what = format!("is {}, and there is no such order", shown(*given));
                finding.add_stray(Subject::Record { record }, what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{clean_facts, order_number, order_of, told, violations};
    use super::*;
    use crate::audit::facts::ToldFact;

    /// Order 2 was paid with 250, of which 60 went back; it gives 3 points and 1 growth for each 100.
    fn given() -> Facts {
        let mut facts = clean_facts();
        let order = order_of(&mut facts, 2);
        order.points = Some(PointsTermsFact { per_minor: 100, points: 3, growth: 1 });
        for (kind, amount) in [(FactKind::Paid, 250), (FactKind::RefundMade, 60)] {
            let amount_minor = Some(amount);
            order.told.push(ToldFact { amount_minor, ..told(kind) });
        }
        let user = order.user.to_string();
        let given = PointsFact { points: 3, growth: 1 };
        facts.points.insert(user.clone(), given);
        facts.awards.insert(order_number(2), AwardFact { user, facts: 3, given });
        facts
    }

    fn found(facts: &Facts) -> Vec<String> {
        let about_points = |line: &String| line.contains("point") || line.contains("gives");
        violations(facts).into_iter().filter(about_points).collect()
    }

    #[test]
    fn what_was_given_breaks_no_rule() {
        assert_eq!(found(&given()), [""; 0]);
        let mut of_fewer = given();
        of_fewer.awards.get_mut(&order_number(2)).unwrap().facts = 2;
        of_fewer.awards.get_mut(&order_number(2)).unwrap().given.points = 6;
        of_fewer.awards.get_mut(&order_number(2)).unwrap().given.growth = 2;
        let has = PointsFact { points: 6, growth: 2 };
        of_fewer.points.values_mut().for_each(|it| *it = has);
        assert_eq!(found(&of_fewer), [""; 0], "the facts are not settled yet");
    }

    #[test]
    fn what_was_not_given_or_given_twice_is_named() {
        type Change = fn(&mut Facts);
        let cases: [(Change, &str); 5] = [
            (
                |facts| facts.points.values_mut().for_each(|has| has.points += 3),
                "I8 the points of bob are 6 points and 1 growth, and the orders have given 3 points and 1 growth",
            ),
            (
                |facts| facts.points.clear(),
                "I8 the points of bob are 0 points and 0 growth, and the orders have given 3 points and 1 growth",
            ),
            (
                |facts| facts.awards.values_mut().for_each(|award| award.facts = 2),
                "I10 g1: order 2 has given 3 points and 1 growth to bob, and gives 6 points and 2 growth by 2 of its facts",
            ),
            (
                |facts| {
                    facts.awards.clear();
                    facts.points.clear();
                    order_of(facts, 2).settled = 3;
                },
                "I10 g1: order 2 has not given 3 points and 1 growth",
            ),
            (
                |facts| {
                    let award = facts.awards.remove(&order_number(2)).unwrap();
                    facts.awards.insert(order_number(78), award);
                },
                "I10 what order 78 has given is 3 points and 1 growth, and there is no such order",
            ),
        ];
        for (break_it, expected) in cases {
            let mut facts = given();
            break_it(&mut facts);
            let found = found(&facts);
            assert!(found.iter().any(|line| line == expected), "{found:#?}");
        }
    }
}
