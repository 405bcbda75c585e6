//! The simulation held against a real run: the same sale and crowd on the engine of this machine, with the same limits
//! on, and on the simulation.

use std::time::Duration;

use bench::cost::Action;
use bench::selling::{hall, publish};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::{GateSettings, RoomSettings, Sale, SaleFile};
use fake_limits::{Limits, Quotas};
use loadtest::arrivals::Shape;
use loadtest::credentials::Credentials;
use loadtest::pages::Shares;
use loadtest::people::plan::Crowd as Classes;
use loadtest::profile::LoadProfile;
use loadtest::report::Report;
use loadtest::{CONNECTIONS, CallbackRepeats, Load};
use local::up::{self, Engine};
use reporting::grouped;
use serde::Serialize;

use crate::Failure;
use crate::costs::Costs;
use crate::deployment::Deployment;
use crate::forecast::time;
use crate::plan::{Crowd, Plan};
use crate::simulation::{Run, simulate};

/// The bound of the difference.
const WITHIN: f64 = 0.2;
const SALE: &str = "capacity-check";
/// The longest that a run may take.
const MAX_SECONDS: Duration = Duration::from_secs(600);
/// The time to pay, in seconds.
const PAY_WINDOW_SECONDS: u32 = 20;
/// Time before the opening in which half of the people come, where there is a room, in seconds.
const LEAD_SECONDS: f64 = 40.0;
/// Time between the draw and the opening, in seconds.
const DRAW_LEAD_SECONDS: u32 = 10;

/// One figure of both.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    pub what: &'static str,
    /// In the real run.
    pub real: f64,
    pub simulated: f64,
    /// True if it is a time in seconds.
    pub is_time: bool,
}

impl Compared {
    /// The simulated figure in parts of the real one.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.simulated / self.real.max(f64::MIN_POSITIVE)
    }

    /// True if they are within a fifth of each other.
    #[must_use]
    pub fn is_near(&self) -> bool {
        (self.ratio() - 1.0).abs() <= WITHIN
    }
}

/// A real run and its simulation.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What was sold to whom, and which limit decided.
    pub of: &'static str,
    pub figures: Vec<Compared>,
}

#[derive(Debug, Clone, Copy)]
struct Scene {
    of: &'static str,
    people: u64,
    seats: u32,
    within_seconds: f64,
    /// Admissions a second of the gate, or places a second of the room.
    rate: u32,
    has_room: bool,
    profile: LoadProfile,
    /// Payments a second that the provider lets start, where people pay on its page.
    starts: Option<u32>,
}

const SCENES: [Scene; 3] = [
    Scene {
        of: "gate of 40 a second, 12,000 people, 3,000 seats, everything that buyers do",
        people: 12_000,
        seats: 3_000,
        within_seconds: 60.0,
        rate: 40,
        has_room: false,
        profile: LoadProfile::Everything,
        starts: None,
    },
    Scene {
        of: "gate of 40 a second, a provider that lets 12 payments a second start",
        people: 6_000,
        seats: 1_500,
        within_seconds: 40.0,
        rate: 40,
        has_room: false,
        profile: LoadProfile::Paying,
        starts: Some(12),
    },
    Scene {
        of: "room of 20 a second, 6,000 people, 2,000 seats",
        people: 6_000,
        seats: 2_000,
        within_seconds: 25.0,
        rate: 20,
        has_room: true,
        profile: LoadProfile::Paying,
        starts: None,
    },
];

impl Scene {
    fn file(&self) -> Result<SaleFile, Failure> {
        let file = hall(SALE, self.seats, 1)?;
        let gate = GateSettings { rate_per_second: self.rate, ..GateSettings::default() };
        let file = SaleFile { pay_window_seconds: PAY_WINDOW_SECONDS, ..file };
        if !self.has_room {
            return Ok(SaleFile { gate, ..file });
        }
        let room = RoomSettings {
            max_per_second: self.rate,
            show_up_seconds: 120,
            visit_seconds: 120,
            draw_lead_seconds: DRAW_LEAD_SECONDS,
            ..RoomSettings::default()
        };
        let opens_at = Timestamp::now().plus_ms((LEAD_SECONDS * 1_000.0) as i64);
        Ok(SaleFile { opens_at, room: Some(room), ..file })
    }

    fn quotas(&self) -> Quotas {
        let quotas = Quotas::default().warmed(20_000);
        Quotas { payments_per_second: self.starts.unwrap_or(1_000), ..quotas }
    }

    async fn real(&self, engine: &Engine, file: &SaleFile, seed: u64) -> Result<Report, Failure> {
        publish(engine, file).await?;
        let load = Load::Open {
            arrivals: self.people,
            within_seconds: self.within_seconds,
            shape: Shape::Opening,
            connections: CONNECTIONS,
        };
        let options = loadtest::Options {
            url: engine.url().to_owned(),
            sales: vec![SALE.to_owned()],
            load,
            profile: self.profile,
            seed,
            most: MAX_SECONDS,
            may_take_longer: false,
            ledger: None,
            progress: false,
            callback_repeats: CallbackRepeats::default(),
            pages: self.starts.map(|_| Shares { stripe: 1, wechat: 0, alipay: 0 }),
            grace: engine.endpoints().grace(),
            endpoints: Some(engine.endpoints().clone()),
            rehearsal: None,
            crowd: Classes::default(),
        };
        Ok(loadtest::run(&options, Credentials::new(engine.secrets())).await?)
    }

    fn simulated(&self, file: SaleFile, engine: &Engine, seed: u64) -> Result<Run, Failure> {
        let sale = Sale::new(file).map_err(|defects| format!("{defects:?}"))?;
        let crowd = Crowd {
            visitors: self.people,
            within_seconds: self.within_seconds,
            early_seconds: LEAD_SECONDS - f64::from(DRAW_LEAD_SECONDS),
            starts: self.starts.is_some(),
            ..Crowd::of_profile(self.profile)
        };
        let plan = Plan {
            sale,
            sales: 1,
            crowd,
            shape: Shape::Opening,
            grace: engine.endpoints().grace(),
            hours: 1.0,
            seed,
        };
        let Quotas { warm_writes, warm_reads, payments_per_second, .. } = self.quotas();
        // Everything is on this machine: no way to it, and no sandbox.
        let deployment = Deployment {
            warm_writes,
            warm_reads,
            payments_per_second,
            processor_share: 1.0,
            redis_ms: 0.1,
            dynamodb_ms: 1.0,
            sqs_ms: 1.0,
            provider_ms: 2.0,
            provider_calls_per_second: payments_per_second * 4 / 5,
            network_ms: 0.5,
            cold_ms: 0.0,
            ..Deployment::default()
        };
        Ok(simulate(&plan, &deployment, &Costs::kept(&deployment)?, false))
    }
}

/// When a part of the places was paid in a real run, in seconds from the beginning.
fn paid_by(report: &Report, places: u32, part: f64) -> f64 {
    let mut sum = 0;
    let places = f64::from(places) * part;
    let sample = report.series.iter().find(|sample| {
        sum += sample.tickets;
        f64::from(u32::try_from(sum).unwrap_or(u32::MAX)) >= places
    });
    sample.map_or(f64::NAN, |sample| sample.at_seconds)
}

/// Runs every scene on this machine and in the simulation.
///
/// # Errors
/// The engine does not start, or the crowd meets what must not be.
pub async fn check(seed: u64) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    for scene in SCENES {
        let limits = Limits::Aws(scene.quotas());
        let engine = Engine::start(up::Options { limits, ..up::Options::ephemeral() }).await?;
        let file = scene.file()?;
        let real = scene.real(&engine, &file, seed).await;
        let simulated = scene.simulated(file, &engine, seed);
        engine.stop().await?;
        checks.push(compared(&scene, &real?, &simulated?)?);
    }
    Ok(checks)
}

fn compared(scene: &Scene, real: &Report, run: &Run) -> Result<Check, Failure> {
    if real.anomaly_count > 0 {
        return Err(format!("the real run was not as it should be:\n{}", real.tables()).into());
    }
    let opening = if scene.has_room { LEAD_SECONDS } else { 0.0 };
    let requests = |endpoint: &str| real.latency.get(endpoint).map_or(0, |of| of.response.count);
    let at = |what, real: f64, simulated: Option<f64>| Compared {
        what,
        real: real - opening,
        simulated: simulated.unwrap_or(f64::NAN),
        is_time: true,
    };
    let count = |what, real: u64, simulated: f64| Compared {
        what,
        real: real as f64,
        simulated,
        is_time: false,
    };
    let half = paid_by(real, scene.seats, 0.5);
    let nine_tenths = paid_by(real, scene.seats, 0.9);
    // When the very last ticket is paid is chance: whoever is inside may keep it for as long as a visit lasts.
    let nearly_all = paid_by(real, scene.seats, 0.99);
    let asked = requests("token-gate") + requests("waiting-room") + requests("reserve");
    let work = |kinds: &[Action]| kinds.iter().map(|action| run.work[*action as usize]).sum();
    let figures = vec![
        at("half is paid after", half, run.half),
        at("nine tenths are paid after", nine_tenths, run.nine_tenths),
        at("ninety-nine of a hundred are paid after", nearly_all, run.nearly_all),
        count("people let in", real.admissions, run.let_in as f64),
        count("orders", real.orders, run.orders as f64),
        count("orders paid", real.paid, run.paid as f64),
        count(
            "requests to join, to be let in and to order",
            asked,
            work(&[
                Action::Join,
                Action::Admission,
                Action::Entrance,
                Action::NotAdmitted,
                Action::Reservation,
                Action::Refusal,
            ]),
        ),
    ];
    Ok(Check { of: scene.of, figures })
}

impl Check {
    /// True if every figure is near.
    #[must_use]
    pub fn is_near(&self) -> bool {
        self.figures.iter().all(Compared::is_near)
    }

    /// The comparison as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = reporting::table([self.of, "real run", "simulated", "ratio"]);
        for figure in &self.figures {
            let show = |value: f64| match figure.is_time {
                true => time(value),
                false => grouped(value.round().max(0.0) as u64),
            };
            let verdict = if figure.is_near() { "" } else { " (not within 20 %)" };
            table.add_row([
                figure.what.to_owned(),
                show(figure.real),
                show(figure.simulated),
                format!("{:.2}{verdict}", figure.ratio()),
            ]);
        }
        table.to_string()
    }
}
