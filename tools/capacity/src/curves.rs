//! Curves: how a sale goes for crowds and numbers of sales that no machine can play.

use serde::Serialize;

use crate::Failure;
use crate::deployment::Deployment;
use crate::forecast::{Forecast, forecast};
use crate::plan::{Crowd, Plan};
use crate::simulation::Run;
use bench::cost::Prices;

/// Crowds: from a hundred thousand to a hundred million.
const CROWDS: [u64; 7] =
    [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000];
/// Numbers of sales at once.
const SALES: [u32; 4] = [1, 10, 100, 1_000];

/// One point of the curves.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// People.
    pub visitors: u64,
    /// Sales at once.
    pub sales: u32,
    /// What happens.
    pub forecast: Forecast,
}

/// The curves.
#[derive(Debug, Clone, Serialize)]
pub struct Curves {
    /// One sale, and ever more people.
    pub crowds: Vec<Point>,
    /// As many people for each sale, and ever more sales.
    pub sales: Vec<Point>,
}

impl Point {
    /// The run on the deployment with what throttles raised.
    #[must_use]
    pub fn best(&self) -> &Run {
        self.forecast.raised.as_ref().unwrap_or(&self.forecast.run)
    }
}

/// Makes the curves of a plan: its sale for every crowd, and its own crowd and sale many times at once, the seats of
/// the sale as they are.
///
/// # Errors
/// As [`forecast`].
pub fn curves(plan: &Plan, deployment: &Deployment, prices: &Prices) -> Result<Curves, Failure> {
    let point = |visitors: u64, sales: u32| -> Result<Point, Failure> {
        let crowd = Crowd { visitors, ..plan.crowd };
        let plan = Plan { crowd, sales, ..plan.clone() };
        Ok(Point { visitors, sales, forecast: forecast(&plan, deployment, prices)? })
    };
    let crowds = CROWDS.into_iter().map(|visitors| point(visitors, 1)).collect::<Result<_, _>>()?;
    let many = |sales: u32| point(plan.crowd.visitors * u64::from(sales), sales);
    let sales = SALES.into_iter().map(many).collect::<Result<_, _>>()?;
    Ok(Curves { crowds, sales })
}

impl Curves {
    /// The curves as a table.
    #[must_use]
    pub fn tables(&self) -> String {
        use crate::forecast::time;
        let mut table = reporting::table([
            "people",
            "sales",
            "sold after",
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
                reporting::grouped(point.visitors),
                reporting::grouped(point.sales.into()),
                maybe(run.sold_out),
                maybe(point.best().sold_out),
                reporting::grouped(run.turned_away),
                advice.first().map_or("nothing", |one| one.limit.row().0).to_owned(),
                reporting::grouped(run.edge_requests as u64),
                reporting::grouped(run.api_requests as u64),
                format!("{:.2}", bill.total),
            ]);
        }
        table.to_string()
    }
}
