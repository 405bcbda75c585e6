//! Tokens: no more tickets were ordered than the gate has admitted.

use engine::domain::basics::time::Timestamp;

use super::super::decode;
use super::super::facts::{Facts, SaleFacts};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// Writes that a failover of Redis may lose, in seconds: far more than replicas lag.
const LOST_SECONDS: i64 = 60;

/// Tokens: what a gate has issued and has not left covers the tickets of all orders whose admission is
/// younger than its counts, whatever became of the orders.
///
/// It may cover more: admissions that are not ordered yet or never will be. It may cover fewer by what Redis
/// loses in a failover, the last writes before it: as much as was ordered in the busiest minute is let
/// pass. A shard that Redis has lost counts anew; a sale of which it lost one that nobody has come to
/// since is not compared.
#[must_use]
pub fn orders_were_admitted(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::Tokens);
    for sale in facts.sales.values() {
        let gate = &sale.redis.gate;
        for (shard, fact) in gate.iter().filter(|(_, fact)| fact.used() < 0) {
            let (issued, left) = (fact.issued, fact.remaining);
            let what = format!("has {left} tokens left in shard {shard} of its gate, of {issued}");
            finding.add(sale, Subject::Sale, what);
        }
        let Some(since) = gate.values().map(|fact| fact.since).max() else { continue };
        let Some(orders) = admitted_since(sale, since) else { continue };
        finding.checked += u64::try_from(orders.len()).unwrap_or(u64::MAX);
        let used: i64 = gate.values().map(|fact| fact.used()).sum();
        let ordered: i64 = orders.iter().map(|(_, tickets)| tickets).sum();
        let lost = busiest(&orders);
        if ordered > used + lost {
            let what = format!(
                "has admitted {used} tickets since {since}, and {ordered} are ordered: {} more than Redis \
                 may have lost ({lost})",
                ordered - used - lost
            );
            finding.add(sale, Subject::Sale, what);
        }
    }
    finding
}

/// The admission and the tickets of each order that was admitted after a time, in order of time; `None` if
/// one was admitted by a shard that counts nothing.
fn admitted_since(sale: &SaleFacts, since: Timestamp) -> Option<Vec<(Timestamp, i64)>> {
    let shards = u64::from(sale.sale.file().gate.shards.max(1));
    let mut orders = Vec::new();
    for order in sale.orders.values().filter(|order| order.tickets() > 0) {
        let admitted_at = decode::admitted_at(order.number);
        // Its second began after the shard: before that second, it is not sure.
        if admitted_at <= since {
            continue;
        }
        let shard = u16::try_from(decode::gene_of_order(order.number) % shards).ok()?;
        sale.redis.gate.get(&shard)?;
        orders.push((admitted_at, order.tickets()));
    }
    orders.sort_unstable();
    Some(orders)
}

/// The most tickets of orders that were admitted within [`LOST_SECONDS`].
fn busiest(orders: &[(Timestamp, i64)]) -> i64 {
    let (mut first, mut tickets, mut most) = (0, 0, 0);
    for (at, more) in orders {
        tickets += more;
        while let Some((earliest, gone)) = orders.get(first)
            && earliest.plus_seconds(LOST_SECONDS) <= *at
        {
            tickets -= gone;
            first += 1;
        }
        most = most.max(tickets);
    }
    most
}

#[cfg(test)]
mod tests {
    use engine::domain::order::OrderState;

    use super::super::fixture::{assert_each, clean_facts, order, sale_of, violations};
    use super::*;

    /// Orders of two tickets by the minute of their admission, which no shard has counted.
    fn add_orders(facts: &mut Facts, minutes: impl Iterator<Item = u64>) {
        for minute in minutes {
            let number = (minute * 60) << 31 | minute;
            let mut new = order(number, "zoe", OrderState::Expired, "ga", (0, 1), &[3, 4]);
            // What it tells is not what is looked at here.
            new.told.clear();
            sale_of(facts).orders.insert(new.number, new);
        }
    }

    #[test]
    fn what_was_ordered_without_an_admission_is_found() {
        assert_each(&[
            (
                |facts| add_orders(facts, 1..=3),
                &[
                    "tokens g1: the sale has admitted 5 tickets since 2023-12-31T23:59:59.000Z, and 11 are ordered: 1 more than Redis may have lost (5)",
                ],
            ),
            (
                |facts| sale_of(facts).redis.gate.get_mut(&2).unwrap().remaining = 11,
                &["tokens g1: the sale has 11 tokens left in shard 2 of its gate, of 10"],
            ),
        ]);
    }

    #[test]
    fn what_redis_may_have_lost_is_let_pass() {
        let passes = |change: fn(&mut Facts)| {
            let mut facts = clean_facts();
            change(&mut facts);
            assert_eq!(violations(&facts), [""; 0]);
        };
        // A failover lost the admissions of one minute.
        passes(|facts| add_orders(facts, 1..=2));
        // The gate was lost as a whole, and began again after them.
        passes(|facts| {
            add_orders(facts, 1..=9);
            let since = Timestamp::from_ms((1_704_067_200 + 9 * 60) * 1000);
            sale_of(facts).redis.gate.values_mut().for_each(|shard| shard.since = since);
        });
        // One shard was lost, and nobody came to it since.
        passes(|facts| {
            add_orders(facts, 1..=9);
            sale_of(facts).redis.gate.remove(&1);
        });
        passes(|facts| {
            add_orders(facts, 1..=9);
            sale_of(facts).redis.gate.clear();
        });
    }

    #[test]
    fn the_busiest_minute_is_found_wherever_it_begins() {
        let at = |seconds: i64, tickets| (Timestamp::from_ms(seconds * 1000), tickets);
        assert_eq!(busiest(&[]), 0);
        assert_eq!(busiest(&[at(0, 3), at(59, 2), at(60, 4), at(118, 1)]), 7);
        assert_eq!(busiest(&[at(0, 9), at(60, 1)]), 9);
    }
}
