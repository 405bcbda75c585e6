//! Those who come late and take what is left, until nothing is: returned seats, single seats,
//! single legs.

use std::time::{Duration, Instant};

use engine::domain::basics::ids::Legs;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::choice::Together;
use futures_util::stream::{self, StreamExt as _};
use serde_json::json;

use super::client::Call;
use super::people::Class;
use super::profile::Behaviour;
use super::session::{GateReply, LoadTest, line};
use super::stopwatch::Endpoint;

/// Pause of the late between two looks at a sale in which seats are still held, in milliseconds.
const LOOK_MS: u64 = 300;
/// Most times that one of the late asks the gate again.
const ASKS: u32 = 30;

/// One late buyer, who takes tickets of one tier on one journey.
struct Late {
    user: String,
    sale: usize,
    tier: usize,
    legs: Legs,
    tickets: u16,
}

impl LoadTest {
    /// Sells what is left. Returns true once nothing is free and nothing unpaid can come back.
    pub async fn sell_the_rest(&self, at_once: usize, until: Instant) -> bool {
        let mut round = 0;
        while Instant::now() < until {
            round += 1;
            let late = self.what_is_left(round).await;
            let Some(late) = late.filter(|late| !late.is_empty()) else {
                let deadline = self.tally.last_deadline();
                let end = deadline.map(|deadline| self.grace.end_from(deadline));
                if end.is_none_or(|end| end < Timestamp::now())
                    && self.tasks.count() == 0
                    && self.is_sold_out().await
                {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
                continue;
            };
            let paid = self.tally.paid.get();
            stream::iter(&late).for_each_concurrent(at_once, |late| self.take(late)).await;
            if self.tally.paid.get() == paid {
                // The gate lets nobody in before its next top-up.
                tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            }
        }
        false
    }

    /// The whole journey first, then each leg by itself, one journey a round and sale, so that the
    /// late do not chase the same seats. `None` if the gateway does not say what is left.
    async fn what_is_left(&self, round: u64) -> Option<Vec<Late>> {
        let mut late = Vec::new();
        for (index, venue) in self.venues.iter().enumerate() {
            let legs = venue.sale.whole();
            let single = legs.iter().filter_map(|leg| Legs::new(leg.0, leg.0 + 1));
            let journeys = std::iter::once(legs).chain(single.filter(|_| legs.count() > 1));
            for journey in journeys {
                let before = late.len();
                let left = self.left(venue, journey, true).await?;
                for (tier_index, tier) in venue.sale.tiers().iter().enumerate() {
                    if tier.price_minor(journey).is_none() {
                        continue;
                    }
                    let most = venue.sale.max_tickets_per_order();
                    let mut count = left.get(tier.tier.as_str()).map_or(0, |left| left.count);
                    while count > 0 {
                        let tickets = u16::try_from(count).unwrap_or(u16::MAX).min(most);
                        count -= u32::from(tickets);
                        late.push(Late {
                            user: format!("late-{round}-{index}-{}", late.len()),
                            sale: index,
                            tier: tier_index,
                            legs: journey,
                            tickets,
                        });
                    }
                }
                // What overlaps this journey looks different once it is sold.
                if late.len() > before && journey == legs && legs.count() > 1 {
                    break;
                }
            }
        }
        Some(late)
    }

    /// True if no seat of any sale is free on any journey that is sold.
    pub(super) async fn is_sold_out(&self) -> bool {
        self.what_is_left(0).await.is_some_and(|late| late.is_empty())
    }

    /// A late buyer takes what is left, in any seats, and pays.
    async fn take(&self, late: &Late) {
        self.tally.arrived(Class::Late);
        let venue = &self.venues[late.sale];
        let Some(bearer) = self.bearer(&late.user, Class::Late) else { return };
        let tickets = late.tickets;
        let body = json!({ "tickets": tickets }).to_string();
        let ask = self.made(Call::post(Endpoint::Admission, &venue.admissions, body));
        let Some(ask) = ask.map(|ask| ask.by(&bearer)) else { return };
        let mut due = Instant::now();
        for _ in 0..ASKS {
            let admission = match self.gate_reply(Class::Late, self.persist(&ask, due, None).await)
            {
                GateReply::Admitted(admission) => admission,
                GateReply::Later(wait) => {
                    due = self.later(wait).await;
                    continue;
                }
                // What is held is for the next round.
                GateReply::Waiting(_) | GateReply::Refused => return,
            };
            let choice = json!({ "best": { "count": tickets, "together": Together::Preferred } });
            let tier = &venue.sale.tiers()[late.tier];
            let line = line(venue, &late.user, tier, late.legs, choice, 0..tickets);
            let body = json!({ "admission": admission.token, "lines": [line] }).to_string();
            let order = self.made(Call::post(Endpoint::Reserve, &venue.orders, body));
            let Some(order) = order.map(|order| order.by(&bearer)) else { return };
            if let Ok(order) = self.order(Behaviour::Pay, &order, &admission, Instant::now()).await
            {
                let payment = format!("pi_{}", order.order);
                self.pay(&order, &bearer, &payment, Instant::now()).await;
            }
            return;
        }
    }
}
