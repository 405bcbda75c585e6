//! The types of problems: the one table of kind, status, title, retry, operations and members.
//!
//! A new type is an entry of the table and a page in `docs/problems/`; the OpenAPI document is made
//! from the table.

use lambda_http::http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, json};

use crate::challenges::Challenge;
use crate::http::routes::RouteName;
use engine::domain::basics::ids::{AttendeeId, GroupId, ProviderId, RuleId, SeatName, TierId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::OrderState;
use engine::domain::order::refund::RefundState;
use engine::domain::sale::Defect;

/// Makes the schema of a member.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// An extension member of a type's documents.
struct Member {
    name: &'static str,
    is_required: bool,
    schema: SchemaOf,
}

/// What becomes of the admission that a refused reservation has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdmissionFate {
    /// No order was made: the admission may be sent with another reservation, until it runs out.
    Kept,
    /// The admission makes no order any more: a buyer who still wants tickets needs another.
    UsedUp,
    /// An order may have been made: the same reservation, sent again with the same admission, tells.
    Undecided,
}

impl AdmissionFate {
    /// The word of the OpenAPI document, in `x-onsale-admission`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::UsedUp => "used-up",
            Self::Undecided => "undecided",
        }
    }
}

/// Writes [`Kind`] from the table. After each kind: status, slug, title; `retry` if its documents say
/// when to try again; what becomes of an admission, `none` if no reservation is answered so; the routes that
/// answer it, beside what any of them may answer; its members.
macro_rules! problems {
    ($($(#[$doc:meta])* $kind:ident: $status:ident, $slug:literal, $title:literal,
        $retry:ident, $fate:ident, by $routes:tt
        $(, with [$($presence:ident $member:literal: $schema:expr),* $(,)?])?;)*) => {
        /// The types of problems. Each has a page `docs/problems/<slug>.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// Every type, in the order of the table.
            pub const ALL: [Self; [$($slug),*].len()] = [$(Self::$kind),*];

            /// The last part of the type's URI, and the name of its page.
            #[must_use]
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$kind => $slug,)* }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$kind => StatusCode::$status,)* }
            }

            /// The type in a few words; the same for every occurrence.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)* }
            }

            /// True if its documents say when to try again, in `Retry-After` as well: the same
            /// request may then be answered otherwise.
            #[must_use]
            pub const fn has_retry_after(self) -> bool {
                match self { $(Self::$kind => problems!(@retry $retry),)* }
            }

            /// What becomes of the admission of a reservation that it answers; `None` if it answers none.
            #[must_use]
            pub const fn admission(self) -> Option<AdmissionFate> {
                match self { $(Self::$kind => problems!(@admission $fate),)* }
            }

            /// The routes that may answer it.
            #[must_use]
            pub const fn routes(self) -> &'static [RouteName] {
                match self { $(Self::$kind => const { problems!(@routes $routes) },)* }
            }

            /// What its documents have besides the members of every problem.
            const fn members(self) -> &'static [Member] {
                match self {
                    $(Self::$kind => const { &[$($(Member {
                        name: $member,
                        is_required: problems!(@required $presence),
                        schema: $schema,
                    }),*)?] },)*
                }
            }
        }
    };
    (@retry retry) => { true };
    (@retry final) => { false };
    (@admission kept) => { Some(AdmissionFate::Kept) };
    (@admission used_up) => { Some(AdmissionFate::UsedUp) };
    (@admission undecided) => { Some(AdmissionFate::Undecided) };
    (@admission none) => { None };
    (@routes any) => { &RouteName::ALL };
    (@routes [$($route:ident),* $(,)?]) => { &[$(RouteName::$route),*] };
    (@required always) => { true };
    (@required sometimes) => { false };
}

problems! {
    /// The body is not well-formed JSON.
    Malformed: BAD_REQUEST, "malformed", "The body cannot be read", final, kept, by any;
    /// The body is too large.
    TooLarge: PAYLOAD_TOO_LARGE, "too-large", "The body is too large", final, kept, by any,
        with [always "most_bytes": count];
    /// The body is not declared as JSON.
    UnsupportedMediaType:
        UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body must be JSON", final, kept,
        by [
            TellUnmatched, PublishSale, JoinRoom, BringRound, CommandRoom, BeginVisit, Admit, Reserve, StartPayment, GiveBack,
            RefundOrder,
            OperatorPublish, OperatorCommand, OperatorRefund, OperatorCheckIn, OperatorReissue,
            KeepPicture, OperatorPicture, OperatorStanding,
        ];
    /// The request breaks a rule.
    Invalid: UNPROCESSABLE_ENTITY, "invalid", "The request breaks a rule", final, kept,
        by [
            TellUnmatched, OperatorUnmatched, PublishSale, ListSales, ShowSitemap, ShowAvailability, ShowMap, ListTrains, JoinRoom, ShowRoomLog, BringRound, CommandRoom,
            BeginVisit, Admit, Reserve, ListOrders, StartPayment, GiveBack, RefundOrder, PaymentCallback,
            OperatorPublish, OperatorCommand, OperatorRefund, OperatorOrders, OperatorExport, OperatorActions,
            ShowRevoked, OperatorCheckIn, OperatorCheckIns, OperatorReissue,
            OperatorFigures, OperatorTakings, OperatorAccounts, OperatorDisputes, KeepPicture, OperatorPicture, OperatorStanding,
            ListStops,
        ],
        with [sometimes "at": part_of_request, sometimes "defects": of::<Vec<Defect>>];
    /// The order has seats of several tiers of a sale that keeps its tiers apart.
    OneTierOnly:
        UNPROCESSABLE_ENTITY, "one-tier-only", "An order of this sale has one tier", final, kept,
        by [Reserve];
    /// The admission was used for another request.
    TokenReused:
        UNPROCESSABLE_ENTITY, "token-reused", "The admission was used for another request", final, used_up,
        by [Reserve],
        with [sometimes "order": of::<OrderNumber>, sometimes "state": of::<OrderState>];
    /// The sender is unknown.
    NotAuthenticated: UNAUTHORIZED, "not-authenticated", "The sender is not known", final, undecided,
        by [
            TellUnmatched, OperatorUnmatched, PublishSale, JoinRoom, CommandRoom, BeginVisit, Admit, Reserve, ListOrders, ShowOrder, CancelOrder,
            StartPayment, GiveBack, ListRefunds, RefundOrder, PaymentCallback, OperatorPublish,
            OperatorCommand, OperatorRefund, OperatorCancel, OperatorOrder, OperatorOrders,
            OperatorBoard, OperatorExport, OperatorActions, OperatorStuck, ShowTickets, OperatorCheckIn,
            OperatorCheckIns, OperatorReissue,
            OperatorFigures, OperatorTakings, OperatorAccounts, OperatorWebhooks, OperatorDisputes,
            PayFromWallet, ShowWallets, ShowPoints,
            KeepPicture, OperatorPicture, OperatorStanding,
        ];
    /// The buyer is not admitted.
    NotAdmitted: FORBIDDEN, "not-admitted", "An admission is needed", final, used_up, by [Reserve],
        with [sometimes "most_tickets": count];
    /// The sale asks for an answer to a challenge.
    ChallengeRequired: FORBIDDEN, "challenge-required", "A challenge must be answered", final, none,
        by [JoinRoom, Admit],
        with [always "challenge": of::<Challenge>];
    /// The answer to the challenge is no good.
    ChallengeFailed: FORBIDDEN, "challenge-failed", "The answer to the challenge is no good", final, none,
        by [JoinRoom, Admit],
        with [always "challenge": of::<Challenge>];
    /// The sale takes no reservations now.
    SaleClosed: FORBIDDEN, "sale-closed", "The sale takes no reservations now", final, kept,
        by [JoinRoom, BeginVisit, Admit, Reserve],
        with [sometimes "opens_at": of::<Timestamp>];
    /// The train has left where the journey begins.
    Departed: GONE, "departed", "The train has left", final, kept, by [Reserve],
        with [always "departed_at": of::<Timestamp>];
    /// Nobody may join the waiting room yet.
    JoinsNotOpen: FORBIDDEN, "joins-not-open", "Joining has not begun", final, none,
        by [JoinRoom],
        with [always "joins_open_at": of::<Timestamp>];
    /// The group is joined with a code, and none was given, or one that does not let its sender join.
    CodeRefused: FORBIDDEN, "code-refused", "The code does not let you join", final, none, by [JoinRoom];
    /// The buyer has tried as many different codes in the sale as one may in a day.
    TooManyGuesses: FORBIDDEN, "too-many-guesses", "Too many codes were tried", final, none,
        by [JoinRoom],
        with [always "until": of::<Timestamp>];
    /// The buyer brings a code for a group, and is a member of another.
    GroupDiffers: CONFLICT, "group-differs", "You have joined another group", final, none,
        by [JoinRoom],
        with [always "group": of::<GroupId>];
    /// Only who joined before the draw takes part.
    RegistrationOver: FORBIDDEN, "registration-over", "Registration is over", final, none,
        by [JoinRoom];
    /// The sale is archived: it sells nothing any more.
    SaleArchived: GONE, "sale-archived", "The sale is archived", final, kept,
        by [
            PublishSale, ShowAvailability, JoinRoom, ShowRoom, ShowPlainRoom, BeginVisit, Admit, Reserve,
            OperatorPublish, OperatorStanding,
        ];
    /// The sale was cancelled, which is not taken back.
    SaleCancelled: GONE, "sale-cancelled", "The sale is cancelled", final, none,
        by [PublishSale, OperatorPublish, OperatorStanding];
    /// The requested tickets would pass the buyer's limit.
    LimitReached: FORBIDDEN, "limit-reached", "The limit of tickets is reached", final, kept,
        by [Reserve],
        with [always "remaining_allowance": count];
    /// The buyer has named too many people in requests for the sale.
    AttendeeLimit: FORBIDDEN, "attendee-limit", "Too many people were named", final, kept,
        by [Reserve],
        with [always "max_named": count];
    /// The caller is no operator, or may not do this.
    NotPermitted: FORBIDDEN, "not-permitted", "Only an operator may do this", final, none,
        by [
            TellUnmatched, OperatorUnmatched, PublishSale, CommandRoom, RefundOrder, OperatorPublish, OperatorCommand, OperatorRefund,
            OperatorCancel, OperatorOrder, OperatorOrders, OperatorBoard, OperatorExport, OperatorActions,
            OperatorStuck, OperatorCheckIn, OperatorCheckIns, OperatorReissue,
            OperatorFigures, OperatorTakings, OperatorAccounts, OperatorWebhooks, OperatorDisputes, KeepPicture, OperatorPicture, OperatorStanding,
        ];
    /// The request had to come through the edge.
    NotThroughTheEdge:
        FORBIDDEN, "not-through-the-edge", "The request did not come through the edge", final, kept, by any;
    /// A rule of the operator's, or a limit of the sale, refuses the caller.
    RefusedByRule: FORBIDDEN, "refused-by-rule", "A rule of the sale refuses this", final, none,
        by [JoinRoom, Admit],
        with [always "rule": of::<RuleId>];
    /// The thing does not exist, or is not the caller's.
    NotFound: NOT_FOUND, "not-found", "There is no such thing", final, kept,
        by [
            TellUnmatched, PublishSale, ShowSale, ShowSalePage, ShowSitemap, ShowAvailability, ShowMap, JoinRoom, ShowRoom, ShowPlainRoom, ShowRoomLog,
            ShowRoomLeaves, ShowRoomWindow, BringRound, CommandRoom, BeginVisit, Admit, Reserve, ShowOrder,
            CancelOrder, StartPayment, GiveBack, ListRefunds, RefundOrder, PaymentCallback, OperatorPublish,
            OperatorCommand, OperatorRefund, OperatorCancel, OperatorOrder, OperatorOrders,
            OperatorBoard, OperatorExport, ShowTickets, ShowRevoked, OperatorCheckIn, OperatorCheckIns,
            OperatorReissue,
            OperatorFigures, OperatorTakings, OperatorAccounts, PayFromWallet, ShowPicture, KeepPicture, OperatorPicture, ShowDocument, OperatorStanding,
        ];
    /// The path exists, but not for this method.
    MethodNotAllowed:
        METHOD_NOT_ALLOWED, "method-not-allowed", "The path has no such method", final, none, by [];
    /// The order was not paid in time.
    HoldExpired: GONE, "hold-expired", "The order was not paid in time", final, used_up, by [Reserve];
    /// Chosen seats belong to others.
    SeatTaken: CONFLICT, "seat-taken", "Chosen seats are taken", final, kept, by [Reserve],
        with [always "tier": of::<TierId>, always "seats": of::<Vec<SeatName>>];
    /// An attendee has a ticket already.
    AttendeeTaken: CONFLICT, "attendee-taken", "An attendee has a ticket already", final, kept,
        by [Reserve],
        with [always "attendee": of::<AttendeeId>];
    /// Nothing is left that fits.
    SoldOut: CONFLICT, "sold-out", "Nothing is left that fits", final, kept,
        by [BeginVisit, Admit, Reserve],
        with [sometimes "tier": of::<TierId>];
    /// Seats are left, but not side by side.
    NoAdjacent: CONFLICT, "no-adjacent", "No seats are left side by side", final, kept, by [Reserve],
        with [always "tier": of::<TierId>];
    /// The order has ended, or is paid.
    OrderResolved: CONFLICT, "order-resolved", "The order is decided", final, used_up,
        by [Reserve, CancelOrder, StartPayment, PayFromWallet, OperatorCancel],
        with [always "state": of::<OrderState>];
    /// The order's deadline has passed, and it is about to end.
    PaymentOver: GONE, "payment-over", "The time to pay is over", final, none,
        by [StartPayment, PayFromWallet],
        with [always "pay_by": of::<Timestamp>];
    /// The order cannot be paid with what was chosen.
    PaymentNotOffered:
        UNPROCESSABLE_ENTITY, "payment-not-offered", "The order cannot be paid with this", final, none,
        by [StartPayment, PayFromWallet];
    /// The wallet has less than the order costs, or than it has put into it and is to go back.
    WalletShort: CONFLICT, "wallet-short", "The wallet has too little", final, none,
        by [PayFromWallet, GiveBack, RefundOrder, OperatorRefund],
        with [always "has_minor": of::<MinorUnits>];
    /// Another payment of the order is open, and its provider does not close it for now.
    PaymentBeingClosed:
        CONFLICT, "payment-being-closed", "Another payment is being closed", retry, none,
        by [StartPayment];
    /// The provider has no free start now: the order has a place, in which the same request starts the payment.
    PaymentWaits:
        TOO_MANY_REQUESTS, "payment-waits", "The payment has a place", retry, none,
        by [StartPayment],
        with [
            always "provider": of::<ProviderId>,
            always "place_at": of::<Timestamp>,
            always "pay_by": of::<Timestamp>,
        ];
    /// As many payments were started for the order as it may have.
    TooManyPayments:
        CONFLICT, "too-many-payments", "Too many payments were started", final, none, by [StartPayment];
    /// The provider does not start a payment of the order.
    PaymentNotStarted:
        BAD_GATEWAY, "payment-not-started", "The provider starts no payment", final, none,
        by [StartPayment];
    /// Money of an order goes back, and its tickets are issued anew, only while it is paid.
    OrderNotPaid: CONFLICT, "order-not-paid", "The order is not paid", final, kept,
        by [Reserve, GiveBack, RefundOrder, OperatorRefund, OperatorReissue],
        with [always "state": of::<OrderState>];
    /// The order has no such ticket.
    UnknownTicket: UNPROCESSABLE_ENTITY, "unknown-ticket", "The order has no such ticket", final, kept,
        by [Reserve, GiveBack, RefundOrder, OperatorRefund],
        with [always "tier": of::<TierId>, always "seat": of::<SeatName>];
    /// The ticket was refunded before, or is named twice.
    TicketRefunded: CONFLICT, "ticket-refunded", "A ticket is refunded already", final, kept,
        by [Reserve, GiveBack, RefundOrder, OperatorRefund, OperatorReissue],
        with [always "tier": of::<TierId>, always "seat": of::<SeatName>];
    /// The ticket has let somebody in: only operators refund it.
    TicketCheckedIn: CONFLICT, "ticket-checked-in", "A ticket was used to get in", final, kept,
        by [Reserve, GiveBack],
        with [always "tier": of::<TierId>, always "seat": of::<SeatName>];
    /// The request names neither a ticket nor an amount.
    NothingToRefund:
        UNPROCESSABLE_ENTITY, "nothing-to-refund", "There is nothing to refund", final, none,
        by [GiveBack, RefundOrder, OperatorRefund];
    /// It is more than is left of the payment.
    MoreThanLeft: CONFLICT, "more-than-left", "It is more than is left of the payment", final, none,
        by [RefundOrder, OperatorRefund],
        with [always "left_minor": of::<MinorUnits>, always "currency": of::<Currency>];
    /// The amount is of another currency than the order.
    OtherCurrency: UNPROCESSABLE_ENTITY, "other-currency", "The order has another currency", final, none,
        by [RefundOrder, OperatorRefund],
        with [always "currency": of::<Currency>];
    /// The payment was captured more than a year ago.
    PaymentTooOld: GONE, "payment-too-old", "The payment is too old to be refunded", final, kept,
        by [Reserve, GiveBack, RefundOrder, OperatorRefund];
    /// A dispute of the payment is open.
    PaymentDisputed: CONFLICT, "payment-disputed", "The payment is disputed", final, kept,
        by [Reserve, GiveBack, RefundOrder, OperatorRefund];
    /// An operator has said something else of the payment of no order.
    SaidOtherwise: CONFLICT, "said-otherwise", "An operator has said otherwise", final, none,
        by [TellUnmatched];
    /// The terms of the moment of buying do not let the buyer give the ticket back, or not any more.
    RefundNotAllowed: FORBIDDEN, "refund-not-allowed", "The terms allow no refund", final, none,
        by [GiveBack];
    /// The terms of the moment of buying do not let the buyer exchange the ticket, or not any more, or not for a ticket of
    /// this sale.
    ExchangeNotAllowed:
        FORBIDDEN, "exchange-not-allowed", "The terms allow no such exchange", final, kept,
        by [Reserve];
    /// Tickets are exchanged one for one, and within a sale for the same people.
    ExchangeDiffers:
        UNPROCESSABLE_ENTITY, "exchange-differs", "Tickets are exchanged one for one", final, kept,
        by [Reserve];
    /// Another refund of the order has this number, or the one before is missing.
    OtherRefundNumber:
        CONFLICT, "other-refund-number", "The next refund has another number", final, none,
        by [GiveBack, RefundOrder, OperatorRefund],
        with [always "next": count];
    /// An operator keeps the tickets after a refund that was made outside, and settles one that has failed.
    OtherRefundState:
        CONFLICT, "other-refund-state", "The refund is in another state", final, none,
        by [RefundOrder, OperatorRefund],
        with [always "state": of::<RefundState>];
    /// The order has as many refunds as there may be.
    TooManyRefunds: CONFLICT, "too-many-refunds", "The order has too many refunds", final, kept,
        by [Reserve, GiveBack, RefundOrder, OperatorRefund];
    /// The sale's seats, stops and currency cannot change.
    SeatsDiffer: CONFLICT, "seats-differ", "The seats of a sale cannot change", final, none,
        by [PublishSale, OperatorPublish];
    /// The sale's waiting room cannot change.
    RoomDiffers: CONFLICT, "room-differs", "The waiting room of a sale cannot change", final, none,
        by [PublishSale, OperatorPublish];
    /// Every index of the group is given.
    RoomFull: CONFLICT, "room-full", "The waiting room is full", final, none, by [JoinRoom];
    /// No draw awaits the round that was brought, or the signature is not the round's.
    RoundRefused: CONFLICT, "round-refused", "The round decides no draw here", final, none,
        by [BringRound];
    /// The operator has closed the waiting room.
    RoomClosed: CONFLICT, "room-closed", "The waiting room is closed", final, none,
        by [CommandRoom, OperatorCommand];
    /// The sale has a waiting room, and no place is claimed.
    PlaceRequired: FORBIDDEN, "place-required", "A place is needed", final, none, by [Admit];
    /// The place is not one of the buyer's.
    PlaceInvalid: FORBIDDEN, "place-invalid", "The place is not the sender's", final, none, by [BeginVisit, Admit];
    /// The place is not due.
    PlaceNotDue: TOO_MANY_REQUESTS, "place-not-due", "The place is not due", retry, none, by [BeginVisit, Admit],
        with [always "ahead": count];
    /// The place was due, and has run out.
    PlaceRunOut: GONE, "place-run-out", "The place has run out", final, none, by [BeginVisit, Admit];
    /// The visit is over.
    VisitOver: GONE, "visit-over", "The visit is over", final, none, by [BeginVisit, Admit];
    /// The visit has no attempt left.
    TooManyAttempts: FORBIDDEN, "too-many-attempts", "No attempt is left", final, none, by [Admit];
    /// The operator has paused the waiting room.
    RoomPaused: SERVICE_UNAVAILABLE, "room-paused", "The waiting room is paused", retry, none,
        by [BeginVisit, Admit];
    /// The caller, or everyone together, asks too often.
    TooManyRequests: TOO_MANY_REQUESTS, "too-many-requests", "Too many requests", retry, undecided,
        by [JoinRoom, Admit, Reserve],
        with [sometimes "rule": of::<RuleId>];
    /// Nothing is left now, but seats that are held or promised may come back.
    Waiting: TOO_MANY_REQUESTS, "waiting", "Held seats may come back", retry, none, by [Admit];
    /// The engine cannot answer now; nothing happened.
    Unavailable: SERVICE_UNAVAILABLE, "unavailable", "No answer now", retry, undecided, by any;
    /// The engine cannot tell whether it happened; the same request finds out.
    OutcomeUnknown:
        SERVICE_UNAVAILABLE, "outcome-unknown", "The outcome is not known", retry, undecided, by any;
    /// The sale is being prepared.
    NotLoaded: SERVICE_UNAVAILABLE, "not-loaded", "The sale is being prepared", retry, undecided,
        by [ShowAvailability, Reserve];
    /// The engine has a bug.
    Internal: INTERNAL_SERVER_ERROR, "internal", "Something went wrong", final, undecided, by any;
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0 })
}

fn part_of_request(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "description": "Which part of the request, as a path such as lines[0].seats[1]."
    })
}

impl Kind {
    /// Where the type is explained, and what its documents have in `type`.
    #[must_use]
    pub fn uri(self) -> String {
        format!("/problems/{}", self.slug())
    }

    /// The schema of its documents.
    pub fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        let text = |says: &str| json!({ "type": "string", "description": says });
        let mut properties = Map::new();
        properties.insert("type".to_owned(), json!({ "const": self.uri() }));
        properties.insert("title".to_owned(), json!({ "const": self.title() }));
        properties.insert("status".to_owned(), json!({ "const": self.status().as_u16() }));
        properties.insert("detail".to_owned(), text("What happened this time, for people."));
        let mut required = vec!["type", "title", "status", "detail"];
        if self.has_retry_after() {
            let seconds = json!({
                "type": "integer", "minimum": 1,
                "description": "After how many seconds to try again, as in Retry-After."
            });
            properties.insert("retry_after_seconds".to_owned(), seconds);
            required.push("retry_after_seconds");
        }
        for Member { name, is_required, schema } in self.members() {
            properties.insert((*name).to_owned(), schema(generator).to_value());
            required.extend(is_required.then_some(*name));
        }
        let mut schema = json_schema!({
            "title": self.title(),
            "description": format!("docs{}.md says when this happens and what to do.", self.uri()),
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        });
        if let Some(fate) = self.admission() {
            schema.insert("x-onsale-admission".to_owned(), fate.as_str().into());
        }
        schema
    }
}
