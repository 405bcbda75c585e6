//! The actions of operators, each recorded with the operator's name, and the replies that operators get.

use std::future::Future;

use engine::domain::basics::ids::{Legs, SaleId, SeatName, TierId, UserId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::statistics::TierTotals;
use engine::domain::order::fact::{Actor, Fact, FactKind};
use engine::domain::order::order_refund::{OrderRefund, RefundNumber};
use engine::domain::order::{Order, PaymentRecord};
use engine::domain::sale::{Sale, Tier};
use engine::ports::Published;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::dynamodb::{DynamoOperators, KeptAction};
use crate::events::SubscriberProgress;
use crate::http::Problem;
use crate::http::identity::Operator;
use crate::http::order_refund::OrderRefundReply;
use crate::http::order_reply::OrderReply;
use crate::http::payment_reply::PaymentReply;
use crate::http::sale_reply::{Phase, SaleSummary};
use crate::runtime::app::App;

/// Most characters of an action's detail.
const MAX_DETAIL_CHARS: usize = 300;
/// The recorded outcome of an action that succeeded.
const DONE: &str = "done";

/// The kind of an operator's action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// A sale was published, or its terms changed.
    Publish,
    /// A waiting room was commanded.
    CommandRoom,
    /// A paid order was refunded, or a part of it.
    Refund,
    /// A pending order was cancelled.
    Cancel,
    /// Tickets were issued anew.
    Reissue,
    /// It was said what becomes of a payment of no order.
    Unmatched,
}

impl ActionKind {
    /// The kind as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::CommandRoom => "command_room",
            Self::Refund => "refund",
            Self::Cancel => "cancel",
            Self::Reissue => "reissue",
            Self::Unmatched => "unmatched",
        }
    }
}

/// An action that an operator is about to carry out: its kind, its sale or order, and a detail in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    kind: ActionKind,
    sale: Option<SaleId>,
    order: Option<OrderNumber>,
    detail: Option<String>,
}

impl Action {
    /// An action of a kind, on nothing yet.
    #[must_use]
    pub fn new(kind: ActionKind) -> Self {
        Self { kind, sale: None, order: None, detail: None }
    }

    /// The action, on a sale.
    #[must_use]
    pub fn of_sale(self, sale: &SaleId) -> Self {
        Self { sale: Some(sale.clone()), ..self }
    }

    /// The action, on an order.
    #[must_use]
    pub fn of_order(self, order: OrderNumber) -> Self {
        Self { order: Some(order), ..self }
    }

    /// The action with a detail in words, cut to the longest that is recorded.
    #[must_use]
    pub fn with(self, detail: impl AsRef<str>) -> Self {
        let detail = detail.as_ref().chars().take(MAX_DETAIL_CHARS).collect();
        Self { detail: Some(detail), ..self }
    }
}

/// Records an action, carries it out, and records its outcome. An action that cannot be recorded is not carried out. An
/// outcome that cannot be recorded is only logged: the record then shows that the action began.
///
/// # Errors
/// Returns the problem of the work, or the problem that the action could not be recorded; in that case the work is not
/// done.
pub async fn recorded<T>(
    app: &App,
    operator: &Operator,
    action: Action,
    now: Timestamp,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    let Action { kind, sale, order, detail } = action;
    let mut kept = KeptAction {
        at: now,
        who: operator.who().to_owned(),
        way: operator.way().as_str().to_owned(),
        action: kind.as_str().to_owned(),
        sale,
        order,
        detail,
        outcome: None,
    };
    let key = DynamoOperators::new_key(now)?;
    app.ports.operators().keep(&key, &kept).await?;
    let outcome = work.await;
    let said = outcome.as_ref().map_or_else(|problem| problem.kind().slug(), |_| DONE);
    kept.outcome = Some(said.to_owned());
    if let Err(error) = app.ports.operators().keep(&key, &kept).await {
        tracing::warn!(%key, %error, "what came of an operator's action is not recorded");
    }
    outcome
}

/// Something that an operator did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Action")]
pub struct ActionReply {
    /// Time of the request.
    pub at: Timestamp,
    /// Who it was: an ARN, or the `sub` of the operators' issuer.
    pub who: String,
    /// How the operator was known: `iam` or `issuer`.
    pub way: String,
    /// Kind of action: `publish`, `command_room`, `refund`, `cancel`, `reissue` or `unmatched`.
    pub action: String,
    /// The sale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sale: Option<SaleId>,
    /// The order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderNumber>,
    /// More, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What came of it: `done`, or the type of the problem. Absent while that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

impl From<KeptAction> for ActionReply {
    fn from(kept: KeptAction) -> Self {
        let KeptAction { at, who, way, action, sale, order, detail, outcome } = kept;
        Self { at, who, way, action, sale, order, detail, outcome }
    }
}

/// A page of what operators did, latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Actions")]
pub struct ActionsReply {
    /// The actions.
    pub actions: Vec<ActionReply>,
    /// Value of `before` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What happened to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "HistoryEntry")]
pub struct HistoryEntry {
    /// Its number within the order, from 1.
    pub number: usize,
    /// What happened.
    #[schemars(with = "String")]
    pub kind: FactKind,
    /// When.
    pub at: Timestamp,
    /// Who caused it.
    #[schemars(with = "String")]
    pub by: Actor,
    /// The payment, if money moved: `provider/id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment: Option<String>,
    /// What was captured, or sent back, in minor units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_minor: Option<MinorUnits>,
    /// The currency they are units of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// Number of the refund that sends it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund: Option<RefundNumber>,
}

impl HistoryEntry {
    fn new(number: usize, fact: &Fact) -> Self {
        let moved = fact.cause.moved.as_ref();
        let payment = moved.map(|moved| &moved.payment);
        Self {
            number,
            kind: fact.kind,
            at: fact.at,
            by: fact.cause.by,
            payment: payment.map(|key| format!("{}/{}", key.provider, key.payment)),
            amount_minor: moved.map(|moved| moved.amount.amount_minor),
            currency: moved.map(|moved| moved.amount.currency),
            refund: fact.refund(),
        }
    }
}

/// An order as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "OperatorOrder")]
pub struct OperatorOrderReply {
    /// The order.
    pub order: OrderReply,
    /// Its buyer.
    pub buyer: UserId,
    /// Every payment that was captured for it, in the order in which they were decided.
    pub payments: Vec<PaymentReply>,
    /// Its refunds, by number.
    pub refunds: Vec<OrderRefundReply>,
    /// What happened to it, in order.
    pub history: Vec<HistoryEntry>,
}

impl OperatorOrderReply {
    /// An order with what belongs to it.
    #[must_use]
    pub fn new(
        shown: OrderReply,
        order: &Order,
        payments: &[PaymentRecord],
        refunds: &[OrderRefund],
    ) -> Self {
        let facts = order.facts.all.iter().enumerate();
        Self {
            order: shown,
            buyer: order.user.clone(),
            payments: payments.iter().map(PaymentReply::from).collect(),
            refunds: refunds.iter().map(OrderRefundReply::from).collect(),
            history: facts.map(|(index, fact)| HistoryEntry::new(index + 1, fact)).collect(),
        }
    }
}

/// An order that was found, with its buyer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FoundOrder")]
pub struct FoundOrderReply {
    /// Its buyer.
    pub buyer: UserId,
    /// The order.
    #[serde(flatten)]
    pub order: OrderReply,
}

/// Orders that were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FoundOrders")]
pub struct FoundOrdersReply {
    /// The orders, newest first.
    pub orders: Vec<FoundOrderReply>,
    /// Value of `before` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<OrderNumber>,
}

/// The orders that an operator searches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Search {
    /// The order with a number.
    Order(OrderNumber),
    /// The orders of a buyer, newest first; only those with a number below the second value, if it is given.
    Buyer(UserId, Option<OrderNumber>),
    /// The orders that own a seat of a tier, or owned it until a refund.
    Seat(SaleId, TierId, SeatName),
    /// The order of a sale whose ticket names an attendee.
    Attendee(SaleId, engine::domain::basics::ids::AttendeeId),
}

/// A tier of a sale that is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "BoardTier")]
pub struct BoardTierReply {
    /// Tier id, unique in the sale.
    pub tier: TierId,
    /// Its name for people.
    pub name: String,
    /// Number of seats for sale.
    pub seats: u32,
    /// Seats that are free on the whole journey; absent while the sale is not loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<u32>,
    /// Tickets that were sold and not refunded, as far as they are counted.
    pub sold: u64,
    /// Their revenue, in minor units.
    pub revenue_minor: MinorUnits,
}

/// A sale live.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Board")]
pub struct BoardReply {
    /// Sale id.
    pub sale: SaleId,
    /// Time of the reading of what is available, or of the request while the sale is not loaded.
    pub as_of: Timestamp,
    /// State for a buyer.
    pub state: Phase,
    /// Currency of its amounts.
    pub currency: Currency,
    /// The room document, as everyone sees it; null if the sale has no waiting room, or none is shown.
    pub room: Option<Map<String, Value>>,
    /// Each tier, in the order of the file.
    pub tiers: Vec<BoardTierReply>,
}

impl BoardReply {
    /// A sale at a moment. `taken` is what is taken of a tier on a journey.
    pub fn new(
        published: &Published,
        totals: &[(TierId, TierTotals)],
        taken: impl Fn(&TierId, Legs) -> Vec<u8>,
        room: Option<Map<String, Value>>,
        as_of: Timestamp,
    ) -> Self {
        let sale: &Sale = &published.sale;
        let tier = |tier: &Tier| {
            let total = totals.iter().find(|(of, _)| *of == tier.tier).map(|(_, total)| total);
            let taken = taken(&tier.tier, sale.whole());
            let is_loaded = taken.len() == tier.layout.initial().len();
            BoardTierReply {
                tier: tier.tier.clone(),
                name: tier.name.clone(),
                seats: tier.layout.sellable(),
                available: is_loaded.then(|| taken.iter().map(|byte| byte.count_zeros()).sum()),
                sold: total.map_or(0, |total| total.tickets),
                revenue_minor: total.map_or(MinorUnits::ZERO, |total| total.revenue_minor),
            }
        };
        Self {
            sale: sale.id().clone(),
            as_of,
            state: SaleSummary::new(published, as_of).state,
            currency: sale.file().currency,
            room,
            tiers: sale.tiers().iter().map(tier).collect(),
        }
    }
}

/// Who is told of facts, and how far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Webhooks")]
pub struct WebhooksReply {
    /// Each webhook, by id, and then `event-bus` if it was ever told anything.
    pub webhooks: Vec<SubscriberProgress>,
}

/// Work that should have been finished, and messages that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Stuck")]
pub struct StuckReply {
    /// Orders, payments and refunds that were due two minutes ago and are not finished, counted up to 16,000.
    pub overdue: usize,
    /// The earliest time at which one was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_due_at: Option<Timestamp>,
    /// Messages in the dead-letter queue of each queue, by SQS's own count.
    pub dead_letters: std::collections::BTreeMap<String, u64>,
}
