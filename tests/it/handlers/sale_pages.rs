//! The page of a sale without a script, for link previews and for search engines; and the sitemap.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::domain::basics::bytes::Hash;
use serde_json::{Value, json};
use shared::dynamodb::tables::SALES_LIST;
use shared::http::respond::{HTML, XML};

use super::{Fixture, Got, OPERATOR_ISSUER, SITE, Sender, hall, train};

/// What schema.org and search engines require of an event.
/// Source: <https://developers.google.com/search/docs/appearance/structured-data/event>.
const REQUIRED: [&str; 3] = ["name", "startDate", "location"];
/// The sales that one document of the sitemap has.
const PART: usize = 5_000;
/// Most items of a batch. Source: `BatchWriteItem` of DynamoDB.
const BATCH: usize = 25;

/// A sale file of `sales/`, with the picture of the test in place of its own.
async fn sample(fixture: &Fixture, name: &str) -> Value {
    let mut file: Value = serde_json::from_str(&text::read(&format!("sales/{name}.json"))).unwrap();
    let grey = STANDARD.decode(super::events::GREY).unwrap();
    let hash = Hash::of_parts(&[&grey]);
    let body = json!({ "data": super::events::GREY });
    fixture.json(Sender::Operator, "PUT", &format!("/pictures/{hash}"), &body).await.ok(200);
    for image in file["event"]["about"]["images"].as_array_mut().unwrap() {
        image["sha256"] = json!(hash);
        image["width"] = json!(8);
        image["height"] = json!(8);
    }
    file
}

/// The text that an attribute or an element shows.
fn unescaped(markup: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    pairs.into_iter().fold(markup.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// What stands between two texts, the first time.
fn between<'m>(markup: &'m str, before: &str, after: &str) -> Option<&'m str> {
    Some(markup.split_once(before)?.1.split_once(after)?.0)
}

fn meta(page: &str, name: &str) -> Option<String> {
    let before =
        [format!(" name=\"{name}\" content=\""), format!(" property=\"{name}\" content=\"")];
    before.iter().find_map(|before| between(page, before, "\"")).map(unescaped)
}

fn title(page: &str) -> String {
    unescaped(between(page, "<title>", "</title>").unwrap())
}

fn linked_data(page: &str) -> Option<Value> {
    let json = between(page, "<script type=\"application/ld+json\">", "</script>")?;
    Some(serde_json::from_str(json).unwrap())
}

async fn page(fixture: &Fixture, sale: &str) -> Got {
    fixture.get(Sender::Nobody, &format!("/s/{sale}")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_to_a_concert_shows_what_when_and_where() {
    let fixture = Fixture::start().await;
    let file = sample(&fixture, "demo-stadium").await;
    let kept = fixture.publish(&file).await.ok(200);
    let got = page(&fixture, "demo-stadium").await;
    assert_eq!(got.caching(), "public, max-age=10");
    let shown = got.page();
    let picture = kept["event"]["picture"]["sha256"].as_str().unwrap();
    assert_eq!(title(shown), file["title"].as_str().unwrap());
    let preview = meta(shown, "description").unwrap();
    let facts =
        "2027-09-04 20:00 · Lakeside Stadium, Vienna · EUR 45.00–240.00 – After forty-one cities";
    assert!(preview.starts_with(facts), "{preview}");
    assert!(!preview.contains("**") && preview.chars().count() <= 300, "{preview}");
    let picture = format!("{SITE}/api/pictures/{picture}");
    for (name, content) in [
        ("og:title", file["title"].as_str().unwrap()),
        ("og:description", preview.as_str()),
        ("og:type", "website"),
        ("og:url", "https://tickets.example/s/demo-stadium"),
        ("og:image", picture.as_str()),
        ("og:image:width", "8"),
        ("og:image:height", "8"),
        ("og:image:alt", file["event"]["about"]["images"][0]["alt"]["en"].as_str().unwrap()),
        ("twitter:card", "summary_large_image"),
    ] {
        assert_eq!(meta(shown, name).as_deref(), Some(content), "{name}");
    }
    assert!(
        shown.contains("<link rel=\"canonical\" href=\"https://tickets.example/s/demo-stadium\">")
    );

    let data = linked_data(shown).unwrap();
    for required in REQUIRED {
        assert!(data[required].as_str().is_none_or(|text| !text.is_empty()), "{required}");
        assert!(data.get(required).is_some_and(|value| !value.is_null()), "{required}");
    }
    for (pointer, value) in [
        ("/@context", json!("https://schema.org")),
        ("/@type", json!("Event")),
        ("/name", file["title"].clone()),
        ("/startDate", json!("2027-09-04T20:00:00+02:00")),
        ("/endDate", json!("2027-09-04T23:00:00+02:00")),
        ("/doorTime", json!("2027-09-04T17:30:00+02:00")),
        ("/eventStatus", json!("https://schema.org/EventScheduled")),
        ("/location/@type", json!("Place")),
        ("/location/name", json!("Lakeside Stadium")),
        ("/location/address/addressLocality", json!("Vienna")),
        ("/location/address/addressCountry", json!("AT")),
        ("/location/address/streetAddress", file["event"]["about"]["address"]["en"].clone()),
        ("/location/geo/latitude", json!(48.2331)),
        ("/location/geo/longitude", json!(16.4389)),
        ("/image", json!([picture])),
        ("/performer/0/name", json!("The Lanterns")),
        ("/offers/0/name", json!("Floor, standing")),
        ("/offers/0/price", json!("85.00")),
        ("/offers/0/priceCurrency", json!("EUR")),
        ("/offers/0/availability", json!("https://schema.org/InStock")),
        ("/offers/0/url", json!("https://tickets.example/s/demo-stadium")),
        ("/offers/0/validFrom", json!("2024-01-01T00:00:00+00:00")),
    ] {
        assert_eq!(data.pointer(pointer), Some(&value), "{pointer}");
    }
    assert_eq!(data["offers"].as_array().unwrap().len(), file["tiers"].as_array().unwrap().len());

    // What a reader without a script reads, in both languages where the words are ours.
    let read = between(shown, "<noscript>", "</noscript>").unwrap();
    for text in [
        "Saturday 4 September 2027, 20:00 (Europe/Vienna)",
        "2027年9月4日星期六 20:00（Europe/Vienna）",
        "Lakeside Stadium, Vienna",
        "Tickets are on sale.",
        "正在售票。",
        "Upper ring, sides",
        "EUR 45.00",
        "The Lanterns, without a support",
        "gate 3 has the widest doors",
        "<a href=\"https://example.org/lakeside-stadium/lanterns\" rel=\"noopener nofollow\" lang=\"en\">How",
    ] {
        assert!(read.contains(text), "{text}: {read}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_train_has_the_times_of_the_clocks_of_its_stops() {
    let fixture = Fixture::start().await;
    let mut file = sample(&fixture, "demo-train").await;
    file["stops"][5]["time_zone"] = json!("Asia/Bangkok");
    fixture.publish(&file).await.ok(200);
    let got = page(&fixture, "demo-train").await;
    let shown = got.page();
    let preview = meta(shown, "og:description").unwrap();
    assert!(preview.starts_with("2030-11-21 09:30 · CNY "), "{preview}");
    let data = linked_data(shown).unwrap();
    for (pointer, value) in [
        ("/@type", json!("TrainTrip")),
        ("/trainNumber", json!("G2026")),
        ("/departureStation/name", json!("Harbour South")),
        ("/arrivalStation/name", json!("Northgate")),
        ("/departureTime", json!("2030-11-21T09:30:00+08:00")),
        ("/arrivalTime", json!("2030-11-21T12:55:00+07:00")),
        ("/offers/0/lowPrice", json!("200.00")),
        ("/offers/0/highPrice", json!("985.00")),
        ("/offers/0/offerCount", json!(15)),
    ] {
        assert_eq!(data.pointer(pointer), Some(&value), "{pointer}");
    }
    let read = between(shown, "<noscript>", "</noscript>").unwrap();
    for text in ["Thursday 21 November 2030, 12:55 (Asia/Bangkok)", "2030-11-21 10:54 Oldbridge"] {
        assert!(read.contains(text), "{text}: {read}");
    }
    // Without a day and a zone, what is known is said.
    fixture.publish(&train()).await.ok(200);
    let got = page(&fixture, "g35").await;
    let data = linked_data(got.page()).unwrap();
    assert_eq!(data["departureStation"]["name"], "北京南");
    assert_eq!((data.get("departureTime"), data["trainNumber"].as_str()), (None, Some("G35")));
}

/// Everything of others is text, and stays it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_texts_are_texts() {
    const HOSTILE: &str =
        "\"'></title></script><script>alert(1)</script><!-- & <img src=x onerror=alert(1)>";
    let fixture = Fixture::start().await;
    let mut file = hall();
    file["title"] = json!(HOSTILE);
    file["notice"] = json!({ "en": HOSTILE });
    file["tiers"][0]["name"] = json!(HOSTILE);
    file["event"] = json!({
        "starts_at": "2026-11-21T20:00:00+01:00", "time_zone": "Europe/Vienna",
        "venue": { "name": HOSTILE, "city": HOSTILE }, "performers": [HOSTILE],
        "about": {
            "address": HOSTILE, "access": HOSTILE, "contact": HOSTILE,
            "description": format!("{HOSTILE}\n\n[x](javascript:alert(1)) <b onclick=alert(1)>\n\n{HOSTILE}"),
        }
    });
    fixture.publish(&file).await.ok(200);
    let got = page(&fixture, "hall").await;
    let shown = got.page();
    assert_eq!(title(shown), HOSTILE);
    assert_eq!(meta(shown, "og:title").as_deref(), Some(HOSTILE));
    // The script of the pages and the data, and no other.
    assert_eq!(shown.matches("<script").count(), 2, "{shown}");
    assert_eq!(shown.matches("</script>").count(), 2);
    for markup in ["<img", "<b ", "<!--", "onclick=\"", "href=\"javascript"] {
        assert!(!shown.contains(markup), "{markup}: {shown}");
    }
    let data = linked_data(shown).unwrap();
    for pointer in ["/name", "/location/name", "/performer/0/name", "/offers/0/name"] {
        assert_eq!(data.pointer(pointer), Some(&json!(HOSTILE)), "{pointer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_said_is_left_out_and_the_state_is_shown() {
    let fixture = Fixture::start().await;
    let mut file = hall();
    file["currency"] = json!("JPY");
    fixture.publish(&file).await.ok(200);
    let got = page(&fixture, "hall").await;
    let shown = got.page();
    assert_eq!((title(shown).as_str(), linked_data(shown)), ("Hall", None));
    assert_eq!(meta(shown, "description").as_deref(), Some("JPY 2500"));
    assert_eq!(meta(shown, "twitter:card").as_deref(), Some("summary"));
    assert_eq!(meta(shown, "og:image"), None);

    // One language of a text is chosen: English, else the first.
    file["event"] = json!({
        "starts_at": "2026-11-21T20:00:00+01:00", "time_zone": "Europe/Vienna", "venue": { "name": "Hall" },
        "about": { "description": { "zh": "响", "de": "laut" }, "access": { "zh": "无", "en-GB": "step-free" } }
    });
    fixture.publish(&file).await.ok(200);
    let got = page(&fixture, "hall").await;
    let read = got.page();
    assert!(read.contains("<section lang=\"de\"><p class=\"lines-kept\">laut</p>"), "{read}");
    assert!(read.contains("lang=\"en-GB\">step-free") && !read.contains('响'), "{read}");

    let operator = Sender::Token(OPERATOR_ISSUER, "onsale/operate");
    let say = async |body: Value| {
        fixture.json(operator, "POST", "/operator/sales/hall/commands", &body).await.ok(200)
    };
    let states = [
        (json!({ "sold_out": true }), "Sold out.", "https://schema.org/SoldOut"),
        (
            json!({ "state": "paused", "sold_out": false, "notice": { "en": "Back at noon" } }),
            "paused the sale",
            "https://schema.org/OutOfStock",
        ),
    ];
    for (body, words, availability) in states {
        say(body).await;
        let got = page(&fixture, "hall").await;
        assert!(got.page().contains(words), "{}", got.page());
        let data = linked_data(got.page()).unwrap();
        assert_eq!(data["offers"][0]["availability"], availability);
    }
    assert!(page(&fixture, "hall").await.page().contains("<blockquote lang=\"en\">Back at noon"));
    file["state"] = json!("cancelled");
    fixture.publish(&file).await.ok(200);
    let got = page(&fixture, "hall").await;
    let data = linked_data(got.page()).unwrap();
    assert_eq!(data["eventStatus"], "https://schema.org/EventCancelled");
    assert!(got.page().contains("Cancelled. Everything that was paid is refunded."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_sale_that_is_not_there_a_page_says_so() {
    let fixture = Fixture::start().await;
    for sale in ["nowhere", "UPPER", "a%20b", "%3Cscript%3E", "-x"] {
        let got = page(&fixture, sale).await;
        assert_eq!((got.status, got.content_type.as_str()), (404, HTML), "{sale}");
        assert_eq!(got.caching(), "no-store");
        let shown = got.body.as_str().unwrap();
        assert_eq!(title(shown), "There is no such sale 没有此场次");
        assert_eq!(meta(shown, "robots").as_deref(), Some("noindex"));
        assert!(shown.contains("src=\"/assets/sale.js\"") && !shown.contains(sale), "{shown}");
    }
    // What is no page of a sale stays what it was.
    fixture.get(Sender::Nobody, "/s/hall/").await.problem(404, "not-found");
    fixture.json(Sender::Nobody, "POST", "/s/hall", &json!({})).await.problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sitemap_lists_what_is_not_over_and_is_bounded() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    for (sale, change) in [
        ("over", json!({ "closes_at": "2021-01-01T00:00:00Z" })),
        ("cancelled", json!({ "state": "cancelled" })),
        ("upcoming", json!({ "opens_at": "2099-01-01T00:00:00Z" })),
    ] {
        let mut file = hall();
        file["sale"] = json!(sale);
        for (name, value) in change.as_object().unwrap() {
            file[name] = value.clone();
        }
        fixture.publish(&file).await.ok(200);
    }
    let of = async |target: &str| {
        let got = fixture.get(Sender::Nobody, target).await;
        assert_eq!(got.caching(), "public, max-age=300");
        let text = got.text(XML);
        let locations = text.split("<loc>").skip(1).map(|rest| rest.split_once('<').unwrap().0);
        let kind = if text.contains("<urlset xmlns=") { "urlset" } else { "sitemapindex" };
        (kind, locations.map(|location| location.replace(SITE, "")).collect::<Vec<_>>())
    };
    assert_eq!(
        of("/sitemap.xml").await,
        ("urlset", ["/", "/s/hall", "/s/upcoming"].map(str::to_owned).into())
    );
    let after = of("/sitemap.xml?from=hall").await;
    assert_eq!(after, ("urlset", vec!["/s/upcoming".to_owned()]));
    fixture.get(Sender::Nobody, "/sitemap.xml?from=A").await.problem(422, "invalid");

    // More than one document: their items alone, as they stand in the list.
    let name = |index: usize| format!("sale-{index:05}");
    let names: Vec<String> = (0..PART).map(name).collect();
    for batch in names.chunks(BATCH) {
        fixture.put_in_list(batch).await;
    }
    let index = of("/sitemap.xml").await;
    // The list begins with cancelled, hall and over.
    let second = format!("/sitemap.xml?from={}", name(PART - 4));
    assert_eq!(index, ("sitemapindex", vec!["/sitemap.xml?from=".to_owned(), second.clone()]));
    let (first, second) = (of("/sitemap.xml?from=").await, of(&second).await);
    assert_eq!((first.0, second.0), ("urlset", "urlset"));
    let all: Vec<String> = first.1.into_iter().chain(second.1).collect();
    assert_eq!(all.len(), 1 + 2 + PART);
    assert_eq!(all.last().map(String::as_str), Some("/s/upcoming"));
}

impl Fixture {
    /// Lists sales, without anything else of them.
    async fn put_in_list(&self, sales: &[String]) {
        let item = |sale: &String| {
            let text = |text: &str| AttributeValue::S(text.to_owned());
            let item =
                HashMap::from([("pk".to_owned(), text(SALES_LIST)), ("sk".to_owned(), text(sale))]);
            let put = PutRequest::builder().set_item(Some(item)).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        };
        let table = self.config.dynamodb.tables.sales.clone();
        let requests: Vec<WriteRequest> = sales.iter().map(item).collect();
        let written = self.dynamodb.batch_write_item().request_items(table, requests).send().await;
        assert!(written.unwrap().unprocessed_items.is_none_or(|items| items.is_empty()));
    }
}
