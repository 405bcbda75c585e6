//! The routes of the API: which function answers, and who may ask.
//!
//! The same routes as in `template.yaml`, matched as API Gateway's HTTP APIs match them: whole
//! segments, case sensitive, a trailing slash is another path.

use std::collections::HashMap;

use http::Method;

/// The functions that answer HTTP requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// `functions/sales`
    Sales,
    /// `functions/token-gate`
    TokenGate,
    /// `functions/reserve`
    Reserve,
    /// `functions/orders`
    Orders,
    /// `functions/cancel`
    Cancel,
    /// `functions/pay-callback`
    PayCallback,
    /// Nothing: what a request costs without any function.
    Empty,
}

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody; the function itself may want a signature.
    Anybody,
    /// Whoever has a buyer's token (the JWT authorizer).
    Buyer,
    /// Whoever runs the sales (the IAM authorizer).
    Operator,
}

/// One route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Its method and pattern as API Gateway writes them: `GET /orders/{order}`.
    pub key: &'static str,
    /// Who may use it.
    pub access: Access,
    /// Who answers.
    pub function: Function,
}

const fn route(key: &'static str, access: Access, function: Function) -> Route {
    Route { key, access, function }
}

/// Every route.
pub const ROUTES: [Route; 11] = [
    route("GET /openapi.json", Access::Anybody, Function::Sales),
    route("GET /sales", Access::Anybody, Function::Sales),
    route("PUT /sales/{sale}", Access::Operator, Function::Sales),
    route("GET /sales/{sale}", Access::Anybody, Function::Sales),
    route("GET /sales/{sale}/availability", Access::Anybody, Function::Sales),
    route("POST /sales/{sale}/admissions", Access::Buyer, Function::TokenGate),
    route("POST /sales/{sale}/orders", Access::Buyer, Function::Reserve),
    route("GET /orders", Access::Buyer, Function::Orders),
    route("GET /orders/{order}", Access::Buyer, Function::Orders),
    route("POST /orders/{order}/cancel", Access::Buyer, Function::Cancel),
    route("POST /payments/{provider}/callback", Access::Anybody, Function::PayCallback),
];

/// The routes of the function that does nothing, one for each way in. They are not in the API: only
/// a gateway that is measured has them.
pub const EMPTY_ROUTES: [Route; 2] = [
    route("GET /empty", Access::Anybody, Function::Empty),
    route("POST /empty", Access::Buyer, Function::Empty),
];

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
    fn all(self) -> impl Iterator<Item = &'static Route> {
        let empty: &'static [Route] = match self {
            Self::Api => &[],
            Self::WithEmpty => &EMPTY_ROUTES,
        };
        ROUTES.iter().chain(empty)
    }

    /// Finds the route of a request.
    #[must_use]
    pub fn find(self, method: &Method, path: &str) -> Matched {
        let mut others = Vec::new();
        for route in self.all() {
            let Some(parameters) = route.fits(path) else { continue };
            if route.method() == method.as_str() {
                return Matched::Route(route, parameters);
            }
            others.push(route.method());
        }
        if others.is_empty() { Matched::Nothing } else { Matched::OtherMethods(others) }
    }
}

impl Route {
    /// Its method.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.key.split_once(' ').map_or("", |(method, _)| method)
    }

    /// Its path, or the pattern of its paths.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.key.split_once(' ').map_or("", |(_, path)| path)
    }

    /// The path parameters, if `path` fits the pattern.
    fn fits(&self, path: &str) -> Option<HashMap<String, String>> {
        let mut parameters = HashMap::new();
        let mut segments = path.split('/');
        for wanted in self.path().split('/') {
            let segment = segments.next()?;
            match wanted.strip_prefix('{').and_then(|wanted| wanted.strip_suffix('}')) {
                Some(name) if !segment.is_empty() => {
                    parameters.insert(name.to_owned(), segment.to_owned());
                }
                Some(_) => return None,
                None if wanted == segment => {}
                None => return None,
            }
        }
        segments.next().is_none().then_some(parameters)
    }
}

/// What a method and a path come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Matched {
    /// This route, with these path parameters.
    Route(&'static Route, HashMap<String, String>),
    /// The path is there, but for these methods only.
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
    fn the_empty_function_has_routes_only_where_it_is_measured() {
        for route in EMPTY_ROUTES {
            let method = route.method().parse().unwrap();
            assert_eq!(Routes::Api.find(&method, route.path()), Matched::Nothing);
            let found = Routes::WithEmpty.find(&method, route.path());
            assert!(matches!(found, Matched::Route(found, _) if *found == route));
        }
        assert_eq!(Routes::default(), Routes::Api);
    }

    #[test]
    fn another_method_is_told_from_another_path() {
        let both = Matched::OtherMethods(vec!["PUT", "GET"]);
        assert_eq!(Routes::Api.find(&Method::DELETE, "/sales/g35"), both);
        for path in ["/", "", "/sale", "/sales/", "/sales//orders", "/orders/7/cancel/", "/a/b/c/d"]
        {
            assert_eq!(Routes::Api.find(&Method::POST, path), Matched::Nothing, "{path}");
        }
    }
}
