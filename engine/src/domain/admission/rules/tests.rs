//! The rules one by one, and attacks on counters that are kept as Redis keeps them.

use super::*;

/// The counters of a sale.
#[derive(Default)]
struct Counts(HashMap<(String, i64), u64>, LimitSettings);

impl Counts {
    /// Counts a request as the adapter does.
    fn ask(&mut self, book: &RuleBook, client: &Client, now_ms: i64) -> Verdict {
        let now = Timestamp::from_ms(now_ms);
        let plan = match book.plan(&self.1, client, now) {
            Ok(plan) => plan,
            Err(refusal) => return Verdict::Refused(refusal),
        };
        let counts: Vec<u64> = plan
            .checks
            .iter()
            .map(|check| {
                let (name, adds) = match &check.counter {
                    Counter::Buyer => (format!("buyer {}", client.buyer), 1),
                    Counter::Asks => (format!("asks {}", client.buyer), 1),
                    Counter::GivenUp => (format!("given up {}", client.buyer), 0),
                    Counter::Device(hint) => (format!("device {hint}"), 1),
                    Counter::Address(sender) => (format!("address {sender}"), 1),
                    Counter::Rule(rule) => (format!("rule {rule}"), 1),
                };
                let count = self.0.entry((name, check.window(now))).or_default();
                *count += adds;
                *count
            })
            .collect();
        plan.judge(&counts, now)
    }
}

fn client(buyer: &str, address: &str) -> Client {
    let (buyer, address) = (UserId::new(buyer).unwrap(), Some(address.parse().unwrap()));
    Client { buyer, address, device: None }
}

fn rule(rule: &str, subject: Subject, action: Action) -> Rule {
    let text = format!("{rule} says no");
    Rule { rule: RuleId::new(rule).unwrap(), subject, action, text, until: None }
}

fn network(text: &str) -> Subject {
    Subject::Address(text.parse().unwrap())
}

fn buyer(text: &str) -> Subject {
    Subject::Buyer(UserId::new(text).unwrap())
}

fn refused_by(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Refused(refusal) => Some(refusal.by.as_str()),
        Verdict::Pass | Verdict::Harder(_) => None,
    }
}

/// A thousand accounts behind one address ask for a minute, twice a second each, which is as much as one
/// buyer may: how hard challenges became, and how many requests were refused.
fn attack(counts: &mut Counts) -> (u8, u32) {
    let (book, mut hardest, mut refused) = (RuleBook::default(), 0, 0);
    for round in 0..120 {
        for account in 0..1000 {
            let asks = client(&format!("bot-{account}"), "198.51.100.9");
            match counts.ask(&book, &asks, round * 500) {
                Verdict::Pass => assert!(hardest == 0, "once harder, harder for all of them"),
                Verdict::Harder(level) => hardest = hardest.max(level),
                Verdict::Refused(refusal) => {
                    assert_eq!(refusal.by, RefusedBy::BuiltIn(BuiltIn::Address));
                    refused += 1;
                }
            }
        }
    }
    (hardest, refused)
}

#[test]
fn a_thousand_accounts_behind_one_address_are_challenged_and_refused_if_the_sale_says_so() {
    let (book, mut counts) = (RuleBook::default(), Counts::default());
    // 120,000 requests are 200 times 600.
    assert_eq!(attack(&mut counts), (MAX_LEVEL, 0));
    // Who comes from elsewhere, or in the next minute, notices nothing.
    assert_eq!(counts.ask(&book, &client("bot-1", "192.0.2.1"), 60_000), Verdict::Pass);
    assert_eq!(counts.ask(&book, &client("alice", "192.0.2.2"), 0), Verdict::Pass);
    let limits = LimitSettings { address_per_minute: 50_000, ..LimitSettings::default() };
    assert_eq!(attack(&mut Counts(HashMap::new(), limits)), (7, 70_000));
}

#[test]
fn one_account_from_a_thousand_addresses_has_the_limit_of_one_buyer() {
    let (book, mut counts) = (RuleBook::default(), Counts::default());
    let mut passed = 0;
    for index in 0..1000 {
        let address = format!("198.51.{}.{}", index / 250, index % 250);
        match counts.ask(&book, &client("bot", &address), index * 50) {
            Verdict::Refused(refusal) => {
                assert_eq!(refusal.by, RefusedBy::BuiltIn(BuiltIn::Buyer));
                assert_eq!(refusal.retry_ms, Some(60_000 - index * 50));
            }
            Verdict::Pass => passed += 1,
            Verdict::Harder(_) => panic!("no address has many"),
        }
    }
    assert_eq!(passed, 120);
}

#[test]
fn five_thousand_honest_people_behind_one_address_are_never_refused() {
    let (book, mut counts) = (RuleBook::default(), Counts::default());
    // Each asks once a second, as often as `Retry-After` lets them.
    for second in 0..60 {
        for person in 0..5000 {
            let asks = client(&format!("person-{person}"), "203.0.113.1");
            let verdict = counts.ask(&book, &asks, second * 1000 + person % 1000);
            assert_eq!(refused_by(&verdict), None, "{person} in second {second}");
        }
    }
}

#[test]
fn who_gives_up_order_after_order_comes_to_an_end() {
    let (book, mut counts) = (RuleBook::default(), Counts::default());
    let asks = client("bot", "198.51.100.9");
    let mut given_up = |number: u64| {
        counts.0.insert(("given up bot".to_owned(), 0), number);
        counts.ask(&book, &asks, 0)
    };
    assert_eq!(given_up(19), Verdict::Pass);
    let Verdict::Refused(refusal) = given_up(20) else { panic!("the twentieth is the last") };
    assert_eq!((refusal.by.as_str(), refusal.retry_ms), ("given-up-in-sale", None));
}

#[test]
fn sites_of_ipv6_count_as_one_sender() {
    let (book, mut counts) = (RuleBook::default(), Counts::default());
    let mut last = Verdict::Pass;
    for index in 0..601 {
        last = counts.ask(&book, &client(&index.to_string(), &format!("2001:db8::{index:x}")), 0);
    }
    assert_eq!(last, Verdict::Harder(1));
    assert_eq!(counts.ask(&book, &client("x", "2001:db8:0:1::1"), 0), Verdict::Pass);
}

#[test]
fn a_rule_that_denies_comes_first_and_the_first_by_id_is_named() {
    let book = RuleBook::new(vec![
        rule("b", buyer("mallory"), Action::Deny),
        rule("a", network("198.51.100.0/24"), Action::Deny),
        rule("c", network("198.51.100.0/24"), Action::Limit { count: 1, seconds: 60 }),
    ]);
    let mut counts = Counts::default();
    let mut by = |buyer: &str, address: &str| {
        let verdict = counts.ask(&book, &client(buyer, address), 0);
        refused_by(&verdict).map(str::to_owned)
    };
    assert_eq!(by("mallory", "198.51.100.9").as_deref(), Some("a"));
    assert_eq!(by("mallory", "192.0.2.1").as_deref(), Some("b"));
    assert_eq!(by("alice", "192.0.2.1"), None);
    assert_eq!(by("alice", "198.51.100.10").as_deref(), Some("a"));
    assert!(counts.0.keys().all(|(name, _)| name != "rule c"), "who is denied is not counted");
}

#[test]
fn an_operators_limit_takes_the_place_of_the_built_in_one_and_the_smallest_network_decides() {
    let limit = |count| Action::Limit { count, seconds: 10 };
    let book = RuleBook::new(vec![
        rule("a-wide", network("198.51.0.0/16"), limit(1)),
        rule("stadium", network("198.51.100.0/24"), limit(100_000)),
    ]);
    let mut counts = Counts::default();
    for index in 0..70_000 {
        let asks = client(&format!("fan-{}", index % 5000), "198.51.100.9");
        assert_eq!(counts.ask(&book, &asks, 0), Verdict::Pass, "{index}");
    }
    assert_eq!(counts.ask(&book, &client("x", "198.51.7.1"), 0), Verdict::Pass);
    // All of the network together, and until its window ends.
    let verdict = counts.ask(&book, &client("y", "198.51.7.2"), 2500);
    let by = RefusedBy::Limited(RuleId::new("a-wide").unwrap());
    let text = "a-wide says no".to_owned();
    assert_eq!(verdict, Verdict::Refused(Refusal { by, text, retry_ms: Some(7500) }));
}

#[test]
fn harder_is_the_most_that_any_rule_says_and_a_rule_ends() {
    let device = Subject::Device(DeviceHint::new("headless").unwrap());
    let ended = rule("ended", buyer("alice"), Action::Deny);
    let book = RuleBook::new(vec![
        rule("a", network("0.0.0.0/0"), Action::Harder(2)),
        rule("b", device, Action::Harder(5)),
        Rule { until: Some(Timestamp::from_ms(1000)), ..ended },
    ]);
    let mut counts = Counts::default();
    let alice = client("alice", "192.0.2.1");
    assert_eq!(refused_by(&counts.ask(&book, &alice, 999)), Some("ended"));
    assert_eq!(counts.ask(&book, &alice, 1000), Verdict::Harder(2));
    let headless = Client { device: Some(DeviceHint::new("headless").unwrap()), ..alice.clone() };
    assert_eq!(counts.ask(&book, &headless, 1000), Verdict::Harder(5));
    // Nobody is refused, or counted, for what they do not say.
    let unknown = Client { address: None, device: None, ..alice };
    assert_eq!(counts.ask(&book, &unknown, 1000), Verdict::Pass);
}

#[test]
fn challenges_double_with_the_count() {
    let plan = RuleBook::default()
        .plan(&LimitSettings::default(), &client("a", "192.0.2.1"), Timestamp::from_ms(0))
        .unwrap();
    let of_address = plan.checks.last().unwrap();
    for (count, level) in [
        (1, 0),
        (600, 0),
        (601, 1),
        (1199, 1),
        (1200, 2),
        (2400, 3),
        (60_000, 7),
        (76_800, 8),
        (300_000, 8),
    ] {
        assert_eq!(of_address.level(count), level, "{count}");
    }
}

#[test]
fn what_means_nothing_is_no_rule() {
    let sound = rule("a", buyer("b"), Action::Deny);
    assert_eq!(sound.check(), Ok(()));
    let with = |action: Action| Rule { action, ..sound.clone() }.check();
    let said = |text: &str| Rule { text: text.to_owned(), ..sound.clone() }.check();
    assert_eq!(with(Action::Limit { count: 1, seconds: 86_400 }), Ok(()));
    for (count, seconds) in [(0, 60), (1, 0), (1, 86_401)] {
        assert_eq!(with(Action::Limit { count, seconds }), Err(Unsound::Limit));
    }
    assert_eq!(with(Action::Harder(8)), Ok(()));
    assert_eq!(
        (with(Action::Harder(0)), with(Action::Harder(9))),
        (Err(Unsound::Level), Err(Unsound::Level))
    );
    for text in ["", " ", "a\nb", &"x".repeat(201)] {
        assert_eq!(said(text), Err(Unsound::Text), "{text:?}");
    }
    for limit in BuiltIn::ALL {
        let taken = Rule { rule: RuleId::new(limit.as_str()).unwrap(), ..sound.clone() };
        assert_eq!(taken.check(), Err(Unsound::BuiltIn));
    }
}

#[test]
fn a_rule_is_written_as_it_is_read() {
    let limit = Action::Limit { count: 5, seconds: 10 };
    let text = serde_json::to_string(&rule("a", network("2001:db8::/32"), limit)).unwrap();
    let written = r#"{"rule":"a","subject":{"address":"2001:db8::/32"},"action":{"limit":{"count":5,"seconds":10}},"text":"a says no"}"#;
    assert_eq!(text, written);
    let read: Rule = serde_json::from_str(&text).unwrap();
    assert_eq!(read, rule("a", network("2001:db8::/32"), limit));
    assert!(!format!("{:?}", client("alice", "192.0.2.1")).contains("192.0.2.1"));
}
