//! The bills of the providers that are configured, unpacked and read, and what DynamoDB keeps of them.

use engine::domain::basics::ids::{PageMark, ProviderId, ReaderId};
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::bill::{
    BillCursor, BillDay, BillPage, BillReply, Billed, Difference, Report,
};
use engine::ports::{Bills, ChangeReply, StoreError, Stored, TakeBills};

use super::unpack::{Unpacked, gzip, zip};
use super::{ReportError, alipay, balance, wechat};
use crate::dynamodb::DynamoBills;
use crate::providers::Providers;
use crate::providers::bill::RawBill;

/// The bills of these providers.
#[derive(Debug, Clone, Copy)]
pub struct LiveBills<'a> {
    pub providers: &'a Providers,
    pub kept: &'a DynamoBills,
}

/// What a provider has sent, unpacked and read.
///
/// # Errors
/// `Unavailable` for a file that is damaged, which may come whole the next time; `Contract` for one that is no bill.
pub fn unpacked(raw: &RawBill) -> Stored<BillReply> {
    let page = |report: Report| BillReply::Page(BillPage { report, next: None });
    Ok(match raw {
        RawBill::NotYet => BillReply::NotYet,
        RawBill::Absent => BillReply::Absent,
        RawBill::Nothing => page(Report::default()),
        RawBill::BalancePage(json) => {
            BillReply::Page(balance::read(json).map_err(StoreError::Contract)?)
        }
        RawBill::Gzip { packed, sha1 } => {
            let file = gzip(packed, sha1).map_err(refused)?;
            page(wechat::read(&file).map_err(|error: ReportError| StoreError::contract(error))?)
        }
        RawBill::Zip(packed) => {
            let mut report = Report::default();
            for file in zip(packed).map_err(refused)? {
                let more = alipay::read(&file).map_err(StoreError::contract)?;
                append(&mut report, more);
            }
            page(report)
        }
    })
}

/// Puts the lines of another file behind those of a report.
fn append(report: &mut Report, more: Report) {
    let lines = report.lines.iter().map(|line| line.number);
    let unreadable = report.unreadable.iter().map(|(number, _)| *number);
    let last = lines.chain(unreadable).max().unwrap_or_default();
    report.lines.extend(more.lines.into_iter().map(|mut line| {
        line.number += last;
        line
    }));
    report.unreadable.extend(more.unreadable.into_iter().map(|(line, why)| (line + last, why)));
    report.wrong_sums.extend(more.wrong_sums);
}

fn refused(why: Unpacked) -> StoreError {
    match why {
        Unpacked::Damaged(_) => StoreError::Unavailable(why.to_string()),
        Unpacked::TooLarge => StoreError::Contract(why.to_string()),
    }
}

impl Bills for LiveBills<'_> {
    fn billed(&self) -> Vec<Billed> {
        self.providers.billed()
    }

    async fn bill(
        &self,
        provider: &ProviderId,
        day: BillDay,
        after: Option<&PageMark>,
    ) -> Stored<BillReply> {
        let raw = self.providers.bill(provider, day, after).await?;
        unpacked(&raw)
    }

    async fn take_bills(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> Stored<TakeBills> {
        self.kept.take(provider, reader, now, until).await
    }

    async fn move_bills(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        cursor: &BillCursor,
        until: Timestamp,
    ) -> Stored<ChangeReply> {
        self.kept.move_to(provider, reader, cursor, until).await
    }

    async fn keep_difference(&self, difference: &Difference) -> Stored<()> {
        self.kept.keep(difference).await
    }
}
