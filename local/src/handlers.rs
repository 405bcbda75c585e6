//! The handlers of the functions, as Lambda runs them: by function for requests, by queue for batches
//! of messages.

// Tests and measurements run one by itself, and take it from here: no list of functions but ours.
pub use {
    award_points, cancel, close_payments, decide_payment, draw, expire_orders, figures, load_sale,
    operator, orders, pay_callback, pay_from_wallet, read_bills, read_captures, reconcile, refund,
    refund_order, reserve, sales, send_events, start_payment, sync_db, take_callback, token_gate,
    waiting_room,
};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use lambda_http::{Body, Request, Response};
use shared::http::respond::refuse;
use shared::http::routes::NoRoute;
use shared::runtime::app::App;
use shared::runtime::functions::{Function, QueueName};

/// Runs the handler of a function for a request. A function without a route refuses it.
///
/// Each handler has a box of its own: one future for all would be as large as the largest handler's, and is
/// moved several times for each request.
pub fn answer(app: &App, function: Function, request: Request) -> BoxFuture<'_, Response<Body>> {
    match function {
        Function::Sales => sales::handle(app, request).boxed(),
        Function::WaitingRoom => waiting_room::handle(app, request).boxed(),
        Function::TokenGate => token_gate::handle(app, request).boxed(),
        Function::Reserve => reserve::handle(app, request).boxed(),
        Function::Orders => orders::handle(app, request).boxed(),
        Function::Cancel => cancel::handle(app, request).boxed(),
        Function::StartPayment => start_payment::handle(app, request).boxed(),
        Function::PayFromWallet => pay_from_wallet::handle(app, request).boxed(),
        Function::RefundOrder => refund_order::handle(app, request).boxed(),
        Function::Operator => operator::handle(app, request).boxed(),
        Function::Figures => figures::handle(app, request).boxed(),
        Function::PayCallback => pay_callback::handle(app, request).boxed(),
        Function::TakeCallback => take_callback::handle(app, request).boxed(),
        Function::ExpireOrders
        | Function::SyncDb
        | Function::LoadSale
        | Function::DecidePayment
        | Function::Draw
        | Function::ClosePayments
        | Function::AwardPoints
        | Function::Refund
        | Function::ReadCaptures
        | Function::ReadBills
        | Function::SendEvents
        | Function::Reconcile => ready(refuse(NoRoute)).boxed(),
    }
}

/// Runs the handler of a queue's function for a batch of its messages.
pub fn consume(app: &App, queue: QueueName, event: SqsEvent) -> BoxFuture<'_, SqsBatchResponse> {
    match queue {
        QueueName::Expiry => expire_orders::handle(app, event).boxed(),
        QueueName::Sync => sync_db::handle(app, event).boxed(),
        QueueName::Load => load_sale::handle(app, event).boxed(),
        QueueName::Close => close_payments::handle(app, event).boxed(),
        QueueName::Refund => refund::handle(app, event).boxed(),
        QueueName::Callback => decide_payment::handle(app, event).boxed(),
        QueueName::Draw => draw::handle(app, event).boxed(),
        QueueName::Points => award_points::handle(app, event).boxed(),
    }
}
