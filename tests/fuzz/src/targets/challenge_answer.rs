//! Answers to challenges: which nobody but us can have made, and which say whose they are.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::domain::admission::challenge::Pressure;
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::sale::challenge::{ChallengeKind, ChallengeSettings, Stage};
use serde_json::Value;
use shared::challenges::keys::ChallengeKeys;
use shared::challenges::proof_of_work::solve;
use shared::challenges::{Bound, Challenge, ChallengeAnswer, MAX_ANSWER_BYTES, authentic, make};
use shared::http::checks::parse;

use crate::sample::NOW;
use crate::{Outcome, Target, must, signed};

pub(crate) const CHALLENGE_ANSWER: Target = Target {
    name: "challenge-answer",
    about: "The input as the JSON of an answer; as the payload of a proof of work, signed by our key; and \
            as edits of a good payload and a good token. An answer is taken as one to a challenge of ours \
            only if our key signed that for this sale, stage and buyer, and it has not run out.",
    run,
};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const BUYER: &str = "alice";
const SALE: &str = "hall";

struct Rig {
    keys: ChallengeKeys,
    sale: SaleId,
    user: UserId,
    /// A solved proof of work.
    payload: String,
    /// A token of an image.
    token: String,
}

static RIG: LazyLock<Rig> = LazyLock::new(|| {
    let keys = ChallengeKeys::new([SECRET]);
    let sale = must(SaleId::new(SALE), "the sale");
    let user = must(UserId::new(BUYER), "the buyer");
    let bound = Bound { sale: &sale, stage: Stage::Visit, user: &user };
    let made = |kind: &str| {
        let file = format!(r#"{{"at":["visit"],"kind":"{kind}","easiest_ms":100}}"#);
        let settings: ChallengeSettings = must(parse(file.as_bytes()), "the settings");
        let calm = Pressure::from_rate(0, 1);
        must(make(&keys, &settings, bound, calm, NOW), "a challenge is made")
    };
    let (Challenge::ProofOfWork { altcha, .. }, Challenge::Image { token, .. }) =
        (made("proof_of_work"), made("image"))
    else {
        panic!("a challenge is of the kind that was asked for");
    };
    let payload = must(solve(&altcha, 100), "it is solved");
    Rig { keys, sale, user, payload, token }
});

fn run(input: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(input);
    let read: Result<ChallengeAnswer, _> = parse(input);
    let mut accepted = read.is_ok_and(|answer| {
        let kinds = [ChallengeKind::ProofOfWork, ChallengeKind::Image, ChallengeKind::Question];
        kinds.into_iter().any(|kind| is_taken(kind, Some(&answer)))
    });
    let payload = |payload: &str| answer(None, payload);
    assert!(
        is_taken(ChallengeKind::ProofOfWork, payload(&RIG.payload).as_ref()),
        "our own is refused"
    );
    accepted |= is_taken(ChallengeKind::ProofOfWork, payload(&STANDARD.encode(input)).as_ref());
    accepted |= is_taken(ChallengeKind::ProofOfWork, payload(&text).as_ref());

    let token = |token: &str| answer(Some(token), "ACD47");
    assert!(is_taken(ChallengeKind::Image, token(&RIG.token).as_ref()), "our own is refused");
    assert!(
        !is_taken(ChallengeKind::Question, token(&RIG.token).as_ref()),
        "it is of another kind"
    );
    accepted |= is_taken(ChallengeKind::Image, token(&text).as_ref());
    let edited = signed::edited(&RIG.token, input);
    let is_same = edited == RIG.token;
    assert!(
        is_same || !is_taken(ChallengeKind::Image, token(&edited).as_ref()),
        "{edited} was not signed"
    );

    // Text of JSON with edits still says the same where nothing that is signed was touched.
    let plain = must(STANDARD.decode(&RIG.payload), "base64");
    let edited = signed::edited(&String::from_utf8_lossy(&plain), input);
    if is_taken(ChallengeKind::ProofOfWork, payload(&STANDARD.encode(&edited)).as_ref()) {
        let value =
            |text: &[u8]| must(serde_json::from_slice::<Value>(text), "what is taken is JSON");
        let (ours, theirs) = (value(&plain), value(edited.as_bytes()));
        for name in
            ["algorithm", "cost", "data", "expiresAt", "keyPrefix", "keySignature", "nonce", "salt"]
        {
            let part = |value: &Value| value["challenge"]["parameters"][name].clone();
            assert_eq!(part(&ours), part(&theirs), "{name} is not what we signed");
        }
    }
    Outcome::from_accepted(accepted)
}

/// An answer as a body has it; none if it is too long to be read.
fn answer(token: Option<&str>, answer: &str) -> Option<ChallengeAnswer> {
    let json = serde_json::json!({ "token": token, "answer": answer }).to_string();
    let read = parse(json.as_bytes()).ok();
    let lengths = [token.unwrap_or_default(), answer].map(|text| text.chars().count());
    assert_eq!(read.is_some(), lengths.iter().all(|length| *length <= MAX_ANSWER_BYTES));
    read
}

/// True if an answer is one to a challenge of ours, for this buyer here, now; and then for nobody else,
/// and at no other stage, and not for ever.
fn is_taken(kind: ChallengeKind, answer: Option<&ChallengeAnswer>) -> bool {
    let Some(answer) = answer else { return false };
    let Rig { keys, sale, user, .. } = &*RIG;
    let bound = Bound { sale, stage: Stage::Visit, user };
    let is_taken = |keys: &ChallengeKeys, bound, seconds| {
        authentic(keys, kind, bound, answer, NOW.plus_seconds(seconds)).is_ok()
    };
    if !is_taken(keys, bound, 0) {
        return false;
    }
    let bob = must(UserId::new("bob"), "another buyer");
    let elsewhere = must(SaleId::new("other"), "another sale");
    assert!(!is_taken(keys, Bound { user: &bob, ..bound }, 0), "it is another buyer's too");
    assert!(!is_taken(keys, Bound { sale: &elsewhere, ..bound }, 0), "it is for another sale too");
    assert!(!is_taken(keys, Bound { stage: Stage::Join, ..bound }, 0), "it is for joining too");
    assert!(!is_taken(keys, bound, 301), "it does not run out");
    let foreign = ChallengeKeys::new([&b"another secret of 32 bytes......"[..]]);
    assert!(!is_taken(&foreign, bound, 0), "any key signs it");
    true
}
