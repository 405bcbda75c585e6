//! The secrets by which a request shows that it came through the edge, which adds them.

use aws_lc_rs::constant_time::verify_slices_are_equal;

use crate::runtime::callbacks;
use crate::runtime::config::{Defect, Secret};

/// The variable that has them.
pub(super) const EDGE_SECRETS: &str = "ONSALE_EDGE_SECRETS";
/// Most secrets: one, and the one that replaces it.
pub const MAX_EDGE_SECRETS: usize = 2;

/// The secrets of the edge; none if requests may come past it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EdgeSecrets(Vec<Secret>);

impl EdgeSecrets {
    /// These secrets, each of 32 to 128 letters, digits, `-` and `_`, and two at most; `None` for others.
    #[must_use]
    pub fn new(secrets: Vec<String>) -> Option<Self> {
        callbacks::secrets(secrets, MAX_EDGE_SECRETS).map(Self)
    }

    /// Reads the text of the variable, a list in JSON.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub(super) fn read(text: Option<&str>) -> Result<Self, Defect> {
        let rule =
            "must be a JSON list of one or two secrets of 32 to 128 letters, digits, - and _";
        let defect = || Defect { variable: EDGE_SECRETS, rule };
        let Some(text) = text else { return Ok(Self::default()) };
        let secrets: Vec<String> = serde_json::from_str(text).map_err(|_unreadable| defect())?;
        // An empty list would let everybody in without saying so.
        Self::new(secrets).filter(|secrets| !secrets.0.is_empty()).ok_or_else(defect)
    }

    /// The text of the variable; empty without secrets.
    #[must_use]
    pub fn text(&self) -> String {
        let all = callbacks::texts(&self.0);
        if all.is_empty() { String::new() } else { serde_json::json!(all).to_string() }
    }

    /// True if there are none: nothing is checked then, and no header of the edge's is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if this is one of them. How long the answer takes says nothing of a secret but its length.
    #[must_use]
    pub fn has(&self, secret: &[u8]) -> bool {
        let is_it = |own: &Secret| verify_slices_are_equal(&own.0, secret).is_ok();
        self.0.iter().fold(false, |found, own| found | is_it(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "0123456789abcdefghijklmnopqrstuv";
    const OLD: &str = "the-secret-that-is-being-replaced";

    #[test]
    fn one_or_two_secrets_are_read_and_written_again() {
        for text in [format!("[\"{NEW}\"]"), format!("[\"{NEW}\",\"{OLD}\"]")] {
            let secrets = EdgeSecrets::read(Some(&text)).unwrap();
            assert_eq!(secrets.text(), text);
            assert!(secrets.has(NEW.as_bytes()) && !secrets.is_empty());
            assert_eq!(secrets.has(OLD.as_bytes()), text.contains(OLD));
            let joined = format!("{NEW},{OLD}");
            for wrong in ["", &NEW[1..], &NEW.to_uppercase(), &joined] {
                assert!(!secrets.has(wrong.as_bytes()), "{wrong}");
            }
            assert!(!format!("{secrets:?}").contains(NEW));
        }
        let none = EdgeSecrets::read(None).unwrap();
        assert!(none.is_empty() && !none.has(b"") && none.text().is_empty());
    }

    #[test]
    fn what_is_no_list_of_secrets_is_refused() {
        let three = format!("[\"{NEW}\",\"{NEW}\",\"{NEW}\"]");
        for text in ["[]", "[\"\"]", "[\"short\"]", NEW, "{}", "[1]", &three] {
            let defect = EdgeSecrets::read(Some(text)).unwrap_err();
            assert_eq!(defect.variable, EDGE_SECRETS, "{text}");
        }
    }
}
