//! What a run is about, drawn from its seed before it begins: the sale, the buyers, what may go
//! wrong, and what is left out of it while a failure is being made small.

use std::collections::BTreeSet;

use engine::domain::basics::calendar::ClockTime;
use engine::domain::basics::ids::{ProviderId, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::domain::basics::time_zone::TimeZone;
use engine::domain::inventory::PartLimit;
use engine::domain::payment::captures::ListLag;
use engine::domain::payment::grace::Grace;
use engine::domain::sale::{Sale, SaleFile};
use serde_json::{Value, json};

use crate::fault::{Fault, FaultProfile, Rates};
use crate::random::SeededRng;
use crate::room::RoomPlan;

/// The time at which every run begins.
pub(crate) const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);
/// Faults begin after the sale was published, in milliseconds from the start.
pub(crate) const FAULTS_FROM_MS: i64 = 5_000;

/// How long an unpaid order waits past its deadline, as in a deployment.
pub(crate) const GRACE: Grace = Grace::DEFAULT;
/// The most by which the provider lists a capture late, in milliseconds: below the grace, also by a
/// clock that is wrong.
pub(crate) const MAX_LAG_MS: i64 = 110_000;

/// The lag of the provider's list, as a deployment states it.
pub(crate) const LIST_LAG: ListLag = ListLag::DEFAULT;
/// The most by which that list has a capture late, in milliseconds: below what is stated, also by clocks
/// that are wrong.
pub(crate) const MAX_LIST_LAG_MS: i64 = 50_000;

/// The shortest life of a provider's page, in seconds: longer than some payment windows.
pub(crate) const PAGE_SECONDS: u32 = 300;

/// What a run leaves out: nothing, unless a failure is being made small.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Without {
    /// Faults by the name of their place.
    pub faults: BTreeSet<u64>,
    /// Buyers by their index.
    pub buyers: BTreeSet<u64>,
}

/// An event that concerns the whole environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incident {
    /// Redis forgets its last writes.
    Failover {
        /// The number of writes.
        writes: usize,
    },
    Flush,
    /// Redis loses one of the sale's tiers, if they are kept apart.
    LoseTier {
        /// Its place in the sale.
        tier: usize,
    },
    /// The operator publishes the sale with other terms.
    Publish,
    /// The operator cancels the sale: it does not take place.
    Cancel,
}

/// A run before it begins.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub seed: u64,
    /// The kinds of fault that may strike.
    pub profile: FaultProfile,
    /// The rate of each kind.
    pub rates: Rates,
    pub sale: Sale,
    /// The number of buyers.
    pub buyers: u64,
    /// True if the provider lists its captures, and a reader goes over its list.
    pub lists: bool,
    /// True if every payment is started by the engine, and an order without an open one ends unasked.
    pub only_here: bool,
    /// True if the provider has nothing of a page before its buyer opens it.
    pub is_lazy: bool,
    /// Milliseconds between two refunds that captures decide.
    pub refund_interval_ms: i64,
    /// True if the sweeper runs all the time, and buyers come again and again.
    pub is_storm: bool,
    /// How much one part of a load carries: in half of the runs loads are in many parts.
    pub part_limit: PartLimit,
    /// The time of the first sweep, in milliseconds from the start.
    pub first_sweep_ms: i64,
    /// The time over which the buyers arrive, in milliseconds.
    pub arrivals_ms: i64,
    /// The time from which no fault strikes any more, so that everything can settle.
    pub calm_from: Timestamp,
    /// Incidents, each with its time in milliseconds from the start and the name of its place.
    pub incidents: Vec<(i64, u64, Incident)>,
    /// When the sale closes, in milliseconds from the start, if it is to be archived then.
    pub archives_from_ms: Option<i64>,
    /// The sale's waiting room, if it has one.
    pub room: Option<RoomPlan>,
    /// Parts that are left out.
    pub without: Without,
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn from_seed(seed: u64, without: Without) -> Self {
        let profile = FaultProfile::from_seed(seed);
        let rates = Rates::from_seed(seed, profile);
        let mut rng = SeededRng::from_label(seed, 0x10);
        let pay_window = rng.pick(&[20, 60, 60, 240, 1000]);
        let arrivals_ms = rng.pick(&[300, 5_000, 60_000, 200_000]);
        let closes_early = rng.chance(150);
        let room = RoomPlan::from_seed(seed);
        let closes_ms = match &room {
            _ if !closes_early => 86_400_000 * 30,
            None => arrivals_ms / 2 + 10_000,
            Some(room) => room.opens_ms + arrivals_ms + 10_000,
        };
        let arrivals_ms = room.as_ref().map_or(arrivals_ms, RoomPlan::arrivals_ms);
        // In a third of the runs there is hardly anything to sell, and everybody wants it.
        // In a few, the sweeper runs all the time while they come again and again.
        let is_storm = SeededRng::from_label(seed, 0x12).chance(50) && room.is_none();
        let lists = SeededRng::from_label(seed, 0x13).chance(500);
        let is_tight = rng.chance(330) || is_storm;
        let mut parts = SeededRng::from_label(seed, 0x13);
        let part_limit = parts.pick(&[
            PartLimit::STANDARD,
            PartLimit::STANDARD,
            PartLimit::SMALLEST,
            PartLimit { arguments: 6, bytes: 1024 },
        ]);
        let arrivals_ms = if is_storm { 2_000 } else { arrivals_ms };
        let apart = SeededRng::from_label(seed, 0x14).chance(400);
        let of_room = room.as_ref();
        let sale = sale(&mut rng, pay_window, closes_ms, is_tight, apart, of_room);
        let sale = match SeededRng::from_label(seed, 0x19).chance(300) && room.is_none() {
            true => with_times(&sale),
            false => sale,
        };
        let buyers = rng.between(if is_tight { 4 } else { 2 }, 7) as u64;
        let first_sweep_ms = if is_storm { 5_000 } else { rng.between(5_000, 60_000) };
        let window_ms = (pay_window + i64::from(GRACE.seconds())) * 1000;
        let faults_ms = arrivals_ms + rng.pick(&[30_000, 120_000, 600_000]) + window_ms;
        let mut incidents = Vec::new();
        let losses = [(Fault::Failover, 4), (Fault::Flush, 3), (Fault::LoseTier, 3)];
        for (fault, most) in losses {
            if fault == Fault::LoseTier && !sale.keeps_tiers_apart() {
                continue;
            }
            for turn in 0..most {
                let key = 0xfa11_0000 + turn + 256 * fault as u64;
                let mut rng = SeededRng::from_label(seed, key);
                let at = rng.between(FAULTS_FROM_MS + 500, arrivals_ms + window_ms + 30_000);
                let writes = rng.between(1, 25) as usize;
                let is_on = rng.chance(rates.of_fault(fault).min(700));
                if is_on && !without.faults.contains(&key) {
                    let lost = match fault {
                        Fault::Flush => Incident::Flush,
                        Fault::LoseTier => Incident::LoseTier { tier: writes },
                        _ => Incident::Failover { writes },
                    };
                    incidents.push((at, key, lost));
                }
            }
        }
        for turn in 0..rng.pick(&[0, 0, 1, 2]) {
            let at = rng.between(FAULTS_FROM_MS, arrivals_ms + 20_000);
            incidents.push((at, 0x0b11_0000 + turn, Incident::Publish));
        }
        let mut rng = SeededRng::from_label(seed, 0x16);
        if rng.chance(60) && room.is_none() && !closes_early {
            let at = rng.between(FAULTS_FROM_MS + 500, arrivals_ms + window_ms + 30_000);
            incidents.push((at, 0xca5e_0000, Incident::Cancel));
        }
        let calm_from = START.plus_ms(FAULTS_FROM_MS + faults_ms);
        Self {
            seed,
            profile,
            rates,
            sale,
            buyers,
            lists,
            only_here: SeededRng::from_label(seed, 0x15).chance(400),
            is_lazy: SeededRng::from_label(seed, 0x1a).chance(300),
            refund_interval_ms: SeededRng::from_label(seed, 0x1b)
                .pick(&[0, 1_000, 40_000, 400_000]),
            is_storm,
            part_limit,
            first_sweep_ms,
            arrivals_ms,
            calm_from,
            incidents,
            archives_from_ms: closes_early.then_some(closes_ms),
            room,
            without,
        }
    }

    /// True if two buyers' numbers are the same, which the admission makes all but impossible.
    pub(crate) fn numbers_clash(&self) -> bool {
        SeededRng::from_label(self.seed, 0x11).chance(40)
    }

    /// True if Redis must be right after every step, because nothing makes it forget. Where numbers
    /// clash it need not be: a sale of one order may end the other's hold of the same seats, and
    /// its first filter then counts a ticket for the wrong buyer.
    pub(crate) fn redis_remembers(&self) -> bool {
        let upsets = |fault: &Fault| fault.upsets_redis() && self.rates.of_fault(*fault) > 0;
        !Fault::ALL.iter().any(upsets) && !self.numbers_clash()
    }

    /// True if nothing makes Redis forget what it was told, however late that was.
    pub(crate) fn redis_forgets_nothing(&self) -> bool {
        let forgets = [Fault::Failover, Fault::Flush, Fault::LoseTier];
        forgets.into_iter().all(|fault| self.rates.of_fault(fault) == 0) && !self.numbers_clash()
    }

    /// True if a question to the provider is always answered, and the message that has it asked comes in time
    /// and to somebody who does not die over it: an order ends unasked only if it is not.
    pub(crate) fn provider_answers(&self) -> bool {
        let (lost, refused) = ([Fault::LoseRequest, Fault::LoseReply], [Fault::Refuse]);
        let unheard = [Fault::Silence, Fault::Limited, Fault::LoseMessage, Fault::DelayMessage];
        let unheard = unheard.into_iter().chain([Fault::Die]);
        lost.into_iter().chain(refused).chain(unheard).all(|fault| self.rates.of_fault(fault) == 0)
    }

    /// True if a fault of this kind strikes at this place and time.
    pub(crate) fn strikes(
        &self,
        fault: Fault,
        place: u64,
        rng: &mut SeededRng,
        now: Timestamp,
    ) -> bool {
        let is_time = now >= START.plus_ms(FAULTS_FROM_MS) && now < self.calm_from;
        let is_drawn = rng.chance(self.rates.of_fault(fault));
        is_drawn && is_time && !self.without.faults.contains(&place)
    }
}

/// A small sale: few enough seats that buyers meet on them.
/// If its tiers are kept apart there are two of them.
fn sale(
    rng: &mut SeededRng,
    pay_window_seconds: i64,
    closes_ms: i64,
    is_tight: bool,
    apart: bool,
    room: Option<&RoomPlan>,
) -> Sale {
    let stops = if is_tight { 0 } else { rng.pick(&[0, 0, 3, 4]) };
    let stop = |index: i64| json!({ "stop": format!("s{index}"), "name": format!("Stop {index}") });
    // Few seats, and yet several blocks of those that are counted together when they are freed: B, C and
    // D are neighbours over the end of one.
    let mut columns = vec![Some("A")];
    columns.resize(31, None);
    columns.extend([Some("B"), Some("C"), Some("D")]);
    let seated = json!({
        "tier": "seated", "name": "Seated", "price_minor": 700,
        "columns": columns,
        "sections": [{ "section": "1", "rows": rows(rng.between(1, 3)) }],
    });
    let spots = if is_tight { rng.between(1, 3) } else { rng.between(2, 9) };
    let standing = json!({
        "tier": "standing", "name": "Standing", "price_minor": 300, "general_admission": spots,
    });
    let tiers = match rng.below(4) {
        _ if apart && is_tight => {
            let mut other = standing.clone();
            other["tier"] = json!("balcony");
            vec![standing, other]
        }
        _ if apart => vec![seated, standing],
        _ if is_tight => vec![standing],
        0 => vec![seated],
        1 => vec![standing],
        _ => vec![seated, standing],
    };
    let mut file = json!({
        "sale": "sim", "title": "Simulated", "currency": "EUR",
        "opens_at": START, "closes_at": START.plus_ms(closes_ms),
        "merchant": { "merchant": "opera", "commission_basis_points": 350 },
        "limit_per_buyer": rng.between(2, 5), "pay_window_seconds": pay_window_seconds,
        "attendees": if rng.chance(300) { "required" } else { "optional" },
        "gate": { "shards": 2, "user_lock_ms": 1000, "token_seconds": 300 },
        "tiers_apart": apart, "tiers": tiers,
    });
    if let Some(room) = room {
        file["opens_at"] = json!(START.plus_ms(room.opens_ms));
        file["room"] = room.file.clone();
    }
    if stops > 0 {
        file["stops"] = Value::Array((0..stops).map(stop).collect());
    }
    if apart {
        file["points"] = json!({ "per_minor": 100, "points": 3, "growth": 1 });
    }
    // Whoever may give a ticket back may until the sale closes, or for a moment only.
    if rng.chance(700) {
        let until = START.plus_ms(if rng.chance(700) { closes_ms } else { 30_000 });
        let fee = rng.pick(&[0, 10, 100]);
        file["refunds"] = json!({ "until": until, "fee_percent": fee, "fee_minor": rng.below(40) });
    }
    let file: SaleFile = serde_json::from_value(file).expect("the file is well formed");
    Sale::new(file).expect("the file breaks no rule")
}

/// The sale as it is if its train runs at once, a minute from stop to stop: while people come and pay.
fn with_times(sale: &Sale) -> Sale {
    let mut file = sale.file().clone();
    let zone: TimeZone = "Etc/UTC".parse().expect("it is in the database");
    // `START` is at 8:00.
    for (minute, stop) in (8 * 60 + 1..).zip(&mut file.stops) {
        stop.departs = Some(ClockTime::from_minutes(minute).expect("it is of one day"));
        stop.time_zone = Some(zone.clone());
    }
    file.runs_on = (!file.stops.is_empty()).then(|| "2027-01-15".parse().expect("it is a day"));
    let sale = Sale::new(file).expect("the file breaks no rule");
    let first = sale.departure(sale.whole());
    assert_eq!(first.map(|first| first.ms_since(START)), first.map(|_| 60_000));
    sale
}

fn rows(count: i64) -> Value {
    let row = |index: i64| json!({ "row": format!("{index}"), "seats": "every_column" });
    Value::Array((1..=count).map(row).collect())
}

pub(crate) fn sale_id() -> SaleId {
    SaleId::new("sim").expect("it is a slug")
}

pub(crate) fn provider_id() -> ProviderId {
    ProviderId::new("test").expect("it is a slug")
}
