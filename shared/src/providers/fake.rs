//! A server of a provider's API for unit tests: it answers each request as a function says, and remembers
//! them all.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::limit::Limits;
use crate::runtime::connections::{Https, Trust};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{
    Attempt, AttemptNumber, AttemptState, Attempts, PaymentChoice, PaymentMethod, ReturnUrl,
};
use engine::domain::order::order_refund::{AskedBy, OrderRefund, RefundCounts};
use engine::domain::order::refund::{Refund, RefundReply};
use engine::domain::order::{
    Capture, Order, OrderState, PaymentKey, PaymentOutcome, PaymentRecord, RefundReason,
};
use engine::domain::sale::MerchantTerms;

/// The second refund of order 7, of a payment.
pub(super) fn part(payment: &PaymentRecord, amount_minor: i64) -> OrderRefund {
    let Money { currency, .. } = payment.capture.amount;
    let now = Timestamp::now();
    OrderRefund {
        key: "7-r2".parse().unwrap(),
        payment: payment.capture.key.clone(),
        tickets: Vec::new(),
        amount: Money { amount_minor: MinorUnits(amount_minor), currency },
        kept_minor: MinorUnits::ZERO,
        asked_by: AskedBy::Operator,
        reason: None,
        made_at: now,
        refund: Refund::due(now),
        ended: 0,
    }
}

/// The same, which the provider has refused.
pub(super) fn refused_part(payment: &PaymentRecord, why: &str) -> OrderRefund {
    let part = part(payment, 200);
    let refused = RefundReply::Refused(why.to_owned());
    let refund = part.refund.after_reply(&refused, Timestamp::now()).unwrap();
    OrderRefund { refund, ..part }
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) authorization: String,
    /// The header `Wechatpay-Serial`.
    pub(super) serial: String,
    pub(super) body: String,
}

pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

type Answers = dyn Fn(&Asked) -> Reply + Send + Sync;

/// The server; it ends with its test.
pub(super) struct Fake {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    pub(super) async fn start(answers: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answers, seen): (Arc<Answers>, _) = (Arc::new(answers), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                tokio::spawn(async move { serve(stream, &*answers, &seen).await });
            }
        });
        Self { url, asked }
    }

    /// The requests so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, answers: &Answers, seen: &Mutex<Vec<Asked>>) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let mut words = line.split(' ').map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return };
    let (mut length, mut authorization, mut serial) = (0, String::new(), String::new());
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => value.clone_into(&mut authorization),
            "wechatpay-serial" => value.clone_into(&mut serial),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let asked =
        Asked { method, target, authorization, serial, body: String::from_utf8(body).unwrap() };
    let Reply { status, headers, body } = answers(&asked);
    seen.lock().unwrap().push(asked);
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!("HTTP/1.1 {status} OK\r\ncontent-length: {length}\r\nconnection: close\r\n");
    let answer = format!("{head}{headers}\r\n{body}");
    // Whoever asked may be gone: an answer that is too long is broken off.
    let _ = stream.get_mut().write_all(answer.as_bytes()).await;
}

pub(super) fn https() -> Https {
    Https::new(&Trust::public())
}

pub(super) fn limits() -> Limits {
    Limits::none()
}

pub(super) fn yuan(fen: i64) -> Money {
    Money { amount_minor: MinorUnits(fen), currency: Currency::new("CNY").unwrap() }
}

/// The order of the vectors.
pub(super) fn order(total: Money) -> Order {
    let now = Timestamp::now();
    Order {
        number: "169218430493097984".parse().unwrap(),
        sale: "s".parse().unwrap(),
        user: "alice".parse().unwrap(),
        state: OrderState::Pending,
        lines: Vec::new(),
        total,
        fingerprint: "0123456789abcdef".parse().unwrap(),
        created_at: now,
        pay_by: now.plus_seconds(900),
        changed_at: now,
        payment: None,
        attempts: Attempts::default(),
        facts: engine::domain::order::fact::Facts::default(),
        refunds: RefundCounts::default(),
        merchant: MerchantTerms::house(),
        exchange: None,
    }
}

/// Its first attempt, which lasts so many seconds from now.
pub(super) fn attempt(method: PaymentMethod, seconds: i64) -> Attempt {
    let now = Timestamp::now();
    Attempt {
        number: AttemptNumber::FIRST,
        choice: PaymentChoice {
            provider: "cn".parse().unwrap(),
            method,
            return_url: Some(ReturnUrl::new("https://shop.example/paid?order=7").unwrap()),
        },
        started_at: now,
        expires_at: now.plus_seconds(seconds),
        deployment: None,
        reference: None,
        is_named_first: true,
        step: None,
        is_absent: false,
        asks: 0,
        state: AttemptState::Open,
    }
}

/// The order with two attempts of this choice that its buyer may have, and one that nobody has.
pub(super) fn with_two_attempts(order: Order, choice: &PaymentChoice) -> Order {
    let (at, now) = (order.pay_by, order.created_at);
    let mut attempts = order.attempts.clone();
    for is_named_first in [false, false, true] {
        (attempts, _) = attempts.with_another(choice, None, at, now).unwrap();
        attempts.all.last_mut().unwrap().is_named_first = is_named_first;
    }
    Order { attempts, ..order }
}

/// A payment that is to go back.
pub(super) fn record(payment: &str, amount: Money) -> PaymentRecord {
    let capture = Capture {
        key: PaymentKey { provider: "cn".parse().unwrap(), payment: payment.parse().unwrap() },
        order: "169218430493097984".parse().unwrap(),
        attempt: None,
        amount,
    };
    let outcome = PaymentOutcome::Refund(RefundReason::TooLate);
    PaymentRecord::decided(&capture, outcome, Timestamp::now())
}
