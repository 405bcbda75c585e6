//! Who comes to a sale with a room: joins, waits, is let in and orders; or leaves, oversleeps and joins again,
//! claims places too early or other people's, and asks by two devices at once.

use engine::domain::admission::room::join::{Membership, bucket_of};
use engine::domain::admission::room::view::{Turn, View};
use engine::domain::basics::bytes::Nonce;
use engine::domain::basics::ids::{GroupId, UserId};
use engine::flows::admit::{self, admit, check_open};
use engine::flows::room::enter::{self, Claimed, Entrance};
use engine::flows::room::join::{self, JoinRequest, Joined, Standing, join, open_sale};
use engine::flows::room::published;
use engine::ports::{Catalogue as _, Freshness, StoreError};

use super::BUCKETS;
use super::actors::ask;
use crate::buyer::{Buyer, STORM_ROUNDS};
use crate::environment::Pool;
use crate::executor::Executor;
use crate::oracle::debug_head;
use crate::plan::{FAULTS_FROM_MS, sale_id};
use crate::random::{SeededRng, mix};

/// The number of requests for a place until somebody gives up.
const JOINS: u64 = 60;
/// The number of times that somebody looks at the room.
const LOOKS: u64 = 500;
/// The number of visits that somebody tries to make.
const VISITS: u64 = 5;

/// Why somebody was not let in.
#[derive(Debug)]
enum NotLetIn {
    Gate(admit::Refusal),
    Room(enter::Refusal),
}

impl From<admit::Refusal> for NotLetIn {
    fn from(refusal: admit::Refusal) -> Self {
        Self::Gate(refusal)
    }
}

impl From<enter::Refusal> for NotLetIn {
    fn from(refusal: enter::Refusal) -> Self {
        Self::Room(refusal)
    }
}

impl From<StoreError> for NotLetIn {
    fn from(error: StoreError) -> Self {
        Self::Room(error.into())
    }
}

/// What somebody asks the gate for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Come {
    /// The beginning of the visit.
    Looks,
    /// An admission.
    Enters,
}

impl Come {
    const fn verb(self) -> &'static str {
        match self {
            Self::Looks => "looks at the seats",
            Self::Enters => "enters",
        }
    }
}

/// What the gate answered.
#[derive(Debug)]
enum Came {
    /// The visit has begun.
    Looks,
    /// The buyer is let in.
    In(Entrance),
}

/// What somebody does next.
enum Next {
    Waits,
    JoinsAgain,
    Leaves,
    Orders(Entrance),
}

#[derive(Clone)]
struct Visitor {
    executor: Executor,
    index: u64,
    key: u64,
    user: UserId,
    group: GroupId,
}

/// Somebody comes to the room, and buys when let in.
pub(crate) async fn visitor(executor: Executor, index: u64) {
    let (seed, plan) = {
        let plan = &executor.environment.lock().plan;
        (plan.seed, plan.room.clone())
    };
    let Some(room) = plan else { return };
    let key = mix(seed, 0x1000 + index);
    let mut rng = SeededRng::new(key);
    // One in five comes with two devices.
    let person = if rng.chance(200) { index / 2 } else { index };
    let user = UserId::new((7 + 1024 * person).to_string()).expect("it is plain text");
    // Many come in the seconds around the closing.
    let arrives = match rng.below(10) {
        0..3 => rng.between(FAULTS_FROM_MS, room.closes_ms),
        3..8 => room.closes_ms + rng.between(-1_500, 1_500),
        _ => rng.between(FAULTS_FROM_MS, room.arrivals_ms()),
    };
    let group = room.groups[rng.below(room.groups.len() as u64) as usize].clone();
    executor.sleep(arrives).await;
    let visitor = Visitor { executor, index, key, user, group };
    for visit in 0..VISITS {
        let Some(member) = visitor.join(&mut rng, visit).await else { return };
        match visitor.wait(&mut rng, visit, &member).await {
            Next::Orders(entrance) => {
                visitor.buy(&mut rng, visit, entrance).await;
                // Some come again while their visit lasts, or after.
                if !rng.chance(200) {
                    return;
                }
            }
            Next::JoinsAgain => {}
            Next::Waits | Next::Leaves => return,
        }
    }
}

impl Visitor {
    fn name(&self, what: &str) -> String {
        format!("buyer {} {what}", self.index)
    }

    fn reach(&self, what: &str) {
        self.executor.environment.lock().tally.reach(what);
    }

    /// Joins until it is certain that the draw knows of it.
    async fn join(&self, rng: &mut SeededRng, visit: u64) -> Option<Membership> {
        for turn in 0..JOINS {
            let place = mix(self.key, 1_000 + JOINS * visit + turn);
            if rng.chance(100) {
                let (twin, place) = (self.clone(), mix(place, 1));
                self.executor.act(async move {
                    let _unheard = twin.join_once(place).await;
                });
            }
            match self.join_once(place).await {
                Some(Ok(Joined { membership, standing: Standing::Certain })) => {
                    return Some(membership);
                }
                Some(Ok(Joined { standing: Standing::Undecided, .. })) => {
                    self.reach("room: undecided");
                }
                Some(Err(refusal)) => {
                    self.reach(&format!("room: join {}", debug_head(&refusal)));
                    match refusal {
                        join::Refusal::Store(StoreError::Contract(what)) => {
                            self.executor.environment.lock().broken("contract", what);
                        }
                        join::Refusal::NotOpen(_) | join::Refusal::Store(_) => {}
                        join::Refusal::NoRoom
                        | join::Refusal::UnknownGroup
                        | join::Refusal::RegistrationOver
                        | join::Refusal::SaleClosed
                        | join::Refusal::SaleArchived
                        | join::Refusal::CodeMissing
                        | join::Refusal::CodeRefused
                        | join::Refusal::GroupDiffers(_)
                        | join::Refusal::Full => return None,
                    }
                }
                None => {}
            }
            self.executor.sleep(rng.between(1_000, 6_000)).await;
        }
        None
    }

    /// One request for a place.
    async fn join_once(&self, place: u64) -> Option<Result<Joined, join::Refusal>> {
        let mut nonce = [0; 16];
        nonce.iter_mut().zip(place.to_be_bytes()).for_each(|(to, from)| *to = from);
        let request = JoinRequest {
            sale: sale_id(),
            group: self.group.clone(),
            buyer: self.user.clone(),
            nonce: Nonce(nonce),
            more_time: place.is_multiple_of(5),
            code: None,
        };
        let joined = self
            .executor
            .invoke_in(Pool::Room, self.name("join"), place, |ports, now| async move {
                let missing = || StoreError::Unavailable("the sale is not published".to_owned());
                let sale = ports.sale(&sale_id(), Freshness::Cached).await?.ok_or_else(missing)?;
                open_sale(&sale, now)?;
                let kept = ports.0.kept();
                join(&ports, &kept.indices, &request, now).await
            })
            .await;
        if let Some(Ok(Joined { membership, standing: Standing::Certain })) = &joined {
            self.executor.environment.lock().tell(membership);
        }
        joined
    }

    /// Looks at the room until the place is due, and is let in.
    async fn wait(&self, rng: &mut SeededRng, visit: u64, member: &Membership) -> Next {
        let index = member.index.number;
        // Some never come, some too late.
        let leaves = rng.chance(80);
        let mut oversleeps = rng.chance(150);
        for turn in 0..LOOKS {
            let place = mix(self.key, 10_000 + LOOKS * visit + turn);
            self.pause(rng, turn).await;
            if self.is_over() {
                return Next::Leaves;
            }
            let shown = ask(&self.executor, self.name("looks"), place).await;
            let drawn = self.executor.environment.lock().oracle.room.place(&member.group, index);
            let Some(drawn) = drawn else {
                if rng.chance(60) {
                    let _refused = self.enter_once(member, 0, mix(place, 2)).await;
                }
                continue;
            };
            let stands = shown.and_then(|turned| self.stands(&turned.shown.view, drawn));
            match stands {
                Some(Turn::NotDue { .. }) | None => {
                    // Some claim a place that is not due, some another one.
                    if rng.chance(100) {
                        let claims = if rng.chance(500) { drawn } else { rng.below(8) as u32 };
                        let _refused = self.enter_once(member, claims, mix(place, 3)).await;
                    }
                    continue;
                }
                Some(Turn::Due) if leaves => {
                    self.reach("room: never came");
                    return Next::Leaves;
                }
                Some(Turn::Due) if oversleeps => {
                    oversleeps = false;
                    self.executor.sleep(rng.between(60_000, 400_000)).await;
                    continue;
                }
                Some(Turn::Due | Turn::RunOut) => {}
            }
            if rng.chance(200) {
                let (twin, member, place) = (self.clone(), member.clone(), mix(place, 4));
                self.executor.act(async move {
                    let _unheard = twin.enter_once(&member, drawn, place).await;
                });
            }
            if rng.chance(400) && !self.look(rng, member, drawn, place).await {
                return Next::Leaves;
            }
            match self.enter_once(member, drawn, mix(place, 5)).await {
                Next::Waits => {}
                next => return next,
            }
        }
        Next::Leaves
    }

    /// Begins the visit and chooses seats: for a moment, or for longer than a place waits for its buyer, perhaps by a
    /// second device too. False if nothing is liked.
    async fn look(&self, rng: &mut SeededRng, member: &Membership, drawn: u32, draws: u64) -> bool {
        if rng.chance(200) {
            let (twin, member) = (self.clone(), member.clone());
            self.executor.act(async move {
                let _unheard = twin.come(&member, drawn, mix(draws, 6), Come::Looks).await;
            });
        }
        let began = self.come(member, drawn, mix(draws, 7), Come::Looks).await;
        if matches!(began, Some(Ok(Came::Looks))) {
            self.executor.environment.lock().answer_looks(&member.group, member.index.number);
        }
        let ms =
            if rng.chance(500) { rng.between(0, 30_000) } else { rng.between(100_000, 300_000) };
        self.executor.sleep(ms).await;
        if rng.chance(250) {
            self.reach("room: looked and left");
            return false;
        }
        true
    }

    /// Waits between two looks: seldom once nothing goes wrong any more, so that a run ends.
    async fn pause(&self, rng: &mut SeededRng, turn: u64) {
        let is_calm = {
            let environment = self.executor.environment.lock();
            environment.now >= environment.plan.calm_from
        };
        let ms = match turn {
            _ if is_calm => rng.between(30_000, 60_000),
            0..20 => rng.between(1_000, 6_000),
            _ => rng.between(5_000, 30_000),
        };
        self.executor.sleep(ms).await;
    }

    /// True if waiting is of no use.
    fn is_over(&self) -> bool {
        let environment = self.executor.environment.lock();
        let is_calm = environment.now >= environment.plan.calm_from;
        environment.over().is_some() || is_calm && environment.room_waits().is_none()
    }

    fn stands(&self, view: &View, place: u32) -> Option<Turn> {
        let environment = self.executor.environment.lock();
        let groups = &environment.plan.room.as_ref()?.groups;
        let at = groups.iter().position(|known| *known == self.group)?;
        Some(view.groups.get(at)?.turn(place))
    }

    /// One request to begin the visit, or to be let in, as the function of the gate answers it.
    async fn come(
        &self,
        member: &Membership,
        place: u32,
        draws: u64,
        how: Come,
    ) -> Option<Result<Came, NotLetIn>> {
        let index = member.index.number;
        let (of, user) = (member.group.clone(), self.user.clone());
        self.executor
            .invoke_in(Pool::Room, self.name(how.verb()), draws, |ports, now| async move {
                let missing = || StoreError::Unavailable("the sale is not published".to_owned());
                let sale = ports.sale(&sale_id(), Freshness::Cached).await?.ok_or_else(missing)?;
                check_open(&sale, now)?;
                let room = published(&ports, &sale_id()).await?.ok_or_else(missing)?;
                let kept = ports.0.kept();
                let view = enter::view(&ports, &kept.memory, &room, now).await?;
                let claimed = Claimed { group: &of, place };
                enter::check_claim(&room, &view, claimed)?;
                enter::check_place(&ports, &kept.memory, &room, &view, claimed, index).await?;
                match how {
                    Come::Looks => {
                        enter::begin(&ports, &room, &view, claimed, &user, index, now).await?;
                        Ok(Came::Looks)
                    }
                    Come::Enters => {
                        admit(&ports, &sale, &user, 2, now).await?;
                        let came =
                            enter::enter(&ports, &room, &view, claimed, &user, index, now).await?;
                        Ok(Came::In(came))
                    }
                }
            })
            .await
    }

    /// One request to be let in.
    async fn enter_once(&self, member: &Membership, place: u32, draws: u64) -> Next {
        let (group, index) = (member.group.clone(), member.index.number);
        let has_looked = self.executor.environment.lock().has_looked(&group, index);
        let entered = self.come(member, place, draws, Come::Enters).await;
        match entered {
            None | Some(Ok(Came::Looks)) => Next::Waits,
            Some(Ok(Came::In(entrance))) => {
                self.executor.environment.lock().answer_let_in(&group, index);
                Next::Orders(entrance)
            }
            Some(Err(NotLetIn::Room(enter::Refusal::RunOut))) if has_looked => {
                let what = format!("index {index} looked, and its place ran out");
                self.executor.environment.lock().broken("R13", what);
                Next::Leaves
            }
            Some(Err(NotLetIn::Gate(refusal))) => {
                self.reach(&format!("room: gate {}", debug_head(&refusal)));
                match refusal {
                    admit::Refusal::SaleArchived => Next::Leaves,
                    admit::Refusal::NotOpen(_)
                    | admit::Refusal::SaleClosed
                    | admit::Refusal::SoldOut
                    | admit::Refusal::Waiting { .. }
                    | admit::Refusal::TooFast { .. }
                    | admit::Refusal::Store(_) => Next::Waits,
                }
            }
            Some(Err(NotLetIn::Room(refusal))) => {
                self.reach(&format!("room: gate {}", debug_head(&refusal)));
                match refusal {
                    enter::Refusal::Store(StoreError::Contract(what)) => {
                        self.executor.environment.lock().broken("contract", what);
                        Next::Leaves
                    }
                    enter::Refusal::RunOut
                    | enter::Refusal::Over
                    | enter::Refusal::NotMember
                    | enter::Refusal::TooManyAttempts => self.after_the_visit(),
                    enter::Refusal::Closed => Next::Leaves,
                    enter::Refusal::Missing
                    | enter::Refusal::Paused
                    | enter::Refusal::SoldOut
                    | enter::Refusal::UnknownGroup
                    | enter::Refusal::NotDue { .. }
                    | enter::Refusal::OtherPlace
                    | enter::Refusal::Store(_) => Next::Waits,
                }
            }
        }
    }

    /// Whoever may joins again.
    fn after_the_visit(&self) -> Next {
        let environment = self.executor.environment.lock();
        let bucket = bucket_of(&self.user, BUCKETS);
        let member = environment.stores.rooms.membership(&sale_id(), bucket, &self.user);
        let most = engine::domain::admission::room::join::MAX_REJOINS;
        if member.is_some_and(|member| member.rejoined < most) {
            Next::JoinsAgain
        } else {
            Next::Leaves
        }
    }

    async fn buy(&self, rng: &mut SeededRng, visit: u64, entrance: Entrance) {
        let (sale, seed) = {
            let plan = &self.executor.environment.lock().plan;
            (plan.sale.clone(), plan.seed)
        };
        let counter = (self.index * STORM_ROUNDS + visit) as u16;
        let (index, round, key) = (self.index, visit, mix(self.key, 0xb0 + visit));
        let (executor, user) = (self.executor.clone(), self.user.clone());
        let buyer =
            Buyer::let_in(executor, (index, round, key), user, (seed, counter), sale, entrance);
        if let Some(order) = buyer.order(rng).await {
            buyer.decide(rng, order).await;
        }
    }
}
