//! The routes of the API: method and path, read here and nowhere else.
//!
//! API Gateway also hands over path parameters, but not every gateway does; the path itself is
//! always there.

use lambda_http::http::Method;
use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt as _};

use engine::domain::ids::{ProviderId, SaleId};
use engine::domain::number::OrderNumber;

/// One route of the API, with what its path says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `GET /openapi.json`
    ShowOpenApi,
    /// `GET /sales`
    ListSales,
    /// `PUT /sales/{sale}`
    PublishSale(SaleId),
    /// `GET /sales/{sale}`
    ShowSale(SaleId),
    /// `GET /sales/{sale}/availability`
    ShowAvailability(SaleId),
    /// `POST /sales/{sale}/admissions`
    Admit(SaleId),
    /// `POST /sales/{sale}/orders`
    Reserve(SaleId),
    /// `GET /orders`
    ListOrders,
    /// `GET /orders/{order}`
    ShowOrder(OrderNumber),
    /// `POST /orders/{order}/cancel`
    CancelOrder(OrderNumber),
    /// `POST /payments/{provider}/callback`
    PaymentCallback(ProviderId),
}

/// There is nothing at this method and path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such resource")]
pub struct NoRoute;

impl Route {
    /// The route of a request.
    ///
    /// # Errors
    /// Returns [`NoRoute`] if the API has no such path, or not with this method, or if an
    /// identifier in it could not be one.
    pub fn of(request: &Request) -> Result<Self, NoRoute> {
        let raw = request.raw_http_path();
        let path = if raw.is_empty() { request.uri().path() } else { raw };
        Self::parse(request.method(), without_stage(request, path))
    }

    /// The route at a method and a path.
    ///
    /// # Errors
    /// As [`Route::of`].
    pub fn parse(method: &Method, path: &str) -> Result<Self, NoRoute> {
        let segments: Vec<&str> = path.strip_prefix('/').ok_or(NoRoute)?.split('/').collect();
        let route = match (method.as_str(), segments.as_slice()) {
            ("GET", ["openapi.json"]) => Self::ShowOpenApi,
            ("GET", ["sales"]) => Self::ListSales,
            ("PUT", ["sales", sale]) => Self::PublishSale(id(sale)?),
            ("GET", ["sales", sale]) => Self::ShowSale(id(sale)?),
            ("GET", ["sales", sale, "availability"]) => Self::ShowAvailability(id(sale)?),
            ("POST", ["sales", sale, "admissions"]) => Self::Admit(id(sale)?),
            ("POST", ["sales", sale, "orders"]) => Self::Reserve(id(sale)?),
            ("GET", ["orders"]) => Self::ListOrders,
            ("GET", ["orders", order]) => Self::ShowOrder(id(order)?),
            ("POST", ["orders", order, "cancel"]) => Self::CancelOrder(id(order)?),
            ("POST", ["payments", provider, "callback"]) => Self::PaymentCallback(id(provider)?),
            _ => return Err(NoRoute),
        };
        Ok(route)
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
    fn every_route_has_its_method_and_path() {
        let sale = || SaleId::new("g1").unwrap();
        let order = || "42".parse::<OrderNumber>().unwrap();
        let stripe = ProviderId::new("stripe").unwrap();
        let routes = [
            ("GET", "/openapi.json", Ok(Route::ShowOpenApi)),
            ("GET", "/sales", Ok(Route::ListSales)),
            ("PUT", "/sales/g1", Ok(Route::PublishSale(sale()))),
            ("GET", "/sales/g1", Ok(Route::ShowSale(sale()))),
            ("GET", "/sales/g1/availability", Ok(Route::ShowAvailability(sale()))),
            ("POST", "/sales/g1/admissions", Ok(Route::Admit(sale()))),
            ("POST", "/sales/g1/orders", Ok(Route::Reserve(sale()))),
            ("GET", "/orders", Ok(Route::ListOrders)),
            ("GET", "/orders/42", Ok(Route::ShowOrder(order()))),
            ("POST", "/orders/42/cancel", Ok(Route::CancelOrder(order()))),
            ("POST", "/payments/stripe/callback", Ok(Route::PaymentCallback(stripe))),
            ("DELETE", "/sales/g1", Err(NoRoute)),
            ("GET", "/sales/", Err(NoRoute)),
            ("GET", "/sales/G1", Err(NoRoute)),
            ("GET", "/orders/forty-two", Err(NoRoute)),
            ("GET", "sales", Err(NoRoute)),
            ("GET", "/", Err(NoRoute)),
        ];
        for (method, path, expected) in routes {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(Route::parse(&method, path), expected, "{method} {path}");
        }
    }
}
