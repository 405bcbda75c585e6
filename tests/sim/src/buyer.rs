//! The buyers: what they want, and what they do when they get it or not.

use engine::domain::choice::{Choice, Offset, Together};
use engine::domain::ids::{AttendeeId, Legs, PaymentId, ProviderId, Seat, UserId};
use engine::domain::inventory::Line as Wish;
use engine::domain::money::{Currency, Money};
use engine::domain::number::{Gene, OrderNumber};
use engine::domain::order::{Capture, Order, PaymentKey};
use engine::domain::requested::{WantedLine, content};
use engine::domain::sale::{AttendeeRule, Sale, Tier};
use engine::flows::admit::admit;
use engine::flows::cancel::{self, cancel};
use engine::flows::reserve::{Refusal, Reservation, Reserved, reserve};
use engine::ports::{Catalogue as _, Freshness, StoreError};

use crate::actors::{call_back, never_call};
use crate::executor::Stage;
use crate::fault::Fault;
use crate::plan::{FAULTS_FROM_MS, START, sale_id};
use crate::random::{Dice, mix};

/// How often a buyer comes in a storm.
const STORM_ROUNDS: u64 = 8;
/// How often a buyer tries the same attempt again.
const ATTEMPTS: u64 = 7;

/// One buyer.
struct Buyer {
    stage: Stage,
    index: u64,
    /// The name of the buyer's draws.
    key: u64,
    user: UserId,
    number: OrderNumber,
    sale: Sale,
    /// Which visit it is.
    round: u64,
    /// Whether everything goes quickly.
    is_storm: bool,
}

/// A buyer comes, orders, and pays or does not.
pub(crate) async fn buyer(stage: Stage, index: u64) {
    let (seed, sale, rush_ms, is_storm) = {
        let plan = &stage.world.look().plan;
        (plan.seed, plan.sale.clone(), plan.rush_ms, plan.is_storm)
    };
    let key = mix(seed, 0x1000 + index);
    let mut dice = Dice::new(key);
    // One person in five comes twice. In a few runs two buyers' numbers clash.
    let person = if dice.chance(200) { index / 2 } else { index };
    let clash = stage.world.look().plan.numbers_clash();
    let user = UserId::new((7 + 1024 * person).to_string()).expect("it is plain text");
    stage.sleep(FAULTS_FROM_MS + dice.between(0, rush_ms)).await;
    for round in 0..if is_storm { STORM_ROUNDS } else { 1 } {
        let counter = if clash { 0 } else { (index * STORM_ROUNDS + round) as u16 };
        let gene = Gene::of(user.as_str());
        let number = OrderNumber::compose(START, (seed & 0xfff) as u16, counter, gene);
        let (stage, user, sale) = (stage.clone(), user.clone(), sale.clone());
        let key = mix(key, round);
        let buyer = Buyer { stage, index, round, key, user, number, sale, is_storm };
        if let Some(order) = buyer.order(&mut dice).await {
            buyer.decide(&mut dice, order).await;
        }
    }
}

impl Buyer {
    fn name(&self, what: &str) -> String {
        format!("buyer {} {what}", self.index)
    }

    /// Tries until there is an order, or no hope.
    async fn order(&self, dice: &mut Dice) -> Option<Order> {
        if dice.chance(250) {
            self.pass_the_gate().await;
        }
        let mut lines = wants(dice, &self.sale);
        for attempt in 0..ATTEMPTS {
            let place = mix(self.key, 100 + attempt);
            let answer = if dice.chance(120) {
                self.order_twice(dice, &lines, place).await
            } else {
                self.reserve(&lines, place).await
            };
            match answer {
                Some(Ok(reserved)) => return Some(reserved.order),
                // A refused attempt does not burn the admission: it is good for other seats.
                Some(Err(
                    Refusal::SeatTaken(..)
                    | Refusal::SoldOut(_)
                    | Refusal::NoAdjacent(_)
                    | Refusal::LimitReached(_)
                    | Refusal::AttendeeTaken(_),
                )) if dice.chance(600) => lines = wants(dice, &self.sale),
                Some(Err(
                    Refusal::SeatTaken(..)
                    | Refusal::SoldOut(_)
                    | Refusal::NoAdjacent(_)
                    | Refusal::SaleClosed
                    | Refusal::LimitReached(_)
                    | Refusal::TokenReused
                    | Refusal::HoldExpired
                    | Refusal::Resolved(_)
                    | Refusal::AttendeeTaken(_)
                    | Refusal::NumberClash,
                )) => return None,
                Some(Err(Refusal::NotLoaded | Refusal::Contended | Refusal::Store(_))) | None => {
                    let most_ms = if self.is_storm { 600 } else { 8_000 };
                    self.stage.sleep(dice.between(300, most_ms)).await;
                }
            }
        }
        None
    }

    async fn pass_the_gate(&self) {
        let user = self.user.clone();
        let admitted = self
            .stage
            .invoke(self.name("admit"), mix(self.key, 90), |ports, now| async move {
                let published = ports.sale(&sale_id(), Freshness::Cached).await.ok().flatten()?;
                admit(&ports, &published, &user, 2, now).await.ok()
            })
            .await;
        let outcome = if admitted.flatten().is_some() { "admitted" } else { "not admitted" };
        self.stage.world.look().tally.reach(outcome);
    }

    /// The same request twice at once, or two that differ.
    async fn order_twice(
        &self,
        dice: &mut Dice,
        lines: &[WantedLine],
        place: u64,
    ) -> Option<Result<Reserved, Refusal>> {
        let other = if dice.chance(250) { wants(dice, &self.sale) } else { lines.to_vec() };
        let twin = Self {
            stage: self.stage.clone(),
            index: self.index,
            key: self.key,
            user: self.user.clone(),
            number: self.number,
            sale: self.sale.clone(),
            round: self.round,
            is_storm: self.is_storm,
        };
        let wait = dice.between(0, 60);
        self.stage.act(async move {
            twin.stage.sleep(wait).await;
            let _unheard = twin.reserve(&other, mix(place, 21)).await;
        });
        self.reserve(lines, place).await
    }

    /// One request.
    async fn reserve(&self, lines: &[WantedLine], place: u64) -> Option<Result<Reserved, Refusal>> {
        let wanted = content(lines);
        let before = self.live_order();
        let (number, user, lines) = (self.number, self.user.clone(), lines.to_vec());
        let answer = self
            .stage
            .invoke(self.name("reserve"), place, |ports, now| async move {
                let published = ports.sale(&sale_id(), Freshness::Cached).await?;
                let missing = || StoreError::Unavailable("the sale is not published".to_owned());
                let published = published.ok_or_else(missing)?;
                let reservation = Reservation { published, number, user, lines };
                reserve(&ports, &reservation, now).await
            })
            .await;
        let after = self.live_order();
        let mut world = self.stage.world.look();
        match &answer {
            None => world.tally.reach("reserve unheard"),
            Some(Ok(reserved)) => {
                world.tally.reach("reserve answered with an order");
                let order = &reserved.order;
                world.ghost.told.insert(order.number, order.held_lines());
                if order.content != wanted || order.user != self.user {
                    let what = format!("{} is answered to another request", order.number);
                    world.broken("told", what);
                }
                let stored = world.stores.orders.orders.get(&order.number);
                if stored.map(Order::held_lines) != Some(order.held_lines()) {
                    let what = format!("{} is told to its buyer and is not there", order.number);
                    world.broken("told", what);
                }
            }
            Some(Err(refusal)) => {
                let kind = kind_of(refusal);
                world.tally.reach(&format!("refused: {kind}"));
                let is_no = !matches!(refusal, Refusal::Store(_) | Refusal::TokenReused);
                // One that was cancelled and rescued meanwhile is told of as it was in between.
                if is_no && before.is_some() && before == after {
                    let what = format!("the buyer of the live {} is told {kind}", self.number);
                    world.broken("refusal", what);
                }
            }
        }
        answer
    }

    fn live_order(&self) -> Option<Order> {
        let world = self.stage.world.look();
        let order = world.stores.orders.orders.get(&self.number);
        order.filter(|order| order.user == self.user && order.state.is_live()).cloned()
    }

    /// What becomes of an order.
    async fn decide(&self, dice: &mut Dice, order: Order) {
        if dice.chance(150) {
            self.stage.sleep(dice.between(10, 5_000)).await;
            let lines = wants(dice, &self.sale);
            let _other = self.reserve(&lines, mix(self.key, 300)).await;
        }
        if dice.chance(60) {
            self.stranger_cancels(&order).await;
        }
        let left = order.pay_by.ms_since(self.stage.world.look().now);
        let think = if self.is_storm { dice.between(1, 300) } else { dice.between(100, 15_000) };
        let fate = if self.is_storm { dice.pick(&[1, 1, 1, 2, 6, 6]) } else { dice.below(10) };
        match fate {
            // Never heard of again.
            0 => {}
            1 => {
                self.stage.sleep(think).await;
                self.cancel(&order).await;
            }
            // Pays and cancels at once.
            2 => {
                self.stage.sleep(think).await;
                self.pay(dice, &order, 0);
                self.stage.sleep(dice.between(0, 300)).await;
                self.cancel(&order).await;
            }
            // Cancels, and pays all the same.
            3 => {
                self.stage.sleep(think).await;
                self.cancel(&order).await;
                self.stage.sleep(dice.between(0, 60_000)).await;
                self.pay(dice, &order, 0);
            }
            // Pays when the time is up, or long after.
            4 => {
                self.stage.sleep(left + dice.between(-3_000, 3_000)).await;
                self.pay(dice, &order, 0);
            }
            5 => {
                self.stage.sleep(left + dice.between(1_000, 400_000)).await;
                self.pay(dice, &order, 0);
            }
            _ => {
                self.stage.sleep(think.min(left / 2)).await;
                self.pay(dice, &order, 0);
            }
        }
        if dice.chance(100) && !self.is_storm {
            self.stage.sleep(dice.between(10, 20_000)).await;
            let lines = wants(dice, &self.sale);
            let _again = self.reserve(&lines, mix(self.key, 301)).await;
        }
    }

    async fn cancel(&self, order: &Order) {
        for turn in 0..3 {
            let (user, number) = (self.user.clone(), order.number);
            let place = mix(self.key, 400 + turn);
            let done = self
                .stage
                .invoke(self.name("cancel"), place, |ports, now| async move {
                    cancel(&ports, &user, number, now).await
                })
                .await;
            match done {
                Some(Ok(_)) => {
                    return self.stage.world.look().tally.reach("cancelled by its buyer");
                }
                Some(Err(cancel::Refusal::NotFound | cancel::Refusal::Resolved(_))) => return,
                Some(Err(cancel::Refusal::Store(_))) | None => self.stage.sleep(2_000).await,
            }
        }
    }

    async fn stranger_cancels(&self, order: &Order) {
        let (user, number) = (UserId::new("mallory").expect("it is plain text"), order.number);
        let done = self
            .stage
            .invoke("stranger cancels".to_owned(), mix(self.key, 500), |ports, now| async move {
                cancel(&ports, &user, number, now).await
            })
            .await;
        if let Some(Ok(_)) = done {
            self.stage.world.look().broken("stranger", format!("{number} is cancelled by another"));
        }
    }

    /// Money is captured, and the provider will tell of it.
    fn pay(&self, dice: &mut Dice, order: &Order, turn: u64) {
        let place = mix(self.key, 600 + turn);
        let payment = PaymentId::new(format!("pi-{}-{}-{turn}", self.index, self.round))
            .expect("it is ASCII");
        let key = PaymentKey { provider: ProviderId::new("test").expect("it is a slug"), payment };
        let mut world = self.stage.world.look();
        let mut strikes = |fault, label| world.strikes(fault, mix(place, label), dice);
        let is_wrong = strikes(Fault::WrongAmount, 1);
        let (twice, late) = (strikes(Fault::CallTwice, 2), strikes(Fault::CallLate, 3));
        let (never, again) = (strikes(Fault::CallNever, 4), strikes(Fault::PayTwice, 5));
        let amount = if is_wrong { wrong(dice, order.total) } else { order.total };
        let number = if dice.chance(15) {
            OrderNumber::compose(START, 1, 511, Gene::of("7"))
        } else {
            order.number
        };
        let capture = Capture { key, order: number, amount };
        world.note(|| format!("PAYMENT {} of {amount} for {number}", capture.key.payment));
        world.stores.provider.capture(capture.clone());
        world.changes += 1;
        drop(world);
        let act = |wait: i64, place: u64| {
            self.stage.act(call_back(self.stage.clone(), capture.clone(), wait, place));
        };
        let soon = if self.is_storm { 100 } else { 4_000 };
        let hours = if late { dice.between(60_000, 20_000_000) } else { dice.between(50, soon) };
        if never {
            self.stage.act(never_call(self.stage.clone(), capture.clone(), mix(place, 6)));
        } else {
            act(hours, mix(place, 6));
        }
        if twice {
            act(dice.between(50, 8_000), mix(place, 7));
            act(dice.between(50, 8_000_000), mix(place, 8));
        }
        if again && turn == 0 {
            self.pay(dice, order, 1);
        }
    }
}

/// Another amount than the right one, or another currency.
fn wrong(dice: &mut Dice, right: Money) -> Money {
    let dollar = Currency::new("USD").expect("it is a code");
    match dice.below(3) {
        0 => Money { amount_minor: right.amount_minor - 1, ..right },
        1 => Money { amount_minor: right.amount_minor + 100, ..right },
        _ => Money { currency: dollar, ..right },
    }
}

fn kind_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NotLoaded => "not loaded",
        Refusal::SaleClosed => "sale closed",
        Refusal::LimitReached(_) => "limit reached",
        Refusal::SeatTaken(..) => "seat taken",
        Refusal::SoldOut(_) => "sold out",
        Refusal::NoAdjacent(_) => "no adjacent seats",
        Refusal::TokenReused => "token reused",
        Refusal::HoldExpired => "hold expired",
        Refusal::Resolved(_) => "resolved",
        Refusal::AttendeeTaken(_) => "attendee taken",
        Refusal::NumberClash => "number clash",
        Refusal::Contended => "contended",
        Refusal::Store(StoreError::Unavailable(_)) => "unavailable",
        Refusal::Store(StoreError::Unknown(_)) => "outcome unknown",
        Refusal::Store(StoreError::Contract(_)) => "contract broken",
    }
}

/// What somebody wants: one line, or one of each tier.
fn wants(dice: &mut Dice, sale: &Sale) -> Vec<WantedLine> {
    let tiers = sale.tiers();
    let all = tiers.len() > 1 && dice.chance(250);
    let one = dice.below(tiers.len() as u64) as usize;
    let chosen = tiers.iter().enumerate().filter(|(index, _)| all || *index == one);
    let mut people: Vec<u64> = Vec::new();
    chosen.map(|(_, tier)| line(dice, sale, tier, &mut people)).collect()
}

fn line(dice: &mut Dice, sale: &Sale, tier: &Tier, people: &mut Vec<u64>) -> WantedLine {
    let from = dice.below(sale.legs().into()) as u16;
    let to = dice.between(i64::from(from) + 1, sale.legs().into()) as u16;
    let legs = Legs::new(from, to).unwrap_or(Legs::ONE);
    let count = dice.between(1, 3) as u16;
    let places = tier.layout.initial().len() as u32 * 8;
    let seats: Vec<Seat> = (0..places).map(Seat).filter(|seat| tier.layout.sells(*seat)).collect();
    let is_lettered = tier.tier.as_str() == "seated";
    let choice = match dice.below(10) {
        0..4 => {
            let mut chosen: Vec<Seat> = (0..count).map(|_| dice.pick(&seats)).collect();
            chosen.sort_unstable();
            chosen.dedup();
            Choice::Seats(chosen)
        }
        4 if is_lettered => {
            let next = Offset { row: 0, column: 1 };
            Choice::Pattern { column: dice.pick(&[0, 3]), offsets: vec![next] }
        }
        5 | 6 => Choice::Best { count, together: Together::Required },
        _ => Choice::Best { count, together: Together::Preferred },
    };
    let named = sale.file().attendees == AttendeeRule::Required || dice.chance(150);
    let mut attendees = Vec::new();
    while named && attendees.len() < choice.count() {
        let person = dice.below(14);
        if !people.contains(&person) {
            people.push(person);
            attendees.push(AttendeeId::new(format!("p{person}")).expect("it is plain text"));
        }
    }
    let price_minor = tier.price_minor(legs).unwrap_or(0);
    WantedLine { line: Wish { tier: tier.tier.clone(), legs, choice }, price_minor, attendees }
}
