//! Items: the form of each record in DynamoDB, written out attribute by attribute, so that a change of a Rust type does
//! not change the tables.
//!
//! Only the engine writes these items, so an item that cannot be read is a broken contract.

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::de::DeserializeOwned;

use super::orders::ticket_attributes;
use super::tables;
use super::told::{fact_value, read_fact, text_of};
use engine::domain::basics::ids::{Legs, SaleId, Seat, UserId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::{Gene, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{
    Attempt, AttemptNumber, AttemptState, Attempts, PaymentChoice, PaymentMethod, PaymentStep,
};
use engine::domain::order::attendee::{Attendee, AttendeeHash};
use engine::domain::order::fact::Facts;
use engine::domain::order::order_refund::{
    AskedBy, OrderRefund, RefundCounts, RefundKey, RefundNumber,
};
use engine::domain::order::place::Place;
use engine::domain::order::refund::{Refund, RefundState};
use engine::domain::order::{
    Capture, CheckIn, Issue, Order, OrderLine, OrderState, PaymentKey, PaymentOutcome,
    PaymentRecord, RefundReason, Ticket, TicketName,
};
use engine::domain::sale::{MerchantTerms, RefundTerms};
use engine::ports::{StoreError, Stored, block_of, due_shard};

/// The attribute of a ticket that has its attendee's id, until it is erased.
pub(super) const ATTENDEE: &str = "attendee";
/// The attribute of a ticket that has its attendee's hashes.
const ATTENDEE_HASHES: &str = "attendee_hashes";

/// The attribute of a ticket that has the number of the refund which took it back.
pub(super) const TICKET_REFUND: &str = "refund";
/// The attribute of a refund of an order: how many of its names at the provider came to nothing.
pub(super) const REFUND_ENDED: &str = "ended";
/// How often the money of a whole payment's refund was back and came to us again.
pub(super) const REFUND_UNDONE: &str = "undone";

/// The attributes of a line that say until when a ticket may be given back, and for what fee.
const REFUND_TERMS: [&str; 2] = ["refund_until_ms", "refund_fee_minor"];
/// The attributes of a line that say until when a ticket may be exchanged, and for what fee.
const EXCHANGE_TERMS: [&str; 2] = ["exchange_until_ms", "exchange_fee_minor"];

/// The attribute of a ticket that has its issue, unless that is the first.
pub(super) const TICKET_ISSUE: &str = "issue";
/// The attributes of a ticket that say when and where it has let somebody in.
pub(super) const TICKET_SCANNED: &str = "checked_in_ms";
pub(super) const TICKET_DOOR: &str = "checked_in_door";

/// An item: its attributes by name.
pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

pub(super) fn number(value: impl Into<i128>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

/// An item of these attributes.
pub(super) fn item<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The key of an item in the table of orders.
pub(super) fn orders_key(gene: Gene, sk: String) -> Item {
    item([("gene", number(gene.get())), ("sk", AttributeValue::S(sk))])
}

/// The key of an order.
pub(super) fn order_key(order: OrderNumber) -> Item {
    orders_key(order.gene(), tables::order_key(order))
}

/// The key of a payment.
pub(super) fn payment_key(order: OrderNumber, payment: &PaymentKey) -> Item {
    orders_key(order.gene(), tables::payment_key(payment))
}

/// The key of a buyer's count.
pub(super) fn buyer_key(sale: &SaleId, user: &UserId) -> Item {
    orders_key(Gene::from_text(user.as_str()), tables::buyer_key(sale, user))
}

/// The key of an attendee's claim.
pub(super) fn attendee_key(sale: &SaleId, hash: AttendeeHash) -> Item {
    orders_key(Gene::from_text(&hash.to_string()), tables::attendee_key(sale, hash))
}

/// The key of a seat's claims.
pub(super) fn seat_key(order: &Order, line: &OrderLine, seat: Seat) -> Item {
    let block = tables::block_key(&order.sale, &line.tier, block_of(seat));
    item([("pk", AttributeValue::S(block)), ("sk", number(seat.0))])
}

/// Reads attributes of one item or map, and names it when one is amiss.
pub(super) struct Fields<'a> {
    item: &'a Item,
}

impl<'a> Fields<'a> {
    pub(super) fn from_item(item: &'a Item) -> Self {
        Self { item }
    }

    pub(super) fn broken(&self, name: &str, what: &str) -> StoreError {
        let key = |name: &str| match self.item.get(name) {
            Some(AttributeValue::S(text) | AttributeValue::N(text)) => text.clone(),
            _ => "-".to_owned(),
        };
        let (gene, pk, mut sk) = (key("gene"), key("pk"), key("sk"));
        // This may be logged, and no log has the hash of an attendee.
        if let Some((sale, _)) =
            sk.strip_prefix(tables::ATTENDEE_PREFIX).and_then(|key| key.split_once('#'))
        {
            sk = format!("{}{sale}#…", tables::ATTENDEE_PREFIX);
        }
        StoreError::Contract(format!("item {gene} {pk} {sk}: attribute {name} {what}"))
    }

    fn known<T>(&self, name: &str, value: Option<T>) -> Stored<T> {
        value.ok_or_else(|| self.broken(name, "is absent"))
    }

    /// A text attribute, parsed.
    pub(super) fn maybe_text<T: FromStr>(&self, name: &str) -> Stored<Option<T>> {
        let Some(value) = self.item.get(name) else { return Ok(None) };
        let parsed = value.as_s().ok().and_then(|text| text.parse().ok());
        parsed.map(Some).ok_or_else(|| self.broken(name, &format!("is {value:?}")))
    }

    /// A text attribute, read as JSON.
    pub(super) fn maybe_json<T: DeserializeOwned>(&self, name: &str) -> Stored<Option<T>> {
        let Some(text) = self.maybe_text::<String>(name)? else { return Ok(None) };
        let read = serde_json::from_str(&text);
        read.map(Some).map_err(|error| self.broken(name, &error.to_string()))
    }

    /// A text attribute that must be there, parsed.
    pub(super) fn text<T: FromStr>(&self, name: &str) -> Stored<T> {
        self.maybe_text(name).and_then(|value| self.known(name, value))
    }

    pub(super) fn maybe_number<T: FromStr>(&self, name: &str) -> Stored<Option<T>> {
        let Some(value) = self.item.get(name) else { return Ok(None) };
        let parsed = value.as_n().ok().and_then(|text| text.parse().ok());
        parsed.map(Some).ok_or_else(|| self.broken(name, &format!("is {value:?}")))
    }

    /// A number attribute that must be there.
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Stored<T> {
        self.maybe_number(name).and_then(|value| self.known(name, value))
    }

    pub(super) fn time(&self, name: &str) -> Stored<Timestamp> {
        self.number(name).map(Timestamp::from_ms)
    }

    pub(super) fn flag(&self, name: &str) -> Stored<bool> {
        let Some(value) = self.item.get(name) else { return Ok(false) };
        value.as_bool().copied().map_err(|_| self.broken(name, "is no boolean"))
    }

    /// A list of texts, parsed; empty if it is absent.
    fn texts<T: FromStr>(&self, name: &str) -> Stored<Vec<T>> {
        let Some(list) = self.item.get(name) else { return Ok(Vec::new()) };
        let list = list.as_l().map_err(|_| self.broken(name, "is no list"))?;
        let parsed = |value: &AttributeValue| value.as_s().ok()?.parse().ok();
        let texts: Option<Vec<T>> = list.iter().map(parsed).collect();
        texts.ok_or_else(|| self.broken(name, "is no list of such texts"))
    }

    /// A set of texts, parsed.
    pub(super) fn text_set<T: FromStr + Ord>(&self, name: &str) -> Stored<BTreeSet<T>> {
        let set = self.item.get(name).and_then(|set| set.as_ss().ok());
        let parsed = set.map(|set| set.iter().map(|text| text.parse().ok()).collect());
        parsed.flatten().ok_or_else(|| self.broken(name, "is no set of such texts"))
    }

    fn maybe_map(&self, name: &str) -> Stored<Option<Fields<'a>>> {
        let Some(value) = self.item.get(name) else { return Ok(None) };
        let map = value.as_m().map_err(|_| self.broken(name, "is no map"))?;
        Ok(Some(Fields::from_item(map)))
    }

    pub(super) fn maps(&self, name: &str) -> Stored<Vec<Fields<'a>>> {
        let list = self.known(name, self.item.get(name))?;
        let list = list.as_l().map_err(|_| self.broken(name, "is no list"))?;
        let fields = |value: &'a AttributeValue| {
            value.as_m().map(Fields::from_item).map_err(|_| self.broken(name, "is no list of maps"))
        };
        list.iter().map(fields).collect()
    }
}

/// The attributes that put an item into the `due` index.
pub(super) fn due(order: OrderNumber, at: Timestamp) -> [(&'static str, AttributeValue); 2] {
    [("due_shard", number(due_shard(order))), ("due_ms", number(at.ms()))]
}

pub(super) fn add(
    item: &mut Item,
    attributes: impl IntoIterator<Item = (&'static str, AttributeValue)>,
) {
    item.extend(attributes.into_iter().map(|(name, value)| (name.to_owned(), value)));
}

/// An order as an item. A tombstone is not among its buyer's orders.
pub(super) fn order_item(order: &Order) -> Item {
    let mut item = order_key(order.number);
    add(
        &mut item,
        [
            ("sale", text(&order.sale)),
            ("user", text(&order.user)),
            ("state", text(order.state.as_str())),
            ("lines", AttributeValue::L(order.lines.iter().map(line_value).collect())),
            ("amount_minor", number(order.total.amount_minor)),
            ("currency", text(order.total.currency)),
            ("content", text(&order.fingerprint)),
            ("created_ms", number(order.created_at.ms())),
            ("pay_by_ms", number(order.pay_by.ms())),
            ("changed_ms", number(order.changed_at.ms())),
        ],
    );
    if let Some(payment) = &order.payment {
        add(
            &mut item,
            [("payment_provider", text(&payment.provider)), ("payment_id", text(&payment.payment))],
        );
    }
    if order.merchant != MerchantTerms::house() {
        let MerchantTerms { merchant, commission_basis_points, points } = &order.merchant;
        add(
            &mut item,
            [
                ("merchant", text(merchant)),
                ("commission_basis_points", number(*commission_basis_points)),
            ],
        );
        add(&mut item, points.iter().map(|terms| ("points", text_of(terms))));
    }
    add(&mut item, order.exchange.iter().map(|exchange| ("exchange", text_of(exchange))));
    if order.refunds.made > 0 {
        add(
            &mut item,
            [("refunds", number(order.refunds.made)), ("refunds_back", number(order.refunds.back))],
        );
    }
    if !order.facts.all.is_empty() {
        let facts = order.facts.all.iter().map(fact_value).collect();
        add(
            &mut item,
            [("facts", AttributeValue::L(facts)), ("settled", number(order.facts.settled))],
        );
    }
    if !order.is_tombstone() {
        add(&mut item, [("by_user", text(tables::by_user_key(&order.user, order.number)))]);
    }
    add(&mut item, attempts_attributes(&order.attempts));
    add(&mut item, steps_attribute(&order.attempts));
    add(&mut item, places_attribute(&order.attempts));
    add(&mut item, extension_attribute(&order.attempts));
    add(&mut item, order.attempts.paid.map(|paid| ("paid_attempt", number(paid.get()))));
    if let Some(at) = order.due_at() {
        add(&mut item, due(order.number, at));
    }
    item
}

/// The attempts of an order as attributes; none while there are none.
pub(super) fn attempts_attributes(
    attempts: &Attempts,
) -> impl Iterator<Item = (&'static str, AttributeValue)> {
    let list = || AttributeValue::L(attempts.all.iter().map(attempt_value).collect());
    let written = (attempts.version > 0)
        .then(|| [("attempts", list()), ("attempts_version", number(attempts.version))]);
    written.into_iter().flatten()
}

fn attempt_value(attempt: &Attempt) -> AttributeValue {
    let Attempt { number: of_order, choice, started_at, expires_at, state, .. } = attempt;
    let Attempt { deployment, reference, is_named_first, is_absent, asks, step: _, .. } = attempt;
    let PaymentChoice { provider, method, return_url } = choice;
    let mut map = item([
        ("number", number(of_order.get())),
        ("provider", text(provider)),
        ("method", text(method.as_str())),
        ("started_ms", number(started_at.ms())),
        ("expires_ms", number(expires_at.ms())),
        ("state", text(state.as_str())),
    ]);
    add(&mut map, return_url.iter().map(|url| ("return_url", text(url))));
    add(&mut map, deployment.iter().map(|deployment| ("deployment", text(deployment))));
    add(&mut map, reference.iter().map(|reference| ("reference", text(reference))));
    add(&mut map, is_named_first.then_some(("named_first", AttributeValue::Bool(true))));
    add(&mut map, is_absent.then_some(("absent", AttributeValue::Bool(true))));
    add(&mut map, (*asks > 0).then(|| ("asks", number(*asks))));
    AttributeValue::M(map)
}

/// What buyers do next to pay, by the number of the attempt: apart from the attempts, so that a write which ends the order
/// takes all of it out.
pub(super) fn steps_attribute(attempts: &Attempts) -> Option<(&'static str, AttributeValue)> {
    let step = |attempt: &Attempt| {
        let step = attempt.step.as_ref()?;
        Some((attempt.number.to_string(), text(step.text())))
    };
    let steps: HashMap<String, AttributeValue> = attempts.all.iter().filter_map(step).collect();
    (!steps.is_empty()).then_some(("steps", AttributeValue::M(steps)))
}

/// The places of an order: the time of each in milliseconds, by its provider. They go with the steps.
pub(super) fn places_attribute(attempts: &Attempts) -> Option<(&'static str, AttributeValue)> {
    let place = |place: &Place| (place.provider.to_string(), number(place.at.ms()));
    let places: HashMap<String, AttributeValue> = attempts.places.iter().map(place).collect();
    (!places.is_empty()).then_some(("places", AttributeValue::M(places)))
}

/// The time to which a place has extended an order.
pub(super) fn extension_attribute(attempts: &Attempts) -> Option<(&'static str, AttributeValue)> {
    attempts.extended_to.map(|extended_to| ("extended_ms", number(extended_to.ms())))
}

fn read_places(fields: &Fields<'_>) -> Stored<Vec<Place>> {
    let Some(places) = fields.maybe_map("places")? else { return Ok(Vec::new()) };
    let read = |provider: &String| {
        let of = provider.parse().map_err(|_| fields.broken("places", "names no provider"))?;
        Ok(Place { provider: of, at: places.time(provider)? })
    };
    let mut places = places.item.keys().map(read).collect::<Stored<Vec<Place>>>()?;
    places.sort();
    Ok(places)
}

fn read_attempts(fields: &Fields<'_>) -> Stored<Attempts> {
    let version = fields.maybe_number("attempts_version")?.unwrap_or_default();
    let all = if version == 0 { Vec::new() } else { fields.maps("attempts")? };
    let steps = fields.maybe_map("steps")?;
    let read = |fields: &Fields<'_>| {
        let attempt = read_attempt(fields)?;
        let Some(steps) = &steps else { return Ok(attempt) };
        let step = steps.maybe_text(&attempt.number.to_string())?;
        let step = step.map(|text| PaymentStep::of(attempt.choice.method, text));
        Ok(Attempt { step, ..attempt })
    };
    Ok(Attempts {
        all: all.iter().map(read).collect::<Stored<_>>()?,
        version,
        paid: read_attempt_number(fields, "paid_attempt")?,
        places: read_places(fields)?,
        extended_to: fields.maybe_number("extended_ms")?.map(Timestamp::from_ms),
    })
}

fn read_attempt_number(fields: &Fields<'_>, name: &str) -> Stored<Option<AttemptNumber>> {
    let Some(number) = fields.maybe_number::<u8>(name)? else { return Ok(None) };
    let number = AttemptNumber::try_from(number);
    number.map(Some).map_err(|_| fields.broken(name, "is no attempt's number"))
}

fn read_attempt(fields: &Fields<'_>) -> Stored<Attempt> {
    let missing = || fields.broken("number", "is absent");
    let method: String = fields.text("method")?;
    let method = PaymentMethod::ALL.into_iter().find(|known| known.as_str() == method);
    let state: String = fields.text("state")?;
    let state = AttemptState::ALL.into_iter().find(|known| known.as_str() == state);
    Ok(Attempt {
        number: read_attempt_number(fields, "number")?.ok_or_else(missing)?,
        choice: PaymentChoice {
            provider: fields.text("provider")?,
            method: method.ok_or_else(|| fields.broken("method", "is no method"))?,
            return_url: fields.maybe_text("return_url")?,
        },
        started_at: fields.time("started_ms")?,
        expires_at: fields.time("expires_ms")?,
        deployment: fields.maybe_text("deployment")?,
        reference: fields.maybe_text("reference")?,
        is_named_first: fields.flag("named_first")?,
        step: None,
        is_absent: fields.flag("absent")?,
        asks: fields.maybe_number("asks")?.unwrap_or(0),
        state: state.ok_or_else(|| fields.broken("state", "is no state"))?,
    })
}

fn read_facts(fields: &Fields<'_>) -> Stored<Facts> {
    let settled = fields.maybe_number("settled")?;
    let Some(settled) = settled else { return Ok(Facts::default()) };
    let texts: Vec<String> = fields.texts("facts")?;
    let all = texts.iter().map(|text| read_fact(text)).collect::<Result<_, _>>();
    let all = all.map_err(|error| fields.broken("facts", &format!("tells nothing: {error}")))?;
    Ok(Facts { all, settled })
}

fn line_value(line: &OrderLine) -> AttributeValue {
    let mut map = item([
        ("tier", text(&line.tier)),
        ("from", number(line.legs.from())),
        ("to", number(line.legs.to())),
        ("price_minor", number(line.price_minor)),
        ("tickets", AttributeValue::L(line.tickets.iter().map(ticket_value).collect())),
    ]);
    for (terms, [until_ms, fee_minor]) in
        [(line.terms, REFUND_TERMS), (line.exchange, EXCHANGE_TERMS)]
    {
        let written = terms.map(|terms| {
            [(until_ms, number(terms.until.ms())), (fee_minor, number(terms.fee_minor))]
        });
        add(&mut map, written.into_iter().flatten());
    }
    AttributeValue::M(map)
}

fn ticket_value(ticket: &Ticket) -> AttributeValue {
    let mut map = item([("seat", number(ticket.seat.0)), ("name", text(&ticket.name))]);
    if let Some(Attendee { id, hashes }) = &ticket.attendee {
        let hashes = AttributeValue::L(hashes.iter().map(text).collect());
        add(&mut map, [(ATTENDEE_HASHES, hashes)]);
        add(&mut map, id.iter().map(|id| (ATTENDEE, text(id))));
    }
    add(&mut map, ticket.refund.map(|refund| (TICKET_REFUND, number(refund.get()))));
    add(&mut map, ticket_attributes(ticket.issue, ticket.checked_in.as_ref()));
    AttributeValue::M(map)
}

pub(super) fn read_order(item: &Item) -> Stored<Order> {
    let fields = Fields::from_item(item);
    let sk: String = fields.text("sk")?;
    let order_number =
        tables::order_of_key(&sk).ok_or_else(|| fields.broken("sk", "is no order's"))?;
    let state: String = fields.text("state")?;
    let state = OrderState::ALL
        .into_iter()
        .find(|known| known.as_str() == state)
        .ok_or_else(|| fields.broken("state", "is no state"))?;
    let provider = fields.maybe_text("payment_provider")?;
    let payment = fields.maybe_text("payment_id")?;
    let payment = provider.zip(payment).map(|(provider, payment)| PaymentKey { provider, payment });
    Ok(Order {
        number: order_number,
        sale: fields.text("sale")?,
        user: fields.text("user")?,
        state,
        lines: fields.maps("lines")?.iter().map(read_line).collect::<Stored<_>>()?,
        total: read_money(&fields)?,
        fingerprint: fields.text("content")?,
        created_at: fields.time("created_ms")?,
        pay_by: fields.time("pay_by_ms")?,
        changed_at: fields.time("changed_ms")?,
        payment,
        attempts: read_attempts(&fields)?,
        facts: read_facts(&fields)?,
        refunds: RefundCounts {
            made: fields.maybe_number("refunds")?.unwrap_or_default(),
            back: fields.maybe_number("refunds_back")?.unwrap_or_default(),
        },
        merchant: read_merchant(&fields)?,
        exchange: fields.maybe_json("exchange")?,
    })
}

fn read_merchant(fields: &Fields<'_>) -> Stored<MerchantTerms> {
    let Some(merchant) = fields.maybe_text("merchant")? else { return Ok(MerchantTerms::house()) };
    let commission_basis_points = fields.number("commission_basis_points")?;
    Ok(MerchantTerms { merchant, commission_basis_points, points: fields.maybe_json("points")? })
}

pub(super) fn read_money(fields: &Fields<'_>) -> Stored<Money> {
    Ok(Money { amount_minor: fields.number("amount_minor")?, currency: read_currency(fields)? })
}

pub(super) fn read_currency(fields: &Fields<'_>) -> Stored<Currency> {
    let currency: String = fields.text("currency")?;
    currency.try_into().map_err(|_| fields.broken("currency", "is no currency code"))
}

fn read_line(fields: &Fields<'_>) -> Stored<OrderLine> {
    let legs = Legs::new(fields.number("from")?, fields.number("to")?)
        .ok_or_else(|| fields.broken("to", "is not after from"))?;
    Ok(OrderLine {
        tier: fields.text("tier")?,
        legs,
        price_minor: fields.number("price_minor")?,
        terms: read_terms(fields, REFUND_TERMS)?,
        exchange: read_terms(fields, EXCHANGE_TERMS)?,
        tickets: fields.maps("tickets")?.iter().map(read_ticket).collect::<Stored<_>>()?,
    })
}

fn read_ticket(fields: &Fields<'_>) -> Stored<Ticket> {
    let (seat, name) = (Seat(fields.number("seat")?), fields.text("name")?);
    // Most have nothing else, and every order that is read has some.
    if fields.item.len() == 2 {
        let (attendee, refund, issue, checked_in) = (None, None, Issue::FIRST, None);
        return Ok(Ticket { seat, name, attendee, refund, issue, checked_in });
    }
    Ok(Ticket {
        seat,
        name,
        attendee: read_attendee(fields)?,
        refund: read_refund_number(fields, TICKET_REFUND)?,
        issue: read_issue(fields)?,
        checked_in: read_check_in(fields)?,
    })
}

fn read_issue(fields: &Fields<'_>) -> Stored<Issue> {
    let Some(issue) = fields.maybe_number::<u32>(TICKET_ISSUE)? else { return Ok(Issue::FIRST) };
    Issue::try_from(issue).map_err(|_| fields.broken(TICKET_ISSUE, "is no issue"))
}

fn read_check_in(fields: &Fields<'_>) -> Stored<Option<CheckIn>> {
    let Some(at) = fields.maybe_number(TICKET_SCANNED)? else { return Ok(None) };
    Ok(Some(CheckIn { at: Timestamp::from_ms(at), door: fields.text(TICKET_DOOR)? }))
}

fn read_terms(
    fields: &Fields<'_>,
    [until_ms, fee_minor]: [&str; 2],
) -> Stored<Option<RefundTerms>> {
    let Some(until) = fields.maybe_number(until_ms)? else { return Ok(None) };
    let fee_minor = fields.number(fee_minor)?;
    Ok(Some(RefundTerms { until: Timestamp::from_ms(until), fee_minor }))
}

fn read_refund_number(fields: &Fields<'_>, name: &str) -> Stored<Option<RefundNumber>> {
    let Some(number) = fields.maybe_number::<u8>(name)? else { return Ok(None) };
    let number = RefundNumber::try_from(number);
    number.map(Some).map_err(|_| fields.broken(name, "is no refund's number"))
}

/// The key of a refund of an order.
pub(super) fn order_refund_key(key: RefundKey) -> Item {
    orders_key(key.order.gene(), tables::refund_key(key))
}

/// A refund of an order as an item, due until the money is back.
pub(super) fn order_refund_item(refund: &OrderRefund) -> Item {
    let OrderRefund {
        key,
        payment,
        tickets,
        amount,
        kept_minor,
        asked_by,
        reason,
        made_at,
        refund,
        ended,
    } = refund;
    let ticket = |ticket: &TicketName| {
        AttributeValue::M(item([("tier", text(&ticket.tier)), ("seat", text(&ticket.seat))]))
    };
    let mut item = order_refund_key(*key);
    add(
        &mut item,
        [
            ("order", text(key.order)),
            ("payment_provider", text(&payment.provider)),
            ("payment_id", text(&payment.payment)),
            ("tickets", AttributeValue::L(tickets.iter().map(ticket).collect())),
            ("amount_minor", number(amount.amount_minor)),
            ("currency", text(amount.currency)),
            ("asked_by", text(asked_by.as_str())),
            ("made_ms", number(made_at.ms())),
        ],
    );
    if *kept_minor != MinorUnits::ZERO {
        add(&mut item, [("kept_minor", number(*kept_minor))]);
    }
    add(&mut item, reason.iter().map(|reason| ("reason", text(reason))));
    if *ended > 0 {
        add(&mut item, [(REFUND_ENDED, number(*ended))]);
    }
    add(&mut item, refund_attributes(key.order, refund));
    item
}

/// Reads a refund of an order.
pub(super) fn read_order_refund(item: &Item) -> Stored<OrderRefund> {
    let fields = Fields::from_item(item);
    let sk: String = fields.text("sk")?;
    let key = tables::refund_of_key(&sk).ok_or_else(|| fields.broken("sk", "is no refund's"))?;
    let asked_by: String = fields.text("asked_by")?;
    let asked_by = AskedBy::ALL.into_iter().find(|known| known.as_str() == asked_by);
    let ticket = |fields: &Fields<'_>| {
        Ok(TicketName { tier: fields.text("tier")?, seat: fields.text("seat")? })
    };
    let refund = read_refund(&fields)?;
    Ok(OrderRefund {
        key,
        payment: PaymentKey {
            provider: fields.text("payment_provider")?,
            payment: fields.text("payment_id")?,
        },
        tickets: fields.maps("tickets")?.iter().map(ticket).collect::<Stored<_>>()?,
        amount: read_money(&fields)?,
        kept_minor: fields.maybe_number("kept_minor")?.unwrap_or_default(),
        asked_by: asked_by.ok_or_else(|| fields.broken("asked_by", "is nobody"))?,
        reason: fields.maybe_text("reason")?,
        made_at: fields.time("made_ms")?,
        refund: refund.ok_or_else(|| fields.broken("refund_state", "is absent"))?,
        ended: fields.maybe_number(REFUND_ENDED)?.unwrap_or_default(),
    })
}

/// The attendee of a ticket. Without an id it was erased; without hashes, as before there were any,
/// nothing is claimed for it.
fn read_attendee(fields: &Fields<'_>) -> Stored<Option<Attendee>> {
    let id = fields.maybe_text(ATTENDEE)?;
    let hashes = fields.texts(ATTENDEE_HASHES)?;
    Ok((id.is_some() || !hashes.is_empty()).then_some(Attendee { id, hashes }))
}

/// A payment as an item. One that goes back is due until the money is back.
pub(super) fn payment_item(record: &PaymentRecord) -> Item {
    let PaymentRecord {
        capture,
        outcome,
        decided_at,
        refund,
        ended,
        undone,
        back,
        disputes,
        captured,
    } = record;
    let mut item = payment_key(capture.order, &capture.key);
    add(
        &mut item,
        [
            ("order", text(capture.order)),
            ("amount_minor", number(capture.amount.amount_minor)),
            ("currency", text(capture.amount.currency)),
            ("decided_ms", number(decided_at.ms())),
            ("by_user", text(tables::ledger_key(capture.order, *decided_at))),
        ],
    );
    add(&mut item, capture.attempt.map(|attempt| ("attempt", number(attempt.get()))));
    match outcome {
        PaymentOutcome::Accepted => add(&mut item, [("outcome", text("accepted"))]),
        PaymentOutcome::Refund(reason) => {
            add(&mut item, [("outcome", text("refund")), ("reason", text(reason.as_str()))]);
        }
    }
    if *back != MinorUnits::ZERO {
        add(&mut item, [("back_minor", number(*back))]);
    }
    if !disputes.is_empty() {
        add(&mut item, [("disputes", text_of(disputes))]);
    }
    add(&mut item, dispute_list_attributes(record).into_iter().flatten());
    add(&mut item, captured.iter().map(|captured| ("captured", text_of(captured))));
    add(&mut item, record.open_dispute().map(|open| ("disputed", text(&open.id))));
    if let Some(refund) = refund {
        add(&mut item, refund_attributes(capture.order, refund));
    }
    let counts = [(REFUND_ENDED, *ended), (REFUND_UNDONE, *undone)];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    add(&mut item, counts.map(|(name, count)| (name, number(count))));
    item
}

/// The attributes that put a payment into the index of disputes, which also has the unmatched captures; `None` if it is
/// neither.
pub(super) fn dispute_list_attributes(
    record: &PaymentRecord,
) -> Option<[(&'static str, AttributeValue); 2]> {
    if record.is_unmatched() {
        let at = tables::unmatched_at(record.capture.order);
        return Some([("dispute_list", text(tables::UNMATCHED)), ("dispute_at", text(at))]);
    }
    let changed_at = record.disputes.iter().map(|dispute| dispute.changed_at).max()?;
    let list = tables::dispute_list(record.open_dispute().is_some());
    let at = tables::dispute_at(changed_at, record.capture.order);
    Some([("dispute_list", text(list)), ("dispute_at", text(at))])
}

/// The attribute of a payment that has the turn of its refund.
pub(super) const REFUND_TURN: &str = "refund_turn_ms";

/// The state of a refund, as attributes of its payment.
pub(super) fn refund_attributes(
    order: OrderNumber,
    refund: &Refund,
) -> impl Iterator<Item = (&'static str, AttributeValue)> {
    let state = ("refund_state", text(refund.state.as_str()));
    let changed = ("refund_ms", number(refund.changed_at.ms()));
    let refusal = refund.refusal.as_ref().map(|why| ("refusal", text(why)));
    let again = refund.again_at().map(|at| due(order, at));
    let turn = refund.turn_at.map(|at| (REFUND_TURN, number(at.ms())));
    let again = again.into_iter().flatten();
    [state, changed].into_iter().chain(refusal).chain(turn).chain(again)
}

fn read_refund(fields: &Fields<'_>) -> Stored<Option<Refund>> {
    let Some(state) = fields.maybe_text::<String>("refund_state")? else { return Ok(None) };
    let known = RefundState::ALL.into_iter().find(|known| known.as_str() == state);
    Ok(Some(Refund {
        state: known.ok_or_else(|| fields.broken("refund_state", "is no state"))?,
        changed_at: fields.time("refund_ms")?,
        refusal: fields.maybe_text("refusal")?,
        turn_at: fields.maybe_number(REFUND_TURN)?.map(Timestamp::from_ms),
    }))
}

pub(super) fn read_payment(item: &Item) -> Stored<PaymentRecord> {
    let fields = Fields::from_item(item);
    let sk: String = fields.text("sk")?;
    let key = tables::payment_of_key(&sk).ok_or_else(|| fields.broken("sk", "is no payment's"))?;
    let outcome: String = fields.text("outcome")?;
    let outcome = match outcome.as_str() {
        "accepted" => PaymentOutcome::Accepted,
        "refund" => {
            let reason: String = fields.text("reason")?;
            let reason = RefundReason::ALL.into_iter().find(|known| known.as_str() == reason);
            PaymentOutcome::Refund(reason.ok_or_else(|| fields.broken("reason", "is no reason"))?)
        }
        _ => return Err(fields.broken("outcome", "is no outcome")),
    };
    Ok(PaymentRecord {
        capture: Capture {
            key,
            order: fields.text("order")?,
            amount: read_money(&fields)?,
            attempt: read_attempt_number(&fields, "attempt")?,
        },
        outcome,
        decided_at: fields.time("decided_ms")?,
        refund: read_refund(&fields)?,
        ended: fields.maybe_number(REFUND_ENDED)?.unwrap_or_default(),
        undone: fields.maybe_number(REFUND_UNDONE)?.unwrap_or_default(),
        back: fields.maybe_number("back_minor")?.unwrap_or_default(),
        disputes: fields.maybe_json("disputes")?.unwrap_or_default(),
        captured: fields.maybe_json("captured")?,
    })
}

/// The claim of an attendee as an item.
pub(super) fn attendee_item(order: &Order, hash: AttendeeHash) -> Item {
    let mut item = attendee_key(&order.sale, hash);
    add(&mut item, [("order", text(order.number))]);
    item
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::basics::ids::{
        AttendeeId, PaymentId, ProviderId, RequestFingerprint, SeatName, TierId,
    };
    use engine::domain::basics::money::Currency;
    use engine::domain::order::exchange::Exchange;
    use engine::domain::order::fact::{Cause, FactKind};

    fn order(state: OrderState) -> Order {
        let user = UserId::new("auth0|张三").unwrap();
        let now = Timestamp::from_ms(1_800_000_000_123);
        let ticket = |seat: u32, attendee: Option<&str>| Ticket {
            seat: Seat(seat),
            name: SeatName::new(format!("3-{seat}")).unwrap(),
            attendee: attendee.map(|id| Attendee {
                id: Some(AttendeeId::new(id).unwrap()),
                hashes: ["a", "b"].map(|digit| digit.repeat(32).parse().unwrap()).to_vec(),
            }),
            refund: None,
            issue: Issue::FIRST,
            checked_in: None,
        };
        Order {
            number: engine::domain::basics::number::Mint::new(77).mint(now, &user),
            sale: SaleId::new("g1-2026-11-21").unwrap(),
            user,
            state,
            lines: vec![OrderLine {
                tier: TierId::new("second").unwrap(),
                legs: Legs::new(1, 4).unwrap(),
                price_minor: MinorUnits(55_300),
                terms: None,
                exchange: None,
                tickets: vec![ticket(400_000, Some("id 1")), ticket(1, None)],
            }],
            total: Money {
                amount_minor: MinorUnits(110_600),
                currency: Currency::new("CNY").unwrap(),
            },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: now,
            pay_by: now.plus_seconds(900),
            changed_at: now.plus_ms(7),
            payment: None,
            attempts: Attempts::default(),
            facts: Facts::made(now),
            refunds: RefundCounts::default(),
            merchant: MerchantTerms::house(),
            exchange: None,
        }
    }

    fn key() -> PaymentKey {
        PaymentKey {
            provider: ProviderId::new("stripe").unwrap(),
            payment: PaymentId::new("pi_1").unwrap(),
        }
    }

    #[test]
    fn every_order_is_read_as_it_was_written() {
        for state in OrderState::ALL {
            let plain = order(state);
            let capture =
                Capture { key: key(), order: plain.number, amount: plain.total, attempt: None };
            let cause = Cause::capture(&capture, Some(RefundReason::TooLate));
            let facts = plain.facts.with(FactKind::RefundDue, plain.changed_at, cause);
            let paid = Order { payment: Some(key()), facts: facts.all_settled(), ..plain.clone() };
            let tombstone = Order { lines: Vec::new(), ..plain.clone() };
            let mut erased = plain.clone();
            erased.lines[0].tickets[0].attendee.as_mut().unwrap().id = None;
            let mut without_hashes = plain.clone();
            without_hashes.lines[0].tickets[0].attendee.as_mut().unwrap().hashes.clear();
            let mut refunded = Order { refunds: RefundCounts { made: 2, back: 1 }, ..paid.clone() };
            refunded.lines[0].tickets[1].refund = RefundNumber::try_from(2).ok();
            let until = refunded.pay_by;
            refunded.lines[0].terms = Some(RefundTerms { until, fee_minor: MinorUnits(7) });
            refunded.lines[0].exchange = Some(RefundTerms { until, fee_minor: MinorUnits(8) });
            let name = refunded.lines[0].tickets[1].named(&refunded.lines[0]);
            refunded.exchange = Some(Exchange {
                order: refunded.number,
                sale: refunded.sale.clone(),
                tickets: vec![name],
                value_minor: MinorUnits(9),
            });
            refunded.lines[0].tickets[0].issue = Issue::FIRST.next();
            let door = engine::domain::basics::ids::DoorName::new("北门 2").unwrap();
            refunded.lines[0].tickets[1].checked_in = Some(CheckIn { at: until, door });
            for order in [plain, paid, tombstone, erased, without_hashes, refunded] {
                assert_eq!(read_order(&order_item(&order)), Ok(order));
            }
        }
    }

    #[test]
    fn an_order_is_due_while_something_is_still_to_be_done() {
        let due_ms = |order: &Order| order_item(order).get("due_ms").cloned();
        let pending = order(OrderState::Pending);
        assert_eq!(due_ms(&pending), Some(number(pending.pay_by.ms())));
        let paid = order(OrderState::Paid);
        let told_at = paid.facts.last_at().unwrap();
        assert_eq!(due_ms(&paid), Some(number(told_at.ms() + 60_000)));
        let settled = |order: &Order| Order { facts: order.facts.all_settled(), ..order.clone() };
        assert_eq!(due_ms(&settled(&paid)), None);
        for state in [
            OrderState::Cancelled,
            OrderState::Expired,
            OrderState::RefundDue,
            OrderState::Refunded,
        ] {
            assert_eq!(due_ms(&settled(&order(state))), None, "{state:?}");
            let unsettled = due_ms(&order(state));
            let at = order(state).unsettled_since().unwrap().ms() + 60_000;
            assert_eq!(unsettled, Some(number(at)), "{state:?}");
        }
    }

    #[test]
    fn every_payment_is_read_as_it_was_written() {
        let order = order(OrderState::Pending);
        let capture = Capture {
            key: key(),
            order: order.number,
            amount: order.total,
            attempt: Some(AttemptNumber::FIRST),
        };
        let decided =
            |outcome| PaymentRecord::decided(&capture, outcome, order.created_at.plus_ms(3));
        let accepted = decided(PaymentOutcome::Accepted);
        assert_eq!(read_payment(&payment_item(&accepted)), Ok(accepted.clone()));
        let mut new = Order { number: "7".parse().unwrap(), ..order.clone() };
        new.exchange = Some(Exchange {
            order: order.number,
            sale: order.sale.clone(),
            tickets: Vec::new(),
            value_minor: MinorUnits(9),
        });
        let moved = accepted.moved_to(&new, order.pay_by).unwrap();
        assert_eq!(moved.at_provider().capture, capture);
        assert_eq!(read_payment(&payment_item(&moved)), Ok(moved));
        assert!(!payment_item(&accepted).contains_key("due_ms"));
        for reason in RefundReason::ALL {
            let due = decided(PaymentOutcome::Refund(reason));
            assert_eq!(read_payment(&payment_item(&due)), Ok(due));
            // The text in the table is the one in messages and replies.
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        for state in RefundState::ALL {
            let refusal = (state == RefundState::Failed).then(|| "no funds".to_owned());
            let turn_at = (state == RefundState::Requested).then(|| order.created_at.plus_ms(99));
            let changed_at = order.created_at.plus_ms(9);
            let refund = Refund { state, changed_at, refusal, turn_at };
            let outcome = PaymentOutcome::Refund(RefundReason::TooLate);
            let is_due = state.again_after_seconds().is_some();
            let undone = u8::from(state == RefundState::FailedLater);
            let record = PaymentRecord {
                refund: Some(refund),
                ended: 2 * undone,
                undone,
                ..decided(outcome)
            };
            let item = payment_item(&record);
            assert_eq!(item.contains_key("due_ms"), is_due, "{state:?}");
            assert_eq!(read_payment(&item), Ok(record));
        }
    }

    #[test]
    fn every_refund_of_an_order_is_read_as_it_was_written() {
        let order = order(OrderState::Paid);
        for asked_by in AskedBy::ALL {
            for state in RefundState::ALL {
                let refusal = (state == RefundState::Failed).then(|| "no funds".to_owned());
                let ticket = &order.lines[0].tickets[1];
                let refund = OrderRefund {
                    key: RefundKey { order: order.number, number: RefundNumber::FIRST },
                    payment: key(),
                    tickets: vec![ticket.named(&order.lines[0])],
                    amount: order.total,
                    kept_minor: MinorUnits(i64::from(asked_by == AskedBy::Exchange)),
                    asked_by,
                    reason: (asked_by == AskedBy::Operator).then(|| "rain".to_owned()),
                    made_at: order.created_at,
                    refund: Refund {
                        state,
                        changed_at: order.created_at.plus_ms(9),
                        refusal,
                        turn_at: None,
                    },
                    ended: u8::from(state == RefundState::FailedLater),
                };
                let item = order_refund_item(&refund);
                let is_due = state.again_after_seconds().is_some();
                assert_eq!(item.contains_key("due_ms"), is_due, "{state:?}");
                assert_eq!(read_order_refund(&item), Ok(refund));
            }
        }
    }

    #[test]
    fn what_is_wrong_with_an_attendees_claim_is_said_without_the_hash() {
        let hash = "0123456789abcdef".repeat(2);
        let sale = SaleId::new("g1").unwrap();
        let key = attendee_key(&sale, hash.parse().unwrap());
        let message = Fields::from_item(&key).text::<OrderNumber>("order").unwrap_err().to_string();
        assert!(message.contains("attendee#g1#…: attribute order is absent"), "{message}");
        assert!(!message.contains(&hash[..8]), "{message}");
    }

    #[test]
    fn an_item_that_we_did_not_write_is_named() {
        let good = order_item(&order(OrderState::Pending));
        let cases = [
            ("state", Some(text("lost")), "state is no state"),
            ("state", None, "state is absent"),
            ("amount_minor", Some(text("1")), "amount_minor is S(\"1\")"),
            ("currency", Some(text("€")), "currency is no currency code"),
            ("lines", Some(text("")), "lines is no list"),
            ("sale", Some(text("#")), "sale is S(\"#\")"),
        ];
        for (name, value, expected) in cases {
            let mut item = good.clone();
            item.remove(name);
            item.extend(value.map(|value| (name.to_owned(), value)));
            let message = read_order(&item).unwrap_err().to_string();
            assert!(message.contains("order#"), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }
}
