//! Who asks: read from what API Gateway's authorizers verified, never from the request itself.

use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt as _};

use engine::domain::ids::UserId;

/// The request does not come from someone the authorizer knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// No bearer token was verified, or its `sub` cannot be a user id.
    #[error("a bearer token with a usable sub claim is needed")]
    Buyer,
    /// The request was not signed with an IAM identity.
    #[error("a request signed by an operator is needed")]
    Operator,
}

/// A buyer: the `sub` claim of the JWT that the authorizer verified. Nothing else makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buyer(UserId);

impl Buyer {
    /// The buyer who sent a request.
    ///
    /// # Errors
    /// Returns [`Unknown::Buyer`] without a verified JWT, or if its `sub` is not a user id.
    pub fn from_request(request: &Request) -> Result<Self, Unknown> {
        let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
            return Err(Unknown::Buyer);
        };
        let jwt = context.authorizer.as_ref().and_then(|authorizer| authorizer.jwt.as_ref());
        let sub = jwt.and_then(|jwt| jwt.claims.get("sub")).ok_or(Unknown::Buyer)?;
        UserId::new(sub.as_str()).map(Self).map_err(|_| Unknown::Buyer)
    }

    /// The buyer's id.
    #[must_use]
    pub fn user(&self) -> &UserId {
        &self.0
    }
}

/// An operator: the IAM identity that signed the request. Nothing else makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator(String);

impl Operator {
    /// The operator who sent a request.
    ///
    /// # Errors
    /// Returns [`Unknown::Operator`] if the IAM authorizer verified no signature.
    pub fn from_request(request: &Request) -> Result<Self, Unknown> {
        let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
            return Err(Unknown::Operator);
        };
        let iam = context.authorizer.as_ref().and_then(|authorizer| authorizer.iam.as_ref());
        let arn = iam.and_then(|iam| iam.user_arn.as_ref()).filter(|arn| !arn.is_empty());
        arn.cloned().map(Self).ok_or(Unknown::Operator)
    }

    /// The operator's ARN, for the log.
    #[must_use]
    pub fn arn(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn request(authorizer: Value) -> Request {
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": "/orders", "rawQueryString": "",
            "headers": {}, "isBase64Encoded": false,
            "requestContext": {
                "stage": "$default", "timeEpoch": 0, "authorizer": authorizer,
                "http": { "method": "GET", "path": "/orders" }
            }
        });
        lambda_http::request::from_str(&event.to_string()).unwrap()
    }

    #[test]
    fn a_buyer_is_the_verified_sub() {
        let jwt = |claims: Value| request(json!({ "jwt": { "claims": claims, "scopes": null } }));
        let buyer = Buyer::from_request(&jwt(json!({ "sub": "auth0|张三" }))).unwrap();
        assert_eq!(buyer.user().as_str(), "auth0|张三");
        assert_eq!(Buyer::from_request(&jwt(json!({ "name": "alice" }))), Err(Unknown::Buyer));
        assert_eq!(Buyer::from_request(&jwt(json!({ "sub": "a#b" }))), Err(Unknown::Buyer));
        assert_eq!(Operator::from_request(&jwt(json!({ "sub": "alice" }))), Err(Unknown::Operator));
        assert_eq!(Buyer::from_request(&Request::default()), Err(Unknown::Buyer));
    }

    #[test]
    fn an_operator_is_the_iam_identity() {
        let signed = request(json!({ "iam": { "userArn": "arn:aws:iam::1:role/operator" } }));
        assert_eq!(Operator::from_request(&signed).unwrap().arn(), "arn:aws:iam::1:role/operator");
        assert_eq!(Buyer::from_request(&signed), Err(Unknown::Buyer));
        let empty = request(json!({ "iam": { "userArn": "" } }));
        assert_eq!(Operator::from_request(&empty), Err(Unknown::Operator));
    }
}
