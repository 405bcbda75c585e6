//! The routes of the gateway: those of the API ([`ROUTES`]), and where only the gateway is measured,
//! those of a function that does nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use http::Method;
use shared::http::routes::{Access, ROUTES, Row, Throttle};
use shared::runtime::functions::Function;

/// Target that answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A function of the engine.
    Function(Function),
    /// Nothing: what a request costs without any function.
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Method and path pattern as API Gateway writes them: `GET /orders/{order}`.
    pub key: &'static str,
    /// Callers that it allows.
    pub access: Access,
    pub target: Target,
    /// Its share of the requests, where limits enforce it: that of callbacks, which whoever calls may use up.
    /// Those of the others are for the operator to size.
    pub throttle: Option<Throttle>,
    /// The parameters of its query by which its answers differ, if anyone may ask.
    pub queries: &'static [&'static str],
}

impl From<&Row> for Route {
    fn from(row: &Row) -> Self {
        let throttle = match row.access {
            Access::Provider | Access::ProviderWithKey => Some(row.throttle),
            Access::Anyone
            | Access::Buyer
            | Access::Operator
            | Access::Watch
            | Access::Operate
            | Access::Refund
            | Access::Scan => None,
        };
        let (target, queries) = (Target::Function(row.function), row.queries);
        Self { key: row.key, access: row.access, target, throttle, queries }
    }
}

/// The routes of the function that does nothing, one for each way in. They are not in the API: only
/// a gateway that is measured has them.
pub const EMPTY_ROUTES: [Route; 2] =
    [empty("GET /empty", Access::Anyone), empty("POST /empty", Access::Buyer)];

const fn empty(key: &'static str, access: Access) -> Route {
    Route { key, access, target: Target::Empty, throttle: None, queries: &[] }
}

/// The routes that a gateway has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routes {
    /// Those of the API.
    #[default]
    Api,
    /// Those of the function that does nothing as well, for measuring.
    WithEmpty,
}

impl Routes {
    fn all(self) -> impl Iterator<Item = Route> {
        let empty: &'static [Route] = match self {
            Self::Api => &[],
            Self::WithEmpty => &EMPTY_ROUTES,
        };
        ROUTES.iter().map(Route::from).chain(empty.iter().copied())
    }

    /// Finds the route of a request.
    #[must_use]
    pub fn find(self, method: &Method, path: &str) -> Matched {
        static API: LazyLock<Table> = LazyLock::new(|| table(Routes::Api));
        static WITH_EMPTY: LazyLock<Table> = LazyLock::new(|| table(Routes::WithEmpty));
        let table = match self {
            Self::Api => &API,
            Self::WithEmpty => &WITH_EMPTY,
        };
        let Ok(found) = table.at(path) else { return Matched::Nothing };
        if found.params.iter().any(|(_, value)| value.is_empty()) {
            return Matched::Nothing;
        }
        let route = found.value.iter().find(|route| route.method() == method.as_str());
        let Some(route) = route else {
            return Matched::OtherMethods(found.value.iter().map(Route::method).collect());
        };
        let parameters = found.params.iter();
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Matched::Route(*route, parameters.collect())
    }
}

/// The routes of each path pattern.
type Table = matchit::Router<Vec<Route>>;

/// The table of the paths of `routes`. A pattern that stands in the way of another is left out, and missed by the
/// test of every route.
fn table(routes: Routes) -> Table {
    let mut by_path: BTreeMap<&'static str, Vec<Route>> = BTreeMap::new();
    for route in routes.all() {
        by_path.entry(route.path()).or_default().push(route);
    }
    let mut table = Table::new();
    for (path, routes) in by_path {
        if let Err(error) = table.insert(path, routes) {
            tracing::error!(path, %error, "no request finds this path");
        }
    }
    table
}

impl Route {
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.key.split_once(' ').map_or("", |(method, _)| method)
    }

    /// Its path, or the pattern of its paths.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.key.split_once(' ').map_or("", |(_, path)| path)
    }
}

/// The result of a look-up of method and path.
#[derive(Debug, PartialEq, Eq)]
pub enum Matched {
    /// This route, with these path parameters.
    Route(Route, HashMap<String, String>),
    /// The path exists, for these other methods only.
    OtherMethods(Vec<&'static str>),
    /// There is no such path.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_finds_its_route_and_parameters() {
        for (method, path, key, parameter) in [
            (Method::GET, "/sales", "GET /sales", None),
            (Method::PUT, "/sales/g35", "PUT /sales/{sale}", Some(("sale", "g35"))),
            (Method::GET, "/sales/g35", "GET /sales/{sale}", Some(("sale", "g35"))),
            (Method::POST, "/orders/7/cancel", "POST /orders/{order}/cancel", Some(("order", "7"))),
            (
                Method::POST,
                "/payments/stripe/callback",
                "POST /payments/{provider}/callback",
                Some(("provider", "stripe")),
            ),
        ] {
            let Matched::Route(route, parameters) = Routes::Api.find(&method, path) else {
                panic!("{method} {path} has a route");
            };
            assert_eq!(route.key, key);
            let expected = parameter.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(parameters, expected.into_iter().collect());
        }
    }

    #[test]
    fn every_route_is_found_at_its_path() {
        for route in Routes::WithEmpty.all() {
            let method = route.method().parse().unwrap();
            let path = route.path().replace(['{', '}'], "");
            let found = Routes::WithEmpty.find(&method, &path);
            assert!(matches!(found, Matched::Route(found, _) if found == route), "{}", route.key);
        }
    }

    #[test]
    fn the_empty_function_has_routes_only_where_it_is_measured() {
        for route in EMPTY_ROUTES {
            let method = route.method().parse().unwrap();
            assert_eq!(Routes::Api.find(&method, route.path()), Matched::Nothing);
            let found = Routes::WithEmpty.find(&method, route.path());
            assert!(matches!(found, Matched::Route(found, _) if found == route));
        }
        assert_eq!(Routes::default(), Routes::Api);
    }

    #[test]
    fn another_method_differs_from_another_path() {
        let both = Matched::OtherMethods(vec!["PUT", "GET"]);
        assert_eq!(Routes::Api.find(&Method::DELETE, "/sales/g35"), both);
        for path in ["/", "", "/sale", "/sales/", "/sales//orders", "/orders/7/cancel/", "/a/b/c/d"]
        {
            assert_eq!(Routes::Api.find(&Method::POST, path), Matched::Nothing, "{path}");
        }
    }
}
