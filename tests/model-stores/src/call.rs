//! Every call that a flow can make of its ports, as a value.
//!
//! A [`Caller`] is all ports at once. It turns each call into a [`Call`] and gives it to a
//! [`Driver`], which says what the answer is and when: the simulator's lets time pass and injects
//! faults, the model checker's replays answers and stops at the first new call. What a call does to
//! the stores when nothing goes wrong is [`Stores::apply`].

use std::future::Future;

use engine::domain::admission::gate::GateShard;
use engine::domain::admission::room::join::BUCKETS;
use engine::domain::payment::grace::Grace;
use engine::domain::payment::start::Offer;
use engine::ports::methods::*;
use engine::{port_argument, port_methods, room_port_methods};

use crate::rooms::BeaconModel;
use crate::stores::Stores;

/// Answers the calls of a [`Caller`].
pub trait Driver: Send + Sync {
    /// The answer to a call.
    ///
    /// # Errors
    /// Whatever the driver says went wrong.
    fn call(&self, call: Call) -> impl Future<Output = Stored<Reply>> + Send;

    /// How long an unpaid order waits past its deadline: not at all, unless the driver says so.
    fn grace(&self) -> Grace {
        Grace::NONE
    }

    /// How much one part of a load carries: as in a deployment, unless the driver says so.
    fn part_limit(&self) -> PartLimit {
        PartLimit::STANDARD
    }

    /// The providers that can be asked: none that lists its captures, unless the driver says so.
    fn listings(&self) -> Vec<Listing> {
        Vec::new()
    }

    /// The providers by which payments can be started: none, unless the driver says so.
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }

    /// True if orders are also paid by payments that were not started here: so it is, unless the driver says
    /// otherwise.
    fn started_elsewhere(&self) -> bool {
        true
    }

    /// The number of buckets of a room: as in a deployment, unless the driver says so.
    fn buckets(&self) -> u16 {
        BUCKETS
    }
}

/// All ports, each call of which a driver answers.
#[derive(Debug, Clone)]
pub struct Caller<D>(pub D);

/// The type of an argument as a [`Call`] keeps it, from how it is passed.
macro_rules! kept {
    (copy $type:ty) => { $type };
    (ref $type:ty) => { $type };
    (slice $type:ty) => { Vec<$type> };
    (option $type:ty) => { Option<$type> };
}
/// An argument as a [`Call`] keeps it.
macro_rules! keep {
    (copy $arg:ident) => {
        $arg
    };
    (ref $arg:ident) => {
        $arg.clone()
    };
    (slice $arg:ident) => {
        $arg.to_vec()
    };
    (option $arg:ident) => {
        $arg.cloned()
    };
}

/// Writes [`Call`], [`Reply`] and each port of [`Caller`] from the list of all methods.
macro_rules! calls {
    ($($trait:ident by $port:ident { $(
        $variant:ident: $name:ident($($how:ident $arg:ident: $type:ty),*) -> $reply:ty;
    )* })*) => {
        /// A call, with everything it was given.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Call {
            $($(
                #[doc = concat!("`", stringify!($trait), "::", stringify!($name), "`.")]
                $variant {
                    $(
                        #[doc = concat!("`", stringify!($arg), "`.")]
                        $arg: kept!($how $type),
                    )*
                },
            )*)*
        }

        /// The answer to a call that did not fail.
        #[derive(Debug, Clone)]
        pub enum Reply {
            $($(
                #[doc = concat!("Of `", stringify!($trait), "::", stringify!($name), "`.")]
                $variant($reply),
            )*)*
        }

        impl Call {
            /// The port and the method, as in `Orders::create`.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $($(
                        Self::$variant { .. } => {
                            concat!(stringify!($trait), "::", stringify!($name))
                        }
                    )*)*
                }
            }
        }

        $(impl<D: Driver> $trait for Caller<D> {
            $(async fn $name(&self, $($arg: port_argument!($how $type)),*) -> Stored<$reply> {
                let call = Call::$variant { $($arg: keep!($how $arg)),* };
                let reply = self.0.call(call).await?;
                if let Reply::$variant(reply) = reply { Ok(reply) } else { Err(other(&reply)) }
            })*
        })*
    };
}

/// A driver that answers another question than it was asked.
fn other(reply: &Reply) -> StoreError {
    StoreError::Contract(format!("the answer to another call: {reply:?}"))
}

/// Puts the list of the ports of a waiting room behind the other one.
macro_rules! calls_of_all {
    ($($ports:tt)*) => {
        room_port_methods!(calls { $($ports)* });
    };
}

port_methods!(calls_of_all);

/// Makes a [`Caller`] all ports at once but those of a waiting room, from their list.
macro_rules! all_ports {
    ($($trait:ident by $port:ident { $($methods:tt)* })*) => {
        impl<D: Driver> Ports for Caller<D> {
            $(
                type $trait = Self;
                fn $port(&self) -> &Self {
                    self
                }
            )*
            fn grace(&self) -> Grace {
                self.0.grace()
            }
            fn part_limit(&self) -> PartLimit {
                self.0.part_limit()
            }

            fn listings(&self) -> Vec<Listing> {
                self.0.listings()
            }

            fn offers(&self) -> Vec<Offer> {
                self.0.offers()
            }

            fn started_elsewhere(&self) -> bool {
                self.0.started_elsewhere()
            }
        }
    };
}

port_methods!(all_ports);

impl<D: Driver> RoomPorts for Caller<D> {
    type Rooms = Self;
    type Beacon = Self;

    fn rooms(&self) -> &Self {
        self
    }
    fn beacon(&self) -> &Self {
        self
    }
    fn buckets(&self) -> u16 {
        self.0.buckets()
    }
}

impl<D: Driver> BoardPorts for Caller<D> {
    type Board = Self;

    fn board(&self) -> &Self {
        self
    }
}

/// What a call may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The inventory of a sale, by a script of Redis.
    Inventory,
    /// A gate, by a script of Redis.
    Gate,
    /// Orders and payments in DynamoDB.
    Orders,
    /// The catalogue in DynamoDB.
    Catalogue,
    /// A queue: a message is sent.
    Message,
    /// The payment provider: a payment is started or closed, or money goes back.
    Money,
    /// How far captures were read, in DynamoDB.
    Cursor,
    /// A waiting room, in DynamoDB.
    Room,
    /// The board of a waiting room, in Redis.
    Board,
}

impl Call {
    /// What the call may change; `None` if it only reads.
    #[must_use]
    pub const fn effect(&self) -> Option<Effect> {
        Some(match self {
            Self::Load { .. }
            | Self::Hold { .. }
            | Self::Sell { .. }
            | Self::Unsell { .. }
            | Self::Release { .. }
            | Self::Mark { .. }
            | Self::Restore { .. }
            | Self::Repair { .. }
            | Self::Recount { .. }
            | Self::Unload { .. } => Effect::Inventory,
            Self::Admit { .. } | Self::AddTokens { .. } | Self::CloseGate { .. } => Effect::Gate,
            Self::Create { .. }
            | Self::End { .. }
            | Self::KeepAttempts { .. }
            | Self::WriteTombstone { .. }
            | Self::Settle { .. }
            | Self::RecordRefund { .. }
            | Self::GiveBack { .. }
            | Self::RecordOrderRefund { .. }
            | Self::Dispute { .. }
            | Self::Reissue { .. }
            | Self::CheckIn { .. }
            | Self::CheckInAgain { .. }
            | Self::Award { .. }
            | Self::Count { .. } => Effect::Orders,
            Self::Publish { .. }
            | Self::Lease { .. }
            | Self::Prolong { .. }
            | Self::Loaded { .. }
            | Self::Retire { .. }
            | Self::Delist { .. }
            | Self::KeepAttachment { .. }
            | Self::KeepTokens { .. } => Effect::Catalogue,
            Self::Send { .. } => Effect::Message,
            Self::StartPayment { .. }
            | Self::ClosePayment { .. }
            | Self::Refund { .. }
            | Self::RefundTurn { .. }
            | Self::RefundPart { .. } => Effect::Money,
            Self::TakeCursor { .. } | Self::MoveCursor { .. } | Self::AskToRead { .. } => {
                Effect::Cursor
            }
            Self::KeepSecret { .. }
            | Self::Append { .. }
            | Self::TakeIndices { .. }
            | Self::CloseWindow { .. }
            | Self::Join { .. }
            | Self::JoinByCode { .. }
            | Self::Enter { .. }
            | Self::MarkBucket { .. }
            | Self::KeepChunk { .. }
            | Self::KeepTree { .. } => Effect::Room,
            Self::ShowRoom { .. }
            | Self::TakeTurn { .. }
            | Self::TakeDraw { .. }
            | Self::Tally { .. }
            | Self::Came { .. }
            | Self::Admitted { .. }
            | Self::Asked { .. }
            | Self::Reserved { .. } => Effect::Board,
            Self::Epoch { .. }
            | Self::Head { .. }
            | Self::Record { .. }
            | Self::HoldsDue { .. }
            | Self::CountTaken { .. }
            | Self::CountHolds { .. }
            | Self::CountLeft { .. }
            | Self::Grid { .. }
            | Self::Holds { .. }
            | Self::Bought { .. }
            | Self::Order { .. }
            | Self::ManyOrders { .. }
            | Self::Payment { .. }
            | Self::Payments { .. }
            | Self::StartTurn { .. }
            | Self::StartsIn {}
            | Self::Captures { .. }
            | Self::ListCaptures { .. }
            | Self::AskDispute { .. }
            | Self::SentBack { .. }
            | Self::Cursor { .. }
            | Self::OrderRefund { .. }
            | Self::OrderRefunds { .. }
            | Self::Revoked { .. }
            | Self::CheckIns { .. }
            | Self::Doubles { .. }
            | Self::OrdersOf { .. }
            | Self::TicketsOf { .. }
            | Self::Wallet { .. }
            | Self::Statement { .. }
            | Self::Awarded { .. }
            | Self::Points { .. }
            | Self::Due { .. }
            | Self::Claims { .. }
            | Self::Statistics { .. }
            | Self::Tokens { .. }
            | Self::KeptTokens { .. }
            | Self::Sale { .. }
            | Self::Sales {}
            | Self::Listed { .. }
            | Self::Map { .. }
            | Self::Attachment { .. }
            | Self::AttachmentKind { .. }
            | Self::Trains { .. }
            | Self::Stops { .. }
            | Self::Secret { .. }
            | Self::RoomRecord { .. }
            | Self::Records { .. }
            | Self::LastRecord { .. }
            | Self::Membership { .. }
            | Self::IsMarked { .. }
            | Self::Memberships { .. }
            | Self::Chunk { .. }
            | Self::Tree { .. }
            | Self::Joined { .. }
            | Self::Code { .. }
            | Self::ShownRoom { .. }
            | Self::Round { .. }
            | Self::VerifyRound { .. } => return None,
        })
    }
}

impl Stores {
    /// What a call does and answers when it arrives whole at `now`, and its answer too. `now` is
    /// the time at the stores, which dates messages; every other time is the caller's argument.
    ///
    /// # Errors
    /// Fails as the real stores do of themselves: `Contract` for what no flow may ask.
    pub fn apply(&mut self, now: Timestamp, call: &Call) -> Stored<Reply> {
        Ok(match call {
            Call::Load { part } => Reply::Load(self.seats.of(&part.load.inventory).load_part(part)),
            Call::Hold { command } => Reply::Hold(self.seats.of(&command.inventory).hold(command)),
            Call::Sell { command } => Reply::Sell(self.seats.of(&command.inventory).sell(command)),
            Call::Unsell { command } => {
                Reply::Unsell(self.seats.of(&command.inventory).unsell(command))
            }
            Call::Release { command } => {
                Reply::Release(self.seats.of(&command.inventory).release(command))
            }
            Call::Mark { command } => Reply::Mark(self.seats.of(&command.inventory).mark(command)),
            Call::Restore { command } => {
                Reply::Restore(self.seats.of(&command.inventory).restore(command))
            }
            Call::Repair { command } => {
                Reply::Repair(self.seats.of(&command.inventory).repair(command))
            }
            Call::Unload { inventory, tiers: _ } => {
                self.seats.unload(inventory);
                Reply::Unload(())
            }
            Call::Epoch { inventory } => Reply::Epoch(self.seats.epoch(inventory)),
            Call::Head { inventory } => Reply::Head(self.seats.head(inventory)),
            Call::Record { inventory, order } => {
                Reply::Record(self.seats.record(inventory, *order))
            }
            Call::HoldsDue { inventory, now, most } => {
                Reply::HoldsDue(self.seats.due(inventory, *now, *most))
            }
            Call::CountTaken { inventory, tiers } => {
                Reply::CountTaken(self.seats.count_taken(inventory, tiers))
            }
            Call::Recount { command } => {
                Reply::Recount(self.seats.of(&command.inventory).recount(command))
            }
            Call::Bought { inventory, users } => {
                let inventory = self.seats.of(inventory);
                Reply::Bought(users.iter().map(|user| inventory.bought_by(user)).collect())
            }
            Call::CountHolds { inventory } => Reply::CountHolds(self.seats.count_holds(inventory)),
            Call::CountLeft { inventory, tiers } => {
                Reply::CountLeft(self.seats.count_left(inventory, tiers))
            }
            Call::Grid { inventory, tier, leg_count: _ } => {
                Reply::Grid(self.seats.grid(inventory, tier)?)
            }
            Call::Holds { inventory } => Reply::Holds(self.seats.holds(inventory)),
            Call::Admit { command } => {
                let shard = self.gate.entry((command.sale.clone(), command.shard)).or_default();
                Reply::Admit(shard.admit(command))
            }
            Call::AddTokens { command } => {
                let shard = self.gate.entry((command.sale.clone(), command.shard)).or_default();
                Reply::AddTokens(shard.add_tokens(command))
            }
            Call::Tokens { sale, shards } => {
                let shards = (0..*shards).filter_map(|shard| self.gate.get(&(sale.clone(), shard)));
                Reply::Tokens(shards.filter_map(GateShard::counts).collect())
            }
            Call::CloseGate { sale, shards: _ } => {
                self.gate.retain(|(of, _), _| of != sale);
                Reply::CloseGate(())
            }
            Call::Create { order, limit } => Reply::Create(self.orders.create(order, *limit)?),
            Call::End { end } => Reply::End(self.orders.end(end)?),
            Call::KeepAttempts { order } => Reply::KeepAttempts(self.orders.keep_attempts(order)?),
            Call::StartsIn {} => Reply::StartsIn(self.provider.starts_in(now)),
            Call::StartTurn { choice: _ } => Reply::StartTurn(self.provider.turn(now)),
            Call::StartPayment { order, attempt } => {
                Reply::StartPayment(self.provider.start(order, attempt))
            }
            Call::ClosePayment { order, attempt } => {
                Reply::ClosePayment(self.provider.close(order, attempt))
            }
            Call::WriteTombstone { tombstone } => {
                Reply::WriteTombstone(self.orders.write_tombstone(tombstone)?)
            }
            Call::Settle { payment, settlement, limit } => {
                Reply::Settle(self.orders.settle(payment, settlement, *limit)?)
            }
            Call::RecordRefund { payment, order } => {
                Reply::RecordRefund(self.orders.record_refund(payment, order.as_ref())?)
            }
            Call::GiveBack { plan } => Reply::GiveBack(self.orders.give_back(plan)?),
            Call::RecordOrderRefund { refund, order } => {
                Reply::RecordOrderRefund(self.orders.record_order_refund(refund, order.as_ref())?)
            }
            Call::Dispute { plan } => Reply::Dispute(self.orders.dispute(plan)?),
            Call::AskDispute { provider: _, dispute } => {
                Reply::AskDispute(self.provider.dispute(dispute))
            }
            Call::Reissue { plan } => Reply::Reissue(self.orders.reissue(plan)?),
            Call::CheckIn { plan } => Reply::CheckIn(self.orders.check_in(plan)?),
            Call::CheckInAgain { double } => {
                Reply::CheckInAgain(self.orders.check_in_again(double))
            }
            Call::Revoked { sale, from, most } => {
                Reply::Revoked(self.orders.revoked(sale, *from, *most))
            }
            Call::CheckIns { sale } => Reply::CheckIns(self.orders.check_ins(sale)),
            Call::Doubles { sale, after, most } => {
                Reply::Doubles(self.orders.doubles(sale, after.as_ref(), *most))
            }
            Call::Count { orders, now: _ } => Reply::Count(self.orders.sync(orders)),
            Call::Order { number } => Reply::Order(self.orders.get(*number)),
            Call::ManyOrders { numbers } => Reply::ManyOrders(self.orders.get_many(numbers)),
            Call::Payment { order, payment } => {
                Reply::Payment(self.orders.payment(*order, payment))
            }
            Call::Payments { order } => Reply::Payments(self.orders.payments(*order)),
            Call::OrderRefund { key } => Reply::OrderRefund(self.orders.order_refund(*key)),
            Call::OrderRefunds { order } => Reply::OrderRefunds(self.orders.order_refunds(*order)),
            Call::OrdersOf { user, before, most } => {
                Reply::OrdersOf(self.orders.of_user(user, *before, *most))
            }
            Call::TicketsOf { sale, user } => Reply::TicketsOf(self.orders.tickets_of(sale, user)),
            Call::Statement { user } => Reply::Statement(self.orders.statement(user)),
            Call::Awarded { user, order } => Reply::Awarded(self.orders.awarded(user, *order)),
            Call::Award { user, order, award, before } => {
                Reply::Award(self.orders.award(user, *order, award, *before))
            }
            Call::Points { user } => Reply::Points(self.orders.points(user)),
            Call::Wallet { user, currency } => Reply::Wallet(self.orders.wallet(user, *currency)),
            Call::Due { shard, now, most } => Reply::Due(self.orders.due(*shard, *now, *most)),
            Call::Claims { sale, tier, block } => {
                Reply::Claims(self.orders.block_claims(sale, tier, *block))
            }
            Call::Statistics { sale } => Reply::Statistics(self.orders.statistics(sale)),
            Call::Sale { id, freshness: _ } => Reply::Sale(self.catalogue.sale(id)),
            Call::Sales {} => Reply::Sales(self.catalogue.sales()),
            Call::Listed { after, most } => {
                Reply::Listed(self.catalogue.listed(after.as_ref(), *most))
            }
            Call::Trains { day, from, to, after, now, most } => {
                Reply::Trains(self.catalogue.trains(*day, from, to, after.as_ref(), *now, *most))
            }
            Call::Stops { day, after, most } => {
                Reply::Stops(self.catalogue.stops(*day, after.as_ref(), *most))
            }
            Call::Map { id } => Reply::Map(self.catalogue.map(id)),
            Call::KeepAttachment { attachment } => {
                self.catalogue.keep_attachment(attachment);
                Reply::KeepAttachment(())
            }
            Call::Attachment { hash } => Reply::Attachment(self.catalogue.attachment(*hash)),
            Call::AttachmentKind { hash } => {
                Reply::AttachmentKind(self.catalogue.attachment(*hash).map(|it| it.kind))
            }
            Call::Publish { file, replaces } => {
                Reply::Publish(self.catalogue.publish(file, *replaces)?)
            }
            Call::Lease { id, epoch, now, until } => {
                Reply::Lease(self.catalogue.lease(id, epoch, *now, *until))
            }
            Call::Prolong { id, epoch, until } => {
                Reply::Prolong(self.catalogue.prolong(id, epoch, *until))
            }
            Call::Loaded { id, epoch } => Reply::Loaded(self.catalogue.loaded(id, epoch)),
            Call::Retire { id, epoch, version } => {
                Reply::Retire(self.catalogue.retire(id, epoch, *version))
            }
            Call::Delist { id } => Reply::Delist(self.catalogue.delist(id)),
            Call::KeepTokens { id, snapshot } => {
                self.catalogue.keep_tokens(id, snapshot);
                Reply::KeepTokens(())
            }
            Call::KeptTokens { id, since } => {
                Reply::KeptTokens(self.catalogue.kept_tokens(id, *since))
            }
            Call::Send { message, delay_seconds } => {
                // The delay is what the caller's clock says; it begins when SQS has the message.
                let delay_seconds = delay_seconds.unwrap_or_default();
                self.queues.accept(now.plus_seconds(delay_seconds.into()), message);
                Reply::Send(())
            }
            Call::Captures { order } => {
                Reply::Captures(Some(self.provider.captures(order.number, now)))
            }
            Call::ListCaptures { provider: _, from, after } => {
                Reply::ListCaptures(self.provider.list(*from, after.as_ref(), now))
            }
            Call::Cursor { provider } => Reply::Cursor(self.cursors.cursor(provider)),
            Call::TakeCursor { provider, reader, now, until } => {
                Reply::TakeCursor(self.cursors.take(provider, reader, *now, *until))
            }
            Call::MoveCursor { provider, reader, cursor, until } => {
                Reply::MoveCursor(self.cursors.move_to(provider, reader, cursor, *until))
            }
            Call::AskToRead { provider, now } => {
                self.cursors.ask(provider, *now);
                Reply::AskToRead(())
            }
            Call::SentBack { provider: _, payment } => {
                Reply::SentBack(self.provider.sent_back(payment))
            }
            Call::RefundTurn { payment } => {
                Reply::RefundTurn(self.provider.refund_turn(&payment.capture.key, now))
            }
            Call::Refund { payment } => Reply::Refund(self.provider.refund(payment, now)),
            Call::RefundPart { payment, refund, known_outside } => {
                let payment = &payment.capture.key;
                Reply::RefundPart(self.provider.refund_part(payment, refund, *known_outside))
            }
            Call::KeepSecret { sale, secret } => {
                Reply::KeepSecret(self.rooms.keep_secret(sale, secret))
            }
            Call::Secret { sale } => Reply::Secret(self.rooms.secrets.get(sale).copied()),
            Call::Append { sale, record } => Reply::Append(self.rooms.append(sale, record)),
            Call::RoomRecord { sale, number } => {
                Reply::RoomRecord(self.rooms.record(sale, *number)?)
            }
            Call::Records { sale, from, most } => {
                Reply::Records(self.rooms.records(sale, *from, *most)?)
            }
            Call::LastRecord { sale } => Reply::LastRecord(self.rooms.last_record(sale)?),
            Call::TakeIndices { sale, group, count } => {
                Reply::TakeIndices(self.rooms.take_indices(sale, group, *count))
            }
            Call::CloseWindow { sale, group } => {
                Reply::CloseWindow(self.rooms.close_window(sale, group))
            }
            Call::Membership { sale, bucket, buyer } => {
                Reply::Membership(self.rooms.membership(sale, *bucket, buyer))
            }
            Call::Join { membership, bucket, replaces } => {
                Reply::Join(self.rooms.join(membership, *bucket, *replaces)?)
            }
            Call::Code { sale, group, shard } => {
                let key = (sale.clone(), group.clone(), *shard);
                Reply::Code(self.rooms.codes.get(&key).copied())
            }
            Call::JoinByCode { membership, bucket, shard } => {
                Reply::JoinByCode(self.rooms.join_by_code(membership, *bucket, *shard)?)
            }
            Call::Enter { enter } => Reply::Enter(self.rooms.enter(enter)),
            Call::Joined { sale, group } => Reply::Joined(self.rooms.joined(sale, group)),
            Call::MarkBucket { sale, bucket } => {
                self.rooms.marked.insert((sale.clone(), *bucket));
                Reply::MarkBucket(())
            }
            Call::IsMarked { sale, bucket } => {
                Reply::IsMarked(self.rooms.marked.contains(&(sale.clone(), *bucket)))
            }
            Call::Memberships { sale, bucket, after } => {
                Reply::Memberships(self.rooms.memberships(sale, *bucket, after.as_ref()))
            }
            Call::KeepChunk { sale, group, chunk, leaves } => {
                Reply::KeepChunk(self.rooms.keep_chunk(sale, group, *chunk, leaves))
            }
            Call::Chunk { sale, group, chunk } => {
                let key = (sale.clone(), group.clone(), *chunk);
                Reply::Chunk(self.rooms.chunks.get(&key).cloned())
            }
            Call::KeepTree { sale, group, tree } => {
                Reply::KeepTree(self.rooms.keep_tree(sale, group, tree))
            }
            Call::Tree { sale, group } => {
                Reply::Tree(self.rooms.trees.get(&(sale.clone(), group.clone())).cloned())
            }
            Call::Round { chain: _, round } => Reply::Round(self.beacon.round(*round)?),
            Call::ShownRoom { sale } => {
                let board = self.boards.get(sale);
                Reply::ShownRoom(board.and_then(|board| board.shown.clone()))
            }
            Call::ShowRoom { sale, shown } => {
                self.board(sale).show(shown);
                Reply::ShowRoom(())
            }
            Call::TakeTurn { sale, ms } => Reply::TakeTurn(self.board(sale).take_turn(*ms, now)),
            Call::TakeDraw { sale, seconds } => {
                Reply::TakeDraw(self.board(sale).take_draw(*seconds, now))
            }
            Call::Tally { sale, oldest_mark, now } => {
                Reply::Tally(self.board(sale).tally(*oldest_mark, *now))
            }
            Call::Came { sale, came, now } => {
                self.board(sale).came(came, *now);
                Reply::Came(())
            }
            Call::Admitted { sale, buyer, attempt } => {
                self.board(sale).admitted(buyer, *attempt);
                Reply::Admitted(())
            }
            Call::Asked { sale, buyer, now } => Reply::Asked(self.board(sale).asked(buyer, *now)),
            Call::Reserved { sale, report, now } => {
                self.board(sale).reserved(report, *now);
                Reply::Reserved(())
            }
            Call::VerifyRound { chain: _, round, signature } => {
                Reply::VerifyRound(BeaconModel::signature(*round) == *signature)
            }
        })
    }
}
