//! Bills: read what providers say of each day, hold it line by line against what is known, record what went back outside, and
//! keep for an operator what differs.
//!
//! One reader at a time reads the bills of an account, under a lease, from the day and line that the last reader reached
//! ([`BillCursor`]). The cursor passes a line only once what the line tells is recorded or kept: a run that dies is
//! continued, and reading a line again changes nothing. What is read of the stores is named by the lines; nothing is
//! scanned, so that what a bill leaves out is not found here, but by `onsale money reconcile`.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde::Serialize;

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{PaymentId, ProviderRefundId, ReaderId};
use crate::domain::basics::money::Money;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::{Clock, Timestamp};
use crate::domain::order::order_refund::RefundName;
use crate::domain::order::refund::RefundState;
use crate::domain::order::{Capture, Order, PaymentKey};
use crate::domain::payment::bill::{
    BillCursor, BillDay, BillPage, BillReply, Billed, BilledRefund, Defect, Difference,
    DifferenceKind, Expected, Known, Line, MAX_DIFFERENCES, Moved, Named, Report, compare_lines,
};
use crate::domain::payment::ours::{Mark, Reported};
use crate::domain::payment::outside::{OutsideRefusal, SentRefund, SentReport, SentState};
use crate::flows::outside::{Billed as Told, Refusal, record_billed, record_sent_back};
use crate::flows::pay::pay_from_afar;
use crate::flows::unrecorded::Unrecorded;
use crate::ports::{Bills, ChangeReply, Orders, Ports, StoreError, Stored, TakeBills};

/// Seconds for which a reader has the bills of an account to itself, again with each window of lines: as long as a bill
/// takes to be asked for, fetched and unpacked.
const LEASE_SECONDS: i64 = 300;
/// The end of a lease that is over.
const FREE: Timestamp = Timestamp::from_ms(0);
/// Lines that are held against the stores together. A line names two orders at most, and 100 are read in one request.
const WINDOW: usize = 50;
/// Lines whose payments are looked at concurrently.
const TOGETHER: usize = 16;
/// The most days of which bills are asked for that are past: WeChat Pay keeps them for three months.
/// Source: <https://pay.weixin.qq.com/docs/merchant/apis/jsapi-payment/get-trade-bill.html>
const MAX_DAYS: i64 = 85;

/// What a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BillReading {
    /// Days whose bills were read to their end.
    pub days: u32,
    /// Lines that were read.
    pub lines: u32,
    /// Lines that say what is known.
    pub matched: u32,
    /// Lines of other systems and deployments on the same accounts.
    pub others: u32,
    /// Captures of which nothing else had told, and that were decided.
    pub decided: u32,
    /// Payments of which money went back outside, and was recorded now.
    pub recorded: u32,
    /// Lines that are no payment's: fees, payouts and what is not booked here.
    pub passed: u32,
    /// What differs.
    pub differences: u32,
    /// Accounts with a bill that could be there and was not read: by the provider, by the limit on calls, or because the run
    /// was over.
    pub unfinished: u32,
    /// Accounts of which a store or the provider failed; to have no turn for a call is no failure.
    pub failed: u32,
    /// Days since the oldest such bill could first be there, of the account with most.
    pub behind_days: u32,
}

/// Reads the bills of each account from where the last run stopped, until `clock` says `stop_at`. `reader` is the name of
/// this run, and must be new. What was read until a store or a provider fails is kept, and the next run goes on.
pub async fn read_bills(
    ports: &impl Ports,
    bills: &impl Bills,
    reader: &ReaderId,
    clock: impl Clock,
    stop_at: Timestamp,
) -> BillReading {
    let mut reading = BillReading::default();
    for account in bills.billed() {
        let provider = account.provider.clone();
        let mut run =
            Run { ports, bills, account, reader, clock: &clock, stop_at, reading: &mut reading };
        // A provider that does not answer does not delay the others.
        if let Err(error) = run.read().await
            && !matches!(error, StoreError::Limited(_))
        {
            tracing::warn!(%provider, %error, "its bills were not read to the end");
            reading.failed += 1;
        }
    }
    reading
}

/// One run over the bills of one account.
struct Run<'a, P, B, C> {
    ports: &'a P,
    bills: &'a B,
    account: Billed,
    reader: &'a ReaderId,
    clock: &'a C,
    stop_at: Timestamp,
    reading: &'a mut BillReading,
}

/// What a window's lines are held against.
struct Window<'a> {
    lines: Vec<&'a Line>,
    orders: BTreeMap<OrderNumber, Order>,
    known: Known,
}

impl<P: Ports, B: Bills, C: Clock> Run<'_, P, B, C> {
    async fn read(&mut self) -> Stored<()> {
        let now = self.clock.time();
        let until = now.plus_seconds(LEASE_SECONDS);
        let provider = self.account.provider.clone();
        let last = self.account.last_day(now);
        let taken = self.bills.take_bills(&provider, self.reader, now, until).await?;
        let TakeBills::Taken(cursor) = taken else {
            self.reading.unfinished += 1;
            return Ok(());
        };
        // Whoever begins to read bills begins with the last one.
        let mut cursor = cursor.unwrap_or_else(|| BillCursor::at(last));
        let read = self.days(&mut cursor, last).await;
        let behind = last.0.saturating_sub(cursor.day.0).saturating_add(1).max(0);
        self.reading.unfinished += u32::from(behind > 0);
        let behind = u32::try_from(behind).unwrap_or(u32::MAX);
        self.reading.behind_days = self.reading.behind_days.max(behind);
        // Giving the lease back lets the next run begin at once, by whatever clock.
        let given_back = self.bills.move_bills(&provider, self.reader, &cursor, FREE).await;
        read?;
        given_back.map(|_| ())
    }

    async fn days(&mut self, cursor: &mut BillCursor, last: BillDay) -> Stored<()> {
        let oldest = last.plus(-MAX_DAYS);
        if cursor.day < oldest {
            self.unread(cursor.day, oldest).await?;
            *cursor = BillCursor::at(oldest);
        }
        while cursor.day <= last && self.clock.time() < self.stop_at {
            let provider = &self.account.provider;
            let page = match self.bills.bill(provider, cursor.day, cursor.after.as_ref()).await {
                Ok(BillReply::Page(page)) => page,
                Ok(BillReply::Absent) if self.account.is_without(cursor.day, self.clock.time()) => {
                    BillPage::default()
                }
                Ok(BillReply::NotYet | BillReply::Absent) | Err(StoreError::Limited(_)) => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            if !self.page(cursor, page).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads a page from the cursor's line on; false if the run is over or another reader has the bills.
    async fn page(&mut self, cursor: &mut BillCursor, page: BillPage) -> Stored<bool> {
        let BillPage { mut report, next } = page;
        let doubled = report.take_doubled();
        if cursor.line == 0 {
            self.of_report(cursor, &report, &doubled).await?;
        }
        let left: Vec<&Line> =
            report.lines.iter().filter(|line| line.number > cursor.line).collect();
        for lines in left.chunks(WINDOW) {
            if self.clock.time() >= self.stop_at {
                return Ok(false);
            }
            self.window(cursor, lines).await?;
            cursor.line = lines.last().map_or(cursor.line, |line| line.number);
            self.reading.lines += u32::try_from(lines.len()).unwrap_or(u32::MAX);
            if !self.keep_cursor(cursor).await? {
                return Ok(false);
            }
        }
        *cursor = match next {
            Some(next) => BillCursor { after: Some(next), line: 0, ..cursor.clone() },
            None => {
                self.reading.days += 1;
                BillCursor::at(cursor.day.plus(1))
            }
        };
        self.keep_cursor(cursor).await
    }

    async fn keep_cursor(&self, cursor: &BillCursor) -> Stored<bool> {
        let until = self.clock.time().plus_seconds(LEASE_SECONDS);
        let provider = &self.account.provider;
        let moved = self.bills.move_bills(provider, self.reader, cursor, until).await?;
        Ok(moved == ChangeReply::Done)
    }

    /// Keeps what is wrong with the report itself. What a line that cannot be read says may be anything: it is not kept.
    async fn of_report(
        &mut self,
        cursor: &mut BillCursor,
        report: &Report,
        doubled: &[(u64, u64)],
    ) -> Stored<()> {
        // Lines are numbered within their page.
        let page = cursor.after.as_ref().map_or_else(String::new, |after| format!("{after} "));
        for (line, _) in &report.unreadable {
            let id = format!("{page}{line}");
            let of = self.difference(cursor.day, DifferenceKind::Unreadable, id);
            self.keep(cursor, of.saying(&format!("line {line} cannot be read"))).await?;
        }
        for (number, sum) in report.wrong_sums.iter().enumerate() {
            let of = self.difference(cursor.day, DifferenceKind::WrongSum, number.to_string());
            self.keep(cursor, of.saying(sum)).await?;
        }
        for (line, first) in doubled {
            let id = format!("{page}{line}");
            let of = self.difference(cursor.day, DifferenceKind::Twice, id);
            self.keep(cursor, of.saying(&format!("line {line} stands in line {first} already")))
                .await?;
        }
        Ok(())
    }

    async fn unread(&mut self, from: BillDay, to: BillDay) -> Stored<()> {
        let of = self.difference(from, DifferenceKind::Unread, to.to_string());
        let of = of.saying(&format!("bills from {from} until {to} were not read"));
        self.keep(&mut BillCursor::at(from), of).await
    }

    /// Holds lines against the orders that they name.
    async fn window(&mut self, cursor: &mut BillCursor, lines: &[&Line]) -> Stored<()> {
        let mut window = self.look_up(lines).await?;
        let (mut sent_back, mut others) = (Vec::new(), 0);
        let mut compared = Vec::new();
        for line in std::mem::take(&mut window.lines) {
            match &line.moved {
                Moved::PaidOut { .. } | Moved::Kept { .. } => self.reading.passed += 1,
                Moved::Other { .. } if self.mark(line) != Mark::Ours => self.reading.passed += 1,
                _ if !self.is_ours(line, &window) => others += 1,
                Moved::SentBack { .. } => sent_back.push(line),
                Moved::Captured { .. } | Moved::Disputed { .. } | Moved::Other { .. } => {
                    compared.push(line);
                }
            }
        }
        self.reading.others += others;
        self.decide(&compared, &mut window.known).await?;
        self.compare(cursor, compared, &window.known).await?;
        // Lines of one payment one after the other: each step reads what the one before has written.
        let mut by_payment: BTreeMap<&PaymentId, Vec<&Line>> = BTreeMap::new();
        for line in sent_back {
            if let Some((payment, _)) = line.moved.payment() {
                by_payment.entry(payment).or_default().push(line);
            }
        }
        let payments: Vec<Vec<&Line>> = by_payment.into_values().collect();
        for some in payments.chunks(TOGETHER) {
            let this = &*self;
            let each = some.iter().map(|lines| this.sent_back(cursor.day, lines));
            for result in join_all(each).await {
                let SentBack { matched, recorded, differences } = result?;
                self.reading.matched += matched;
                self.reading.recorded += recorded;
                for difference in differences {
                    self.keep(cursor, difference).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads the orders that lines name.
    async fn look_up<'l>(&self, lines: &[&'l Line]) -> Stored<Window<'l>> {
        let named = lines.iter().filter_map(|line| line.moved.payment()?.1);
        let numbers: BTreeSet<OrderNumber> = named.map(|named| named.order).collect();
        let numbers: Vec<OrderNumber> = numbers.into_iter().collect();
        let read = match numbers.is_empty() {
            true => Vec::new(),
            false => self.ports.orders().get_many(&numbers).await?,
        };
        let mut known = Known::default();
        for order in &read {
            known.add_order(&self.account.provider, order);
        }
        let orders = read.into_iter().map(|order| (order.number, order)).collect();
        Ok(Window { lines: lines.to_vec(), orders, known })
    }

    /// What a line says of who started its payment.
    fn mark(&self, line: &Line) -> Mark {
        Mark::of(line.deployment.as_deref(), self.account.own.as_ref())
    }

    /// True if the payment of a line is this deployment's.
    fn is_ours(&self, line: &Line, window: &Window<'_>) -> bool {
        let mark = self.mark(line);
        let Some((payment, named)) = line.moved.payment() else { return mark == Mark::Ours };
        let is_known = window.known.captured.contains_key(payment);
        match (mark, named) {
            (Mark::Ours, _) => true,
            (Mark::Another, _) | (Mark::None, None) => false,
            (Mark::None, Some(named)) => {
                let Moved::Captured { amount, .. } = &line.moved else { return is_known };
                let reported = Reported { capture: self.capture(payment, named, *amount), mark };
                let order = window.orders.get(&named.order);
                is_known || reported.is_ours(order, self.ports.started_elsewhere())
            }
        }
    }

    fn capture(&self, payment: &PaymentId, named: Named, amount: Money) -> Capture {
        let key = PaymentKey { provider: self.account.provider.clone(), payment: payment.clone() };
        Capture { key, order: named.order, amount, attempt: named.attempt }
    }

    /// Decides captures of which nothing else has told, as if their callbacks had come now.
    async fn decide(&mut self, lines: &[&Line], known: &mut Known) -> Stored<()> {
        let now = self.clock.time();
        for line in lines {
            let Moved::Captured { payment, order: Some(named), amount } = &line.moved else {
                continue;
            };
            if known.captured.contains_key(payment) {
                continue;
            }
            let capture = self.capture(payment, *named, *amount);
            // By itself: it is larger than all the rest of a run, and rare.
            match Box::pin(pay_from_afar(self.ports, &capture, now)).await {
                Ok(record) => {
                    if record.decided_at == now {
                        self.reading.decided += 1;
                        tracing::warn!(?record, "read in a bill; its callback did not come");
                    }
                    known.add_payment(&record);
                }
                Err(error) if error.retryable() => return Err(error),
                // It stays unknown, and is kept as that.
                Err(error) => tracing::error!(?capture, %error, "a capture cannot be decided"),
            }
        }
        Ok(())
    }

    /// Holds lines that tell of no refund against what is known, as `onsale money reconcile` does.
    async fn compare(
        &mut self,
        cursor: &mut BillCursor,
        lines: Vec<&Line>,
        known: &Known,
    ) -> Stored<()> {
        let Billed { day_ahead_ms, merchant, own, .. } = &self.account;
        let expected = Expected {
            period: cursor.day.period(*day_ahead_ms),
            merchant: merchant.clone(),
            day_ahead_ms: *day_ahead_ms,
            own: own.clone(),
        };
        let by_number: BTreeMap<u64, &Line> =
            lines.iter().map(|line| (line.number, *line)).collect();
        let lines = lines.into_iter().cloned().collect();
        let report = Report { lines, ..Report::default() };
        let compared = compare_lines(&report, known, &expected);
        self.reading.matched += u32::try_from(compared.matched).unwrap_or(u32::MAX);
        for (number, defect) in &compared.defects {
            let Some(line) = number.and_then(|number| by_number.get(&number)) else { continue };
            let difference = self.of_line(cursor.day, line, DifferenceKind::of(defect));
            self.keep(cursor, difference.saying(&said(defect))).await?;
        }
        Ok(())
    }

    /// Holds the refunds of one payment against what is known, and records those that were made outside.
    async fn sent_back(&self, day: BillDay, lines: &[&Line]) -> Stored<SentBack> {
        let mut found = SentBack::default();
        let mut outside: Vec<(&Line, SentRefund)> = Vec::new();
        let mut of: Option<(&PaymentId, OrderNumber)> = None;
        for line in lines {
            let Moved::SentBack { payment, order, amount, refund } = &line.moved else { continue };
            let differs = match (refund, order) {
                (Some(BilledRefund::Part(name)), _) => self.part(*name, *amount).await?,
                (Some(BilledRefund::Whole), Some(named)) => {
                    self.whole(named.order, payment, *amount).await?
                }
                (Some(BilledRefund::Outside(id)), Some(named)) => {
                    of = Some((payment, named.order));
                    outside.push((line, made_outside(id, *amount, line.at)));
                    continue;
                }
                (Some(BilledRefund::Whole | BilledRefund::Outside(_)) | None, _) => {
                    Some(DifferenceKind::UnknownRefund)
                }
            };
            match differs {
                None => found.matched += 1,
                Some(kind) => {
                    let what = format!("{amount} of payment {payment} went back");
                    found.differences.push(self.of_line(day, line, kind).saying(&what));
                }
            }
        }
        if let Some((payment, order)) = of.filter(|_| stands(Guard::OutsideByBill)) {
            self.outside(day, payment, order, outside, &mut found).await?;
        }
        Ok(found)
    }

    /// What differs of a part that bears a name of ours. One that is under way hears of its end by its own request.
    async fn part(&self, name: RefundName, amount: Money) -> Stored<Option<DifferenceKind>> {
        let known = self.ports.orders().order_refund(name.key).await?;
        Ok(match known {
            None => Some(DifferenceKind::UnknownRefund),
            Some(known) if known.amount.currency != amount.currency => {
                Some(DifferenceKind::OtherCurrency)
            }
            Some(known) if known.amount != amount => Some(DifferenceKind::OtherAmount),
            Some(known) => {
                let is_paid_otherwise =
                    known.refund.state == RefundState::Settled || known.paid_otherwise().is_some();
                is_paid_otherwise.then_some(DifferenceKind::PaidTwice)
            }
        })
    }

    /// What differs of a whole payment that went back.
    async fn whole(
        &self,
        order: OrderNumber,
        payment: &PaymentId,
        amount: Money,
    ) -> Stored<Option<DifferenceKind>> {
        let key = PaymentKey { provider: self.account.provider.clone(), payment: payment.clone() };
        let record = self.ports.orders().payment(order, &key).await?;
        Ok(match record.filter(|record| record.refund.is_some()) {
            None => Some(DifferenceKind::UnknownRefund),
            Some(record) if record.capture.amount != amount => Some(DifferenceKind::OtherAmount),
            Some(_) => None,
        })
    }

    /// Records refunds of a payment that were not asked for here: from the provider's list, where it has one, or from what the
    /// bill says.
    async fn outside(
        &self,
        day: BillDay,
        payment: &PaymentId,
        order: OrderNumber,
        lines: Vec<(&Line, SentRefund)>,
        found: &mut SentBack,
    ) -> Stored<()> {
        let (provider, now) = (&self.account.provider, self.clock.time());
        if self.account.lists_refunds {
            let all: Vec<&Line> = lines.iter().map(|(line, _)| *line).collect();
            let recorded = record_sent_back(self.ports, provider, payment, now).await;
            return self.recorded(day, &all, recorded.map(|()| Told::Recorded(0)), found);
        }
        // One by one: what of one is of no order says nothing of the next.
        for (line, refund) in lines {
            let key = PaymentKey { provider: provider.clone(), payment: payment.clone() };
            let report = SentReport {
                payment: key,
                order,
                mark: self.mark(line),
                refunds: vec![refund],
                is_complete: false,
            };
            let recorded = record_billed(self.ports, report, now).await;
            self.recorded(day, &[line], recorded, found)?;
        }
        Ok(())
    }

    fn recorded(
        &self,
        day: BillDay,
        lines: &[&Line],
        recorded: Result<Told, Refusal>,
        found: &mut SentBack,
    ) -> Stored<()> {
        let (kind, why) = match recorded {
            Ok(Told::Recorded(steps)) => {
                found.matched += u32::try_from(lines.len()).unwrap_or(u32::MAX);
                found.recorded += u32::from(steps > 0);
                return Ok(());
            }
            Ok(Told::OfNoOrder) => {
                (DifferenceKind::UnknownRefund, "its payment has paid no order".to_owned())
            }
            Err(Unrecorded::Store(error)) if error.retryable() => return Err(error),
            Err(refusal) => {
                let kind = match &refusal {
                    Unrecorded::Refused(
                        OutsideRefusal::PaidTwice(_) | OutsideRefusal::WholePaidTwice(_),
                    ) => DifferenceKind::PaidTwice,
                    Unrecorded::Refused(OutsideRefusal::OtherCurrency(_)) => {
                        DifferenceKind::OtherCurrency
                    }
                    Unrecorded::Refused(OutsideRefusal::OfNoOrder { .. })
                    | Unrecorded::Refund(_)
                    | Unrecorded::Store(_) => DifferenceKind::UnknownRefund,
                };
                (kind, refusal.to_string())
            }
        };
        let each = lines.iter().map(|line| self.of_line(day, line, kind).saying(&why));
        found.differences.extend(each);
        Ok(())
    }

    /// A difference of a day that is of no line in particular, or of one that names no payment.
    fn difference(&self, day: BillDay, kind: DifferenceKind, id: String) -> Difference {
        Difference {
            provider: self.account.provider.clone(),
            day,
            kind,
            id,
            order: None,
            payment: None,
            amount: None,
            what: String::new(),
            found_at: self.clock.time(),
            done: None,
        }
    }

    fn of_line(&self, day: BillDay, line: &Line, kind: DifferenceKind) -> Difference {
        let named = line.moved.payment();
        Difference {
            order: named.and_then(|(_, named)| named).map(|named| named.order),
            payment: named.map(|(payment, _)| payment.clone()),
            amount: Some(line.moved.amount()),
            ..self.difference(day, kind, line.id.clone())
        }
    }

    async fn keep(&mut self, cursor: &mut BillCursor, difference: Difference) -> Stored<()> {
        self.reading.differences += 1;
        // A bill of another layout differs in each line: what is said of it is bounded.
        if cursor.kept >= MAX_DIFFERENCES {
            return Ok(());
        }
        let Difference { provider, day, kind, order, payment, .. } = &difference;
        tracing::error!(
            %provider, %day, kind = kind.as_str(), order = order.map(tracing::field::display),
            payment = payment.as_ref().map(tracing::field::display),
            "a bill differs from what is known"
        );
        self.bills.keep_difference(&difference).await?;
        cursor.kept += 1;
        Ok(())
    }
}

/// What became of the refunds of one payment.
#[derive(Default)]
struct SentBack {
    matched: u32,
    recorded: u32,
    differences: Vec<Difference>,
}

/// A refund that was not asked for here, as its line tells of it.
fn made_outside(id: &ProviderRefundId, amount: Money, at: Timestamp) -> SentRefund {
    SentRefund { id: id.clone(), amount, name: None, state: SentState::Back, at: Some(at) }
}

/// A defect in words, without what the bill calls things.
fn said(defect: &Defect) -> String {
    match defect {
        Defect::Unreadable(_) | Defect::OtherMerchant(_) => defect.kind().to_owned(),
        Defect::NotBooked(_, amount) => format!("{amount} that is not booked here"),
        Defect::Sum(_)
        | Defect::Twice(_)
        | Defect::OtherPeriod
        | Defect::OtherCurrency(..)
        | Defect::OtherAmount(..)
        | Defect::UnknownCapture(..)
        | Defect::UnknownRefund(..)
        | Defect::MissingCapture(..)
        | Defect::MissingRefund(..)
        | Defect::UnknownDispute(..) => defect.to_string(),
    }
}
