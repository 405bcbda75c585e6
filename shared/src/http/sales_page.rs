//! A page of the list of sales: its cursor, and its reply.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

use super::cursor::cursor;
use super::sale_reply::SaleSummary;
use engine::domain::basics::ids::{InvalidId, SaleId};

/// The number of sales on a page, unless the request names another.
pub const SALES: u16 = 100;
/// The most sales on a page.
pub const MAX_SALES: u16 = 200;

cursor! {
    /// Where a page of the list of sales begins: after a sale. As text it is opaque: the base64 of the form
    /// and the sale's id. It is checked, not signed: whoever makes one up is shown public sales after
    /// another name.
    SalesCursor(SaleId)
}

/// Where a part of the sitemap begins: after a sale, or as an empty text before the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitemapStart(pub Option<SaleId>);

impl fmt::Display for SitemapStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref().map_or("", SaleId::as_str))
    }
}

impl FromStr for SitemapStart {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(Some).map(Self) }
    }
}

/// A page of the sales that are not archived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SalesReply {
    /// The sales, by id.
    pub sales: Vec<SaleSummary>,
    /// Value of `cursor` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<SalesCursor>,
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::super::cursor::InvalidCursor;
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is() {
        let cursor = SalesCursor(SaleId::new("g35-2026-11-21").unwrap());
        let text = cursor.to_string();
        assert_eq!(text.parse(), Ok(cursor));
        let of = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let others = [
            String::new(),
            "g35-2026-11-21".to_owned(),
            of("g35-2026-11-21"),
            of("2:g35"),
            of("1:"),
            of("1:A B"),
            of("1:#sales"),
            format!("{text}="),
            format!("{text}!"),
            URL_SAFE_NO_PAD.encode([b'1', b':', 0xff]),
        ];
        for other in others {
            assert_eq!(other.parse::<SalesCursor>(), Err(InvalidCursor), "{other}");
        }
    }
}
