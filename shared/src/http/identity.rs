//! The caller of a request, as API Gateway's authorizers have verified it: never read from the request itself.

use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use engine::domain::basics::ids::UserId;

/// Why a request has no caller of the kind that its route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// No bearer token was verified, or its `sub` cannot be a user id.
    #[error("a bearer token with a usable sub claim is needed")]
    Buyer,
    /// The request was not signed with an IAM identity.
    #[error("a request signed by an operator is needed")]
    Operator,
    /// No bearer token of the operators' issuer was verified, or its `sub` cannot be a user id.
    #[error("a bearer token of the operators' issuer with a usable sub claim is needed")]
    OtherIssuer,
    /// The operator's token does not have the scope of the route.
    #[error("the token must have the scope {}", .0.as_str())]
    Scope(Scope),
}

/// The scopes that the operators' issuer puts into a token. Each allows some routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Look at sales and orders.
    Watch,
    /// Publish sales, run rooms, cancel orders.
    Operate,
    /// Refund paid orders.
    Refund,
    /// Check tickets at a door.
    Scan,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Watch, Self::Operate, Self::Refund, Self::Scan];

    /// The scope's text in a token, such as `onsale/watch`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "onsale/watch",
            Self::Operate => "onsale/operate",
            Self::Refund => "onsale/refund",
            Self::Scan => "onsale/scan",
        }
    }
}

/// A buyer: the `sub` claim of the JWT that the authorizer verified. Only [`Buyer::from_request`] makes one.
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

/// How an operator was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// By an IAM identity that signed the request.
    Iam,
    /// By a token of the operators' issuer.
    Issuer,
}

impl Way {
    /// The way as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Iam => "iam",
            Self::Issuer => "issuer",
        }
    }
}

/// An operator: the IAM identity that signed the request, or the `sub` of a token of the operators' issuer.
/// Nothing else makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    who: String,
    way: Way,
}

impl Operator {
    /// The operator who signed a request with an IAM identity.
    ///
    /// # Errors
    /// Returns [`Unknown::Operator`] if the IAM authorizer verified no signature.
    pub fn from_request(request: &Request) -> Result<Self, Unknown> {
        let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
            return Err(Unknown::Operator);
        };
        let iam = context.authorizer.as_ref().and_then(|authorizer| authorizer.iam.as_ref());
        let arn = iam.and_then(|iam| iam.user_arn.as_ref()).filter(|arn| !arn.is_empty());
        arn.cloned().map(|who| Self { who, way: Way::Iam }).ok_or(Unknown::Operator)
    }

    /// The operator whose token has a scope. The gateway has verified the token. This method checks once more that the
    /// operators' `issuer` made it, not the buyers', and that it has the scope. Without an `issuer` there is no such
    /// operator.
    ///
    /// # Errors
    /// Returns [`Unknown::OtherIssuer`] if the request has no token of the operators' issuer with a usable `sub`,
    /// [`Unknown::Scope`] if the token lacks the scope.
    pub fn with_scope(
        request: &Request,
        issuer: Option<&str>,
        scope: Scope,
    ) -> Result<Self, Unknown> {
        let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
            return Err(Unknown::OtherIssuer);
        };
        let jwt = context.authorizer.as_ref().and_then(|authorizer| authorizer.jwt.as_ref());
        let claims = jwt.map(|jwt| &jwt.claims).ok_or(Unknown::OtherIssuer)?;
        let claim = |name: &str| claims.get(name).map(String::as_str);
        if issuer.is_none() || claim("iss") != issuer {
            return Err(Unknown::OtherIssuer);
        }
        let sub = claim("sub").unwrap_or_default();
        let who = UserId::new(sub).map_err(|_| Unknown::OtherIssuer)?.to_string();
        let granted = [claim("scope"), claim("scp")].into_iter().flatten();
        // A claim that is a list comes as text in brackets.
        let granted = granted.map(|list| list.strip_prefix('[').unwrap_or(list));
        let granted = granted.map(|list| list.strip_suffix(']').unwrap_or(list));
        let has_scope = granted.flat_map(|list| list.split(' ')).any(|one| one == scope.as_str());
        if has_scope { Ok(Self { who, way: Way::Issuer }) } else { Err(Unknown::Scope(scope)) }
    }

    /// The operator's name: the ARN of an IAM identity, or the `sub` of the operators' issuer.
    #[must_use]
    pub fn who(&self) -> &str {
        &self.who
    }

    /// The way in which the operator was identified.
    #[must_use]
    pub fn way(&self) -> Way {
        self.way
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
        assert_eq!(Operator::from_request(&signed).unwrap().who(), "arn:aws:iam::1:role/operator");
        assert_eq!(Buyer::from_request(&signed), Err(Unknown::Buyer));
        let empty = request(json!({ "iam": { "userArn": "" } }));
        assert_eq!(Operator::from_request(&empty), Err(Unknown::Operator));
    }
    #[test]
    fn an_operator_with_a_token_is_the_issuers_and_has_the_scope() {
        const ISSUER: &str = "https://operators.example";
        let jwt = |claims: Value| request(json!({ "jwt": { "claims": claims, "scopes": null } }));
        let operator = |claims: Value, issuer: Option<&str>| {
            Operator::with_scope(&jwt(claims), issuer, Scope::Refund)
        };
        let claims = |iss: &str, scope: &str| json!({ "iss": iss, "sub": "zhang", "scope": scope });
        let granted = operator(claims(ISSUER, "openid onsale/refund"), Some(ISSUER)).unwrap();
        assert_eq!((granted.who(), granted.way()), ("zhang", Way::Issuer));
        // As API Gateway writes a list.
        let listed =
            json!({ "iss": ISSUER, "sub": "zhang", "scp": "[onsale/watch onsale/refund]" });
        assert!(operator(listed, Some(ISSUER)).is_ok());

        let lacks = Err(Unknown::Scope(Scope::Refund));
        for scope in ["openid onsale/watch", "onsale/refunds", "onsale/refund,openid", ""] {
            assert_eq!(operator(claims(ISSUER, scope), Some(ISSUER)), lacks, "{scope}");
        }
        let scope = "onsale/refund";
        for iss in ["https://buyers.example", "https://operators.example/", ""] {
            let found = operator(claims(iss, scope), Some(ISSUER));
            assert_eq!(found, Err(Unknown::OtherIssuer), "{iss}");
        }
        // Without an issuer nobody is an operator by a token, whatever the token says.
        assert_eq!(operator(claims("", scope), None), Err(Unknown::OtherIssuer));
        let nobody = json!({ "sub": "zhang", "scope": scope });
        assert_eq!(operator(nobody, Some(ISSUER)), Err(Unknown::OtherIssuer));
        let no_name = json!({ "iss": ISSUER, "sub": "", "scope": scope });
        assert_eq!(operator(no_name, Some(ISSUER)), Err(Unknown::OtherIssuer));
        let signed = request(json!({ "iam": { "userArn": "arn:aws:iam::1:role/operator" } }));
        let found = Operator::with_scope(&signed, Some(ISSUER), Scope::Refund);
        assert_eq!(found, Err(Unknown::OtherIssuer));
    }
}
