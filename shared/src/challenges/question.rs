//! Questions of the operator's.
//!
//! They keep out bots that nobody made for this sale. Whoever writes one for it answers once by hand.

use engine::domain::admission::challenge::normalised;
use engine::domain::sale::challenge::{ChallengeSettings, Question};

/// Index and text of one of the questions, by chance; `None` if there are none.
pub(super) fn draw(settings: &ChallengeSettings, chance: [u8; 8]) -> Option<(usize, &Question)> {
    let count = u64::try_from(settings.questions.len()).ok().filter(|count| *count > 0)?;
    let index = usize::try_from(u64::from_be_bytes(chance) % count).ok()?;
    settings.questions.get(index).map(|question| (index, question))
}

/// True if an answer is one of those to the question with this index.
pub(super) fn is_right(settings: &ChallengeSettings, index: Option<usize>, answer: &str) -> bool {
    let question = index.and_then(|index| settings.questions.get(index));
    let given = normalised(answer);
    question.is_some_and(|question| question.answers.iter().any(|one| normalised(one) == given))
}
