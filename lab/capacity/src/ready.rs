//! `onsale ready`: what is missing before an on-sale. A pure function of what was found out: each check has a verdict
//! and the page of the runbook that says what to do.

use std::collections::BTreeMap;

use engine::domain::basics::time::Timestamp;
use engine::domain::sale::{AttendeeRule, Sale, SaleState};
use serde::{Deserialize, Serialize};

use crate::endpoints::{Endpoints, Found};
use crate::forecast::{Advice, Forecast, time};
use crate::meters::Limit;

/// The template, whose alarms a deployment has.
const TEMPLATE: &str = include_str!("../../../template.yaml");
/// A clock that is off by more is said, and by ten times as much is wrong, in milliseconds.
const CLOCK_MS: i64 = 100;
/// Messages that may wait: the schedule's own come and go.
const FEW_MESSAGES: u64 = 100;
/// People whom the draw of one window has time for in its lead (docs/waiting-room.md), for each two minutes.
const DRAWN_IN_LEAD: u64 = 1_000_000;

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Pass,
    /// It will do, or is not known.
    Warn,
    /// The sale would suffer.
    Fail,
}

impl Verdict {
    /// The word of a report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// One check, and what it found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub verdict: Verdict,
    /// What was found, in words.
    pub what: String,
    /// The page that says what to do.
    pub page: String,
}

/// An alarm, as `aws cloudwatch describe-alarms` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Alarm {
    pub alarm_name: String,
    /// Whether it tells anybody.
    pub actions_enabled: bool,
    #[serde(default)]
    pub alarm_actions: Vec<String>,
    /// `OK`, `ALARM` or `INSUFFICIENT_DATA`.
    pub state_value: String,
}

/// What `aws cloudwatch describe-alarms` prints, as far as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Alarms {
    /// Alarms of one metric, or of an expression.
    pub metric_alarms: Vec<Alarm>,
}

/// Where the sale is in the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InStores {
    /// Whether it is archived, or being archived.
    pub is_over: bool,
    /// Inventories that Redis has as they were loaded last, and all that there are.
    pub loaded: (usize, usize),
}

/// The keys and secrets that a deployment has, by what they are for: how many of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keys {
    pub admission: usize,
    pub attendees: usize,
    pub tickets: usize,
    pub challenges: usize,
    pub edge: usize,
    /// Payment providers that can be asked, accounts of merchants included.
    pub providers: usize,
    pub callbacks: usize,
}

/// What was found out of a deployment.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The sale as it is published; none if it is not.
    pub sale: Option<&'a Sale>,
    /// Where it is in the stores.
    pub stores: Option<InStores>,
    pub now: Timestamp,
    /// Clocks by name, and by how many milliseconds each is ahead of the one here.
    pub clocks: Vec<(&'static str, i64)>,
    /// Queues by name: messages that wait, and dead letters.
    pub queues: BTreeMap<&'static str, (u64, u64)>,
    /// Orders and refunds that are past their bound.
    pub stuck: usize,
    pub keys: Keys,
    /// The alarms; none if nobody said.
    pub alarms: Option<Alarms>,
    /// The webhook endpoints at Stripe; none if nobody said.
    pub endpoints: Option<Endpoints>,
    /// Whether Stripe is one of the providers.
    pub has_stripe: bool,
    /// Whether the beacon that decides the draw of the sale's room gives rounds, or why it does not; none if no beacon
    /// decides one.
    pub beacon: Option<Result<(), String>>,
    /// What the simulation says; none without a sale.
    pub forecast: Option<&'a Forecast>,
}

/// The template's alarms: their names without the prefix of their stage, and the pages that their descriptions name.
fn template_alarms() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut lines = TEMPLATE.lines().map(str::trim);
    std::iter::from_fn(move || {
        let name = lines.find_map(|line| {
            line.strip_prefix("AlarmName: !Sub \"${Stage}-onsale-")?.strip_suffix('"')
        })?;
        let page = lines.next()?.rsplit_once("docs/")?.1.strip_suffix('"')?;
        Some((name, page))
    })
}

/// Findings, one after the other.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn say(&mut self, check: &'static str, verdict: Verdict, what: impl Into<String>, page: &str) {
        self.0.push(Finding { check, verdict, what: what.into(), page: format!("docs/{page}") });
    }

    fn unless(
        &mut self,
        check: &'static str,
        is_well: bool,
        otherwise: Verdict,
        what: impl Into<String>,
        page: &str,
    ) {
        self.say(check, if is_well { Verdict::Pass } else { otherwise }, what, page);
    }
}

/// Every check, in the order in which one would set a sale up.
#[must_use]
pub fn assess(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = Findings::default();
    the_sale(facts, &mut findings);
    keys(facts, &mut findings);
    clocks(facts, &mut findings);
    beacon(facts, &mut findings);
    queues(facts, &mut findings);
    alarms(facts, &mut findings);
    if facts.has_stripe {
        endpoints(facts, &mut findings);
    }
    if let Some(forecast) = facts.forecast {
        quotas(forecast, &mut findings);
        settings(forecast, &mut findings);
    }
    findings.0
}

fn beacon(facts: &Facts<'_>, findings: &mut Findings) {
    let (lives, what) = match &facts.beacon {
        None => return,
        Some(Ok(())) => (true, "the beacon of the draw gives its rounds".to_owned()),
        Some(Err(why)) => (false, format!("the beacon of the draw gives no round: {why}")),
    };
    findings.unless("beacon", lives, Verdict::Warn, what, "runbook.md#draws-late");
}

fn the_sale(facts: &Facts<'_>, findings: &mut Findings) {
    let Some((sale, stores)) = facts.sale.zip(facts.stores) else {
        return findings.say("sale", Verdict::Fail, "it is not published", "sale-file.md");
    };
    let file = sale.file();
    let is_on = !stores.is_over && file.state == SaleState::Open && facts.now < sale.sells_until();
    let opens_in = file.opens_at.ms_since(facts.now) as f64 / 1_000.0;
    let when =
        if opens_in > 0.0 { format!("opens in {}", time(opens_in)) } else { "is open".to_owned() };
    let what = if is_on {
        format!("it is published and {when}")
    } else {
        "it is cancelled, over or archived".to_owned()
    };
    findings.unless("sale", is_on, Verdict::Fail, what, "sale-file.md");
    let (loaded, all) = stores.loaded;
    let what = format!("{loaded} of {all} inventories are loaded");
    findings.unless("cache", loaded == all, Verdict::Fail, what, "runbook.md#sales-reloaded");
    let Some(room) = sale.room() else {
        let people = facts.forecast.map_or(0, |forecast| forecast.crowd.visitors);
        let is_small = people <= 10 * sale.seat_legs();
        let what = if is_small {
            "no waiting room, and none is needed"
        } else {
            "no waiting room: whoever asks fastest is let in"
        };
        return findings.unless("waiting room", is_small, Verdict::Warn, what, "waiting-room.md");
    };
    let lead_ms = room.opens_at_ms.saturating_sub(room.closes_at_ms);
    let has_time = opens_in <= 0.0 || facts.now.ms() < room.closes_at_ms;
    let what = format!("the draw closes {} before the opening", time(lead_ms as f64 / 1_000.0));
    findings.unless("draw", has_time, Verdict::Warn, what, "runbook.md#draws-late");
    if let Some(forecast) = facts.forecast {
        let early = (forecast.crowd.visitors as f64 * forecast.crowd.early) as u64
            / u64::from(forecast.sales.max(1));
        let drawn = DRAWN_IN_LEAD * u64::try_from(lead_ms / 120_000).unwrap_or(0).max(1);
        let what = format!("{} people for the first draw", reporting::grouped(early));
        findings.unless("draw's time", early <= drawn, Verdict::Warn, what, "waiting-room.md");
        let provider = forecast.deployment.payments_per_second;
        let is_bound = !forecast.crowd.starts
            || room.max_per_second <= provider
            || room.provider_per_second.is_some_and(|bound| bound <= provider);
        let what = match room.provider_per_second {
            Some(bound) => {
                format!("it is bound to the {bound} payments a second that the sale says")
            }
            None => format!(
                "it serves {} a second, the provider lets {provider} start",
                room.max_per_second
            ),
        };
        findings.unless(
            "room's rate",
            is_bound,
            Verdict::Warn,
            what,
            "sale-file.md#the-waiting-room",
        );
    }
}

fn keys(facts: &Facts<'_>, findings: &mut Findings) {
    let Keys { admission, attendees, tickets, challenges, edge, providers, callbacks } = facts.keys;
    let file = facts.sale.map(Sale::file);
    let takes_names = file.is_some_and(|file| file.attendees == AttendeeRule::Required);
    let asks = file.is_some_and(|file| file.challenges.is_some());
    let needed = [
        ("keys of admissions", admission, true),
        ("keys of attendees", attendees, takes_names),
        ("keys of tickets", tickets, true),
        ("keys of challenges", challenges, asks),
        ("payment providers", providers, true),
        ("secrets of callbacks", callbacks, true),
    ];
    for (check, count, is_needed) in needed {
        if is_needed {
            let what = if count == 0 { "there is none".to_owned() } else { format!("{count}") };
            findings.unless(check, count > 0, Verdict::Fail, what, "configuration.md");
        }
    }
    let what = if edge == 0 {
        "requests may come past the distribution"
    } else {
        "the API is behind the distribution"
    };
    findings.unless("edge", edge > 0, Verdict::Warn, what, "edge.md");
}

fn clocks(facts: &Facts<'_>, findings: &mut Findings) {
    for (name, ahead_ms) in &facts.clocks {
        let off = ahead_ms.abs();
        let verdict = match off {
            small if small <= CLOCK_MS => Verdict::Pass,
            some if some <= CLOCK_MS * 10 => Verdict::Warn,
            _ => Verdict::Fail,
        };
        let what = format!(
            "that of {name} is {off} ms {}",
            if *ahead_ms < 0 { "behind" } else { "ahead" }
        );
        findings.say("clock", verdict, what, "waiting-room.md");
    }
}

fn queues(facts: &Facts<'_>, findings: &mut Findings) {
    let full: Vec<String> = facts
        .queues
        .iter()
        .filter(|(_, (waiting, _))| *waiting > FEW_MESSAGES)
        .map(|(name, (waiting, _))| format!("{name} has {}", reporting::grouped(*waiting)))
        .collect();
    let what = if full.is_empty() { "all are nearly empty".to_owned() } else { full.join(", ") };
    findings.unless("queues", full.is_empty(), Verdict::Warn, what, "runbook.md#queue-backlog");
    let dead: Vec<String> = facts
        .queues
        .iter()
        .filter(|(_, (_, dead))| *dead > 0)
        .map(|(name, (_, dead))| format!("{name} has {dead}"))
        .collect();
    let what = if dead.is_empty() { "none".to_owned() } else { dead.join(", ") };
    findings.unless(
        "dead letters",
        dead.is_empty(),
        Verdict::Fail,
        what,
        "runbook.md#dead-letters",
    );
    let what = match facts.stuck {
        0 => "nothing is past its bound".to_owned(),
        count => format!("{count} orders or refunds are past their bound"),
    };
    findings.unless(
        "stuck",
        facts.stuck == 0,
        Verdict::Fail,
        what,
        "runbook.md#pending-past-bound",
    );
}

fn endpoints(facts: &Facts<'_>, findings: &mut Findings) {
    const CHECK: &str = "webhook endpoint";
    const PAGE: &str = "payments.md#where-callbacks-go";
    let Some(endpoints) = &facts.endpoints else {
        let what = "not known: give --endpoints what `stripe webhook_endpoints list` prints";
        return findings.say(CHECK, Verdict::Warn, what, PAGE);
    };
    match endpoints.look() {
        Found::Good => findings.say(CHECK, Verdict::Pass, "sends all that is read", PAGE),
        Found::Odd(what) => findings.say(CHECK, Verdict::Warn, what, PAGE),
        Found::Bad(what) => findings.say(CHECK, Verdict::Fail, what, PAGE),
    }
}

fn alarms(facts: &Facts<'_>, findings: &mut Findings) {
    let Some(alarms) = &facts.alarms else {
        let what = "not known: give --alarms what `aws cloudwatch describe-alarms` prints";
        return findings.say("alarms", Verdict::Warn, what, "metrics.md");
    };
    let mut all = 0;
    for (name, page) in template_alarms() {
        all += 1;
        let is_it = |alarm: &&Alarm| {
            let rest = alarm.alarm_name.strip_suffix(name);
            rest.is_some_and(|rest| rest.ends_with("-onsale-"))
        };
        match alarms.metric_alarms.iter().find(is_it) {
            None => findings.say("alarms", Verdict::Fail, format!("{name} is not there"), page),
            Some(alarm) if !alarm.actions_enabled || alarm.alarm_actions.is_empty() => {
                findings.say("alarms", Verdict::Fail, format!("{name} tells nobody"), page);
            }
            Some(alarm) if alarm.state_value == "ALARM" => {
                findings.say("alarms", Verdict::Fail, format!("{name} is in alarm"), page);
            }
            Some(_) => {}
        }
    }
    if !findings.0.iter().any(|finding| finding.check == "alarms") {
        findings.say(
            "alarms",
            Verdict::Pass,
            format!("all {all} are armed, none is in alarm"),
            "metrics.md",
        );
    }
}

/// The section of the runbook for a limit.
fn page_of(limit: Limit) -> &'static str {
    match limit {
        Limit::Edge => "runbook.md#edge-errors",
        Limit::Concurrency | Limit::TakeCallback | Limit::Expiries | Limit::Environments => {
            "runbook.md#function-throttles"
        }
        Limit::Slot => "runbook.md#cache-throttles",
        Limit::Writes | Limit::Reading => "runbook.md#table-throttles",
        Limit::SignIns
        | Limit::Gateway
        | Limit::Places
        | Limit::Admissions
        | Limit::Orders
        | Limit::Reads
        | Limit::Starts
        | Limit::Others
        | Limit::Callbacks
        | Limit::Provider => "limits.md",
        Limit::Calls => "payments.md#calls-are-limited",
    }
}

fn quotas(forecast: &Forecast, findings: &mut Findings) {
    for Advice { limit, first, refused, has, asked, raise_to } in &forecast.advice {
        let (name, unit, setting) = limit.row();
        let verdict = if *refused > 0.0 { Verdict::Fail } else { Verdict::Warn };
        let has = has.map_or_else(String::new, |has| format!(" of {has:.0}"));
        let when = first.map_or_else(
            || "once what is before it is raised".to_owned(),
            |at| format!("from {}", time(at)),
        );
        let then = match (setting, raise_to) {
            (Some(setting), Some(to)) => format!("; raise {setting} to {to:.0}"),
            _ => String::new(),
        };
        let what = format!("{name}: {asked:.0}{has} {unit} {when}{then}");
        findings.say("quota", verdict, what, page_of(*limit));
    }
    if forecast.advice.is_empty() {
        findings.say("quota", Verdict::Pass, "nothing throttles", "capacity.md");
    }
    let run = forecast.raised.as_ref().unwrap_or(&forecast.run);
    let what = match run.sold_out {
        Some(after) => {
            format!("everything is paid {} after the opening, once that is raised", time(after))
        }
        None => format!("{} of {} tickets are paid in the time", run.sold, run.places),
    };
    findings.unless("simulation", run.sold_out.is_some(), Verdict::Warn, what, "capacity.md");
}

fn settings(forecast: &Forecast, findings: &mut Findings) {
    let deployment = &forecast.deployment;
    let busy = forecast.unlimited.limits.iter().find(|(limit, _)| *limit == Limit::Concurrency);
    let needed = busy.map_or(0.0, |(_, met)| met.peak).ceil();
    let is_warm = f64::from(deployment.warm_environments) >= needed;
    let what = format!(
        "{} environments are kept warm, {needed:.0} are at work at the peak",
        deployment.warm_environments
    );
    findings.unless("warm functions", is_warm, Verdict::Warn, what, "runbook.md#cold-starts");
    // An environment takes ten requests a second.
    let carried = deployment.take_callback_concurrency * 10;
    let what = format!(
        "{} environments for {} callbacks a second: ten each",
        deployment.take_callback_concurrency, deployment.callback_entry_rate
    );
    let is_enough = carried >= deployment.callback_entry_rate;
    findings.unless(
        "take-callback",
        is_enough,
        Verdict::Fail,
        what,
        "runbook.md#function-throttles",
    );
}

/// The worst of the verdicts.
#[must_use]
pub fn worst(findings: &[Finding]) -> Verdict {
    findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Pass)
}

#[cfg(test)]
mod tests {
    use bench::cost::Prices;
    use engine::domain::payment::grace::Grace;
    use loadtest::arrivals::Shape;
    use serde_json::{Value, json};

    use super::*;
    use crate::deployment::Deployment;
    use crate::forecast::{forecast, tests::hall};
    use crate::plan::{Crowd, Plan};

    const RUNBOOK: &str = include_str!("../../../docs/runbook.md");

    fn simulated(sale: &Sale, deployment: &Deployment) -> Forecast {
        let crowd = Crowd { visitors: 20_000, within_seconds: 120.0, ..Crowd::default() };
        let plan = Plan {
            sale: sale.clone(),
            sales: 1,
            crowd,
            shape: Shape::Opening,
            grace: Grace::DEFAULT,
            hours: 24.0,
            seed: 7,
        };
        forecast(&plan, deployment, &Prices::published().unwrap()).unwrap()
    }

    fn all_armed() -> Vec<Alarm> {
        let alarm = |name: &str| Alarm {
            alarm_name: format!("prod-onsale-{name}"),
            actions_enabled: true,
            alarm_actions: vec!["arn:aws:sns:eu-west-1:1:alarms".to_owned()],
            state_value: "OK".to_owned(),
        };
        template_alarms().map(|(name, _)| alarm(name)).collect()
    }

    /// A deployment that is large enough for the sale.
    fn ample() -> Deployment {
        Deployment {
            sign_ins_per_second: 10_000.0,
            payments_per_second: 1_000,
            provider_calls_per_second: 800,
            rare_rate: 1_000,
            other_rate: 1_000,
            warm_writes: 40_000,
            warm_environments: 1_000,
            ..Deployment::default()
        }
    }

    fn facts<'a>(sale: &'a Sale, forecast: &'a Forecast) -> Facts<'a> {
        Facts {
            sale: Some(sale),
            stores: Some(InStores { is_over: false, loaded: (1, 1) }),
            now: sale.file().opens_at.plus_seconds(-3_600),
            clocks: vec![("Redis", 3)],
            queues: BTreeMap::from([("expiry", (2, 0)), ("sync", (0, 0))]),
            stuck: 0,
            keys: Keys {
                admission: 1,
                attendees: 1,
                tickets: 1,
                challenges: 1,
                edge: 1,
                providers: 1,
                callbacks: 1,
            },
            alarms: Some(Alarms { metric_alarms: all_armed() }),
            endpoints: None,
            has_stripe: false,
            beacon: None,
            forecast: Some(forecast),
        }
    }

    fn not_passed(facts: &Facts<'_>) -> Vec<(&'static str, String)> {
        let findings = assess(facts).into_iter().filter(|one| one.verdict != Verdict::Pass);
        findings.map(|one| (one.check, one.what)).collect()
    }

    #[test]
    fn a_deployment_that_lacks_nothing_passes_every_check() {
        let sale = hall(3_000, json!({}));
        let forecast = simulated(&sale, &ample());
        let facts = facts(&sale, &forecast);
        assert_eq!(not_passed(&facts), []);
        assert_eq!(worst(&assess(&facts)), Verdict::Pass);
    }

    /// Eleven shortcomings, each planted alone: each is named, and nothing else is.
    #[test]
    fn each_of_eleven_planted_shortcomings_is_named() {
        let sale = hall(3_000, json!({}));
        let good = simulated(&sale, &ample());
        let with = |change: fn(&mut Deployment)| {
            let mut deployment = ample();
            change(&mut deployment);
            simulated(&sale, &deployment)
        };
        let sign_ins = with(|it| it.sign_ins_per_second = 20.0);
        let provider = with(|it| it.payments_per_second = 25);
        let rare = with(|it| it.rare_rate = 50);
        let taking = with(|it| it.take_callback_concurrency = 60);
        let cold = with(|it| it.warm_environments = 0);
        let plain = || facts(&sale, &good);
        let mut disarmed = all_armed();
        disarmed[5].actions_enabled = false;
        let planted: Vec<(Facts<'_>, &str, &str)> = vec![
            (Facts { forecast: Some(&sign_ins), ..plain() }, "quota", "sign_ins_per_second"),
            (Facts { forecast: Some(&provider), ..plain() }, "quota", "payments_per_second"),
            (Facts { forecast: Some(&rare), ..plain() }, "quota", "rare_rate"),
            (Facts { forecast: Some(&taking), ..plain() }, "take-callback", "60 environments"),
            (Facts { forecast: Some(&cold), ..plain() }, "warm functions", "0 environments"),
            (
                Facts { stores: Some(InStores { is_over: false, loaded: (0, 1) }), ..plain() },
                "cache",
                "0 of 1 inventories",
            ),
            (Facts { clocks: vec![("Redis", -3_000)], ..plain() }, "clock", "3000 ms behind"),
            (
                Facts { keys: Keys { tickets: 0, ..plain().keys }, ..plain() },
                "keys of tickets",
                "there is none",
            ),
            (
                Facts { queues: BTreeMap::from([("sync", (0, 2))]), ..plain() },
                "dead letters",
                "sync has 2",
            ),
            (
                Facts { alarms: Some(Alarms { metric_alarms: disarmed }), ..plain() },
                "alarms",
                "tells nobody",
            ),
            (
                Facts { endpoints: Some(Endpoints::default()), has_stripe: true, ..plain() },
                "webhook endpoint",
                "no endpoint",
            ),
        ];
        assert_eq!(planted.len(), 11);
        for (facts, check, expected) in planted {
            let found = not_passed(&facts);
            assert!(
                found.iter().any(|(of, what)| *of == check && what.contains(expected)),
                "{check}: {expected}: {found:?}"
            );
            // A provider that is slower than the room is named as what it is, and as what bounds the room.
            assert!(found.len() <= 2, "{check}: {found:?}");
        }
    }

    #[test]
    fn a_sale_that_is_not_there_is_all_that_is_said_of_it() {
        let facts = Facts {
            sale: None,
            stores: None,
            now: Timestamp::from_ms(0),
            clocks: Vec::new(),
            queues: BTreeMap::new(),
            stuck: 1,
            keys: Keys::default(),
            alarms: None,
            endpoints: None,
            has_stripe: true,
            beacon: Some(Err("it is silent".to_owned())),
            forecast: None,
        };
        let found = not_passed(&facts);
        let checks: Vec<&str> = found.iter().map(|(check, _)| *check).collect();
        let expected = [
            "sale",
            "keys of admissions",
            "keys of tickets",
            "payment providers",
            "secrets of callbacks",
            "edge",
            "beacon",
            "stuck",
            "alarms",
            "webhook endpoint",
        ];
        assert_eq!(checks, expected);
        assert_eq!(worst(&assess(&facts)), Verdict::Fail);
        let no_room = hall(3_000, Value::Null);
        let forecast = simulated(&no_room, &ample());
        let facts = self::facts(&no_room, &forecast);
        assert!(not_passed(&Facts { ..facts }).len() <= 2);
    }

    #[test]
    fn every_alarm_and_every_limit_has_a_page_in_the_runbook() {
        let is_there = |section: &str| RUNBOOK.lines().any(|line| line == format!("## {section}"));
        let named = TEMPLATE.matches("AlarmName:").count();
        assert_eq!(template_alarms().count(), named);
        for (alarm, page) in template_alarms() {
            assert!(page.strip_prefix("runbook.md#").is_some_and(is_there), "{alarm}");
        }
        for limit in Limit::ALL {
            if let Some(section) = page_of(limit).strip_prefix("runbook.md#") {
                assert!(is_there(section), "{limit:?}");
            }
        }
    }
}
