//! The guards: every check that stands between a fault and a broken promise, by name.
//!
//! A test of a guard includes the run where it is removed, and that run must fail. So each check asks
//! here whether it [`stands`]. In a build without `debug_assertions`, as every build that sells is,
//! the answer is the constant `true` and there is nothing that could switch it off. In a debug build
//! [`without`] takes a guard away, for one thread and for as long as a closure runs.
//!
//! Guards that DynamoDB's conditions or the provider's idempotency are in production stand in their
//! models (`tests/model-stores`); the others in the rules and flows themselves.

/// A check that can be taken away to show what it is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guard {
    /// An order comes to life only if nobody else owns one of its seat-legs (DynamoDB).
    ClaimCondition,
    /// An order changes only from the state that the change starts from (DynamoDB).
    StateCondition,
    /// A number is one order's for ever: a later writer finds it taken (DynamoDB).
    NumberOnce,
    /// A buyer's tickets never pass the sale's limit, whatever Redis counted (DynamoDB).
    BuyerLimit,
    /// An attendee has one ticket of a sale (DynamoDB).
    AttendeeOnce,
    /// The number of attendees that a buyer names in a sale is bounded (DynamoDB).
    AttendeeLimit,
    /// A payment is decided once, however often its callback comes (DynamoDB).
    CallbackDedupe,
    /// A fact of an order is settled once: in its sale's statistics, and in the log (DynamoDB).
    SyncOnce,
    /// What takes an order out of the index of due work has seen all of its facts (DynamoDB).
    FactsSeen,
    /// Only the holder of the lease names the epoch that was loaded (DynamoDB).
    LeaseFence,
    /// A payment is refunded once, however often that is requested (the payment provider).
    RefundOnce,
    /// A release gives back only what is held: running it twice frees nothing twice (Redis).
    ReleaseOnlyHeld,
    /// A release or a mark gives back only the hold that its caller saw (Redis).
    ReleaseSeen,
    /// A release never frees a seat that is sold (Redis).
    ReleaseKeepsSold,
    /// A script serves only callers that know its sale's epoch (Redis).
    EpochFence,
    /// A load replaces only the inventory that its caller saw (Redis).
    LoadExpected,
    /// A load is published only if all of its parts are in place (Redis).
    LoadComplete,
    /// A sale has no epoch before its load is published (Redis).
    LoadUnnamed,
    /// A sale counts as loaded only if Redis has every one of its inventories.
    EveryInventory,
    /// Tiers that Redis still has stop selling before the claims are read from which all are loaded.
    LoadFence,
    /// The same attempt is answered with the same hold (Redis).
    HoldReplay,
    /// A sale sells between its opening and its closing, and not while it is paused (Redis).
    SaleWindow,
    /// A journey sells until its train leaves, and nobody has longer to pay for it.
    Departure,
    /// A mark leaves taken what others own (Redis).
    MarkTaken,
    /// A repair is refused once a seat of its block was freed since its snapshot (Redis).
    RepairCounter,
    /// A restore is refused once a seat of its blocks was freed since its snapshot (Redis).
    RestoreCounter,
    /// A hold whose seats are sold meanwhile is not restored (Redis).
    RestoreUnsold,
    /// A hold that ends without an order leaves a tombstone, so that a late writer fails.
    Tombstone,
    /// A capture is acted on only if its payment carries the deployment's id, or names an order that exists.
    Ours,
    /// A refund that a capture decides has a turn.
    RefundTurn,
    /// A capture of ours whose order is not there waits for an operator, and is not sent back by itself.
    Unmatched,
    /// An order does not expire before its time.
    Deadline,
    /// The provider is asked for the payment before an order expires.
    AskProvider,
    /// An unpaid order waits for what the provider lists late before it expires.
    Grace,
    /// No attempt is started after its order's deadline.
    StartInTime,
    /// A place extends its order once, and by no more than the bound says.
    ExtendedOnce,
    /// Who has a place starts in it, not before.
    InPlace,
    /// An attempt is written on its order before its provider is asked for it.
    WriteBeforeStart,
    /// A buyer is given the step of an attempt only once its reference is on the order.
    NamedFirst,
    /// An order with an open attempt is closed at the provider before it expires.
    CloseBeforeEnd,
    /// An order ends only with the attempts that were seen (DynamoDB).
    AttemptsSeen,
    /// What a provider has listed late is found: each pass over its list reads the last minutes again.
    ReadAgain,
    /// What a pass has read counts as read only up to the lag of the list.
    ListLag,
    /// A payment pays an order only if its amount and currency are the order's.
    AmountCheck,
    /// A capture that no store takes now is in its queue before its provider is answered.
    KeepBeforeAnswer,
    /// The orders are asked before a buyer is refused: Redis may have forgotten.
    AskBeforeRefusing,
    /// An admission used again for something else is refused.
    FingerprintCheck,
    /// A sale is archived only when nothing of it is undecided.
    ArchiveDecided,
    /// A buyer cancels only an own order.
    BuyerCheck,
    /// A ticket is refunded once.
    TicketOnce,
    /// What goes back of a payment is never more than was captured (DynamoDB).
    RefundBound,
    /// A refund goes from the refunds that were seen: two at once make two numbers (DynamoDB).
    RefundsSeen,
    /// A buyer's tickets are corrected only if they are what was seen (Redis).
    RecountSeen,
    /// Seats are marked sold without their hold only if none of their blocks was freed since the order was
    /// read (Redis).
    SellCounter,
    /// A buyer of a room is answered `Certain` only if no draw may have read the bucket before (its marker).
    RoomMarker,
    /// The first window of a room is closed once (DynamoDB).
    RoomClosing,
    /// A chunk of a room's leaves stays as it was first written (DynamoDB).
    RoomChunk,
    /// A record of a room's log stays as it was first written (DynamoDB).
    RoomRecord,
    /// A round of the beacon that somebody brings is taken only with its signature.
    RoundVerified,
    /// The gate lets in only who claims a place below the serving number.
    PlaceDue,
    /// The place that is claimed is the one that the draw gave to the index.
    PlaceComputed,
    /// A visit begins once (DynamoDB).
    VisitOnce,
    /// A visit is written before its buyer is told that it has begun.
    VisitWritten,
    /// A code is used no more often than it may be (DynamoDB).
    CodeUses,
    /// Whoever joins again replaces the membership that was read, and no other (DynamoDB).
    RejoinCondition,
    /// A buyer does not give a ticket back that has let somebody in (the rule, and DynamoDB).
    CheckedInStays,
    /// A ticket has one first check-in, and none once it is refunded or issued anew (DynamoDB).
    CheckInOnce,
    /// The issue of a live ticket goes up from the one that was seen (DynamoDB).
    IssueSeen,
    /// A posting is made once, however often it is asked for: its key is one posting's for ever (DynamoDB).
    PostingOnce,
    /// A posting goes from the balances and versions that were read of both of its accounts (DynamoDB).
    AccountSeen,
    /// A merchant is settled no more than it has, and no more comes back than was settled.
    SettledWithin,
    /// Nothing of a payment is refunded while a dispute of it is open (the rule, and DynamoDB).
    DisputeOpen,
    /// A dispute goes from the disputes that were seen of its payment: each step is recorded once (DynamoDB).
    DisputesSeen,
    /// What a dispute has taken that is won after it was lost is owed again.
    Reinstated,
    /// A refund is sent only if no more went back by hand than is known here (the payment provider's adapter).
    ReadBeforeSending,
    /// A refund made by hand pays the refund of ours of the same amount that its provider has refused; one that was refused
    /// is not sent after another was made by hand.
    PaidByHand,
    /// What a provider had and did not bring to who paid is sent again by an operator's word alone.
    AfterWord,
    /// A refund made outside of which only the provider's bill tells is recorded from it.
    OutsideByBill,
    /// A bill has the refunds of one day: one of ours that is under way may have been taken, so that no other pays it.
    BillIsNoList,
    /// What an exchange keeps of a payment for another order counts as gone from it.
    KeptCounted,
    /// A dispute is of every order that has money of its payment.
    DisputeFollows,
    /// What was bought with the money of a top-up goes back to a wallet that a lost dispute has left with a debt.
    DebtTakesBack,
    /// A wallet pays no more than it has (the rule, and DynamoDB).
    WalletLimit,
    /// What an order gives is asked for before its facts are settled.
    AwardAsked,
    /// What an order gives replaces what was seen of it (DynamoDB).
    AwardSeen,
    /// A fact of an order of which others wait is not told before them.
    OrderWaits,
    /// A subscription is moved only by the teller that has taken it last (DynamoDB).
    TellerLease,
}

impl Guard {
    /// Every guard but [`Self::OF_ROOMS`], [`Self::OF_TICKETS`], [`Self::OF_POSTINGS`],
    /// [`Self::OF_DISPUTES`], [`Self::OF_OUTSIDE`], [`Self::OF_BILLS`], [`Self::OF_EXCHANGES`], [`Self::OF_WALLETS`],
    /// [`Self::OF_POINTS`] and [`Self::OF_TELLING`], for the test that removes each.
    pub const ALL: [Self; 54] = [
        Self::ClaimCondition,
        Self::StateCondition,
        Self::NumberOnce,
        Self::BuyerLimit,
        Self::AttendeeOnce,
        Self::AttendeeLimit,
        Self::CallbackDedupe,
        Self::SyncOnce,
        Self::FactsSeen,
        Self::LeaseFence,
        Self::RefundOnce,
        Self::ReleaseOnlyHeld,
        Self::ReleaseSeen,
        Self::ReleaseKeepsSold,
        Self::EpochFence,
        Self::LoadExpected,
        Self::LoadComplete,
        Self::LoadUnnamed,
        Self::EveryInventory,
        Self::LoadFence,
        Self::HoldReplay,
        Self::SaleWindow,
        Self::Departure,
        Self::MarkTaken,
        Self::RepairCounter,
        Self::RestoreCounter,
        Self::RestoreUnsold,
        Self::Tombstone,
        Self::Ours,
        Self::RefundTurn,
        Self::Unmatched,
        Self::Deadline,
        Self::AskProvider,
        Self::Grace,
        Self::StartInTime,
        Self::ExtendedOnce,
        Self::InPlace,
        Self::WriteBeforeStart,
        Self::NamedFirst,
        Self::CloseBeforeEnd,
        Self::AttemptsSeen,
        Self::ReadAgain,
        Self::ListLag,
        Self::AmountCheck,
        Self::KeepBeforeAnswer,
        Self::AskBeforeRefusing,
        Self::FingerprintCheck,
        Self::ArchiveDecided,
        Self::BuyerCheck,
        Self::TicketOnce,
        Self::RefundBound,
        Self::RefundsSeen,
        Self::RecountSeen,
        Self::SellCounter,
    ];

    /// The guards of a waiting room, for the same test in sales that have one.
    pub const OF_ROOMS: [Self; 11] = [
        Self::RoomMarker,
        Self::RoomClosing,
        Self::RoomChunk,
        Self::RoomRecord,
        Self::RoundVerified,
        Self::PlaceDue,
        Self::PlaceComputed,
        Self::VisitOnce,
        Self::VisitWritten,
        Self::CodeUses,
        Self::RejoinCondition,
    ];

    /// The guards of issued tickets, which `tests/sim/tests/tickets.rs` takes away.
    pub const OF_TICKETS: [Self; 3] = [Self::CheckedInStays, Self::CheckInOnce, Self::IssueSeen];

    /// The guards of postings, which `tests/sim/tests/postings.rs` takes away.
    pub const OF_POSTINGS: [Self; 3] = [Self::PostingOnce, Self::AccountSeen, Self::SettledWithin];

    /// The guards of disputes, which `tests/sim/tests/disputes.rs` takes away.
    pub const OF_DISPUTES: [Self; 3] = [Self::DisputeOpen, Self::DisputesSeen, Self::Reinstated];

    /// Those of refunds that are made by hand, which `tests/sim/tests/outside.rs` takes away.
    pub const OF_OUTSIDE: [Self; 3] = [Self::ReadBeforeSending, Self::PaidByHand, Self::AfterWord];

    /// Those of refunds of which a bill tells, which `tests/sim/tests/bills.rs` takes away.
    pub const OF_BILLS: [Self; 2] = [Self::OutsideByBill, Self::BillIsNoList];

    /// Those that a test of exchanges with its own crowd removes.
    pub const OF_EXCHANGES: [Self; 2] = [Self::KeptCounted, Self::DisputeFollows];

    /// The guards of wallets, which `tests/sim/tests/wallets.rs` takes away.
    pub const OF_WALLETS: [Self; 2] = [Self::DebtTakesBack, Self::WalletLimit];

    /// The guards of points, which `tests/sim/tests/points.rs` takes away.
    pub const OF_POINTS: [Self; 2] = [Self::AwardAsked, Self::AwardSeen];

    /// The guards of telling, which `tests/sim/tests/telling.rs` takes away.
    pub const OF_TELLING: [Self; 2] = [Self::OrderWaits, Self::TellerLease];

    /// Every guard there is.
    fn every() -> impl Iterator<Item = Self> {
        let of_orders = Self::ALL.into_iter().chain(Self::OF_ROOMS).chain(Self::OF_TICKETS);
        of_orders
            .chain(Self::OF_POSTINGS)
            .chain(Self::OF_DISPUTES)
            .chain(Self::OF_OUTSIDE)
            .chain(Self::OF_BILLS)
            .chain(Self::OF_EXCHANGES)
            .chain(Self::OF_WALLETS)
            .chain(Self::OF_POINTS)
            .chain(Self::OF_TELLING)
    }
}

impl std::fmt::Display for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::str::FromStr for Guard {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::every().find(|guard| guard.to_string() == name);
        named.ok_or_else(|| format!("there is no guard {name}"))
    }
}

/// True unless a test has taken the guard away. Write it first in a condition: `stands(guard) && …`
/// of what refuses, `!stands(guard) || …` of what allows.
#[cfg(not(debug_assertions))]
#[must_use]
pub const fn stands(_guard: Guard) -> bool {
    true
}

#[cfg(debug_assertions)]
pub use removable::{stands, without};

#[cfg(debug_assertions)]
mod removable {
    use std::cell::Cell;

    use super::Guard;

    thread_local! {
        /// A bit for each guard that is away.
        static AWAY: Cell<u128> = const { Cell::new(0) };
    }

    fn bit(guard: Guard) -> u128 {
        1 << guard as u32
    }

    /// True unless a test has taken the guard away. Write it first in a condition:
    /// `stands(guard) && …` of what refuses, `!stands(guard) || …` of what allows.
    #[must_use]
    pub fn stands(guard: Guard) -> bool {
        AWAY.with(|away| away.get() & bit(guard) == 0)
    }

    /// Does something without a guard, on this thread alone; afterwards it stands as before, also
    /// after a panic. Only debug builds have this function.
    pub fn without<T>(guard: Guard, act: impl FnOnce() -> T) -> T {
        /// Puts back what was there before.
        struct Restore(u128);
        impl Drop for Restore {
            fn drop(&mut self) {
                AWAY.with(|away| away.set(self.0));
            }
        }
        let before = AWAY.with(Cell::get);
        let _restore = Restore(before);
        AWAY.with(|away| away.set(before | bit(guard)));
        act()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn every_guard_is_listed_once_and_has_its_name() {
        let all: Vec<Guard> = Guard::every().collect();
        let distinct: BTreeSet<Guard> = all.iter().copied().collect();
        assert!(distinct.iter().eq(&all), "the lists are in the order of the enum");
        assert_eq!(all.len(), Guard::TellerLease as usize + 1, "one is not listed");
        for guard in all {
            assert_eq!(guard.to_string().parse(), Ok(guard));
        }
        assert!("Luck".parse::<Guard>().is_err());
    }

    #[cfg(debug_assertions)]
    #[test]
    fn a_guard_is_away_only_for_its_closure_and_its_thread() {
        let (one, other) = (Guard::Tombstone, Guard::AmountCheck);
        let nested = without(one, || {
            let on_another_thread = std::thread::spawn(move || stands(one)).join().unwrap();
            assert!(!stands(one) && stands(other) && on_another_thread);
            without(other, || !stands(one) && !stands(other))
        });
        assert!(nested && stands(one) && stands(other));
        assert!(catch_unwind(|| without(one, || panic!("as a violation does"))).is_err());
        assert!(stands(one));
    }
}
