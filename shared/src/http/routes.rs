//! The routes of the API: the one table of method, path, function, caller and throttle.
//!
//! The handlers, the local gateway and the OpenAPI document read the table; `template.yaml` and the
//! router of `cargo lambda watch` in `Cargo.toml` are held against it by tests.
//!
//! API Gateway also hands over path parameters, but not every gateway does; the path itself is
//! always there. Paths match as in API Gateway's HTTP APIs: whole segments, case sensitive, and a
//! trailing slash makes another path.

use std::borrow::Cow;

use lambda_http::http::Method;
use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt as _};

use crate::http::identity::Scope;
use crate::http::room_address::GroupAddress;
use crate::runtime::callbacks::CallbackAddress;
use crate::runtime::functions::Function;
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::ids::{ProviderId, SaleId};
use engine::domain::basics::number::OrderNumber;

/// Callers that a route allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone, without a token.
    Anyone,
    /// Buyers, by the JWT authorizer.
    Buyer,
    /// Operators, by the IAM authorizer.
    Operator,
    /// Operators who may watch, by the JWT authorizer of their issuer.
    Watch,
    /// Operators who may publish, run rooms and cancel orders, likewise.
    Operate,
    /// Operators who may refund, likewise.
    Refund,
    /// Operators who may check tickets, likewise.
    Scan,
    /// Payment providers: open at the gateway; the function checks the signature of the body.
    Provider,
    /// Payment providers at an API of its own, whose route has a key for a part of its path: without it
    /// there is no such route. The function checks the key once more, the sender and the signature.
    ProviderWithKey,
}

impl Access {
    /// The scope that a token of the operators' issuer must have; `None` where no such token is asked for.
    #[must_use]
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::Watch => Some(Scope::Watch),
            Self::Operate => Some(Scope::Operate),
            Self::Refund => Some(Scope::Refund),
            Self::Scan => Some(Scope::Scan),
            Self::Anyone
            | Self::Buyer
            | Self::Operator
            | Self::Provider
            | Self::ProviderWithKey => None,
        }
    }
}

/// The share of the account's requests that a route has at API Gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttle {
    /// Parameter of `template.yaml` with the requests a second.
    pub rate_parameter: &'static str,
    /// Its default.
    pub rate: u32,
    /// Requests that may come at once.
    pub burst: u32,
}

const PLACES: Throttle = Throttle { rate_parameter: "PlaceRate", rate: 1630, burst: 540 };
/// The beginnings of visits: more than a room serves unless its settings say otherwise.
const VISITS: Throttle = Throttle { rate_parameter: "VisitRate", rate: 250, burst: 125 };
const ADMISSIONS: Throttle = Throttle { rate_parameter: "AdmissionRate", rate: 1500, burst: 750 };
const ORDERS: Throttle = Throttle { rate_parameter: "OrderRate", rate: 1500, burst: 750 };
const READS: Throttle = Throttle { rate_parameter: "ReadRate", rate: 700, burst: 350 };
const CALLBACKS: Throttle = Throttle { rate_parameter: "CallbackRate", rate: 500, burst: 250 };
const ENTRY: Throttle = Throttle { rate_parameter: "CallbackEntryRate", rate: 1000, burst: 500 };
/// What operators send, and doors, what caches keep long, refunds, and what a provider limits to half of this.
const RARE: Throttle = Throttle { rate_parameter: "RareRate", rate: 50, burst: 25 };
/// What operators do and look at in a browser.
const OPERATORS: Throttle = Throttle { rate_parameter: "OperatorRate", rate: 10, burst: 10 };
/// The default of the stage: each route without a throttle of its own has this much.
pub const OTHERS: Throttle = Throttle { rate_parameter: "OtherRate", rate: 100, burst: 70 };

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The route's name.
    pub name: RouteName,
    /// Method and path pattern as API Gateway writes them: `GET /orders/{order}`.
    pub key: &'static str,
    /// Method, in capitals.
    pub method: &'static str,
    /// Path pattern: `/orders/{order}`.
    pub path: &'static str,
    /// The function that answers.
    pub function: Function,
    /// Callers that it allows.
    pub access: Access,
    /// Its share of the requests.
    pub throttle: Throttle,
    /// The parameters that it reads of its query, if anyone may ask: each value may have another answer.
    pub queries: &'static [&'static str],
}

/// Writes [`RouteName`], [`Route`] with its parser, and [`ROUTES`] from one table.
macro_rules! routes {
    ($($route:ident $(($parameter:ty))?:
        $method:literal $path:literal, $function:ident, $access:ident, $throttle:ident
        $(, queries $queries:tt)?;)*) => {
        /// The name of a route.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RouteName {
            $(#[doc = concat!("`", $method, " ", $path, "`")] $route,)*
        }

        impl RouteName {
            /// Every name, in the order of the table.
            pub const ALL: [Self; [$(stringify!($route)),*].len()] = [$(Self::$route),*];
        }

        /// One route of the API, with what its path says.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Route {
            $(#[doc = concat!("`", $method, " ", $path, "`")] $route $(($parameter))?,)*
        }

        impl Route {
            /// The route at a method and a path.
            ///
            /// # Errors
            /// As [`Route::from_request`].
            pub fn parse(method: &Method, path: &str) -> Result<Self, NoRoute> {
                $(if method.as_str() == $method && let Some(_parameter) = matched($path, path) {
                    return Ok(Self::$route $((id::<$parameter>(&_parameter)?))?);
                })*
                Err(NoRoute)
            }
        }

        /// Every route.
        pub const ROUTES: [Row; RouteName::ALL.len()] = [$(Row {
            name: RouteName::$route,
            key: concat!($method, " ", $path),
            method: $method,
            path: $path,
            function: Function::$function,
            access: Access::$access,
            throttle: $throttle,
            queries: routes!(@queries $($queries)?),
        }),*];
    };
    (@queries) => { &[] };
    (@queries $queries:tt) => { &$queries };
}

routes! {
    ShowOpenApi: "GET" "/openapi.json", Sales, Anyone, RARE;
    ListSales: "GET" "/sales", Sales, Anyone, OTHERS, queries ["cursor", "limit"];
    PublishSale(SaleId): "PUT" "/sales/{sale}", Sales, Operator, RARE;
    ShowSale(SaleId): "GET" "/sales/{sale}", Sales, Anyone, OTHERS;
    ShowAvailability(SaleId):
        "GET" "/sales/{sale}/availability", Sales, Anyone, READS, queries ["from", "to"];
    ShowMap(SaleId): "GET" "/sales/{sale}/map", Sales, Anyone, RARE, queries ["v"];
    ShowSalePage(SaleId): "GET" "/s/{sale}", Sales, Anyone, OTHERS;
    ShowSitemap: "GET" "/sitemap.xml", Sales, Anyone, RARE, queries ["from"];
    ShowPicture(Hash): "GET" "/pictures/{picture}", Sales, Anyone, RARE;
    KeepPicture(Hash): "PUT" "/pictures/{picture}", Sales, Operator, RARE;
    OperatorPicture(Hash): "PUT" "/operator/pictures/{picture}", Sales, Operate, OPERATORS;
    ShowDocument(Hash): "GET" "/documents/{document}", Sales, Anyone, RARE;
    ListTrains: "GET" "/trains", Sales, Anyone, OTHERS,
        queries ["cursor", "date", "from", "limit", "to"];
    ListStops: "GET" "/stops", Sales, Anyone, RARE, queries ["cursor", "date", "limit"];
    JoinRoom(SaleId): "POST" "/sales/{sale}/places", WaitingRoom, Buyer, PLACES;
    ShowRoom(SaleId): "GET" "/sales/{sale}/room", WaitingRoom, Anyone, READS;
    ShowPlainRoom(SaleId): "GET" "/s/{sale}/room/plain", WaitingRoom, Anyone, RARE;
    ShowRoomLog(SaleId):
        "GET" "/sales/{sale}/room/log", WaitingRoom, Anyone, RARE, queries ["from"];
    ShowRoomLeaves(GroupAddress):
        "GET" "/sales/{sale}/room/leaves/{group}/{chunk}", WaitingRoom, Anyone, RARE;
    ShowRoomWindow(GroupAddress):
        "GET" "/sales/{sale}/room/windows/{group}/{index}", WaitingRoom, Anyone, RARE;
    BringRound(SaleId): "POST" "/sales/{sale}/room/beacon", WaitingRoom, Anyone, RARE;
    CommandRoom(SaleId): "POST" "/sales/{sale}/room/commands", WaitingRoom, Operator, RARE;
    BeginVisit(SaleId): "POST" "/sales/{sale}/visits", TokenGate, Buyer, VISITS;
    Admit(SaleId): "POST" "/sales/{sale}/admissions", TokenGate, Buyer, ADMISSIONS;
    Reserve(SaleId): "POST" "/sales/{sale}/orders", Reserve, Buyer, ORDERS;
    ListOrders: "GET" "/orders", Orders, Buyer, OTHERS;
    ShowOrder(OrderNumber): "GET" "/orders/{order}", Orders, Buyer, OTHERS;
    CancelOrder(OrderNumber): "POST" "/orders/{order}/cancel", Cancel, Buyer, OTHERS;
    StartPayment(OrderNumber): "POST" "/orders/{order}/payments", StartPayment, Buyer, RARE;
    PayFromWallet(OrderNumber): "POST" "/orders/{order}/payments/wallet", PayFromWallet, Buyer, OTHERS;
    ShowWallets: "GET" "/wallets", Orders, Buyer, RARE;
    ShowPoints: "GET" "/points", Orders, Buyer, RARE;
    GiveBack(OrderNumber): "POST" "/orders/{order}/refunds", RefundOrder, Buyer, RARE;
    ListRefunds(OrderNumber): "GET" "/orders/{order}/refunds", Orders, Buyer, RARE;
    RefundOrder(OrderNumber): "POST" "/orders/{order}/refunds/operator", RefundOrder, Operator, RARE;
    OperatorPublish(SaleId): "PUT" "/operator/sales/{sale}", Sales, Operate, OPERATORS;
    OperatorStanding(SaleId): "POST" "/operator/sales/{sale}/commands", Sales, Operate, OPERATORS;
    OperatorCommand(SaleId): "POST" "/operator/sales/{sale}/room/commands", WaitingRoom, Operate, OPERATORS;
    OperatorRefund(OrderNumber): "POST" "/operator/orders/{order}/refunds", RefundOrder, Refund, OPERATORS;
    OperatorCancel(OrderNumber): "POST" "/operator/orders/{order}/cancel", Cancel, Operate, OPERATORS;
    OperatorOrder(OrderNumber): "GET" "/operator/orders/{order}", Operator, Watch, OPERATORS;
    OperatorOrders: "GET" "/operator/orders", Operator, Watch, OPERATORS;
    OperatorBoard(SaleId): "GET" "/operator/sales/{sale}/board", Operator, Watch, OPERATORS;
    OperatorExport(SaleId): "GET" "/operator/sales/{sale}/orders.csv", Operator, Watch, OPERATORS;
    OperatorTakings(SaleId): "GET" "/operator/sales/{sale}/takings", Operator, Watch, OPERATORS;
    OperatorFigures(SaleId): "GET" "/operator/sales/{sale}/figures", Figures, Watch, OPERATORS;
    OperatorActions: "GET" "/operator/actions", Operator, Watch, OPERATORS;
    OperatorStuck: "GET" "/operator/stuck", Operator, Watch, OPERATORS;
    OperatorAccounts: "GET" "/operator/accounts", Operator, Watch, OPERATORS;
    OperatorWebhooks: "GET" "/operator/webhooks", Operator, Watch, OPERATORS;
    OperatorDisputes: "GET" "/operator/disputes", Operator, Watch, OPERATORS;
    OperatorUnmatched: "GET" "/operator/unmatched", Operator, Watch, OPERATORS;
    TellUnmatched: "POST" "/operator/unmatched", RefundOrder, Refund, OPERATORS;
    PaymentCallback(ProviderId):
        "POST" "/payments/{provider}/callback", PayCallback, Provider, CALLBACKS;
    TakeCallback(CallbackAddress):
        "POST" "/callbacks/{key}/{provider}", TakeCallback, ProviderWithKey, ENTRY;
    ShowTickets(OrderNumber): "GET" "/orders/{order}/tickets", Orders, Buyer, RARE;
    ShowTicketKeys: "GET" "/ticket-keys", Orders, Anyone, RARE;
    ShowRevoked(SaleId): "GET" "/sales/{sale}/revoked", Orders, Anyone, RARE, queries ["from"];
    OperatorCheckIn(SaleId): "POST" "/operator/sales/{sale}/check-ins", Operator, Scan, RARE;
    OperatorCheckIns(SaleId): "GET" "/operator/sales/{sale}/check-ins", Operator, Watch, OPERATORS;
    OperatorReissue(OrderNumber):
        "POST" "/operator/orders/{order}/tickets/reissue", Operator, Operate, OPERATORS;
}

/// The names of the parameters of a path pattern: `order` of `/orders/{order}`.
pub fn parameter_names(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.split('/').filter_map(parameter)
}

/// The parameter's name, if a pattern's segment is one.
fn parameter(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// The value of the pattern's parameter in `path`, or the values of several with `/` between them, empty if
/// the pattern has none; `None` if the path does not match. A value is never empty.
#[must_use]
pub fn matched<'p>(pattern: &str, path: &'p str) -> Option<Cow<'p, str>> {
    let mut segments = path.split('/');
    let mut value = Cow::Borrowed("");
    for expected in pattern.split('/') {
        let segment = segments.next()?;
        if parameter(expected).is_some() && !segment.is_empty() {
            value = if value.is_empty() {
                Cow::Borrowed(segment)
            } else {
                Cow::Owned(format!("{value}/{segment}"))
            };
        } else if expected != segment {
            return None;
        }
    }
    if segments.next().is_some() { None } else { Some(value) }
}

/// The API has no route with this method and path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such resource")]
pub struct NoRoute;

impl Row {
    /// The row of a request's method and path; `None` if there is none.
    #[must_use]
    pub fn of(request: &Request) -> Option<&'static Self> {
        static TABLE: [Row; RouteName::ALL.len()] = ROUTES;
        let (method, path) = (request.method().as_str(), path_of(request));
        TABLE.iter().find(|row| row.method == method && matched(row.path, path).is_some())
    }

    /// True if people and search engines ask for the route where the pages are, and not below the API's prefix.
    #[must_use]
    pub fn is_among_pages(&self) -> bool {
        self.path.starts_with("/s/") || self.path == "/sitemap.xml"
    }
}

/// The path of a request, without a stage.
fn path_of(request: &Request) -> &str {
    let raw = request.raw_http_path();
    let path = if raw.is_empty() { request.uri().path() } else { raw };
    without_stage(request, path)
}

impl Route {
    /// The route of a request, with the identifiers in its path.
    ///
    /// # Errors
    /// Returns [`NoRoute`] if the API has no route with this method and path, or if an identifier in the path is
    /// malformed.
    pub fn from_request(request: &Request) -> Result<Self, NoRoute> {
        Self::parse(request.method(), path_of(request))
    }
}

fn id<T: std::str::FromStr>(segment: &str) -> Result<T, NoRoute> {
    segment.parse().map_err(|_| NoRoute)
}

/// API Gateway puts a stage in front of the path, unless it is the default stage.
fn without_stage<'a>(request: &Request, path: &'a str) -> &'a str {
    let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
        return path;
    };
    let Some(stage) = context.stage.as_deref().filter(|stage| *stage != "$default") else {
        return path;
    };
    let rest = path.strip_prefix('/').and_then(|rest| rest.strip_prefix(stage));
    rest.filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table of routes")]
    fn every_route_has_its_method_and_path() {
        let sale = || SaleId::new("g1").unwrap();
        let order = || "42".parse::<OrderNumber>().unwrap();
        let number_7 = || "g1/all/7".parse().unwrap();
        let stripe = ProviderId::new("stripe").unwrap();
        let address = || "0123456789abcdefghijklmnopqrstuv/stripe";
        let (entry, address) = (format!("/callbacks/{}", address()), address().parse().unwrap());
        let (hash, operator) = ("ab".repeat(32), "/operator");
        let (picture, about) = (format!("/pictures/{hash}"), format!("/documents/{hash}"));
        let kept = format!("{operator}{picture}");
        let routes = [
            ("GET", "/openapi.json", Ok(Route::ShowOpenApi)),
            ("GET", "/sales", Ok(Route::ListSales)),
            ("PUT", "/sales/g1", Ok(Route::PublishSale(sale()))),
            ("GET", "/sales/g1", Ok(Route::ShowSale(sale()))),
            ("GET", "/sales/g1/availability", Ok(Route::ShowAvailability(sale()))),
            ("GET", "/sales/g1/map", Ok(Route::ShowMap(sale()))),
            ("GET", "/trains", Ok(Route::ListTrains)),
            ("GET", "/stops", Ok(Route::ListStops)),
            ("GET", picture.as_str(), Ok(Route::ShowPicture(Hash([0xab; 32])))),
            ("PUT", picture.as_str(), Ok(Route::KeepPicture(Hash([0xab; 32])))),
            ("PUT", kept.as_str(), Ok(Route::OperatorPicture(Hash([0xab; 32])))),
            ("GET", about.as_str(), Ok(Route::ShowDocument(Hash([0xab; 32])))),
            ("GET", "/pictures/ab", Err(NoRoute)),
            ("GET", "/s/g1", Ok(Route::ShowSalePage(sale()))),
            ("GET", "/s/", Err(NoRoute)),
            ("GET", "/s/g1/", Err(NoRoute)),
            ("GET", "/sitemap.xml", Ok(Route::ShowSitemap)),
            ("GET", "/trains/", Err(NoRoute)),
            ("POST", "/sales/g1/places", Ok(Route::JoinRoom(sale()))),
            ("GET", "/sales/g1/room", Ok(Route::ShowRoom(sale()))),
            ("GET", "/s/g1/room/plain", Ok(Route::ShowPlainRoom(sale()))),
            ("GET", "/sales/g1/room/log", Ok(Route::ShowRoomLog(sale()))),
            ("GET", "/sales/g1/room/leaves/all/7", Ok(Route::ShowRoomLeaves(number_7()))),
            ("GET", "/sales/g1/room/windows/all/7", Ok(Route::ShowRoomWindow(number_7()))),
            ("POST", "/sales/g1/room/beacon", Ok(Route::BringRound(sale()))),
            ("POST", "/sales/g1/room/commands", Ok(Route::CommandRoom(sale()))),
            ("GET", "/sales/g1/room/leaves/all", Err(NoRoute)),
            ("GET", "/sales/g1/room/leaves/all/07", Err(NoRoute)),
            ("GET", "/sales/g1/room/leaves//7", Err(NoRoute)),
            ("GET", "/sales/g1/room/leaves/all/7/", Err(NoRoute)),
            ("GET", "/sales/g1/room/", Err(NoRoute)),
            ("POST", "/sales/g1/visits", Ok(Route::BeginVisit(sale()))),
            ("POST", "/sales/g1/admissions", Ok(Route::Admit(sale()))),
            ("POST", "/sales/g1/orders", Ok(Route::Reserve(sale()))),
            ("GET", "/orders", Ok(Route::ListOrders)),
            ("GET", "/orders/42", Ok(Route::ShowOrder(order()))),
            ("POST", "/orders/42/cancel", Ok(Route::CancelOrder(order()))),
            ("POST", "/orders/42/payments", Ok(Route::StartPayment(order()))),
            ("POST", "/orders/42/payments/wallet", Ok(Route::PayFromWallet(order()))),
            ("POST", "/orders/42/payments/stripe", Err(NoRoute)),
            ("GET", "/wallets", Ok(Route::ShowWallets)),
            ("GET", "/points", Ok(Route::ShowPoints)),
            ("POST", "/orders/42/refunds", Ok(Route::GiveBack(order()))),
            ("GET", "/orders/42/refunds", Ok(Route::ListRefunds(order()))),
            ("POST", "/orders/42/refunds/operator", Ok(Route::RefundOrder(order()))),
            ("PUT", "/operator/sales/g1", Ok(Route::OperatorPublish(sale()))),
            ("POST", "/operator/sales/g1/commands", Ok(Route::OperatorStanding(sale()))),
            ("POST", "/operator/sales/g1/room/commands", Ok(Route::OperatorCommand(sale()))),
            ("POST", "/operator/orders/42/refunds", Ok(Route::OperatorRefund(order()))),
            ("POST", "/operator/orders/42/cancel", Ok(Route::OperatorCancel(order()))),
            ("GET", "/operator/orders/42", Ok(Route::OperatorOrder(order()))),
            ("GET", "/operator/orders", Ok(Route::OperatorOrders)),
            ("GET", "/operator/sales/g1/board", Ok(Route::OperatorBoard(sale()))),
            ("GET", "/operator/sales/g1/figures", Ok(Route::OperatorFigures(sale()))),
            ("GET", "/operator/actions", Ok(Route::OperatorActions)),
            ("GET", "/operator/sales/g1/orders.csv", Ok(Route::OperatorExport(sale()))),
            ("GET", "/operator/sales/g1/takings", Ok(Route::OperatorTakings(sale()))),
            ("GET", "/operator/stuck", Ok(Route::OperatorStuck)),
            ("GET", "/operator/accounts", Ok(Route::OperatorAccounts)),
            ("GET", "/operator/webhooks", Ok(Route::OperatorWebhooks)),
            ("GET", "/operator/disputes", Ok(Route::OperatorDisputes)),
            ("GET", "/operator/unmatched", Ok(Route::OperatorUnmatched)),
            ("POST", "/operator/unmatched", Ok(Route::TellUnmatched)),
            ("GET", "/orders/42/tickets", Ok(Route::ShowTickets(order()))),
            ("GET", "/ticket-keys", Ok(Route::ShowTicketKeys)),
            ("GET", "/sales/g1/revoked", Ok(Route::ShowRevoked(sale()))),
            ("POST", "/operator/sales/g1/check-ins", Ok(Route::OperatorCheckIn(sale()))),
            ("GET", "/operator/sales/g1/check-ins", Ok(Route::OperatorCheckIns(sale()))),
            ("POST", "/operator/orders/42/tickets/reissue", Ok(Route::OperatorReissue(order()))),
            ("POST", "/orders/42/tickets/reissue", Err(NoRoute)),
            ("POST", "/sales/g1/check-ins", Err(NoRoute)),
            ("GET", "/operator/sales/g1", Err(NoRoute)),
            ("GET", "/operator/orders/42/refunds", Err(NoRoute)),
            ("POST", "/operator//orders/42/refunds", Err(NoRoute)),
            ("POST", "/orders/42/refunds/", Err(NoRoute)),
            ("POST", "/payments/stripe/callback", Ok(Route::PaymentCallback(stripe))),
            ("POST", entry.as_str(), Ok(Route::TakeCallback(address))),
            ("POST", "/callbacks/short/stripe", Err(NoRoute)),
            ("POST", "/callbacks/0123456789abcdefghijklmnopqrstuv", Err(NoRoute)),
            ("POST", "/callbacks/0123456789abcdefghijklmnopqrstuv/", Err(NoRoute)),
            ("DELETE", "/sales/g1", Err(NoRoute)),
            ("GET", "/sales/", Err(NoRoute)),
            ("GET", "/sales/G1", Err(NoRoute)),
            ("GET", "/orders/forty-two", Err(NoRoute)),
            ("GET", "sales", Err(NoRoute)),
            ("GET", "/", Err(NoRoute)),
            ("GET", "", Err(NoRoute)),
            ("POST", "/sales//orders", Err(NoRoute)),
            ("POST", "/orders/42/cancel/", Err(NoRoute)),
        ];
        for (method, path, expected) in routes {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(Route::parse(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_key_is_a_method_and_a_pattern() {
        for row in ROUTES {
            assert_eq!(row.key, format!("{} {}", row.method, row.path));
            // A pattern matches itself, and names its parameters in order.
            let names: Vec<&str> = parameter_names(row.path).collect();
            let plain = row.path.replace(['{', '}'], "");
            assert_eq!(matched(row.path, &plain).as_deref(), Some(names.join("/").as_str()));
        }
    }
}
