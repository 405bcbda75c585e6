//! A wrapper of the port to the orders that reports every unpaid end of an order to the gate's counters: cancelled by
//! its buyer, expired from the queue, or swept.

use engine::domain::order::OrderState;
use engine::ports::methods::*;
use engine::{port_argument, port_methods};

use crate::redis::counters::Counters;

#[derive(Debug, Clone)]
pub struct Reported<T> {
    pub orders: T,
    counters: Counters,
}

/// Writes the methods of [`Orders`] that are passed on as they are.
macro_rules! forward {
    (for $port:ident; $($trait:ident by $accessor:ident { $(
        $variant:ident: $name:ident($($args:tt)*) -> $reply:ty;
    )* })*) => {
        $($(forward_one! { $port $trait $name($($args)*) -> $reply })*)*
    };
}
macro_rules! forward_one {
    (Orders Orders end $($reported:tt)*) => {};
    (Orders Orders $($method:tt)*) => { forward_method! { $($method)* } };
    ($($of_another_port:tt)*) => {};
}
macro_rules! forward_method {
    ($name:ident($($how:ident $arg:ident: $type:ty),*) -> $reply:ty) => {
        fn $name(
            &self,
            $($arg: port_argument!($how $type)),*
        ) -> impl Future<Output = Stored<$reply>> + Send {
            self.orders.$name($($arg),*)
        }
    };
}

impl<T> Reported<T> {
    /// Orders that report to these counters.
    pub fn new(orders: T, counters: Counters) -> Self {
        Self { orders, counters }
    }

    /// Reports an order that has ended unpaid. A report that is lost costs nothing but its effect: the
    /// buyer may try once more.
    async fn report(&self, end: &Order) {
        match end.state {
            OrderState::Cancelled | OrderState::Expired => {}
            OrderState::Pending
            | OrderState::Paid
            | OrderState::RefundDue
            | OrderState::Refunded => return,
        }
        let reported = self.counters.given_up(&end.sale, &end.user, end.number).await;
        if let Err(error) = reported {
            tracing::warn!(%error, "an order that was given up is not counted");
        }
    }
}

impl<T: Orders> Orders for Reported<T> {
    async fn end(&self, end: &Order) -> Stored<ChangeReply> {
        let reply = self.orders.end(end).await?;
        match reply {
            ChangeReply::Done => self.report(end).await,
            ChangeReply::Conflict => {}
        }
        Ok(reply)
    }

    port_methods!(forward for Orders);
}
