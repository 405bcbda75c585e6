//! Secrets that an environment variable lists: one secret, or two while the first is being replaced.

use super::callbacks;
use super::config::{Defect, Secret};

/// Most secrets: one, and the one that replaces it.
const MAX_SECRETS: usize = 2;

/// One secret or two, the one that makes new things first; none where nothing is made of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedSecrets(Vec<Secret>);

impl ListedSecrets {
    /// These secrets, each of 32 to 128 letters, digits, `-` and `_`, two at most, the one that makes new things first;
    /// `None` for others.
    #[must_use]
    pub fn new(secrets: Vec<String>) -> Option<Self> {
        callbacks::secrets(secrets, MAX_SECRETS).map(Self)
    }

    /// Reads the text of a variable: a list in JSON, or with a comma between two, for files of variables that
    /// know no quotes within a value.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub(crate) fn read(variable: &'static str, text: Option<&str>) -> Result<Self, Defect> {
        let rule = "must be one or two secrets of 32 to 128 letters, digits, - and _, listed by commas or in JSON";
        let defect = || Defect { variable, rule };
        let Some(text) = text else { return Ok(Self::default()) };
        let secrets: Vec<String> = if text.starts_with('[') {
            serde_json::from_str(text).map_err(|_unreadable| defect())?
        } else {
            text.split(',').map(str::to_owned).collect()
        };
        Self::new(secrets).filter(|secrets| !secrets.0.is_empty()).ok_or_else(defect)
    }

    /// The text of the variable; empty without secrets.
    #[must_use]
    pub fn text(&self) -> String {
        callbacks::texts(&self.0).join(",")
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same and another one, which makes nothing new unless it is the only one.
    #[must_use]
    pub fn and(mut self, secret: &str) -> Self {
        self.0.push(Secret(secret.as_bytes().to_vec()));
        self
    }

    /// Each of them, the one that makes new things first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter()
    }
}
