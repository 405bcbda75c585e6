//! What `sam local invoke --env-vars` gives the functions: only variables that have a name in the
//! template.

use std::collections::BTreeMap;
use std::process::Command;

use local::environment::Variables;
use serde_json::json;
use tempfile::TempDir;

use super::rie::FUNCTIONS;
use super::watch::engine;
use text::root;

/// Which variables each function would not get of a template.
fn missing(template: &str, variables: &Variables) -> BTreeMap<String, Vec<String>> {
    let directory = TempDir::new().unwrap();
    let (at, env_vars) = (directory.path().join("template.yaml"), directory.path().join("json"));
    std::fs::write(&at, template).unwrap();
    std::fs::write(&env_vars, json!({ "Parameters": variables }).to_string()).unwrap();
    let said = Command::new(root().join(".onsale/tools/sam/bin/python"))
        .args(["-c", include_str!("sam_local.py")])
        .args([&at, &env_vars])
        .env("AWS_DEFAULT_REGION", "us-east-1")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&said.stderr);
    serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("make setup? {errors}"))
}

#[tokio::test]
async fn sam_local_gives_a_function_all_but_the_secrets_of_others() {
    let (_engine, variables) = engine().await;
    let template = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    let secrets = [
        "ONSALE_ADMISSION_KEYS",
        "ONSALE_ATTENDEE_KEYS",
        "ONSALE_CALLBACK_KEYS",
        "ONSALE_CALLBACK_SOURCES",
        "ONSALE_CHALLENGE_KEYS",
        "ONSALE_CONNECT_ORIGINS",
        "ONSALE_EDGE_SECRETS",
        "ONSALE_EVENT_BUS",
        "ONSALE_PAYMENT_SECRETS",
        "ONSALE_PROVIDER_KEYS",
        "ONSALE_SITEVERIFY_SECRETS",
        "ONSALE_SITE_ORIGIN",
        "ONSALE_TICKET_KEYS",
        "ONSALE_WEBHOOK_ADDRESSES",
        "ONSALE_WEBHOOK_KEYS",
    ];
    let [
        admission,
        attendee,
        key,
        sources,
        challenge,
        connect,
        edge,
        bus,
        payment,
        provider,
        siteverify,
        site,
        tickets,
        addresses,
        webhooks,
    ] = secrets;
    let missing_of_each = missing(&template, &variables);
    assert_eq!(missing_of_each.len(), FUNCTIONS.len());
    for (function, missing) in missing_of_each {
        let own: &[&str] = match function.as_str() {
            "TokenGateFunction" | "WaitingRoomFunction" => {
                &[admission, challenge, edge, siteverify]
            }
            "ReserveFunction" => &[admission, attendee, edge],
            "OperatorFunction" => &[attendee, tickets, edge],
            "OrdersFunction" => &[tickets, edge],
            "SalesFunction" => &[connect, edge, site],
            "CancelFunction"
            | "PayFromWalletFunction"
            | "RefundOrderFunction"
            | "FiguresFunction" => &[edge],
            "StartPaymentFunction" => &[edge, provider],
            "SendEventsFunction" => &[addresses, webhooks, bus],
            "PayCallbackFunction" => &[payment],
            "TakeCallbackFunction" => &[key, sources, payment],
            "ClosePaymentsFunction"
            | "ReadCapturesFunction"
            | "ReadBillsFunction"
            | "RefundFunction" => &[provider],
            _ => &[],
        };
        let others = secrets.into_iter().filter(|secret| !own.contains(secret));
        assert_eq!(missing, others.collect::<Vec<_>>(), "{function}");
    }
    // A name that the template lacks is not given, though the file has it.
    let endpoint = "ONSALE_DYNAMODB_ENDPOINT";
    let lines = template.lines().filter(|line| !line.contains(endpoint));
    let planted = lines.collect::<Vec<_>>().join("\n");
    let missing = missing(&planted, &variables);
    assert!(missing.values().all(|missing| missing.iter().any(|name| name == endpoint)));
}
