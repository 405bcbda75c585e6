//! The cursors of lists that everybody reads: each is where a page begins, opaque as text.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What the text under a cursor begins with: the version of the cursor's form.
const FORM: &str = "1:";

/// A text that is no cursor of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the `next` of another page")]
pub struct InvalidCursor;

/// Defines a cursor after a mark. As text it is the base64 of the form and the mark.
macro_rules! cursor {
    ($(#[$doc:meta])* $name:ident($mark:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
        #[serde(into = "String")]
        #[schemars(with = "String")]
        pub struct $name(pub $mark);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&$crate::http::cursor::written(&self.0))
            }
        }

        impl From<$name> for String {
            fn from(cursor: $name) -> Self {
                cursor.to_string()
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::http::cursor::InvalidCursor;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::http::cursor::read(text).map(Self)
            }
        }
    };
}
pub(super) use cursor;

/// The text of a cursor after a mark.
pub(super) fn written(mark: &impl Display) -> String {
    URL_SAFE_NO_PAD.encode(format!("{FORM}{mark}"))
}

/// The mark in the text of a cursor.
pub(super) fn read<M: FromStr>(text: &str) -> Result<M, InvalidCursor> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidCursor)?;
    let text = String::from_utf8(bytes).map_err(|_| InvalidCursor)?;
    let mark = text.strip_prefix(FORM).ok_or(InvalidCursor)?;
    mark.parse().map_err(|_| InvalidCursor)
}
