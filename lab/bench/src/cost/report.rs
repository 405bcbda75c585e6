//! What was measured and what it costs, as tables and as JSON.

use comfy_table::CellAlignment;
use serde::Serialize;

use super::Options;
use super::actions::{Action, Measured};
use super::bill::{self, Bill, Fixed};
use super::scenario::Scenario;
use super::usage::Usage;

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The options of the measurement.
    pub options: Options,
    /// Usage of one piece of each kind of work.
    pub measured: Measured,
    /// Pieces of each kind of work in the load test.
    #[serde(rename = "rush")]
    pub load_test: Scenario,
    /// The bill of the sale.
    pub sale: Bill,
    /// What a waiting room adds to it.
    pub room: Bill,
    /// The bill of a quiet month.
    pub month: Bill,
}

impl Report {
    pub(super) fn from_load_test(
        options: Options,
        measured: Measured,
        load_test: Scenario,
    ) -> Self {
        let prices = &options.prices;
        let scenario = load_test.times(f64::from(options.scale));
        let sale = bill::of_the_sale(&measured, &scenario, options.hours, prices);
        let room = bill::of_the_room(&measured, &scenario, prices);
        let (orders, assumptions) = (options.quiet_orders, &options.assumptions);
        let fixed = Fixed::deployed();
        let month = bill::of_a_quiet_month(&measured, orders, assumptions, prices, &fixed);
        Self { measured, load_test, sale, room, month, options }
    }

    /// The report as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }

    /// The report as tables.
    #[must_use]
    pub fn tables(&self) -> String {
        let Options { prices, scale, .. } = &self.options;
        let mut each = reporting::table([
            "one",
            "requests",
            "calls of functions",
            "CPU ms",
            "MB-seconds",
            "DynamoDB calls",
            "reads",
            "writes",
            "SQS",
            "round trips to Redis",
            "ECPU",
            "bytes out",
            "a million cost",
        ]);
        for (action, usage) in &self.measured.actions {
            each.add_row(row(*action, usage, usage.cost(prices) * 1e6));
        }
        right(&mut each);
        let mut rush = reporting::table(["in the rush", "times", "in the sale"]);
        for (what, times) in self.load_test.rows() {
            rush.add_row([what.to_owned(), whole(times), whole(times * f64::from(*scale))]);
        }
        right(&mut rush);
        let bills = [&self.sale, &self.room, &self.month];
        let [sale, room, month] = bills.map(|bill| bill.table(&prices.currency));
        format!(
            "{each}\none unit of the cache (ECPU) is {:.2} µs of the server or 1 KB\n\n{rush}\n\n{sale}\n\n{room}\n\n{month}\n\n\
             prices of {} in {}, looked up on {}: {}",
            self.measured.cache_unit_micros,
            prices.region,
            prices.currency,
            prices.as_of,
            prices.note
        )
    }
}

impl Bill {
    /// The bill as a table, in a currency.
    #[must_use]
    pub fn table(&self, currency: &str) -> String {
        let mut table = reporting::table([self.of.as_str(), "", "", currency]);
        for line in &self.lines {
            table.add_row([
                line.what.to_owned(),
                amount(line.amount),
                line.unit.to_owned(),
                money(line.cost),
            ]);
        }
        table.add_row(["together".to_owned(), String::new(), String::new(), money(self.total)]);
        for column in [1, 3] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }
}

impl Scenario {
    fn rows(&self) -> [(&'static str, f64); 11] {
        [
            ("people", self.visitors),
            ("looks", self.looks),
            ("admissions", self.admissions),
            ("admissions refused", self.not_admitted),
            ("orders made", self.orders),
            ("orders refused or asked for again", self.refusals),
            ("orders paid", self.paid),
            ("other calls of the provider", self.other_payments),
            ("orders cancelled", self.cancelled),
            ("orders expired", self.expired),
            ("tickets", self.tickets),
        ]
    }
}

fn row(action: Action, usage: &Usage, million: f64) -> [String; 13] {
    [
        action.name().to_owned(),
        amount(usage.http_requests),
        amount(usage.invocations),
        amount(usage.cpu_ms),
        amount(usage.gb_seconds * 1024.0),
        amount(usage.dynamodb_calls),
        amount(usage.read_units),
        amount(usage.write_units),
        amount(usage.sqs_requests),
        amount(usage.redis_trips),
        amount(usage.cache_units),
        amount(usage.egress_bytes),
        money(million),
    ]
}

fn right(table: &mut comfy_table::Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// A large number in whole, a small one with its digits.
fn amount(number: f64) -> String {
    if number.abs() >= 100.0 {
        whole(number)
    } else if number.abs() >= 10.0 {
        format!("{number:.1}")
    } else if number == 0.0 {
        "0".to_owned()
    } else {
        format!("{number:.2}")
    }
}

fn whole(number: f64) -> String {
    reporting::grouped(number.round().max(0.0) as u64)
}

fn money(cost: f64) -> String {
    format!("{cost:.2}")
}
