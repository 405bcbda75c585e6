//! The operations of issued tickets: their codes, and the doors that check them.

use engine::domain::basics::number::OrderNumber;
use serde_json::{Value, json};
use shared::http::checks::MAX_BODY_BYTES;
use shared::http::ticket::{
    CheckInBoardReply, CheckInsBody, CheckInsReply, IssuedTicketsReply, ReissueBody, ReissuedReply,
    RevokedReply,
};
use shared::tickets::PublicKeys;

use super::operations::{
    Body, JSON, KEPT_A_WHILE, KEPT_FIVE_SECONDS, NOT_KEPT, Operation, Parameter, Success,
};
use super::{Schemas, examples};

/// The beginning of a code, as far as it shows its form.
const CODE: &str =
    "eyJ0eXAiOiJ0aWNrZXQiLCJhbGciOiJFZERTQSIsImtpZCI6ImtQcktfcW14VldhWSJ9.e30.c2lnbmF0dXJl";

fn parameter(
    name: &'static str,
    description: &'static str,
    schema: fn(&mut Schemas) -> Value,
) -> Parameter {
    Parameter { name, place: "query", description, schema, example: None }
}

pub(super) fn show() -> Operation {
    Operation {
        id: "showTickets",
        tag: "orders",
        summary: "Show the tickets of one of the buyer's orders, with their codes",
        description: "None until the order is paid. A code is a compact JWS (EdDSA) that says deployment, sale, tier, \
                      seat, journey, order, ticket and issue, and no name. It is the same whenever it is asked for, and \
                      as good as its copies until the first is let in. Anyone else's order looks like one that does \
                      not exist.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The tickets.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<IssuedTicketsReply>,
            examples: || vec![("one", "A paid order", tickets())],
        },
    }
}

pub(super) fn keys() -> Operation {
    Operation {
        id: "showTicketKeys",
        tag: "sales",
        summary: "Show the public keys of tickets",
        description: "A JSON Web Key Set that also says whose it is, to check codes by without asking anybody. Two while \
                      a key is replaced, the signing one first.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The keys.",
            caching: &[KEPT_A_WHILE],
            media_type: JSON,
            schema: Schemas::written::<PublicKeys>,
            examples: || vec![("one", "One key", public_keys())],
        },
    }
}

pub(super) fn revoked() -> Operation {
    Operation {
        id: "showRevoked",
        tag: "sales",
        summary: "Show which tickets of a sale are void",
        description: "A signed page (JWS, `typ` is `revoked`): `d` the deployment, `s` the sale, `at` seconds since 1970, \
                      `revoked` a list of `[order, ticket, lowest issue that is good]`, 0 if none is, `from` and \
                      `next` the orders between which it says all, and `all` if the sale was cancelled.",
        parameters: vec![parameter(
            "from",
            "The order with which the page begins: `next` of the page before.",
            Schemas::read::<OrderNumber>,
        )],
        body: None,
        success: Success {
            status: 200,
            description: "The page.",
            caching: &[KEPT_FIVE_SECONDS],
            media_type: JSON,
            schema: Schemas::written::<RevokedReply>,
            examples: || vec![("page", "All of it", json!({ "list": CODE }))],
        },
    }
}

pub(super) fn check_in() -> Operation {
    Operation {
        id: "operatorCheckIn",
        tag: "operators",
        summary: "Record whom doors let in",
        description: "At once, or when a door is online again. Each is recorded once, however often it is sent: the same \
                      code, door and time are the same check-in. Of two doors that let one ticket in the second is \
                      told of the first, and both stand in the record.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<CheckInsBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || vec![("one", "One person", check_ins())],
        }),
        success: Success {
            status: 200,
            description: "What became of each, in their order.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<CheckInsReply>,
            examples: || vec![("two", "Two doors", results())],
        },
    }
}

pub(super) fn board() -> Operation {
    Operation {
        id: "operatorCheckIns",
        tag: "operators",
        summary: "Show how a sale fills, and the tickets that two doors let in",
        description: "The counts, and with `conflicts=true` every check-in after the first of its ticket, 50 a page.",
        parameters: vec![
            parameter("conflicts", "`true` lists them.", |_| json!({ "type": "boolean" })),
            parameter(
                "after",
                "Where the page begins: `next` of the page before.",
                |_| json!({ "type": "string", "maxLength": 96 }),
            ),
        ],
        body: None,
        success: Success {
            status: 200,
            description: "The counts.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<CheckInBoardReply>,
            examples: || vec![("conflict", "A ticket that two doors let in", conflicts())],
        },
    }
}

pub(super) fn reissue() -> Operation {
    Operation {
        id: "operatorReissue",
        tag: "operators",
        summary: "Issue tickets of a paid order anew",
        description: "Their codes are void from now on, and the buyer gets new ones. Repeated, it issues them once more.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<ReissueBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || {
                vec![
                    ("one", "One ticket", json!({ "tickets": [2] })),
                    ("all", "All that live", json!({ "tickets": [] })),
                ]
            },
        }),
        success: Success {
            status: 200,
            description: "The tickets that live, with their issues.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<ReissuedReply>,
            examples: || {
                let issues = json!([{ "number": 1, "issue": 1 }, { "number": 2, "issue": 2 }]);
                vec![("one", "One of two", json!({ "order": examples::ORDER, "tickets": issues }))]
            },
        },
    }
}

fn tickets() -> Value {
    json!({
        "order": examples::ORDER, "sale": examples::SALE, "title": "G35 Beijing South - Ningbo",
        "tickets": [{
            "number": 1, "tier": "second", "seat": "01-1A", "from": examples::FROM, "to": examples::TO,
            "attendee": "P-1", "state": "valid", "issue": 1, "code": CODE
        }]
    })
}

/// The key of RFC 8037.
fn public_keys() -> Value {
    json!({
        "deployment": "prod-onsale",
        "keys": [{
            "kty": "OKP", "crv": "Ed25519", "kid": "kPrK_qmxVWaY", "use": "sig", "alg": "EdDSA",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        }]
    })
}

fn check_ins() -> Value {
    json!({ "check_ins": [{ "code": CODE, "door": "north", "at": "2026-11-21T18:30:00.000Z" }] })
}

fn results() -> Value {
    let result = |outcome: &str| {
        json!({
            "outcome": outcome, "order": examples::ORDER, "ticket": 1,
            "first_at": "2026-11-21T18:30:00.000Z", "first_door": "north"
        })
    };
    json!({ "results": [result("admitted"), result("already-admitted")] })
}

fn conflicts() -> Value {
    json!({
        "sale": examples::SALE, "admitted": 2, "doubles": 1,
        "conflicts": [{
            "order": examples::ORDER, "ticket": 1, "first_at": "2026-11-21T18:30:00.000Z",
            "first_door": "north", "at": "2026-11-21T18:30:04.000Z", "door": "south"
        }]
    })
}
