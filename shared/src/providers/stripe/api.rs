//! The API of one account: its captures, and refunds.

use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use hyper::body::Bytes;

use super::forms::{self, EventsPage, List, PaymentIntent, Refund, Refusal, SearchPage};
use super::{API_VERSION, VERSION_HEADER, dispute, event, sent_back};
use crate::providers::account::{Account, Answer, Effect};
use crate::providers::bill::{MAX_PAGE_BYTES, RawBill};
use crate::providers::limit::{Limits, Operation};
use crate::runtime::config::ProviderApi;
use crate::runtime::connections::Https;
use engine::domain::basics::ids::{DeploymentId, PageMark, PaymentId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::PaymentRecord;
use engine::domain::order::order_refund::OrderRefund;
use engine::domain::order::refund::RefundReply;
use engine::domain::payment::bill::{BillDay, Billed};
use engine::domain::payment::captures::CapturePage;
use engine::domain::payment::ours::Reported;
use engine::ports::{StoreError, Stored};

/// Address of the API unless configured.
const URL: &str = "https://api.stripe.com";
/// Most pages of one order's payments: more would be no order's.
const MAX_PAGES: usize = 10;

/// Seconds after the end of a day until its list is read: what is listed late is there by then.
const BILL_READY_SECONDS: i64 = 60 * 60;

/// The API of one account.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) account: Account,
    /// The deployment's id, which payments carry.
    pub(super) own: Option<DeploymentId>,
}

impl Api {
    pub(super) fn new(
        api: &ProviderApi,
        own: Option<DeploymentId>,
        https: Https,
        limits: &Limits,
    ) -> Stored<Self> {
        let account = Account::new(api, URL, https, limits)?;
        Ok(Self { account: account.with_header(VERSION_HEADER, API_VERSION), own })
    }

    /// Every capture of an order that the account finds.
    pub(super) async fn captures(&self, order: OrderNumber) -> Stored<Vec<Reported>> {
        let mut payments = Vec::new();
        let mut next = None;
        for _ in 0..MAX_PAGES {
            let path = forms::search_path(order, next.as_deref());
            let answer = self.get(Operation::SearchCaptures, &path).await?;
            let page: SearchPage<PaymentIntent> =
                self.account.read(&answer, Effect::Read, words)?;
            payments.extend(page.data);
            next = page.next_page;
            if next.is_none() {
                let provider = &self.account.provider;
                return Ok(forms::captures(provider, self.own.as_ref(), order, payments));
            }
        }
        Err(StoreError::Contract(format!("order {order} has over {MAX_PAGES} pages of payments")))
    }

    /// Sends a payment back, or says how far that is.
    ///
    /// The list is asked first: a repeated request with its idempotency key would only repeat the
    /// first answer, and a day later the key is forgotten. Two at once both find the list empty,
    /// and the key makes their requests one.
    pub(super) async fn refund(&self, record: &PaymentRecord) -> Stored<RefundReply> {
        let captured = record.capture.amount;
        let refunds = match self.refunds(&record.capture.key.payment).await? {
            Ok(refunds) => refunds,
            Err(answer) => return Ok(refused(&answer)),
        };
        if let Some(reply) = forms::reply(&refunds, captured, record.ended) {
            return Ok(reply);
        }
        let head = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/v1/refunds", self.account.url))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("idempotency-key", forms::idempotency_key(record));
        let form = forms::refund_form(record).into();
        let answer = self.account.ask(Operation::Refund, head, form, Effect::Write).await?;
        if is_refusal(answer.status) {
            return Ok(refused(&answer));
        }
        let refund: Refund = self.account.read(&answer, Effect::Write, words)?;
        // What went back earlier by hand and this together are the whole.
        let all: Vec<Refund> = refunds.into_iter().chain([refund]).collect();
        Ok(forms::reply(&all, captured, record.ended).unwrap_or(RefundReply::Pending))
    }

    /// Sends a part of a payment back, or says how far that is. The list is asked first, as for a whole one;
    /// a part is known by its name in the refund's metadata, however many others there are. If more went back outside than
    /// `known_outside`, somebody has sent money back by hand, perhaps this very part: nothing is sent.
    pub(super) async fn refund_part(
        &self,
        record: &PaymentRecord,
        part: &OrderRefund,
        known_outside: MinorUnits,
    ) -> Stored<RefundReply> {
        let Some(form) = forms::part_form(record, part) else {
            let text = format!("Stripe cannot send back {}", part.amount);
            return Ok(RefundReply::Refused(text));
        };
        let refunds = match self.refunds(&record.capture.key.payment).await? {
            Ok(refunds) => refunds,
            Err(answer) => return Ok(refused(&answer)),
        };
        if let Some(reply) = forms::reply_of_part(&refunds, part) {
            return Ok(reply);
        }
        if let Some(why) = forms::conflict(&refunds, record.capture.amount, known_outside) {
            return Ok(RefundReply::Conflict(why));
        }
        let head = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/v1/refunds", self.account.url))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("idempotency-key", forms::part_idempotency_key(part));
        let answer = self.account.ask(Operation::Refund, head, form.into(), Effect::Write).await?;
        if is_refusal(answer.status) {
            return Ok(refused(&answer));
        }
        let refund: Refund = self.account.read(&answer, Effect::Write, words)?;
        Ok(refund.reply())
    }

    /// All refunds of a payment, newest first; the answer, if Stripe says that it will not list them.
    pub(super) async fn refunds(&self, payment: &PaymentId) -> Stored<Result<Vec<Refund>, Answer>> {
        let mut refunds: Vec<Refund> = Vec::new();
        for _ in 0..MAX_PAGES {
            let after = refunds.last().map(|refund| &refund.id);
            let path = forms::refunds_path(payment, after);
            let answer = self.get(Operation::ListRefunds, &path).await?;
            if is_refusal(answer.status) {
                return Ok(Err(answer));
            }
            // No repetition changes that, and what is listed behind must not wait for somebody who gives the right.
            if answer.status == StatusCode::FORBIDDEN {
                let text =
                    format!("the API key may not read refunds of {payment}: {}", words(&answer));
                return Err(StoreError::Contract(text));
            }
            let page: List<Refund> = self.account.read(&answer, Effect::Read, words)?;
            let is_over = !page.has_more || page.data.is_empty();
            refunds.extend(page.data);
            if is_over {
                return Ok(Ok(refunds));
            }
        }
        Err(StoreError::Contract(format!(
            "payment {payment} has over {MAX_PAGES} pages of refunds"
        )))
    }

    /// A page of the events of captures, disputes and refunds since a time, newest first.
    pub(super) async fn list_captures(
        &self,
        from: Timestamp,
        after: Option<&PageMark>,
    ) -> Stored<CapturePage> {
        let path = forms::events_path(super::events(), from, after);
        let answer = self.get(Operation::ListCaptures, &path).await?;
        let events: EventsPage = self.account.read(&answer, Effect::Read, words)?;
        let mut page = CapturePage { next: events.next()?, ..CapturePage::default() };
        for listed in &events.data {
            match dispute::listed(listed).or_else(|| sent_back::listed(listed)) {
                Some(Ok(hint)) => {
                    page.hints.extend(hint);
                    continue;
                }
                Some(Err(defect)) => {
                    let event = listed["id"].as_str().unwrap_or("-");
                    tracing::error!(event, %defect, "an event that is listed cannot be read");
                    page.unreadable += 1;
                    continue;
                }
                None => {}
            }
            match event::listed(&self.account.provider, self.own.as_ref(), listed) {
                Ok(capture) => page.captures.extend(capture),
                Err(defect) => {
                    let event = listed["id"].as_str().unwrap_or("-");
                    tracing::error!(event, %defect, "an event that is listed cannot be read");
                    page.unreadable += 1;
                }
            }
        }
        Ok(page)
    }

    /// The account whose bills are read: a day's balance transactions.
    pub(super) fn billed(&self) -> Billed {
        Billed {
            provider: self.account.provider.clone(),
            day_ahead_ms: 0,
            ready_after_seconds: BILL_READY_SECONDS,
            merchant: None,
            lists_refunds: true,
            own: self.own.clone(),
        }
    }

    /// A page of the balance transactions of a day, each with what it is of and the payment of that.
    pub(super) async fn bill(&self, day: BillDay, after: Option<&PageMark>) -> Stored<RawBill> {
        let path = forms::balance_path(&day.period(0), after);
        let head = Request::builder().uri(format!("{}{path}", self.account.url));
        let answer = self.account.ask_page(head, MAX_PAGE_BYTES).await?;
        if answer.status.is_success() {
            return Ok(RawBill::BalancePage(answer.body));
        }
        Err(self.account.error(&answer, Effect::Read, words))
    }

    pub(super) async fn get(&self, operation: Operation, path: &str) -> Stored<Answer> {
        let head = Request::builder().uri(format!("{}{path}", self.account.url));
        self.account.ask(operation, head, Bytes::new(), Effect::Read).await
    }
}

/// True for an answer by which the provider says that it will not do what was asked of this
/// payment, and would not if asked again.
pub(super) fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::PAYMENT_REQUIRED | StatusCode::NOT_FOUND)
}

/// The reply to a refund that is refused: there is none, unless it is done already.
fn refused(answer: &Answer) -> RefundReply {
    let error = error_of(answer);
    match error.code.as_deref() {
        Some("charge_already_refunded") => RefundReply::Refunded,
        Some(_) | None => RefundReply::Refused(error.text()),
    }
}

/// What an answer says that is an error.
pub(super) fn words(answer: &Answer) -> String {
    error_of(answer).text()
}

pub(super) fn error_of(answer: &Answer) -> forms::ApiError {
    serde_json::from_slice(&answer.body).map(|Refusal { error }| error).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::config::Secret;
    use crate::runtime::connections::Trust;
    use engine::domain::basics::ids::ProviderId;

    #[test]
    fn an_account_is_asked_at_stripe_unless_told_where() {
        let url_of = |url: Option<&str>| {
            let api = ProviderApi {
                provider: ProviderId::new("stripe").unwrap(),
                url: url.map(str::to_owned),
                key: Secret(b"sk_1".to_vec()),
            };
            let https = Https::new(&Trust::public());
            Api::new(&api, None, https, &Limits::none()).unwrap().account.url
        };
        assert_eq!(url_of(None), "https://api.stripe.com");
        assert_eq!(url_of(Some("http://127.0.0.1:9/")), "http://127.0.0.1:9");
    }
}
