//! `scripts/deploy-pages`, with a program in place of the AWS CLI that writes down how it is called.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::stack::{Variant, translate};
use text::root;

/// Answers `describe-stacks`, and writes down every call, its arguments apart by tabs; keeps what is put as
/// `config.json` and `robots.txt`.
const AWS: &str = r#"#!/bin/sh
for argument in "$@"; do printf '%s\t' "$argument"; done >> "$ROOM/calls"
echo >> "$ROOM/calls"
case "$1 $2" in
  "cloudformation describe-stacks") cat "$ROOM/outputs.json" ;;
  "s3api put-object") case "$6" in config.json | robots.txt) cp "$8" "$ROOM/$6" ;; esac ;;
esac
"#;

/// The output of a stack, as the AWS CLI prints it.
fn outputs(config: &Value) -> Value {
    let all = [
        ("PagesBucketName", "bucket".to_owned()),
        ("DistributionId", "EDFDVBD6EXAMPLE".to_owned()),
        ("SiteUrl", "https://tickets.example".to_owned()),
        ("PagesConfig", config.to_string()),
    ];
    all.map(|(name, value)| json!({ "OutputKey": name, "OutputValue": value })).into()
}

fn build(dist: &Path) {
    fs::create_dir_all(dist.join("assets")).unwrap();
    let assets = ["assets/a-1.js", "assets/favicon.svg", "assets/sale.css", "assets/sale.js"];
    for name in ["index.html", "room.html", "404.html", "robots.txt", "sw.js"].iter().chain(&assets)
    {
        fs::write(dist.join(name), name).unwrap();
    }
    let policy = "default-src 'self'; script-src 'self' 'sha256-a='; connect-src 'self'{connect}";
    fs::write(dist.join("csp.json"), json!({ "policy": policy }).to_string()).unwrap();
    fs::copy(root().join("pages/routes.json"), dist.join("routes.json")).unwrap();
}

/// Runs the script in a folder; what it said, and the calls.
fn deploy(room: &Path, config: &Value) -> (Output, Vec<Vec<String>>) {
    deploy_with(room, config, &[])
}

fn deploy_with(room: &Path, config: &Value, options: &[&str]) -> (Output, Vec<Vec<String>>) {
    let bin = room.join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("aws"), AWS).unwrap();
    fs::set_permissions(bin.join("aws"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(room.join("outputs.json"), outputs(config).to_string()).unwrap();
    let output = Command::new(root().join("scripts/deploy-pages"))
        .args(["onsale-prod", "--dist"])
        .arg(room.join("dist"))
        // By its path, so that no other can be meant.
        .arg("--aws")
        .arg(bin.join("aws"))
        .args(options)
        .env("ROOM", room)
        .output()
        .unwrap();
    let calls = fs::read_to_string(room.join("calls")).unwrap_or_default();
    let call = |line: &str| line.trim_end_matches('\t').split('\t').map(str::to_owned).collect();
    (output, calls.lines().map(call).collect())
}

/// The value behind an option.
fn after<'c>(call: &'c [String], option: &str) -> &'c str {
    let at = call.iter().position(|argument| argument == option).unwrap();
    &call[at + 1]
}

fn told(connect: &str) -> Value {
    json!({
        "buyers": { "issuer": "https://issuer.example/pool", "client_id": "pages" },
        "operators": { "issuer": "https://staff.example/", "client_id": "desk" },
        "payments": "stripe:page,wechat:code", "connect": connect, "domain": "tickets.example",
    })
}

#[test]
fn pages_go_last_each_with_its_policy_and_are_forgotten_at_the_edge() {
    let room = tempfile::tempdir().unwrap();
    build(&room.path().join("dist"));
    let told = told("https://login.example,https://issuer.example");
    let (output, calls) = deploy(room.path(), &told);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let sync = calls.iter().position(|call| call[1] == "sync").unwrap();
    assert_eq!(after(&calls[sync], "--cache-control"), "public, max-age=31536000, immutable");
    let puts: BTreeMap<&str, usize> = calls
        .iter()
        .enumerate()
        .filter(|(_, call)| call[1] == "put-object")
        .map(|(at, call)| (after(call, "--key"), at))
        .collect();
    let same = ["assets/favicon.svg", "assets/sale.css", "assets/sale.js"];
    let names = ["404.html", same[0], same[1], same[2], "config.json", "index.html"];
    let names = names.into_iter().chain(["robots.txt", "room.html", "sw.js"]);
    assert!(puts.keys().copied().eq(names) && puts.values().all(|at| *at > sync));
    // What has the same name in every build is asked for again, and is there before the pages.
    for name in ["favicon.svg", "sale.css", "sale.js"] {
        let at = calls[sync].iter().position(|argument| argument == name).unwrap();
        assert_eq!(calls[sync][at - 1], "--exclude");
        assert!(puts[format!("assets/{name}").as_str()] < puts["index.html"]);
    }
    let robots = fs::read_to_string(room.path().join("robots.txt")).unwrap();
    assert_eq!(robots, "robots.txt\nSitemap: https://tickets.example/sitemap.xml\n");
    assert!(puts["config.json"] < puts["index.html"], "the settings are there before the pages");
    let policy = "default-src 'self'; script-src 'self' 'sha256-a='; connect-src 'self' \
                  https://issuer.example https://staff.example https://login.example";
    for (name, at) in &puts {
        let call = &calls[*at];
        let mut expected = json!({ "policy": policy });
        if *name == "404.html" {
            expected["status"] = json!("404");
        }
        if same.contains(name) {
            assert!(!call.contains(&"--metadata".to_owned()), "{name}: it would become a header");
        } else {
            let metadata: Value = serde_json::from_str(after(call, "--metadata")).unwrap();
            assert_eq!(metadata, expected, "{name}");
        }
        let caching = "public, max-age=0, s-maxage=300, stale-if-error=86400";
        assert_eq!(after(call, "--cache-control"), caching, "{name}");
    }
    let kind = |name: &str| after(&calls[puts[name]], "--content-type");
    assert_eq!(
        (kind("room.html"), kind("sw.js"), kind("robots.txt"), kind("assets/sale.css")),
        (
            "text/html; charset=utf-8",
            "text/javascript; charset=utf-8",
            "text/plain; charset=utf-8",
            "text/css; charset=utf-8"
        )
    );

    let [.., last] = calls.as_slice() else { panic!("no calls") };
    assert_eq!(
        last[..4],
        ["cloudfront", "create-invalidation", "--distribution-id", "EDFDVBD6EXAMPLE"]
    );
    for path in [
        "/",
        "/index.html",
        "/s/*",
        "/room.html",
        "/checkout/*",
        "/my/tickets/*",
        "/config.json",
        "/404.html",
        "/robots.txt",
        "/assets/sale.js",
    ] {
        assert!(last[5..].contains(&path.to_owned()), "{path}: {last:?}");
    }
    let hashed = |path: &String| path.starts_with("/assets") && !same.contains(&&path[1..]);
    assert!(!last.iter().any(|path| path == "/*" || hashed(path)));
}

/// Before functions that render the sale page are deployed, their script is there, and the old pages stay.
#[test]
fn assets_alone_leave_the_pages_as_they_are() {
    let room = tempfile::tempdir().unwrap();
    build(&room.path().join("dist"));
    let (output, calls) = deploy_with(room.path(), &told(""), &["--assets-only"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let calls: Vec<&str> = calls.iter().map(|call| call[1].as_str()).collect();
    let put = "put-object";
    assert_eq!(calls, ["describe-stacks", "sync", put, put, put, "create-invalidation"]);
}

#[test]
fn the_settings_are_those_of_the_stack() {
    let room = tempfile::tempdir().unwrap();
    build(&room.path().join("dist"));
    deploy(room.path(), &told(""));
    let config = fs::read_to_string(room.path().join("config.json")).unwrap();
    let scopes = "openid onsale/watch onsale/operate onsale/refund onsale/scan";
    let expected = json!({
        "buyers": { "issuer": "https://issuer.example/pool", "client_id": "pages", "scope": "openid" },
        "operators": { "issuer": "https://staff.example/", "client_id": "desk", "scope": scopes },
        "insecure_issuers": false,
        "payments": [
            { "provider": "stripe", "method": "page" }, { "provider": "wechat", "method": "code" },
        ],
    });
    assert_eq!(serde_json::from_str::<Value>(&config).unwrap(), expected);
}

#[test]
fn nothing_is_put_without_pages_or_with_a_policy_that_is_too_long() {
    let room = tempfile::tempdir().unwrap();
    let (output, calls) = deploy(room.path(), &told(""));
    assert!(!output.status.success() && calls.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("npm run build"));

    build(&room.path().join("dist"));
    let origins: Vec<String> =
        (0..100).map(|index| format!("https://login-{index}.example")).collect();
    let (output, calls) = deploy(room.path(), &told(&origins.join(",")));
    assert!(!output.status.success());
    assert!(!calls.iter().any(|call| call[1] == "put-object"), "{calls:?}");
}

/// What the template says of the pages, with the parameters put in.
fn of_the_template() -> Value {
    let variant = Variant::from_stage("prod")
        .with("BuyersClientId", "pages")
        .with("OperatorsClientId", "desk")
        .with("PagesPayments", "stripe:page")
        .with("ConnectOrigins", "https://login.example");
    let translation = translate(&[variant]).remove(0).unwrap();
    let output = &translation["template"]["Outputs"]["PagesConfig"]["Value"]["Fn::Sub"];
    let parameters = translation["parameters"].as_object().unwrap();
    let put = |text: String, (name, value): (&String, &Value)| {
        text.replace(&format!("${{{name}}}"), value.as_str().unwrap())
    };
    let text = parameters.iter().fold(output.as_str().unwrap().to_owned(), put);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn what_the_template_says_is_what_the_command_reads() {
    let told = of_the_template();
    let room = tempfile::tempdir().unwrap();
    build(&room.path().join("dist"));
    let (output, _) = deploy(room.path(), &told);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let config = fs::read_to_string(room.path().join("config.json")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    for (role, client) in [("buyers", "pages"), ("operators", "desk")] {
        assert_eq!(config[role]["client_id"], client);
        assert!(config[role]["issuer"].as_str().unwrap().starts_with("https://"));
    }
    assert_ne!(config["buyers"]["issuer"], config["operators"]["issuer"]);
    assert_eq!(config["payments"], json!([{ "provider": "stripe", "method": "page" }]));
}
