//! `GET /s/{sale}`: the page of a sale. Its head is what a link preview and a search engine read; whoever has no script reads
//! what, when and where the sale is, what a ticket costs and whether it sells, in both languages at once. The script and the
//! styles of the pages make of it what everybody else sees: they have the same names in every build, so that pages and
//! functions are deployed independently.
//!
//! The page is one for all, as caches know no languages: of a text by language it has the English one, else the first.

mod linked_data;
mod words;

use engine::domain::basics::bytes::Hash;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::event::{AboutLink, EventAbout, EventFacts, FileAbout, Picture, Venue};
use engine::domain::sale::{SaleFile, Stop, TierFile};
use engine::ports::{Catalogue as _, Ports as _};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use shared::http::origin::Origin;
use shared::http::problem::Kind;
use shared::http::respond::ScriptedPage;
use shared::http::sale_reply::{Phase, SaleSummary};
use shared::http::{Problem, checks, page_policy};
use shared::runtime::app::App;

use self::words::{Chosen, Told, beginning, chosen, paragraphs, price_range, price_text};

/// The time for which caches may keep the page, in seconds: with it, a sale that everybody opens asks the function some
/// times a second, whatever the number of edge locations. The page's script reads the sale itself, a second old at most.
const MAX_AGE_SECONDS: u32 = 10;
/// Most characters of the description in a preview: what people are shown of it.
const MAX_PREVIEW_CHARS: usize = 300;
/// Where the build of the pages puts the files of this page, in every build. `pages/routes.json` names them too.
const SCRIPT: &str = "/assets/sale.js";
const STYLES: &str = "/assets/sale.css";
const ICON: &str = "/assets/favicon.svg";
const ENGLISH: &str = "en";
const CHINESE: &str = "zh-Hans";

/// What the page shows of a sale.
struct Shown<'s> {
    file: &'s SaleFile,
    phase: Phase,
    event: Option<&'s EventFacts>,
    /// The document of the event, if it has one that can be read.
    about: Option<&'s EventAbout>,
    /// The origin of the pages, if it is known.
    origin: Option<&'s Origin>,
}

impl<'s> Shown<'s> {
    /// The address of the page.
    fn address(&self) -> Option<String> {
        Some(format!("{}/s/{}", self.origin?, self.file.sale))
    }

    /// The picture of the event: that for lists, else the first of its document.
    fn picture(&self) -> Option<Picture> {
        let own = self.event.and_then(|event| event.picture);
        own.or_else(|| Some(self.about?.images.first()?.picture()))
    }

    /// The address of the picture, as others ask for it.
    fn picture_address(&self) -> Option<String> {
        Some(format!("{}{}", self.origin?, picture_path(self.picture()?.sha256)))
    }

    /// What the picture shows, in words.
    fn alt(&self) -> Option<Chosen<'s>> {
        let picture = self.picture()?;
        let image = self.about?.images.iter().find(|image| image.sha256 == picture.sha256)?;
        chosen(&image.alt)
    }

    fn description(&self) -> Option<Chosen<'s>> {
        chosen(self.about?.description.as_ref()?)
    }

    /// When it is, or when the train leaves.
    fn begins(&self) -> Option<Told> {
        match self.file.stops.first() {
            Some(first) => Told::of_stop(self.file, first, first.departs),
            None => Told::at(self.event?.starts_at?, self.event?.time_zone.as_ref()),
        }
    }

    /// The least and the most that a ticket costs.
    fn prices(&self) -> Option<(MinorUnits, MinorUnits)> {
        let ranges = || self.file.tiers.iter().filter_map(price_range);
        Some((ranges().map(|range| range.0).min()?, ranges().map(|range| range.1).max()?))
    }

    /// When, where and for how much, without words of any language; then what it is.
    fn preview(&self) -> String {
        let venue = self.event.and_then(|event| event.venue.as_ref());
        let facts = [
            self.begins().map(|begins| begins.short()),
            venue.map(venue_text),
            self.prices().map(|prices| price_text(prices, self.file.currency)),
        ];
        let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        let description = self.description().map(|text| paragraphs(text.text).join(" "));
        let text = match description {
            Some(description) => format!("{facts} – {description}"),
            None => facts,
        };
        beginning(&text, MAX_PREVIEW_CHARS)
    }
}

/// The page of a sale; of a sale that is not there, or cannot be read, the page that says so.
pub(super) async fn show(app: &App, id: &SaleId, now: Timestamp) -> Result<ScriptedPage, Problem> {
    let published = match checks::sale(&app.ports, id).await {
        Ok(published) => published,
        Err(refusal) => return Ok(refused(app, refusal.into())),
    };
    let event = published.sale.file().event.as_ref();
    let about = about(app, id, event).await;
    let shown = Shown {
        file: published.sale.file(),
        phase: SaleSummary::new(&published, now).state,
        event,
        about: about.as_ref(),
        origin: app.site.origin.as_ref(),
    };
    let markup = document(&head(&shown), &body(&shown)).into_string();
    let (policy, max_age_seconds) = (policy(app), MAX_AGE_SECONDS);
    Ok(ScriptedPage { markup, policy, max_age_seconds, problem: None })
}

/// The page that says that there is no such sale, or that it cannot be shown now.
pub(super) fn refused(app: &App, problem: Problem) -> ScriptedPage {
    let (english, chinese) = if problem.kind() == Kind::NotFound {
        ("There is no such sale", "没有此场次")
    } else {
        ("The sale cannot be shown now", "暂时无法显示此场次")
    };
    let head = html! {
        title { (english) " " (chinese) }
        meta name="robots" content="noindex";
    };
    let body = html! {
        h1 { (both(english, chinese)) }
        (start())
    };
    let (markup, policy) = (document(&head, &body).into_string(), policy(app));
    ScriptedPage { markup, policy, max_age_seconds: 0, problem: Some(problem) }
}

/// The policy of the page, with the origins that its script may call.
fn policy(app: &App) -> String {
    page_policy::without_inline(&app.site.connect)
}

/// The document of the event. The page is useful without it.
async fn about(app: &App, sale: &SaleId, event: Option<&EventFacts>) -> Option<EventAbout> {
    let hash = match event?.about.as_ref()? {
        FileAbout::Own(about) => return Some(about.as_ref().clone()),
        FileAbout::Kept(hash) => *hash,
    };
    match app.ports.catalogue().attachment(hash).await {
        Ok(Some(kept)) => EventAbout::from_attachment(&kept).ok(),
        Ok(None) => None,
        Err(error) => {
            tracing::warn!(%sale, %error, "shown without the document of its event");
            None
        }
    }
}

fn document(head: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(ENGLISH) prefix="og: https://ogp.me/ns#" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                (head)
                link rel="icon" type="image/svg+xml" href=(ICON);
                link rel="stylesheet" href=(STYLES);
                script type="module" src=(SCRIPT) {}
            }
            body data-page="sale" {
                // A reader with a script never sees it: what the script shows moves nothing.
                noscript { main id="main" { (body) } }
                div id="app" {}
            }
        }
    }
}

/// Title, description, and what previews and search engines read.
fn head(shown: &Shown<'_>) -> Markup {
    let (title, preview, address) = (&shown.file.title, shown.preview(), shown.address());
    let picture = shown.picture_address().zip(shown.picture());
    let card = if picture.is_some() { "summary_large_image" } else { "summary" };
    let data = linked_data::document(shown).map(|data| in_script(&data.to_string()));
    html! {
        title { (title) }
        meta name="description" content=(preview);
        @if let Some(address) = &address {
            link rel="canonical" href=(address);
            meta property="og:url" content=(address);
        }
        meta property="og:type" content="website";
        meta property="og:title" content=(title);
        meta property="og:description" content=(preview);
        @if let Some((address, picture)) = &picture {
            meta property="og:image" content=(address);
            meta property="og:image:type" content="image/jpeg";
            meta property="og:image:width" content=(picture.width);
            meta property="og:image:height" content=(picture.height);
            @if let Some(alt) = shown.alt() { meta property="og:image:alt" content=(alt.text); }
        }
        meta name="twitter:card" content=(card);
        @if let Some(data) = data { script type="application/ld+json" { (PreEscaped(data)) } }
    }
}

/// JSON that may stand in a script element: no character of it begins markup.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn picture_path(picture: Hash) -> String {
    format!("/api/pictures/{picture}")
}

/// A name in both languages.
fn both(english: &str, chinese: &str) -> Markup {
    html! { (english) " " span lang=(CHINESE) { (chinese) } }
}

/// What people read without a script.
fn body(shown: &Shown<'_>) -> Markup {
    let (file, picture) = (shown.file, shown.picture());
    html! {
        @if let Some(picture) = picture {
            div class="first-picture" {
                img class="picture" src=(picture_path(picture.sha256)) width=(picture.width) height=(picture.height)
                    alt=(shown.alt().map_or("", |alt| alt.text));
            }
        }
        h1 { (file.title) }
        (said(shown))
        dl class="facts" {
            (when_and_where(shown))
            @if let Some(about) = shown.about { (facts(about)) }
        }
        @if let Some(description) = shown.description() {
            section lang=[description.language] {
                @for paragraph in paragraphs(description.text) { p class="lines-kept" { (paragraph) } }
            }
        }
        (tickets(file))
        (start())
    }
}

/// The link to the start page.
fn start() -> Markup {
    html! { p { a href="/" { (both("All sales", "所有场次")) } } }
}

/// Whether it sells, what the operator says, and what a script is needed for.
fn said(shown: &Shown<'_>) -> Markup {
    let file = shown.file;
    let time = |at| Told::at(at, shown.event.and_then(|event| event.time_zone.as_ref()));
    let notice = file.notice.as_ref().and_then(chosen);
    let [english, chinese] = phase_words(shown.phase, time(file.opens_at).as_ref());
    html! {
        p { strong { (english) } }
        p lang=(CHINESE) { strong { (chinese) } }
        @if let Some(notice) = notice { blockquote lang=[notice.language] { (notice.text) } }
        @if !matches!(shown.phase, Phase::Cancelled | Phase::Closed | Phase::Archived) {
            @if file.room.is_some() {
                p {
                    (both(
                        "Joining the waiting room, choosing seats and paying need JavaScript.",
                        "加入等候室、选座和付款需要启用 JavaScript。",
                    ))
                }
                p {
                    a href={ "/s/" (file.sale) "/room/plain" } {
                        (both("The waiting room without JavaScript, to watch", "无需 JavaScript 的等候室（仅供查看）"))
                    }
                }
            } @else {
                p { (both("Choosing seats and paying need JavaScript.", "选座和付款需要启用 JavaScript。")) }
            }
        }
    }
}

fn phase_words(phase: Phase, opens: Option<&Told>) -> [String; 2] {
    let [english, chinese] = opens.map(Told::words).unwrap_or_default();
    let (english, chinese) = match phase {
        Phase::Upcoming => {
            return [format!("Tickets are on sale from {english}."), format!("{chinese} 开售。")];
        }
        Phase::Open => ("Tickets are on sale.", "正在售票。"),
        Phase::Paused => ("The operator has paused the sale.", "主办方已暂停销售。"),
        Phase::SoldOut => ("Sold out.", "已售罄。"),
        Phase::Cancelled => {
            ("Cancelled. Everything that was paid is refunded.", "已取消，已付款项将全部退还。")
        }
        Phase::Closed | Phase::Archived => ("The sale is over.", "销售已结束。"),
    };
    [english.to_owned(), chinese.to_owned()]
}

fn when_and_where(shown: &Shown<'_>) -> Markup {
    let (file, event) = (shown.file, shown.event);
    let told = |at: Option<Timestamp>| Told::at(at?, event?.time_zone.as_ref());
    let times = [
        ("When", "时间", event.and_then(|event| event.starts_at)),
        ("Doors", "入场", event.and_then(|event| event.doors_at)),
        ("Ends", "结束", event.and_then(|event| event.ends_at)),
    ];
    let venue = event.and_then(|event| event.venue.as_ref());
    let performers = event.map(|event| event.performers.join(" · ")).unwrap_or_default();
    html! {
        @if !performers.is_empty() { dt { (both("With", "演出")) } dd { (performers) } }
        @for (english, chinese, at) in times {
            @if let Some(told) = told(at) { dt { (both(english, chinese)) } dd { (time(&told)) } }
        }
        @if let Some(venue) = venue { dt { (both("Where", "地点")) } dd { (venue_text(venue)) } }
        @if let [first, .., last] = file.stops.as_slice() {
            (end(("From", "出发"), first, Told::of_stop(file, first, first.departs).as_ref()))
            (end(("To", "到达"), last, Told::of_stop(file, last, last.arrives).as_ref()))
            @let between = &file.stops[1..file.stops.len() - 1];
            @if !between.is_empty() {
                dt { (both("Calls at", "途经")) }
                dd { ul { @for one in between { li { (call(file, one)) } } } }
            }
        }
    }
}

/// The first or the last stop of a train, with the time at which the train leaves it or arrives.
fn end(name: (&str, &str), stop: &Stop, told: Option<&Told>) -> Markup {
    html! {
        dt { (both(name.0, name.1)) }
        dd { (stop.name) @if let Some(told) = told { br; (time(told)) } }
    }
}

/// A stop between the first and the last, with the time at which the train leaves it.
fn call(file: &SaleFile, stop: &Stop) -> String {
    match Told::of_stop(file, stop, stop.departs.or(stop.arrives)) {
        Some(told) => format!("{} {}", told.short(), stop.name),
        None => stop.name.clone(),
    }
}

fn time(told: &Told) -> Markup {
    let [english, chinese] = told.words();
    html! { time datetime=(told.iso()) { (english) } br; span lang=(CHINESE) { (chinese) } }
}

fn venue_text(venue: &Venue) -> String {
    let city = venue.city.as_deref().filter(|city| !city.is_empty());
    city.map_or_else(|| venue.name.clone(), |city| format!("{}, {city}", venue.name))
}

/// How to get there and in, and whom to ask.
fn facts(about: &EventAbout) -> Markup {
    let texts = [
        ("Address", "地址", about.address.as_ref()),
        ("Access", "无障碍", about.access.as_ref()),
        ("Contact", "联系", about.contact.as_ref()),
    ];
    html! {
        @for (english, chinese, text) in texts {
            @if let Some(text) = text.and_then(chosen) {
                dt { (both(english, chinese)) }
                dd class="lines-kept" lang=[text.language] { (text.text) }
            }
        }
        @if let Some(age) = about.minimum_age {
            dt { (both("Minimum age", "最低年龄")) }
            dd { (age) }
        }
        @if !about.links.is_empty() {
            dt { (both("Links", "链接")) }
            dd { ul class="links" { @for link in &about.links { li { (link_to(link)) } } } }
        }
    }
}

/// A link of the event, whose address begins with `https://`: a publication refuses any other.
fn link_to(AboutLink { title, url }: &AboutLink) -> Markup {
    let title = chosen(title);
    let language = title.and_then(|title| title.language);
    let text = title.map_or(url.as_str(), |title| title.text);
    html! { a href=(url) rel="noopener nofollow" lang=[language] { (text) } }
}

fn tickets(file: &SaleFile) -> Markup {
    let price = |tier: &TierFile| price_range(tier).map(|range| price_text(range, file.currency));
    html! {
        section {
            h2 { (both("Tickets", "票档")) }
            table {
                thead {
                    tr { th scope="col" { (both("Category", "类别")) } th scope="col" { (both("Price", "票价")) } }
                }
                tbody {
                    @for tier in &file.tiers {
                        tr { th scope="row" { (tier.name) } td class="number" { (price(tier).unwrap_or_default()) } }
                    }
                }
            }
        }
    }
}
