//! `POST /orders/{order}/refunds`: a buyer gives tickets of a paid order back, under the terms of its sale.
//! `POST /orders/{order}/refunds/operator` and `POST /operator/orders/{order}/refunds`: an operator refunds tickets of
//! a paid order, or some of its money, has a refused refund sent again, or says what became of one. `POST /operator/unmatched`: an operator says
//! what becomes of a payment of no order.

use engine::domain::basics::ids::UserId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::order_refund::{RefundKey, RefundNumber};
use engine::domain::payment::refund::{RefundRefusal, RefundRequest};
use engine::flows::give_back::{self, GivenBack, give_back};
use engine::flows::outside::{Told, keep, settle};
use engine::flows::refund::ask_again;
use engine::flows::unmatched::{Refusal, tell};
use lambda_http::http::Response;
use lambda_http::{Body, Request};
use shared::http::Problem;
use shared::http::edge;
use shared::http::identity::{Buyer, Operator, Scope, Unknown};
use shared::http::operators::{self, Action, ActionKind};
use shared::http::order_refund::{
    BuyerRefundBody, OperatorAsks, OperatorRefundBody, OrderRefundReply,
};
use shared::http::respond::{Answer, refuse, respond};
use shared::http::routes::{NoRoute, Route};
use shared::http::unmatched::{UnmatchedBody, UnmatchedReply, detail};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

/// Answers one request at the time of the system clock.
pub async fn handle(app: &App, request: Request) -> Response<Body> {
    handle_at(app, request, Timestamp::now()).await
}

/// Answers one request at a time.
pub async fn handle_at(app: &App, request: Request, now: Timestamp) -> Response<Body> {
    edge::answer(app, Function::RefundOrder, &request, answer(app, &request, now)).await
}

async fn answer(app: &App, request: &Request, now: Timestamp) -> Response<Body> {
    let route = Route::from_request(request);
    if let Ok(Route::GiveBack(order)) = route {
        respond(by_buyer(app, request, order, now)).await
    } else if let Ok(Route::RefundOrder(order)) = route {
        let operator = Operator::from_request(request);
        respond(by_operator(app, request, operator, order, now)).await
    } else if let Ok(Route::OperatorRefund(order)) = route {
        let operator = Operator::with_scope(request, app.operator_issuer(), Scope::Refund);
        respond(by_operator(app, request, operator, order, now)).await
    } else if let Ok(Route::TellUnmatched) = route {
        let operator = Operator::with_scope(request, app.operator_issuer(), Scope::Refund);
        respond(of_no_order(app, request, operator, now)).await
    } else {
        refuse(NoRoute)
    }
}

/// Refunds tickets of the buyer's own order. Any other order answers as one that does not exist.
async fn by_buyer(
    app: &App,
    request: &Request,
    number: OrderNumber,
    now: Timestamp,
) -> Result<Answer<OrderRefundReply>, Problem> {
    let buyer = Buyer::from_request(request)?;
    let asked = BuyerRefundBody::read(request)?;
    made(app, Some(buyer.user()), number, &asked, now).await
}

/// Makes an operator's refund, and records who asked for it.
async fn by_operator(
    app: &App,
    request: &Request,
    operator: Result<Operator, Unknown>,
    number: OrderNumber,
    now: Timestamp,
) -> Result<Answer<OrderRefundReply>, Problem> {
    let operator = operator?;
    let asked = OperatorRefundBody::read(request)?;
    let refund = asked.number();
    let detail = match &asked {
        OperatorAsks::Make(_) => format!("refund {refund}"),
        OperatorAsks::Again(_) => format!("refund {refund} again"),
        OperatorAsks::Keep(_) => format!("refund {refund}: its tickets stay"),
        OperatorAsks::Settled(_, how) => format!("refund {refund} settled: {how}"),
    };
    let action = Action::new(ActionKind::Refund).of_order(number).with(detail);
    let work = async {
        match &asked {
            OperatorAsks::Make(asked) => made(app, None, number, asked, now).await,
            OperatorAsks::Again(refund) => again(app, number, *refund, now).await,
            OperatorAsks::Keep(refund) => {
                told(keep(&app.ports, RefundKey { order: number, number: *refund }, now).await?)
            }
            OperatorAsks::Settled(refund, how) => {
                let key = RefundKey { order: number, number: *refund };
                told(settle(&app.ports, key, how, now).await?)
            }
        }
    };
    let reply = operators::recorded(app, &operator, action, now, work).await?;
    tracing::info!(operator = operator.who(), order = %number, %refund, "an order was refunded");
    Ok(reply)
}

/// Has a refused refund asked for again.
async fn again(
    app: &App,
    order: OrderNumber,
    number: RefundNumber,
    now: Timestamp,
) -> Result<Answer<OrderRefundReply>, Problem> {
    let asked = ask_again(&app.ports, RefundKey { order, number }, now).await?;
    let refund = asked.ok_or(give_back::Refusal::NotFound)?;
    Ok(Answer(OrderRefundReply::from(&refund)))
}

/// The answer to a word on a refund.
fn told(told: Option<Told>) -> Result<Answer<OrderRefundReply>, Problem> {
    match told.ok_or(give_back::Refusal::NotFound)? {
        Told::Done(refund) => Ok(Answer(OrderRefundReply::from(&refund))),
        Told::NotNow(refund) => {
            let refusal = RefundRefusal::OtherState(refund.refund.state);
            Err(give_back::Refusal::Refused(refusal).into())
        }
    }
}

/// Takes an operator's word on a payment of no order, and records who said it and why.
async fn of_no_order(
    app: &App,
    request: &Request,
    operator: Result<Operator, Unknown>,
    now: Timestamp,
) -> Result<Answer<UnmatchedReply>, Problem> {
    let operator = operator?;
    let asked = UnmatchedBody::read(request)?;
    let (order, key) = (asked.order, asked.key());
    let word = asked.word.into();
    let detail = detail(word, &key, &asked.reason);
    let action = Action::new(ActionKind::Unmatched).of_order(order).with(detail);
    let work = async {
        let record = tell(&app.ports, order, &key, (word, &asked.reason), now).await?;
        let none = || Problem::from(Refusal::NotFound);
        UnmatchedReply::new(&record, now).map(Answer).ok_or_else(none)
    };
    let reply = operators::recorded(app, &operator, action, now, work).await?;
    tracing::info!(operator = operator.who(), %order, "an unmatched payment was decided");
    Ok(reply)
}

/// The requested refund, made by this request or by an earlier one.
async fn made(
    app: &App,
    buyer: Option<&UserId>,
    number: OrderNumber,
    asked: &RefundRequest,
    now: Timestamp,
) -> Result<Answer<OrderRefundReply>, Problem> {
    let GivenBack { refund, .. } = give_back(&app.ports, buyer, number, asked, now).await?;
    Ok(Answer(OrderRefundReply::from(&refund)))
}
