//! The handlers of the functions, as Lambda runs them: by function for requests, by queue for batches
//! of messages.

// Tests and measurements run one by itself, and take it from here: no list of functions but ours.
pub use {
    cancel, close_payments, decide_payment, draw, expire_orders, figures, load_sale, operator,
    orders, pay_callback, read_captures, reconcile, refund, refund_order, reserve, sales,
    start_payment, sync_db, take_callback, token_gate, waiting_room,
};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use lambda_http::{Body, Request, Response};
use shared::http::respond::refuse;
use shared::http::routes::NoRoute;
use shared::runtime::app::App;
use shared::runtime::functions::{Function, QueueName};

/// Runs the handler of a function for a request. A function without a route refuses it.
pub async fn answer(app: &App, function: Function, request: Request) -> Response<Body> {
    match function {
        Function::Sales => sales::handle(app, request).await,
        Function::WaitingRoom => waiting_room::handle(app, request).await,
        Function::TokenGate => token_gate::handle(app, request).await,
        Function::Reserve => reserve::handle(app, request).await,
        Function::Orders => orders::handle(app, request).await,
        Function::Cancel => cancel::handle(app, request).await,
        Function::StartPayment => start_payment::handle(app, request).await,
        Function::RefundOrder => refund_order::handle(app, request).await,
        Function::Operator => operator::handle(app, request).await,
        Function::Figures => figures::handle(app, request).await,
        Function::PayCallback => pay_callback::handle(app, request).await,
        Function::TakeCallback => take_callback::handle(app, request).await,
        Function::ExpireOrders
        | Function::SyncDb
        | Function::LoadSale
        | Function::DecidePayment
        | Function::Draw
        | Function::ClosePayments
        | Function::Refund
        | Function::ReadCaptures
        | Function::Reconcile => refuse(NoRoute),
    }
}

/// Runs the handler of a queue's function for a batch of its messages.
pub async fn consume(app: &App, queue: QueueName, event: SqsEvent) -> SqsBatchResponse {
    match queue {
        QueueName::Expiry => expire_orders::handle(app, event).await,
        QueueName::Sync => sync_db::handle(app, event).await,
        QueueName::Load => load_sale::handle(app, event).await,
        QueueName::Close => close_payments::handle(app, event).await,
        QueueName::Refund => refund::handle(app, event).await,
        QueueName::Callback => decide_payment::handle(app, event).await,
        QueueName::Draw => draw::handle(app, event).await,
    }
}
