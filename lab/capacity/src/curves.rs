//! Curves: how a sale goes for crowds and numbers of sales that no machine can play.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bench::cost::Prices;
use reporting::grouped;
use serde::Serialize;

use crate::Failure;
use crate::deployment::Deployment;
use crate::forecast::{Forecast, forecast, time};
use crate::plan::{Crowd, Plan};
use crate::simulation::Run;

/// Crowds: from a hundred thousand to a hundred million.
const CROWDS: [u64; 7] =
    [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000];
/// Numbers of sales at once.
const SALES: [u32; 4] = [1, 10, 100, 1_000];

/// One point of the curves.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    pub visitors: u64,
    pub sales: u32,
    pub forecast: Forecast,
}

#[derive(Debug, Clone, Serialize)]
pub struct Curves {
    /// The longest that was simulated after the opening, in hours.
    pub hours: f64,
    /// One sale, and ever more people.
    pub crowds: Vec<Point>,
    /// As many people for each sale, and ever more sales.
    pub sales: Vec<Point>,
}

impl Point {
    /// That it is made, in a line.
    #[must_use]
    pub fn line(&self) -> String {
        let (people, sales) = (grouped(self.visitors), grouped(self.sales.into()));
        let took = time(self.forecast.took_seconds);
        format!("{people} people, {sales} sales at once: simulated in {took}")
    }

    /// The run on the deployment with what throttles raised.
    #[must_use]
    pub fn best(&self) -> &Run {
        self.forecast.raised.as_ref().unwrap_or(&self.forecast.run)
    }
}

/// Makes the curves of a plan: its sale for every crowd, and its own crowd and sale many times at once, the seats of
/// the sale as they are. As many points at a time as there are processors; each is told of when it is made.
///
/// # Errors
/// As [`forecast`].
pub fn curves(
    plan: &Plan,
    deployment: &Deployment,
    prices: &Prices,
    told: impl Fn(&Point) + Sync,
) -> Result<Curves, Failure> {
    let crowds = CROWDS.into_iter().map(|visitors| (visitors, 1));
    let many = SALES.into_iter().map(|sales| (plan.crowd.visitors * u64::from(sales), sales));
    let asked: Vec<(u64, u32)> = crowds.chain(many).collect();
    let point = |(visitors, sales): (u64, u32)| -> Result<Point, Failure> {
        let crowd = Crowd { visitors, ..plan.crowd };
        let plan = Plan { crowd, sales, ..plan.clone() };
        let point = Point { visitors, sales, forecast: forecast(&plan, deployment, prices)? };
        told(&point);
        Ok(point)
    };
    // The last ones of either curve take the longest: they are begun first.
    let taken = AtomicUsize::new(0);
    let next = || asked.len().checked_sub(1 + taken.fetch_add(1, Ordering::Relaxed));
    let work = || -> Result<Vec<(usize, Point)>, Failure> {
        let mut made = Vec::new();
        while let Some(index) = next() {
            made.push((index, point(asked[index])?));
        }
        Ok(made)
    };
    let mut made = Vec::with_capacity(asked.len());
    thread::scope(|scope| -> Result<(), Failure> {
        let count = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            made.extend(worker.join().map_err(|_panic| "a simulation broke off")??);
        }
        Ok(())
    })?;
    made.sort_by_key(|(index, _)| *index);
    let mut points = made.into_iter().map(|(_, point)| point);
    let crowds = points.by_ref().take(CROWDS.len()).collect();
    Ok(Curves { hours: plan.hours, crowds, sales: points.collect() })
}

impl Curves {
    /// The curves as a table.
    #[must_use]
    pub fn tables(&self) -> String {
        let mut table = reporting::table([
            "people",
            "sales",
            "half paid after",
            "once raised",
            "nine tenths",
            "once raised",
            "gave up",
            "throttles first",
            "at the edge",
            "of the API",
            "bill",
        ]);
        let maybe = |at: Option<f64>| at.map_or_else(|| "not within the time".to_owned(), time);
        for point in self.crowds.iter().chain(&self.sales) {
            let Forecast { run, advice, bill, .. } = &point.forecast;
            table.add_row([
                grouped(point.visitors),
                grouped(point.sales.into()),
                maybe(run.half),
                maybe(point.best().half),
                maybe(run.nine_tenths),
                maybe(point.best().nine_tenths),
                grouped(run.turned_away),
                advice.first().map_or("nothing", |one| one.limit.row().0).to_owned(),
                grouped(run.edge_requests as u64),
                grouped(run.api_requests as u64),
                format!("{:.2}", bill.total),
            ]);
        }
        table.to_string()
    }
}
