//! The event of a sale over HTTP: its pictures and its document, what is refused, and what a publication changes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::domain::basics::bytes::Hash;
use serde_json::{Value, json};
use shared::http::respond::IMMUTABLE;

use super::{Fixture, Got, OPERATOR_ISSUER, Sender, hall};

/// A grey JPEG of 8 by 8 pixels.
pub(super) const GREY: &str = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z";

async fn keep(fixture: &Fixture, sender: Sender<'_>, hash: Hash, data: &str) -> Got {
    let target = format!("/pictures/{hash}");
    fixture.json(sender, "PUT", &target, &json!({ "data": data })).await
}

fn grey() -> Hash {
    Hash::of_parts(&[&STANDARD.decode(GREY).unwrap()])
}

fn concert() -> Value {
    let mut file = hall();
    file["event"] = json!({
        "starts_at": "2026-11-21T20:00:00+01:00", "time_zone": "Europe/Vienna",
        "venue": { "name": "Lakeside <b>Stadium</b>", "city": "Vienna" }, "performers": ["The Herons"],
        "about": {
            "description": { "en": "<script>alert(1)</script> **loud**", "zh": "响" },
            "images": [{ "sha256": grey(), "alt": "A heron", "width": 8, "height": 8 }]
        }
    });
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_shown_with_its_sale_and_its_document_for_ever_under_its_hash() {
    let fixture = Fixture::start().await;
    // The document names a picture that nobody has kept.
    let refused = fixture.publish(&concert()).await;
    assert_eq!(refused.problem(422, "invalid")["defects"][0]["at"], "event");
    fixture.get(Sender::Nobody, "/sales/hall").await.problem(404, "not-found");
    let kept = keep(&fixture, Sender::Operator, grey(), GREY).await.ok(200);
    assert_eq!((&kept["width"], &kept["sha256"]), (&json!(8), &json!(grey())));
    assert_eq!(keep(&fixture, Sender::Operator, grey(), GREY).await.ok(200), kept);

    let published = fixture.publish(&concert()).await.ok(200);
    assert_eq!((&published["version"], published.get("warnings")), (&json!(1), None));
    let event = &published["event"];
    assert_eq!(event["starts_at"], "2026-11-21T19:00:00.000Z");
    assert_eq!(event["picture"]["sha256"], json!(grey()), "the first of the document");
    assert_eq!(&published["file"]["event"], event);
    let listed = fixture.get(Sender::Nobody, "/sales").await.ok(200);
    assert_eq!(&listed["sales"][0]["event"], event);
    let about = event["about"].as_str().unwrap();
    let document = fixture.get(Sender::Nobody, &format!("/documents/{about}")).await;
    assert_eq!((document.caching(), &document.body), (IMMUTABLE, &concert()["event"]["about"]));
    // Neither is the other, and what nobody has kept is not there.
    for path in [
        format!("/documents/{}", grey()),
        format!("/pictures/{about}"),
        format!("/documents/{}", Hash([0; 32])),
    ] {
        fixture.get(Sender::Nobody, &path).await.problem(404, "not-found");
    }

    // What was read is published again: with the hash, and with the document once more.
    let read = fixture.get(Sender::Nobody, "/sales/hall").await.ok(200)["file"].clone();
    assert_eq!(fixture.publish(&read).await.ok(200)["version"], 1);
    assert_eq!(fixture.publish(&concert()).await.ok(200)["version"], 1);
    // The facts change while the sale sells.
    let mut later = read.clone();
    later["event"]["starts_at"] = json!("2026-11-22T20:00:00+01:00");
    let published = fixture.publish(&later).await.ok(200);
    assert_eq!((&published["version"], &published["event"]["about"]), (&json!(2), &json!(about)));
    let mut unknown = later.clone();
    unknown["event"]["about"] = json!(Hash([7; 32]));
    let refused = fixture.publish(&unknown).await;
    assert_eq!(refused.problem(422, "invalid")["defects"][0]["at"], "event.about");
    unknown["event"]["about"] = json!(grey());
    fixture.publish(&unknown).await.problem(422, "invalid");
    later.as_object_mut().unwrap().remove("event");
    let published = fixture.publish(&later).await.ok(200);
    assert_eq!(published.get("event"), None);
    assert!(
        published["warnings"][0].as_str().unwrap().contains("event.starts_at"),
        "{published:#}"
    );
    let listed = fixture.get(Sender::Nobody, "/sales").await.ok(200);
    assert_eq!(listed["sales"][0].get("event"), None, "the list forgets it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_is_a_small_jpeg_of_an_operator_and_nothing_else() {
    let fixture = Fixture::start().await;
    keep(&fixture, Sender::Nobody, grey(), GREY).await.problem(401, "not-authenticated");
    let refused = async |bytes: &[u8], slug: &str| {
        let (hash, data) = (Hash::of_parts(&[bytes]), STANDARD.encode(bytes));
        let refused = keep(&fixture, Sender::Operator, hash, &data).await;
        refused.problem(if slug == "too-large" { 413 } else { 422 }, slug);
    };
    refused(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "invalid").await;
    refused(b"\x89PNG\r\n\x1a\n", "invalid").await;
    refused(b"", "invalid").await;
    refused(&vec![0xff; 256 * 1024 + 1], "invalid").await;
    refused(&vec![0xff; 300 * 1024], "too-large").await;
    keep(&fixture, Sender::Operator, Hash([0; 32]), GREY).await.problem(422, "invalid");
    keep(&fixture, Sender::Operator, grey(), "no base64").await.problem(422, "invalid");
    fixture.get(Sender::Nobody, &format!("/pictures/{}", grey())).await.problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_pauses_a_sale_without_a_room_and_says_what_people_read() {
    let fixture = Fixture::start().await;
    fixture.publish(&concert_without_picture()).await.ok(200);
    let say = async |sender: Sender<'_>, body: Value| {
        fixture.json(sender, "POST", "/operator/sales/hall/commands", &body).await
    };
    let operator = || Sender::Token(OPERATOR_ISSUER, "onsale/operate");
    let admitted = async |buyer: &str| {
        let body = json!({ "tickets": 1 });
        fixture.json(Sender::Buyer(buyer), "POST", "/sales/hall/admissions", &body).await
    };
    let before = fixture.admission("ada", "hall", 1).await;
    let said = say(operator(), json!({ "state": "paused", "notice": { "en": "Back at noon" } }));
    let said = said.await.ok(200);
    assert_eq!(
        (&said["state"], &said["file"]["notice"]["en"]),
        (&json!("paused"), &json!("Back at noon"))
    );
    // This process has published it; another one's copy is two seconds old at most.
    admitted("bob").await.problem(403, "sale-closed");
    let lines = json!([{ "tier": "vip", "best": { "count": 1 } }]);
    let held = fixture.order("ada", "hall", &before["token"], lines.clone()).await;
    held.problem(403, "sale-closed");
    // What is not said stays; a second time changes nothing.
    let again = say(operator(), json!({ "state": "paused" })).await.ok(200);
    assert_eq!(
        (&again["version"], &again["file"]["notice"]),
        (&said["version"], &said["file"]["notice"])
    );
    let open = say(operator(), json!({ "state": "open", "notice": null })).await.ok(200);
    assert_eq!((&open["state"], open["file"].get("notice")), (&json!("open"), None));
    assert_eq!(open["event"], said["event"], "all else stays");
    let sold_out = say(operator(), json!({ "sold_out": true })).await.ok(200);
    assert_eq!(sold_out["state"], "sold_out");
    admitted("bob").await.problem(409, "sold-out");
    fixture.order("ada", "hall", &before["token"], lines).await.ok(201);
    let listed = fixture.get(Sender::Nobody, "/sales").await.ok(200);
    assert_eq!(listed["sales"][0]["state"], "sold_out");
    say(operator(), json!({ "sold_out": false })).await.ok(200);
    admitted("bob").await.ok(201);

    for body in [
        json!({}),
        json!({ "state": "cancelled" }),
        json!({ "notice": "" }),
        json!({ "notice": { "EN": "x" } }),
    ] {
        say(operator(), body).await.problem(422, "invalid");
    }
    say(Sender::Nobody, json!({ "sold_out": true })).await.problem(401, "not-authenticated");
    let watcher = Sender::Token(OPERATOR_ISSUER, "onsale/watch");
    say(watcher, json!({ "sold_out": true })).await.problem(403, "not-permitted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_operators_say_at_once_undoes_neither() {
    let fixture = Fixture::start().await;
    fixture.publish(&concert_without_picture()).await.ok(200);
    let operator = || Sender::Token(OPERATOR_ISSUER, "onsale/operate");
    let say = async |body: Value| {
        fixture.json(operator(), "POST", "/operator/sales/hall/commands", &body).await
    };
    let mut both = 0;
    for round in 0..20 {
        let notice = json!({ "en": format!("round {round}") });
        let (paused, told) =
            tokio::join!(say(json!({ "state": "paused" })), say(json!({ "notice": notice })));
        let shown = fixture.get(Sender::Nobody, "/sales/hall").await.ok(200);
        let is = [shown["file"]["state"] == "paused", shown["file"]["notice"] == notice];
        for (reply, is) in [paused, told].into_iter().zip(is) {
            assert_eq!(reply.status == 200, is, "{round}: {:#}", reply.body);
        }
        both += usize::from(is == [true, true]);
        say(json!({ "state": "open" })).await.ok(200);
    }
    println!("both were said in {both} of 20 rounds");
}

fn concert_without_picture() -> Value {
    let mut file = concert();
    file["event"]["about"]["images"] = json!([]);
    file
}
