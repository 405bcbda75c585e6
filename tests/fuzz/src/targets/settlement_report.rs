//! What providers report of payments, in each layout.

use std::collections::BTreeSet;

use engine::domain::basics::time::Timestamp;
use engine::domain::payment::bill::{Expected, Known, Period, Report, compare};
use shared::bills::Layout;

use crate::{Outcome, Target};

pub(crate) const SETTLEMENT_REPORT: Target = Target {
    name: "settlement-report",
    about: "A provider's report, as Stripe's, WeChat Pay's and Alipay's: of an engine that knows of nothing, each line is \
            named or is money kept or paid out, and nothing is matched.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let layouts = [Layout::Stripe, Layout::Wechat, Layout::Alipay];
    let read = layouts.into_iter().filter_map(|layout| layout.read(input).ok());
    Outcome::from_accepted(read.filter(is_accounted).count() > 0)
}

/// True if there is a line at all. Each of them must be accounted for.
fn is_accounted(report: &Report) -> bool {
    let period = Period { from: Timestamp::from_ms(i64::MIN), to: Timestamp::from_ms(i64::MAX) };
    let expected = Expected { period, merchant: None, day_ahead_ms: 0, own: None };
    let found = compare(report, &Known::default(), &expected);
    assert_eq!(found.matched, 0, "something is matched with nothing");
    let named: BTreeSet<u64> = found.defects.iter().filter_map(|(line, _)| *line).collect();
    let of_payments = report.lines.iter().filter(|line| line.moved.payment().is_some());
    let unread = report.unreadable.iter().map(|(line, _)| *line);
    for line in of_payments.map(|line| line.number).chain(unread) {
        assert!(named.contains(&line), "line {line} is not named");
    }
    !report.lines.is_empty()
}
