//! Facts: what the stores say, each as it is, before anything is concluded from it.
//!
//! These are types of the audit's own. What the engine derives from its records (which seats an
//! order holds, how many tickets it is) the audit derives again, so that both would have to be
//! wrong in the same way for a mistake to stay hidden.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use engine::domain::basics::ids::{DeploymentId, Legs, SaleId, Seat, TierId, UserId};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::SeatLeg;
use engine::domain::order::attempt::AttemptState;
use engine::domain::order::attendee::AttendeeHash;
use engine::domain::order::fact::FactKind;
use engine::domain::order::refund::RefundState;
use engine::domain::order::{OrderState, PaymentKey};
use engine::domain::sale::Sale;
use engine::domain::sale::archive::Lifecycle;

use super::violation::Subject;

/// Everything that was read.
#[derive(Debug, Default)]
pub struct Facts {
    /// Each sale of the catalogue that is audited.
    pub sales: BTreeMap<SaleId, SaleFacts>,
    /// The stops of each day's list.
    pub stops: BTreeSet<StopKey>,
    /// The payments for orders of those sales, and those for orders that do not exist.
    pub payments: Vec<PaymentFact>,
    /// The refunds of paid orders.
    pub refunds: Vec<RefundFact>,
    /// Orders of sales that are not audited.
    pub elsewhere: HashSet<OrderNumber>,
    /// The positions of each shard of the log that have a record.
    pub log_positions: BTreeMap<u8, BTreeSet<u64>>,
    /// How far each webhook was told of a shard of the log.
    pub told_to: BTreeMap<(String, u8), u64>,
    /// The facts of orders that wait to be told.
    pub waiting: Vec<WaitingFact>,
    /// The parts of the accounts.
    pub accounts: Vec<AccountFact>,
    /// What the transfers of the whole log, the postings and the captures of no order come to, by account, currency and
    /// part.
    pub booked: BTreeMap<PartKey, EntryFact>,
    /// The wallets.
    pub wallets: BTreeMap<WalletKey, WalletFact>,
    /// Their entries, in no order.
    pub wallet_entries: Vec<WalletEntryFact>,
    /// What buyers have of points and growth.
    pub points: BTreeMap<String, PointsFact>,
    /// What orders have given.
    pub awards: BTreeMap<OrderNumber, AwardFact>,
    /// Number of records that were read.
    pub records: u64,
    /// What the engine acknowledged and providers captured, if a ledger was kept.
    pub ledger: Option<LedgerFacts>,
    /// What the payment provider's own book has captured, if it was read.
    pub book: Book,
    /// What the providers' bills say went back, and nobody here knows of; without what an operator has said of it.
    pub billed: Vec<BilledFact>,
    /// Records that are not what the engine writes, or are where nobody looks for them.
    pub unreadable: Vec<Unreadable>,
}

impl Facts {
    /// An order and its sale, by its number.
    #[must_use]
    pub fn order(&self, number: OrderNumber) -> Option<(&SaleId, &OrderFact)> {
        self.sales.iter().find_map(|(id, sale)| Some((id, sale.orders.get(&number)?)))
    }
}

/// A part of an account: the account's name, the currency, and the shard of the log that writes it, `posted` for
/// the one that postings write, or `orderless` for that of captures for which there is no order.
pub type PartKey = (String, String, String);
/// The part of an account that postings write.
pub const POSTED: &str = "posted";
/// The part of an account that captures write for which there is no order.
pub const ORDERLESS: &str = "orderless";
/// The accounts that money moved between, what for, and the currency.
pub type TransferKey = (String, String, String, String);

/// Facts of an order that wait for a webhook to take them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingFact {
    /// The webhook.
    pub webhook: String,
    /// The shard of the log that has them.
    pub shard: u8,
    /// The order.
    pub order: OrderNumber,
    /// The numbers of the first and the last one.
    pub facts: (u32, u32),
}

/// What came into a part of an account, and what went out, in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntryFact {
    /// What came in.
    pub incoming: i128,
    /// What went out.
    pub outgoing: i128,
}

/// A wallet: its buyer, and the currency.
pub type WalletKey = (String, String);

/// What a wallet says it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WalletFact {
    /// All that came in and went out.
    pub entry: EntryFact,
    /// What it says is left.
    pub balance: i128,
}

/// One change of a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletEntryFact {
    /// The wallet.
    pub wallet: WalletKey,
    /// Its name: the order, the refund if it is of one, and what the order tells.
    pub name: String,
    /// The order.
    pub order: OrderNumber,
    /// What came in, or went out below 0.
    pub amount_minor: i64,
    /// True if it was taken whatever the wallet had.
    pub is_gone: bool,
}

/// Points and growth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PointsFact {
    /// Points.
    pub points: u64,
    /// Growth.
    pub growth: u64,
}

/// What an order has given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwardFact {
    /// The buyer who has it.
    pub user: String,
    /// How many facts of the order it is by.
    pub facts: u32,
    /// What was given.
    pub given: PointsFact,
}

/// What an order gives for each whole amount that it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct PointsTermsFact {
    /// The amount, in minor units.
    pub per_minor: u64,
    /// The points for it.
    pub points: u64,
    /// The growth for it.
    pub growth: u64,
}

/// A part of an account, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountFact {
    /// Which it is.
    pub part: PartKey,
    /// All that came in and went out.
    pub entry: EntryFact,
    /// What it says is left.
    pub balance: i128,
}

/// Everything that was read of one sale.
#[derive(Debug)]
pub struct SaleFacts {
    /// The catalogue's file, laid out.
    pub sale: Sale,
    /// The epoch that the catalogue names; `None` before the first load.
    pub epoch: Option<String>,
    /// Where it is in its life.
    pub lifecycle: Lifecycle,
    /// Counts every publication.
    pub version: u64,
    /// The calls by which searches find it.
    pub calls: BTreeMap<CallKey, CallFact>,
    /// The stops that it has brought to the lists of days, with the highest version that wrote it.
    pub stops: BTreeMap<StopKey, u64>,
    /// Its orders.
    pub orders: BTreeMap<OrderNumber, OrderFact>,
    /// Its claims, in no order; a seat-leg is duplicated if two items claim it.
    pub claims: Vec<ClaimFact>,
    /// The claims of attendees.
    pub attendees: Vec<(AttendeeHash, OrderNumber)>,
    /// The attendees whom each buyer has named, in orders that were made and in others.
    pub named: BTreeMap<UserId, BTreeSet<AttendeeHash>>,
    /// Number of tickets of each buyer, as counted.
    pub counts: BTreeMap<UserId, i64>,
    /// The statistics, summed over their shards.
    pub counters: BTreeMap<TierId, CounterFact>,
    /// State of the sale in Redis.
    pub redis: RedisFacts,
    /// What the log says of each of its orders, with the facts' numbers, in the order of the log.
    pub log: BTreeMap<OrderNumber, Vec<(u32, ToldFact)>>,
    /// What the log says was moved of its money, in minor units.
    pub transfers: BTreeMap<TransferKey, i128>,
    /// What was found of its waiting room, if it has one.
    pub room: Option<RoomFacts>,
    /// What its list says is revoked: by order and ticket the lowest issue that is good, 0 if none is.
    pub revoked: BTreeMap<OrderNumber, BTreeMap<u8, u32>>,
    /// Tickets that let somebody in, and check-ins after the first, as counted.
    pub check_ins: (u64, u64),
    /// The check-ins after the first.
    pub doubles: Vec<DoubleFact>,
}

/// Where a search finds a train.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The day.
    pub day: String,
    /// The stop's id or name, in lower case.
    pub stop: String,
    /// Hours and minutes, `0805`; `2400` if they are not known.
    pub time: String,
}

/// A stop in the list of a day.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StopKey {
    /// The day.
    pub day: String,
    /// The stop's name, a tab and its id, in lower case.
    pub mark: String,
}

/// A call of a train, as searches find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFact {
    /// The highest version of the sale that wrote it.
    pub version: u64,
    /// Ids and names of the stops that come later, in lower case.
    pub later: BTreeSet<String>,
    /// When the train leaves, in milliseconds since 1970; `None` where that is not known, and of what an earlier release
    /// wrote.
    pub departs_ms: Option<i64>,
}

impl SaleFacts {
    /// A sale of the catalogue of which nothing else was read yet.
    #[must_use]
    pub fn new(sale: Sale, epoch: Option<String>) -> Self {
        Self {
            sale,
            epoch,
            lifecycle: Lifecycle::Listed,
            version: 1,
            calls: BTreeMap::new(),
            stops: BTreeMap::new(),
            orders: BTreeMap::new(),
            claims: Vec::new(),
            attendees: Vec::new(),
            named: BTreeMap::new(),
            counts: BTreeMap::new(),
            counters: BTreeMap::new(),
            redis: RedisFacts::default(),
            log: BTreeMap::new(),
            transfers: BTreeMap::new(),
            room: None,
            revoked: BTreeMap::new(),
            check_ins: (0, 0),
            doubles: Vec::new(),
        }
    }

    /// The tiers of which each has a load of its own in Redis, or `None` for one of all tiers.
    #[must_use]
    pub fn loads(&self) -> Vec<Option<TierId>> {
        let file = self.sale.file();
        match file.tiers_apart {
            true => file.tiers.iter().map(|tier| Some(tier.tier.clone())).collect(),
            false => vec![None],
        }
    }

    /// The orders that own their seats.
    pub fn live(&self) -> impl Iterator<Item = &OrderFact> {
        self.orders.values().filter(|order| order.is_live())
    }

    /// The orders in one state.
    pub fn in_state(&self, state: OrderState) -> impl Iterator<Item = &OrderFact> {
        self.orders.values().filter(move |order| order.state == state)
    }
}

/// An order.
#[derive(Debug, Clone)]
pub struct OrderFact {
    /// Its number.
    pub number: OrderNumber,
    /// Its buyer.
    pub user: UserId,
    /// Its state.
    pub state: OrderState,
    /// Its lines.
    pub lines: Vec<LineFact>,
    /// Its price.
    pub total: Money,
    /// The end of its payment window.
    pub pay_by: Timestamp,
    /// The time to which a place has extended it.
    pub extended_to: Option<Timestamp>,
    /// The providers at which it has a place.
    pub places: Vec<String>,
    /// The time of its last change of state.
    pub changed_at: Timestamp,
    /// The time under which the index of due work has it, in milliseconds; `None` if it is not there.
    pub due_ms: Option<i64>,
    /// The payment that decided it.
    pub payment: Option<PaymentKey>,
    /// What it tells, in order.
    pub told: Vec<ToldFact>,
    /// How much of that is settled.
    pub settled: u32,
    /// The merchant whose money it is, and the platform's share in hundredths of a per cent.
    pub merchant: (String, u16),
    /// What it gives its buyer for what is paid.
    pub points: Option<PointsTermsFact>,
    /// How many refunds it says to have.
    pub refunds: u8,
    /// Of how many of them it says that the money is back.
    pub refunds_back: u8,
    /// The payments that were started for it, with their states.
    pub attempts: Vec<(u8, AttemptState)>,
    /// Those of them that no buyer can have: their providers' names were to be written first, and are not there.
    pub unhanded: Vec<u8>,
    /// Those of them that their provider had none of when the buyer chose otherwise, each with its expiry.
    pub absent: Vec<(u8, Timestamp)>,
    /// Those of them of which it keeps what its buyer does next.
    pub steps: Vec<u8>,
    /// The one of them that paid it.
    pub paid_attempt: Option<u8>,
    /// Its tickets, live and refunded, in the order of its lines.
    pub tickets: Vec<TicketFact>,
    /// What it replaces.
    pub exchange: Option<ExchangeFact>,
}

impl OrderFact {
    /// The deadline of its payment: the later of the end of its window and the time to which it was extended.
    #[must_use]
    pub fn payable_until(&self) -> Timestamp {
        self.extended_to.into_iter().fold(self.pay_by, Timestamp::max)
    }
}

/// The tickets that an order replaces, as it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeFact {
    /// The order that had them.
    pub order: OrderNumber,
    /// That order's sale.
    pub sale: SaleId,
    /// The tickets: the tier, and the seat's printed name.
    pub tickets: BTreeSet<(TierId, String)>,
    /// What they were worth.
    pub value_minor: i64,
}

/// The capture whose money a payment moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedFact {
    /// Its provider, and the provider's id for it.
    pub key: PaymentKey,
    /// The order that it was captured for.
    pub order: OrderNumber,
}

/// A time in milliseconds, and a door.
pub type CheckInFact = (i64, String);

/// What an order says of one of its tickets, apart from its seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketFact {
    /// Its number within the order, from 1.
    pub number: u8,
    /// The refund that took it back.
    pub refund: Option<u8>,
    /// Its issue, from 1.
    pub issue: u32,
    /// The first check-in by it.
    pub check_in: Option<CheckInFact>,
}

/// A check-in of a ticket that had let somebody in before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoubleFact {
    /// The order.
    pub order: OrderNumber,
    /// The ticket's number within it.
    pub ticket: u8,
    /// The check-in that was first.
    pub first: CheckInFact,
    /// The other one.
    pub again: CheckInFact,
}

/// What an order tells, or the log of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldFact {
    /// What happened.
    pub kind: FactKind,
    /// When.
    pub at: Timestamp,
    /// Who caused it.
    pub by: String,
    /// The payment's provider and id, if money moved.
    pub payment: Option<(String, String)>,
    /// How much money moved.
    pub amount_minor: Option<i64>,
    /// The currency of that.
    pub currency: Option<String>,
    /// The refund of a paid order that it is of.
    pub refund: Option<u8>,
    /// True if the money is a dispute's.
    pub is_disputed: bool,
}

impl OrderFact {
    /// True if what is settled of it counts it in the statistics.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        let settled = usize::try_from(self.settled).unwrap_or(usize::MAX);
        self.told.iter().take(settled).any(|told| match told.kind {
            FactKind::Paid | FactKind::Rescued => true,
            FactKind::Made
            | FactKind::Cancelled
            | FactKind::Expired
            | FactKind::RefundDue
            | FactKind::CaptureRefused
            | FactKind::RefundMade
            | FactKind::Refunded
            | FactKind::RefundUndone
            | FactKind::DisputeOpened
            | FactKind::DisputeWon
            | FactKind::DisputeLost => false,
        })
    }

    /// The refunds whose making is settled.
    #[must_use]
    pub fn settled_refunds(&self) -> BTreeSet<u8> {
        let settled = usize::try_from(self.settled).unwrap_or(usize::MAX);
        let settled = self.told.iter().take(settled);
        settled
            .filter(|told| told.kind == FactKind::RefundMade)
            .filter_map(|told| told.refund)
            .collect()
    }

    /// True if the order waits to be paid, and replaces tickets of the same sale meanwhile: their people have their
    /// claims, and the limit makes room for them.
    #[must_use]
    pub fn replaces_in(&self, sale: &SaleId) -> bool {
        let replaces = self.exchange.as_ref().is_some_and(|exchange| exchange.sale == *sale);
        self.state == OrderState::Pending && replaces
    }

    /// True if its payment moved money that was captured for the tickets that it replaces.
    #[must_use]
    pub fn is_moved(&self, payment: &str) -> bool {
        let replaced = self.exchange.as_ref().map(|exchange| exchange.order);
        replaced.is_some_and(|order| payment == format!("{order}-for-{}", self.number))
    }

    /// True while the order owns its seats: pending or paid.
    #[must_use]
    pub fn is_live(&self) -> bool {
        match self.state {
            OrderState::Pending | OrderState::Paid => true,
            OrderState::Cancelled
            | OrderState::Expired
            | OrderState::RefundDue
            | OrderState::Refunded => false,
        }
    }

    /// The number of its tickets.
    #[must_use]
    pub fn tickets(&self) -> i64 {
        self.lines.iter().map(LineFact::tickets).sum()
    }

    /// Each of its seats on each leg of its journey, in the order of its lines.
    #[must_use]
    pub fn seat_legs(&self) -> Vec<SeatLeg> {
        let mut all = Vec::new();
        for line in &self.lines {
            for (seat, _) in &line.seats {
                for leg in line.legs.iter() {
                    all.push(SeatLeg { tier: line.tier.clone(), leg, seat: *seat });
                }
            }
        }
        all
    }
}

/// Tickets of one tier on one journey.
#[derive(Debug, Clone)]
pub struct LineFact {
    /// Tier id, unique in the sale.
    pub tier: TierId,
    /// The legs of the journey.
    pub legs: Legs,
    /// The price of each ticket.
    pub price_minor: MinorUnits,
    /// The seats of live tickets, each with the hashes of its attendee, the one that is counted last; none if
    /// nobody is named.
    pub seats: Vec<(Seat, Vec<AttendeeHash>)>,
    /// The printed names of the seats of tickets that were refunded, each with the number of the refund.
    pub refunded: Vec<(String, u8)>,
}

impl LineFact {
    /// The number of its tickets.
    #[must_use]
    pub fn tickets(&self) -> i64 {
        i64::try_from(self.seats.len()).unwrap_or(i64::MAX)
    }

    /// The price of all its tickets.
    #[must_use]
    pub fn total_minor(&self) -> MinorUnits {
        self.seats.iter().map(|_| self.price_minor).sum()
    }
}

/// A seat-leg and the order that the database says owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFact {
    /// The seat-leg.
    pub at: SeatLeg,
    /// The number of the order that claims it.
    pub order: OrderNumber,
}

/// Statistics of a tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterFact {
    /// Tickets sold.
    pub tickets: i64,
    /// What they cost.
    pub revenue_minor: MinorUnits,
}

/// A payment and what was decided about it.
#[derive(Debug, Clone)]
pub struct PaymentFact {
    /// Its provider, and the provider's id for it.
    pub key: PaymentKey,
    /// The number of the order that it is for.
    pub order: OrderNumber,
    /// The captured amount.
    pub amount: Money,
    /// The payment that was started for its order and brought it, as its provider says.
    pub attempt: Option<u8>,
    /// True if it paid its order, false if it goes back.
    pub accepted: bool,
    /// State of its refund, if it has one.
    pub refund: Option<RefundState>,
    /// What goes back of it by refunds of its order, as it says.
    pub back_minor: MinorUnits,
    /// Its disputes, as it says.
    pub disputes: Vec<DisputeFact>,
    /// The dispute that keeps refunds away, as it says.
    pub disputed: Option<String>,
    /// The list of disputed payments that it is in, `open` or `over`, and its place there.
    pub listed: Option<(String, String)>,
    /// The capture whose money it is, if that was for tickets that its order replaces.
    pub captured: Option<MovedFact>,
}

/// A dispute of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisputeFact {
    /// Its name at the provider.
    pub id: String,
    /// Its state, in the database's words.
    pub state: String,
    /// What is in dispute.
    pub amount_minor: i64,
    /// Time of its last change, in milliseconds.
    pub changed_ms: i64,
    /// How often it was open again after it was won, and won after it was lost.
    pub again: (u8, u8),
}

/// A refund of a paid order.
#[derive(Debug, Clone)]
pub struct RefundFact {
    /// The number of the order.
    pub order: OrderNumber,
    /// Its number within the order, from 1.
    pub number: u8,
    /// The payment that it goes back of.
    pub payment: PaymentKey,
    /// The tickets that it took back: the tier, and the seat's printed name.
    pub tickets: BTreeSet<(TierId, String)>,
    /// What goes back.
    pub amount: Money,
    /// What of the tickets' worth pays the order that they were exchanged for.
    pub kept_minor: MinorUnits,
    /// The order that they were exchanged for.
    pub exchanged_for: Option<OrderNumber>,
    /// How far it is.
    pub state: RefundState,
    /// True if the index of due work has it.
    pub is_due: bool,
    /// True if the cancellation of its sale made it.
    pub is_of_cancelled_sale: bool,
    /// The dispute that it is, if it is one that was lost.
    pub dispute: Option<String>,
    /// True if its money did not go by a refund at its provider: a lost dispute took it.
    pub is_by_dispute: bool,
    /// How many of its names at the provider came to nothing, or times that a dispute gave its money back.
    pub ended: u8,
}

/// What was found of a waiting room while it was read.
#[derive(Debug, Default)]
pub struct RoomFacts {
    /// The last record of its log that was read: its number and time.
    pub last: Option<(u64, Timestamp)>,
    /// Number of records of its log and of places that were read.
    pub read: u64,
    /// What is wrong with them, the first ones.
    pub defects: Vec<(Subject, String)>,
    /// Number of defects beyond those.
    pub more: u64,
    /// True if its places were erased: the sale is archived.
    pub is_erased: bool,
    /// The admissions of those who have orders.
    pub admissions: BTreeMap<UserId, AdmissionsFact>,
}

/// How often a buyer was let in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdmissionsFact {
    /// Admissions of the visit of the place that the buyer has.
    pub attempts: u32,
    /// Most admissions of the places that the buyer had before.
    pub before: u32,
}

impl AdmissionsFact {
    /// Most orders that can have come of them.
    #[must_use]
    pub fn most(&self) -> u64 {
        u64::from(self.attempts) + u64::from(self.before)
    }
}

/// State of a sale in Redis.
#[derive(Debug, Default)]
pub struct RedisFacts {
    /// What is loaded: of a sale that keeps its tiers apart for each tier, else once for all, under `None`.
    pub heads: BTreeMap<Option<TierId>, HeadFact>,
    /// The bitmaps of each tier of the catalogue.
    pub tiers: BTreeMap<TierId, TierBits>,
    /// Its holds.
    pub holds: BTreeMap<OrderNumber, HoldFact>,
    /// The deadlines by which holds are found, in milliseconds.
    pub due_ms: BTreeMap<OrderNumber, i64>,
    /// Number of tickets that each buyer has held or bought.
    pub bought: BTreeMap<UserId, i64>,
    /// The tokens of each shard of its gate that counts them.
    pub gate: BTreeMap<u16, ShardFact>,
}

/// The tokens of one shard of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardFact {
    /// Tokens that its budget was given.
    pub issued: i64,
    /// Tokens that its budget still has.
    pub remaining: i64,
    /// Since when it counts.
    pub since: Timestamp,
}

impl ShardFact {
    /// Tickets for which it has admitted buyers.
    #[must_use]
    pub fn used(&self) -> i64 {
        self.issued - self.remaining
    }
}

/// A load in Redis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadFact {
    /// Its epoch; `None` if Redis does not have it.
    pub epoch: Option<String>,
    /// The terms that its scripts check, field by field.
    pub terms: BTreeMap<String, String>,
}

/// A hold as Redis remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldFact {
    /// The buyer it is held for.
    pub user: UserId,
    /// The end of the time in which it may be paid.
    pub deadline: Timestamp,
    /// Its lines.
    pub lines: Vec<HeldFact>,
}

impl HoldFact {
    /// Each of its seats on each leg of its journey.
    #[must_use]
    pub fn seat_legs(&self) -> BTreeSet<SeatLeg> {
        let mut all = BTreeSet::new();
        for HeldFact { tier, legs, seats } in &self.lines {
            for leg in legs.iter() {
                let at = |seat: &Seat| SeatLeg { tier: tier.clone(), leg, seat: *seat };
                all.extend(seats.iter().map(at));
            }
        }
        all
    }
}

/// A line of a hold: seats of one tier on one journey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFact {
    /// Tier id, unique in the sale.
    pub tier: TierId,
    /// The legs of the journey.
    pub legs: Legs,
    /// The seats.
    pub seats: Vec<Seat>,
}

/// The bitmaps of one tier, one of each kind for each leg; a missing key is an empty one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TierBits {
    /// The shape of the grid as the scripts are given it, field by field.
    pub shape: BTreeMap<String, String>,
    /// 1 where a seat is held, sold or not for sale.
    pub taken: Vec<Vec<u8>>,
    /// 1 where a seat is sold.
    pub sold: Vec<Vec<u8>>,
}

/// What the engine acknowledged to buyers, and what payment providers captured.
#[derive(Debug, Clone, Default)]
pub struct LedgerFacts {
    /// Orders that the engine acknowledged.
    pub acknowledged: Vec<OrderNumber>,
    /// Money that was captured.
    pub captured: Vec<CaptureFact>,
}

impl Facts {
    /// Takes a ledger for a fact, but for its entries on sales that are not audited.
    pub fn add_ledger(&mut self, mut ledger: LedgerFacts) {
        ledger.acknowledged.retain(|order| !self.elsewhere.contains(order));
        ledger.captured.retain(|capture| !self.elsewhere.contains(&capture.order));
        self.ledger = Some(ledger);
    }
}

/// What the provider's own book has, and whose id its payments carry that are this deployment's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Book {
    /// The deployment's id, if it has one.
    pub own: Option<DeploymentId>,
    /// The captures, of everybody who uses the account.
    pub captured: Vec<BookFact>,
}

/// A capture in the provider's book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookFact {
    /// The capture.
    pub capture: CaptureFact,
    /// The deployment's id that its payment carries.
    pub deployment: Option<String>,
    /// What the provider has sent back of it by refunds, in minor units; `None` if the book does not say.
    pub back_minor: Option<MinorUnits>,
    /// What is under way besides.
    pub pending_minor: MinorUnits,
}

/// Money that went back by a provider's bill, and by no refund that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BilledFact {
    /// The payment, and the order that the bill's line names, if it names one.
    pub payment: Option<(PaymentKey, OrderNumber)>,
    /// The name of the difference among those of its account, and the account.
    pub name: String,
    /// How much.
    pub amount: Money,
}

/// One captured payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureFact {
    /// Its provider, and the provider's id for it.
    pub key: PaymentKey,
    /// The number of the order that it is for.
    pub order: OrderNumber,
    /// The captured amount.
    pub amount: Money,
}

/// A record that cannot be taken for a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its sale, if that much can be read.
    pub sale: Option<SaleId>,
    /// The record: a table and its key, or a Redis key and its field.
    pub record: String,
    /// What is wrong with it, in words.
    pub what: String,
}
