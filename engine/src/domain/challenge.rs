//! Challenges: what a sale may ask of a buyer that people do once and bots do thousands of times.
//!
//! The rules only: where a sale asks, of which kind, how hard, and what counts as the same answer. The
//! adapters that make and check challenges are in `shared::challenges`.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bounds of the time that a proof of work takes on a slow phone, in milliseconds.
pub const PROOF_OF_WORK_MS: RangeInclusive<u32> = 100..=MAX_PROOF_OF_WORK_MS;
/// Longest time that a proof of work may take on a slow phone, in milliseconds.
pub const MAX_PROOF_OF_WORK_MS: u32 = 3000;
/// Most questions of a sale, and most answers of a question.
pub const MAX_QUESTIONS: usize = 100;
/// Most bytes of a question or of one of its answers.
pub const MAX_QUESTION_BYTES: usize = 200;
/// Most bytes of the public key of an account at a provider of challenges; theirs have 20 to 40.
pub const MAX_SITE_KEY_BYTES: usize = 100;
/// Seconds for which a challenge may be answered.
pub const VALID_SECONDS: u32 = 300;

/// Doublings after which a proof of work is as hard as it may be, however easy it was: 100 ms are 3,200.
const MAX_DOUBLINGS: u8 = 5;

/// SHA-256 hashes a second of a slow phone, with all of its workers: a Samsung Galaxy A11 makes the
/// 3,276,800 that are expected of 50 challenges of 16 bits in 4.583 seconds, which is 715,000.
/// Source: <https://capjs.js.org/guide/benchmark.html>
pub const SLOW_PHONE_HASHES_PER_SECOND: u32 = 700_000;
/// Hashes of one iteration of PBKDF2 with HMAC-SHA256: one inner, one outer (RFC 8018, section 5.2).
const HASHES_PER_ITERATION: u32 = 2;
/// Iterations of one attempt at a proof of work. Making a challenge costs us one attempt; fewer would
/// make the browser's own cost of a call count for more than the hashes.
pub const ITERATIONS_PER_ATTEMPT: u32 = 1000;

/// Where a sale may ask for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// When a buyer joins the waiting room.
    Join,
    /// When a buyer asks for an admission.
    Visit,
}

impl Stage {
    /// Its name, as in a sale file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Visit => "visit",
        }
    }
}

/// A kind of challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChallengeKind {
    /// The browser computes for a while; people do nothing.
    ProofOfWork,
    /// People copy distorted characters.
    Image,
    /// People answer a question of the operator's.
    Question,
    /// A provider's widget decides, and the engine asks the provider.
    Siteverify,
}

/// A provider of challenges with a `siteverify` endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SiteverifyProvider {
    /// Cloudflare Turnstile.
    Turnstile,
    /// hCaptcha.
    Hcaptcha,
    /// Google reCAPTCHA v2.
    Recaptcha,
}

impl SiteverifyProvider {
    /// Every provider.
    pub const ALL: [Self; 3] = [Self::Turnstile, Self::Hcaptcha, Self::Recaptcha];

    /// Its name, as in a sale file and in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turnstile => "turnstile",
            Self::Hcaptcha => "hcaptcha",
            Self::Recaptcha => "recaptcha",
        }
    }
}

/// The challenges of a sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct ChallengeSettings {
    /// Where buyers are asked, each place once.
    #[schemars(length(min = 1, max = 2))]
    pub at: Vec<Stage>,
    /// The kind of challenge.
    pub kind: ChallengeKind,
    /// Time that a proof of work takes on a slow phone while few buyers ask, in milliseconds.
    #[serde(default = "default_easiest_ms")]
    #[schemars(range(min = *PROOF_OF_WORK_MS.start(), max = *PROOF_OF_WORK_MS.end()))]
    pub easiest_ms: u32,
    /// The same while as many ask a second as the gate admits at most.
    #[serde(default = "default_hardest_ms")]
    #[schemars(range(min = *PROOF_OF_WORK_MS.start(), max = *PROOF_OF_WORK_MS.end()))]
    pub hardest_ms: u32,
    /// The questions of the kind `question`, of which each buyer gets one at random.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_QUESTIONS))]
    pub questions: Vec<Question>,
    /// The account of the kind `siteverify`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siteverify: Option<SiteverifyAccount>,
}

const fn default_easiest_ms() -> u32 {
    500
}

const fn default_hardest_ms() -> u32 {
    MAX_PROOF_OF_WORK_MS
}

/// A question of the operator's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a question, which is an object")]
pub struct Question {
    /// What buyers read: 1 to 200 bytes without control characters.
    #[schemars(length(min = 1, max = MAX_QUESTION_BYTES))]
    pub question: String,
    /// The answers that are right; upper case and blanks do not matter.
    #[schemars(length(min = 1, max = MAX_QUESTIONS))]
    pub answers: Vec<String>,
}

/// The public half of an account at a provider of challenges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an account, which is an object")]
pub struct SiteverifyAccount {
    /// The provider.
    pub provider: SiteverifyProvider,
    /// The site key, which the page gives to the provider's widget.
    #[schemars(length(min = 1, max = MAX_SITE_KEY_BYTES))]
    pub site_key: String,
}

/// How hard challenges are at the moment, in percent: 0 while nobody asks, 100 while as many ask a
/// second as the gate admits at most; and by how many doublings harder for this buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    percent: u32,
    doublings: u8,
}

impl Pressure {
    /// The pressure of this many requests a second at a gate that admits `max_per_second`.
    #[must_use]
    pub fn from_rate(requests_per_second: u64, max_per_second: u32) -> Self {
        let percent = requests_per_second.saturating_mul(100) / u64::from(max_per_second.max(1));
        Self { percent: u32::try_from(percent.min(100)).unwrap_or(100), doublings: 0 }
    }

    /// The same for a buyer whose challenge is harder by this many doublings.
    #[must_use]
    pub fn harder(self, doublings: u8) -> Self {
        Self { doublings, ..self }
    }

    /// In percent, 0 to 100.
    #[must_use]
    pub const fn percent(self) -> u32 {
        self.percent
    }
}

/// The attempts that a proof of work takes: some number from `min` to `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    /// Fewest attempts, at least one.
    pub min: u32,
    /// Most attempts.
    pub max: u32,
}

impl Attempts {
    /// The attempts that keep a slow phone at work for the time that a sale asks for under this
    /// pressure, and half of them at the least. Never more than [`MAX_PROOF_OF_WORK_MS`].
    #[must_use]
    pub fn new(settings: &ChallengeSettings, pressure: Pressure) -> Self {
        let easiest = u64::from(settings.easiest_ms);
        let added = u64::from(settings.hardest_ms.saturating_sub(settings.easiest_ms));
        let ms = easiest + added * u64::from(pressure.percent()) / 100;
        let factor = 1_u64 << pressure.doublings.min(MAX_DOUBLINGS);
        let ms = (ms * factor).min(u64::from(MAX_PROOF_OF_WORK_MS));
        let hashes = ms * u64::from(SLOW_PHONE_HASHES_PER_SECOND) / 1000;
        let attempts = hashes / u64::from(HASHES_PER_ITERATION * ITERATIONS_PER_ATTEMPT);
        let max = u32::try_from(attempts).unwrap_or(u32::MAX).max(2);
        Self { min: max / 2, max }
    }
}

/// Characters of an image: five, and up to seven under pressure. A doubling is a character.
#[must_use]
pub fn image_characters(pressure: Pressure) -> u8 {
    let characters: u8 = match pressure.percent() {
        0..=33 => 5,
        34..=66 => 6,
        _ => 7,
    };
    characters.saturating_add(pressure.doublings).min(7)
}

/// An answer as it is compared: without case, and without blanks but one between words.
#[must_use]
pub fn normalised(answer: &str) -> String {
    let words: Vec<String> = answer.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

impl ChallengeSettings {
    /// True if buyers are asked at this stage.
    #[must_use]
    pub fn asks_at(&self, stage: Stage) -> bool {
        self.at.contains(&stage)
    }

    /// Every rule that the settings break, as the field's path below `challenges`, and the rule.
    #[must_use]
    pub fn defects(&self) -> Vec<(String, &'static str)> {
        let mut defects = Vec::new();
        let mut unless = |holds: bool, at: String, rule: &'static str| {
            if !holds {
                defects.push((at, rule));
            }
        };
        let is_once = self.at.len() < 2 || self.at[0] != self.at[1];
        let is_listed = (1..=2).contains(&self.at.len()) && is_once;
        unless(is_listed, "at".to_owned(), "must name join, visit or both, each once");
        for (name, ms) in [("easiest_ms", self.easiest_ms), ("hardest_ms", self.hardest_ms)] {
            unless(PROOF_OF_WORK_MS.contains(&ms), name.to_owned(), "must be 100 to 3,000");
        }
        let is_ordered = self.easiest_ms <= self.hardest_ms;
        unless(is_ordered, "hardest_ms".to_owned(), "must be at least easiest_ms");
        let asks = self.kind == ChallengeKind::Question;
        let questions = if asks { 1..=MAX_QUESTIONS } else { 0..=0 };
        let rule = "must be 1 to 100 questions for the kind question, and absent for the others";
        unless(questions.contains(&self.questions.len()), "questions".to_owned(), rule);
        for (index, question) in self.questions.iter().enumerate() {
            let rule = "must have 1 to 200 bytes without control characters";
            unless(is_text(&question.question), format!("questions[{index}].question"), rule);
            let answers = &question.answers;
            let are_answers = (1..=MAX_QUESTIONS).contains(&answers.len())
                && answers.iter().all(|answer| is_text(answer));
            let rule = "must be 1 to 100 answers of 1 to 200 bytes without control characters";
            unless(are_answers, format!("questions[{index}].answers"), rule);
        }
        let verifies = self.kind == ChallengeKind::Siteverify;
        let rule = "must be there for the kind siteverify, and absent for the others";
        unless(self.siteverify.is_some() == verifies, "siteverify".to_owned(), rule);
        let is_key = |account: &SiteverifyAccount| {
            let key = account.site_key.as_bytes();
            (1..=MAX_SITE_KEY_BYTES).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic)
        };
        let rule = "must have 1 to 100 characters of ASCII without blanks";
        let at = "siteverify.site_key".to_owned();
        unless(self.siteverify.as_ref().is_none_or(is_key), at, rule);
        defects
    }
}

fn is_text(text: &str) -> bool {
    let is_empty = text.trim().is_empty();
    text.len() <= MAX_QUESTION_BYTES && !is_empty && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(file: Value) -> ChallengeSettings {
        serde_json::from_value(file).unwrap()
    }

    fn proof_of_work() -> Value {
        json!({ "at": ["visit"], "kind": "proof_of_work" })
    }

    #[test]
    fn pressure_rises_with_the_rate_to_that_of_the_gate() {
        let percent = |rate: u64, most: u32| Pressure::from_rate(rate, most).percent();
        assert_eq!(
            [0, 1, 500, 999, 1000, 9999].map(|rate| percent(rate, 1000)),
            [0, 0, 50, 99, 100, 100]
        );
        assert_eq!(percent(u64::MAX, u32::MAX), 100);
        assert_eq!((percent(0, 0), percent(1, 0)), (0, 100));
    }

    #[test]
    fn work_rises_with_the_pressure_and_never_beyond_three_seconds_of_a_slow_phone() {
        let attempts = |file: &ChallengeSettings, rate: u64| {
            Attempts::new(file, Pressure::from_rate(rate, 100))
        };
        let default = settings(proof_of_work());
        // 350 iterations a millisecond, a thousand an attempt.
        assert_eq!(attempts(&default, 0), Attempts { min: 87, max: 175 });
        assert_eq!(attempts(&default, 50), Attempts { min: 306, max: 612 });
        let hardest = Attempts { min: 525, max: 1050 };
        assert_eq!(attempts(&default, 100), hardest);
        let harder =
            |doublings| Attempts::new(&default, Pressure::from_rate(0, 100).harder(doublings)).max;
        assert_eq!([0, 1, 2, 3, 255].map(harder), [175, 350, 700, 1050, 1050]);
        let mut last = 0;
        for rate in 0..=110 {
            let Attempts { min, max } = attempts(&default, rate);
            assert!(min >= 1 && min <= max && max >= last, "{rate}");
            last = max;
        }
        // No file says so, but nothing depends on it.
        let unbounded = ChallengeSettings { hardest_ms: u32::MAX, ..default.clone() };
        assert_eq!(attempts(&unbounded, 100), hardest);
        let reversed = ChallengeSettings { easiest_ms: 100, hardest_ms: 0, ..default };
        assert_eq!(attempts(&reversed, 100), Attempts { min: 17, max: 35 });
    }

    #[test]
    fn images_have_five_to_seven_characters() {
        let characters = |rate| image_characters(Pressure::from_rate(rate, 100));
        assert_eq!([0, 33, 34, 66, 67, 1000].map(characters), [5, 5, 6, 6, 7, 7]);
        let harder = |doublings| image_characters(Pressure::from_rate(0, 100).harder(doublings));
        assert_eq!([0, 1, 2, 3, 255].map(harder), [5, 6, 7, 7, 7]);
    }

    #[test]
    fn case_and_blanks_of_an_answer_do_not_matter() {
        for same in ["old quay", " Old  QUAY\n", "OLD\tquay"] {
            assert_eq!(normalised(same), "old quay");
        }
        assert_ne!(normalised("oldquay"), normalised("old quay"));
        assert_eq!(normalised("ÉCLAIR"), "éclair");
    }

    #[test]
    fn a_file_says_where_and_what_and_the_rest_has_defaults() {
        let found = settings(proof_of_work());
        assert_eq!((found.easiest_ms, found.hardest_ms), (500, 3000));
        assert!(found.asks_at(Stage::Visit) && !found.asks_at(Stage::Join));
        assert_eq!(found.defects(), []);
        let question = json!([{ "question": "Our city?", "answers": ["Porto"] }]);
        let account = json!({ "provider": "turnstile", "site_key": "1x00000000000000000000AA" });
        for good in [
            json!({ "at": ["join", "visit"], "kind": "image" }),
            json!({ "at": ["join"], "kind": "question", "questions": question }),
            json!({ "at": ["visit"], "kind": "siteverify", "siteverify": account }),
        ] {
            assert_eq!(settings(good.clone()).defects(), [], "{good}");
        }
    }

    #[test]
    fn each_defect_is_found_at_its_place() {
        let questions = |question: &str, answers: Value| {
            let questions = json!([{ "question": question, "answers": answers }]);
            json!({ "at": ["visit"], "kind": "question", "questions": questions })
        };
        let account = |key: &str| {
            let account = json!({ "provider": "hcaptcha", "site_key": key });
            json!({ "at": ["visit"], "kind": "siteverify", "siteverify": account })
        };
        let with = |name: &str, value: Value| {
            let mut file = proof_of_work();
            file[name] = value;
            file
        };
        let long = "x".repeat(201);
        let cases = [
            (with("at", json!([])), "at"),
            (with("at", json!(["visit", "visit"])), "at"),
            (with("at", json!(["visit", "join", "visit"])), "at"),
            (with("easiest_ms", json!(99)), "easiest_ms"),
            (with("hardest_ms", json!(3001)), "hardest_ms"),
            (with("hardest_ms", json!(400)), "hardest_ms"),
            (with("kind", json!("question")), "questions"),
            (with("kind", json!("siteverify")), "siteverify"),
            (with("questions", questions("q", json!(["a"]))["questions"].clone()), "questions"),
            (with("siteverify", account("k")["siteverify"].clone()), "siteverify"),
            (questions(" ", json!(["a"])), "questions[0].question"),
            (questions(&long, json!(["a"])), "questions[0].question"),
            (questions("a\u{7}", json!(["a"])), "questions[0].question"),
            (questions("q", json!([])), "questions[0].answers"),
            (questions("q", json!(["a", " "])), "questions[0].answers"),
            (account(""), "siteverify.site_key"),
            (account("a b"), "siteverify.site_key"),
        ];
        for (file, at) in cases {
            let places: Vec<String> =
                settings(file.clone()).defects().into_iter().map(|(at, _)| at).collect();
            assert_eq!(places, [at], "{file}");
        }
    }
}
