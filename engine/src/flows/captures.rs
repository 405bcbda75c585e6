//! Captures: read what providers list as captured, and decide those that no callback reported.
//!
//! One reader at a time reads each provider's list, under a lease, from where the last reader stopped ([`Cursor`]). The
//! reader decides a capture, as its callback would, before the cursor passes the capture: so the providers need not be
//! asked, order by order, for what the cursor has passed ([`crate::flows::expire`]). If a run dies, the next one
//! continues at the same page.
//!
//! Providers limit reads, so the reader reads nothing while no order is pending; a capture of that time is read once an
//! order is pending again. The lists are read once an hour all the same, and within minutes of a callback that tells of
//! one, because they also have disputes and refunds, which come weeks after a sale ([`crate::flows::dispute`],
//! [`crate::flows::outside`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures_util::future::join_all;
use serde::Serialize;

use crate::domain::basics::ids::{PageMark, ProviderId, ReaderId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::{Clock, Timestamp};
use crate::domain::order::{Capture, Order};
use crate::domain::payment::captures::{CapturePage, Cursor, Hint, ListLag, ListedHint};
use crate::domain::payment::ours::Reported;
use crate::flows::dispute::record_dispute;
use crate::flows::outside::record_sent_back;
use crate::flows::pay::pay_from_afar;
use crate::flows::unrecorded::Unrecorded;
use crate::ports::{
    ChangeReply, CursorReply, Cursors, DUE_SHARDS, Due, Orders, Ports, Provider, StoreError, Stored,
};

/// Seconds for which a reader has a cursor to itself, again with each page.
const LEASE_SECONDS: i64 = 30;
/// Captures decided concurrently.
const TOGETHER: usize = 16;
/// Work that is read from each shard of the index to find out if any of it is an order. Refunds are in
/// the index too: a page full of them leaves open if an order follows.
const MAX_DUE: u16 = 100;
/// Seconds by which the query of the index looks ahead: longer than the longest payment window.
const PENDING_AHEAD_SECONDS: i64 = 2 * 86_400;

/// What a run of the reader did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// True if an order is pending, or may be; else a list is read once an hour.
    pub is_pending: bool,
    /// True if an order is past its deadline and waits for what is read.
    pub is_awaited: bool,
    /// Pages that were read.
    pub pages: u32,
    /// Captures on them, many of which were decided before.
    pub listed: u32,
    /// Captures of other systems and deployments on the same accounts: nothing is done with them.
    pub others: u32,
    /// Captures that no callback had reported.
    pub decided: u32,
    /// Disputes that were asked for, and are recorded as they are.
    pub disputes: u32,
    /// Payments whose refunds were asked for, and are recorded as they are.
    pub sent_back: u32,
    /// Entries that could not be read or decided: money for a person to find.
    pub unreadable: u32,
    /// Lists that were not read to their end: another reader has them, the limit on calls is used up, or
    /// there are more pages than a run may read. The next run goes on with them.
    pub unfinished: u32,
}

impl Reading {
    /// Adds what another run did, which came later.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        Self {
            is_pending: later.is_pending,
            is_awaited: later.is_awaited,
            pages: self.pages + later.pages,
            listed: self.listed + later.listed,
            others: self.others + later.others,
            decided: self.decided + later.decided,
            disputes: self.disputes + later.disputes,
            sent_back: self.sent_back + later.sent_back,
            unreadable: self.unreadable + later.unreadable,
            unfinished: later.unfinished,
        }
    }
}

/// Goes on with the pass over each list, or begins the next one, and reads `max_pages` of each at most.
/// `reader` is the name of this run, and must be new.
///
/// # Errors
/// Fails if a store or a provider does; what was read until then is kept, and the next run goes on.
pub async fn read_captures(
    ports: &impl Ports,
    reader: &ReaderId,
    clock: impl Clock,
    max_pages: u32,
) -> Stored<Reading> {
    let mut reading = Reading::default();
    let lists = ports.listings().into_iter().filter_map(|one| Some((one.provider, one.lag?)));
    let lists: Vec<(ProviderId, ListLag)> = lists.collect();
    if lists.is_empty() {
        return Ok(reading);
    }
    let now = clock.time();
    reading.is_pending = has_orders(ports, now.plus_seconds(PENDING_AHEAD_SECONDS)).await?;
    let mut failed = None;
    for (provider, _) in lists {
        if !reading.is_pending && !is_old(ports, &provider, now).await? {
            continue;
        }
        let mut run = Run { ports, provider, reader, clock: &clock, reading: &mut reading };
        // A provider that does not answer does not delay the others.
        if let Err(error) = run.read(max_pages).await {
            tracing::warn!(provider = %run.provider, %error, "its captures were not read to the end");
            failed = Some(error);
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    reading.is_awaited = has_orders(ports, clock.time()).await?;
    Ok(reading)
}

/// True if a list was read before, and not for long, or not since a callback said that it is to be read.
async fn is_old(ports: &impl Ports, provider: &ProviderId, now: Timestamp) -> Stored<bool> {
    let cursor = ports.cursors().cursor(provider).await?;
    Ok(cursor.is_some_and(|cursor| cursor.is_old(now)))
}

/// True if the index of due work has an order, or may have one, that is due at `at`.
async fn has_orders(ports: &impl Ports, at: Timestamp) -> Stored<bool> {
    let shards = (0..DUE_SHARDS).map(|shard| ports.orders().due(shard, at, MAX_DUE));
    for due in join_all(shards).await {
        let due = due?;
        let is_order = |due: &Due| matches!(due, Due::Order(_));
        if due.len() >= usize::from(MAX_DUE) || due.iter().any(is_order) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Why a provider's news cannot be recorded, in words, where no repetition changes that; `None` if it is recorded.
///
/// # Errors
/// A store's or the provider's failure, which may pass.
fn lasting_refusal<R: fmt::Display>(recorded: Result<(), Unrecorded<R>>) -> Stored<Option<String>> {
    match recorded {
        Ok(()) => Ok(None),
        Err(Unrecorded::Store(error)) if error.retryable() => Err(error),
        Err(refusal) => Ok(Some(refusal.to_string())),
    }
}

/// The limit on calls was used up in the middle of a page, behind this mark.
struct Limited {
    after: Option<PageMark>,
}

/// One run over one provider's list.
struct Run<'a, P, C> {
    ports: &'a P,
    provider: ProviderId,
    reader: &'a ReaderId,
    clock: &'a C,
    reading: &'a mut Reading,
}

impl<P: Ports, C: Clock> Run<'_, P, C> {
    async fn read(&mut self, max_pages: u32) -> Stored<()> {
        let now = self.clock.time();
        let until = now.plus_seconds(LEASE_SECONDS);
        let cursors = self.ports.cursors();
        let cursor = match cursors.take_cursor(&self.provider, self.reader, now, until).await? {
            CursorReply::Held => {
                self.reading.unfinished += 1;
                return Ok(());
            }
            CursorReply::Taken(cursor) => cursor.unwrap_or_else(|| Cursor::starting(now)),
        };
        let mut cursor = cursor.within_kept(now);
        let read = self.pages(&mut cursor, max_pages).await;
        // Giving the lease back lets the next run begin at once.
        let ended = self.clock.time();
        let given_back = cursors.move_cursor(&self.provider, self.reader, &cursor, ended).await;
        read?;
        given_back.map(|_| ())
    }

    /// Reads pages, and moves the cursor behind each once what is on it is decided.
    async fn pages(&mut self, cursor: &mut Cursor, max_pages: u32) -> Stored<()> {
        let pass = cursor.pass_at(self.clock.time());
        let mut after = pass.after.clone();
        for _ in 0..max_pages {
            let page = match self.page(pass.from, after.as_ref()).await {
                Ok(page) => page,
                Err(StoreError::Limited(_)) => break,
                Err(error) => return Err(error),
            };
            self.decide(&page).await?;
            if let Err(Limited { after }) = self.take_hints(&page).await? {
                // The next run goes on in the middle of the page.
                if after.is_some() {
                    *cursor = cursor.after_page(&pass, after);
                }
                break;
            }
            *cursor = cursor.after_page(&pass, page.next.clone());
            let Some(next) = page.next else { return Ok(()) };
            after = Some(next);
            let until = self.clock.time().plus_seconds(LEASE_SECONDS);
            let cursors = self.ports.cursors();
            match cursors.move_cursor(&self.provider, self.reader, cursor, until).await? {
                ChangeReply::Done => {}
                // Another reader has taken it: this one was too slow.
                ChangeReply::Conflict => break,
            }
        }
        self.reading.unfinished += 1;
        Ok(())
    }

    async fn page(&mut self, from: Timestamp, after: Option<&PageMark>) -> Stored<CapturePage> {
        let page = self.ports.provider().list_captures(&self.provider, from, after).await?;
        let listed = u32::try_from(page.captures.len()).unwrap_or(u32::MAX);
        self.reading.pages += 1;
        self.reading.listed = self.reading.listed.saturating_add(listed);
        self.reading.unreadable += page.unreadable;
        Ok(page)
    }

    /// Decides what is on a page, unless it paid its order long ago.
    async fn decide(&mut self, page: &CapturePage) -> Stored<()> {
        let numbers: BTreeSet<OrderNumber> =
            page.captures.iter().map(|one| one.capture.order).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let numbers: Vec<OrderNumber> = numbers.into_iter().collect();
        let orders = self.ports.orders().get_many(&numbers).await?;
        let orders: BTreeMap<OrderNumber, Order> =
            orders.into_iter().map(|order| (order.number, order)).collect();
        let is_decided = |capture: &&Capture| {
            let order = orders.get(&capture.order);
            order.is_some_and(|order| order.payment.as_ref() == Some(&capture.key))
        };
        let elsewhere = self.ports.started_elsewhere();
        let (ours, others): (Vec<&Reported>, Vec<&Reported>) = page
            .captures
            .iter()
            .partition(|one| one.is_ours(orders.get(&one.capture.order), elsewhere));
        self.reading.others += u32::try_from(others.len()).unwrap_or(u32::MAX);
        let unreported: Vec<&Capture> = ours
            .into_iter()
            .map(|reported| &reported.capture)
            .filter(|capture| !is_decided(capture))
            .collect();
        let now = self.clock.time();
        for some in unreported.chunks(TOGETHER) {
            let decisions = some.iter().map(|capture| pay_from_afar(self.ports, capture, now));
            for (capture, decision) in some.iter().zip(join_all(decisions).await) {
                self.count(capture, decision, now)?;
            }
        }
        Ok(())
    }

    /// Asks for each dispute and each payment that a page hints at, and records their present state. What fails the same
    /// way at every repetition must not hold the others up for ever.
    async fn take_hints(&mut self, page: &CapturePage) -> Stored<Result<(), Limited>> {
        let mut known = BTreeSet::new();
        let mut after = None;
        for ListedHint { mark, hint } in &page.hints {
            // Several entries may tell of the same: the provider is asked for it once.
            if known.insert(hint) {
                match self.take(hint).await {
                    Ok(()) => {}
                    Err(StoreError::Limited(_)) => return Ok(Err(Limited { after })),
                    Err(error) => return Err(error),
                }
            }
            after = Some(mark.clone());
        }
        Ok(Ok(()))
    }

    /// Asks the provider for what a hint names, and records the answer.
    async fn take(&mut self, hint: &Hint) -> Stored<()> {
        let now = self.clock.time();
        let (refusal, counted) = match hint {
            Hint::Dispute(dispute) => {
                let recorded = record_dispute(self.ports, &self.provider, dispute, now).await;
                (lasting_refusal(recorded)?, &mut self.reading.disputes)
            }
            Hint::Refunds(payment) => {
                let recorded = record_sent_back(self.ports, &self.provider, payment, now).await;
                (lasting_refusal(recorded)?, &mut self.reading.sent_back)
            }
        };
        match refusal {
            None => *counted += 1,
            Some(refusal) => {
                self.reading.unreadable += 1;
                tracing::error!(?hint, refusal, "what a provider tells cannot be recorded");
            }
        }
        Ok(())
    }

    /// Counts a decision. A capture that fails the same way at every repetition must not hold the others up for ever.
    fn count(
        &mut self,
        capture: &Capture,
        decision: Stored<crate::domain::order::PaymentRecord>,
        now: Timestamp,
    ) -> Stored<()> {
        match decision {
            Ok(record) if record.decided_at == now => {
                self.reading.decided += 1;
                tracing::warn!(?record, "read at the provider; its callback did not come in time");
            }
            Ok(_) => {}
            Err(error) if error.retryable() => return Err(error),
            Err(error) => {
                self.reading.unreadable += 1;
                tracing::error!(?capture, %error, "a capture that is listed cannot be decided");
            }
        }
        Ok(())
    }
}
