//! Waiting rooms beside the sale that the crowd buys from: a new one each round, so that a fault meets rooms at every
//! step, with people joining one, waiting for the draw of another, and ordering in a third. When everybody was let in
//! and has ordered, each room is audited, exported and verified as anybody would.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::{BeaconChoice, ByOperator, RoomSettings, Sale, SaleFile};
use fake_identity::{Identity, Role};
use local::up::beacon_config;
use ops::draw::publication::{Admission, Publication};
use ops::draw::{Own, Seen, verify};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;

use super::Error;
use super::joiner::{Joined, Joiner};
use super::persistent::Persistent;
use super::rig::{Rig, Setup};

/// The people of each room.
pub const PEOPLE: usize = 12;
/// Time from the publication to the closing of the first window, in seconds.
const JOIN_SECONDS: i64 = 5;
/// Time between the closing of a first window and the opening, in seconds: a draw has three quarters of it before its round.
const LEAD_SECONDS: u32 = 8;
/// Time within which people come, in milliseconds: some of them join later windows.
const COME_MS: std::ops::Range<u64> = 0..8_000;
/// Tickets of each room: more than the people, and the indices that nobody has, can hold.
const TICKETS: u32 = 1_000;
/// Time that a place stays due, and that a visit lasts, in seconds: longer than any fault, so that nobody has to join
/// again.
const VISIT_SECONDS: u32 = 3_600;
/// Most admissions of a visit: whoever gets no answer asks again.
const MAX_ATTEMPTS: u16 = 1_000;
/// Time that a token is good, in seconds.
const TOKEN_SECONDS: u32 = 24 * 3600;

/// How far somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Joins, or has not come yet.
    Join,
    /// Waits for the draw.
    Draw,
    /// Has a place, and waits for the turn.
    Turn,
    /// The place is due: asks to be let in, and orders.
    Visit,
    Done,
}

/// What rooms came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RoomsReport {
    pub rooms: usize,
    /// Number of people who were let in and ordered.
    pub ordered: usize,
    /// How far the people of all rooms were when something broke, by number of people.
    pub struck: BTreeMap<Step, u64>,
}

#[derive(Debug, Clone)]
struct Person {
    buyer: UserId,
    step: Step,
    told: Option<Joined>,
    order: Option<OrderNumber>,
}

/// The people of a room.
#[derive(Debug)]
pub(super) struct People {
    sale: SaleId,
    people: Mutex<Vec<Person>>,
    violations: Mutex<Vec<String>>,
}

impl People {
    fn people(&self) -> MutexGuard<'_, Vec<Person>> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody has come to a step.
    pub(super) fn at(&self, who: usize, step: Step) {
        if let Some(person) = self.people().get_mut(who) {
            person.step = step;
        }
    }

    /// Somebody was told a membership for certain: it must be the one of before, and nobody else's.
    pub(super) fn told(&self, who: usize, joined: &Joined) -> Result<(), String> {
        let mut people = self.people();
        let same = |of: &Joined| (&of.group, of.index) == (&joined.group, joined.index);
        for (other, person) in people.iter().enumerate() {
            let Some(told) = &person.told else { continue };
            if same(told) != (other == who) {
                let (index, buyer) = (told.index, &person.buyer);
                return Err(format!("was told index {}: {buyer} has {index}", joined.index));
            }
            if other == who && told.place.is_some() && told.place != joined.place {
                return Err(format!("was told places {:?} and {:?}", told.place, joined.place));
            }
        }
        if let Some(person) = people.get_mut(who) {
            person.told = Some(joined.clone());
        }
        Ok(())
    }

    pub(super) fn done(&self, who: usize, order: OrderNumber) {
        if let Some(person) = self.people().get_mut(who) {
            person.step = Step::Done;
            person.order = Some(order);
        }
    }

    /// Somebody met what must not be.
    pub(super) fn violation(&self, who: usize, what: &str) {
        let buyer = self.people().get(who).map(|person| person.buyer.to_string());
        let what = format!("room {}: {} {what}", self.sale, buyer.unwrap_or_default());
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
struct Room {
    people: Arc<People>,
    tasks: JoinSet<()>,
}

/// The rooms of one rig. Whoever is still in one is gone when this is dropped.
#[derive(Debug)]
pub(super) struct Rooms {
    rooms: Vec<Room>,
    random: StdRng,
    pay_window_seconds: u32,
    report: RoomsReport,
}

impl Rooms {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            rooms: Vec::new(),
            random: StdRng::seed_from_u64(setup.seed ^ 3),
            pay_window_seconds: setup.pay_window_seconds,
            report: RoomsReport::default(),
        }
    }

    /// Publishes the next room, and has its people come. Every second one is drawn by the beacon, the others by their
    /// secret.
    pub(super) async fn open(&mut self, rig: &Rig) -> Result<(), Error> {
        let number = self.rooms.len();
        let sale = SaleId::new(format!("room-{number}"))?;
        let by_beacon = number.is_multiple_of(2);
        let file = room_file(&sale, Timestamp::now(), by_beacon, self.pay_window_seconds)?;
        let file = Sale::new(file).map_err(|defects| Error::Refused(format!("{defects:?}")))?;
        rig.put(file.file()).await?;
        let buyers: Result<Vec<UserId>, _> =
            (0..PEOPLE).map(|who| UserId::new(format!("{sale}-{who}"))).collect();
        let person = |buyer| Person { buyer, step: Step::Join, told: None, order: None };
        let people = buyers?.into_iter().map(person).collect::<Vec<_>>();
        let identity = Identity::new(rig.secrets()?.identity.as_bytes());
        let client = Persistent::client()?;
        let tokens = people.iter().map(|person| {
            identity.token(person.buyer.as_str(), Role::Buyer, Timestamp::now(), TOKEN_SECONDS)
        });
        let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        let url = format!("{}/sales/{sale}", rig.url());
        let people =
            Arc::new(People { sale, people: Mutex::new(people), violations: Mutex::default() });
        let mut tasks = JoinSet::new();
        for (who, bearer) in tokens.into_iter().enumerate() {
            let people = Arc::clone(&people);
            let api = Persistent::new(client.clone(), url.clone(), bearer);
            let comes_after = Duration::from_millis(self.random.random_range(COME_MS));
            let random = StdRng::seed_from_u64(self.random.random());
            let joiner = Joiner { who, people, api, comes_after, random };
            tasks.spawn(joiner.run());
        }
        self.rooms.push(Room { people, tasks });
        Ok(())
    }

    /// Remembers how far everybody is: something has broken.
    pub(super) fn struck(&mut self) {
        for room in &self.rooms {
            for person in room.people.people().iter() {
                *self.report.struck.entry(person.step).or_default() += 1;
            }
        }
    }

    /// What people met so far that must not be.
    pub(super) fn violations(&self) -> Vec<String> {
        self.rooms.iter().flat_map(|room| room.people.violations()).collect()
    }

    /// The sales with the orders that were answered to their buyers, once everybody has ordered.
    pub(super) fn orders(&self) -> Vec<(SaleId, Vec<OrderNumber>)> {
        let of = |room: &Room| {
            let orders = room.people.people().iter().filter_map(|person| person.order).collect();
            (room.people.sale.clone(), orders)
        };
        self.rooms.iter().map(of).collect()
    }

    /// Waits until everybody has ordered, or has met what must not be.
    pub(super) async fn until_done(&mut self) {
        for room in &mut self.rooms {
            while room.tasks.join_next().await.is_some() {}
        }
    }

    /// What is wrong now that everybody should have ordered: in words.
    pub(super) fn unserved(&self) -> Vec<String> {
        let mut violations = self.violations();
        for Room { people, .. } in &self.rooms {
            let steps: Vec<Step> = people.people().iter().map(|person| person.step).collect();
            if steps.iter().any(|step| *step != Step::Done) {
                let sale = &people.sale;
                violations.push(format!("room {sale}: not everybody was served: {steps:?}"));
            }
        }
        violations
    }

    /// Exports each room with the program and verifies what was published, for everybody who was told a place.
    pub(super) async fn verify(&self, program: &Path, dir: &Path) -> Result<Vec<String>, Error> {
        let mut violations = Vec::new();
        for Room { people, .. } in &self.rooms {
            let sale = &people.sale;
            let folder = dir.join(format!("published-{sale}"));
            let mut export = tokio::process::Command::new(program);
            export.arg("--data-dir").arg(dir).args(["room", "export", sale.as_str()]).arg(&folder);
            let export = export.stdin(Stdio::null()).output().await;
            let export = export.map_err(Error::io("running room export"))?;
            if !export.status.success() {
                let said = String::from_utf8_lossy(&export.stderr).into_owned();
                violations.push(format!("room {sale}: cannot be exported: {said}"));
                continue;
            }
            let publication = Publication::read(&folder).map_err(std::io::Error::other);
            let publication = publication.map_err(Error::io("reading what was published"))?;
            let people = people.people().clone();
            violations.extend(unpublished(sale, &publication, &people));
        }
        Ok(violations)
    }

    /// What they came to.
    pub(super) fn report(&self) -> RoomsReport {
        let ordered = self.orders().iter().map(|(_, orders)| orders.len()).sum();
        RoomsReport { rooms: self.rooms.len(), ordered, ..self.report.clone() }
    }
}

/// What `onsale verify-draw` finds wrong with a room, and each person whose leaf or admission is not in what was
/// published. A later window has no leaves.
fn unpublished(sale: &SaleId, publication: &Publication, people: &[Person]) -> Vec<String> {
    let chains = beacon_config("").chains;
    let all = verify(publication, &chains, &Seen::default(), None).violations;
    let mut violations: Vec<String> =
        all.iter().map(|violation| format!("room {sale}: {violation}")).collect();
    for Person { buyer, told, .. } in people {
        let Some(Joined { group, index, window, nonce, place, .. }) = told.clone() else {
            continue;
        };
        let is_its =
            |of: &Admission| of.group == group && of.index == index && Some(of.place) == place;
        if !publication.admissions.iter().any(is_its) {
            violations.push(format!("room {sale}: {buyer} with index {index} was not let in"));
        }
        if window == "first" {
            let own = Own { group, index, buyer: buyer.clone(), nonce };
            let found = verify(publication, &chains, &Seen::default(), Some(&own)).violations;
            let of_own = found.iter().filter(|violation| !all.contains(violation));
            violations.extend(of_own.map(|what| format!("room {sale}, for {buyer}: {what}")));
        }
    }
    violations
}

/// A sale of standing places with a waiting room whose first window closes soon.
fn room_file(
    sale: &SaleId,
    now: Timestamp,
    by_beacon: bool,
    pay_window_seconds: u32,
) -> Result<SaleFile, Error> {
    // The engine's own chain decides where no other is named.
    let beacon = (!by_beacon).then_some(BeaconChoice::Operator(ByOperator::Operator));
    let room = RoomSettings {
        show_up_seconds: VISIT_SECONDS,
        visit_seconds: VISIT_SECONDS,
        window_seconds: 2,
        draw_lead_seconds: LEAD_SECONDS,
        max_attempts: MAX_ATTEMPTS,
        beacon,
        ..RoomSettings::default()
    };
    let file = json!({
        "sale": sale, "title": "Room", "currency": "EUR",
        "opens_at": now.plus_seconds(JOIN_SECONDS + i64::from(LEAD_SECONDS)), "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": pay_window_seconds, "room": room,
        "tiers": [{
            "tier": "standing", "name": "Standing", "price_minor": 500,
            "general_admission": TICKETS,
        }],
    });
    Ok(serde_json::from_value(file)?)
}
