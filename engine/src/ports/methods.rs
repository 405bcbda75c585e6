//! All methods of all ports, in one list. Code that forwards, records, counts or interrupts calls is generated from
//! the list, and does not compile where the list and a trait differ.

pub use super::messages::QueueMessage;
pub use super::{
    AppendReply, Beacon, BlockClaims, Board, BoardPorts, Catalogue, ChangeReply, CreateReply,
    CursorReply, Cursors, Due, Freshness, Gate, InventoryCounts, MembershipPage, Orders, Page,
    Ports, Provider, Published, Queue, RoomPorts, Rooms, SalesPage, Seats, SettleReply, Settlement,
    Shown, StoreError, Stored,
};
pub use crate::domain::admission::gate::tokens::{
    AddTokens, AddTokensReply, TokenCounts, TokenSnapshot,
};
pub use crate::domain::admission::gate::{Admit, AdmitReply};
pub use crate::domain::admission::room::code::{CodeShard, CodeUses};
pub use crate::domain::admission::room::counts::{Came, ReservationReport, Tally};
pub use crate::domain::admission::room::join::{Membership, Replaced, TakenIndices, Tree};
pub use crate::domain::admission::room::slot::Asked;
pub use crate::domain::basics::bytes::{Hash, Secret, Signature};
pub use crate::domain::basics::ids::{
    DisputeId, Epoch, GroupId, InventoryId, Legs, PageMark, PaymentId, ProviderId, ReaderId,
    SaleId, TierId, UserId,
};
pub use crate::domain::basics::money::{Currency, MinorUnits};
pub use crate::domain::basics::number::OrderNumber;
pub use crate::domain::inventory::{
    Hold, HoldRecord, HoldReply, LoadPart, LoadReply, Mark, MarkReply, PartLimit, Recount,
    RecountReply, Release, ReleaseReply, Repair, RepairReply, Restore, RestoreReply, Sell,
    SellReply, Terms, TierGrid, Unsell, UnsellReply,
};
pub use crate::domain::ledger::Balance;
pub use crate::domain::ledger::points::{Award, PointsStatement};
pub use crate::domain::ledger::statistics::TierTotals;
pub use crate::domain::order::attempt::{Attempt, PaymentChoice};
pub use crate::domain::order::order_refund::{OrderRefund, RefundKey};
pub use crate::domain::order::refund::RefundReply;
pub use crate::domain::order::{Capture, Order, PaymentKey, PaymentRecord};
pub use crate::domain::payment::captures::{CapturePage, Cursor, Listing};
pub use crate::domain::payment::dispute::{DisputePlan, DisputeReport};
pub use crate::domain::payment::outside::SentReport;
pub use crate::domain::payment::refund::RefundPlan;
pub use crate::domain::payment::start::{CloseReply, StartReply, Turn};
// Holds have records too.
pub use crate::domain::admission::room::log::Record as RoomRecord;
pub use crate::domain::admission::room::visit::{Enter, EnterReply};
pub use crate::domain::basics::calendar::Day;
pub use crate::domain::basics::tickets::Tickets;
pub use crate::domain::basics::time::Timestamp;
pub use crate::domain::ledger::wallet::WalletStatement;
pub use crate::domain::sale::attachment::{Attachment, AttachmentKind};
pub use crate::domain::sale::timetable::{CallMark, StopLabel, StopMark, StopsPage, TrainsPage};
pub use crate::domain::sale::{MapDocument, SaleFile};
pub use crate::domain::ticket::{
    CheckInCounts, CheckInPlan, DoubleCheckIn, DoublesPage, ReissuePlan, RevokedPage,
};

/// Calls the macro `$callback` with the list of all ports and their methods; `port_methods!(callback
/// for Port)` puts `for Port;` before the list.
///
/// A port is `Trait by accessor { methods }`, where the accessor is that of [`Ports`]. A method is
/// `Name: method(how argument: Type, …) -> Reply;`, where `Name` is unique among all ports, `Reply`
/// is what [`Stored`] holds, and `how` says how the argument is passed ([`crate::port_argument`]).
/// Every type of the list is exported by [`crate::ports::methods`].
#[macro_export]
macro_rules! port_methods {
    ($callback:ident $(for $port:ident)?) => {
        $callback! {
            $(for $port;)?
            Seats by seats {
                Load: load_part(ref part: LoadPart) -> LoadReply;
                Hold: hold(ref command: Hold) -> HoldReply;
                Sell: sell(ref command: Sell) -> SellReply;
                Unsell: unsell(ref command: Unsell) -> UnsellReply;
                Release: release(ref command: Release) -> ReleaseReply;
                Mark: mark(ref command: Mark) -> MarkReply;
                Restore: restore(ref command: Restore) -> RestoreReply;
                Repair: repair(ref command: Repair) -> RepairReply;
                Recount: recount(ref command: Recount) -> RecountReply;
                Unload: unload(ref inventory: InventoryId, slice tiers: TierId) -> ();
                Epoch: epoch(ref inventory: InventoryId) -> Option<Epoch>;
                Head: head(ref inventory: InventoryId) -> Option<(Epoch, Terms)>;
                Record: record(ref inventory: InventoryId, copy order: OrderNumber) -> Option<HoldRecord>;
                HoldsDue: due(ref inventory: InventoryId, copy now: Timestamp, copy most: usize)
                    -> Vec<OrderNumber>;
                CountTaken: count_taken(ref inventory: InventoryId, slice tiers: TierId)
                    -> u64;
                CountHolds: count_holds(ref inventory: InventoryId) -> u64;
                CountLeft: count_left(ref inventory: InventoryId, slice tiers: TierId)
                    -> Option<InventoryCounts>;
                Grid: grid(ref inventory: InventoryId, ref tier: TierId, copy leg_count: u16) -> TierGrid;
                Holds: holds(ref inventory: InventoryId) -> Vec<(OrderNumber, HoldRecord)>;
                Bought: bought(ref inventory: InventoryId, slice users: UserId) -> Vec<Tickets>;
            }
            Gate by gate {
                Admit: admit(ref command: Admit) -> AdmitReply;
                AddTokens: add_tokens(ref command: AddTokens) -> AddTokensReply;
                Tokens: tokens(ref sale: SaleId, copy shards: u16) -> Vec<TokenCounts>;
                CloseGate: close(ref sale: SaleId, copy shards: u16) -> ();
            }
            Orders by orders {
                Create: create(ref order: Order, copy limit: Tickets) -> CreateReply;
                End: end(ref end: Order) -> ChangeReply;
                KeepAttempts: keep_attempts(ref order: Order) -> ChangeReply;
                WriteTombstone: write_tombstone(ref tombstone: Order) -> ChangeReply;
                Settle: settle(
                    ref payment: PaymentRecord, ref settlement: Settlement, copy limit: Tickets
                ) -> SettleReply;
                RecordRefund: record_refund(ref payment: PaymentRecord, option order: Order)
                    -> ChangeReply;
                GiveBack: give_back(ref plan: RefundPlan) -> ChangeReply;
                RecordOrderRefund: record_order_refund(ref refund: OrderRefund, option order: Order)
                    -> ChangeReply;
                Dispute: dispute(ref plan: DisputePlan) -> ChangeReply;
                Reissue: reissue(ref plan: ReissuePlan) -> ChangeReply;
                CheckIn: check_in(ref plan: CheckInPlan) -> ChangeReply;
                CheckInAgain: check_in_again(ref double: DoubleCheckIn) -> ChangeReply;
                Revoked: revoked(ref sale: SaleId, copy from: Option<OrderNumber>, copy most: u16)
                    -> RevokedPage;
                CheckIns: check_ins(ref sale: SaleId) -> CheckInCounts;
                Doubles: doubles(ref sale: SaleId, option after: String, copy most: u16)
                    -> DoublesPage;
                Count: sync(slice orders: Order, copy now: Timestamp) -> Vec<OrderNumber>;
                Order: get(copy number: OrderNumber) -> Option<Order>;
                ManyOrders: get_many(slice numbers: OrderNumber) -> Vec<Order>;
                Payment: payment(copy order: OrderNumber, ref payment: PaymentKey)
                    -> Option<PaymentRecord>;
                Payments: payments(copy order: OrderNumber) -> Vec<PaymentRecord>;
                OrderRefund: order_refund(copy key: RefundKey) -> Option<OrderRefund>;
                OrderRefunds: order_refunds(copy order: OrderNumber) -> Vec<OrderRefund>;
                OrdersOf: of_user(ref user: UserId, copy before: Option<OrderNumber>, copy most: u16)
                    -> Page;
                TicketsOf: tickets_of(ref sale: SaleId, ref user: UserId) -> Tickets;
                Wallet: wallet(ref user: UserId, copy currency: Currency) -> Balance;
                Statement: statement(ref user: UserId) -> WalletStatement;
                Awarded: awarded(ref user: UserId, copy order: OrderNumber) -> Option<Award>;
                Award: award(
                    ref user: UserId, copy order: OrderNumber, ref award: Award, copy before: Option<Award>
                ) -> ChangeReply;
                Points: points(ref user: UserId) -> PointsStatement;
                Due: due(copy shard: u8, copy now: Timestamp, copy most: u16) -> Vec<Due>;
                Claims: block_claims(ref sale: SaleId, ref tier: TierId, copy block: u32) -> BlockClaims;
                Statistics: statistics(ref sale: SaleId) -> Vec<(TierId, TierTotals)>;
            }
            Catalogue by catalogue {
                Sale: sale(ref id: SaleId, copy freshness: Freshness) -> Option<Published>;
                Sales: sales() -> Vec<SaleId>;
                Listed: listed(option after: SaleId, copy most: u16) -> SalesPage;
                Trains: trains(
                    copy day: Day, ref from: StopLabel, ref to: StopLabel, option after: CallMark,
                    copy now: Timestamp, copy most: u16
                ) -> TrainsPage;
                Stops: stops(copy day: Day, option after: StopMark, copy most: u16) -> StopsPage;
                Map: map(ref id: SaleId) -> Option<MapDocument>;
                KeepAttachment: keep_attachment(ref attachment: Attachment) -> ();
                Attachment: attachment(copy hash: Hash) -> Option<Attachment>;
                AttachmentKind: attachment_kind(copy hash: Hash) -> Option<AttachmentKind>;
                Publish: publish(ref file: SaleFile, copy replaces: Option<u64>) -> ChangeReply;
                Lease: lease(
                    ref id: SaleId, ref epoch: Epoch, copy now: Timestamp, copy until: Timestamp
                ) -> ChangeReply;
                Prolong: prolong(ref id: SaleId, ref epoch: Epoch, copy until: Timestamp)
                    -> ChangeReply;
                Loaded: loaded(ref id: SaleId, ref epoch: Epoch) -> ChangeReply;
                Retire: retire(ref id: SaleId, ref epoch: Epoch, copy version: u64) -> ChangeReply;
                Delist: delist(ref id: SaleId) -> ChangeReply;
                KeepTokens: keep_tokens(ref id: SaleId, ref snapshot: TokenSnapshot) -> ();
                KeptTokens: kept_tokens(ref id: SaleId, copy since: Timestamp)
                    -> Vec<TokenSnapshot>;
            }
            Queue by queue {
                Send: send(ref message: QueueMessage, copy delay_seconds: Option<i32>) -> ();
            }
            Provider by provider {
                StartTurn: turn(ref choice: PaymentChoice) -> Turn;
                StartsIn: starts_in() -> Option<u32>;
                StartPayment: start(ref order: Order, ref attempt: Attempt) -> StartReply;
                ClosePayment: close(ref order: Order, ref attempt: Attempt) -> CloseReply;
                Captures: captures(ref order: Order) -> Option<Vec<Capture>>;
                ListCaptures: list_captures(
                    ref provider: ProviderId, copy from: Timestamp, option after: PageMark
                ) -> CapturePage;
                RefundTurn: refund_turn(ref payment: PaymentRecord) -> Turn;
                Refund: refund(ref payment: PaymentRecord) -> RefundReply;
                RefundPart: refund_part(
                    ref payment: PaymentRecord, ref refund: OrderRefund, copy known_outside: MinorUnits
                ) -> RefundReply;
                SentBack: sent_back(ref provider: ProviderId, ref payment: PaymentId)
                    -> Option<SentReport>;
                AskDispute: dispute(ref provider: ProviderId, ref dispute: DisputeId)
                    -> Option<DisputeReport>;
            }
            Cursors by cursors {
                Cursor: cursor(ref provider: ProviderId) -> Option<Cursor>;
                TakeCursor: take_cursor(
                    ref provider: ProviderId, ref reader: ReaderId, copy now: Timestamp,
                    copy until: Timestamp
                ) -> CursorReply;
                MoveCursor: move_cursor(
                    ref provider: ProviderId, ref reader: ReaderId, ref cursor: Cursor,
                    copy until: Timestamp
                ) -> ChangeReply;
                AskToRead: ask_to_read(ref provider: ProviderId, copy now: Timestamp) -> ();
            }
        }
    };
}

/// The ports of a waiting room ([`RoomPorts`], [`BoardPorts`]), in the form of [`crate::port_methods`].
/// `room_port_methods!(callback { … })` puts the tokens in the braces before the list: a caller that needs both lists
/// as one puts the other list there.
#[macro_export]
macro_rules! room_port_methods {
    ($callback:ident { $($before:tt)* }) => {
        $callback! {
            $($before)*
            Rooms by rooms {
                KeepSecret: keep_secret(ref sale: SaleId, ref secret: Secret) -> Secret;
                Secret: secret(ref sale: SaleId) -> Option<Secret>;
                Append: append(ref sale: SaleId, ref record: RoomRecord) -> AppendReply;
                RoomRecord: record(ref sale: SaleId, copy number: u64) -> Option<RoomRecord>;
                Records: records(ref sale: SaleId, copy from: u64, copy most: u16) -> Vec<RoomRecord>;
                LastRecord: last_record(ref sale: SaleId) -> Option<RoomRecord>;
                TakeIndices: take_indices(ref sale: SaleId, ref group: GroupId, copy count: u16)
                    -> TakenIndices;
                CloseWindow: close_window(ref sale: SaleId, ref group: GroupId) -> u32;
                Membership: membership(ref sale: SaleId, copy bucket: u16, ref buyer: UserId)
                    -> Option<Membership>;
                Join: join(
                    ref membership: Membership, copy bucket: u16, copy replaces: Option<Replaced>
                ) -> Membership;
                Code: code(ref sale: SaleId, ref group: GroupId, copy shard: CodeShard)
                    -> Option<CodeUses>;
                JoinByCode: join_by_code(
                    ref membership: Membership, copy bucket: u16, copy shard: CodeShard
                ) -> Option<Membership>;
                Enter: enter(ref enter: Enter) -> EnterReply;
                Joined: joined(ref sale: SaleId, ref group: GroupId) -> u32;
                MarkBucket: mark(ref sale: SaleId, copy bucket: u16) -> ();
                IsMarked: is_marked(ref sale: SaleId, copy bucket: u16) -> bool;
                Memberships: memberships(
                    ref sale: SaleId, copy bucket: u16, option after: UserId
                ) -> MembershipPage;
                KeepChunk: keep_chunk(
                    ref sale: SaleId, ref group: GroupId, copy chunk: u32, slice leaves: Hash
                ) -> Vec<Hash>;
                Chunk: chunk(ref sale: SaleId, ref group: GroupId, copy chunk: u32)
                    -> Option<Vec<Hash>>;
                KeepTree: keep_tree(ref sale: SaleId, ref group: GroupId, ref tree: Tree) -> Tree;
                Tree: tree(ref sale: SaleId, ref group: GroupId) -> Option<Tree>;
            }
            Beacon by beacon {
                Round: round(copy chain: Hash, copy round: u64) -> Option<Signature>;
                VerifyRound: verify(
                    copy chain: Hash, copy round: u64, copy signature: Signature
                ) -> bool;
            }
            Board by board {
                ShownRoom: shown(ref sale: SaleId) -> Option<Shown>;
                ShowRoom: show(ref sale: SaleId, ref shown: Shown) -> ();
                TakeTurn: take_turn(ref sale: SaleId, copy ms: u32) -> bool;
                TakeDraw: take_draw(ref sale: SaleId, copy seconds: u32) -> bool;
                Tally: tally(ref sale: SaleId, copy oldest_mark: u64, copy now: Timestamp) -> Tally;
                Came: came(ref sale: SaleId, ref came: Came, copy now: Timestamp) -> ();
                Admitted: admitted(ref sale: SaleId, ref buyer: UserId, copy attempt: u16) -> ();
                Asked: asked(ref sale: SaleId, ref buyer: UserId, copy now: Timestamp) -> Asked;
                Reserved: reserved(
                    ref sale: SaleId, ref report: ReservationReport, copy now: Timestamp
                ) -> ();
            }
        }
    };
}

/// The type of an argument in the signature of a port's method, from the word before the argument in the list
/// (`copy`, `ref`, `slice` or `option`).
#[macro_export]
macro_rules! port_argument {
    (copy $type:ty) => { $type };
    (ref $type:ty) => { &$type };
    (slice $type:ty) => { &[$type] };
    (option $type:ty) => { Option<&$type> };
}
