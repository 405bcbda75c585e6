//! What a sale will take: how long it sells, what people see, what throttles first, what to have raised, and the bill.

use std::time::Instant;

use bench::cost::{Action, Bill, Line, Prices, Usage};
use engine::domain::admission::call_rate::CallRate;
use reporting::grouped;
use serde::Serialize;
use shared::providers::Operation;

use crate::Failure;
use crate::costs::Costs;
use crate::deployment::Deployment;
use crate::meters::{Limit, Met};
use crate::plan::{Crowd, Plan};
use crate::simulation::{Percentiles, Run, simulate};

/// What is kept free of a quota that is to be raised.
const HEADROOM: f64 = 1.25;
/// Nothing is raised beyond this: nobody grants it.
const MAX_RAISED: f64 = 1e9;

/// A limit that refused somebody, or would once those before it are raised, and what it has to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Advice {
    pub limit: Limit,
    /// When it refused first, in seconds from the opening, before it if negative; none if others refuse before it.
    pub first: Option<f64>,
    /// How often it refused.
    pub refused: f64,
    /// What the deployment has.
    pub has: Option<f64>,
    /// The most that is asked of it where nothing refuses.
    pub asked: f64,
    /// What to raise it to; none if nothing does.
    pub raise_to: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Forecast {
    /// Sales like this at once.
    pub sales: u32,
    pub crowd: Crowd,
    pub deployment: Deployment,
    /// What happens on it.
    pub run: Run,
    /// What would happen if nothing refused.
    pub unlimited: Run,
    /// What refuses, the first first.
    pub advice: Vec<Advice>,
    /// What happens once that is raised; none if nothing has to be.
    pub raised: Option<Run>,
    /// The bill of what happens on the deployment.
    pub bill: Bill,
    /// The bill once that is raised.
    pub raised_bill: Option<Bill>,
    /// The currency of the bills.
    pub currency: String,
    /// Time that the simulation took, in seconds.
    pub took_seconds: f64,
}

impl Deployment {
    /// What it has of a limit.
    #[must_use]
    pub fn has(&self, limit: Limit) -> Option<f64> {
        Some(match limit {
            Limit::Edge => self.edge_rate,
            Limit::SignIns => self.sign_ins_per_second,
            Limit::Gateway => self.gateway_rate,
            Limit::Places => self.place_rate.into(),
            Limit::Admissions => self.admission_rate.into(),
            Limit::Orders => self.order_rate.into(),
            Limit::Reads => self.read_rate.into(),
            Limit::Starts => self.rare_rate.into(),
            Limit::Others => self.other_rate.into(),
            Limit::Callbacks => self.callback_entry_rate.into(),
            Limit::Concurrency => self.concurrent_executions.into(),
            Limit::TakeCallback => self.take_callback_concurrency.into(),
            Limit::Writes => self.warm_writes.into(),
            Limit::Reading => self.warm_reads.into(),
            Limit::Provider => self.payments_per_second.into(),
            Limit::Calls => self.provider_calls_per_second.into(),
            Limit::Expiries => self.expire_orders_concurrency.into(),
            Limit::Environments | Limit::Slot => return None,
        })
    }

    /// The same with a limit raised.
    fn raise(&mut self, limit: Limit, to: f64) {
        if self.has(limit).is_none_or(|has| has >= to) {
            return;
        }
        let whole = to.min(f64::from(u32::MAX)) as u32;
        match limit {
            Limit::Edge => self.edge_rate = to,
            Limit::SignIns => self.sign_ins_per_second = to,
            Limit::Gateway => (self.gateway_rate, self.gateway_burst) = (to, to / 2.0),
            Limit::Places => self.place_rate = whole,
            Limit::Admissions => self.admission_rate = whole,
            Limit::Orders => self.order_rate = whole,
            Limit::Reads => self.read_rate = whole,
            Limit::Starts => self.rare_rate = whole,
            Limit::Others => self.other_rate = whole,
            Limit::Callbacks => self.callback_entry_rate = whole,
            Limit::Concurrency => self.concurrent_executions = whole,
            Limit::TakeCallback => self.take_callback_concurrency = whole,
            Limit::Writes => self.warm_writes = whole,
            Limit::Reading => self.warm_reads = whole,
            Limit::Provider => self.payments_per_second = whole,
            Limit::Calls => self.provider_calls_per_second = whole,
            Limit::Expiries => self.expire_orders_concurrency = whole,
            // Environments are the service's own, and a slot is as fast as its node.
            Limit::Environments | Limit::Slot => (),
        }
    }
}

/// The most that a limit can be raised to.
fn most(limit: Limit) -> f64 {
    if limit != Limit::Calls {
        return MAX_RAISED;
    }
    // Starts have more than the setting's number, and no operation has more than the highest.
    let start = Operation::StartPayment.rate(CallRate::DEFAULT).per_second();
    let of_a_call = f64::from(start) / f64::from(CallRate::DEFAULT.per_second());
    f64::from(CallRate::MAX_PER_SECOND) / of_a_call
}

/// Two digits, rounded up: nobody asks for a quota of 13,417.
fn rounded_up(number: f64) -> f64 {
    let unit = 10_f64.powf(number.max(1.0).log10().floor() - 1.0).max(1.0);
    (number / unit).ceil() * unit
}

/// What refused somebody in a run, or would if it were let through to it, the first first.
fn advice(deployment: &Deployment, run: &Run, unlimited: &Run, opens_at: f64) -> Vec<Advice> {
    let each = run.limits.iter().zip(&unlimited.limits);
    let mut advice: Vec<Advice> = each
        .filter_map(|((limit, met), (_, free)): (&(Limit, Met), &(Limit, Met))| {
            let has = deployment.has(*limit);
            let is_short = met.refused > 0.0 || has.is_some_and(|has| free.peak > has);
            // Where a bucket alone was too small, the rate is raised too.
            let raised = |has: f64| rounded_up((free.peak * HEADROOM).max(has * HEADROOM));
            let raise_to = has.filter(|has| *has < most(*limit));
            let raise_to = raise_to.map(|has| raised(has).min(most(*limit)));
            let first = met.first.map(|first| first - opens_at);
            let (refused, asked) = (met.refused, free.peak);
            is_short.then_some(Advice { limit: *limit, first, refused, has, asked, raise_to })
        })
        .collect();
    advice.sort_by(|one, other| {
        let at = |one: &Advice| one.first.unwrap_or(f64::INFINITY);
        at(one).total_cmp(&at(other))
    });
    advice
}

/// Simulates a plan on a deployment, without limits, and on the deployment with what refuses raised.
///
/// # Errors
/// Never, as a test shows: the measurement is compiled in.
pub fn forecast(
    plan: &Plan,
    deployment: &Deployment,
    prices: &Prices,
) -> Result<Forecast, Failure> {
    let begun = Instant::now();
    let costs = Costs::kept(deployment)?;
    let run = simulate(plan, deployment, &costs, false);
    let unlimited = simulate(plan, deployment, &costs, true);
    let opens_at = crate::clock::seconds(crate::visitors::opens_at(plan));
    let mut advice = advice(deployment, &run, &unlimited, opens_at);
    let (mut better, mut raised) = (*deployment, None);
    // What is let through meets others with more of it than without limits: people repeat what was refused.
    while raised.is_none() || advice.iter().any(|one| one.is_more_than(&better)) {
        let before = better;
        for one in &advice {
            better.raise(one.limit, one.raise_to.unwrap_or(0.0));
        }
        if before == better {
            break;
        }
        let again = simulate(plan, &better, &costs, false);
        for (limit, met) in again.limits.iter().filter(|(_, met)| met.refused > 0.0) {
            let Some(has) = better.has(*limit).filter(|has| *has < most(*limit)) else { continue };
            let raise_to = Some(rounded_up(has * 2.0).min(most(*limit)));
            match advice.iter_mut().find(|known| known.limit == *limit) {
                Some(known) => known.raise_to = raise_to,
                None => advice.push(Advice {
                    limit: *limit,
                    first: None,
                    refused: 0.0,
                    has: deployment.has(*limit),
                    asked: met.peak,
                    raise_to,
                }),
            }
        }
        raised = Some(again);
    }
    let bill = |run: &Run| bill(plan, &costs, run, prices);
    Ok(Forecast {
        sales: plan.sales,
        crowd: plan.crowd,
        deployment: *deployment,
        bill: bill(&run),
        raised_bill: raised.as_ref().map(bill),
        run,
        unlimited,
        advice,
        raised,
        currency: prices.currency.clone(),
        took_seconds: begun.elapsed().as_secs_f64(),
    })
}

impl Advice {
    /// True if it says more than a deployment has.
    fn is_more_than(&self, deployment: &Deployment) -> bool {
        self.raise_to.zip(deployment.has(self.limit)).is_some_and(|(to, has)| to > has)
    }
}

/// What a run costs beyond what the deployment costs anyway.
fn bill(plan: &Plan, costs: &Costs, run: &Run, prices: &Prices) -> Bill {
    let each = Action::ALL.into_iter().zip(&run.work);
    let used =
        each.fold(Usage::default(), |sum, (action, times)| sum + costs.of(action).usage * *times);
    let mut lines = used.bill(prices);
    let million = run.edge_requests / 1e6;
    lines.push(Line::new("CloudFront", million, "million requests", prices.edge_requests_million));
    lines.push(Line::new(
        "CloudFront functions",
        million,
        "million calls",
        prices.edge_functions_million,
    ));
    let of = format!("{} tickets, {} people", grouped(run.places), grouped(plan.crowd.visitors));
    Bill::new(of, lines)
}

/// A time for people: milliseconds, seconds, minutes or hours.
#[must_use]
pub fn time(seconds: f64) -> String {
    let magnitude = seconds.abs();
    if magnitude < 1.0 {
        format!("{:.0} ms", seconds * 1_000.0)
    } else if magnitude < 120.0 {
        format!("{seconds:.1} s")
    } else if magnitude < 7_200.0 {
        format!("{:.1} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
}

fn number(number: f64) -> String {
    if number >= 10.0 { grouped(number.round() as u64) } else { format!("{number:.1}") }
}

impl Forecast {
    /// The forecast as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }

    /// The runs that are shown side by side, with their names.
    pub(crate) fn runs(&self) -> Vec<(&'static str, &Run)> {
        let mut runs = vec![("on this deployment", &self.run)];
        if let Some(raised) = &self.raised {
            runs.push(("once raised", raised));
        }
        runs.push(("without limits", &self.unlimited));
        runs
    }

    /// The rows of what happens, each with a figure for each run.
    pub(crate) fn figures(&self) -> Vec<(&'static str, Vec<String>)> {
        type Figure = fn(&Run) -> String;
        fn maybe(at: Option<f64>) -> String {
            at.map_or_else(|| "not within the time".to_owned(), time)
        }
        fn people(of: &Percentiles) -> String {
            if of.count == 0 {
                return "-".to_owned();
            }
            let at = |ms: f64| time(ms / 1_000.0);
            format!("{} / {} / {}", at(of.p50_ms), at(of.p90_ms), at(of.p99_ms))
        }
        let rows: [(&'static str, Figure); 19] = [
            ("half is paid after", |run| maybe(run.half)),
            ("nine tenths are paid after", |run| maybe(run.nine_tenths)),
            ("ninety-nine of a hundred are paid after", |run| maybe(run.nearly_all)),
            ("everything is paid after", |run| maybe(run.sold_out)),
            ("tickets paid", |run| format!("{} of {}", grouped(run.sold), grouped(run.places))),
            ("people who came", |run| grouped(run.came)),
            ("gave up: refused again and again", |run| grouped(run.turned_away)),
            ("let in", |run| grouped(run.let_in)),
            ("only looked, in their turn", |run| grouped(run.only_looked)),
            ("orders", |run| grouped(run.orders)),
            ("orders cancelled, given up", |run| {
                format!("{}, {}", grouped(run.cancelled), grouped(run.expired))
            }),
            ("orders given back meanwhile, refunded", |run| {
                format!("{}, {}", grouped(run.given_back), grouped(run.refunded))
            }),
            ("requests at the edge", |run| number(run.edge_requests)),
            ("requests of the API", |run| number(run.api_requests)),
            ("wait for the turn, p50 / p90 / p99", |run| people(&run.wait)),
            ("turn to order, p50 / p90 / p99", |run| people(&run.to_order)),
            ("a reservation, p50 / p90 / p99", |run| people(&run.reservation)),
            ("order to paid, p50 / p90 / p99", |run| people(&run.to_paid)),
            ("events, people a buyer stands for", |run| {
                format!("{}, {}", grouped(run.events), run.weight)
            }),
        ];
        rows.iter()
            .map(|(name, of)| (*name, self.runs().iter().map(|(_, run)| of(run)).collect()))
            .collect()
    }

    /// The forecast as tables.
    #[must_use]
    pub fn tables(&self) -> String {
        let names = self.runs().into_iter().map(|(name, _)| name);
        let mut what = reporting::table(std::iter::once("").chain(names).collect::<Vec<_>>());
        for (name, figures) in self.figures() {
            what.add_row(std::iter::once(name.to_owned()).chain(figures));
        }
        let mut raise = reporting::table([
            "throttles, the first first",
            "at",
            "refused",
            "has",
            "asked for",
            "raise to",
        ]);
        for one in &self.advice {
            let (name, unit, setting) = one.limit.row();
            raise.add_row([
                name.to_owned(),
                one.first.map_or_else(|| "behind these".to_owned(), time),
                number(one.refused),
                one.has.map_or_else(|| "-".to_owned(), number),
                format!("{} {unit}", number(one.asked)),
                match (one.raise_to, setting) {
                    (Some(to), Some(setting)) => format!("{setting} {}", number(to)),
                    _ => "nothing raises it".to_owned(),
                },
            ]);
        }
        let raise =
            if self.advice.is_empty() { "nothing throttles".to_owned() } else { raise.to_string() };
        let bills = [Some(&self.bill), self.raised_bill.as_ref()].into_iter().flatten();
        let bills: Vec<String> = bills.map(|bill| bill.table(&self.currency)).collect();
        format!(
            "{what}\n\n{raise}\n\n{}\nsimulated in {:.1} s; docs/capacity.md says what is modelled and what is assumed",
            bills.join("\n\n"),
            self.took_seconds
        )
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use engine::domain::payment::grace::Grace;
    use engine::domain::sale::Sale;
    use loadtest::arrivals::Shape;
    use serde_json::{Value, json};

    use super::*;

    /// A hall of so many seats; with a room unless its settings are null.
    pub(crate) fn hall(seats: u32, room: Value) -> Sale {
        let mut file = json!({
            "sale": "hall", "title": "Hall", "currency": "EUR",
            "opens_at": "2026-01-01T10:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 600,
            "tiers": [{"tier": "a", "name": "A", "price_minor": 5000, "general_admission": seats}],
        });
        if !room.is_null() {
            file["room"] = room;
        }
        Sale::new(serde_json::from_value(file).unwrap()).unwrap()
    }

    pub(crate) fn plan(seats: u32, visitors: u64, room: Value) -> Plan {
        Plan {
            sale: hall(seats, room),
            sales: 1,
            crowd: Crowd { visitors, ..Crowd::default() },
            shape: Shape::Opening,
            grace: Grace::DEFAULT,
            hours: 24.0,
            seed: 7,
        }
    }

    fn of(plan: &Plan, deployment: &Deployment) -> Forecast {
        forecast(plan, deployment, &Prices::published().unwrap()).unwrap()
    }

    #[test]
    fn the_same_seed_is_the_same_run_and_nothing_is_oversold() {
        for room in [Value::Null, json!({})] {
            let plan = plan(3_000, 20_000, room);
            let costs = Costs::kept(&Deployment::default()).unwrap();
            let run = || simulate(&plan, &Deployment::default(), &costs, true);
            let (one, other) = (run(), run());
            assert_eq!(serde_json::to_value(&one).unwrap(), serde_json::to_value(&other).unwrap());
            assert_eq!((one.sold, one.came), (3_000, 20_000), "{one:?}");
            assert!(one.sold_out.is_some() && one.turned_away == 0, "{one:?}");
            assert!(one.half <= one.nine_tenths && one.nine_tenths <= one.sold_out);
            assert!(one.orders >= one.paid + one.cancelled + one.expired);
        }
    }

    #[test]
    fn what_throttles_is_named_the_first_first_and_raised_it_throttles_no_more() {
        let plan = plan(20_000, 500_000, json!({}));
        let forecast = of(&plan, &Deployment::default());
        let named: Vec<Limit> = forecast.advice.iter().map(|one| one.limit).collect();
        assert_eq!(named.first(), Some(&Limit::SignIns), "120 a second for half a million people");
        assert!(named.contains(&Limit::Provider), "{named:?}");
        let raised = forecast.raised.as_ref().unwrap();
        assert!(raised.turned_away < forecast.run.turned_away / 100, "{}", forecast.tables());
        assert!(raised.sold_out.is_some(), "{}", forecast.tables());
        assert!(forecast.bill.total > 0.0);
    }

    #[test]
    fn what_is_given_back_is_free_again_and_refunded_and_paid_for() {
        let mut plan = plan(1_000, 20_000, json!({}));
        let costs = Costs::kept(&Deployment::default()).unwrap();
        let kept = simulate(&plan, &Deployment::default(), &costs, true);
        let times = |run: &Run, action: Action| run.work[action as usize];
        assert!(times(&kept, Action::GivingBack) < times(&kept, Action::Payment) / 20.0);
        plan.crowd.gives_back = 0.3;
        plan.crowd.gives_back_within_seconds = 120.0;
        for unlimited in [true, false] {
            let run = simulate(&plan, &Deployment::default(), &costs, unlimited);
            assert_eq!(run.sold, 1_000, "{run:?}");
            assert!(run.paid > kept.paid + run.given_back / 2, "sold once more: {run:?}");
            assert!(run.given_back > 100, "{run:?}");
            assert!(run.given_back - run.refunded < 10, "no money waits: {run:?}");
            // Those too that are given back after all is sold.
            let share = times(&run, Action::GivingBack) / run.paid as f64;
            assert!((0.2..0.4).contains(&share), "{share}");
        }
    }

    #[test]
    fn a_quarter_who_look_for_four_minutes_and_never_order_do_not_keep_the_seats() {
        let mut plan = plan(3_000, 20_000, json!({}));
        let costs = Costs::kept(&Deployment::default()).unwrap();
        let without = simulate(&plan, &Deployment::default(), &costs, true);
        assert_eq!(without.only_looked, 0);
        plan.crowd.never_orders = 0.25;
        let run = simulate(&plan, &Deployment::default(), &costs, true);
        assert_eq!(run.sold, 3_000, "{run:?}");
        let share = run.only_looked as f64 / (run.only_looked + run.let_in) as f64;
        assert!((0.2..0.3).contains(&share), "{share}");
        // The room serves more while it learns their share, and waits for the last of them.
        let times = |run: &Run| [run.half, run.nearly_all].map(Option::unwrap);
        let ([half, end], [half_without, end_without]) = (times(&run), times(&without));
        assert!(half < 1.25 * half_without, "{half} s, {half_without} s");
        assert!(end < 2.0 * end_without, "{end} s, {end_without} s");
    }

    #[test]
    fn nothing_is_raised_beyond_what_the_engine_can_be_set_to() {
        let plan = Plan { sales: 300, ..plan(1_000, 600_000, json!({})) };
        let forecast = of(&plan, &Deployment::default());
        let calls = forecast.advice.iter().find(|one| one.limit == Limit::Calls).unwrap();
        // Ten thousand starts a second, of which a call of the setting is five quarters.
        assert_eq!(calls.raise_to, Some(8_000.0), "{calls:?}");
        assert!(calls.asked > 8_000.0, "{calls:?}");
        let raised = forecast.raised.unwrap();
        assert!(raised.sold > raised.places * 9 / 10, "{raised:?}");
    }

    #[test]
    fn a_small_sale_on_a_large_account_is_not_throttled() {
        let mut plan = plan(500, 1_000, json!({}));
        plan.crowd.signing_in = 0.0;
        let large = Deployment {
            payments_per_second: 1_000,
            provider_calls_per_second: 800,
            ..Deployment::default()
        };
        let forecast = of(&plan, &large);
        assert_eq!(forecast.advice, [], "{}", forecast.tables());
        assert!(forecast.raised.is_none());
    }

    #[test]
    fn a_quota_is_asked_for_in_round_numbers() {
        for (number, expected) in [(7.0, 7.0), (99.1, 100.0), (120.5, 130.0), (13_417.0, 14_000.0)]
        {
            assert_eq!(rounded_up(number), expected);
        }
    }
}
