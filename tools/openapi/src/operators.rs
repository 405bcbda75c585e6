//! The operations of operators who have a token.

use engine::domain::basics::ids::{AttendeeId, SaleId, SeatName, TierId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use serde_json::{Value, json};
use shared::figures::MAX_MINUTES;
use shared::http::accounts::AccountsReply;
use shared::http::checks::MAX_BODY_BYTES;
use shared::http::disputes::DisputesReply;
use shared::http::figures::{DEFAULT_MINUTES, FiguresReply};
use shared::http::operators::{
    ActionsReply, BoardReply, FoundOrdersReply, OperatorOrderReply, StuckReply, WebhooksReply,
};
use shared::http::respond::CSV;
use shared::http::standing::StandingBody;
use shared::http::takings::{self, TakingsReply};
use shared::http::unmatched::{UnmatchedBody, UnmatchedPageReply, UnmatchedReply};

use super::operations::{
    Body, JSON, NOT_KEPT, Operation, Parameter, Success, cancel_order, publish_sale, refund_order,
    sale_now,
};
use super::{Schemas, examples, rooms};

const TAG: &str = "operators";

/// The operation of programs, by a token in place of a signature.
pub(super) fn by_token(id: &'static str, operation: Operation) -> Operation {
    Operation { id, tag: TAG, ..operation }
}

pub(super) fn publish() -> Operation {
    by_token("operatorPublish", publish_sale())
}

pub(super) fn say() -> Operation {
    Operation {
        id: "operatorSay",
        tag: TAG,
        summary: "Pause a sale, let it go on, say that it is sold out, or put a notice on it",
        description: "Every gate follows within two seconds. What is not given stays as it is. A waiting room has commands of \
                      its own.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<StandingBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || {
                vec![
                    (
                        "pause",
                        "Paused, and why",
                        json!({ "state": "paused", "notice": { "en": "Back at noon", "zh": "中午恢复" } }),
                    ),
                    (
                        "resume",
                        "Open, and nothing to read",
                        json!({ "state": "open", "notice": null }),
                    ),
                    ("sold_out", "Nothing is left", json!({ "sold_out": true })),
                ]
            },
        }),
        success: sale_now(),
    }
}

pub(super) fn command() -> Operation {
    by_token("operatorCommand", rooms::command())
}

pub(super) fn refund() -> Operation {
    by_token("operatorRefund", refund_order())
}

pub(super) fn cancel() -> Operation {
    Operation {
        summary: "Cancel an order that is not paid",
        description: "Anybody's. Its seats are free again. Cancelling it again is answered the same.",
        ..by_token("operatorCancel", cancel_order())
    }
}

fn reply(
    description: &'static str,
    schema: fn(&mut Schemas) -> Value,
    examples: fn() -> Vec<(&'static str, &'static str, Value)>,
) -> Success {
    Success { status: 200, description, caching: &[NOT_KEPT], media_type: JSON, schema, examples }
}

fn parameter(
    name: &'static str,
    description: &'static str,
    schema: fn(&mut Schemas) -> Value,
    example: Option<&'static str>,
) -> Parameter {
    Parameter { name, place: "query", description, schema, example }
}

/// The parameter of what is listed in pages.
fn before() -> Parameter {
    let about = "Where the page begins: `next` of the page before.";
    parameter("before", about, |_| json!({ "type": "string" }), None)
}

pub(super) fn order() -> Operation {
    Operation {
        id: "operatorOrder",
        tag: TAG,
        summary: "Show any order, with its payments, its refunds and what happened to it",
        description: "What happened stands on the order itself: nothing of it is ever missing.",
        parameters: Vec::new(),
        body: None,
        success: reply("The order.", Schemas::written::<OperatorOrderReply>, || {
            vec![("paid", "A paid order", operator_order())]
        }),
    }
}

pub(super) fn orders() -> Operation {
    Operation {
        id: "operatorOrders",
        tag: TAG,
        summary: "Find orders",
        description: "By `order`; by `buyer`, a page at a time; by `sale`, `tier` and `seat`, those that own the seat \
                      on some leg and those that gave it back by a refund; or by `sale` and `attendee`, the live \
                      order that names somebody.",
        parameters: vec![
            parameter("order", "A number.", Schemas::read::<OrderNumber>, Some(examples::ORDER)),
            parameter("buyer", "A buyer.", Schemas::read::<UserId>, None),
            parameter(
                "before",
                "Only orders of the buyer with a smaller number: `next` of the page before.",
                Schemas::read::<OrderNumber>,
                None,
            ),
            parameter("sale", "A sale.", Schemas::read::<SaleId>, None),
            parameter("tier", "A tier of the sale.", Schemas::read::<TierId>, None),
            parameter("seat", "A seat of the tier.", Schemas::read::<SeatName>, None),
            parameter("attendee", "Somebody's id.", Schemas::read::<AttendeeId>, None),
        ],
        body: None,
        success: reply("The orders.", Schemas::written::<FoundOrdersReply>, || {
            vec![("one", "One order", json!({ "orders": [found_order()] }))]
        }),
    }
}

pub(super) fn board() -> Operation {
    Operation {
        id: "operatorBoard",
        tag: TAG,
        summary: "Show a sale live",
        description: "What is available is at most a second old; what is sold is as far as paid orders are counted, \
                      some seconds behind. The room is its document, as everyone sees it.",
        parameters: Vec::new(),
        body: None,
        success: reply("The sale now.", Schemas::written::<BoardReply>, || {
            vec![("train", "A train with two tiers", sale_board())]
        }),
    }
}

pub(super) fn export() -> Operation {
    Operation {
        id: "operatorExport",
        tag: TAG,
        summary: "Export the tickets of a sale",
        description: "A page of them as comma-separated values with a heading, by tier and seat: those of pending and \
                      paid orders, and those that were refunded. The header `X-Next-Cursor` has `cursor` of the next \
                      page; it is absent at the end. Text that a spreadsheet would take for a formula begins with `'`.",
        parameters: vec![parameter(
            "cursor",
            "Where the page begins: `X-Next-Cursor` of the page before.",
            |_| json!({ "type": "integer", "minimum": 0 }),
            None,
        )],
        body: None,
        success: Success {
            status: 200,
            description: "A page.",
            caching: &[NOT_KEPT],
            media_type: CSV,
            schema: |_| json!({ "type": "string" }),
            examples: Vec::new,
        },
    }
}

pub(super) fn figures() -> Operation {
    Operation {
        id: "operatorFigures",
        tag: TAG,
        summary: "Show what the metrics say of a sale's last minutes",
        description: "Counts of the sale minute by minute; refusals and errors by the type of the problem, and latency \
                      by function, of the whole stage. They come from the metrics: on AWS they are a minute old at \
                      least (`delay_seconds`), and counted once a minute. For monitoring: what is sold is on the board.",
        parameters: vec![parameter(
            "minutes",
            "Number of minutes.",
            |_| json!({ "type": "integer", "minimum": 1, "maximum": MAX_MINUTES, "default": DEFAULT_MINUTES }),
            None,
        )],
        body: None,
        success: reply("The figures.", Schemas::written::<FiguresReply>, || {
            vec![("deployed", "A train, in a deployment", sample_figures())]
        }),
    }
}

pub(super) fn takings() -> Operation {
    Operation {
        id: "operatorTakings",
        tag: TAG,
        summary: "Show what a sale sold and took, minute by minute",
        description: "From the log: each fact once, in the minute in which it was settled, some seconds after it \
                      happened. An order that was paid counts with all of its tickets; a refund counts when it is made.",
        parameters: vec![
            parameter(
                "minutes",
                "Number of minutes.",
                |_| json!({ "type": "integer", "minimum": 1, "maximum": takings::MAX_MINUTES, "default": takings::DEFAULT_MINUTES }),
                None,
            ),
            parameter(
                "until",
                "A time in the last of them; now if it is absent.",
                Schemas::read::<Timestamp>,
                Some("2026-11-21T12:00:30.000Z"),
            ),
        ],
        body: None,
        success: reply("The minutes.", Schemas::written::<TakingsReply>, || {
            vec![("train", "A train with two tiers", sample_takings())]
        }),
    }
}

pub(super) fn actions() -> Operation {
    Operation {
        id: "operatorActions",
        tag: TAG,
        summary: "List what operators did",
        description: "Latest first, by a token or by IAM, with who it was. An action is recorded before it is carried \
                      out; one without an outcome was begun, and its outcome is not known. Kept for 400 days.",
        parameters: vec![before()],
        body: None,
        success: reply("A page of actions.", Schemas::written::<ActionsReply>, || {
            vec![("refund", "A refund", sample_actions())]
        }),
    }
}

pub(super) fn stuck() -> Operation {
    Operation {
        id: "operatorStuck",
        tag: TAG,
        summary: "Say what is overdue",
        description: "Work that was due two minutes ago and is not finished, and messages that failed for good. `onsale \
                      stuck` and `onsale dead-letters` say more of each.",
        parameters: Vec::new(),
        body: None,
        success: reply("What is overdue.", Schemas::written::<StuckReply>, || {
            vec![("nothing", "Nothing", json!({ "overdue": 0, "dead_letters": { "expiry": 0 } }))]
        }),
    }
}

pub(super) fn accounts() -> Operation {
    Operation {
        id: "operatorAccounts",
        tag: TAG,
        summary: "Show what accounts have, or who owes something",
        description: "The deployment's own and those of its providers; with `sale` that of the sale's merchant alone: what is \
                      left of it is what the merchant is owed. What was posted of it is what was settled already. With `debts` \
                      those that owe something: of merchants by sale, and of wallets. A page looks through at most 50 sales \
                      and the payments of 50 open and 50 ended disputes, and may list nobody though another follows.",
        parameters: vec![
            parameter(
                "sale",
                "The sale of whose merchant the account is shown.",
                Schemas::read::<SaleId>,
                None,
            ),
            parameter(
                "debts",
                "`true` shows the accounts that owe something; without `sale`.",
                |_| json!({ "type": "boolean" }),
                Some("true"),
            ),
            parameter(
                "cursor",
                "The `next` of the page of debts before.",
                |_| json!({ "type": "string" }),
                None,
            ),
        ],
        body: None,
        success: reply("The accounts.", Schemas::written::<AccountsReply>, || {
            let account = json!({
                "account": "merchant:opera:g35-2026-11-21", "currency": "CNY", "in_minor": 1_047_800,
                "out_minor": 500_000, "balance_minor": 547_800, "posted_minor": -500_000
            });
            let wallet = json!({
                "account": "wallet:mei", "currency": "CNY", "in_minor": 50_000, "out_minor": 62_000,
                "balance_minor": -12_000, "posted_minor": 0
            });
            vec![
                ("merchant", "A merchant that was paid a part", json!({ "accounts": [account] })),
                ("debts", "The last page of debts", json!({ "accounts": [wallet] })),
            ]
        }),
    }
}

pub(super) fn webhooks() -> Operation {
    Operation {
        id: "operatorWebhooks",
        tag: TAG,
        summary: "Show how far each webhook was told",
        description: "What it was not told yet, what it has not taken, and since when it takes nothing. `onsale webhooks` \
                      makes them, and has what was given up tried again.",
        parameters: Vec::new(),
        body: None,
        success: reply("The webhooks.", Schemas::written::<WebhooksReply>, || {
            let webhook = json!({
                "webhook": "erp", "url": "https://erp.example/hooks/onsale", "kinds": ["paid"], "sales": [],
                "records_behind": 3, "orders_waiting": 1, "given_up": 0
            });
            vec![("one", "A webhook", json!({ "webhooks": [webhook] }))]
        }),
    }
}

pub(super) fn disputes() -> Operation {
    Operation {
        id: "operatorDisputes",
        tag: TAG,
        summary: "List the disputes of payments, latest change first",
        description: "While one is open nothing of its payment is refunded, and the provider wants evidence by a day that \
                      its own pages say. A change is listed some time after it is recorded.",
        parameters: vec![
            parameter(
                "state",
                "`open` (those of payments of which one is open) or `over`; `open` if it is not said.",
                |_| json!({ "type": "string", "enum": ["open", "over"] }),
                Some("open"),
            ),
            before(),
        ],
        body: None,
        success: reply("A page of disputes.", Schemas::written::<DisputesReply>, || {
            let dispute = json!({
                "dispute": "dp_1", "state": "open", "order": "1099511627777", "provider": "stripe", "payment": "pi_1",
                "amount_minor": 12_000, "currency": "CNY",
                "opened_at": "2026-11-21T10:00:00Z", "changed_at": "2026-11-21T10:00:00Z"
            });
            vec![("open", "An open dispute", json!({ "disputes": [dispute] }))]
        }),
    }
}

fn unmatched_payment(state: &str) -> Value {
    json!({
        "order": "169218430493097984", "minted": true, "provider": "stripe", "payment": "pi_1", "amount_minor": 12_000,
        "currency": "CNY", "decided_at": "2026-11-21T10:00:00Z", "state": state
    })
}

pub(super) fn unmatched() -> Operation {
    Operation {
        id: "operatorUnmatched",
        tag: TAG,
        summary: "List the payments of no order, latest number first",
        description: "Captures that carry this deployment's id and whose order is not there, about which an operator is to \
                      decide. A change is listed some time after it is recorded.",
        parameters: vec![before()],
        body: None,
        success: reply("A page of payments.", Schemas::written::<UnmatchedPageReply>, || {
            vec![("one", "A payment", json!({ "unmatched": [unmatched_payment("unmatched")] }))]
        }),
    }
}

pub(super) fn tell_unmatched() -> Operation {
    Operation {
        id: "tellUnmatched",
        tag: TAG,
        summary: "Say what becomes of a payment of no order",
        description: "Its money goes back, or it is known what it was and its money stays. The same again changes nothing; \
                      the opposite is refused.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<UnmatchedBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || {
                let word = json!({
                    "order": "169218430493097984", "provider": "stripe", "payment": "pi_1", "word": "send_back",
                    "reason": "the backup lost the order"
                });
                vec![("back", "Its money goes back", word)]
            },
        }),
        success: reply("The payment.", Schemas::written::<UnmatchedReply>, || {
            vec![("back", "Its money goes back", unmatched_payment("due"))]
        }),
    }
}

fn found_order() -> Value {
    let mut order = examples::order_shown("paid");
    order["buyer"] = json!("alice");
    order
}

fn operator_order() -> Value {
    json!({
        "order": examples::order_shown("paid"), "buyer": "alice", "payments": [], "refunds": [],
        "history": [{
            "number": 1, "kind": "made", "at": "2026-11-21T12:00:00.000Z", "by": "buyer"
        }]
    })
}

fn sale_board() -> Value {
    json!({
        "sale": examples::SALE, "as_of": "2026-11-21T12:00:00.000Z", "state": "open", "currency": "CNY",
        "room": null,
        "tiers": [
            { "tier": "second", "name": "Second class", "seats": 10, "available": 8, "sold": 2, "revenue_minor": 117_000 },
            { "tier": "standing", "name": "No seat", "seats": 40, "available": 40, "sold": 0, "revenue_minor": 0 }
        ]
    })
}

fn sample_takings() -> Value {
    let point = |at: &str, orders: u64, returned: u64, taken: u64, back: u64| {
        json!({ "at": at, "orders": orders, "tickets": orders, "returned": returned, "taken_minor": taken,
            "commission_minor": 0, "given_back_minor": back, "unowned_minor": 0 })
    };
    json!({
        "sale": examples::SALE, "currency": "CNY",
        "points": [
            point("2026-11-21T11:59:00.000Z", 2, 0, 117_000, 0), point("2026-11-21T12:00:00.000Z", 0, 1, 0, 58_500)
        ],
        "tiers": [{ "tier": "second", "sold": 2, "returned": 1 }]
    })
}

fn sample_figures() -> Value {
    let point = |at: &str, admitted: u64, held: u64, paid: u64| {
        json!({ "at": at, "admitted": admitted, "waiting": 1, "held": held, "paid": paid, "expired": 0,
            "cancelled": 1, "joined": 0, "served": 0, "came": 0 })
    };
    json!({
        "sale": examples::SALE, "as_of": "2026-11-21T12:00:00.000Z", "period_seconds": 60, "delay_seconds": 60,
        "points": [
            point("2026-11-21T11:58:00.000Z", 40, 38, 20), point("2026-11-21T11:59:00.000Z", 35, 35, 31)
        ],
        "refused": [
            { "reason": "sold-out", "title": "Nothing is left that fits", "count": 12 },
            { "reason": "waiting", "title": "Held seats may come back", "count": 2 }
        ],
        "server_errors": [],
        "latency": [{ "function": "reserve", "p50_ms": 6.41, "p99_ms": 31.2, "count": 75 }]
    })
}

fn sample_actions() -> Value {
    json!({
        "actions": [{
            "at": "2026-11-21T12:00:00.000Z", "who": "zhang", "way": "issuer", "action": "refund",
            "order": examples::ORDER, "detail": "refund 1", "outcome": "done"
        }]
    })
}
