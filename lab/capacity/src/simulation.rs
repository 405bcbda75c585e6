//! The simulation itself: a visitor's way through the deployed engine, event by event.

use bench::cost::Action;
use engine::domain::admission::room::counts::{Coming, Entry};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::place::EXTENSION_SECONDS;
use engine::domain::payment::grace::ASKED_FOR_SECONDS;
use engine::flows::room::slot::TARGET_MS;
use fake_limits::stripe::callback_gap;
use hdrhistogram::Histogram;
use loadtest::profile::MAX_RETURNS;
use loadtest::session::{self, OTHER_SEATS, REPEATS};
use serde::{Deserialize, Serialize};
use shared::runtime::functions::Function;

use crate::clock::{Clock, Micros, SECOND, micros, seconds};
use crate::costs::Costs;
use crate::deployment::Deployment;
use crate::gate::{Answer, Gate};
use crate::meters::{Limit, Met, Meters, SlotWork, TURNS_AHEAD};
use crate::plan::Plan;
use crate::polls;
use crate::room::Waiting;
use crate::stock::{Stock, Taken};
use crate::visitors::{Clump, SeededRng, Wish, arrivals, draw_lead, opens_at, weight};

/// Chance that somebody comes back whom the gate told to: that of the load test.
const COMES_BACK: f64 = 0.25;
/// A reservation that takes longer counts as bad for the room.
const TARGET: Micros = TARGET_MS * 1_000;
/// A capture whose callback failed is found by the next reading of the provider's list, a minute apart.
const CAPTURES_READ: Micros = 75 * SECOND;
/// An expiry message is handed out a little after the end of the grace.
const EXPIRY_LAG: Micros = 2 * SECOND;
/// Time after which a buyer asks again whom the gate holds back for the provider, in milliseconds.
const HELD_BACK_MS: u64 = 5_000;
/// Time after which a payment that could not be closed is tried again: the message's delay, and the second of a receive.
const CLOSE_AGAIN: Micros = 6 * SECOND;
/// A request for a refund, and the message about it, come again after this where there is no turn for it.
const GIVE_BACK_AGAIN: Micros = CLOSE_AGAIN;
/// More rooms than this make a turn every five seconds here, which is the longest that a turn counts.
const ROOMS_A_SECOND: u32 = 50;

/// What somebody wants who is not let in yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Page,
    SignIn,
    Join,
    Admission,
}

/// People who want the same at the same moment.
#[derive(Debug, Clone, Copy)]
struct Group {
    step: Step,
    people: u64,
    /// Repetitions of this step.
    attempt: u32,
    /// Times that they came back to the gate.
    returns: u8,
}

/// What a buyer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Enter,
    Reserve,
    Pay,
    Callback,
    Look,
    Cancel,
    Leave,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// The next clump of the crowd comes.
    Arrive(usize),
    Group(Group),
    Buyer(u32, Next),
    End(Function, u64),
    Joined(u64),
    /// The provider is asked to close the payment of an order that expires.
    Close(u32),
    Expire(u32),
    Expired(u32),
    Paid(u32),
    GiveBack(Returned),
    Refund(u32),
    Draw,
    Second,
}

/// Paid orders that are given back.
#[derive(Debug, Clone, Copy)]
struct Returned {
    sale: u32,
    orders: u32,
    taken: Taken,
}

/// Somebody who was let in, or whose place is due.
#[derive(Debug, Clone, Copy)]
struct Buyer {
    sale: u32,
    people: u32,
    taken: Taken,
    wish: Wish,
    attempt: u32,
    choices: u32,
    callbacks: u8,
    /// Starts of the payment that were refused.
    starts: u8,
    /// Whether a start was asked for, without places: the order is not freed before that payment is closed.
    has_attempt: bool,
    /// Whether the buyer has a place, in which the payment starts.
    has_place: bool,
    /// When the order ends that is extended by a place.
    extended_to: Option<Micros>,
    /// Whether the buyer will turn to another method.
    changes: bool,
    is_late: bool,
    /// When the step began that goes on.
    since: Micros,
    /// When the buyer was let in, or the place was due.
    came: Micros,
    ordered: Micros,
    due_mark: u64,
    entry: Option<Entry>,
}

struct Shop {
    stock: Stock,
    gate: Gate,
    room: Option<Waiting>,
}

/// Times of people, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub count: u64,
    /// Half of them at most.
    pub p50_ms: f64,
    /// Nine in ten at most.
    pub p90_ms: f64,
    /// Ninety-nine of a hundred at most.
    pub p99_ms: f64,
    pub max_ms: f64,
}

impl Percentiles {
    fn from_histogram(times: &Histogram<u64>) -> Self {
        let at = |share: f64| times.value_at_quantile(share) as f64 / 1_000.0;
        Self {
            count: times.len(),
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            max_ms: times.max() as f64 / 1_000.0,
        }
    }
}

/// What was so in one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The second, from the opening; those before it are negative.
    pub second: f64,
    /// Requests a second at the edge.
    pub edge: f64,
    /// Requests a second at the API.
    pub api: f64,
    /// People who wait in rooms.
    pub waiting: u64,
    /// Tickets that were paid, without those that were given back.
    pub sold: u64,
}

/// What became of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Places of all the sales.
    pub places: u64,
    /// Tickets that were paid, without those that were given back.
    pub sold: u64,
    /// From the opening until everything was paid, in seconds; none if it was not within the time.
    pub sold_out: Option<f64>,
    /// From the opening until half, and until nine tenths, of the places were paid, in seconds.
    pub half: Option<f64>,
    /// See `half`.
    pub nine_tenths: Option<f64>,
    /// From the opening until ninety-nine of a hundred were paid, in seconds.
    pub nearly_all: Option<f64>,
    pub came: u64,
    /// People who gave up because a limit refused them again and again.
    pub turned_away: u64,
    /// People who were let in.
    pub let_in: u64,
    /// People who looked at the seats in their turn, and never asked for an admission.
    #[serde(default)]
    pub only_looked: u64,
    /// Orders that were made, paid, cancelled and given up.
    pub orders: u64,
    /// See `orders`.
    pub paid: u64,
    /// See `orders`.
    pub cancelled: u64,
    /// See `orders`.
    pub expired: u64,
    /// Paid orders that were given back while it was sold, and those of them whose money is back.
    pub given_back: u64,
    /// See `given_back`.
    pub refunded: u64,
    /// Requests at the edge.
    pub edge_requests: f64,
    /// Requests that the API answered.
    pub api_requests: f64,
    /// The most of them in a second, at the edge and of the API.
    pub peak_edge: f64,
    /// See `peak_edge`.
    pub peak_api: f64,
    /// The wait in the room, from the opening until the turn.
    pub wait: Percentiles,
    /// From being let in, or from the turn, until there is an order.
    pub to_order: Percentiles,
    /// A reservation with its repetitions, until it is answered.
    pub reservation: Percentiles,
    /// From the order until it is paid.
    pub to_paid: Percentiles,
    /// What met each limit.
    pub limits: Vec<(Limit, Met)>,
    /// Pieces of each kind of work, in the order of their kinds.
    pub work: Vec<f64>,
    /// The course of it.
    pub series: Vec<Sample>,
    pub events: u64,
    /// People for whom a buyer stands.
    pub weight: u32,
}

struct Simulation<'a> {
    plan: &'a Plan,
    costs: &'a Costs,
    deployment: &'a Deployment,
    meters: Meters,
    clock: Clock<Event>,
    rng: SeededRng,
    shops: Vec<Shop>,
    buyers: Vec<Buyer>,
    free_buyers: Vec<u32>,
    clumps: Vec<Clump>,
    weight: u32,
    has_room: bool,
    opens_at: Micros,
    /// People who are on their way to be let in.
    on_the_way: u64,
    /// Buyers who have something to do, and orders that are not decided.
    busy: u64,
    late: u32,
    /// Orders that nobody pays any more, whose buyers have gone.
    given_up: u64,
    /// Orders that are to be given back: asked for, and refunded, at some time.
    to_give_back: [u64; 2],
    next_shop: u32,
    expiries_free_at: Micros,
    until: Micros,
    edge_second: f64,
    api_second: f64,
    times: Times,
    run: Run,
}

struct Times {
    wait: Histogram<u64>,
    to_order: Histogram<u64>,
    reservation: Histogram<u64>,
    to_paid: Histogram<u64>,
}

impl Times {
    fn new() -> Self {
        let times = || {
            Histogram::new(3).unwrap_or_else(|error| unreachable!("three digits are some: {error}"))
        };
        Self { wait: times(), to_order: times(), reservation: times(), to_paid: times() }
    }
}

/// Why a request was not carried out: for want of capacity; the same later.
struct Refused;

/// Simulates a plan on a deployment; without limits every request is let through, and counted.
#[must_use]
pub fn simulate(plan: &Plan, deployment: &Deployment, costs: &Costs, unlimited: bool) -> Run {
    let mut simulation = Simulation::new(plan, deployment, costs, unlimited);
    while let Some(event) = simulation.clock.next() {
        if simulation.clock.now() > simulation.until || !simulation.happen(event) {
            break;
        }
    }
    simulation.over()
}

impl<'a> Simulation<'a> {
    fn new(plan: &'a Plan, deployment: &'a Deployment, costs: &'a Costs, unlimited: bool) -> Self {
        let shop = || Shop {
            stock: Stock::new(&plan.sale),
            gate: Gate::new(&plan.sale),
            room: Waiting::new(&plan.sale),
        };
        let opens_at = opens_at(plan);
        let mut simulation = Self {
            plan,
            costs,
            deployment,
            meters: Meters::new(deployment, plan.sales, unlimited),
            clock: Clock::new(),
            rng: SeededRng::new(plan.seed),
            shops: (0..plan.sales.max(1)).map(|_| shop()).collect(),
            buyers: Vec::new(),
            free_buyers: Vec::new(),
            clumps: arrivals(plan),
            weight: weight(plan),
            has_room: plan.sale.room().is_some(),
            opens_at,
            on_the_way: 0,
            busy: 0,
            late: 0,
            given_up: 0,
            to_give_back: [0; 2],
            next_shop: 0,
            expiries_free_at: 0,
            until: opens_at + micros(plan.hours * 3_600.0),
            edge_second: 0.0,
            api_second: 0.0,
            times: Times::new(),
            run: Run::empty(plan.places(), weight(plan)),
        };
        if let Some(first) = simulation.clumps.first() {
            simulation.clock.at(first.at, Event::Arrive(0));
        }
        if let Some(lead) = draw_lead(plan) {
            simulation.clock.at(opens_at - lead, Event::Draw);
        }
        simulation.clock.at(SECOND, Event::Second);
        simulation
    }

    /// One event; false when it is over.
    fn happen(&mut self, event: Event) -> bool {
        match event {
            Event::Arrive(index) => self.arrive(index),
            Event::Group(group) => self.group(group),
            Event::Buyer(index, next) => self.buyer(index, next),
            Event::End(function, count) => self.meters.end(function, count),
            Event::Joined(people) => {
                self.on_the_way -= people;
                let each = people as f64 / self.shops.len() as f64;
                for room in self.shops.iter_mut().filter_map(|shop| shop.room.as_mut()) {
                    room.join(each);
                }
            }
            Event::Close(index) => self.close(index),
            Event::Expire(index) => self.expire(index),
            Event::Expired(index) => self.expired(index),
            Event::Paid(index) => self.paid(index),
            Event::GiveBack(returned) => self.give_back(returned),
            Event::Refund(orders) => self.refund(orders),
            Event::Draw => {
                let now_ms = self.engine_ms();
                for room in self.shops.iter_mut().filter_map(|shop| shop.room.as_mut()) {
                    room.draw(now_ms);
                }
            }
            Event::Second => return self.second(),
        }
        true
    }

    /// The time as the engine has it, where the sale opens at the opening of its file.
    fn engine_ms(&self) -> i64 {
        let since = self.clock.now() as i64 - self.opens_at as i64;
        self.plan.sale.file().opens_at.ms() + since / 1_000
    }

    fn arrive(&mut self, index: usize) {
        let clump = self.clumps[index];
        if let Some(next) = self.clumps.get(index + 1) {
            self.clock.at(next.at, Event::Arrive(index + 1));
        }
        self.run.came += clump.people;
        self.on_the_way += clump.people;
        self.group(Group { step: Step::Page, people: clump.people, attempt: 0, returns: 0 });
    }

    /// A group does its step; those whom a limit refuses try again.
    fn group(&mut self, group: Group) {
        let passed = match group.step {
            Step::Page => self.load_pages(group.people),
            Step::SignIn => self.meters.pass(Limit::SignIns, group.people, self.clock.now()),
            Step::Join => self.join(group.people),
            Step::Admission => self.ask_gate(group),
        };
        self.again(Group { people: group.people - passed, ..group });
        if passed == 0 {
            return;
        }
        let on = |step| Group { step, people: passed, attempt: 0, ..group };
        let inwards = if self.has_room { Step::Join } else { Step::Admission };
        match group.step {
            Step::Page => {
                let signing_in = self.rng.of(passed, self.plan.crowd.signing_in);
                self.group(Group { people: passed - signing_in, ..on(inwards) });
                self.group(Group { people: signing_in, ..on(Step::SignIn) });
            }
            Step::SignIn => self.group(on(inwards)),
            Step::Join | Step::Admission => {}
        }
    }

    /// People try the same again after a while, ever later; at last they give up.
    fn again(&mut self, group: Group) {
        if group.people == 0 {
            return;
        }
        if group.attempt >= REPEATS {
            self.run.turned_away += group.people;
            self.on_the_way -= group.people;
            return;
        }
        let wait = backoff(group.attempt);
        self.clock.after(wait, Event::Group(Group { attempt: group.attempt + 1, ..group }));
    }

    /// Requests at the edge; how many were let through.
    fn edge(&mut self, requests: f64) -> u64 {
        let whole = requests as u64 + u64::from(self.rng.chance(requests.fract()));
        let passed = self.meters.pass(Limit::Edge, whole, self.clock.now());
        self.run.edge_requests += whole as f64;
        self.edge_second += whole as f64;
        passed
    }

    fn load_pages(&mut self, people: u64) -> u64 {
        let looks = if self.has_room { 0.0 } else { self.plan.crowd.looks };
        let each = self.plan.crowd.edge_requests + looks;
        if each <= 0.0 {
            return people;
        }
        let asked = people as f64 * each;
        let passed = self.edge(asked);
        if passed as f64 >= asked.floor() { people } else { (passed as f64 / each) as u64 }
    }

    /// A request of people at once to a function of the API: how many are carried out, and until when.
    fn api(
        &mut self,
        share: Limit,
        function: Function,
        action: Action,
        people: u64,
    ) -> (u64, Micros) {
        let passed = self.meters.route(share, people, self.clock.now());
        if passed == 0 {
            return (0, 0);
        }
        let (begun, new) = self.begin(function, passed);
        self.carry_out(function, action, begun, (begun, new))
    }

    /// A request of somebody who stands for several people: until when it is carried out for all of them.
    fn ask_whole(
        &mut self,
        sale: u32,
        people: u64,
        share: Limit,
        function: Function,
        action: Action,
    ) -> Result<Micros, Refused> {
        let now = self.clock.now();
        if !self.meters.route_whole(share, people, now) {
            return Err(Refused);
        }
        // Where fewer can begin at once, those that do take the others' turns after their own.
        let begun = self.begin(function, people);
        let (done, took) = self.carry_out(function, action, people, begun);
        if done == 0 {
            return Err(Refused);
        }
        let (micros, bytes) = (self.costs.of(action).slot_micros, 1_024);
        let slot = SlotWork { sale, count: people, micros, bytes };
        Ok(took + self.meters.slot(slot, now).ok_or(Refused)?)
    }

    /// Requests that were let through to a function: how many begin, and how many of them in an environment that is new.
    fn begin(&mut self, function: Function, passed: u64) -> (u64, u64) {
        self.run.api_requests += passed as f64;
        self.api_second += passed as f64;
        self.meters.invoke(function, passed, self.clock.now())
    }

    /// So many requests, in as many invocations as begun and after each other in each: how many are carried out, and
    /// until when.
    fn carry_out(
        &mut self,
        function: Function,
        action: Action,
        requests: u64,
        (begun, new): (u64, u64),
    ) -> (u64, Micros) {
        let now = self.clock.now();
        if begun == 0 {
            return (0, 0);
        }
        let cost = *self.costs.of(action);
        let cold = if new > 0 { micros(self.deployment.cold_ms / 1_000.0) } else { 0 };
        let mut took = cost.function_micros * requests / begun + cold;
        self.run.work[action as usize] += requests as f64;
        let usage = cost.usage;
        let writes = self.meters.units(Limit::Writes, usage.write_units * requests as f64, now);
        let reads = self.meters.units(Limit::Reading, usage.read_units * requests as f64, now);
        let done = if writes && reads { requests } else { 0 };
        if done == 0 {
            // The function tries for a while before it says so.
            took += SECOND;
        }
        self.clock.after(took, Event::End(function, begun));
        (done, took + micros(self.deployment.network_ms / 1_000.0))
    }

    fn join(&mut self, people: u64) -> u64 {
        let (joined, took) = self.api(Limit::Places, Function::WaitingRoom, Action::Join, people);
        if joined > 0 {
            self.clock.after(took, Event::Joined(joined));
        }
        joined
    }

    /// People ask the gate of a sale without a room. Whoever is told to come back does, or not.
    fn ask_gate(&mut self, group: Group) -> u64 {
        let (asked, took) =
            self.api(Limit::Admissions, Function::TokenGate, Action::Admission, group.people);
        let mut left = asked;
        while left > 0 {
            let people = u32::try_from(left.min(self.weight.into())).unwrap_or(1);
            left -= u64::from(people);
            let sale = self.next_shop;
            self.next_shop = (self.next_shop + 1) % self.shops.len() as u32;
            let choice = self.rng.choice(&self.plan.sale);
            let now = Timestamp::from_ms(self.engine_ms());
            let shop = &mut self.shops[sale as usize];
            let (free, (held, _)) = (shop.stock.free(), shop.stock.held_and_sold());
            let answer = if self.meters.is_held_back(self.clock.now()) {
                Answer::Later(HELD_BACK_MS)
            } else {
                shop.gate.ask(&self.plan.sale, people, choice.tickets, now, free, held)
            };
            match answer {
                Answer::Admitted => {
                    self.on_the_way -= u64::from(people);
                    let index = self.let_in(sale, people, choice);
                    self.choose(index, took);
                }
                Answer::Later(wait_ms) => {
                    self.come_back(group, people.into(), took + wait_ms * 1_000)
                }
                Answer::SoldOut => {
                    self.not_admitted(people.into());
                    self.on_the_way -= u64::from(people);
                }
            }
        }
        asked
    }

    /// What was asked for as an admission was refused.
    fn not_admitted(&mut self, people: u64) {
        self.run.work[Action::Admission as usize] -= people as f64;
        self.run.work[Action::NotAdmitted as usize] += people as f64;
    }

    fn come_back(&mut self, group: Group, people: u64, wait: Micros) {
        self.not_admitted(people);
        let back = if group.returns < MAX_RETURNS { self.rng.of(people, COMES_BACK) } else { 0 };
        self.on_the_way -= people - back;
        if back > 0 {
            let jitter = self.rng.between((0.0, 0.5));
            let again = Group { people: back, attempt: 0, returns: group.returns + 1, ..group };
            self.clock.after(wait + jitter, Event::Group(again));
        }
    }

    /// Somebody is let in.
    fn let_in(&mut self, sale: u32, people: u32, choice: Taken) -> u32 {
        self.run.let_in += u64::from(people);
        self.add_buyer(sale, people, choice)
    }

    fn add_buyer(&mut self, sale: u32, people: u32, choice: Taken) -> u32 {
        let wish = self.rng.wish(self.plan);
        let now = self.clock.now();
        let tickets = choice.tickets * people;
        let changes = self.plan.crowd.changes > 0.0 && self.rng.chance(self.plan.crowd.changes);
        let buyer = Buyer {
            sale,
            people,
            taken: Taken { tickets, ..choice },
            wish,
            attempt: 0,
            choices: 0,
            callbacks: 0,
            starts: 0,
            has_attempt: false,
            has_place: false,
            extended_to: None,
            changes,
            is_late: false,
            since: now,
            came: now,
            ordered: now,
            due_mark: 0,
            entry: None,
        };
        self.busy += 1;
        if let Some(index) = self.free_buyers.pop() {
            self.buyers[index as usize] = buyer;
            index
        } else {
            self.buyers.push(buyer);
            self.buyers.len() as u32 - 1
        }
    }

    /// A buyer has nothing more to do.
    fn leave(&mut self, index: u32) {
        if self.buyers[index as usize].is_late {
            self.late -= 1;
        }
        self.busy -= 1;
        self.free_buyers.push(index);
    }

    /// A buyer leaves without an order, because a limit refused it again and again.
    fn turn_away(&mut self, index: u32) {
        self.run.turned_away += u64::from(self.buyers[index as usize].people);
        self.leave(index);
    }

    fn next(&mut self, index: u32, wait: Micros, next: Next) {
        let since = self.clock.now() + wait;
        let buyer = &mut self.buyers[index as usize];
        (buyer.attempt, buyer.since) = (0, since);
        self.clock.after(wait, Event::Buyer(index, next));
    }

    fn choose(&mut self, index: u32, wait: Micros) {
        let thinks = self.rng.between(self.plan.crowd.choosing);
        if self.has_room {
            let people = f64::from(self.buyers[index as usize].people);
            self.edge(people);
        }
        self.next(index, wait + thinks, Next::Reserve);
    }

    /// A request of a buyer; the time that it takes.
    fn ask(
        &mut self,
        index: u32,
        share: Limit,
        function: Function,
        action: Action,
    ) -> Result<Micros, Refused> {
        let Buyer { sale, people, .. } = self.buyers[index as usize];
        self.ask_whole(sale, people.into(), share, function, action)
    }

    /// A buyer tries the same again; true unless it was too often.
    fn retry(&mut self, index: u32, next: Next) -> bool {
        let buyer = &mut self.buyers[index as usize];
        if buyer.attempt >= REPEATS {
            return false;
        }
        buyer.attempt += 1;
        let wait = backoff(buyer.attempt - 1);
        self.clock.after(wait, Event::Buyer(index, next));
        true
    }

    fn buyer(&mut self, index: u32, next: Next) {
        match next {
            Next::Enter => self.enter(index),
            Next::Reserve => self.reserve(index),
            Next::Pay => self.pay(index),
            Next::Callback => self.callback(index),
            Next::Look => {
                if self.ask(index, Limit::Others, Function::Orders, Action::Order).is_err()
                    && self.retry(index, Next::Look)
                {
                    return;
                }
                self.leave(index);
            }
            Next::Cancel => self.cancel(index),
            Next::Leave => self.leave(index),
        }
    }

    /// Somebody whose place is due asks the gate, or begins the visit and only looks: the same work.
    fn enter(&mut self, index: u32) {
        match self.ask(index, Limit::Admissions, Function::TokenGate, Action::Entrance) {
            Ok(took) => {
                let Buyer { sale, people, due_mark, .. } = self.buyers[index as usize];
                let share = self.plan.crowd.never_orders;
                let never_orders = share > 0.0 && self.rng.chance(share);
                let how = match never_orders {
                    true => Coming::Looks { due_mark },
                    false => Coming::Asks { due_mark },
                };
                let room = self.shops[sale as usize].room.as_mut();
                let entry = room.map(|room| room.came(how, people.into()));
                self.buyers[index as usize].entry = entry;
                if never_orders {
                    self.run.only_looked += u64::from(people);
                    let looks = self.rng.between(self.plan.crowd.looking);
                    return self.next(index, took + looks, Next::Leave);
                }
                self.run.let_in += u64::from(people);
                self.choose(index, took);
            }
            Err(Refused) => {
                if !self.retry(index, Next::Enter) {
                    self.turn_away(index);
                }
            }
        }
    }

    /// A buyer orders. With a room those come who know what is left, and want no more than that.
    fn reserve(&mut self, index: u32) {
        let now = self.clock.now();
        let Buyer { sale, mut taken, people, is_late, entry, since, came, .. } =
            self.buyers[index as usize];
        let shop = &self.shops[sale as usize];
        let left = shop.stock.left(taken.tier, taken.from, taken.to);
        if shop.room.is_some() || is_late {
            taken.tickets = taken.tickets.min(left - left % people);
        }
        let is_there = taken.tickets > 0 && taken.tickets <= left;
        let work = if is_there { Action::Reservation } else { Action::Refusal };
        let asked = self.ask(index, Limit::Orders, Function::Reserve, work);
        let shop = &mut self.shops[sale as usize];
        if let (Some(room), Some(entry)) = (shop.room.as_mut(), entry) {
            let held =
                if is_there && asked.is_ok() { taken.seat_legs() / u64::from(people) } else { 0 };
            let is_bad = asked.as_ref().map_or(true, |took| *took > TARGET);
            room.reserved(entry, people.into(), held, is_bad);
        }
        let Ok(took) = asked else {
            if !self.retry(index, Next::Reserve) {
                self.turn_away(index);
            }
            return;
        };
        record(&mut self.times.reservation, now + took - since, people);
        if !is_there || !shop.stock.hold(taken) {
            return self.other_seats(index, took);
        }
        self.run.orders += u64::from(people);
        record(&mut self.times.to_order, now + took - came, people);
        let buyer = &mut self.buyers[index as usize];
        (buyer.taken, buyer.ordered) = (taken, now + took);
        let thinks = self.rng.between(self.plan.crowd.paying);
        match self.buyers[index as usize].wish {
            Wish::Pay => self.next(index, took + thinks, Next::Pay),
            Wish::Cancel => self.next(index, took + thinks, Next::Cancel),
            Wish::NeverPay => self.let_it_expire(index),
        }
    }

    /// The seats were gone: others, with the same admission, or none.
    fn other_seats(&mut self, index: u32, took: Micros) {
        let sale = self.buyers[index as usize].sale;
        let tier = self.rng.tier(&self.plan.sale);
        let stock = &self.shops[sale as usize].stock;
        let buyer = &mut self.buyers[index as usize];
        buyer.choices += 1;
        buyer.taken.tier = u16::try_from(tier).unwrap_or(0);
        let is_over = stock.free() == 0 || buyer.choices > OTHER_SEATS;
        if is_over { self.leave(index) } else { self.choose(index, took) }
    }

    fn let_it_expire(&mut self, index: u32) {
        self.given_up += 1;
        let Buyer { ordered, has_attempt, .. } = self.buyers[index as usize];
        if has_attempt {
            let window = u64::from(self.plan.sale.file().pay_window_seconds);
            self.clock.at(ordered + window * SECOND + EXPIRY_LAG, Event::Close(index));
        } else {
            self.clock.at(self.expires_at(index), Event::Expire(index));
        }
    }

    /// The time from which an order that is not paid ends: its window, its grace, and until its message is there.
    fn expires_at(&self, index: u32) -> Micros {
        let grace = u64::from(self.plan.grace.seconds());
        self.payable_until(index) + grace * SECOND + EXPIRY_LAG
    }

    /// The end of an order's payment window, or the later time to which a place has extended it.
    fn payable_until(&self, index: u32) -> Micros {
        let window = u64::from(self.plan.sale.file().pay_window_seconds);
        let Buyer { ordered, extended_to, .. } = self.buyers[index as usize];
        extended_to.into_iter().fold(ordered + window * SECOND, Micros::max)
    }

    /// An order gets a place: once, one that leaves its buyer too little time extends it.
    fn place(&mut self, index: u32, at: Micros) {
        let until = at + EXTENSION_SECONDS.unsigned_abs() * SECOND;
        let payable_until = self.payable_until(index);
        let buyer = &mut self.buyers[index as usize];
        buyer.has_place = true;
        if payable_until < until && buyer.extended_to.is_none() {
            buyer.extended_to = Some(until);
        }
    }

    /// A payment whose start was refused is closed before its order ends: whether it was made is found by starting it
    /// again. Who has no turn comes again, until it is given up.
    fn close(&mut self, index: u32) {
        let now = self.clock.now();
        let people = self.buyers[index as usize].people.into();
        let ends = self.expires_at(index);
        let started = self.meters.turn(people, now);
        let started = started.filter(|wait| self.meters.start(people, now + wait));
        let closed = started.and_then(|took| Some(took + self.meters.close(people, now + took)?));
        let given_up = ends + ASKED_FOR_SECONDS.unsigned_abs() * SECOND;
        match closed {
            Some(took) => self.clock.at(ends.max(now + took), Event::Expire(index)),
            None if now < given_up => self.clock.after(CLOSE_AGAIN, Event::Close(index)),
            None => self.clock.at(now, Event::Expire(index)),
        }
    }

    /// True if the payment window of an order is over.
    fn is_too_late(&self, index: u32) -> bool {
        self.clock.now() > self.payable_until(index)
    }

    /// A buyer starts the payment, and pays at the provider.
    fn pay(&mut self, index: u32) {
        if !self.plan.crowd.starts || self.buyers[index as usize].is_late {
            return self.next(index, 0, Next::Callback);
        }
        let people = u64::from(self.buyers[index as usize].people);
        let asked = self.ask(index, Limit::Starts, Function::StartPayment, Action::Start);
        let now = self.clock.now();
        let have_places = self.deployment.payments_have_places;
        // A start waits for its turn, and then the provider may refuse it.
        self.buyers[index as usize].has_attempt |= asked.is_ok() && !have_places;
        let is_in_place =
            asked.is_ok() && std::mem::take(&mut self.buyers[index as usize].has_place);
        let turn = asked.ok().and_then(|took| {
            Some(took + if is_in_place { 0 } else { self.meters.turn(people, now)? })
        });
        if let Some(wait) = turn.filter(|wait| *wait > TURNS_AHEAD) {
            self.place(index, now + wait);
            if self.rng.chance(self.plan.crowd.reloads) {
                // The order answers: a request, and nothing else.
                let _ = self.ask(index, Limit::Starts, Function::StartPayment, Action::Order);
            }
            if now + wait < self.payable_until(index) {
                return self.clock.after(wait, Event::Buyer(index, Next::Pay));
            }
        }
        let started = turn.filter(|took| *took <= TURNS_AHEAD + SECOND);
        let started = started.filter(|took| self.meters.start(people, now + took));
        match started {
            Some(took) if std::mem::take(&mut self.buyers[index as usize].changes) => {
                let begun = self.rng.between(self.plan.crowd.paying);
                let _closed = self.meters.close(people, now + took);
                self.next(index, took + begun, Next::Pay);
            }
            Some(took) => {
                let at_provider = self.rng.between(self.plan.crowd.at_provider);
                self.next(index, took + at_provider, Next::Callback);
            }
            // A person goes on until the window is over.
            None if !self.is_too_late(index) => {
                let wait = self.start_again(index);
                self.clock.after(wait, Event::Buyer(index, Next::Pay));
            }
            None => self.let_it_expire(index),
        }
    }

    /// The time after which a buyer asks again for the start of a payment, longer each time.
    fn start_again(&mut self, index: u32) -> Micros {
        let starts = &mut self.buyers[index as usize].starts;
        let (first, longest) = self.plan.crowd.starts_again;
        let wait = (first * 2_f64.powi((*starts).into())).min(longest);
        *starts = starts.saturating_add(1);
        self.rng.between((wait * 0.75, wait * 1.25))
    }

    /// The provider says that it is paid. A callback that fails comes again, or its money is found in the list.
    fn callback(&mut self, index: u32) {
        let people = self.buyers[index as usize].people;
        match self.ask(index, Limit::Callbacks, Function::TakeCallback, Action::Payment) {
            Ok(took) => {
                self.clock.after(took, Event::Paid(index));
                let odd = self.rng.of(people.into(), self.plan.crowd.odd_callbacks);
                self.run.work[Action::Payment as usize] += odd as f64;
            }
            Err(Refused) => {
                let buyer = &mut self.buyers[index as usize];
                buyer.callbacks = buyer.callbacks.saturating_add(1);
                let gap = callback_gap(buyer.callbacks.into());
                let gap = gap.map_or(CAPTURES_READ, |gap| {
                    u64::try_from(gap.as_micros()).unwrap_or(CAPTURES_READ)
                });
                self.clock.after(gap.min(CAPTURES_READ), Event::Buyer(index, Next::Callback));
            }
        }
    }

    fn paid(&mut self, index: u32) {
        let Buyer { sale, people, taken, ordered, .. } = self.buyers[index as usize];
        self.shops[sale as usize].stock.sell(taken);
        self.run.paid += u64::from(people);
        self.run.sold += u64::from(taken.tickets);
        let now = self.clock.now();
        record(&mut self.times.to_paid, now - ordered, people);
        for action in [Action::Counting, Action::ExpiryOfPaid] {
            self.consume(action, people);
        }
        self.plan_to_give_back(index);
        let since = Some(seconds(now.saturating_sub(self.opens_at)));
        let parts = [
            (&mut self.run.half, 0.5),
            (&mut self.run.nine_tenths, 0.9),
            (&mut self.run.nearly_all, 0.99),
            (&mut self.run.sold_out, 1.0),
        ];
        for (at, part) in parts {
            if at.is_none() && self.run.sold as f64 >= self.run.places as f64 * part {
                *at = since;
            }
        }
        if self.plan.crowd.starts && !self.buyers[index as usize].is_late {
            self.next(index, 0, Next::Look);
        } else {
            self.leave(index);
        }
    }

    /// Messages of a kind of work are taken up: nobody waits for them.
    fn consume(&mut self, action: Action, messages: u32) {
        self.run.work[action as usize] += f64::from(messages);
        let units = self.costs.of(action).usage.write_units * f64::from(messages);
        self.meters.units(Limit::Writes, units, self.clock.now());
    }

    /// Some of the orders that a buyer stands for are given back later.
    fn plan_to_give_back(&mut self, index: u32) {
        let Buyer { sale, people, taken, .. } = self.buyers[index as usize];
        let crowd = &self.plan.crowd;
        let orders = self.rng.of(people.into(), crowd.gives_back);
        let Ok(orders) = u32::try_from(orders) else { return };
        if orders == 0 {
            return;
        }
        let tickets = taken.tickets / people * orders;
        let returned = Returned { sale, orders, taken: Taken { tickets, ..taken } };
        let within = (0.0, crowd.gives_back_within_seconds);
        self.to_give_back.iter_mut().for_each(|count| *count += u64::from(orders));
        let wait = self.rng.between(within);
        self.clock.after(wait, Event::GiveBack(returned));
    }

    /// Refunds are asked for: the seats are free with that.
    fn give_back(&mut self, returned: Returned) {
        let Returned { sale, orders, taken } = returned;
        let function = Function::RefundOrder;
        let asked = self.ask_whole(sale, orders.into(), Limit::Starts, function, Action::Refund);
        let Ok(took) = asked else {
            return self.clock.after(GIVE_BACK_AGAIN, Event::GiveBack(returned));
        };
        self.shops[sale as usize].stock.take_back(taken);
        self.run.sold -= u64::from(taken.tickets);
        self.run.given_back += u64::from(orders);
        self.to_give_back[0] -= u64::from(orders);
        self.clock.after(took, Event::Refund(orders));
    }

    /// The messages of refunds: the provider is asked in its turn, and the facts are settled.
    fn refund(&mut self, orders: u32) {
        let Some(_) = self.meters.give_back(orders.into(), self.clock.now()) else {
            return self.clock.after(GIVE_BACK_AGAIN, Event::Refund(orders));
        };
        self.run.refunded += u64::from(orders);
        self.to_give_back[1] -= u64::from(orders);
        self.consume(Action::GivingBack, orders);
        self.consume(Action::Counting, orders);
    }

    fn cancel(&mut self, index: u32) {
        match self.ask(index, Limit::Others, Function::Cancel, Action::Cancellation) {
            Ok(_) => {
                let Buyer { sale, people, taken, .. } = self.buyers[index as usize];
                self.shops[sale as usize].stock.release(taken);
                self.run.cancelled += u64::from(people);
                self.leave(index);
            }
            Err(Refused) if self.retry(index, Next::Cancel) => {}
            Err(Refused) => self.let_it_expire(index),
        }
    }

    /// An order's time is up: its message waits for its turn.
    fn expire(&mut self, index: u32) {
        let people = self.buyers[index as usize].people;
        let now = self.clock.now();
        let cost = *self.costs.of(Action::Expiry);
        // A function does the messages of its batch one after the other.
        let one =
            cost.function_micros as f64 / f64::from(self.deployment.expire_orders_concurrency);
        let begins = self.expiries_free_at.max(now);
        self.expiries_free_at = begins + (one * f64::from(people)) as Micros;
        self.meters.expire(f64::from(people), begins - now, cost.function_micros, now);
        self.consume(Action::Expiry, people);
        self.clock.at(begins + cost.function_micros, Event::Expired(index));
    }

    fn expired(&mut self, index: u32) {
        let Buyer { sale, people, taken, .. } = self.buyers[index as usize];
        self.shops[sale as usize].stock.release(taken);
        self.run.expired += u64::from(people);
        self.given_up -= 1;
        self.leave(index);
    }

    /// Once a second: documents, turns, and whoever takes what is left; false when it is over.
    fn second(&mut self) -> bool {
        let now = self.clock.now();
        self.meters.pay_off(now);
        let has_room = self.has_room;
        let caches = u64::from(self.deployment.edge_caches) * self.shops.len() as u64;
        if has_room {
            self.api(Limit::Reads, Function::WaitingRoom, Action::Document, caches);
            let polls = self.polls();
            self.edge(polls);
        } else if self.on_the_way > 0 && self.plan.crowd.looks > 0.0 {
            self.api(Limit::Reads, Function::Sales, Action::Look, caches);
        }
        let is_turn = self.shops.len() as u32 <= ROOMS_A_SECOND || (now / SECOND).is_multiple_of(5);
        if has_room && is_turn && now >= self.opens_at {
            for sale in 0..self.shops.len() as u32 {
                self.turn(sale);
            }
        }
        let is_deserted = self.on_the_way == 0 && self.busy == self.given_up + u64::from(self.late);
        if !has_room && is_deserted {
            self.take_what_is_left();
        }
        self.sample();
        let is_sold = self.run.sold_out.is_some();
        let is_idle = self.busy == 0 && self.on_the_way == 0 && now > self.opens_at;
        let is_over = is_sold || is_idle && self.is_nobody_to_come();
        self.clock.after(SECOND, Event::Second);
        !is_over
    }

    /// True if nobody is to come any more, and nobody waits.
    fn is_nobody_to_come(&self) -> bool {
        let is_last = self.clumps.last().is_none_or(|last| last.at < self.clock.now());
        is_last
            && self.shops.iter().all(|shop| match &shop.room {
                Some(room) => room.waiting() == 0,
                None => shop.stock.free() == 0 || self.plan.crowd.late_at_once == 0,
            })
    }

    /// Room documents that pages ask for in a second.
    fn polls(&self) -> f64 {
        let now = self.clock.now();
        let until = |then: Micros| seconds(then.saturating_sub(now));
        let draws_at = self.opens_at - draw_lead(self.plan).unwrap_or(0);
        let rooms = self.shops.iter().filter_map(|shop| shop.room.as_ref());
        let polls = rooms.map(|room| {
            if room.is_drawn() {
                let late = room.without_place();
                let waiting = room.waiting().saturating_sub(late.into());
                polls::of_places(waiting as f64, room.rate(), until(self.opens_at))
                    + polls::of_unknown_waits(late.into())
            } else {
                polls::before_the_draw(room.joined(), until(draws_at))
            }
        });
        polls.sum()
    }

    /// A turn of a room: those whose place is due come soon, or never.
    fn turn(&mut self, sale: u32) {
        let now_ms = self.engine_ms();
        let (now, opens_at) = (self.clock.now(), self.opens_at);
        let shop = &mut self.shops[sale as usize];
        let (free, (_, sold)) = (shop.stock.free(), shop.stock.held_and_sold());
        let Some(room) = shop.room.as_mut() else { return };
        if sold >= shop.stock.places() {
            return;
        }
        let free = if self.meters.is_held_back(now) { 0 } else { free };
        let served = room.turn(now_ms, free);
        let due_mark = room.mark();
        self.run.work[Action::Turn as usize] += 1.0;
        record(&mut self.times.wait, now - opens_at, u32::try_from(served).unwrap_or(u32::MAX));
        let mut left = self.rng.of(served, 1.0 - self.plan.crowd.no_show);
        while left > 0 {
            let people = u32::try_from(left.min(self.weight.into())).unwrap_or(1);
            left -= u64::from(people);
            let choice = self.rng.choice(&self.plan.sale);
            let index = self.add_buyer(sale, people, choice);
            self.buyers[index as usize].due_mark = due_mark;
            let sees = self.rng.between((0.0, polls::SHORTEST * 1.3));
            self.next(index, sees, Next::Enter);
        }
    }

    /// Late people take what is left, so many at a time.
    fn take_what_is_left(&mut self) {
        for sale in 0..self.shops.len() as u32 {
            while self.late < self.plan.crowd.late_at_once {
                let stock = &self.shops[sale as usize].stock;
                let tiers = u16::try_from(self.plan.sale.tiers().len()).unwrap_or(0);
                let legs = self.plan.sale.leg_count().max(1);
                let journeys = (0..tiers).flat_map(|tier| (0..legs).map(move |leg| (tier, leg)));
                let fullest = journeys.max_by_key(|(tier, leg)| stock.left(*tier, *leg, leg + 1));
                let Some((tier, from)) = fullest else { break };
                let most = u32::from(self.plan.sale.file().limit_per_buyer);
                if stock.left(tier, from, from + 1) <= self.late * most {
                    break;
                }
                // As many as an order may have, or as there are.
                let taken = Taken { tier, from, to: from + 1, tickets: most };
                let index = self.let_in(sale, 1, taken);
                let buyer = &mut self.buyers[index as usize];
                (buyer.is_late, buyer.wish) = (true, Wish::Pay);
                self.late += 1;
                self.choose(index, 0);
            }
        }
    }

    fn sample(&mut self) {
        /// Most samples of a run: then every second one is dropped.
        const MAX_SAMPLES: usize = 4_000;
        let second = seconds(self.clock.now()) - seconds(self.opens_at);
        let waiting =
            self.shops.iter().filter_map(|shop| shop.room.as_ref()).map(Waiting::waiting).sum();
        let (edge, api) = (self.edge_second, self.api_second);
        (self.edge_second, self.api_second) = (0.0, 0.0);
        self.run.peak_edge = self.run.peak_edge.max(edge);
        self.run.peak_api = self.run.peak_api.max(api);
        self.run.series.push(Sample { second, edge, api, waiting, sold: self.run.sold });
        if self.run.series.len() > MAX_SAMPLES {
            let mut index = 0;
            self.run.series.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
    }

    fn over(mut self) -> Run {
        // What is given back after all is sold costs the same.
        let [asked, refunded] = self.to_give_back.map(|orders| orders as f64);
        self.run.work[Action::Refund as usize] += asked;
        self.run.work[Action::GivingBack as usize] += refunded;
        self.run.work[Action::Counting as usize] += refunded;
        self.run.wait = Percentiles::from_histogram(&self.times.wait);
        self.run.to_order = Percentiles::from_histogram(&self.times.to_order);
        self.run.reservation = Percentiles::from_histogram(&self.times.reservation);
        self.run.to_paid = Percentiles::from_histogram(&self.times.to_paid);
        self.run.limits = self.meters.met().map(|(limit, met)| (limit, *met)).collect();
        self.run.events = self.clock.events();
        self.run
    }
}

impl Run {
    fn empty(places: u64, weight: u32) -> Self {
        let none = Percentiles::default();
        Self {
            places,
            sold: 0,
            sold_out: None,
            half: None,
            nine_tenths: None,
            nearly_all: None,
            came: 0,
            turned_away: 0,
            let_in: 0,
            only_looked: 0,
            orders: 0,
            paid: 0,
            cancelled: 0,
            expired: 0,
            given_back: 0,
            refunded: 0,
            edge_requests: 0.0,
            peak_edge: 0.0,
            peak_api: 0.0,
            api_requests: 0.0,
            wait: none,
            to_order: none,
            reservation: none,
            to_paid: none,
            limits: Vec::new(),
            work: vec![0.0; Action::ALL.len()],
            series: Vec::new(),
            events: 0,
            weight,
        }
    }
}

/// The wait before a request is sent again, longer each time: as the load test has it.
fn backoff(attempt: u32) -> Micros {
    u64::try_from(session::backoff(attempt, None).as_micros()).unwrap_or(SECOND)
}

fn record(times: &mut Histogram<u64>, micros: Micros, people: u32) {
    // A time is recorded whatever it is: the histogram grows.
    let _grows = times.record_n(micros.max(1), people.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::tests::plan;

    #[test]
    fn fewer_invocations_do_the_work_of_several_people_one_after_the_other() {
        let (plan, deployment) = (plan(1_000, 1_000, serde_json::json!({})), Deployment::default());
        let costs = Costs::kept(&deployment).unwrap();
        let mut simulation = Simulation::new(&plan, &deployment, &costs, false);
        let mut took = |requests: u64, begun: u64| {
            let (function, action) = (Function::Orders, Action::Order);
            let (done, took) = simulation.carry_out(function, action, requests, (begun, 0));
            assert_eq!(done, requests);
            took - micros(deployment.network_ms / 1_000.0)
        };
        assert_eq!(took(60, 10), 6 * took(1, 1));
        assert_eq!(took(60, 60), took(1, 1));
        assert_eq!(simulation.run.work[Action::Order as usize], 122.0);
    }
}
