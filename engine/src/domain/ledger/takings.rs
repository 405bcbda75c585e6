//! Takings: what a sale sold and took, minute by minute, as its records in the log say.
//!
//! A record belongs to the minute in which its facts were settled, some seconds after they happened. The index that
//! finds a sale's records is by that time, so the figures of a past minute never change.

use std::collections::BTreeMap;

use super::log::LogRecord;
use super::{Transfer, TransferCode};
use crate::domain::basics::ids::TierId;
use crate::domain::basics::money::Currency;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::HeldLine;

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;

/// Sales and takings of a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taking {
    /// Orders that became paid.
    pub orders: u64,
    pub tickets: u64,
    /// Tickets that were refunded.
    pub returned: u64,
    /// What buyers paid for those orders, commission included.
    pub taken: i128,
    /// What of it was kept as commission, less what was given up with refunds.
    pub commission: i128,
    /// What is to go back to buyers for refunds.
    pub given_back: i128,
    /// Captures that bought nothing, and go back too.
    pub unowned: i128,
}

/// Tickets of a tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TierTaking {
    /// Tickets of orders that became paid.
    pub sold: u64,
    /// Tickets that were refunded.
    pub returned: u64,
}

/// What a sale sold and took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takings {
    currency: Currency,
    /// By the number of the minute.
    minutes: BTreeMap<i64, Taking>,
    tiers: BTreeMap<TierId, TierTaking>,
}

/// The number of the minute that a time lies in.
fn minute_of(time: Timestamp) -> i64 {
    time.ms().div_euclid(MINUTE_MS)
}

/// The first moment of the minute that a time lies in.
#[must_use]
pub fn minute_start(time: Timestamp) -> Timestamp {
    Timestamp::from_ms(minute_of(time).saturating_mul(MINUTE_MS))
}

/// A ticket is a seat of a line, on whatever legs.
fn tickets(line: &HeldLine) -> u64 {
    u64::try_from(line.seats.len()).unwrap_or(u64::MAX)
}

impl Takings {
    /// The empty takings of a sale. Money in another currency than the sale's is left out: such a capture bought
    /// nothing.
    #[must_use]
    pub const fn new(currency: Currency) -> Self {
        Self { currency, minutes: BTreeMap::new(), tiers: BTreeMap::new() }
    }

    /// Counts a record of the sale.
    pub fn add(&mut self, record: &LogRecord) {
        let minute = self.minutes.entry(minute_of(record.at)).or_default();
        for told in &record.told {
            for (_, fact) in &told.facts {
                let lines = told.lines_of(fact);
                if fact.kind.sells() {
                    minute.orders += 1;
                    for line in lines {
                        minute.tickets += tickets(line);
                        self.tiers.entry(line.tier.clone()).or_default().sold += tickets(line);
                    }
                } else if fact.refund_made().is_some() {
                    for line in lines {
                        minute.returned += tickets(line);
                        self.tiers.entry(line.tier.clone()).or_default().returned += tickets(line);
                    }
                }
            }
        }
        for Transfer { code, amount, .. } in &record.transfers {
            if amount.currency != self.currency {
                continue;
            }
            let amount = i128::from(amount.amount_minor);
            match code {
                TransferCode::Sale => minute.taken += amount,
                TransferCode::Commission => {
                    minute.taken += amount;
                    minute.commission += amount;
                }
                TransferCode::Refund => minute.given_back += amount,
                TransferCode::CommissionBack => {
                    minute.given_back += amount;
                    minute.commission -= amount;
                }
                TransferCode::Unowned => minute.unowned += amount,
                // A refund was counted when it was made, a dispute is counted if it is lost, and postings belong to no
                // order.
                TransferCode::SentBack
                | TransferCode::SentBackUndone
                | TransferCode::PaidOtherwise
                | TransferCode::Explained
                | TransferCode::Disputed
                | TransferCode::DisputeOver
                | TransferCode::ProviderFee
                | TransferCode::ProviderFeeBack
                | TransferCode::Payout
                | TransferCode::PayoutBack
                | TransferCode::Settlement
                | TransferCode::SettlementBack => {}
            }
        }
    }

    /// The minutes of which there are records, by their first moments.
    pub fn minutes(&self) -> impl Iterator<Item = (Timestamp, &Taking)> {
        let start = |minute: &i64| Timestamp::from_ms(minute.saturating_mul(MINUTE_MS));
        self.minutes.iter().map(move |(minute, taking)| (start(minute), taking))
    }

    /// The minute that begins at a time; nothing if there are no records of it.
    #[must_use]
    pub fn at(&self, start: Timestamp) -> Taking {
        self.minutes.get(&minute_of(start)).copied().unwrap_or_default()
    }

    /// Each tier of which tickets were sold or refunded.
    pub fn tiers(&self) -> impl Iterator<Item = (&TierId, &TierTaking)> {
        self.tiers.iter()
    }

    #[must_use]
    pub fn total(&self) -> Taking {
        self.minutes.values().fold(Taking::default(), |sum, minute| Taking {
            orders: sum.orders + minute.orders,
            tickets: sum.tickets + minute.tickets,
            returned: sum.returned + minute.returned,
            taken: sum.taken + minute.taken,
            commission: sum.commission + minute.commission,
            given_back: sum.given_back + minute.given_back,
            unowned: sum.unowned + minute.unowned,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::domain::basics::ids::{
        Legs, MerchantId, PaymentId, ProviderId, SaleId, Seat, UserId,
    };
    use crate::domain::basics::money::{MinorUnits, Money};
    use crate::domain::basics::number::Mint;
    use crate::domain::ledger::Account;
    use crate::domain::ledger::log::Told;
    use crate::domain::order::PaymentKey;
    use crate::domain::order::fact::{Actor, Cause, Fact, FactKind, Moved};
    use crate::domain::order::order_refund::RefundNumber;

    const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn money(amount: i64, currency: &str) -> Money {
        let currency = Currency::new(currency).unwrap();
        Money { amount_minor: MinorUnits(amount), currency }
    }

    fn line(tier: &str, seats: &[u32]) -> HeldLine {
        let seats = seats.iter().copied().map(Seat).collect();
        HeldLine { tier: TierId::new(tier).unwrap(), legs: Legs::ONE, seats }
    }

    /// A record of one order of two tiers to which these things happened.
    fn record(at: Timestamp, kinds: &[FactKind], moved: &[(TransferCode, Money)]) -> LogRecord {
        let stripe = || ProviderId::new("stripe").unwrap();
        let fact = |kind: FactKind| {
            let payment = PaymentKey { provider: stripe(), payment: PaymentId::new("pi").unwrap() };
            let amount = money(1, "EUR");
            let is_refund = kind == FactKind::RefundMade || kind == FactKind::Refunded;
            let refund = is_refund.then_some(RefundNumber::FIRST);
            let moved = Some(Moved { payment, amount, reason: None, refund });
            Fact { kind, at, cause: Cause { by: Actor::Provider, moved } }
        };
        let numbers = (1..).filter_map(NonZeroU32::new);
        let told = Told {
            order: Mint::new(0).mint(START, &UserId::new("7").unwrap()),
            total: money(1000, "EUR"),
            lines: vec![line("a", &[1, 2]), line("b", &[7])],
            returned: [(RefundNumber::FIRST, vec![line("a", &[2])])].into(),
            facts: numbers.zip(kinds.iter().copied().map(fact)).collect(),
        };
        let sale = SaleId::new("carmen").unwrap();
        let merchant = Account::Merchant(MerchantId::new("opera").unwrap(), sale.clone());
        let transfer = |(code, amount): &(TransferCode, Money)| Transfer {
            from: Account::Provider(stripe()),
            to: merchant.clone(),
            code: *code,
            amount: *amount,
        };
        let transfers = moved.iter().map(transfer).collect();
        LogRecord { sale, at, told: vec![told], transfers }
    }

    #[test]
    fn sales_and_refunds_are_counted_in_the_minute_in_which_they_are_settled() {
        let mut takings = Takings::new(Currency::new("EUR").unwrap());
        let sold =
            [(TransferCode::Sale, money(965, "EUR")), (TransferCode::Commission, money(35, "EUR"))];
        takings.add(&record(START.plus_ms(59_999), &[FactKind::Made, FactKind::Paid], &sold));
        let back = [
            (TransferCode::Refund, money(321, "EUR")),
            (TransferCode::CommissionBack, money(12, "EUR")),
            (TransferCode::SentBack, money(333, "EUR")),
        ];
        let kinds = [FactKind::RefundMade, FactKind::Refunded];
        takings.add(&record(START.plus_ms(60_000), &kinds, &back));

        let first = takings.at(START);
        assert_eq!((first.orders, first.tickets, first.returned), (1, 3, 0));
        assert_eq!((first.taken, first.commission, first.given_back), (1000, 35, 0));
        let second = takings.at(START.plus_ms(60_000));
        assert_eq!((second.orders, second.tickets, second.returned), (0, 0, 1));
        assert_eq!((second.taken, second.commission, second.given_back), (0, -12, 333));
        assert_eq!(takings.at(START.plus_ms(120_000)), Taking::default());
        let minutes: Vec<Timestamp> = takings.minutes().map(|(minute, _)| minute).collect();
        assert_eq!(minutes, [START, START.plus_ms(60_000)]);
        let total = takings.total();
        assert_eq!(
            (total.tickets, total.taken, total.commission, total.given_back),
            (3, 1000, 23, 333)
        );
        let tiers: Vec<(&str, TierTaking)> =
            takings.tiers().map(|(tier, taking)| (tier.as_str(), *taking)).collect();
        let tier = |sold, returned| TierTaking { sold, returned };
        assert_eq!(tiers, [("a", tier(2, 1)), ("b", tier(1, 0))]);
    }

    #[test]
    fn what_buys_nothing_is_no_sale_and_other_currencies_are_left_out() {
        let mut takings = Takings::new(Currency::new("EUR").unwrap());
        let moved =
            [(TransferCode::Unowned, money(700, "EUR")), (TransferCode::Unowned, money(9, "CNY"))];
        let kinds = [FactKind::Made, FactKind::Expired, FactKind::CaptureRefused];
        takings.add(&record(START, &kinds, &moved));
        assert_eq!(takings.total(), Taking { unowned: 700, ..Taking::default() });
        assert_eq!(takings.tiers().count(), 0);
    }
}
