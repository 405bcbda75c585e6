//! `GET /sitemap.xml`: the sales that search engines may show, by the sitemaps protocol
//! (<https://www.sitemaps.org/protocol.html>): those that are listed and not over. Of more sales than one document has, the
//! answer is an index of documents, each of which begins after a sale (`?from=`).

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::ports::{Catalogue as _, ListedSale, Ports as _};
use lambda_http::Request;
use maud::{Markup, PreEscaped, html};
use shared::http::origin::Origin;
use shared::http::respond::Xml;
use shared::http::routes::NoRoute;
use shared::http::sale_reply::Phase;
use shared::http::sales_page::SitemapStart;
use shared::http::{Problem, checks};
use shared::runtime::app::App;

/// The sales of one document: at a kilobyte each, five queries of a megabyte. The protocol allows 50,000.
const PART: u16 = 5_000;
/// Most documents of an index. Of more sales the first by id are listed, so that an answer has a bound.
const MAX_PARTS: usize = 4;
/// The time for which caches may keep the answer, in seconds: search engines ask some times a day.
const MAX_AGE_SECONDS: u32 = 300;
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// The sitemap, or its part after the sale of `from`. Without a known origin of the pages there is none, as its addresses must
/// be absolute.
pub(super) async fn show(app: &App, request: &Request, now: Timestamp) -> Result<Xml, Problem> {
    let from: Option<SitemapStart> = checks::query(request, "from")?;
    let origin = app.site.origin.as_ref().ok_or(NoRoute)?;
    let catalogue = app.ports.catalogue();
    let after = from.as_ref().and_then(|SitemapStart(after)| after.as_ref());
    let first = catalogue.listed(after, PART).await?;
    let is_index = from.is_none() && first.next.is_some();
    let body = if is_index {
        let mut starts = vec![SitemapStart(None)];
        let mut next = first.next;
        while let Some(after) = next.take_if(|_| starts.len() < MAX_PARTS) {
            next = catalogue.listed(Some(&after), PART).await?.next;
            starts.push(SitemapStart(Some(after)));
        }
        index(origin, &starts)
    } else {
        urls(origin, after.is_none(), first.sales, now)
    };
    let declaration = PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let markup = html! { (declaration) (body) }.into_string();
    Ok(Xml { markup, max_age_seconds: MAX_AGE_SECONDS })
}

fn address(origin: &Origin, path: &str) -> Markup {
    html! { loc { (origin) (path) } }
}

/// The documents of an index, by where each begins.
fn index(origin: &Origin, starts: &[SitemapStart]) -> Markup {
    let path = |start: &SitemapStart| format!("/sitemap.xml?from={start}");
    html! {
        sitemapindex xmlns=(NAMESPACE) {
            @for start in starts { sitemap { (address(origin, &path(start))) } }
        }
    }
}

/// The pages of sales, with the start page in the first document.
fn urls(origin: &Origin, is_first: bool, sales: Vec<ListedSale>, now: Timestamp) -> Markup {
    html! {
        urlset xmlns=(NAMESPACE) {
            @if is_first { url { (address(origin, "/")) } }
            @for sale in sales.into_iter().filter_map(|listed| shown(listed, now)) {
                url { (address(origin, &format!("/s/{sale}"))) }
            }
        }
    }
}

/// The sale, unless it is over. A sale that was published before the list repeated terms may be.
fn shown(listed: ListedSale, now: Timestamp) -> Option<SaleId> {
    let ListedSale { sale, terms } = listed;
    let Some(terms) = terms else { return Some(sale) };
    match Phase::from_terms(&terms, now) {
        Phase::Upcoming | Phase::Open | Phase::Paused | Phase::SoldOut => Some(sale),
        Phase::Cancelled | Phase::Closed | Phase::Archived => None,
    }
}
