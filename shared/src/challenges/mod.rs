//! Challenges: what a buyer answers before the engine does anything dear.
//!
//! [`check`] is the one way in. A sale that asks refuses a request without an answer, and the refusal
//! has the challenge; the same request with the answer passes. A challenge is good for one sale, stage and buyer and for
//! [`VALID_SECONDS`], and for one answer, right or wrong: Redis remembers those until they have run out.
//! Whatever fails lets nobody through.
//!
//! - [`keys`] are the secrets; `token` binds what people answer, `proof_of_work` binds itself.
//! - `image`, `question` and [`siteverify`] are the other kinds.
//! - [`RedisChallenges`] counts how many ask and remembers what was answered.

use aws_lc_rs::rand;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod image;
pub mod keys;
pub mod proof_of_work;
mod question;
pub mod siteverify;
#[cfg(test)]
mod tests;
mod token;

use crate::http::Problem;
use crate::http::identity::Buyer;
use crate::http::problem::Kind;
use crate::redis::{ChallengePlace, RedisChallenges};
use crate::runtime::app::App;
use engine::domain::admission::challenge::{Attempts, Pressure, VALID_SECONDS, image_characters};
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::challenge::{
    ChallengeKind, ChallengeSettings, SiteverifyProvider, Stage,
};
use engine::ports::{Published, StoreError, Stored};
use keys::{ChallengeKeys, NoKey};
use proof_of_work::{Chance, ProofOfWork};
use siteverify::Siteverify;
use token::{Checked, Right};

/// Most bytes of an answer, and of a token. Those of providers have up to about 5,000.
pub const MAX_ANSWER_BYTES: usize = 8192;

/// A challenge, as a refusal has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Challenge {
    /// The browser computes: the answer is the payload of the ALTCHA widget.
    ProofOfWork {
        /// The challenge of the widget (version 2 of the protocol).
        altcha: ProofOfWork,
        /// End of its validity.
        expires_at: Timestamp,
    },
    /// The answer is the characters of the image.
    Image {
        /// What the answer is sent with.
        token: String,
        /// The image, as a `data:` URL.
        image: String,
        /// End of its validity.
        expires_at: Timestamp,
    },
    /// The answer is the one to the question.
    Question {
        /// What the answer is sent with.
        token: String,
        /// The question.
        question: String,
        /// End of its validity.
        expires_at: Timestamp,
    },
    /// The answer is the response of the provider's widget.
    Siteverify {
        /// What the answer is sent with.
        token: String,
        /// The provider.
        provider: SiteverifyProvider,
        /// What the widget is given.
        site_key: String,
        /// End of its validity.
        expires_at: Timestamp,
    },
}

/// The answer to a challenge, as a request has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with an answer")]
pub struct ChallengeAnswer {
    /// The token of the challenge; a proof of work has none.
    #[serde(default)]
    #[schemars(with = "Option<String>", length(max = MAX_ANSWER_BYTES))]
    token: Option<AnswerText>,
    /// The characters, the words, the response of the provider's widget, or the payload of the ALTCHA
    /// widget.
    #[schemars(with = "String", length(max = MAX_ANSWER_BYTES))]
    answer: AnswerText,
}

/// A text that is no longer than any answer. It is also refused where no challenge is asked for, as its schema says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct AnswerText(String);

impl TryFrom<String> for AnswerText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.chars().count() > MAX_ANSWER_BYTES {
            return Err(format!("text of more than {MAX_ANSWER_BYTES} characters"));
        }
        Ok(Self(text))
    }
}

/// Why an answer lets nobody through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// It is not of the form that the challenge asks for.
    #[error("the answer cannot be read")]
    Malformed,
    /// Its challenge is none of ours.
    #[error("the challenge was not made here")]
    NotOurs,
    /// Its challenge is of a kind that the sale does not ask for any more.
    #[error("the challenge is of another kind")]
    OtherKind,
    /// Its challenge is for another sale, or for another stage of this one.
    #[error("the challenge is for something else")]
    OtherUse,
    /// Its challenge is another buyer's.
    #[error("the challenge was given to another buyer")]
    OtherBuyer,
    /// Its challenge has run out.
    #[error("the challenge has expired")]
    Expired,
    /// Its challenge was answered before.
    #[error("the challenge was answered before")]
    Used,
    #[error("the answer is wrong")]
    Wrong,
}

/// What a challenge is for.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    pub sale: &'a SaleId,
    /// What the buyer wants of it.
    pub stage: Stage,
    pub user: &'a UserId,
}

impl Bound<'_> {
    fn check(self, sale: &SaleId, stage: Stage, user: &UserId) -> Result<(), Defect> {
        if *sale != *self.sale || stage != self.stage {
            return Err(Defect::OtherUse);
        }
        if *user == *self.user { Ok(()) } else { Err(Defect::OtherBuyer) }
    }
}

/// A challenge that was answered: its number, and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ticket {
    id: String,
    expires_at: Timestamp,
}

/// The right to go on, bought with one answer.
#[derive(Debug)]
#[must_use]
pub struct Passed<'a> {
    redis: &'a RedisChallenges,
    used: Option<(ChallengePlace, String)>,
}

impl Passed<'_> {
    /// Makes the answer good again, because what it was for was refused: a buyer who is to ask again in
    /// a second shall not solve another challenge first. A response of a provider's widget is not: the
    /// provider takes it once. If Redis does not answer, the answer stays used.
    pub async fn give_back(self) {
        let Some((place, id)) = &self.used else { return };
        if let Err(error) = self.redis.give_back(place, id).await {
            tracing::warn!(%error, "an answer to a challenge was not given back");
        }
    }
}

/// What makes and checks challenges.
#[derive(Debug)]
pub struct Challenges {
    pub keys: ChallengeKeys,
    redis: RedisChallenges,
    siteverify: Siteverify,
}

/// Makes a challenge that is harder the more buyers ask.
///
/// # Errors
/// Returns [`StoreError::Contract`] without a key, and [`StoreError::Unavailable`] without entropy.
pub fn make(
    keys: &ChallengeKeys,
    settings: &ChallengeSettings,
    bound: Bound<'_>,
    pressure: Pressure,
    now: Timestamp,
) -> Stored<Challenge> {
    let no_key = |error: NoKey| StoreError::Contract(error.to_string());
    let whole = now.ms().div_euclid(1000) + i64::from(VALID_SECONDS);
    let expires_at = Timestamp::from_ms(whole * 1000);
    let sign =
        |right: &Right| token::sign(keys, bound, right, &random()?, expires_at).map_err(no_key);
    match settings.kind {
        ChallengeKind::ProofOfWork => {
            let chance = Chance { nonce: random()?, salt: random()?, counter: random()? };
            let attempts = Attempts::new(settings, pressure);
            let made = proof_of_work::make(keys, bound, attempts, expires_at, chance);
            Ok(Challenge::ProofOfWork { altcha: made.map_err(no_key)?, expires_at })
        }
        ChallengeKind::Image => {
            let text = image::text(image_characters(pressure), random()?);
            let image = image::draw(&text, u64::from_be_bytes(random()?));
            let image = image.map_err(|error| StoreError::Contract(error.to_string()))?;
            Ok(Challenge::Image { token: sign(&Right::Text(text))?, image, expires_at })
        }
        ChallengeKind::Question => {
            let none = || StoreError::Contract("a sale has no questions".to_owned());
            let (index, question) = question::draw(settings, random()?).ok_or_else(none)?;
            let token = sign(&Right::Question(index))?;
            let question = question.question.clone();
            Ok(Challenge::Question { token, question, expires_at })
        }
        ChallengeKind::Siteverify => {
            let none = || StoreError::Contract("a sale has no account".to_owned());
            let account = settings.siteverify.as_ref().ok_or_else(none)?;
            let token = sign(&Right::Provider)?;
            let (provider, site_key) = (account.provider, account.site_key.clone());
            Ok(Challenge::Siteverify { token, provider, site_key, expires_at })
        }
    }
}

/// An answer to a challenge of ours: a proof of work that is done, or any answer to another kind.
#[derive(Debug)]
pub struct Authentic<'a> {
    ticket: Ticket,
    token: Option<Checked<'a>>,
}

impl Authentic<'_> {
    /// The number of its challenge, by which Redis remembers that it was answered.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.ticket.id
    }
}

/// Checks that an answer is one to a challenge that we made, of this kind, for this buyer here, in time;
/// and that a proof of work is done.
///
/// # Errors
/// Returns the first [`Defect`].
pub fn authentic<'a>(
    keys: &'a ChallengeKeys,
    kind: ChallengeKind,
    bound: Bound<'_>,
    answer: &ChallengeAnswer,
    now: Timestamp,
) -> Result<Authentic<'a>, Defect> {
    if answer.answer.0.len() > MAX_ANSWER_BYTES {
        return Err(Defect::Malformed);
    }
    if kind == ChallengeKind::ProofOfWork {
        let ticket = proof_of_work::check(keys, bound, &answer.answer.0, now)?;
        return Ok(Authentic { ticket, token: None });
    }
    let AnswerText(token) = answer.token.as_ref().ok_or(Defect::Malformed)?;
    let (ticket, token) = token::check(keys, bound, kind, token, now)?;
    Ok(Authentic { ticket, token: Some(token) })
}

/// Lets a buyer through who has answered what the sale asks for at this stage, or who is asked nothing.
/// A challenge that is given out is `harder` by so many doublings.
///
/// # Errors
/// Returns [`Kind::ChallengeRequired`] without an answer and [`Kind::ChallengeFailed`] with one that is
/// no good, each with a challenge; or why a store or a provider did not answer.
pub async fn check<'a>(
    app: &'a App,
    published: &Published,
    buyer: &Buyer,
    stage: Stage,
    answer: Option<&ChallengeAnswer>,
    harder: u8,
    now: Timestamp,
) -> Result<Passed<'a>, Problem> {
    let (file, challenges) = (published.sale.file(), &app.challenges);
    let redis = &challenges.redis;
    let Some(settings) = file.challenges.as_ref().filter(|settings| settings.asks_at(stage)) else {
        return Ok(Passed { redis, used: None });
    };
    let bound = Bound { sale: published.sale.id(), stage, user: buyer.user() };
    let place = ChallengePlace::new(bound.sale, bound.user, file.gate.shards);
    let (kind, why) = match answer {
        None => (Kind::ChallengeRequired, "an answer to the challenge is needed".to_owned()),
        Some(answer) => match challenges.judge(settings, bound, &place, answer, now).await? {
            Ok(used) => {
                return Ok(Passed { redis, used: used.map(|used| (place, used)) });
            }
            Err(defect) => (Kind::ChallengeFailed, defect.to_string()),
        },
    };
    let asked = redis.count(&place, stage, now).await?;
    let pressure = Pressure::from_rate(asked, file.gate.rate_per_second).harder(harder);
    let challenge = make(&challenges.keys, settings, bound, pressure, now)?;
    Err(Problem::new(kind, why).with("challenge", challenge))
}

impl Challenges {
    /// What makes and checks challenges with these keys.
    #[must_use]
    pub fn new(keys: ChallengeKeys, redis: RedisChallenges, siteverify: Siteverify) -> Self {
        Self { keys, redis, siteverify }
    }

    /// Judges an answer and uses it up. The number of what may be given back, if anything may.
    async fn judge(
        &self,
        settings: &ChallengeSettings,
        bound: Bound<'_>,
        place: &ChallengePlace,
        answer: &ChallengeAnswer,
        now: Timestamp,
    ) -> Stored<Result<Option<String>, Defect>> {
        let text = answer.answer.0.as_str();
        let ours = match authentic(&self.keys, settings.kind, bound, answer, now) {
            Ok(ours) => ours,
            Err(defect) => return Ok(Err(defect)),
        };
        // Used up before it is looked at: a challenge is no oracle that guesses could be tried on.
        if let Err(defect) = self.use_up(place, &ours.ticket, now).await? {
            return Ok(Err(defect));
        }
        let is_right = match settings.kind {
            ChallengeKind::ProofOfWork => true,
            ChallengeKind::Image => ours.token.is_some_and(|token| token.is_answered_by(text)),
            ChallengeKind::Question => {
                let index = ours.token.and_then(|token| token.question());
                question::is_right(settings, index, text)
            }
            ChallengeKind::Siteverify => match self.ask(settings, text).await {
                Ok(is_right) => is_right,
                Err(error) => {
                    // The provider has said nothing: the same response may be asked about again.
                    self.redis.give_back(place, &ours.ticket.id).await?;
                    return Err(error);
                }
            },
        };
        let is_ours = settings.kind != ChallengeKind::Siteverify;
        Ok(if is_right { Ok(is_ours.then_some(ours.ticket.id)) } else { Err(Defect::Wrong) })
    }

    async fn use_up(
        &self,
        place: &ChallengePlace,
        ticket: &Ticket,
        now: Timestamp,
    ) -> Stored<Result<(), Defect>> {
        let left_ms = ticket.expires_at.ms_since(now);
        let is_first = self.redis.use_up(place, &ticket.id, left_ms, &random()?).await?;
        Ok(if is_first { Ok(()) } else { Err(Defect::Used) })
    }

    async fn ask(&self, settings: &ChallengeSettings, response: &str) -> Stored<bool> {
        match &settings.siteverify {
            Some(account) => self.siteverify.verify(account.provider, response).await,
            None => Ok(false),
        }
    }
}

pub(crate) fn random<const N: usize>() -> Stored<[u8; N]> {
    let mut bytes = [0; N];
    let none = |_| StoreError::Unavailable("the system gives no entropy".to_owned());
    rand::fill(&mut bytes).map_err(none).map(|()| bytes)
}
