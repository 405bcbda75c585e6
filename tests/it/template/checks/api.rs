//! The API: its routes, who may call, and how often.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::http::routes::{Access, ROUTES};

use super::{Check, edit, number, text, unless};
use crate::template::permissions::list;
use crate::template::stack::{Stack, name_in};

/// The requests a second that API Gateway takes for an account unless its quota is raised, and its
/// burst. Source: the quotas of API Gateway.
const ACCOUNT_RATE: u64 = 10_000;

const ACCOUNT_BURST: u64 = 5_000;

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "callbacks have an entry of their own, below a key that is written nowhere",
        faults: entry,
        with: &[],
        mistakes: &[
            edit("  CallbackRoute:", "{{resolve:secretsmanager:${CallbackKey}}}", "key"),
            edit("  CallbackRoute:", "POST /", "ANY /"),
            edit(
                "  CallbackIntegration:",
                "!GetAtt TakeCallbackFunction.Arn",
                "!GetAtt SalesFunction.Arn",
            ),
            edit("  CallbackStage:", "\"route\":\"callbacks\"", "\"route\":\"$context.routeKey\""),
            edit(
                "  TakeCallbackFunction:",
                "secretsmanager:${CallbackKey}",
                "secretsmanager:${CachePassword}",
            ),
        ],
    },
    Check {
        rule: "the routes are the gateway's, and who may use them",
        faults: routes,
        with: &[],
        mistakes: &[
            edit("  ReserveFunction:", ", Auth: { Authorizer: Buyer }", ""),
            edit("  SalesFunction:", ", Auth: { Authorizer: AWS_IAM }", ""),
            edit("  SalesFunction:", "Authorizer: AWS_IAM", "Authorizer: Buyer"),
            edit("  CancelFunction:", "{order}/cancel", "{order}/abort"),
            edit("  OrdersFunction:", "Path: /orders,", "Path: /mine,"),
            edit(
                "  PayCallbackFunction:",
                "callback\" }",
                "callback\", Auth: { Authorizer: Buyer } }",
            ),
            edit("        Authorizers:", "audience: !Ref JwtAudience", "audience: [anybody]"),
            edit(
                "          OperatorToken:",
                "issuer: !Ref OperatorIssuer",
                "issuer: !Ref JwtIssuer",
            ),
            edit("  CancelFunction:", "[onsale/operate]", "[onsale/watch]"),
            edit("  RefundOrderFunction:", ", AuthorizationScopes: [onsale/refund]", ""),
        ],
    },
    Check {
        rule: "functions are called by their own triggers alone",
        faults: callers,
        with: &[],
        mistakes: &[
            edit(
                "Resources:\n",
                "  # ---",
                "  Anybody:\n    Type: AWS::Lambda::Permission\n    Properties: { FunctionName: !Ref RefundFunction, Action: lambda:InvokeFunction, Principal: \"*\" }\n  # ---",
            ),
            edit(
                "Resources:\n",
                "  # ---",
                "  Api2:\n    Type: AWS::Lambda::Permission\n    Properties: { FunctionName: !Ref RefundFunction, Action: lambda:InvokeFunction, Principal: apigateway.amazonaws.com }\n  # ---",
            ),
        ],
    },
    Check {
        rule: "each route has a share, and all together leave the provider's calls theirs",
        faults: throttling,
        with: &[],
        mistakes: &[
            edit("  AdmissionRate:", "Default: 1500", "Default: 15000"),
            edit("  OtherRate:", "Default: 100", "Default: 2500"),
            edit("  CallbackEntryRate:", "Default: 1000", "Default: 5000"),
            edit(
                "RouteSettings:\n        \"POST",
                "ThrottlingBurstLimit: 540",
                "ThrottlingBurstLimit: 5000",
            ),
            edit(
                "      RouteSettings:\n",
                "POST /payments/{provider}/callback",
                "POST /payments/{provider}/callbacks",
            ),
            edit(
                "      DefaultRouteSettings:",
                "        ThrottlingRateLimit: !Ref OtherRate\n",
                "",
            ),
        ],
    },
];

/// The properties of a resource.
fn resource<'s>(stack: &'s Stack, id: &str) -> &'s Value {
    &stack.resources[id].properties
}

/// The entry of callbacks: one route below a key that nobody else knows, which nothing writes down.
fn entry(stack: &Stack) -> Vec<String> {
    let row = ROUTES.iter().find(|route| route.access == Access::ProviderWithKey).unwrap();
    let key = "{{resolve:secretsmanager:${CallbackKey}}}";
    let routes = stack.all("AWS::ApiGatewayV2::Route");
    let keys: Vec<&str> = routes.map(|(_, route)| text(&route["RouteKey"])).collect();
    let [route, integration] =
        ["CallbackRoute", "CallbackIntegration"].map(|id| resource(stack, id));
    let [api, stage] = ["CallbackApi", "CallbackStage"].map(|id| resource(stack, id));
    let calls = name_in(text(&integration["IntegrationUri"]));
    let logs = text(&stage["AccessLogSettings"]["Format"]);
    let is_logged = logs.contains("routeKey") || logs.contains("path");
    let function = stack.functions().find(|(binary, ..)| *binary == row.function.as_str()).unwrap();
    let given = &function.2["Environment"]["Variables"]["ONSALE_CALLBACK_KEYS"];
    unless(
        "entry of callbacks",
        [
            (keys == [row.key.replace("{key}", key)], "has other routes, or one without the key"),
            (calls == Some(function.1), "calls another function"),
            (text(given) == key, "its function has another key"),
            (
                api["ProtocolType"] == "HTTP" && route["AuthorizationType"] == "NONE",
                "is another API",
            ),
            (integration["PayloadFormatVersion"] == "2.0", "sends other events"),
            (!is_logged, "logs its key"),
        ],
    )
}

/// The methods of the API, with what they say.
fn methods(stack: &Stack) -> Vec<(String, &Value)> {
    let (_, api) = stack.all("AWS::ApiGatewayV2::Api").next().unwrap();
    let paths = api["Body"]["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, says)| (format!("{} {path}", method.to_uppercase()), says))
        })
        .collect()
}

fn routes(stack: &Stack) -> Vec<String> {
    let (_, api) = stack.all("AWS::ApiGatewayV2::Api").next().unwrap();
    let mut deployed = BTreeSet::new();
    for (key, says) in methods(stack) {
        let security = says["security"].as_array().into_iter().flatten();
        let authorizer = security.flat_map(|one| one.as_object().unwrap().iter()).next();
        let authorizer = authorizer.map(|(name, scopes)| (name.clone(), list(scopes)));
        let uri = text(&says["x-amazon-apigateway-integration"]["uri"]).to_owned();
        let calls =
            uri.split("${").nth(1).and_then(|rest| rest.split(['}', '.']).next()).unwrap_or("");
        let logical = calls.trim_end_matches("Aliaslive");
        let binary =
            stack.functions().find(|(_, name, _)| *name == logical).map(|(binary, ..)| binary);
        deployed.insert((key, authorizer, binary.unwrap_or("nobody").to_owned()));
    }
    let requested: BTreeSet<_> = ROUTES
        .iter()
        .filter(|route| route.access != Access::ProviderWithKey)
        .map(|route| {
            let authorizer = match route.access {
                Access::Anyone | Access::Provider | Access::ProviderWithKey => None,
                Access::Buyer => Some(("Buyer".to_owned(), Vec::new())),
                Access::Operator => Some(("AWS_IAM".to_owned(), Vec::new())),
                Access::Watch | Access::Operate | Access::Refund | Access::Scan => {
                    let scope = route.access.scope().map(|scope| scope.as_str().to_owned());
                    Some(("OperatorToken".to_owned(), Vec::from_iter(scope)))
                }
            };
            (route.key.to_owned(), authorizer, route.function.as_str().to_owned())
        })
        .collect();
    let is_jwt = |scheme: &str, issuer: &str, audience: &str| {
        let authorizer =
            &api["Body"]["components"]["securitySchemes"][scheme]["x-amazon-apigateway-authorizer"];
        let jwt =
            json!({ "issuer": stack.parameters[issuer], "audience": [stack.parameters[audience]] });
        authorizer["type"] == "jwt"
            && authorizer["jwtConfiguration"] == jwt
            && authorizer["identitySource"] == "$request.header.Authorization"
    };
    let (buyers, operators) = (
        is_jwt("Buyer", "JwtIssuer", "JwtAudience"),
        is_jwt("OperatorToken", "OperatorIssuer", "OperatorAudience"),
    );
    let differing = deployed.symmetric_difference(&requested).map(|route| format!("{route:?}"));
    let mut faults: Vec<String> = differing.collect();
    faults.extend(unless("Buyer", [(buyers, "is no authorizer of the issuer's tokens")]));
    let what = "is no authorizer of the operators' issuer's tokens";
    faults.extend(unless("OperatorToken", [(operators, what)]));
    faults
}

fn callers(stack: &Stack) -> Vec<String> {
    let of = |(name, permission): (&str, &Value)| {
        let is_api = permission["Principal"] == "apigateway.amazonaws.com";
        let source = text(&permission["SourceArn"]);
        let is_entry = source.ends_with("${CallbackApi}/*/POST/callbacks/*")
            && name_in(text(&permission["FunctionName"])) == Some("TakeCallbackFunction");
        let is_ours = source.contains("${Api}") || is_entry;
        unless(name, [(is_api && is_ours, "lets another call")])
    };
    stack.all("AWS::Lambda::Permission").flat_map(of).collect()
}

fn throttling(stack: &Stack) -> Vec<String> {
    let (_, stage) = stack.all("AWS::ApiGatewayV2::Stage").next().unwrap();
    let routes = stage["RouteSettings"].as_object().cloned().unwrap_or_default();
    let default = &stage["DefaultRouteSettings"];
    let keys: Vec<String> = methods(stack).into_iter().map(|(key, _)| key).collect();
    let mut faults = Vec::new();
    let mut sums = (0, 0);
    for key in &keys {
        let settings = routes.get(key).unwrap_or(default);
        let limits =
            (number(&settings["ThrottlingRateLimit"]), number(&settings["ThrottlingBurstLimit"]));
        let (Some(rate), Some(burst)) = limits else {
            faults.push(format!("{key}: has no limit"));
            continue;
        };
        sums = (sums.0 + rate, sums.1 + burst);
    }
    // The entry of callbacks is another API of the same account.
    let entry = &resource(stack, "CallbackStage")["DefaultRouteSettings"];
    sums.0 += number(&entry["ThrottlingRateLimit"]).unwrap_or(ACCOUNT_RATE);
    sums.1 += number(&entry["ThrottlingBurstLimit"]).unwrap_or(ACCOUNT_BURST);
    let unknown: Vec<&String> = routes.keys().filter(|key| !keys.contains(key)).collect();
    let callback = "POST /payments/{provider}/callback";
    faults.extend(unless(
        "routes",
        [
            (sums.0 <= ACCOUNT_RATE, "take more than the account's requests a second"),
            (sums.1 <= ACCOUNT_BURST, "take more than the account's burst"),
            (unknown.is_empty(), "one that is not there has a limit"),
            (routes.contains_key(callback), "the provider's calls have no share of their own"),
        ],
    ));
    faults
}
