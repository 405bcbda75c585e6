//! What each operation is for, and what it reads and writes.

use engine::domain::basics::bytes::MapHash;
use engine::domain::basics::calendar::Day;
use engine::domain::basics::ids::StopId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::sale::{SaleFile, SeatMap};
use serde_json::{Value, json};
use shared::http::admission::{AdmissionBody, AdmissionReply};
use shared::http::checks::{MAX_BODY_BYTES, MAX_SALE_FILE_BYTES};
use shared::http::order_refund::{
    BuyerRefundBody, OperatorRefundBody, OrderRefundReply, OrderRefundsReply,
};
use shared::http::order_reply::{OrderReply, PageReply};
use shared::http::payment_reply::CallbackReply;
use shared::http::payment_start::{PaymentBody, StartedReply};
use shared::http::points::PointsReply;
use shared::http::reservation::ReservationBody;
use shared::http::respond::IMMUTABLE;
use shared::http::routes::RouteName;
use shared::http::sale_reply::{AvailabilityReply, SaleReply};
use shared::http::sales_page::{MAX_SALES, SALES, SalesReply};
use shared::http::stops::{STOPS, StopsReply};
use shared::http::trains::{TRAINS, TrainsReply};
use shared::http::visit::{VisitBody, VisitReply};
use shared::http::wallet::WalletsReply;
use shared::providers::{CaptureEvent, PaymentEvent};

use super::{Schemas, examples, operators, pages, pictures, rooms, tickets};

/// Examples: a name, what it shows, and the value.
type Examples = fn() -> Vec<(&'static str, &'static str, Value)>;
/// The schema of a type, which is then among the components.
type SchemaOf = fn(&mut Schemas) -> Value;

pub(super) struct Operation {
    pub(super) id: &'static str,
    /// The group it is in.
    pub(super) tag: &'static str,
    /// Summary, in a few words.
    pub(super) summary: &'static str,
    /// Description, beyond the summary.
    pub(super) description: &'static str,
    /// Parameters of its query and headers.
    pub(super) parameters: Vec<Parameter>,
    /// Its body, if it has one.
    pub(super) body: Option<Body>,
    /// The reply when all went well.
    pub(super) success: Success,
}

pub(super) struct Body {
    pub(super) schema: SchemaOf,
    pub(super) most_bytes: usize,
    pub(super) examples: Examples,
}

/// A reply when all went well.
pub(super) struct Success {
    pub(super) status: u16,
    pub(super) description: &'static str,
    /// Its `Cache-Control`; one of these.
    pub(super) caching: &'static [&'static str],
    pub(super) media_type: &'static str,
    pub(super) schema: SchemaOf,
    pub(super) examples: Examples,
}

/// A parameter of the query or a header; none is required by itself.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) description: &'static str,
    pub(super) schema: SchemaOf,
    pub(super) example: Option<&'static str>,
}

impl Parameter {
    /// As the document has it.
    pub(super) fn describe(&self, schemas: &mut Schemas) -> Value {
        let mut described = json!({
            "name": self.name, "in": self.place, "required": false,
            "description": self.description, "schema": (self.schema)(schemas)
        });
        if let Some(example) = self.example {
            described["example"] = json!(example);
        }
        described
    }
}

pub(super) const NOT_KEPT: &str = "no-store";
pub(super) const KEPT_A_SECOND: &str = "public, max-age=1";
pub(super) const KEPT_TEN_SECONDS: &str = "public, max-age=10";
pub(super) const KEPT_FIVE_SECONDS: &str = "public, max-age=5";
pub(super) const KEPT_A_MINUTE: &str = "public, max-age=60";
pub(super) const KEPT_A_WHILE: &str = "public, max-age=300";
pub(super) const JSON: &str = "application/json";

/// The operation of a route.
pub(super) fn operation(route: RouteName) -> Operation {
    match route {
        RouteName::ShowOpenApi => show_openapi(),
        RouteName::ListSales => list_sales(),
        RouteName::PublishSale => publish_sale(),
        RouteName::ShowSale => show_sale(),
        RouteName::ShowAvailability => show_availability(),
        RouteName::ListTrains => list_trains(),
        RouteName::ListStops => list_stops(),
        RouteName::ShowMap => show_map(),
        RouteName::ShowSalePage => pages::show_sale(),
        RouteName::ShowSitemap => pages::show_sitemap(),
        RouteName::ShowPicture => pictures::show(),
        RouteName::KeepPicture => pictures::keep(),
        RouteName::OperatorPicture => pictures::keep_as_operator(),
        RouteName::ShowDocument => pictures::show_document(),
        RouteName::JoinRoom => rooms::join(),
        RouteName::ShowRoom => rooms::show(),
        RouteName::ShowPlainRoom => rooms::show_plain(),
        RouteName::ShowRoomLog => rooms::log(),
        RouteName::ShowRoomLeaves => rooms::leaves(),
        RouteName::ShowRoomWindow => rooms::window(),
        RouteName::BringRound => rooms::bring(),
        RouteName::CommandRoom => rooms::command(),
        RouteName::BeginVisit => begin_visit(),
        RouteName::Admit => admit(),
        RouteName::Reserve => reserve(),
        RouteName::ListOrders => list_orders(),
        RouteName::ShowOrder => show_order(),
        RouteName::CancelOrder => cancel_order(),
        RouteName::StartPayment => start_payment(),
        RouteName::PayFromWallet => pay_from_wallet(),
        RouteName::ShowWallets => show_wallets(),
        RouteName::ShowPoints => show_points(),
        RouteName::GiveBack => give_back(),
        RouteName::ListRefunds => list_refunds(),
        RouteName::RefundOrder => refund_order(),
        RouteName::OperatorPublish => operators::publish(),
        RouteName::OperatorStanding => operators::say(),
        RouteName::OperatorCommand => operators::command(),
        RouteName::OperatorRefund => operators::refund(),
        RouteName::OperatorCancel => operators::cancel(),
        RouteName::OperatorOrder => operators::order(),
        RouteName::OperatorOrders => operators::orders(),
        RouteName::OperatorBoard => operators::board(),
        RouteName::OperatorExport => operators::export(),
        RouteName::OperatorTakings => operators::takings(),
        RouteName::OperatorFigures => operators::figures(),
        RouteName::OperatorActions => operators::actions(),
        RouteName::OperatorStuck => operators::stuck(),
        RouteName::OperatorAccounts => operators::accounts(),
        RouteName::OperatorWebhooks => operators::webhooks(),
        RouteName::OperatorDisputes => operators::disputes(),
        RouteName::OperatorUnmatched => operators::unmatched(),
        RouteName::TellUnmatched => operators::tell_unmatched(),
        RouteName::PaymentCallback | RouteName::TakeCallback => payment_callback(),
        RouteName::ShowTickets => tickets::show(),
        RouteName::ShowTicketKeys => tickets::keys(),
        RouteName::ShowRevoked => tickets::revoked(),
        RouteName::OperatorCheckIn => tickets::check_in(),
        RouteName::OperatorCheckIns => tickets::board(),
        RouteName::OperatorReissue => tickets::reissue(),
    }
}

fn show_openapi() -> Operation {
    Operation {
        id: "showOpenApi",
        tag: "meta",
        summary: "This document",
        description: "The OpenAPI document of the version that answers.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The document.",
            caching: &[KEPT_A_WHILE],
            media_type: JSON,
            schema: |_| json!({ "type": "object", "required": ["openapi", "info", "paths"] }),
            examples: Vec::new,
        },
    }
}

fn list_sales() -> Operation {
    Operation {
        id: "listSales",
        tag: "sales",
        summary: "List the sales",
        description: "Those that are not archived, by id, a page at a time.",
        parameters: vec![
            Parameter {
                name: "limit",
                place: "query",
                description: "How many sales of a page at most.",
                schema: |_| {
                    json!({
                        "type": "integer", "minimum": 1, "maximum": MAX_SALES, "default": SALES
                    })
                },
                example: None,
            },
            Parameter {
                name: "cursor",
                place: "query",
                description: "Where the page begins: `next` of the page before.",
                schema: |_| json!({ "type": "string" }),
                example: None,
            },
        ],
        body: None,
        success: Success {
            status: 200,
            description: "A page of sales.",
            caching: &[KEPT_A_SECOND],
            media_type: JSON,
            schema: Schemas::written::<SalesReply>,
            examples: || vec![("sales", "One sale, and more to come", examples::sales())],
        },
    }
}

/// A sale after a change of it.
pub(super) fn sale_now() -> Success {
    Success {
        status: 200,
        description: "The sale as it is now.",
        caching: &[NOT_KEPT],
        media_type: JSON,
        schema: Schemas::written::<SaleReply>,
        examples: || vec![("train", "A train with two tiers", examples::sale())],
    }
}

pub(super) fn publish_sale() -> Operation {
    Operation {
        id: "publishSale",
        tag: "sales",
        summary: "Put a sale on sale, or change its terms",
        description: "The body is a sale file whose `sale` is the id in the path. Seats, stops and currency of a \
                      sale never change; title, window, state, prices, limits and gate may, while it sells. \
                      Repeating the request changes nothing and finishes what a crash left.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<SaleFile>,
            most_bytes: MAX_SALE_FILE_BYTES,
            examples: || {
                vec![
                    ("train", "A train with two tiers", examples::sale_file()),
                    ("top_ups", "Money for wallets", examples::sale_of_money()),
                    ("room", "A concert with a waiting room", rooms::sale_file()),
                    ("concert", "A concert and its event", examples::concert()),
                ]
            },
        }),
        success: sale_now(),
    }
}

fn show_sale() -> Operation {
    Operation {
        id: "showSale",
        tag: "sales",
        summary: "Show a sale",
        description: "Its file, and how its seats lie in the bitmaps of availability: column c of row r is bit \
                      r * row_bytes * 8 + c, the most significant bit of a byte first.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The sale.",
            caching: &[KEPT_A_SECOND],
            media_type: JSON,
            schema: Schemas::written::<SaleReply>,
            examples: || vec![("train", "A train with two tiers", examples::sale())],
        },
    }
}

fn show_availability() -> Operation {
    let stop = |name, description, example| Parameter {
        name,
        place: "query",
        description,
        schema: Schemas::read::<StopId>,
        example: Some(example),
    };
    Operation {
        id: "showAvailability",
        tag: "sales",
        summary: "Show what is left on one journey",
        description: "`from` and `to` are given for a train, and for nothing else. Only tiers that sell the \
                      journey are shown. A moment later it may be less, or more.",
        parameters: vec![
            stop("from", "Where the journey begins.", examples::FROM),
            stop("to", "Where it ends.", examples::TO),
        ],
        body: None,
        success: Success {
            status: 200,
            description: "What was left at `as_of`.",
            caching: &[KEPT_A_SECOND],
            media_type: JSON,
            schema: Schemas::written::<AvailabilityReply>,
            examples: || vec![("train", "Both tiers", examples::availability())],
        },
    }
}

fn list_trains() -> Operation {
    let parameter = |name, description, schema: SchemaOf, example| Parameter {
        name,
        place: "query",
        description,
        schema,
        example,
    };
    let limit: SchemaOf =
        |_| json!({ "type": "integer", "minimum": 1, "maximum": TRAINS, "default": TRAINS });
    Operation {
        id: "listTrains",
        tag: "sales",
        summary: "Find the trains of a day between two stops",
        description: "By time, a page at a time: the trains that call at `from` on that day by the clocks there, and \
                      at `to` later, and that sell the journey, with what was left of each at its `as_of`. A page \
                      may be short, or empty, and not be the last: `next` says so. `date`, `from` and `to` must \
                      be given.",
        parameters: vec![
            parameter("date", "The day at `from`.", Schemas::read::<Day>, Some(examples::DAY)),
            parameter(
                "from",
                "Where the journey begins: the id or the name of a stop, whatever the case.",
                Schemas::read::<StopId>,
                Some(examples::FROM),
            ),
            parameter(
                "to",
                "Where it ends, likewise.",
                Schemas::read::<StopId>,
                Some(examples::TO),
            ),
            parameter("limit", "How many trains of a page at most.", limit, None),
            parameter(
                "cursor",
                "Where the page begins: `next` of the page before.",
                |_| json!({ "type": "string" }),
                None,
            ),
        ],
        body: None,
        success: Success {
            status: 200,
            description: "A page of trains.",
            caching: &[KEPT_A_SECOND],
            media_type: JSON,
            schema: Schemas::written::<TrainsReply>,
            examples: || vec![("trains", "One train, and more to come", examples::trains())],
        },
    }
}

fn list_stops() -> Operation {
    let parameter = |name, description, schema: SchemaOf, example| Parameter {
        name,
        place: "query",
        description,
        schema,
        example,
    };
    let limit: SchemaOf =
        |_| json!({ "type": "integer", "minimum": 1, "maximum": STOPS, "default": STOPS });
    Operation {
        id: "listStops",
        tag: "sales",
        summary: "List the stops of the trains of a day",
        description: "By name, a page at a time: the stops at which people board a train of the day, or leave it, so \
                      that a page of its own can suggest stops by a part of their name, in any script. Each name \
                      finds trains as `from` and `to` of `listTrains`. A stop may be there a while after its last \
                      train is gone. `date` must be given.",
        parameters: vec![
            parameter(
                "date",
                "The day on which trains are boarded, by the clocks there.",
                Schemas::read::<Day>,
                Some(examples::DAY),
            ),
            parameter("limit", "How many stops of a page at most.", limit, None),
            parameter(
                "cursor",
                "Where the page begins: `next` of the page before.",
                |_| json!({ "type": "string" }),
                None,
            ),
        ],
        body: None,
        success: Success {
            status: 200,
            description: "A page of stops.",
            caching: &[KEPT_A_MINUTE],
            media_type: JSON,
            schema: Schemas::written::<StopsReply>,
            examples: || vec![("stops", "Three names, and more to come", examples::stops())],
        },
    }
}

fn show_map() -> Operation {
    Operation {
        id: "showMap",
        tag: "sales",
        summary: "Show where the seats of a sale lie",
        description: "The map of the sale file: presentation, by which no order is bound. With the hash that the \
                      sale has now it never changes; another hash is not found, for the map was replaced. \
                      Sent compressed to who accepts gzip.",
        parameters: vec![Parameter {
            name: "v",
            place: "query",
            description: "`map.hash` of the sale. Without it, the map of this moment.",
            schema: Schemas::read::<MapHash>,
            example: None,
        }],
        body: None,
        success: Success {
            status: 200,
            description: "The map.",
            caching: &[IMMUTABLE, NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<SeatMap>,
            examples: || vec![("hall", "A hall with a standing area", examples::map())],
        },
    }
}

fn begin_visit() -> Operation {
    Operation {
        id: "beginVisit",
        tag: "rooms",
        summary: "Begin to look at what there is",
        description: "Begins the visit of a place that is due, in which the gate admits the buyer; else the visit begins \
                      with the first admission. Send it when the buyer first uses the page on which tickets are chosen: \
                      a place that is due waits for its buyer for `show_up_seconds` only. Repeating it is safe: it says \
                      when the visit ends.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<VisitBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || vec![("place", "A place that is due", examples::visit_body())],
        }),
        success: Success {
            status: 200,
            description: "The visit.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<VisitReply>,
            examples: || vec![("begun", "A visit of ten minutes", examples::visit())],
        },
    }
}

fn admit() -> Operation {
    Operation {
        id: "admit",
        tag: "buying",
        summary: "Ask to be let through the gate",
        description: "The token is the right to make exactly one order, whose number it already carries. A sale may \
                      ask for an answer first: the refusal has the challenge, and the request is sent again \
                      with the answer to it.",
        parameters: vec![Parameter {
            name: "X-Device-Hint",
            place: "header",
            description: "What the client says of its device, the same each time: 1 to 64 printable ASCII \
                          characters without a space. Nobody is refused for leaving it out, and anything \
                          else counts as left out.",
            schema: Schemas::read::<String>,
            example: None,
        }],
        body: Some(Body {
            schema: Schemas::read::<AdmissionBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || vec![("two", "Two tickets", examples::admission_body())],
        }),
        success: Success {
            status: 201,
            description: "The admission.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<AdmissionReply>,
            examples: || vec![("two", "Two tickets", examples::admission())],
        },
    }
}

fn reserve() -> Operation {
    Operation {
        id: "reserve",
        tag: "buying",
        summary: "Hold seats and make the order",
        description: "All lines are held, or none. Repeating the request is safe and is how a lost answer is \
                      found: the same token with the same lines is answered with the same order. A refused \
                      attempt does not use the token up.",
        parameters: vec![Parameter {
            name: "Admission",
            place: "header",
            description: "The admission token, unless the body has it.",
            schema: |_| json!({ "type": "string" }),
            example: None,
        }],
        body: Some(Body {
            schema: Schemas::read::<ReservationBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: examples::reservations,
        }),
        success: Success {
            status: 201,
            description: "The order.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<OrderReply>,
            examples: || vec![("best", "Two seats, side by side", examples::order_reserved())],
        },
    }
}

fn list_orders() -> Operation {
    Operation {
        id: "listOrders",
        tag: "orders",
        summary: "List the buyer's orders",
        description: "Newest first, and always up to date, with what the buyer may still have in each sale \
                      of the page.",
        parameters: vec![
            Parameter {
                name: "limit",
                place: "query",
                description: "How many orders of a page at most.",
                schema: |_| {
                    json!({
                        "type": "integer", "minimum": 1, "maximum": orders::MAX, "default": orders::PAGE
                    })
                },
                example: None,
            },
            Parameter {
                name: "before",
                place: "query",
                description: "Only orders with a smaller number: `next` of the page before.",
                schema: Schemas::read::<OrderNumber>,
                example: None,
            },
        ],
        body: None,
        success: Success {
            status: 200,
            description: "A page of orders.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<PageReply>,
            examples: || vec![("page", "One order, and more to come", examples::page())],
        },
    }
}

fn show_order() -> Operation {
    Operation {
        id: "showOrder",
        tag: "orders",
        summary: "Show one of the buyer's orders",
        description: "Anyone else's order looks like one that does not exist.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The order.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<OrderReply>,
            examples: || {
                vec![
                    ("paid", "A paid order, paid for twice", examples::order_with_payments()),
                    (
                        "refunded",
                        "The same with a ticket refunded",
                        examples::order_partly_refunded(),
                    ),
                ]
            },
        },
    }
}

pub(super) fn cancel_order() -> Operation {
    Operation {
        id: "cancelOrder",
        tag: "orders",
        summary: "Give up an order that is not paid",
        description: "Its seats are free again. Cancelling it again is answered the same.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The cancelled order.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<OrderReply>,
            examples: || {
                vec![("cancelled", "A cancelled order", examples::order_shown("cancelled"))]
            },
        },
    }
}

fn start_payment() -> Operation {
    Operation {
        id: "startPayment",
        tag: "payments",
        summary: "Begin to pay an order",
        description: "The reply says what the buyer's client does next: go to a page of the provider's, or fill in a \
                      form with the provider's script. The same choice is answered with the same payment; another \
                      one closes the former first. None is started after `pay_by`. Whether it was paid, the order \
                      says, never the address that the provider sends the buyer back to. No card number comes here.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<PaymentBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || vec![("page", "A page of the provider's", examples::payment_choice())],
        }),
        success: Success {
            status: 200,
            description: "The payment.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<StartedReply>,
            examples: || vec![("page", "A page to go to", examples::payment_started())],
        },
    }
}

fn pay_from_wallet() -> Operation {
    Operation {
        id: "payFromWallet",
        tag: "payments",
        summary: "Pay an order from the buyer's wallet",
        description: "In one transaction: the wallet has the order's total, and the order is paid. Only orders of a sale \
                      that takes wallets, and only until `pay_by`. The same request again is answered the same. \
                      Another payment of the order that is open is closed.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The paid order.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<OrderReply>,
            examples: || vec![("paid", "A paid order", examples::order_shown("paid"))],
        },
    }
}

fn show_wallets() -> Operation {
    Operation {
        id: "showWallets",
        tag: "payments",
        summary: "Show the buyer's wallets",
        description: "What they have, and the last hundred changes of each.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The wallets, one for each currency.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<WalletsReply>,
            examples: || vec![("one", "A wallet in euros", examples::wallets())],
        },
    }
}

fn show_points() -> Operation {
    Operation {
        id: "showPoints",
        tag: "payments",
        summary: "Show the buyer's points and growth",
        description: "What the buyer has, and what each of the last hundred orders that gave some has given: less with \
                      what was given back of its money.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The points and the growth.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<PointsReply>,
            examples: || vec![("one", "Points of an order", examples::points())],
        },
    }
}

fn give_back() -> Operation {
    Operation {
        id: "giveBack",
        tag: "orders",
        summary: "Give tickets of a paid order back",
        description: "Under the terms that the order has kept from the moment of buying (`refundable` of its lines): the \
                      price less the fee goes back. The seats are on sale again at once, the money follows. The same \
                      request again is answered with the same refund; another one under its number is refused.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<BuyerRefundBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: || vec![("ticket", "One ticket", examples::refund_of_ticket())],
        }),
        success: Success {
            status: 200,
            description: "The refund.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<OrderRefundReply>,
            examples: || vec![("ticket", "One ticket", examples::order_refund("buyer"))],
        },
    }
}

fn list_refunds() -> Operation {
    Operation {
        id: "listRefunds",
        tag: "orders",
        summary: "List the refunds of one of the buyer's orders",
        description: "Whoever asked for them. Anyone else's order looks like one that does not exist.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The refunds.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<OrderRefundsReply>,
            examples: || vec![("one", "One refund", examples::order_refunds())],
        },
    }
}

pub(super) fn refund_order() -> Operation {
    Operation {
        id: "refundOrder",
        tag: "orders",
        summary: "Refund a paid order, or a part of it",
        description: "Tickets at their price, or an amount with or without tickets, or all tickets with all the money \
                      that is left. Never more than was captured. The seats are on sale again at once, the money \
                      follows. The same request again is answered with the same refund; another one under its \
                      number is refused. With `again`, the provider is asked again for a refund that it has refused.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: Schemas::read::<OperatorRefundBody>,
            most_bytes: MAX_BODY_BYTES,
            examples: examples::operator_refunds,
        }),
        success: Success {
            status: 200,
            description: "The refund.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<OrderRefundReply>,
            examples: || vec![("ticket", "One ticket", examples::order_refund("operator"))],
        },
    }
}

fn payment_callback() -> Operation {
    Operation {
        id: "paymentCallback",
        tag: "payments",
        summary: "Tell that money was captured",
        description: "An event in Stripe's form, with whatever other fields it has. `payment_intent.succeeded` with \
                      `metadata.order` is a capture; everything else is answered `200` and passed over. `200` \
                      comes only when all that follows from the payment is done: until then the provider calls \
                      again, and is answered as the first time. The content type does not matter, what is signed does.",
        parameters: Vec::new(),
        body: Some(Body {
            schema: event,
            most_bytes: MAX_BODY_BYTES,
            examples: examples::payment_events,
        }),
        success: Success {
            status: 200,
            description: "What became of it.",
            caching: &[NOT_KEPT],
            media_type: JSON,
            schema: Schemas::written::<CallbackReply>,
            examples: examples::callback_replies,
        },
    }
}

/// Every event is a [`PaymentEvent`]; one of a capture is a [`CaptureEvent`] as well.
fn event(schemas: &mut Schemas) -> Value {
    json!({
        "allOf": [schemas.read::<PaymentEvent>()],
        "if": { "properties": { "type": { "const": "payment_intent.succeeded" } }, "required": ["type"] },
        "then": schemas.read::<CaptureEvent>()
    })
}
