//! What providers report of payments, in each layout.

use engine::domain::time::Timestamp;
use ops::settlement::{Expected, Known, Layout, Period, Report, compare};

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
    let found = compare(report, &Known::default(), &Expected { period, merchant: None });
    assert_eq!(found.matched, 0, "something is matched with nothing");
    let named = found.defects.iter().filter(|(line, _)| line.is_some()).count();
    let silent = report.lines.iter().filter(|line| line.moved.payment().is_none()).count();
    let lines = report.lines.len() + report.unreadable.len();
    assert!(named + silent >= lines, "{lines} lines, of which {named} are named");
    !report.lines.is_empty()
}
