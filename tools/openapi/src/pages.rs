//! The routes that stand among the pages: for link previews, search engines and whoever has no script.

use serde_json::{Value, json};
use shared::http::respond::{HTML, XML};

use super::operations::{KEPT_A_WHILE, KEPT_TEN_SECONDS, Operation, Parameter, Success};

/// The schema of a page.
pub(super) fn page() -> Value {
    json!({ "type": "string" })
}

pub(super) fn show_sale() -> Operation {
    Operation {
        id: "showSalePage",
        tag: "sales",
        summary: "Show a sale as a page",
        description: "For people without script, link previews (Open Graph) and search engines (JSON-LD of schema.org). \
                      A problem is a page too. It stands where the pages are, not below `/api`.",
        parameters: Vec::new(),
        body: None,
        success: Success {
            status: 200,
            description: "The page.",
            caching: &[KEPT_TEN_SECONDS],
            media_type: HTML,
            schema: |_| page(),
            examples: Vec::new,
        },
    }
}

pub(super) fn show_sitemap() -> Operation {
    Operation {
        id: "showSitemap",
        tag: "sales",
        summary: "List the pages of sales for search engines",
        description: "Sales that are listed and not over, by the sitemaps protocol; of more than 5,000 an index of documents, \
                      at most four. It stands where the pages are, not below `/api`. Without a known origin of the pages \
                      there is none.",
        parameters: vec![Parameter {
            name: "from",
            place: "query",
            description: "The sale after which the document begins; empty: before the first. As an index names it.",
            schema: |_| json!({ "type": "string", "pattern": "^([a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?)?$" }),
            example: None,
        }],
        body: None,
        success: Success {
            status: 200,
            description: "A `urlset`, or a `sitemapindex`.",
            caching: &[KEPT_A_WHILE],
            media_type: XML,
            schema: |_| page(),
            examples: Vec::new,
        },
    }
}
