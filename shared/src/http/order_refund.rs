//! Refunds of paid orders: the requests of buyers and operators, and the reply.

use std::fmt;

use lambda_http::Request;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body};
use engine::domain::basics::limits::MAX_SEATS_PER_ORDER;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::order_refund::{AskedBy, MAX_REFUNDS, OrderRefund, RefundNumber};
use engine::domain::order::refund::{MAX_REFUSAL_CHARACTERS, RefundState};
use engine::domain::order::{Order, TicketName};
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};

/// Most characters of a reason.
pub const MAX_REASON_CHARACTERS: usize = MAX_REFUSAL_CHARACTERS;
/// What stands for all tickets.
const ALL: &str = "all";

/// The tickets of a request: `"all"`, or a list of tickets, each named by its tier and seat.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TicketsBody(RefundedTickets);

impl<'de> Deserialize<'de> for TicketsBody {
    /// By hand: what serde derives for one of several shapes takes lists for objects.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TicketsVisitor).map(Self)
    }
}

struct TicketsVisitor;

impl<'de> Visitor<'de> for TicketsVisitor {
    type Value = RefundedTickets;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{ALL}\" or a list of at most {MAX_SEATS_PER_ORDER} tickets")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RefundedTickets, E> {
        let other = || E::invalid_value(Unexpected::Str(text), &self);
        (text == ALL).then_some(RefundedTickets::All).ok_or_else(other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RefundedTickets, A::Error> {
        let mut named = Vec::new();
        while let Some(ticket) = list.next_element::<TicketName>()? {
            if named.len() == MAX_SEATS_PER_ORDER {
                return Err(A::Error::invalid_length(named.len() + 1, &self));
            }
            named.push(ticket);
        }
        Ok(RefundedTickets::Named(named))
    }
}

impl JsonSchema for TicketsBody {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Tickets".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let ticket = generator.subschema_for::<TicketName>();
        json_schema!({
            "oneOf": [
                { "const": ALL },
                { "type": "array", "items": ticket, "maxItems": MAX_SEATS_PER_ORDER }
            ]
        })
    }
}

/// A buyer's request to give tickets back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with number and tickets")]
pub struct BuyerRefundBody {
    /// The number that the refund shall have: one more than the order has refunds. The same request again
    /// is answered with the same refund.
    number: RefundNumber,
    /// The tickets that are given back: `"all"` that live, or these.
    tickets: TicketsBody,
}

impl BuyerRefundBody {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request) -> Result<RefundRequest, Refusal> {
        let Self { number, tickets } = json_body(request, MAX_BODY_BYTES)?;
        let TicketsBody(tickets) = tickets;
        Ok(RefundRequest { number, tickets, amount: None, asked_by: AskedBy::Buyer, reason: None })
    }
}

/// An operator's request for a refund, or a word on one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with number and tickets, or number and one of again, keep and settled"
)]
pub struct OperatorRefundBody {
    /// The number that the refund shall have: one more than the order has refunds. The same request again
    /// is answered with the same refund. With a word on one, the number that it has.
    number: RefundNumber,
    /// The tickets that are taken back: `"all"` that live, with all the money that is left unless an amount
    /// is named; or these; or none, with an amount. Needed without a word.
    #[serde(default)]
    tickets: Option<TicketsBody>,
    /// True to have the provider asked again for a refund that it has refused; one in another state stays as it is. Nothing
    /// else is said with it.
    #[serde(default)]
    again: bool,
    /// True to keep the tickets that are still good after a refund that was made outside. Nothing else is said with it.
    #[serde(default)]
    keep: bool,
    /// How a refund was paid that its provider did not send, or whose money came back: by the bank, in cash, with a reference.
    /// It counts as back, and nothing is sent any more. Nothing else is said with it.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_REASON_CHARACTERS))]
    settled: Option<String>,
    /// What goes back, in minor units, if that is not what the tickets cost.
    #[serde(default)]
    #[schemars(range(min = 0))]
    amount_minor: Option<MinorUnits>,
    /// The currency of the amount; needed with one.
    #[serde(default)]
    currency: Option<Currency>,
    /// Why: kept with the refund on one line, for operators alone.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_REASON_CHARACTERS))]
    reason: Option<String>,
}

/// What an operator asks of the refunds of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperatorAsks {
    /// To make one.
    Make(RefundRequest),
    /// To ask the provider again for one that it has refused.
    Again(RefundNumber),
    /// To keep the tickets after one that was made outside.
    Keep(RefundNumber),
    /// To record how one was paid otherwise.
    Settled(RefundNumber, String),
}

impl OperatorAsks {
    /// The number of the refund.
    #[must_use]
    pub const fn number(&self) -> RefundNumber {
        match self {
            Self::Make(request) => request.number,
            Self::Again(number) | Self::Keep(number) | Self::Settled(number, _) => *number,
        }
    }
}

impl OperatorRefundBody {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request) -> Result<OperatorAsks, Refusal> {
        let read: Self = json_body(request, MAX_BODY_BYTES)?;
        let number = read.number;
        let (name, word) = match (read.again, read.keep, &read.settled) {
            (false, false, None) => return read.request().map(OperatorAsks::Make),
            (true, false, None) => ("again", OperatorAsks::Again(number)),
            (false, true, None) => ("keep", OperatorAsks::Keep(number)),
            (false, false, Some(how)) => {
                check_length("settled", how)?;
                ("settled", OperatorAsks::Settled(number, how.clone()))
            }
            _ => return Err(Refusal::invalid("number", "takes one of again, keep and settled")),
        };
        let Self { tickets, amount_minor, currency, reason, .. } = read;
        let is_alone = (tickets, amount_minor, currency, reason) == (None, None, None, None);
        is_alone.then_some(word).ok_or_else(|| Refusal::invalid(name, "stands with number alone"))
    }

    fn request(self) -> Result<RefundRequest, Refusal> {
        let Self { number, tickets, amount_minor, currency, reason, .. } = self;
        let needed = || Refusal::invalid("tickets", "is needed without again, keep or settled");
        let TicketsBody(tickets) = tickets.ok_or_else(needed)?;
        let amount = match (amount_minor, currency) {
            (None, None) => None,
            (Some(_), None) => {
                return Err(Refusal::invalid("currency", "is needed with an amount"));
            }
            (None, Some(_)) => {
                return Err(Refusal::invalid("currency", "belongs to an amount_minor"));
            }
            (Some(amount_minor), Some(currency)) => Some(Money { amount_minor, currency }),
        };
        if amount.is_some_and(|amount| amount.amount_minor < MinorUnits::ZERO) {
            return Err(Refusal::invalid("amount_minor", "must be at least 0"));
        }
        reason.iter().try_for_each(|reason| check_length("reason", reason))?;
        Ok(RefundRequest { number, tickets, amount, asked_by: AskedBy::Operator, reason })
    }
}

fn check_length(name: &'static str, text: &str) -> Result<(), Refusal> {
    let fits = (1..=MAX_REASON_CHARACTERS).contains(&text.chars().count());
    let refused =
        || Refusal::invalid(name, format!("must have 1 to {MAX_REASON_CHARACTERS} characters"));
    fits.then_some(()).ok_or_else(refused)
}

/// A refund of a paid order. Why an operator made it, and what a provider says when it refuses, is for
/// operators, and stays in the refund's item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "OrderRefund")]
pub struct OrderRefundReply {
    /// The order.
    pub order: OrderNumber,
    /// Number of the refund within the order.
    pub number: RefundNumber,
    /// The tickets that were taken back with it.
    pub tickets: Vec<TicketName>,
    /// What goes back, in minor units.
    pub amount_minor: MinorUnits,
    /// The currency they are units of.
    pub currency: Currency,
    /// What pays the order that its tickets were exchanged for instead of going back, in minor units; absent if
    /// nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_minor: Option<MinorUnits>,
    /// The order that its tickets were exchanged for; absent if they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchanged_for: Option<OrderNumber>,
    /// Who asked for it.
    pub asked_by: AskedBy,
    /// Time of its making.
    pub made_at: Timestamp,
    /// State of the refund.
    pub state: RefundState,
    /// Time of the last change of its state.
    pub changed_at: Timestamp,
}

impl From<&OrderRefund> for OrderRefundReply {
    fn from(refund: &OrderRefund) -> Self {
        Self {
            order: refund.key.order,
            number: refund.key.number,
            tickets: refund.tickets.clone(),
            amount_minor: refund.amount.amount_minor,
            currency: refund.amount.currency,
            kept_minor: Some(refund.kept_minor).filter(|kept| *kept != MinorUnits::ZERO),
            exchanged_for: refund.exchanged_for(),
            asked_by: refund.asked_by,
            made_at: refund.made_at,
            state: refund.refund.state,
            changed_at: refund.refund.changed_at,
        }
    }
}

/// The refunds of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "OrderRefunds")]
pub struct OrderRefundsReply {
    /// The refunds, by number.
    pub refunds: Vec<OrderRefundReply>,
    /// The number that the next one would have; absent if the order can have no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<RefundNumber>,
}

impl OrderRefundsReply {
    /// The refunds of an order that was read before them.
    #[must_use]
    pub fn new(order: &Order, refunds: &[OrderRefund]) -> Self {
        let counted = refunds.iter().map(|refund| refund.key.number.get()).max();
        let made = counted.unwrap_or(0).max(order.refunds.made);
        let next = made.checked_add(1).filter(|next| *next <= MAX_REFUNDS);
        Self {
            refunds: refunds.iter().map(OrderRefundReply::from).collect(),
            next: next.and_then(|next| RefundNumber::try_from(next).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use lambda_http::Body;
    use serde_json::{Value, json};

    use super::*;

    fn sent(body: &Value) -> Request {
        let mut request = Request::new(Body::from(body.to_string()));
        let json = "application/json".parse().unwrap();
        request.headers_mut().insert("content-type", json);
        request
    }

    fn asks(body: &Value) -> Result<OperatorAsks, String> {
        OperatorRefundBody::read(&sent(body)).map_err(|refusal| {
            if let Refusal::Invalid { at, .. } = refusal { at } else { refusal.to_string() }
        })
    }

    fn at(body: &Value) -> Result<RefundRequest, String> {
        match asks(body)? {
            OperatorAsks::Make(request) => Ok(request),
            word @ (OperatorAsks::Again(_) | OperatorAsks::Keep(_) | OperatorAsks::Settled(..)) => {
                Err(format!("{word:?}"))
            }
        }
    }

    #[test]
    fn an_operator_has_a_refund_sent_again_by_its_number_alone() {
        let again = json!({ "number": 2, "again": true });
        assert_eq!(asks(&again).map(|asks| asks.number().get()), Ok(2));
        assert!(matches!(asks(&again), Ok(OperatorAsks::Again(_))));
        let with = |field: &str, value: Value| {
            let mut body = again.clone();
            body[field] = value;
            asks(&body)
        };
        for (field, value) in
            [("tickets", json!([])), ("reason", json!("x")), ("currency", json!("EUR"))]
        {
            assert_eq!(with(field, value), Err("again".to_owned()));
        }
        assert_eq!(with("again", json!(false)), Err("tickets".to_owned()));
        assert!(with("again", json!(1)).unwrap_err().contains("shape"));
    }

    #[test]
    fn an_operator_keeps_tickets_and_settles_a_refund_by_its_number_alone() {
        let keep = json!({ "number": 2, "keep": true });
        assert!(matches!(asks(&keep), Ok(OperatorAsks::Keep(number)) if number.get() == 2));
        let settled = |how: &str| asks(&json!({ "number": 3, "settled": how }));
        let read = settled("bank transfer 2026-11-30, ref 4711").unwrap();
        let OperatorAsks::Settled(number, how) = read else { panic!("{read:?}") };
        assert_eq!((number.get(), how.as_str()), (3, "bank transfer 2026-11-30, ref 4711"));
        assert_eq!(settled(""), Err("settled".to_owned()));
        assert_eq!(settled(&"x".repeat(MAX_REASON_CHARACTERS + 1)), Err("settled".to_owned()));
        let two = json!({ "number": 3, "settled": "cash", "keep": true });
        assert_eq!(asks(&two), Err("number".to_owned()));
        let more = json!({ "number": 3, "settled": "cash", "tickets": [] });
        assert_eq!(asks(&more), Err("settled".to_owned()));
    }

    #[test]
    fn an_operator_names_tickets_an_amount_or_both() {
        let ticket = |seat: &str| json!({ "tier": "vip", "seat": seat });
        let read = at(&json!({ "number": 3, "tickets": [ticket("A-1"), ticket("A-2")],
            "amount_minor": 500, "currency": "EUR", "reason": "The hall was cold." }))
        .unwrap();
        let RefundedTickets::Named(named) = &read.tickets else { panic!("{read:?}") };
        assert_eq!((read.number.get(), named.len(), named[1].seat.as_str()), (3, 2, "A-2"));
        assert_eq!(read.amount.map(|amount| amount.to_string()).as_deref(), Some("500 EUR"));
        assert_eq!(read.asked_by, AskedBy::Operator);
        let whole = at(&json!({ "number": 1, "tickets": "all" })).unwrap();
        assert_eq!((whole.tickets, whole.amount), (RefundedTickets::All, None));
    }

    #[test]
    fn what_is_no_request_is_refused_with_its_place() {
        let with = |more: Value| {
            let mut body = json!({ "number": 1, "tickets": [] });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            at(&body).unwrap_err()
        };
        assert_eq!(with(json!({ "amount_minor": 1 })), "currency");
        assert_eq!(with(json!({ "currency": "EUR" })), "currency");
        assert_eq!(with(json!({ "amount_minor": -1, "currency": "EUR" })), "amount_minor");
        assert_eq!(with(json!({ "tickets": null })), "tickets");
        assert_eq!(with(json!({ "reason": "" })), "reason");
        assert_eq!(with(json!({ "reason": "x".repeat(MAX_REASON_CHARACTERS + 1) })), "reason");
        let many = vec![json!({ "tier": "vip", "seat": "A-1" }); MAX_SEATS_PER_ORDER + 1];
        let shapes = [
            json!({ "tickets": "some" }),
            json!({ "tickets": { "tier": "vip", "seat": "A-1" } }),
            json!({ "tickets": [["vip", "A-1"]] }),
            json!({ "tickets": [{ "tier": "vip", "seat": "A-1", "leg": 0 }] }),
            json!({ "tickets": many }),
            json!({ "number": 0 }),
            json!({ "number": 51 }),
            json!({ "number": "1" }),
            json!({ "amount_minor": 1.5, "currency": "EUR" }),
            json!({ "amount_minor": 1, "currency": "euro" }),
            json!({ "buyer": "alice" }),
        ];
        for shape in shapes {
            let refused = with(shape.clone());
            assert!(refused.contains("shape"), "{shape} {refused}");
        }
    }

    #[test]
    fn a_buyer_names_no_amount() {
        let body = json!({ "number": 1, "tickets": "all" });
        let read = BuyerRefundBody::read(&sent(&body)).unwrap();
        assert_eq!((read.asked_by, read.amount), (AskedBy::Buyer, None));
        for field in ["amount_minor", "currency", "reason"] {
            let mut more = body.clone();
            more[field] = json!(1);
            assert!(BuyerRefundBody::read(&sent(&more)).is_err(), "{field}");
        }
    }
}
