//! The sale in the words of schema.org, for search engines: an `Event`, or a `TrainTrip` if the sale has stops.
//!
//! Source: <https://schema.org/Event>, <https://schema.org/TrainTrip>, and what Google requires of an event:
//! <https://developers.google.com/search/docs/appearance/structured-data/event>.

use engine::domain::basics::money::MinorUnits;
use engine::domain::sale::event::EventFacts;
use engine::domain::sale::{SaleFile, SaleState, Stop, TierFile};
use serde_json::{Value, json};
use shared::http::sale_reply::Phase;

use super::Shown;
use super::words::{Told, decimal, paragraphs, price_range, train_number};

/// The document; `None` if the sale says too little: an event needs its beginning and its venue, a train two stops.
pub(super) fn document(shown: &Shown<'_>) -> Option<Value> {
    let mut document =
        if shown.file.stops.is_empty() { event(shown)? } else { train_trip(shown.file)? };
    let members = document.as_object_mut()?;
    members.insert("@context".to_owned(), json!("https://schema.org"));
    members.insert("name".to_owned(), json!(shown.file.title));
    let offers: Vec<Value> =
        shown.file.tiers.iter().filter_map(|tier| offer(shown, tier)).collect();
    let others = [
        ("url", shown.address().map(|address| json!(address))),
        ("image", shown.picture_address().map(|address| json!([address]))),
        ("description", shown.description().map(|text| json!(paragraphs(text.text).join("\n")))),
        ("offers", Some(json!(offers))),
    ];
    let others = others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    members.extend(others);
    Some(document)
}

fn event(shown: &Shown<'_>) -> Option<Value> {
    let facts = shown.event?;
    let told = |at| Told::at(at, facts.time_zone.as_ref()).map(|told| told.iso());
    let status = match shown.file.state {
        SaleState::Open | SaleState::Paused => "https://schema.org/EventScheduled",
        SaleState::Cancelled => "https://schema.org/EventCancelled",
    };
    let mut event = json!({
        "@type": "Event",
        "startDate": told(facts.starts_at?)?,
        "eventStatus": status,
        "eventAttendanceMode": "https://schema.org/OfflineEventAttendanceMode",
        "location": place(shown, facts)?,
    });
    if let Some(at) = facts.ends_at {
        event["endDate"] = json!(told(at));
    }
    if let Some(at) = facts.doors_at {
        event["doorTime"] = json!(told(at));
    }
    if !facts.performers.is_empty() {
        let performer = |name: &String| json!({ "@type": "PerformingGroup", "name": name });
        event["performer"] = facts.performers.iter().map(performer).collect();
    }
    Some(event)
}

fn place(shown: &Shown<'_>, facts: &EventFacts) -> Option<Value> {
    let venue = facts.venue.as_ref()?;
    let about = shown.about;
    let mut address = json!({ "@type": "PostalAddress" });
    let street = about.and_then(|about| super::words::chosen(about.address.as_ref()?));
    for (name, value) in [
        ("streetAddress", street.map(|street| street.text)),
        ("addressLocality", venue.city.as_deref()),
        ("addressCountry", venue.country.as_deref()),
    ] {
        if let Some(value) = value {
            address[name] = json!(value);
        }
    }
    let mut place = json!({ "@type": "Place", "name": venue.name, "address": address });
    let geo = about.and_then(|about| Some((about.latitude?, about.longitude?)));
    if let Some((latitude, longitude)) = geo {
        place["geo"] = json!({
            "@type": "GeoCoordinates",
            "latitude": f64::from(latitude),
            "longitude": f64::from(longitude),
        });
    }
    Some(place)
}

fn train_trip(file: &SaleFile) -> Option<Value> {
    let [first, .., last] = file.stops.as_slice() else { return None };
    let station = |stop: &Stop| json!({ "@type": "TrainStation", "name": stop.name });
    let mut trip = json!({
        "@type": "TrainTrip",
        "departureStation": station(first),
        "arrivalStation": station(last),
    });
    if let Some(told) = Told::of_stop(file, first, first.departs) {
        trip["departureTime"] = json!(told.iso());
    }
    if let Some(told) = Told::of_stop(file, last, last.arrives) {
        trip["arrivalTime"] = json!(told.iso());
    }
    if let Some(number) = train_number(&file.title) {
        trip["trainNumber"] = json!(number);
    }
    Some(trip)
}

/// The offer of a tier; that of a train's tier with fares has the least and the most of them.
fn offer(shown: &Shown<'_>, tier: &TierFile) -> Option<Value> {
    let file = shown.file;
    let (least, most) = price_range(tier)?;
    let amount = |amount: MinorUnits| decimal(amount, file.currency);
    let mut offer = if tier.price_minor.is_some() || least == most {
        json!({ "@type": "Offer", "price": amount(least) })
    } else {
        let (low, high) = (amount(least), amount(most));
        json!({ "@type": "AggregateOffer", "lowPrice": low, "highPrice": high, "offerCount": tier.fares.len() })
    };
    offer["name"] = json!(tier.name);
    offer["priceCurrency"] = json!(file.currency);
    offer["availability"] = json!(availability(shown.phase));
    offer["validFrom"] = json!(Told::at(file.opens_at, None).map(|told| told.iso()));
    offer["validThrough"] = json!(Told::at(file.sells_until(), None).map(|told| told.iso()));
    if let Some(address) = shown.address() {
        offer["url"] = json!(address);
    }
    Some(offer)
}

/// What the operator says of the sale. What is left of each tier is not asked for: it changes each second.
fn availability(phase: Phase) -> &'static str {
    match phase {
        // From when on, `validFrom` says.
        Phase::Upcoming | Phase::Open => "https://schema.org/InStock",
        Phase::SoldOut => "https://schema.org/SoldOut",
        Phase::Paused => "https://schema.org/OutOfStock",
        Phase::Cancelled | Phase::Closed | Phase::Archived => "https://schema.org/Discontinued",
    }
}
