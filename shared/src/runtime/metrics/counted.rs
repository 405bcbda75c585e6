//! Ports that count the outcomes of their calls. A state is counted where it is written, whoever writes it: a
//! payment that reconcile finds at its provider counts as one whose callback came.

use engine::domain::admission::room::log::Entry;
use engine::domain::admission::room::watch::Watched;
use engine::domain::basics::tickets::Tickets;
use engine::domain::order::OrderState;
use engine::domain::order::attempt::AttemptState;
use engine::domain::order::order_refund::OrderRefund;
use engine::domain::order::refund::{Refund, RefundState};
use engine::ports::methods::*;
use engine::{port_argument, port_methods, room_port_methods};

use crate::runtime::metrics::{Metric, count};

/// Milliseconds to the turn of a refund from which on it counts as behind.
const FAR_MS: i64 = 10 * 60 * 1000;

#[derive(Debug, Clone)]
pub struct Counted<T>(pub T);

/// Writes the methods of a port that are passed on without being counted. No layer of a future is
/// added to them.
macro_rules! forward {
    (for $port:ident; $($trait:ident by $accessor:ident { $(
        $variant:ident: $name:ident($($args:tt)*) -> $reply:ty;
    )* })*) => {
        $($(forward_one! { $port $trait $name($($args)*) -> $reply })*)*
    };
}
macro_rules! forward_one {
    (Orders Orders create $($counted:tt)*) => {};
    (Orders Orders end $($counted:tt)*) => {};
    (Orders Orders write_tombstone $($counted:tt)*) => {};
    (Orders Orders settle $($counted:tt)*) => {};
    (Orders Orders keep_attempts $($counted:tt)*) => {};
    (Orders Orders record_refund $($counted:tt)*) => {};
    (Orders Orders record_order_refund $($counted:tt)*) => {};
    (Orders Orders $($method:tt)*) => { forward_method! { $($method)* } };
    (Rooms Rooms append $($counted:tt)*) => {};
    (Rooms Rooms joined $($counted:tt)*) => {};
    (Rooms Rooms join $($counted:tt)*) => {};
    (Rooms Rooms join_by_code $($counted:tt)*) => {};
    (Rooms Rooms enter $($counted:tt)*) => {};
    (Rooms Rooms $($method:tt)*) => { forward_method! { $($method)* } };
    ($($of_another_port:tt)*) => {};
}
macro_rules! forward_method {
    ($name:ident($($how:ident $arg:ident: $type:ty),*) -> $reply:ty) => {
        fn $name(
            &self,
            $($arg: port_argument!($how $type)),*
        ) -> impl Future<Output = Stored<$reply>> + Send {
            self.0.$name($($arg),*)
        }
    };
}

impl<T: Gate> Gate for Counted<T> {
    async fn admit(&self, command: &Admit) -> Stored<AdmitReply> {
        let reply = self.0.admit(command).await?;
        match reply {
            AdmitReply::Admitted => count(Some(&command.sale), Metric::Admitted, 1),
            AdmitReply::Exhausted { holds: true, .. } => {
                count(Some(&command.sale), Metric::Waiting, 1)
            }
            AdmitReply::Exhausted { holds: false, .. }
            | AdmitReply::Locked { .. }
            | AdmitReply::TooFast { .. }
            | AdmitReply::BudgetUsedUp { .. } => {}
        }
        Ok(reply)
    }

    fn add_tokens(
        &self,
        command: &AddTokens,
    ) -> impl Future<Output = Stored<AddTokensReply>> + Send {
        self.0.add_tokens(command)
    }

    fn tokens(
        &self,
        sale: &SaleId,
        shards: u16,
    ) -> impl Future<Output = Stored<Vec<TokenCounts>>> + Send {
        self.0.tokens(sale, shards)
    }

    fn close(&self, sale: &SaleId, shards: u16) -> impl Future<Output = Stored<()>> + Send {
        self.0.close(sale, shards)
    }
}

/// Counts an order in its sale.
fn one(order: &Order, metric: Metric) {
    count(Some(&order.sale), metric, 1);
}

/// Counts an order's tickets in its sale.
fn tickets(order: &Order, metric: Metric) {
    count(Some(&order.sale), metric, u64::from(order.tickets()));
}

/// Counts a change that came too late.
fn changed(reply: ChangeReply) -> ChangeReply {
    match reply {
        ChangeReply::Done => {}
        ChangeReply::Conflict => count(None, Metric::VersionConflicts, 1),
    }
    reply
}

impl<T: Orders> Orders for Counted<T> {
    async fn create(&self, order: &Order, limit: Tickets) -> Stored<CreateReply> {
        let reply = self.0.create(order, limit).await?;
        match &reply {
            CreateReply::Created => {
                one(order, Metric::Held);
                tickets(order, Metric::HeldTickets);
            }
            CreateReply::SeatsTaken(_) => count(None, Metric::ClaimConflicts, 1),
            CreateReply::Exists(_)
            | CreateReply::LimitReached { .. }
            | CreateReply::AttendeeTaken(_)
            | CreateReply::AttendeeLimit => {}
        }
        Ok(reply)
    }

    async fn keep_attempts(&self, order: &Order) -> Stored<ChangeReply> {
        let reply = self.0.keep_attempts(order).await?;
        if reply == ChangeReply::Done {
            // What is written of an attempt first has no name yet. The last write is the one that leaves none open, before
            // anybody asks again.
            let begins =
                |last: &Attempt| last.state == AttemptState::Open && last.reference.is_none();
            let is_given_up =
                |attempt: &&Attempt| attempt.state == AttemptState::GivenUp && attempt.asks == 0;
            let given_up = order.attempts.all.iter().filter(is_given_up).count();
            if order.attempts.all.last().is_some_and(begins) {
                count(None, Metric::PaymentsStarted, 1);
            }
            if given_up > 0 && !order.attempts.any_open() {
                count(None, Metric::PaymentsGivenUp, given_up as u64);
            }
        }
        Ok(changed(reply))
    }

    async fn end(&self, end: &Order) -> Stored<ChangeReply> {
        let reply = self.0.end(end).await?;
        if reply == ChangeReply::Done {
            match end.state {
                OrderState::Cancelled => one(end, Metric::Cancelled),
                OrderState::Expired => one(end, Metric::Expired),
                OrderState::Pending
                | OrderState::Paid
                | OrderState::RefundDue
                | OrderState::Refunded => {}
            }
        }
        Ok(changed(reply))
    }

    async fn write_tombstone(&self, tombstone: &Order) -> Stored<ChangeReply> {
        self.0.write_tombstone(tombstone).await.map(changed)
    }

    async fn settle(
        &self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: Tickets,
    ) -> Stored<SettleReply> {
        let reply = self.0.settle(payment, settlement, limit).await?;
        let order = settlement.order().filter(|_| reply == SettleReply::Settled);
        if order.is_some_and(|order| order.is_paid_unhanded(&payment.capture)) {
            tracing::error!(order = %payment.capture.order, "a payment came that nobody was given");
            count(None, Metric::CapturesNotHandedOut, 1);
        }
        match (&reply, settlement) {
            (
                SettleReply::Settled,
                Settlement::Pay(order) | Settlement::Exchange(order, _) | Settlement::Rescue(order),
            ) => {
                one(order, Metric::Paid);
                tickets(order, Metric::PaidTickets);
            }
            (SettleReply::Settled, Settlement::RefundOnly(None)) if payment.is_unmatched() => {
                count(None, Metric::CapturesUnmatched, 1);
            }
            (SettleReply::Conflict, _) => count(None, Metric::VersionConflicts, 1),
            (SettleReply::Settled, Settlement::PayTooLate(_) | Settlement::RefundOnly(_))
            | (SettleReply::Known(_) | SettleReply::Gone, _) => {}
        }
        Ok(reply)
    }

    async fn record_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> Stored<ChangeReply> {
        let reply = self.0.record_refund(payment, order).await?;
        let has_failed = payment.refund.as_ref().is_some_and(|refund| refund.state.has_failed());
        if reply == ChangeReply::Done && has_failed {
            count(None, Metric::RefundsFailed, 1);
        }
        let is_far = |refund: &Refund| {
            let of = refund.turn_at.map(|at| at.ms_since(refund.changed_at));
            of.is_some_and(|wait_ms| wait_ms > FAR_MS)
        };
        if reply == ChangeReply::Done && payment.refund.as_ref().is_some_and(is_far) {
            count(None, Metric::RefundsBehind, 1);
        }
        if reply == ChangeReply::Done && payment.is_unmatched() {
            count(None, Metric::CapturesUnmatched, 1);
        }
        Ok(changed(reply))
    }

    async fn record_order_refund(
        &self,
        refund: &OrderRefund,
        order: Option<&Order>,
    ) -> Stored<ChangeReply> {
        let reply = self.0.record_order_refund(refund, order).await?;
        if reply == ChangeReply::Done && refund.refund.state.has_failed() {
            count(None, Metric::RefundsFailed, 1);
        }
        if reply == ChangeReply::Done && refund.refund.state == RefundState::Outside {
            count(None, Metric::RefundsOutside, 1);
        }
        Ok(changed(reply))
    }

    port_methods!(forward for Orders);
}

impl<T: Queue> Queue for Counted<T> {
    async fn send(&self, message: &QueueMessage, delay_seconds: Option<i32>) -> Stored<()> {
        self.0.send(message, delay_seconds).await?;
        match message {
            QueueMessage::Refund(_) => count(None, Metric::RefundsRequested, 1),
            QueueMessage::Callback(_) => count(None, Metric::CapturesKept, 1),
            QueueMessage::Expiry(_)
            | QueueMessage::Sync(_)
            | QueueMessage::Load(_)
            | QueueMessage::Close(_)
            | QueueMessage::Points(_)
            | QueueMessage::Draw(_) => {}
        }
        Ok(())
    }
}

/// Counts a turn that was written, and what it shows of its room.
fn turned(sale: &SaleId, watched: &Watched) {
    count(None, Metric::Turns, 1);
    for (metric, is_so) in [
        (Metric::TurnsTripped, watched.is_tripped),
        (Metric::TurnsBlind, watched.is_blind),
        (Metric::TurnsHalted, watched.is_halted),
    ] {
        count(None, metric, u64::from(is_so));
    }
    for (metric, number) in [
        (Metric::Served, watched.served),
        (Metric::RoomWaiting, watched.waiting),
        (Metric::RoomServing, watched.serving),
        (Metric::RoomPassed, watched.passed),
        (Metric::RoomNoShows, watched.no_shows),
        (Metric::RoomDue, watched.due),
        (Metric::RoomLooking, watched.looking),
        (Metric::RoomInside, watched.inside),
        (Metric::RoomRate, watched.rate),
    ] {
        count(Some(sale), metric, number);
    }
}

/// Counts a failure by which no turn is made.
fn not_turned<T>(result: Stored<T>) -> Stored<T> {
    result.inspect_err(|_| count(None, Metric::TurnsFailed, 1))
}

impl<T: Rooms> Rooms for Counted<T> {
    async fn append(&self, sale: &SaleId, record: &RoomRecord) -> Stored<AppendReply> {
        let reply = not_turned(self.0.append(sale, record).await)?;
        match (reply, &record.entry) {
            (AppendReply::Appended, Entry::Turn { .. }) => {
                if let Some(watched) = Watched::of(record) {
                    turned(sale, &watched);
                }
            }
            (AppendReply::Conflict, Entry::Turn { .. }) => count(None, Metric::TurnsLost, 1),
            (AppendReply::Appended | AppendReply::Conflict, Entry::Published(_)) => {}
        }
        Ok(reply)
    }

    async fn joined(&self, sale: &SaleId, group: &GroupId) -> Stored<u32> {
        not_turned(self.0.joined(sale, group).await)
    }

    async fn join(
        &self,
        membership: &Membership,
        bucket: u16,
        replaces: Option<Replaced>,
    ) -> Stored<Membership> {
        let kept = self.0.join(membership, bucket, replaces).await?;
        if kept == *membership {
            count(Some(&membership.sale), Metric::Joined, 1);
        }
        Ok(kept)
    }

    async fn join_by_code(
        &self,
        membership: &Membership,
        bucket: u16,
        shard: CodeShard,
    ) -> Stored<Option<Membership>> {
        let kept = self.0.join_by_code(membership, bucket, shard).await?;
        if kept.as_ref() == Some(membership) {
            count(Some(&membership.sale), Metric::Joined, 1);
        }
        Ok(kept)
    }

    async fn enter(&self, enter: &Enter) -> Stored<EnterReply> {
        let reply = self.0.enter(enter).await?;
        match &reply {
            EnterReply::Entered(entered) if entered.begins => {
                count(Some(&enter.sale), Metric::Came, 1);
            }
            EnterReply::Entered(_)
            | EnterReply::NotMember
            | EnterReply::RunOut
            | EnterReply::Over
            | EnterReply::TooManyAttempts => {}
        }
        Ok(reply)
    }

    room_port_methods!(forward { for Rooms; });
}
