//! The challenges of a sale, as its file describes them: at which requests buyers must answer one, of which kind, and
//! how hard.

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
