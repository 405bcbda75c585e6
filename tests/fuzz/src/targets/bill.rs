//! The bills that providers send, packed as they come.

use std::collections::BTreeSet;

use engine::domain::payment::bill::BillReply;
use shared::bills::unpacked;
use shared::providers::bill::RawBill;

use crate::{Outcome, Target};

pub(crate) const BILL: Target = Target {
    name: "bill",
    about: "A page of Stripe's balance transactions, Alipay's archive and WeChat Pay's packed file with a sum that is not its \
            own: each line has a number of its own, and what does not hash to its sum is never read.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let packed = || input.to_vec().into();
    let gzip = RawBill::Gzip { packed: packed(), sha1: "0".repeat(40) };
    assert!(unpacked(&gzip).is_err(), "it does not hash to noughts");
    let raw = [RawBill::BalancePage(packed()), RawBill::Zip(packed())];
    let read = raw.iter().filter_map(|raw| unpacked(raw).ok());
    Outcome::from_accepted(read.filter(is_numbered).count() > 0)
}

/// True if there is a line at all. Each has a number of its own.
fn is_numbered(reply: &BillReply) -> bool {
    let BillReply::Page(page) = reply else { return false };
    let lines = page.report.lines.iter().map(|line| line.number);
    let numbers: Vec<u64> =
        lines.chain(page.report.unreadable.iter().map(|(line, _)| *line)).collect();
    let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
    assert_eq!(distinct.len(), numbers.len(), "two lines have one number");
    !page.report.lines.is_empty()
}
