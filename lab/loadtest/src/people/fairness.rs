//! Whether the sale was fair: who was let in by time of arrival, people against bots, waits promised against had.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Class;
use super::plan::Arrival;
use super::promises::PromiseFigures;
use super::windows::{Member, Window, WindowShare};
use crate::session::LoadTest;

/// Parts of a crowd by order of arrival.
const DECILES: u64 = 10;

/// What became of one account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visit {
    /// True if it joined a waiting room.
    pub joined: bool,
    /// True if it was let in at least once.
    pub admitted: bool,
    /// Orders that it made.
    pub orders: u64,
}

/// What became of all accounts, by their numbers in the plan.
#[derive(Debug, Default)]
pub struct Visits(BTreeMap<u64, Visit>);

impl Visits {
    /// The visit of an account.
    pub fn of(&mut self, account: u64) -> &mut Visit {
        self.0.entry(account).or_default()
    }
}

/// The accounts of a decile of the crowd.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Decile {
    pub people: u64,
    /// Of these, those that were let in.
    pub people_admitted: u64,
    pub bots: u64,
    /// Of these, those that were let in.
    pub bots_admitted: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Fairness {
    /// Accounts by tenths of the crowd, in the order of their coming.
    pub deciles: Vec<Decile>,
    /// Share of bots among the accounts that came.
    pub bots_of_accounts: f64,
    /// Share of bots among those that joined the waiting room; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bots_of_joined: Option<f64>,
    /// Share of bots among those that were let in.
    pub bots_of_admitted: f64,
    /// Share of bots among the orders.
    pub bots_of_orders: f64,
    /// Share of bots among the tickets that were paid.
    pub bots_of_tickets: f64,
    /// Accounts of farms among those that came: each farm has fifty.
    pub farms_of_accounts: f64,
    /// Share of farms among the tickets that were paid.
    pub farms_of_tickets: f64,
    /// Most orders of one person or bot, with all accounts.
    pub most_orders_of_one_owner: u64,
    /// Whose places were served, by the windows of the waiting room of which any was; empty without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowShare>,
    /// Waits promised against waits had, from the second minute of serving on; absent if none was promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<PromiseFigures>,
    /// Places that were served; absent without a waiting room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places_served: Option<u64>,
    /// Tickets that were paid.
    pub tickets: u64,
    /// Accounts that were let in.
    pub admitted: u64,
    /// Number of times that somebody was let in and found nothing to buy.
    pub admitted_to_nothing: u64,
}

/// A part of a whole; 0 of nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn share_of_bots<'a>(all: impl Iterator<Item = (&'a Arrival, u64)>) -> f64 {
    let (mut bots, mut everybody) = (0, 0);
    for (arrival, count) in all {
        everybody += count;
        bots += if arrival.class.is_bot() { count } else { 0 };
    }
    share(bots, everybody)
}

impl LoadTest {
    /// Who got what; `None` in a closed loop, where nobody comes by a plan.
    pub(crate) fn fairness(&self) -> Option<Fairness> {
        if self.arrivals.is_empty() {
            return None;
        }
        // They come in the order of the plan: those who did not come before the end are the last.
        let came = usize::try_from(self.tally.buyers.get()).unwrap_or(usize::MAX);
        let came = &self.arrivals[..came.min(self.arrivals.len())];
        let fairness = Fairness::new(came, &self.visits.borrow());
        let people = self.tally.people();
        let tickets = |is_one: fn(Class) -> bool| {
            let of = people.iter().filter(|(class, _)| is_one(**class));
            let tickets: u64 = of.map(|(_, deeds)| deeds.tickets).sum();
            share(tickets, self.tally.tickets.get())
        };
        let farms = came.iter().filter(|arrival| arrival.class == Class::Farm).count();
        Some(Fairness {
            bots_of_tickets: tickets(Class::is_bot),
            farms_of_accounts: share(reporting::count(farms), reporting::count(came.len())),
            farms_of_tickets: tickets(|class| class == Class::Farm),
            windows: self.windows(),
            waits: self.promises.borrow().figures(),
            places_served: self.places_served(),
            tickets: self.tally.tickets.get(),
            admitted_to_nothing: self.tally.admitted_to_nothing.get(),
            ..fairness
        })
    }

    /// Places that were served, as the last room documents have it; `None` without a waiting room.
    fn places_served(&self) -> Option<u64> {
        let rooms = self.venues.iter().filter(|venue| venue.has_room());
        rooms
            .map(|venue| venue.serving().into_iter().map(u64::from).sum())
            .reduce(|some, more: u64| some + more)
    }

    /// Whose places were served, by the windows that anybody has asked for.
    fn windows(&self) -> Vec<WindowShare> {
        let members = self.members.borrow();
        let mut shares = Vec::new();
        for (sale, venue) in self.venues.iter().enumerate() {
            let groups = venue.sale.file().room.iter().flat_map(|room| &room.groups);
            for ((at, of), serving) in groups.enumerate().zip(venue.serving()) {
                let is_here = |member: &&Member| member.sale == sale && member.group == at;
                let members: Vec<Member> = members.iter().filter(is_here).copied().collect();
                let Ok(known) = venue.windows.try_lock() else { continue };
                let mut windows: Vec<Window> =
                    known.iter().filter(|(of, _)| *of == at).map(|(_, window)| *window).collect();
                windows.sort_unstable_by_key(|window| window.first);
                windows.dedup_by_key(|window| window.first);
                shares.extend(windows.into_iter().filter_map(|window| {
                    WindowShare::new(of.group.clone(), window, &members, serving)
                }));
            }
        }
        shares
    }
}

impl Fairness {
    /// The figures of a run: who came by the plan, and what became of them.
    #[must_use]
    pub fn new(arrivals: &[Arrival], visits: &Visits) -> Self {
        let none = Visit::default();
        let all = || {
            let visit = |(account, arrival)| (arrival, visits.0.get(&account).unwrap_or(&none));
            (0_u64..).zip(arrivals).map(visit)
        };
        let whole = reporting::count(arrivals.len()).max(1);
        let mut deciles = vec![Decile::default(); 10];
        for (number, (arrival, visit)) in (0_u64..).zip(all()) {
            let decile = usize::try_from(number * DECILES / whole).unwrap_or(0);
            let Some(decile) = deciles.get_mut(decile) else { continue };
            let (accounts, admitted) = if arrival.class.is_bot() {
                (&mut decile.bots, &mut decile.bots_admitted)
            } else {
                (&mut decile.people, &mut decile.people_admitted)
            };
            *accounts += 1;
            *admitted += u64::from(visit.admitted);
        }
        let mut orders: BTreeMap<u32, u64> = BTreeMap::new();
        for (arrival, visit) in all().filter(|(_, visit)| visit.orders > 0) {
            *orders.entry(arrival.owner).or_default() += visit.orders;
        }
        let has_room = visits.0.values().any(|visit| visit.joined);
        let joined = || all().map(|(arrival, visit)| (arrival, u64::from(visit.joined)));
        Self {
            deciles,
            bots_of_accounts: share_of_bots(arrivals.iter().map(|arrival| (arrival, 1))),
            bots_of_joined: has_room.then(|| share_of_bots(joined())),
            bots_of_admitted: share_of_bots(
                all().map(|(arrival, visit)| (arrival, u64::from(visit.admitted))),
            ),
            bots_of_orders: share_of_bots(all().map(|(arrival, visit)| (arrival, visit.orders))),
            most_orders_of_one_owner: orders.values().copied().max().unwrap_or(0),
            admitted: all().map(|(_, visit)| u64::from(visit.admitted)).sum(),
            ..Self::default()
        }
    }

    /// The figures in words.
    #[must_use]
    pub fn words(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let joined = self
            .bots_of_joined
            .map_or_else(String::new, |share| format!("{} of those who joined, ", percent(share)));
        let waits = self.waits.map_or_else(String::new, |waits| {
            let PromiseFigures { count, of_looks, within, median_error, widest_range } = waits;
            format!(
                "; of {count} promised waits ({} of the looks at the room) {} were as promised, the median error is {}, the \
                 longest wait of a range is at most {widest_range:.2} times the shortest",
                percent(of_looks),
                percent(within),
                percent(median_error)
            )
        });
        let places = self.places_served.map_or_else(String::new, |places| {
            format!("; {places} places were served for {} tickets", self.tickets)
        });
        format!(
            "bots are {} of the accounts, {joined}{} of those who were admitted and {} of the orders; one owner \
             made {} orders at most{places}{waits}; {} of {} were admitted to nothing",
            percent(self.bots_of_accounts),
            percent(self.bots_of_admitted),
            percent(self.bots_of_orders),
            self.most_orders_of_one_owner,
            self.admitted_to_nothing,
            self.admitted,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(classes: &[(Class, u32)]) -> Vec<Arrival> {
        let arrival = |(micros, (class, owner)): (u64, &(Class, u32))| Arrival {
            micros,
            class: *class,
            owner: *owner,
        };
        (0..).zip(classes).map(arrival).collect()
    }

    #[test]
    fn who_was_let_in_is_counted_by_tenths_of_the_crowd() {
        // Twenty accounts: every second one is of one farm.
        let classes: Vec<(Class, u32)> = (0..20)
            .map(|number| if number % 2 == 0 { (Class::Person, number) } else { (Class::Farm, 99) })
            .collect();
        let plan = arrivals(&classes);
        let mut visits = Visits::default();
        for account in [0, 1, 3, 18] {
            *visits.of(account) = Visit { admitted: true, orders: 1, ..Visit::default() };
        }
        let fairness = Fairness::new(&plan, &visits);
        let decile = |people_admitted, bots_admitted| Decile {
            people: 1,
            people_admitted,
            bots: 1,
            bots_admitted,
        };
        assert_eq!(fairness.deciles[0], decile(1, 1));
        assert_eq!(fairness.deciles[1], decile(0, 1));
        assert_eq!(fairness.deciles[9], decile(1, 0));
        let shares =
            [fairness.bots_of_accounts, fairness.bots_of_admitted, fairness.bots_of_orders];
        assert_eq!(shares, [0.5, 0.5, 0.5]);
        assert_eq!(fairness.most_orders_of_one_owner, 2);
        assert_eq!((fairness.bots_of_joined, fairness.waits, fairness.admitted), (None, None, 4));
        // More accounts than tenths, fewer, and none.
        for count in [0, 1, 9, 10, 11, 105] {
            let plan = arrivals(&vec![(Class::Person, 0); count]);
            let fairness = Fairness::new(&plan, &Visits::default());
            let people: u64 = fairness.deciles.iter().map(|decile| decile.people).sum();
            assert_eq!(people, reporting::count(count));
        }
    }

    #[test]
    fn who_joined_is_counted_apart_from_who_came() {
        let mut visits = Visits::default();
        for account in 0..3 {
            *visits.of(account) = Visit { joined: true, ..Visit::default() };
        }
        let classes = [Class::Person, Class::Person, Class::Script, Class::Script];
        let plan = arrivals(&classes.map(|class| (class, 0)));
        let fairness = Fairness::new(&plan, &visits);
        assert!((fairness.bots_of_joined.unwrap() - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!((fairness.bots_of_accounts, fairness.admitted), (0.5, 0));
        let waits = PromiseFigures {
            count: 4,
            of_looks: 0.8,
            within: 0.5,
            median_error: 0.1,
            widest_range: 1.8,
        };
        let words = Fairness { waits: Some(waits), ..fairness }.words();
        assert!(
            words.contains(
                "of 4 promised waits (80 % of the looks at the room) 50 % were as promised"
            ),
            "{words}"
        );
    }
}
