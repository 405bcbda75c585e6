//! Proofs of work and tokens: what is accepted, and what never is.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::keys::ChallengeKeys;
use super::proof_of_work::{Chance, ProofOfWork};
use super::token::Right;
use super::{Bound, Defect, MAX_ANSWER_BYTES, Ticket, proof_of_work, question, token};
use engine::domain::admission::challenge::Attempts;
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::challenge::{ChallengeKind, ChallengeSettings, Stage};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_999);
const END: Timestamp = Timestamp::from_ms(1_800_000_300_000);
const OLD: &[u8] = b"the old key of thirty-two bytes.";
const NEW: &[u8] = b"the new key of thirty-two bytes.";
const FEW: Attempts = Attempts { min: 3, max: 6 };

/// A sale, a stage and a buyer.
struct Client(SaleId, Stage, UserId);

impl Client {
    fn new(sale: &str, stage: Stage, user: &str) -> Self {
        Self(SaleId::new(sale).unwrap(), stage, UserId::new(user).unwrap())
    }

    fn bound(&self) -> Bound<'_> {
        Bound { sale: &self.0, stage: self.1, user: &self.2 }
    }
}

fn alice() -> Client {
    Client::new("g1", Stage::Visit, "auth0|张三 \"a\\b\"")
}

/// Everybody whose challenge another one's must not be, with what is said then.
fn others() -> [(Client, Defect); 3] {
    [
        (Client::new("g2", Stage::Visit, alice().2.as_str()), Defect::OtherUse),
        (Client::new("g1", Stage::Join, alice().2.as_str()), Defect::OtherUse),
        (Client::new("g1", Stage::Visit, "bob"), Defect::OtherBuyer),
    ]
}

fn keys(secrets: &[&[u8]]) -> ChallengeKeys {
    ChallengeKeys::new(secrets.iter().copied())
}

fn work(secrets: &[&[u8]], counter: u8) -> ProofOfWork {
    let counter = [0, 0, 0, 0, 0, 0, 0, counter];
    let chance = Chance { nonce: [7; 16], salt: [9; 16], counter };
    proof_of_work::make(&keys(secrets), alice().bound(), FEW, END, chance).unwrap()
}

fn check_work(payload: &str) -> Result<Ticket, Defect> {
    proof_of_work::check(&keys(&[NEW, OLD]), alice().bound(), payload, NOW)
}

/// A payload with a change.
fn changed(payload: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_slice(&STANDARD.decode(payload).unwrap()).unwrap();
    change(&mut value);
    STANDARD.encode(value.to_string())
}

#[test]
fn a_solved_proof_of_work_is_accepted_until_it_has_run_out_by_either_key() {
    let payload = proof_of_work::solve(&work(&[NEW], 0), 100).unwrap();
    let ticket = check_work(&payload).unwrap();
    assert_eq!((ticket.id.len(), ticket.expires_at), (64, END));
    let at = |now| proof_of_work::check(&keys(&[NEW]), alice().bound(), &payload, now);
    assert!(at(END.plus_ms(-1)).is_ok());
    assert_eq!(at(END), Err(Defect::Expired));
    let by_old = proof_of_work::solve(&work(&[OLD, NEW], 0), 100).unwrap();
    assert!(check_work(&by_old).is_ok());
    let without = proof_of_work::check(&keys(&[NEW]), alice().bound(), &by_old, NOW);
    assert_eq!(without, Err(Defect::NotOurs));
    // What the widget adds is no part of what is signed.
    let timed = changed(&payload, |payload| {
        payload["solution"]["time"] = json!(12.5);
        payload["solution"]["counter"] = json!(2);
    });
    assert_eq!(check_work(&timed), Ok(ticket));
}

#[test]
fn the_counter_is_from_the_least_to_the_most_attempts() {
    let attempts = |counter: u8| {
        let challenge = work(&[NEW], counter);
        (1..=10).find(|most| proof_of_work::solve(&challenge, *most).is_ok()).unwrap()
    };
    assert_eq!([0, 1, 2, 3, 4, 255].map(attempts), [3, 4, 5, 6, 3, 6]);
}

#[test]
fn another_sale_stage_or_buyer_may_not_use_a_solution() {
    let payload = proof_of_work::solve(&work(&[NEW], 0), 100).unwrap();
    for (other, defect) in others() {
        let found = proof_of_work::check(&keys(&[NEW]), other.bound(), &payload, NOW);
        assert_eq!(found, Err(defect));
    }
    // Said to be for the other, it is not what was signed.
    let moved = changed(&payload, |payload| {
        payload["challenge"]["parameters"]["data"]["buyer"] = json!("bob");
    });
    let bob = Client::new("g1", Stage::Visit, "bob");
    let found = proof_of_work::check(&keys(&[NEW]), bob.bound(), &moved, NOW);
    assert_eq!(found, Err(Defect::NotOurs));
}

#[test]
fn a_wrong_solution_or_a_changed_challenge_is_refused() {
    let challenge = work(&[NEW], 3);
    let good = proof_of_work::solve(&challenge, 100).unwrap();
    // The key of another counter, as one finds it who stops early; and the published half alone.
    let early = proof_of_work::solve(&work(&[NEW], 2), 100).unwrap();
    let early = changed(&good, |payload| {
        let other: Value = serde_json::from_slice(&STANDARD.decode(&early).unwrap()).unwrap();
        payload["solution"] = other["solution"].clone();
    });
    let parameter = |name: &'static str, value: Value| {
        changed(&good, move |payload| payload["challenge"]["parameters"][name] = value)
    };
    let solution =
        |value: Value| changed(&good, move |payload| payload["solution"]["derivedKey"] = value);
    let prefix: Value = serde_json::from_slice(&STANDARD.decode(&good).unwrap()).unwrap();
    let prefix = prefix["challenge"]["parameters"]["keyPrefix"].clone();
    let own_signature = {
        let tag = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"mine");
        json!(crate::hex::to_hex(aws_lc_rs::hmac::sign(&tag, b"").as_ref()))
    };
    let cases = [
        ("another counter", early, Defect::Wrong),
        ("the published half", solution(prefix), Defect::Wrong),
        ("no key", solution(json!("")), Defect::Wrong),
        ("no digits", solution(json!("xy")), Defect::Malformed),
        ("not text", solution(json!(7)), Defect::Malformed),
        ("easier", parameter("cost", json!(1)), Defect::NotOurs),
        ("longer", parameter("expiresAt", json!(1_900_000_000)), Defect::NotOurs),
        ("a prefix of one's own", parameter("keyPrefix", json!("")), Defect::NotOurs),
        ("a signature of one's own", parameter("keySignature", own_signature), Defect::NotOurs),
        ("another salt", parameter("salt", json!("00")), Defect::NotOurs),
        (
            "no signature",
            changed(&good, |p| p["challenge"]["signature"] = json!("")),
            Defect::NotOurs,
        ),
        ("foreign", proof_of_work::solve(&work(&[b"x"], 0), 100).unwrap(), Defect::NotOurs),
        ("not base64", "{}".to_owned(), Defect::Malformed),
        ("not JSON", STANDARD.encode("x"), Defect::Malformed),
        ("another shape", STANDARD.encode("{}"), Defect::Malformed),
        ("long", "A".repeat(MAX_ANSWER_BYTES + 4), Defect::Malformed),
    ];
    for (name, payload, defect) in cases {
        assert_eq!(check_work(&payload), Err(defect), "{name}");
    }
    assert!(check_work(&good).is_ok(), "the control is a good solution");
}

/// A challenge of ours that `altcha-lib` 2.8.0 of npm has solved, and then verified with our keys.
#[test]
fn what_the_library_of_npm_solved_is_accepted() {
    let payload = include_str!("altcha-lib.txt").trim();
    let solved = proof_of_work::check(&keys(&[NEW]), alice().bound(), payload, NOW).unwrap();
    let ours = check_work(&proof_of_work::solve(&work(&[NEW], 3), 100).unwrap()).unwrap();
    assert_eq!(solved, ours);
}

fn image(secrets: &[&[u8]], answer: &str) -> String {
    let right = Right::Text(answer.to_owned());
    token::sign(&keys(secrets), alice().bound(), &right, &[5; 16], END).unwrap()
}

fn check_token(token: &str, kind: ChallengeKind) -> Result<Ticket, Defect> {
    let keys = keys(&[NEW, OLD]);
    token::check(&keys, alice().bound(), kind, token, NOW).map(|(ticket, _)| ticket)
}

#[test]
fn a_token_is_bound_to_its_answer_whatever_its_case() {
    for token in [image(&[NEW], "ACD47"), image(&[OLD], "ACD47")] {
        let keys = keys(&[NEW, OLD]);
        let bound = alice();
        let (_, checked) =
            token::check(&keys, bound.bound(), ChallengeKind::Image, &token, NOW).unwrap();
        assert!(checked.is_answered_by("ACD47") && checked.is_answered_by(" acd47 "));
        for wrong in ["", "ACD4", "ACD474", "ACD4 7"] {
            assert!(!checked.is_answered_by(wrong), "{wrong:?}");
        }
    }
}

/// What a token shows, and that it is the same for no two challenges with one answer.
#[test]
fn nobody_reads_or_tries_an_answer_by_the_token() {
    let claims = |token: &str| -> Value {
        let part = token.split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let token = image(&[NEW], "ACD47");
    let found = claims(&token);
    assert!(!found.to_string().to_lowercase().contains("acd47"));
    let names: Vec<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
    let all = ["answer", "aud", "exp", "iss", "jti", "kind", "sale", "stage", "sub"];
    assert_eq!(names, all);
    // By everything that is in the token and no key, the right guess is like a wrong one.
    let tag = URL_SAFE_NO_PAD.decode(found["answer"].as_str().unwrap()).unwrap();
    let jti = found["jti"].as_str().unwrap();
    let digest =
        |text: String| aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    for text in ["acd47".to_owned(), format!("{jti}.acd47"), format!("{jti}acd47")] {
        assert_ne!(digest(text.clone()).as_ref(), tag);
        let by_nothing = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"");
        assert_ne!(aws_lc_rs::hmac::sign(&by_nothing, text.as_bytes()).as_ref(), tag);
    }
    let again = token::sign(
        &keys(&[NEW]),
        alice().bound(),
        &Right::Text("ACD47".to_owned()),
        &[6; 16],
        END,
    );
    assert_ne!(claims(&again.unwrap())["answer"], found["answer"]);
    // A question's has its index only.
    let asked = token::sign(&keys(&[NEW]), alice().bound(), &Right::Question(3), &[5; 16], END);
    let asked = claims(&asked.unwrap());
    assert_eq!((&asked["question"], asked.get("answer")), (&json!(3), None));
}

#[test]
fn a_token_of_another_sale_stage_buyer_kind_or_time_is_refused() {
    let token = image(&[NEW], "ACD47");
    let keys_of = keys(&[NEW]);
    for (other, defect) in others() {
        let found = token::check(&keys_of, other.bound(), ChallengeKind::Image, &token, NOW);
        assert_eq!(found.map(|(ticket, _)| ticket), Err(defect));
    }
    assert!(check_token(&token, ChallengeKind::Image).is_ok());
    assert_eq!(check_token(&token, ChallengeKind::Question), Err(Defect::OtherKind));
    let bound = alice();
    let late = token::check(&keys_of, bound.bound(), ChallengeKind::Image, &token, END);
    assert_eq!(late.map(|(ticket, _)| ticket), Err(Defect::Expired));
    let (signed, _) = token.rsplit_once('.').unwrap();
    for forged in [
        image(&[b"x"], "ACD47"),
        format!("{signed}."),
        signed.to_owned(),
        String::new(),
        "a.b.c".to_owned(),
    ] {
        assert_eq!(check_token(&forged, ChallengeKind::Image), Err(Defect::NotOurs), "{forged}");
    }
    let long = "a".repeat(MAX_ANSWER_BYTES + 1);
    assert_eq!(check_token(&long, ChallengeKind::Image), Err(Defect::Malformed));
}

#[test]
fn a_question_is_answered_by_any_of_its_answers_and_by_no_other_ones() {
    let settings: ChallengeSettings = serde_json::from_value(json!({
        "at": ["visit"], "kind": "question", "questions": [
            { "question": "Our city?", "answers": ["Porto", "Oporto"] },
            { "question": "Our river?", "answers": ["Rio Douro"] }
        ]
    }))
    .unwrap();
    let is_right = |index, answer| question::is_right(&settings, index, answer);
    assert!(is_right(Some(0), "porto ") && is_right(Some(0), "OPORTO"));
    assert!(is_right(Some(1), "rio  douro"));
    assert!(!is_right(Some(1), "Porto") && !is_right(Some(0), "") && !is_right(Some(2), "Porto"));
    assert!(!is_right(None, "Porto"));
    let drawn = |last: u8| question::draw(&settings, [0, 0, 0, 0, 0, 0, 0, last]);
    assert_eq!(
        [0, 1, 2].map(|last| drawn(last).map(|(index, _)| index)),
        [Some(0), Some(1), Some(0)]
    );
    let none = ChallengeSettings { questions: Vec::new(), ..settings.clone() };
    assert_eq!(question::draw(&none, [0; 8]), None);
}

#[test]
fn without_a_key_nothing_is_made_and_nothing_shows_one() {
    let none = keys(&[]);
    assert!(none.is_empty());
    let bound = alice();
    let chance = Chance { nonce: [7; 16], salt: [9; 16], counter: [0; 8] };
    assert!(proof_of_work::make(&none, bound.bound(), FEW, END, chance).is_err());
    assert!(token::sign(&none, bound.bound(), &Right::Provider, &[5; 16], END).is_err());
    let payload = proof_of_work::solve(&work(&[NEW], 0), 100).unwrap();
    let found = proof_of_work::check(&none, bound.bound(), &payload, NOW);
    assert_eq!(found, Err(Defect::NotOurs));
    assert_eq!(format!("{:?}", keys(&[NEW, OLD])), "ChallengeKeys(2)");
}
