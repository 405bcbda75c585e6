//! The requests and answers of Stripe's API, as far as the engine writes and reads them.
//!
//! Unknown fields are passed over: Stripe adds some at any time.

use serde::Deserialize;

use super::COUNTING;
use super::metadata::Metadata;
use crate::providers::account::escaped;
use engine::domain::basics::ids::{
    DeploymentId, PageMark, PaymentId, ProviderId, ProviderRefundId,
};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::order_refund::{OrderRefund, RefundName};
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{PaymentKey, PaymentRecord};
use engine::domain::payment::bill::Period;
use engine::domain::payment::ours::Reported;
use engine::domain::payment::outside::{SentRefund, SentState};
use engine::ports::{StoreError, Stored};

/// Most objects of one page, as Stripe limits it.
pub(super) const PAGE: usize = 100;

/// One page of a search.
/// Source: <https://docs.stripe.com/api/pagination/search>
#[derive(Debug, Deserialize)]
pub(super) struct SearchPage<T> {
    pub(super) data: Vec<T>,
    #[serde(default)]
    pub(super) next_page: Option<String>,
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct List<T> {
    pub(super) data: Vec<T>,
    #[serde(default)]
    pub(super) has_more: bool,
}

/// One page of the list of events, newest first. Each is read by itself: one that cannot be read must not
/// hide the others.
/// Source: <https://docs.stripe.com/api/events/list>
#[derive(Debug, Deserialize)]
pub(super) struct EventsPage {
    pub(super) data: Vec<serde_json::Value>,
    #[serde(default)]
    has_more: bool,
}

impl EventsPage {
    /// The mark of the next page: the name of the last event.
    ///
    /// # Errors
    /// [`StoreError::Contract`] if more follows an event without a name.
    pub(super) fn next(&self) -> Stored<Option<PageMark>> {
        let last = self.data.last().filter(|_| self.has_more);
        let mark = |event: &serde_json::Value| {
            let mark = event["id"].as_str().and_then(|id| PageMark::new(id).ok());
            mark.ok_or_else(|| StoreError::Contract("an event without a name is listed".to_owned()))
        };
        last.map(mark).transpose()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct PaymentIntent {
    id: PaymentId,
    created: i64,
    amount_received: MinorUnits,
    currency: Currency,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
pub(super) struct Refund {
    pub(super) id: ProviderRefundId,
    /// In Stripe's units.
    amount: MinorUnits,
    currency: Currency,
    status: Option<String>,
    #[serde(default)]
    failure_reason: Option<String>,
    #[serde(default)]
    metadata: RefundMetadata,
    /// The payment: its name, or what it has where that was asked for.
    #[serde(default)]
    pub(super) payment_intent: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
struct RefundMetadata {
    refund: Option<String>,
}

impl Refund {
    /// The name of a part that it was given here.
    pub(super) fn name(&self) -> Option<RefundName> {
        self.metadata.refund.as_deref()?.parse().ok()
    }

    /// True if it was made as a part here, whatever it is called; what somebody makes by hand has no name.
    fn is_named(&self) -> bool {
        self.metadata.refund.is_some()
    }

    /// What it says by itself.
    /// Source of the states: <https://docs.stripe.com/api/refunds/object#refund_object-status>
    pub(super) fn reply(&self) -> RefundReply {
        match self.status.as_deref() {
            Some("succeeded") => RefundReply::Refunded,
            Some(status @ ("failed" | "canceled")) => {
                let why = self.failure_reason.as_deref().unwrap_or("without a reason");
                RefundReply::Ended(format!("{status}: {why}"))
            }
            Some(_) | None => RefundReply::Pending,
        }
    }

    /// It as the engine reads it: the metadata of a whole one of ours have no name of a part.
    pub(super) fn sent(&self) -> SentRefund {
        let state = match self.reply() {
            RefundReply::Refunded => SentState::Back,
            RefundReply::Refused(why) | RefundReply::Ended(why) | RefundReply::Conflict(why) => {
                SentState::Failed(why)
            }
            RefundReply::Pending | RefundReply::Outside => SentState::UnderWay,
        };
        let amount = COUNTING.read(self.amount, self.currency);
        SentRefund { id: self.id.clone(), amount, name: self.name(), state, at: None }
    }
}

/// What the refunds of a payment say of one part of it; `None` if it is not among them under the name that it has now,
/// and under no other that has not come to nothing.
pub(super) fn reply_of_part(refunds: &[Refund], part: &OrderRefund) -> Option<RefundReply> {
    let of_part =
        || refunds.iter().filter(|refund| refund.name().map(|it| it.key) == Some(part.key));
    let is_alive = |refund: &&Refund| !matches!(refund.reply(), RefundReply::Ended(_));
    let is_it = |refund: &&Refund| refund.name() == Some(part.name());
    of_part().find(is_alive).or_else(|| of_part().find(is_it)).map(Refund::reply)
}

/// The body of an answer that is an error.
/// Source: <https://docs.stripe.com/api/errors>
#[derive(Debug, Deserialize)]
pub(super) struct Refusal {
    pub(super) error: ApiError,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ApiError {
    #[serde(default)]
    pub(super) code: Option<String>,
    #[serde(default)]
    pub(super) message: Option<String>,
}

impl ApiError {
    /// The message for a person.
    pub(super) fn text(&self) -> String {
        let [code, message] =
            [&self.code, &self.message].map(|text| text.as_deref().unwrap_or("-"));
        format!("{code}: {message}")
    }
}

/// The path of one page of an order's payments.
///
/// The search finds a payment by what it is about, but late: usually within a minute, rarely after
/// an hour. Lists are up to date and cannot be asked for an order. So an answer may lack the last
/// captures; [`engine::flows::expire`] says why that does no harm.
/// Source: <https://docs.stripe.com/search#data-freshness>
pub(super) fn search_path(order: OrderNumber, page: Option<&str>) -> String {
    let query =
        escaped(&format!("metadata['onsale_order']:'{order}' OR metadata['order']:'{order}'"));
    let page = page.map(|page| format!("&page={}", escaped(page))).unwrap_or_default();
    format!("/v1/payment_intents/search?limit={PAGE}&query={query}{page}")
}

/// The path of a page of the events of some types since a time, in whole seconds rounded down. Stripe takes 20.
pub(super) fn events_path(
    kinds: impl IntoIterator<Item = &'static str>,
    from: Timestamp,
    after: Option<&PageMark>,
) -> String {
    let since = from.ms().div_euclid(1000);
    let kinds: String =
        kinds.into_iter().map(|kind| format!("&types%5B%5D={}", escaped(kind))).collect();
    let after = after.map(|mark| format!("&starting_after={}", escaped(mark.as_str())));
    let after = after.unwrap_or_default();
    format!("/v1/events?limit={PAGE}{kinds}&created%5Bgte%5D={since}{after}")
}

/// The path of a page of the balance transactions of a period, newest first. What each is of comes with it, and the payment
/// of that, which names the order.
/// Source: <https://docs.stripe.com/api/balance_transactions/list>
pub(super) fn balance_path(period: &Period, after: Option<&PageMark>) -> String {
    let [from, to] = [period.from, period.to].map(|at| at.ms().div_euclid(1000));
    let after = after.map(|mark| format!("&starting_after={}", escaped(mark.as_str())));
    let after = after.unwrap_or_default();
    format!(
        "/v1/balance_transactions?limit={PAGE}&created%5Bgte%5D={from}&created%5Blt%5D={to}\
         &expand%5B%5D=data.source&expand%5B%5D=data.source.payment_intent{after}"
    )
}

/// The path of a page of a payment's refunds, newest first, each with its payment whole. The list is up to date.
pub(super) fn refunds_path(payment: &PaymentId, after: Option<&ProviderRefundId>) -> String {
    let payment = escaped(payment.as_str());
    let after = after.map(|id| format!("&starting_after={}", escaped(id.as_str())));
    let after = after.unwrap_or_default();
    format!(
        "/v1/refunds?limit={PAGE}&payment_intent={payment}&expand%5B%5D=data.payment_intent{after}"
    )
}

/// The form that asks for a refund: without an amount, what is left of the payment goes back.
/// Source: <https://docs.stripe.com/api/refunds/create>
pub(super) fn refund_form(record: &PaymentRecord) -> String {
    let payment = escaped(record.capture.key.payment.as_str());
    let name = whole_name(record.ended).map(|name| format!("&metadata[refund]={name}"));
    let name = name.unwrap_or_default();
    format!("payment_intent={payment}&metadata[order]={}{name}", record.capture.order)
}

/// The name of a refund of a whole payment in its metadata, after so many that came to nothing. The first has none, as before
/// there were others.
fn whole_name(ended: u8) -> Option<String> {
    (ended > 0).then(|| format!("whole{}", again(ended)))
}

/// What a name ends with after so many that came to nothing.
fn again(ended: u8) -> String {
    if ended == 0 { String::new() } else { format!("-{}", u16::from(ended) + 1) }
}

/// The form that asks for a part of a payment; `None` for an amount that Stripe cannot take.
pub(super) fn part_form(record: &PaymentRecord, part: &OrderRefund) -> Option<String> {
    let payment = escaped(record.capture.key.payment.as_str());
    let (amount, name) = (COUNTING.written(part.amount)?, part.name());
    let order = part.key.order;
    Some(format!(
        "payment_intent={payment}&amount={amount}&metadata[order]={order}&metadata[refund]={name}"
    ))
}

/// The key under which a part is sent back once.
pub(super) fn part_idempotency_key(part: &OrderRefund) -> String {
    format!("onsale-refund-{}-{}", part.payment.provider, part.name())
}

/// The key under which one payment is refunded once.
/// Source: <https://docs.stripe.com/api/idempotent_requests>
pub(super) fn idempotency_key(record: &PaymentRecord) -> String {
    let PaymentKey { provider, payment } = &record.capture.key;
    format!("onsale-refund-{provider}-{payment}{}", again(record.ended))
}

/// The captures among payments of `order`, oldest first, read by the deployment `own`. A payment of which nothing was
/// captured is none, and one that names another order, or none, is left out.
pub(super) fn captures(
    provider: &ProviderId,
    own: Option<&DeploymentId>,
    order: OrderNumber,
    mut payments: Vec<PaymentIntent>,
) -> Vec<Reported> {
    payments.retain(|payment| payment.amount_received > MinorUnits::ZERO);
    payments.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    let reported = |payment: PaymentIntent| {
        let named = payment.metadata.named(own).ok()?.filter(|named| named.order == order)?;
        let key = PaymentKey { provider: provider.clone(), payment: payment.id };
        Some(named.captured(key, payment.amount_received, payment.currency))
    };
    payments.into_iter().filter_map(reported).collect()
}

/// Why a part is not sent that is not among the refunds of its payment: more of the payment went back, or is under way, by
/// refunds that no part's name stands on than is known here, so that somebody has made one by hand. `None` if it may be
/// sent.
pub(super) fn conflict(
    refunds: &[Refund],
    captured: Money,
    known_outside: MinorUnits,
) -> Option<String> {
    let by_hand = |refund: &&Refund| {
        let counts = !matches!(refund.status.as_deref(), Some("failed" | "canceled"));
        counts && !refund.is_named()
    };
    let stated: MinorUnits = refunds.iter().filter(by_hand).map(|refund| refund.amount).sum();
    let back = COUNTING.read(stated, captured.currency);
    (back.amount_minor > known_outside).then(|| {
        format!("conflict: {back} of the payment went back by no refund that is known here")
    })
}

/// What the refunds of a payment say together; `None` if it is to be asked for, under its name after so many that came to
/// nothing. Those that somebody made by hand count too: the money is back whoever sent it. They are in Stripe's units, the
/// capture in ISO 4217's.
/// Source of the states: <https://docs.stripe.com/api/refunds/object#refund_object-status>
pub(super) fn reply(refunds: &[Refund], captured: Money, ended: u8) -> Option<RefundReply> {
    let sum = |states: &[&str]| -> MinorUnits {
        let is_in =
            |refund: &&Refund| states.contains(&refund.status.as_deref().unwrap_or("pending"));
        let stated = refunds.iter().filter(is_in).map(|refund| refund.amount).sum();
        COUNTING.read(stated, captured.currency).amount_minor
    };
    let done = sum(&["succeeded"]);
    let under_way = sum(&["pending", "requires_action"]);
    if done >= captured.amount_minor {
        return Some(RefundReply::Refunded);
    }
    if done + under_way >= captured.amount_minor {
        return Some(RefundReply::Pending);
    }
    let name = whole_name(ended);
    let of_name = refunds.iter().filter(|refund| refund.metadata.refund == name);
    of_name.map(Refund::reply).find(|reply| matches!(reply, RefundReply::Ended(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_part_is_known_by_its_name_alone() {
        let listed = refunds(json!([
            { "amount": 500, "status": "succeeded" },
            { "amount": 500, "status": "succeeded", "metadata": { "refund": "7-r1" } },
            { "amount": 500, "status": "pending", "metadata": { "refund": "7-r2" } },
            { "amount": 500, "status": "failed", "metadata": { "refund": "7-r3" } },
        ]));
        let part = |key: &str, ended: u8| {
            let made = crate::providers::fake::part(&of_seven(), 500);
            OrderRefund { key: key.parse().unwrap(), ended, ..made }
        };
        let says = |key: &str, ended: u8| reply_of_part(&listed, &part(key, ended));
        assert_eq!(says("7-r1", 0), Some(RefundReply::Refunded));
        assert_eq!(says("7-r2", 0), Some(RefundReply::Pending));
        // One whose next name is due is sent only if none of its names lives.
        assert_eq!(says("7-r2", 1), Some(RefundReply::Pending));
        assert!(matches!(says("7-r3", 0), Some(RefundReply::Ended(why)) if why.contains("failed")));
        assert_eq!((says("7-r3", 1), says("7-r4", 0)), (None, None));
        let captured =
            Money { amount_minor: MinorUnits(5000), currency: Currency::new("EUR").unwrap() };
        let known = |known: i64| conflict(&listed, captured, MinorUnits(known));
        assert_eq!(
            (known(500), known(499).is_some()),
            (None, true),
            "what is known is no conflict"
        );
        let why = known(0).unwrap();
        assert!(why.starts_with("conflict: 500 EUR of the payment"), "{why}");
        let none = MinorUnits::ZERO;
        assert_eq!(conflict(&listed[1..], captured, none), None, "those that are named are ours");
        let undone = refunds(json!([{ "amount": 500, "status": "canceled" }]));
        assert_eq!(conflict(&undone, captured, none), None);
    }

    /// A payment of order 7.
    fn of_seven() -> PaymentRecord {
        let payment = PaymentId::new("pi_1").unwrap();
        let key = PaymentKey { provider: ProviderId::new("stripe").unwrap(), payment };
        let amount =
            Money { amount_minor: MinorUnits(5000), currency: Currency::new("EUR").unwrap() };
        let order = "7".parse().unwrap();
        let capture = engine::domain::order::Capture { key, order, amount, attempt: None };
        PaymentRecord::decided(
            &capture,
            engine::domain::order::PaymentOutcome::Accepted,
            Timestamp::from_ms(0),
        )
    }

    /// The refunds of a list, each of which has what every refund has.
    fn refunds(mut list: serde_json::Value) -> Vec<Refund> {
        for refund in list.as_array_mut().unwrap() {
            refund["id"] = json!("re_1");
            refund["currency"] = json!("eur");
        }
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn the_refunds_of_a_payment_give_one_answer() {
        let of = |amount: i64, status: &str| json!({ "amount": amount, "status": status });
        let money = |minor: i64, code: &str| Money {
            amount_minor: MinorUnits(minor),
            currency: Currency::new(code).unwrap(),
        };
        let answer = |list: serde_json::Value| reply(&refunds(list), money(500, "EUR"), 0);
        assert_eq!(answer(json!([])), None);
        assert_eq!(answer(json!([of(500, "succeeded")])), Some(RefundReply::Refunded));
        let both = json!([of(500, "succeeded"), of(500, "failed")]);
        assert_eq!(answer(both), Some(RefundReply::Refunded));
        assert_eq!(answer(json!([of(500, "pending")])), Some(RefundReply::Pending));
        let parts = json!([of(200, "succeeded"), of(300, "requires_action")]);
        assert_eq!(answer(parts), Some(RefundReply::Pending));
        let endless = json!([of(i64::MAX, "pending"), of(i64::MAX, "pending")]);
        assert_eq!(answer(endless), Some(RefundReply::Pending));
        // 50 krónur of 5,000; 5,000 ariary of as many.
        let sent = |amount: i64| refunds(json!([{ "amount": amount, "status": "succeeded" }]));
        assert_eq!(reply(&sent(5000), money(5000, "ISK"), 0), None);
        assert_eq!(reply(&sent(500_000), money(5000, "ISK"), 0), Some(RefundReply::Refunded));
        assert_eq!(reply(&sent(5000), money(500_000, "MGA"), 0), Some(RefundReply::Refunded));
        // A part of it went back by hand: the rest is still to be asked for.
        assert_eq!(answer(json!([of(200, "succeeded")])), None);
        let failed =
            json!([{ "amount": 500, "status": "failed", "failure_reason": "lost_or_stolen_card" }]);
        let nothing = RefundReply::Ended("failed: lost_or_stolen_card".to_owned());
        assert_eq!(answer(failed), Some(nothing));
        // After that it has another name, which is asked for, and may come to nothing too.
        let first = json!({ "amount": 500, "status": "failed" });
        let second = |status: &str| json!({ "amount": 500, "status": status, "metadata": { "refund": "whole-2" } });
        let again = |list: serde_json::Value| reply(&refunds(list), money(500, "EUR"), 1);
        assert_eq!(again(json!([first])), None);
        assert_eq!(again(json!([second("succeeded"), first])), Some(RefundReply::Refunded));
        let twice = again(json!([second("failed"), first]));
        assert!(matches!(twice, Some(RefundReply::Ended(_))), "{twice:?}");
        let mut seven = of_seven();
        assert_eq!(idempotency_key(&seven), "onsale-refund-stripe-pi_1");
        assert_eq!(refund_form(&seven), "payment_intent=pi_1&metadata[order]=7");
        seven.ended = 1;
        assert_eq!(idempotency_key(&seven), "onsale-refund-stripe-pi_1-2");
        assert!(refund_form(&seven).ends_with("&metadata[refund]=whole-2"));
        assert_eq!(answer(json!([{ "amount": 500, "status": null }])), Some(RefundReply::Pending));
    }

    #[test]
    fn a_page_of_events_names_the_next_one() {
        let next = |page: serde_json::Value| {
            serde_json::from_value::<EventsPage>(page).unwrap().next().map_err(|_| ())
        };
        let events = json!([{ "id": "evt_2" }, { "id": "evt_1" }]);
        let mark = PageMark::new("evt_1").unwrap();
        assert_eq!(next(json!({ "data": events, "has_more": true })), Ok(Some(mark)));
        assert_eq!(next(json!({ "data": events, "has_more": false })), Ok(None));
        assert_eq!(next(json!({ "data": [], "has_more": true })), Ok(None));
        assert_eq!(next(json!({ "data": [{}], "has_more": true })), Err(()));
    }

    #[test]
    fn what_is_captured_is_found_and_nothing_else() {
        let order: OrderNumber = "42".parse().unwrap();
        let payment = |id: &str, created: i64, received: i64, order: &str| {
            json!({ "id": id, "created": created, "amount_received": received, "currency": "eur",
                "status": "succeeded", "metadata": { "order": order } })
        };
        let page = json!({ "object": "search_result", "has_more": false, "next_page": null, "data": [
            payment("pi_2", 9, 500, "42"), payment("pi_1", 8, 300, "42"),
            payment("pi_open", 7, 0, "42"), payment("pi_else", 7, 500, "43"),
        ] });
        let page: SearchPage<PaymentIntent> = serde_json::from_value(page).unwrap();
        let found = captures(&ProviderId::new("stripe").unwrap(), None, order, page.data);
        let found: Vec<String> = found
            .iter()
            .map(|Reported { capture, .. }| format!("{} {}", capture.key.payment, capture.amount))
            .collect();
        assert_eq!(found, ["pi_1 300 EUR", "pi_2 500 EUR"]);
    }

    #[test]
    fn what_is_asked_is_escaped() {
        let order: OrderNumber = "42".parse().unwrap();
        let path = "/v1/payment_intents/search?limit=100&query=metadata%5B%27onsale_order%27%5D%3A%2742%27\
            %20OR%20metadata%5B%27order%27%5D%3A%2742%27";
        assert_eq!(search_path(order, None), path);
        assert!(search_path(order, Some("a&b")).ends_with("&page=a%26b"));
        let from = Timestamp::from_ms(1_800_000_000_999);
        let path = "/v1/events?limit=100&types%5B%5D=a.b&types%5B%5D=c&created%5Bgte%5D=1800000000";
        assert_eq!(events_path(["a.b", "c"], from, None), path);
        let mark = PageMark::new("evt_1&2").unwrap();
        assert!(events_path(["a"], from, Some(&mark)).ends_with("&starting_after=evt_1%262"));
        let odd = PaymentId::new("a&b=c").unwrap();
        let path = refunds_path(&odd, None);
        assert!(
            path.ends_with("payment_intent=a%26b%3Dc&expand%5B%5D=data.payment_intent"),
            "{path}"
        );
    }
}
