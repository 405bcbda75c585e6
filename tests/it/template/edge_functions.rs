//! The code that CloudFront runs, run by Node.js as it stands in the template.

use std::io::Write as _;
use std::process::{Command, Stdio};

use lambda_http::{Body, Request};
use serde_json::{Value, json};
use shared::http::edge::{SECRET_HEADER, viewer};
use shared::http::routes::matched;
use shared::runtime::edge::EdgeSecrets;

use super::stack::{Edit, Stack, Variant, translate};
use text::read;

/// Runs `handler` of the code with each event, and prints what it returns.
const RUNNER: &str = r#"
const { code, events } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const handler = new Function(`"use strict"; ${code}; return handler;`)();
process.stdout.write(JSON.stringify(events.map((event) => handler(event))));
"#;
/// The most bytes of a function's code. Source: the quotas of CloudFront.
const MAX_CODE_BYTES: usize = 10_240;

/// What a function's code makes of events; `None` where there is no Node.js.
fn run(stack: &Stack, name: &str, events: &[Value]) -> Option<Vec<Value>> {
    let function = &stack.resources[name].properties;
    let code = function["FunctionCode"].as_str().unwrap();
    assert_eq!(function["FunctionConfig"]["Runtime"], "cloudfront-js-2.0");
    assert!(code.len() < MAX_CODE_BYTES, "{name} has {} bytes", code.len());
    let node = Command::new("node")
        .args(["-e", RUNNER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut node) = node else {
        text::skipped(format_args!("there is no Node.js for {name}: scripts/setup installs it"));
        return None;
    };
    let input = json!({ "code": code, "events": events }).to_string();
    node.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{name} throws");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Requests for pages, with what is none among them.
const PATHS: [&str; 33] = [
    "/",
    "",
    "//",
    "/s",
    "/s/",
    "/s/g35",
    "/s/g35/",
    "/s//room",
    "/s/g35/room",
    "/s/g35/room/",
    "/s/g35/seats",
    "/s/g35/other",
    "/S/g35",
    "/s/%2F/room",
    "/s/a%20b",
    "/s/../room",
    "/s/{sale}",
    "/checkout/42",
    "/checkout",
    "/my/orders",
    "/my/tickets/42",
    "/my/tickets",
    "/operator",
    "/operator/desk",
    "/operator/",
    "/scan",
    "/signed-in",
    "/index.html",
    "/404.html",
    "/csp.json",
    "/config.json",
    "/robots.txt",
    "/sw.js",
];

/// The file of a path by `pages/routes.json`, matched as the engine matches its own routes.
fn file(path: &str) -> String {
    let table: Value = serde_json::from_str(&read("pages/routes.json")).unwrap();
    if ["/config.json", "/robots.txt", "/sw.js"].contains(&path) {
        return path.to_owned();
    }
    let mut pages = table["pages"].as_array().unwrap().iter();
    let fits = |page: &&Value| matched(page["path"].as_str().unwrap(), path).is_some();
    let page = pages.find(fits).map_or("404.html", |page| page["file"].as_str().unwrap());
    format!("/{page}")
}

fn request(uri: &str) -> Value {
    let headers = json!({ "x-onsale-viewer": { "value": "192.0.2.1" } });
    let request = json!({ "method": "GET", "uri": uri, "querystring": {}, "headers": headers });
    json!({ "version": "1.0", "viewer": { "ip": "2001:db8::7" }, "request": request })
}

/// The stack of production, and of each template with a mistake.
fn stacks(mistakes: &[Edit]) -> Vec<Stack> {
    let mut variants = vec![Variant::from_stage("prod")];
    variants.extend(mistakes.iter().map(|mistake| Variant::from_stage("prod").edited(*mistake)));
    let translations = translate(&variants);
    translations.iter().map(|one| Stack::from_translation(one.as_ref().unwrap())).collect()
}

const fn edit(after: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { after, from, to }
}

#[test]
fn a_path_leads_to_the_file_of_the_table() {
    let code = "  EdgePageRequest:";
    let mistakes = [
        edit(code, "\"seats.html\"", "\"room.html\""),
        edit(code, "          [\"/scan\", \"scan.html\"],\n", ""),
        edit(code, "found[index] !== \"\"", "true"),
        edit(code, "wanted.length === found.length && ", ""),
        edit(code, "\"404.html\"", "\"index.html\""),
        edit(code, ", \"/sw.js\"]", "]"),
    ];
    let events = PATHS.map(request);
    let expected: Vec<String> = PATHS.map(file).into();
    assert_eq!(file("/s/g35/room"), "/room.html");
    for (index, stack) in stacks(&mistakes).iter().enumerate() {
        let Some(answers) = run(stack, "EdgePageRequest", &events) else { return };
        let files: Vec<&str> = answers.iter().map(|one| one["uri"].as_str().unwrap()).collect();
        // And each mistake is found.
        assert_eq!(files == expected, index == 0, "{index}: {files:?}");
    }
}

#[test]
fn the_prefix_is_taken_off_and_the_viewer_named() {
    let code = "  EdgeApiRequest:";
    let mistakes = [
        edit(code, "request.uri.slice(\"/api\".length)", "request.uri.replace(\"/api\", \"/\")"),
        edit(code, "request.uri.slice(\"/api\".length)", "request.uri.split(\"/api\").join(\"\")"),
        edit(
            code,
            "= { value: event.viewer.ip }",
            "= request.headers[\"x-onsale-viewer\"] || { value: event.viewer.ip }",
        ),
    ];
    let paths = [
        "/api/sales",
        "/api/sales/api/room",
        "/api/",
        "/api//api/sales",
        "/api/orders/42",
        "/s/g35/room/plain",
        "/s/api",
        "/sitemap.xml",
    ];
    let expected = [
        "/sales",
        "/sales/api/room",
        "/",
        "//api/sales",
        "/orders/42",
        "/s/g35/room/plain",
        "/s/api",
        "/sitemap.xml",
    ];
    let events = paths.map(request);
    for (index, stack) in stacks(&mistakes).iter().enumerate() {
        let Some(answers) = run(stack, "EdgeApiRequest", &events) else { return };
        let is_right = answers.iter().zip(expected).all(|(answer, expected)| {
            let viewer = json!({ "value": "2001:db8::7" });
            answer["uri"] == expected && answer["headers"]["x-onsale-viewer"] == viewer
        });
        assert_eq!(is_right, index == 0, "{index}: {answers:?}");
    }
}

/// What the function says of who asks is what the engine reads, and the secret's header is the distribution's.
#[test]
fn the_engine_knows_the_viewer_by_what_the_edge_says() {
    let stack = stacks(&[]).remove(0);
    let secret = "A".repeat(64);
    let edge = EdgeSecrets::new(vec![secret.clone()]).unwrap();
    for address in ["2001:db8::7", "192.0.2.7"] {
        let mut event = request("/api/orders");
        event["viewer"]["ip"] = json!(address);
        let Some(answers) = run(&stack, "EdgeApiRequest", &[event]) else { return };
        let mut forwarded = Request::new(Body::Empty);
        let origins = &stack.resources["Distribution"].properties["DistributionConfig"]["Origins"];
        let mut origins = origins.as_array().unwrap().iter();
        let api = origins.find(|origin| origin["Id"] == "api").unwrap();
        let name = api["OriginCustomHeaders"][0]["HeaderName"].as_str().unwrap().to_lowercase();
        assert_eq!(name, SECRET_HEADER);
        forwarded.headers_mut().insert(SECRET_HEADER, secret.parse().unwrap());
        for (name, header) in answers[0]["headers"].as_object().unwrap() {
            let name: http::HeaderName = name.parse().unwrap();
            forwarded
                .headers_mut()
                .insert(name, header["value"].as_str().unwrap().parse().unwrap());
        }
        assert_eq!(viewer(&edge, &forwarded), Some(address.parse().unwrap()));
    }
}

/// An answer of the bucket, with what its object has for metadata.
fn answer(status: u16, metadata: &Value) -> Value {
    let mut headers = json!({ "content-type": { "value": "text/html; charset=utf-8" } });
    for (name, value) in metadata.as_object().unwrap() {
        headers[format!("x-amz-meta-{name}")] = json!({ "value": value });
    }
    let response = json!({ "statusCode": status, "statusDescription": "", "headers": headers });
    json!({ "version": "1.0", "request": {}, "response": response })
}

#[test]
fn a_page_has_the_status_and_the_policy_that_its_object_says() {
    let policy = "default-src 'self'; connect-src 'self' https://issuer.example";
    let missing = json!({ "policy": policy, "status": "404" });
    let events = [
        answer(200, &json!({ "policy": policy })),
        answer(200, &missing),
        answer(200, &json!({})),
        answer(304, &json!({})),
        answer(304, &missing),
    ];
    let none = "default-src 'none'; frame-ancestors 'none'";
    let expected =
        [(200, Some(policy)), (404, Some(policy)), (200, Some(none)), (304, None), (304, None)];
    let code = "  EdgePageResponse:";
    let mistakes = [
        edit(code, "response.statusCode = 404", "response.statusCode = 200"),
        edit(code, "policy || \"default-src 'none'; frame-ancestors 'none'\"", "policy"),
        edit(code, "said(\"policy\")", "said(\"csp\")"),
        edit(code, "delete headers[\"x-amz-meta-\" + name]", "headers.none"),
        edit(code, "if (response.statusCode === 200)", "if (response.statusCode < 400)"),
    ];
    for (index, stack) in stacks(&mistakes).iter().enumerate() {
        let Some(answers) = run(stack, "EdgePageResponse", &events) else { return };
        let is_right = answers.iter().zip(expected).all(|(answer, (status, policy))| {
            let headers = answer["headers"].as_object().unwrap();
            let sent = headers.get("content-security-policy");
            answer["statusCode"] == status
                && sent.and_then(|sent| sent["value"].as_str()) == policy
                && !headers.keys().any(|name| name.starts_with("x-amz-meta-"))
        });
        assert_eq!(is_right, index == 0, "{index}: {answers:?}");
    }
}
