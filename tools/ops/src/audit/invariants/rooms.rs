//! Rooms: what a waiting room did follows from its log, and orders are made by whom it let in.

use std::collections::BTreeMap;

use engine::domain::basics::ids::UserId;
use engine::domain::basics::time::Timestamp;

use super::super::facts::{Facts, RoomFacts, SaleFacts};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// Time by which a record may be dated after the audit, in milliseconds.
const MAX_AHEAD_MS: i64 = 60_000;

/// Rooms: the log is unbroken and each record is what the rules make of the one before; leaves, counters and
/// places are those of the log; who was let in had the place that was drawn, and it was due; and whoever has
/// ordered was let in as often. A log that is ahead of time was written by a clock that is wrong, which may have
/// closed, opened or drawn before the time.
///
/// The first part is found while the table is read, for a million places are not kept.
#[must_use]
pub fn rooms_follow_their_log(facts: &Facts, now: Timestamp) -> Finding {
    let mut finding = Finding::new(Rule::Rooms);
    for sale in facts.sales.values() {
        let Some(room) = &sale.room else { continue };
        finding.checked += room.read;
        for (subject, what) in &room.defects {
            finding.add(sale, subject.clone(), what.clone());
        }
        if room.more > 0 {
            finding.add(sale, Subject::Sale, format!("has {} more defects in its room", room.more));
        }
        if let Some((record, at)) = room.last
            && at.ms_since(now) > MAX_AHEAD_MS
        {
            let what = format!("is dated {at}, which is still to come: a clock is wrong");
            finding.add(sale, Subject::Turn { record }, what);
        }
        if !room.is_erased {
            orders_are_of_those_let_in(&mut finding, sale, room);
        }
    }
    finding
}

fn orders_are_of_those_let_in(finding: &mut Finding, sale: &SaleFacts, room: &RoomFacts) {
    let mut orders: BTreeMap<&UserId, u64> = BTreeMap::new();
    // A tombstone is nobody's order.
    for order in sale.orders.values().filter(|order| order.tickets() > 0) {
        *orders.entry(&order.user).or_default() += 1;
    }
    for (user, made) in orders {
        finding.checked += 1;
        let let_in = room.admissions.get(user).map_or(0, |of| of.most());
        if made > let_in {
            let what = format!("has made {made} orders, and was let in {let_in} times at most");
            finding.add(sale, Subject::Buyer { user: user.clone() }, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::AdmissionsFact;
    use super::super::super::facts::RoomFacts;
    use super::super::fixture::{NOW, clean_facts, id, sale_of, violations};
    use super::*;

    #[test]
    fn orders_of_those_who_were_not_let_in_are_found() {
        let mut facts = clean_facts();
        let users: Vec<UserId> = {
            let orders = sale_of(&mut facts).orders.values();
            orders.filter(|order| order.tickets() > 0).map(|order| order.user.clone()).collect()
        };
        let mut room = RoomFacts { read: 7, ..RoomFacts::default() };
        for user in users {
            let of: &mut AdmissionsFact = room.admissions.entry(user).or_default();
            of.attempts += 1;
        }
        sale_of(&mut facts).room = Some(room);
        assert_eq!(violations(&facts), [""; 0]);
        let room = |facts: &mut Facts| sale_of(facts).room.take().unwrap();
        let mut changed = room(&mut facts);
        changed.admissions.insert(id("alice"), AdmissionsFact::default());
        changed.more = 3;
        sale_of(&mut facts).room = Some(changed);
        assert_eq!(
            violations(&facts),
            [
                "rooms g1: buyer alice has made 1 orders, and was let in 0 times at most",
                "rooms g1: the sale has 3 more defects in its room",
            ]
        );
        // Of earlier places only their number is known.
        let mut changed = room(&mut facts);
        changed.admissions.insert(id("alice"), AdmissionsFact { attempts: 0, before: 10 });
        changed.more = 0;
        sale_of(&mut facts).room = Some(changed);
        assert_eq!(violations(&facts), [""; 0]);
    }

    #[test]
    fn a_log_that_is_ahead_of_time_is_found() {
        let mut facts = clean_facts();
        for order in sale_of(&mut facts).orders.clone().into_values() {
            let room = sale_of(&mut facts).room.get_or_insert_default();
            room.admissions.entry(order.user).or_default().attempts += 1;
        }
        let last = |seconds| Some((8, NOW.plus_seconds(seconds)));
        sale_of(&mut facts).room.as_mut().unwrap().last = last(60);
        assert_eq!(violations(&facts), [""; 0], "clocks differ");
        sale_of(&mut facts).room.as_mut().unwrap().last = last(3_600);
        let [found] = &violations(&facts)[..] else { panic!("{:?}", violations(&facts)) };
        assert!(found.starts_with("rooms g1: record 8 of the log is dated "), "{found}");
    }
}
