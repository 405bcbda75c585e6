//! The variables and secrets that functions are given.

use serde_json::{Value, json};
use shared::redis::{Bounds, Connection};
use shared::runtime::config::Config;
use shared::runtime::functions::QueueName;

use super::{Check, edit, is_true, is_without_redis, number, text, unless};
use crate::template::stack::{Stack, name_in};
use text::read;

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "every function starts with the variables that it is given",
        faults: environment,
        with: &[],
        mistakes: &[
            edit("Globals:", "        ONSALE_LOAD_QUEUE_URL: !Ref LoadQueue\n", ""),
            edit("Globals:", "ONSALE_REDIS_CLUSTER: \"true\"", "ONSALE_REDIS_CLUSTER: \"yes\""),
            edit("Globals:", "\"rediss://:{{", "\"redis://:{{"),
            edit("Globals:", "\"${Stage}-onsale-\"", "\"${Stage}-\""),
            edit(
                "Globals:",
                "ONSALE_EXPIRY_QUEUE_URL: !Ref ExpiryQueue",
                "ONSALE_EXPIRY_QUEUE_URL: !Ref SyncQueue",
            ),
            edit("  ReserveFunction:", "ONSALE_ADMISSION_KEYS", "ONSALE_ADMISSION_KEY"),
            edit("  PayCallbackFunction:", "\"stripe:{{", "\"{{"),
            edit("  AdmissionKey:", "PasswordLength: 64", "PasswordLength: 32"),
            edit("  AdmissionKey:", "PasswordLength: 64", "PasswordLength: 63"),
            edit("  ReserveFunction:", "ONSALE_ATTENDEE_KEYS", "ONSALE_ATTENDEE_KEY"),
            edit("  AttendeeKey:", "PasswordLength: 64", "PasswordLength: 32"),
            edit("  TokenGateFunction:", "ONSALE_CHALLENGE_KEYS", "ONSALE_CHALLENGE_KEY"),
            edit("  ChallengeKey:", "PasswordLength: 64", "PasswordLength: 32"),
            edit("  OrdersFunction:", "ONSALE_TICKET_KEYS", "ONSALE_TICKET_KEY"),
            edit("  TicketKey:", "PasswordLength: 64", "PasswordLength: 31"),
            edit("  CachePassword:", "ExcludePunctuation: true", "ExcludePunctuation: false"),
        ],
    },
    Check {
        rule: "secrets come from Secrets Manager, and only to who needs them",
        faults: secrets,
        with: &[(
            "ProviderKeysSecretArn",
            "arn:aws:secretsmanager:eu-central-1:000000000000:secret:mine",
        )],
        mistakes: &[
            edit(
                "  ReserveFunction:",
                "made:{{resolve:secretsmanager:${AdmissionKey}}}",
                "made:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            ),
            edit(
                "  ReserveFunction:",
                "made:{{resolve:secretsmanager:${AttendeeKey}}}",
                "made:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            ),
            edit("  OrdersFunction:", "          ONSALE_REDIS_URL", "          OTHER"),
            edit(
                "Globals:",
                "        ONSALE_METRICS",
                "        ONSALE_PROVIDER_KEYS: !Sub \"{{resolve:secretsmanager:${ProviderKeysSecretArn}}}\"\n        ONSALE_METRICS",
            ),
            edit(
                "  RefundFunction:",
                "ONSALE_PROVIDER_KEYS: !If [HasProviderKeys,",
                "ONSALE_PROVIDER_KEYS: !If [IsServerless,",
            ),
            edit("  ReserveFunction:", " (secrets ${SecretsRevision})", ""),
        ],
    },
];

/// What a variable says once CloudFormation has put the secrets and addresses in.
fn resolved(stack: &Stack, variable: &str, value: &str) -> String {
    let mut text = value.to_owned();
    while let Some(start) = text.find("{{resolve:secretsmanager:") {
        let end = start + text[start..].find("}}").unwrap() + 2;
        // A reference within it ends with a brace of its own.
        let end = end + usize::from(text[end..].starts_with('}'));
        let secret = match name_in(&text[start + "{{resolve:secretsmanager:".len()..end]) {
            Some(name) => generated(&stack.resources[name].properties),
            None => match variable {
                "ONSALE_ADMISSION_KEYS" | "ONSALE_ATTENDEE_KEYS" | "ONSALE_CHALLENGE_KEYS" => {
                    format!("mine:{}", "A".repeat(64))
                }
                "ONSALE_TICKET_KEYS" | "ONSALE_WEBHOOK_KEYS" => format!("[\"{}\"]", "t".repeat(64)),
                "ONSALE_SITEVERIFY_SECRETS" => "turnstile:secret".to_owned(),
                _ => "stripe:secret".to_owned(),
            },
        };
        text.replace_range(start..end, &secret);
    }
    while let (Some(start), Some(end)) = (text.find("${"), text.find('}')) {
        let is_port = text[start..end].ends_with("Port");
        text.replace_range(start..=end, if is_port { "6379" } else { "there" });
    }
    text
}

/// A secret as Secrets Manager makes it: of letters and digits, or of anything.
fn generated(secret: &Value) -> String {
    let how = &secret["GenerateSecretString"];
    let letters = if is_true(&how["ExcludePunctuation"]) { "Ab3" } else { "A/#@" };
    let length = number(&how["PasswordLength"]).unwrap_or(32);
    letters.chars().cycle().take(usize::try_from(length).unwrap()).collect()
}

/// The variables that `docs/configuration.md` says a function needs: for all, and for some.
fn needed(binary: &str) -> Vec<String> {
    let docs = read("docs/configuration.md");
    let rows = docs.lines().filter(|line| line.starts_with("| `ONSALE_"));
    let of = |row: &str| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (variable, who) = (cells.next()?.trim_matches('`').to_owned(), cells.next()?);
        let is_secret_of_provider = variable == "ONSALE_PROVIDER_KEYS";
        let needs = who == "yes" || who.split(", ").any(|one| one == format!("`{binary}`"));
        (needs && !is_secret_of_provider).then_some(variable)
    };
    rows.filter_map(of).collect()
}

fn environment(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    for (binary, _, function) in stack.functions() {
        let variables = function["Environment"]["Variables"].as_object().unwrap();
        let value = |name: &str| {
            let value = variables.get(name)?;
            Some(resolved(stack, name, text(value)))
        };
        for variable in needed(binary) {
            faults.extend(unless(
                binary,
                [(value(&variable).is_some(), &format!("lacks {variable}"))],
            ));
        }
        let stage = &stack.parameters["Stage"];
        let queue = |queue: QueueName| (queue.url_variable(), format!("${{{queue:?}Queue}}"));
        let others = [
            ("ONSALE_TABLE_PREFIX", format!("{stage}-onsale-")),
            ("ONSALE_STAGE", stage.clone()),
            ("ONSALE_METRICS", "emf".to_owned()),
            ("ONSALE_REDIS_CLUSTER", "true".to_owned()),
        ];
        for (variable, says) in QueueName::ALL.map(queue).into_iter().chain(others) {
            let is = variables.get(variable) == Some(&json!(says));
            faults.extend(unless(binary, [(is, &format!("is given another {variable}"))]));
        }
        match Config::read(value) {
            Err(defect) => faults.push(format!("{binary}: {defect}")),
            Ok(config) => {
                let connection = Connection::new(&config.redis.topology, Bounds::default());
                let speaks_tls =
                    value("ONSALE_REDIS_URL").is_some_and(|url| url.starts_with("rediss://"));
                let has = |variable: &str, is_there: bool| {
                    is_there || !needed(binary).contains(&variable.to_owned())
                };
                faults.extend(unless(
                    binary,
                    [
                        (connection.is_ok() && speaks_tls, "cannot read the address of the cache"),
                        (
                            has("ONSALE_ADMISSION_KEYS", !config.admission.keys.is_empty()),
                            "has no admission key",
                        ),
                        (
                            has("ONSALE_ATTENDEE_KEYS", !config.attendees.keys.is_empty()),
                            "has no attendee key",
                        ),
                        (
                            has("ONSALE_CHALLENGE_KEYS", !config.challenges.keys.is_empty()),
                            "has no challenge key",
                        ),
                        (
                            has("ONSALE_TICKET_KEYS", !config.tickets.is_empty()),
                            "has no ticket key",
                        ),
                        (
                            has("ONSALE_WEBHOOK_KEYS", !config.webhooks.keys.0.is_empty()),
                            "has no webhook key",
                        ),
                        (
                            has("ONSALE_PAYMENT_SECRETS", !config.payments.secrets.is_empty()),
                            "has no payment secret",
                        ),
                        (
                            has("ONSALE_CALLBACK_KEYS", !config.callbacks.keys.is_empty()),
                            "has no key of the entry",
                        ),
                    ],
                ));
            }
        }
    }
    faults
}

fn secrets(stack: &Stack) -> Vec<String> {
    let has_keys = !stack.parameters["ProviderKeysSecretArn"].is_empty();
    let has_way_out = stack.parameters["WayOut"] != "none";
    let verifies = has_way_out && !stack.parameters["SiteverifySecretsSecretArn"].is_empty();
    let mut faults = Vec::new();
    for (binary, _, function) in stack.functions() {
        let variables = function["Environment"]["Variables"].as_object().unwrap();
        let holds = |name: &str| {
            variables
                .get(name)
                .is_some_and(|value| text(value).contains("{{resolve:secretsmanager:"))
        };
        let asks = ["start-payment", "close-payments", "read-captures", "read-bills", "refund"]
            .contains(&binary);
        let is_revised = text(&function["Description"]).contains("(secrets 1)");
        faults.extend(unless(
            binary,
            [
                (
                    holds("ONSALE_ADMISSION_KEYS")
                        == ["reserve", "token-gate", "waiting-room"].contains(&binary),
                    "has admission keys for nothing, or none, or in plaintext",
                ),
                (
                    holds("ONSALE_ATTENDEE_KEYS")
                        == ["reserve", "operator"].contains(&binary),
                    "has attendee keys for nothing, or none, or in plaintext",
                ),
                (
                    holds("ONSALE_CHALLENGE_KEYS")
                        == ["token-gate", "waiting-room"].contains(&binary),
                    "has challenge keys for nothing, or none, or in plaintext",
                ),
                (
                    holds("ONSALE_TICKET_KEYS") == ["orders", "operator"].contains(&binary),
                    "has ticket keys for nothing, or none, or in plaintext",
                ),
                (
                    holds("ONSALE_WEBHOOK_KEYS") == (binary == "send-events"),
                    "has webhook keys for nothing, or none, or in plaintext",
                ),
                (
                    holds("ONSALE_SITEVERIFY_SECRETS")
                        == (["token-gate", "waiting-room"].contains(&binary) && verifies),
                    "has the secrets of providers of challenges for nothing, or none, or in plaintext",
                ),
                (
                    holds("ONSALE_PAYMENT_SECRETS")
                        == ["pay-callback", "take-callback"].contains(&binary),
                    "has payment secrets for nothing, or none, or in plaintext",
                ),
                (
                    holds("ONSALE_CALLBACK_KEYS") == (binary == "take-callback"),
                    "has the key of the entry for nothing, or none, or in plaintext",
                ),
                (
                    holds("ONSALE_PROVIDER_KEYS") == (asks && has_keys),
                    "has provider keys for nothing, or none, or in plaintext",
                ),
                (
                    holds("ONSALE_REDIS_URL") != is_without_redis(binary),
                    "has the cache's password for nothing, or none, or in plaintext",
                ),
                (is_revised, "does not notice that a secret has changed"),
            ],
        ));
    }
    faults
}
