//! The operations of waiting rooms, with their examples.

use engine::domain::admission::room::document::Document;
use engine::domain::admission::room::leaves::Chunk;
use serde_json::{Value, json};
use shared::http::checks::MAX_BODY_BYTES;
use shared::http::place::{PlaceBody, PlaceReply};
use shared::http::respond::{HTML, IMMUTABLE, JSON_LINES};
use shared::http::room::{BroughtReply, CommandBody, RoundBody, WindowReply};

use super::operations::{Body, JSON, KEPT_A_SECOND, NOT_KEPT, Operation, Parameter, Success};
use super::{Schemas, examples};

const TOKEN: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiIsImtpZCI6IjIwMjYtMDEifQ.e30.c2lnbmF0dXJl";
const HASH: &str = "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482";

pub(super) fn sale_file() -> Value {
    json!({
        "sale": "lanterns-2026-11-21",
        "title": "The Lanterns, closing night",
        "currency": "EUR",
        "opens_at": "2095-12-01T10:00:00Z",
        "closes_at": "2096-01-01T00:00:00Z",
        "limit_per_buyer": 4,
        "pay_window_seconds": 900,
        "room": { "visit_seconds": 900 },
        "tiers": [
            { "tier": "floor", "name": "Floor", "price_minor": 8500, "general_admission": 40 },
            {
                "tier": "stalls", "name": "Stalls", "price_minor": 6500,
                "sections": [{
                    "section": "Stalls",
                    "rows": [
                        { "row": "1", "seats": { "first": 1, "count": 6 } },
                        { "row": "2", "seats": ["S-2-1", null, "S-2-2", "S-2-3"] }
                    ]
                }]
            }
        ],
        "map": examples::map()
    })
}

fn document() -> Value {
    json!({
        "state": "drawn", "as_of": "2026-06-01T07:59:30.000Z",
        "draw_closes_at": "2026-06-01T07:58:00.000Z", "opens_at": "2026-06-01T08:00:00.000Z",
        "groups": [{
            "group": "all", "serving": 0, "passed": 0, "joined": 41_200, "window": 41_200,
            "seed": HASH, "count": 41_200, "lasts_to": [9_000, 16_200]
        }],
        "rate": 200, "record": 2, "head": HASH, "tiers": [18_000],
        "poll": { "min_seconds": 2, "max_seconds": 60, "jitter_percent": 30 }
    })
}

pub(super) fn join() -> Operation {
    Operation {
        id: "joinRoom",
        tag: "rooms",
        summary: "Join the waiting room of a sale",
        description: "Who joins before the draw closes is drawn together, whenever that was. Joining again, from any \
                      device, is answered the same membership. The token is no bearer token: the gate wants it \
                      together with a token of the same buyer.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<PlaceBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || {
                vec![
                    ("join", "A room of one group", json!({})),
                    ("time", "More time", json!({ "group": "all", "more_time": true })),
                ]
            },
        }),
        success: Success {
            status: 201,
            description: "The membership.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<PlaceReply>,
            examples: || {
                let place = json!({
                    "place_token": TOKEN, "group": "all", "window": "first", "index": 4_711,
                    "nonce": "00112233445566778899aabbccddeeff", "standing": "certain"
                });
                vec![("first", "In the first draw", place)]
            },
        },
    }
}

pub(super) fn show() -> Operation {
    Operation {
        id: "showRoom",
        tag: "rooms",
        summary: "Show what a waiting room does now",
        description: "The document that everybody who waits reads again and again, as often as `poll` says. A place \
                      below `serving` is due.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The room document.",
            caching: &[KEPT_A_SECOND],
            media_type: JSON,
            schema: Schemas::written::<Document>,
            examples: || vec![("drawn", "Half a minute before the opening", document())],
        },
    }
}

pub(super) fn show_plain() -> Operation {
    Operation {
        id: "showPlainRoom",
        tag: "rooms",
        summary: "Show what a waiting room does now, as a page",
        description: "The room document in words and without script, for people. It loads itself anew. It stands \
                      where the pages are, not below `/api`.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The page.",
            caching: &[KEPT_A_SECOND],
            media_type: HTML,
            schema: |_| json!({ "type": "string" }),
            examples: Vec::new,
        },
    }
}

pub(super) fn log() -> Operation {
    Operation {
        id: "showRoomLog",
        tag: "rooms",
        summary: "Show a page of the log",
        description: "At most 50 records, a line of JSON each: each has the SHA-256 of the line before. A page of 50 \
                      never changes.",
        parameters: vec![Parameter {
            name: "from",
            place: "query",
            description: "The number of the first record.",
            schema: |_| json!({ "type": "integer", "minimum": 0, "default": 0 }),
            example: None,
        }],
        body: None,
        success: Success {
            status: 200,
            description: "The page; empty beyond the last record.",
            caching: &[KEPT_A_SECOND, IMMUTABLE],
            media_type: JSON_LINES,
            schema: |_| json!({ "type": "string" }),
            examples: Vec::new,
        },
    }
}

pub(super) fn leaves() -> Operation {
    Operation {
        id: "showRoomLeaves",
        tag: "rooms",
        summary: "Show a chunk of the leaves of a draw",
        description: "Chunk n has the leaves of the indices from 1,024 n on, and its path to the root. With the own \
                      nonce a buyer finds the own leaf.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The chunk.",
            caching: &[IMMUTABLE],
            media_type: JSON,
            schema: Schemas::written::<Chunk>,
            examples: || {
                let chunk = json!({ "group": "all", "chunk": 0, "leaves": [HASH], "path": [] });
                vec![("one", "A draw of one", chunk)]
            },
        },
    }
}

pub(super) fn window() -> Operation {
    Operation {
        id: "showRoomWindow",
        tag: "rooms",
        summary: "Show the window that an index was drawn in",
        description: "With its seed anybody computes the place of an index.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The window.",
            caching: &[IMMUTABLE],
            media_type: JSON,
            schema: Schemas::written::<WindowReply>,
            examples: || {
                let window = json!({ "first": 0, "end": 41_200, "seed": HASH, "record": 2 });
                vec![("first", "The first window", window)]
            },
        },
    }
}

pub(super) fn bring() -> Operation {
    Operation {
        id: "bringRound",
        tag: "rooms",
        summary: "Bring the beacon's round",
        description: "Anybody may bring the round that decides the draw: its signature decides. Repeating it changes \
                      nothing.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<RoundBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || {
                let signature = "a".repeat(96);
                let body = json!({ "round": 1_000_008, "signature": signature });
                vec![("round", "A round", body)]
            },
        }),
        success: Success {
            status: 200,
            description: "The round is the one that decides.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<BroughtReply>,
            examples: || vec![("drawn", "The draw is decided", json!({ "drawn": true }))],
        },
    }
}

pub(super) fn command() -> Operation {
    Operation {
        id: "commandRoom",
        tag: "rooms",
        summary: "Run a waiting room",
        description: "A record of the log. Every gate goes by it within two seconds.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<CommandBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || {
                vec![
                    ("pause", "Nobody is served for a while", json!({ "command": "pause" })),
                    ("rate", "At most five a second", json!({ "command": "rate", "rate": 5 })),
                    (
                        "notice",
                        "What everybody reads",
                        json!({ "command": "notice", "notice": "Doors open at seven." }),
                    ),
                ]
            },
        }),
        success: Success {
            status: 200,
            description: "The room document that follows.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<Document>,
            examples: || vec![("drawn", "As everybody sees it", document())],
        },
    }
}
