//! The distribution: what of the API is kept at the edge and under which key, who gets in by which way,
//! and the pages.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use shared::http::routes::{Access, ROUTES, Row, parameter_names};

use super::{Check, edit, is_true, number, text, unless};
use crate::template::stack::Stack;
use text::read;

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "public documents are kept under path and parameters, everything else by nobody and with Authorization",
        faults: caching,
        with: &[],
        mistakes: &[
            // A private answer that is kept, and public ones that are not, or under another key.
            edit(
                "PathPattern: /api/*\n",
                "4135ea2d-6df8-44a3-9df3-4b5a84be39ad",
                "!Ref DocumentPolicy",
            ),
            edit(
                "PathPattern: /api/sales/*/*",
                "4135ea2d-6df8-44a3-9df3-4b5a84be39ad",
                "!Ref DocumentPolicy",
            ),
            edit(
                "PathPattern: /api/sales/*/room\n",
                "!Ref DocumentPolicy",
                "4135ea2d-6df8-44a3-9df3-4b5a84be39ad",
            ),
            edit(
                "PathPattern: /api/sales/*/availability",
                "!Ref JourneyPolicy",
                "!Ref DocumentPolicy",
            ),
            edit("PathPattern: /api/sales/*/room/log", "!Ref LogPolicy", "!Ref JourneyPolicy"),
            edit("PathPattern: /api/trains\n", "!Ref TrainsPolicy", "!Ref JourneyPolicy"),
            edit("  TrainsPolicy:", "[date, from, to, limit, cursor]", "[from, to, limit, cursor]"),
            edit("  StopsPolicy:", "[date, limit, cursor]", "[limit, cursor]"),
            edit("  ListPolicy:", "[limit, cursor]", "[limit]"),
            edit(
                "  JourneyPolicy:",
                "QueryStringBehavior: whitelist, QueryStrings: [from, to]",
                "QueryStringBehavior: all",
            ),
            edit(
                "  DocumentPolicy:",
                "HeaderBehavior: none",
                "HeaderBehavior: whitelist, Headers: [Authorization]",
            ),
            edit("  DocumentPolicy:", "CookieBehavior: none", "CookieBehavior: all"),
            edit("  DocumentPolicy:", "MinTTL: 1\n", "MinTTL: 0\n"),
            edit("  DocumentPolicy:", "MinTTL: 1\n", "MinTTL: 5\n"),
            edit("  DocumentPolicy:", "DefaultTTL: 1\n", "DefaultTTL: 86400\n"),
            edit("  DocumentPolicy:", "MaxTTL: 31536000\n", "MaxTTL: 1\n"),
            // Authorization that is dropped, or that comes along where an answer is kept; a Host that no API has.
            edit(
                "PathPattern: /api/*\n",
                "            OriginRequestPolicyId: b689b0a8-53d0-40ab-baf2-68738e2966ac\n",
                "",
            ),
            edit(
                "PathPattern: /api/*\n",
                "b689b0a8-53d0-40ab-baf2-68738e2966ac",
                "216adef6-5c7f-47e4-b989-5492eafa07d3",
            ),
            edit(
                "PathPattern: /api/sales/*/room\n",
                "!Ref DocumentPolicy\n",
                "!Ref DocumentPolicy\n            OriginRequestPolicyId: b689b0a8-53d0-40ab-baf2-68738e2966ac\n",
            ),
            // The order of behaviours, and methods.
            edit(
                "        CacheBehaviors:\n",
                "PathPattern: /api/openapi.json",
                "PathPattern: /api/sales/*",
            ),
            edit(
                "        CacheBehaviors:\n",
                "PathPattern: /api/openapi.json",
                "PathPattern: /api/o*",
            ),
            edit("        CacheBehaviors:\n", "PathPattern: /s/?*", "PathPattern: /sale/?*"),
            edit("PathPattern: /sitemap.xml\n", "!Ref LogPolicy", "!Ref DocumentPolicy"),
            edit("PathPattern: /api/*\n", "PATCH, POST, DELETE", "PATCH, DELETE"),
            edit("PathPattern: /api/*\n", "TargetOriginId: api", "TargetOriginId: documents"),
            edit("PathPattern: /api/*\n", "EdgeApiRequest", "EdgePageRequest"),
            edit("PathPattern: /api/*\n", "https-only", "allow-all"),
        ],
    },
    Check {
        rule: "the API knows what came through the distribution, and its own host is for programs alone",
        faults: ways,
        with: &[],
        mistakes: &[
            edit(
                "  CancelFunction:",
                "          ONSALE_EDGE_SECRETS: !Sub '[\"{{resolve:secretsmanager:${EdgeSecretA}}}\",\"{{resolve:secretsmanager:${EdgeSecretB}}}\"]'\n",
                "          OTHER: \"\"\n",
            ),
            edit("  ReserveFunction:", ",\"{{resolve:secretsmanager:${EdgeSecretB}}}\"", ""),
            edit("  SalesFunction:", "{{resolve:secretsmanager:${EdgeSecretB}}}", "known"),
            edit(
                "  PayCallbackFunction:",
                "          ONSALE_PAYMENT_SECRETS",
                "          ONSALE_EDGE_SECRETS: \"[]\"\n          ONSALE_PAYMENT_SECRETS",
            ),
            edit("          - Id: api\n", "X-Onsale-Edge", "X-Edge"),
            edit("          - Id: documents\n", "${EdgeSecretA}", "${CachePassword}"),
            edit("          - Id: api\n", "${EdgeSecretA}", "${EdgeSecretB}"),
            edit(
                "          - Id: api\n",
                "DomainName: !Sub \"${Api}",
                "DomainName: !Sub \"${CallbackApi}",
            ),
            edit(
                "          - Id: api\n",
                "OriginProtocolPolicy: https-only",
                "OriginProtocolPolicy: match-viewer",
            ),
            edit("  Distribution:\n", " (secrets ${SecretsRevision})", ""),
            edit("  EdgeSecretB:", "PasswordLength: 64", "PasswordLength: 8"),
        ],
    },
    Check {
        rule: "the distribution is as people meet it: encrypted, compressed, and its errors soon over",
        faults: distribution,
        with: &[
            ("DomainName", "tickets.example"),
            ("CertificateArn", "arn:aws:acm:us-east-1:000000000000:certificate/1"),
            ("OriginShieldRegion", "eu-central-1"),
            ("WebAclArn", "arn:aws:wafv2:us-east-1:000000000000:global/webacl/a/1"),
            ("EdgeLogsBucket", "logs.s3.amazonaws.com"),
        ],
        mistakes: &[
            edit("  Distribution:\n", "TLSv1.2_2021", "TLSv1"),
            edit("  Distribution:\n", "http2and3", "http2"),
            edit(
                "  Distribution:\n",
                "ErrorCode: 404, ErrorCachingMinTTL: 1",
                "ErrorCode: 404, ErrorCachingMinTTL: 10",
            ),
            edit(
                "  Distribution:\n",
                "          - { ErrorCode: 503, ErrorCachingMinTTL: 1 }\n",
                "",
            ),
            edit(
                "  Distribution:\n",
                "ErrorCode: 404, ErrorCachingMinTTL: 1",
                "ErrorCode: 404, ErrorCachingMinTTL: 1, ResponseCode: 404, ResponsePagePath: /404.html",
            ),
            edit("PathPattern: /api/sales/*/room\n", "Compress: true", "Compress: false"),
            edit(
                "  LogPolicy:",
                "EnableAcceptEncodingBrotli: true",
                "EnableAcceptEncodingBrotli: false",
            ),
            edit(
                "  Distribution:\n",
                "!If [HasDomain, [!Ref DomainName], !Ref AWS::NoValue]",
                "!Ref AWS::NoValue",
            ),
            edit(
                "  Distribution:\n",
                "!If [HasWebAcl, !Ref WebAclArn, !Ref AWS::NoValue]",
                "!Ref AWS::NoValue",
            ),
            edit(
                "          - Id: documents\n",
                "!If [HasShield, { Enabled: true",
                "!If [HasShield, { Enabled: false",
            ),
            edit("  Distribution:\n", "IncludeCookies: false", "IncludeCookies: true"),
        ],
    },
    Check {
        rule: "the pages are in a bucket that nobody but the distribution reads, and have the headers of pages/headers.json",
        faults: pages,
        with: &[],
        mistakes: &[
            edit("  PagesBucket:", "BlockPublicPolicy: true", "BlockPublicPolicy: false"),
            edit("  PagesBucket:", "SSEAlgorithm: AES256", "SSEAlgorithm: none"),
            edit("  PagesBucketPolicy:", "Service: cloudfront.amazonaws.com", "AWS: \"*\""),
            edit(
                "  PagesBucketPolicy:",
                "            Condition: { StringEquals:",
                "            Sid2: { StringEquals:",
            ),
            edit("  PagesBucketPolicy:", "s3:GetObject", "\"s3:*\""),
            edit("  PagesBucketPolicy:", "Effect: Deny", "Effect: Allow"),
            edit("  PagesAccess:", "SigningBehavior: always", "SigningBehavior: never"),
            edit(
                "          - Id: pages\n",
                "            OriginAccessControlId: !GetAtt PagesAccess.Id\n",
                "",
            ),
            edit(
                "        DefaultCacheBehavior:",
                "viewer-response, FunctionARN: !GetAtt EdgePageResponse",
                "viewer-response, FunctionARN: !GetAtt EdgePageRequest",
            ),
            edit(
                "        DefaultCacheBehavior:",
                "            - { EventType: viewer-request",
                "            # { EventType: viewer-request",
            ),
            edit(
                "PathPattern: /assets/*",
                "            Compress: true\n",
                "            Compress: true\n            OriginRequestPolicyId: b689b0a8-53d0-40ab-baf2-68738e2966ac\n",
            ),
            edit("  EdgeHeaders:", "63072000", "60"),
            edit(
                "  EdgeHeaders:",
                "ReferrerPolicy: same-origin, Override: true",
                "ReferrerPolicy: unsafe-url, Override: true",
            ),
            edit("  EdgeHeaders:", "          ContentTypeOptions: { Override: true }\n", ""),
            edit(
                "  EdgeHeaders:",
                "Value: same-origin, Override: true",
                "Value: same-origin, Override: false",
            ),
            edit("  EdgeScanHeaders:", "camera=(self)", "camera=()"),
            edit("PathPattern: /scan\n", "!Ref EdgeScanHeaders", "!Ref EdgeHeaders"),
            edit(
                "PathPattern: /api/*\n",
                "            ResponseHeadersPolicyId: !Ref EdgeHeaders\n",
                "",
            ),
        ],
    },
];

/// The managed policies that the template names.
const CACHING_DISABLED: &str = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad";
const CACHING_OPTIMIZED: &str = "658327ea-f89d-4fab-a63d-7e88639e58f6";
/// Forwards every header of the viewer but Host: Authorization too, where nothing is cached.
const ALL_BUT_HOST: &str = "b689b0a8-53d0-40ab-baf2-68738e2966ac";
/// Statuses that CloudFront keeps for ten seconds unless it is told otherwise.
const KEPT_ERRORS: [u64; 7] = [404, 414, 500, 501, 502, 503, 504];
/// Seconds of a year, the longest that an answer may be kept.
const YEAR: u64 = 31_536_000;

fn config(stack: &Stack) -> &Value {
    let (_, distribution) = stack.all("AWS::CloudFront::Distribution").next().unwrap();
    &distribution["DistributionConfig"]
}

/// True if CloudFront finds that a path fits a pattern: `*` is any text, also with `/` in it, and `?` one character.
fn fits(pattern: &str, path: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => path.is_empty(),
        Some('*') => {
            let ends = path.char_indices().map(|(at, _)| at).chain([path.len()]);
            ends.into_iter().any(|at| fits(rest.as_str(), &path[at..]))
        }
        Some(one) => {
            let mut path = path.chars();
            path.next().is_some_and(|found| one == '?' || one == found)
                && fits(rest.as_str(), path.as_str())
        }
    }
}

/// The behaviour of a path: the first that fits, or the default.
fn behaviour<'s>(stack: &'s Stack, path: &str) -> &'s Value {
    let config = config(stack);
    let mut all = config["CacheBehaviors"].as_array().unwrap().iter();
    let found = all.find(|one| fits(text(&one["PathPattern"]), path));
    found.unwrap_or(&config["DefaultCacheBehavior"])
}

/// What the edge does with a request of the API.
#[derive(Debug, PartialEq, Eq)]
struct Treatment {
    /// The origin that is asked.
    origin: String,
    /// True if the method gets to the origin.
    is_passed: bool,
    /// The parameters of the query in the key, beside the path; `None` if no answer is kept.
    key: Option<BTreeSet<String>>,
    /// True if `Authorization` gets to the origin.
    has_authorization: bool,
}

impl Treatment {
    fn from_request(stack: &Stack, method: &str, path: &str) -> Result<Self, String> {
        let behaviour = behaviour(stack, path);
        let methods = behaviour["AllowedMethods"].as_array().unwrap();
        let policy = &behaviour["CachePolicyId"];
        let forwards = match text(&behaviour["OriginRequestPolicyId"]) {
            "" => false,
            ALL_BUT_HOST => true,
            other => return Err(format!("forwards as {other}")),
        };
        let key = match text(policy) {
            CACHING_DISABLED => None,
            CACHING_OPTIMIZED => Some(BTreeSet::new()),
            _ => Some(key_of(stack, policy)?),
        };
        Ok(Self {
            origin: text(&behaviour["TargetOriginId"]).to_owned(),
            is_passed: methods.contains(&json!(method)),
            has_authorization: forwards,
            key,
        })
    }
}

/// The parameters of the query in a cache policy's key, if nothing else but the path is in it.
fn key_of(stack: &Stack, policy: &Value) -> Result<BTreeSet<String>, String> {
    let (name, policy) = stack.behind(policy).ok_or("has no cache policy")?;
    let config = &policy["CachePolicyConfig"];
    let key = &config["ParametersInCacheKeyAndForwardedToOrigin"];
    let times = ["MinTTL", "DefaultTTL", "MaxTTL"].map(|name| number(&config[name]));
    let is_plain = key["HeadersConfig"] == json!({ "HeaderBehavior": "none" })
        && key["CookiesConfig"] == json!({ "CookieBehavior": "none" });
    let queries = &key["QueryStringsConfig"];
    let names = || queries["QueryStrings"].as_array().into_iter().flatten();
    let listed = names().map(|name| text(name).to_owned()).collect();
    let is_listed = match text(&queries["QueryStringBehavior"]) {
        "none" => names().count() == 0,
        behaviour => behaviour == "whitelist",
    };
    if !is_plain || !is_listed {
        return Err(format!("{name} has more in its key than path and listed parameters"));
    }
    // A second at least, so that requests that come at once are one; and as the answer says.
    if times != [Some(1), Some(1), Some(YEAR)] {
        return Err(format!("{name} keeps for other times than answers say: {times:?}"));
    }
    Ok(listed)
}

/// The parameters of the query that the API knows, by the OpenAPI document.
fn queries(document: &Value, row: &Row) -> BTreeSet<String> {
    let operation = &document["paths"][row.path][row.method.to_lowercase()];
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let in_query = parameters.filter(|one| one["in"] == "query");
    in_query.map(|one| text(&one["name"]).to_owned()).collect()
}

/// What comes before the path of a route at the edge: nothing where it stands among the pages.
fn prefix(row: &Row) -> &'static str {
    if row.is_among_pages() { "" } else { "/api" }
}

/// Paths of a route, with names of sales among them that are words of other routes.
fn paths(row: &Row) -> Vec<String> {
    let of = |sale: &str| {
        let value = |path: String, name| {
            let value = if name == "sale" { sale } else { "7" };
            path.replace(&format!("{{{name}}}"), value)
        };
        parameter_names(row.path).fold(format!("{}{}", prefix(row), row.path), value)
    };
    ["hall", "room", "log", "orders", "availability"].map(of).into()
}

fn caching(stack: &Stack) -> Vec<String> {
    let document: Value = serde_json::from_str(&read("docs/openapi.json")).unwrap();
    let mut faults = Vec::new();
    for row in ROUTES {
        let is_kept = row.method == "GET" && row.access == Access::Anyone;
        let expected = match row.access {
            // A signature does not survive another Host, and these have an API of their own.
            Access::Operator | Access::ProviderWithKey => continue,
            Access::Anyone
            | Access::Buyer
            | Access::Provider
            | Access::Watch
            | Access::Operate
            | Access::Refund
            | Access::Scan => Treatment {
                origin: if is_kept { "documents" } else { "api" }.to_owned(),
                is_passed: true,
                key: is_kept.then(|| queries(&document, &row)),
                has_authorization: !is_kept,
            },
        };
        for path in paths(&row) {
            match Treatment::from_request(stack, row.method, &path) {
                Ok(treatment) if treatment == expected => {}
                Ok(other) => faults.push(format!("{path}: {}: {other:?}", row.key)),
                Err(fault) => faults.push(format!("{path}: {}: {fault}", row.key)),
            }
            let behaviour = behaviour(stack, &path);
            // People type the address of a page.
            let protocol = if prefix(&row).is_empty() { "redirect-to-https" } else { "https-only" };
            let request = json!([{ "EventType": "viewer-request", "FunctionARN": "${EdgeApiRequest.FunctionMetadata.FunctionARN}" }]);
            faults.extend(unless(
                &path,
                [
                    (behaviour["FunctionAssociations"] == request, "keeps its prefix"),
                    (behaviour["ViewerProtocolPolicy"] == protocol, "is sent in plaintext"),
                ],
            ));
        }
    }
    faults
}

/// True if a function answers a caller only if the request came through the distribution.
fn is_behind_the_edge(access: Access) -> bool {
    match access {
        Access::Anyone
        | Access::Buyer
        | Access::Watch
        | Access::Operate
        | Access::Refund
        | Access::Scan => true,
        // A program that signs with IAM calls the API's own host, and so does a provider.
        Access::Operator | Access::Provider | Access::ProviderWithKey => false,
    }
}

fn ways(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let reference = |name: &str| format!("{{{{resolve:secretsmanager:${{{name}}}}}}}");
    let both = json!([reference("EdgeSecretA"), reference("EdgeSecretB")]).to_string();
    for (binary, _, function) in stack.functions() {
        let mut routes = ROUTES.iter().filter(|row| row.function.as_str() == binary);
        let is_behind = routes.any(|row| is_behind_the_edge(row.access));
        let given = function["Environment"]["Variables"]["ONSALE_EDGE_SECRETS"].as_str();
        let expected = is_behind.then_some(both.as_str());
        faults.extend(unless(binary, [(given == expected, "knows other secrets of the edge")]));
    }
    let in_use = format!("EdgeSecret{}", stack.parameters["EdgeSecretInUse"]);
    let header = json!([{ "HeaderName": "X-Onsale-Edge", "HeaderValue": reference(&in_use) }]);
    for origin in config(stack)["Origins"].as_array().unwrap() {
        let id = text(&origin["Id"]);
        if id == "pages" {
            let sends = &origin["OriginCustomHeaders"];
            faults.extend(unless(id, [(sends.is_null(), "is sent a secret")]));
            continue;
        }
        let custom = &origin["CustomOriginConfig"];
        let is_api = origin["DomainName"] == "${Api}.execute-api.eu-central-1.amazonaws.com";
        faults.extend(unless(
            id,
            [
                (["documents", "api"].contains(&id) && is_api, "is no API of buyers"),
                (origin["OriginCustomHeaders"] == header, "is not sent the secret in use"),
                (custom["OriginProtocolPolicy"] == "https-only", "is asked in plaintext"),
                (custom["OriginSSLProtocols"] == json!(["TLSv1.2"]), "is asked with an old TLS"),
                (number(&custom["OriginReadTimeout"]) == Some(30), "is not waited for"),
            ],
        ));
    }
    for name in ["EdgeSecretA", "EdgeSecretB"] {
        let made = &stack.resources[name].properties["GenerateSecretString"];
        let is_long = number(&made["PasswordLength"]) == Some(64);
        // It stands in JSON, and in a header.
        let is_plain = is_true(&made["ExcludePunctuation"]);
        faults.extend(unless(name, [(is_long && is_plain, "is no secret for a header")]));
    }
    let is_revised = text(&config(stack)["Comment"]).ends_with("(secrets 1)");
    faults.extend(unless("Distribution", [(is_revised, "does not notice another secret")]));
    faults
}

fn distribution(stack: &Stack) -> Vec<String> {
    let config = config(stack);
    let parameter = |name: &str| stack.parameters[name].as_str();
    let given = |name: &str| Some(parameter(name)).filter(|value| !value.is_empty());
    let certificate = match given("DomainName") {
        Some(_) => {
            json!({ "AcmCertificateArn": parameter("CertificateArn"), "MinimumProtocolVersion": "TLSv1.2_2021", "SslSupportMethod": "sni-only" })
        }
        None => json!({ "CloudFrontDefaultCertificate": true }),
    };
    let errors: BTreeMap<u64, &Value> = config["CustomErrorResponses"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|error| (number(&error["ErrorCode"]).unwrap_or(0), error))
        .collect();
    let is_short = |error: &&Value| number(&error["ErrorCachingMinTTL"]) <= Some(1);
    let is_own = |error: &&Value| error.get("ResponsePagePath").is_none();
    let shield = match given("OriginShieldRegion") {
        Some(region) => json!({ "Enabled": true, "OriginShieldRegion": region }),
        None => json!({ "Enabled": false }),
    };
    let origins = config["Origins"].as_array().unwrap();
    let is_shielded = |origin: &Value| match text(&origin["Id"]) {
        "documents" => origin["OriginShield"] == shield,
        _ => origin["OriginShield"].is_null(),
    };
    let is_compressed = |behaviour: &Value| {
        behaviour["CachePolicyId"] == CACHING_DISABLED || is_true(&behaviour["Compress"])
    };
    let encodings = stack.all("AWS::CloudFront::CachePolicy").all(|(_, policy)| {
        let key = &policy["CachePolicyConfig"]["ParametersInCacheKeyAndForwardedToOrigin"];
        is_true(&key["EnableAcceptEncodingGzip"]) && is_true(&key["EnableAcceptEncodingBrotli"])
    });
    unless(
        "Distribution",
        [
            (config["ViewerCertificate"] == certificate, "has another certificate, or an old TLS"),
            (config["Aliases"][0].as_str() == given("DomainName"), "has another name"),
            (config["HttpVersion"] == "http2and3", "does not speak HTTP/2 and 3"),
            (is_true(&config["IPV6Enabled"]), "does not speak IPv6"),
            (config["PriceClass"] == parameter("PriceClass"), "is elsewhere"),
            (config["WebACLId"].as_str() == given("WebAclArn"), "has another web ACL"),
            (config["Logging"]["Bucket"].as_str() == given("EdgeLogsBucket"), "logs elsewhere"),
            (config["Logging"]["IncludeCookies"] != json!(true), "logs cookies"),
            (errors.keys().copied().eq(KEPT_ERRORS), "keeps some errors for ten seconds"),
            (errors.values().all(is_short), "keeps errors for long"),
            (errors.values().all(is_own), "has a page in place of the API's answer"),
            (origins.iter().all(is_shielded), "shields what gains nothing, or does not shield"),
            (behaviours(stack).all(is_compressed) && encodings, "does not compress"),
        ],
    )
}

/// The behaviours, the default too.
fn behaviours(stack: &Stack) -> impl Iterator<Item = &Value> {
    let config = config(stack);
    let others = config["CacheBehaviors"].as_array().into_iter().flatten();
    others.chain([&config["DefaultCacheBehavior"]])
}

/// The headers that a policy adds, by their names.
fn headers(policy: &Value) -> BTreeMap<String, String> {
    let config = &policy["ResponseHeadersPolicyConfig"];
    let security = &config["SecurityHeadersConfig"];
    let mut headers = BTreeMap::new();
    let mut add = |name: &str, value: String, says: &Value| {
        if is_true(&says["Override"]) {
            headers.insert(name.to_owned(), value);
        }
    };
    let [content, referrer, strict] =
        ["ContentTypeOptions", "ReferrerPolicy", "StrictTransportSecurity"]
            .map(|name| &security[name]);
    add("x-content-type-options", "nosniff".to_owned(), content);
    add("referrer-policy", text(&referrer["ReferrerPolicy"]).to_owned(), referrer);
    let below = if is_true(&strict["IncludeSubdomains"]) { "; includeSubDomains" } else { "" };
    let seconds = number(&strict["AccessControlMaxAgeSec"]).unwrap_or(0);
    add("strict-transport-security", format!("max-age={seconds}{below}"), strict);
    for item in config["CustomHeadersConfig"]["Items"].as_array().into_iter().flatten() {
        add(text(&item["Header"]), text(&item["Value"]).to_owned(), item);
    }
    headers
}

/// The headers of `pages/headers.json` at a path, without the policy that comes with each page.
fn listed(path: &str) -> BTreeMap<String, String> {
    let table: Value = serde_json::from_str(&read("pages/headers.json")).unwrap();
    let here = table["paths"].as_array().unwrap().iter().filter(|one| one["path"] == path);
    let all = [&table].into_iter().chain(here);
    let rows = all.flat_map(|one| one["headers"].as_array().unwrap());
    let header = |row: &Value| (text(&row["name"]).to_owned(), text(&row["value"]).to_owned());
    rows.map(header).filter(|(_, value)| value != "{policy}").collect()
}

fn pages(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    for path in [
        "/",
        "/s/hall",
        "/s/hall/room",
        "/scan",
        "/assets/a-1.js",
        "/config.json",
        "/robots.txt",
        "/api/orders",
        "/api/sales",
    ] {
        let policy = stack.behind(&behaviour(stack, path)["ResponseHeadersPolicyId"]);
        let sent = policy.map(|(_, policy)| headers(policy)).unwrap_or_default();
        faults.extend(unless(path, [(sent == listed(path), "has other headers")]));
    }
    for path in [
        "/",
        "/s/",
        "/s/hall/",
        "/s/hall/room",
        "/s/hall/seats",
        "/scan",
        "/signed-in",
        "/nothing",
        "/robots.txt",
        "/api",
        "/assets/a-1.js",
    ] {
        let is_asset = path.starts_with("/assets/");
        let function = |event: &str, name: &str| {
            let arn = format!("${{{name}.FunctionMetadata.FunctionARN}}");
            json!({ "EventType": event, "FunctionARN": arn })
        };
        let both = [("viewer-request", "EdgePageRequest"), ("viewer-response", "EdgePageResponse")];
        let expected = json!(both.map(|(event, name)| function(event, name)));
        let behaviour = behaviour(stack, path);
        let functions = &behaviour["FunctionAssociations"];
        let has_its_own = if is_asset { functions.is_null() } else { *functions == expected };
        faults.extend(unless(
            path,
            [
                (behaviour["TargetOriginId"] == "pages", "is no page"),
                (behaviour["AllowedMethods"] == json!(["GET", "HEAD"]), "takes more than GET"),
                (behaviour["CachePolicyId"] == CACHING_OPTIMIZED, "is kept in another way"),
                (behaviour["OriginRequestPolicyId"].is_null(), "sends the bucket what is private"),
                (behaviour["ViewerProtocolPolicy"] == "redirect-to-https", "comes in plaintext"),
                (has_its_own, "is not led to its file, or has not its policy"),
            ],
        ));
    }
    faults.extend(bucket(stack));
    faults
}

fn bucket(stack: &Stack) -> Vec<String> {
    let of = |name: &str| &stack.resources[name].properties;
    let bucket = of("PagesBucket");
    let blocks =
        ["BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"];
    let is_private =
        blocks.iter().all(|name| is_true(&bucket["PublicAccessBlockConfiguration"][name]));
    let rule = &bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"][0];
    let is_encrypted = rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256";
    let statements = &of("PagesBucketPolicy")["PolicyDocument"]["Statement"];
    let all = json!(["${PagesBucket.Arn}", "${PagesBucket.Arn}/*"]);
    let distribution = "arn:aws:cloudfront::000000000000:distribution/${Distribution}";
    let expected = json!([
        {
            "Sid": "Distribution", "Effect": "Allow", "Action": "s3:GetObject",
            "Principal": { "Service": "cloudfront.amazonaws.com" },
            "Resource": "${PagesBucket.Arn}/*",
            "Condition": { "StringEquals": { "aws:SourceArn": distribution } },
        },
        {
            "Sid": "Encrypted", "Effect": "Deny", "Action": "s3:*", "Principal": "*", "Resource": all,
            "Condition": { "Bool": { "aws:SecureTransport": "false" } },
        },
    ]);
    let signs = &of("PagesAccess")["OriginAccessControlConfig"]["SigningBehavior"];
    let mut origins = config(stack)["Origins"].as_array().unwrap().iter();
    let pages = origins.find(|origin| origin["Id"] == "pages").unwrap();
    let buckets = stack.all("AWS::S3::Bucket").count();
    unless(
        "PagesBucket",
        [
            (buckets == 1, "is not the only bucket"),
            (is_private, "may become public"),
            (is_encrypted, "is not encrypted"),
            (*statements == expected, "is read by others"),
            (signs == "always", "is asked without a signature"),
            (pages["OriginAccessControlId"] == "${PagesAccess.Id}", "is asked without a signature"),
        ],
    )
}

#[test]
fn a_pattern_fits_as_cloudfront_says() {
    for (pattern, path, is_fit) in [
        ("/api/*", "/api/", true),
        ("/api/*", "/api", false),
        ("/api/sales/*", "/api/sales/a/b", true),
        ("/api/sales/*/room", "/api/sales/a/room", true),
        ("/api/sales/*/room", "/api/sales/a/room/log", false),
        ("/api/sales/*/room", "/api/sales/room", false),
        ("/api/sales/*/room/leaves/*", "/api/sales/a/room/leaves/all/7", true),
        ("/api/sales", "/api/sales", true),
        ("/api/sales", "/api/sales/a", false),
        ("*.js", "/a/b.js", true),
        ("/s/?*", "/s/a", true),
        ("/s/?*", "/s/abc", true),
        ("/s/?*", "/s/", false),
        ("/s/*/*", "/s/a/", true),
        ("/s/*/*", "/s/a", false),
    ] {
        assert_eq!(fits(pattern, path), is_fit, "{pattern} {path}");
    }
}
