//! A notification of Alipay's: a form whose parameters but `sign` and `sign_type` are signed, sorted by
//! name, decoded, those without a value included.
//! (<https://opendocs.alipay.com/open/270/105902>)

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::request::{SIGN_TYPE, signed_text};
use super::trade::Trade;
use crate::providers::rsa::VerifyingKey;
use crate::providers::{EventDefect, SignatureDefect};
use engine::domain::basics::ids::{DeploymentId, ProviderId};
use engine::domain::payment::ours::Reported;

/// Most parameters: a notification has some thirty.
const MAX_PARAMETERS: usize = 128;
/// The kind of notification that tells of a trade.
const OF_A_TRADE: &str = "trade_status_sync";

/// The parameters of a form, each there once.
type Parameters<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

/// The app and the seller that a notification must name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Payee<'a> {
    pub(super) provider: &'a ProviderId,
    pub(super) app_id: &'a str,
    pub(super) seller_id: &'a str,
    /// The deployment's id, which its payments carry.
    pub(super) own: Option<&'a DeploymentId>,
}

/// Checks the signature of a notification.
///
/// # Errors
/// Returns the first [`SignatureDefect`].
pub(super) fn verify(body: &[u8], keys: &[VerifyingKey]) -> Result<(), SignatureDefect> {
    let parameters = parameters(body).ok_or(SignatureDefect::Malformed)?;
    let value = |name: &str| parameters.get(name).map(AsRef::as_ref).unwrap_or_default();
    let sign = Some(value("sign")).filter(|sign| !sign.is_empty());
    let sign = sign.ok_or(SignatureDefect::Missing)?;
    // It is sent in the charset that was asked for.
    let charset = parameters.get("charset");
    let is_utf8 = charset.is_none_or(|charset| charset.eq_ignore_ascii_case("utf-8"));
    if value("sign_type") != SIGN_TYPE || !is_utf8 {
        return Err(SignatureDefect::Malformed);
    }
    let signed = signed(&parameters);
    let fits = keys.iter().any(|key| key.verify(signed.as_bytes(), sign));
    if fits { Ok(()) } else { Err(SignatureDefect::Mismatch) }
}

/// What is signed: all parameters but the signature and its type.
fn signed(parameters: &Parameters<'_>) -> String {
    let all = parameters.iter().map(|(name, value)| (name.as_ref(), value.as_ref()));
    signed_text(&all.filter(|(name, _)| !["sign", "sign_type"].contains(name)).collect())
}

/// The capture that a notification reports; `None` for one of another kind, or of a trade that is none of
/// ours.
///
/// # Errors
/// Returns an [`EventDefect`] if it is another app's or seller's, or a capture that does not say enough.
pub(super) fn capture(body: &[u8], payee: Payee<'_>) -> Result<Option<Reported>, EventDefect> {
    let defect = |text: &str| EventDefect(text.to_owned());
    let parameters = parameters(body).ok_or_else(|| defect("it is no form"))?;
    let value = |name: &str| parameters.get(name).map(AsRef::as_ref);
    if value("app_id") != Some(payee.app_id) {
        return Err(defect("app_id is another app's"));
    }
    if value("notify_type") != Some(OF_A_TRADE) {
        return Ok(None);
    }
    if value("seller_id") != Some(payee.seller_id) {
        return Err(defect("seller_id is another seller's"));
    }
    let fields = parameters.into_iter();
    let fields = fields.map(|(name, value)| (name.into_owned(), value.into_owned().into()));
    let trade = serde_json::from_value::<Trade>(Value::Object(fields.collect()));
    trade.map_err(|error| EventDefect(error.to_string()))?.capture(payee.provider, payee.own)
}

/// The parameters of a form; `None` if one is there twice, or if there are too many.
fn parameters(body: &[u8]) -> Option<Parameters<'_>> {
    let mut parameters = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(body) {
        let is_again = parameters.insert(name, value).is_some();
        if is_again || parameters.len() > MAX_PARAMETERS {
            return None;
        }
    }
    Some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::{key, text, vectors};

    fn body(index: usize) -> String {
        text(&vectors()["alipay"]["notifications"][index]["body"])
    }

    fn verify_with(body: &str, names: &[&str]) -> Result<(), SignatureDefect> {
        let key = |name: &&str| VerifyingKey::read(&key(name, "public_pem")).unwrap();
        verify(body.as_bytes(), &names.iter().map(key).collect::<Vec<_>>())
    }

    fn capture_for(
        body: &str,
        app_id: &str,
        seller_id: &str,
    ) -> Result<Option<Reported>, EventDefect> {
        let provider = "alipay".parse().unwrap();
        capture(body.as_bytes(), Payee { provider: &provider, app_id, seller_id, own: None })
    }

    fn read(body: &str) -> Result<Option<Reported>, EventDefect> {
        let alipay = &vectors()["alipay"];
        capture_for(body, &text(&alipay["app_id"]), &text(&alipay["seller_id"]))
    }

    /// Alipay's own example, less `gmt_create`, which the example forgets in what is signed.
    /// Source: <https://opendocs.alipay.com/open/270/105902>
    #[test]
    fn what_is_signed_is_that_of_the_documentation() {
        let sent = "total_amount=2.00&buyer_id=2088102116773037&body=大乐透2.1&trade_no=2016071921001003030200089909&refund_fee=0.00&notify_time=2016-07-19 14:10:49&subject=大乐透2.1&sign_type=RSA2&charset=utf-8&notify_type=trade_status_sync&out_trade_no=0719141034-6418&gmt_close=2016-07-19 14:10:46&gmt_payment=2016-07-19 14:10:47&trade_status=TRADE_SUCCESS&version=1.0&sign=kPbQIjX&app_id=2015102700040153&seller_id=2088102119685838&notify_id=4a91b7a78a503640467525113fb7d8bg8e";
        let documented = "app_id=2015102700040153&body=大乐透2.1&buyer_id=2088102116773037&charset=utf-8&gmt_close=2016-07-19 14:10:46&gmt_payment=2016-07-19 14:10:47&notify_id=4a91b7a78a503640467525113fb7d8bg8e&notify_time=2016-07-19 14:10:49&notify_type=trade_status_sync&out_trade_no=0719141034-6418&refund_fee=0.00&seller_id=2088102119685838&subject=大乐透2.1&total_amount=2.00&trade_no=2016071921001003030200089909&trade_status=TRADE_SUCCESS&version=1.0";
        assert_eq!(signed(&parameters(sent.as_bytes()).unwrap()), documented);
    }

    #[test]
    fn what_others_sign_is_verified_and_nothing_else() {
        for index in [0, 1] {
            let body = body(index);
            assert_eq!(verify_with(&body, &["platform"]), Ok(()));
            assert_eq!(verify_with(&body, &["merchant", "platform"]), Ok(()));
            assert_eq!(verify_with(&body, &["merchant"]), Err(SignatureDefect::Mismatch));
            assert_eq!(verify_with(&body, &[]), Err(SignatureDefect::Mismatch));
            for (from, to) in [
                ("total_amount=1106.00", "total_amount=1106.01"),
                ("&body=&", "&"),
                ("&body=&", "&body=+&"),
                ("version=1.0", "version=1.0&more=1"),
                ("A%26B%3D1%2B1", "A%26B%3D1+1"),
                ("utf-8", "UTF-8"),
            ] {
                let changed = body.replacen(from, to, 1);
                assert_ne!(changed, body, "{from}");
                assert_eq!(
                    verify_with(&changed, &["platform"]),
                    Err(SignatureDefect::Mismatch),
                    "{to}"
                );
            }
        }
    }

    #[test]
    fn a_form_that_is_odd_is_refused() {
        let good = body(0);
        let refused = |body: &str| verify_with(body, &["platform"]).unwrap_err();
        assert_eq!(refused(""), SignatureDefect::Missing);
        assert_eq!(refused("{}"), SignatureDefect::Missing);
        assert_eq!(refused(&good.replace("sign=", "sign=&other=")), SignatureDefect::Missing);
        for (from, to) in [
            ("sign_type=RSA2", "sign_type=RSA"),
            ("sign_type=RSA2", "sign_type=MD5"),
            ("sign_type=RSA2&", ""),
            ("charset=utf-8", "charset=GBK"),
            ("version=1.0", "version=1.0&version=1.0"),
            ("version=1.0", "version=1.0&sign=AAAA"),
        ] {
            let changed = good.replacen(from, to, 1);
            assert_ne!(changed, good, "{from}");
            assert_eq!(refused(&changed), SignatureDefect::Malformed, "{to}");
        }
        let many: String = (0..200).map(|number| format!("&p{number}=")).collect();
        assert_eq!(refused(&format!("{good}{many}")), SignatureDefect::Malformed);
        let odd = good.replacen("version=1.0", "version=%FF", 1);
        assert_eq!(refused(&odd), SignatureDefect::Mismatch);
    }

    #[test]
    fn a_notification_of_a_payment_is_a_capture() {
        let Reported { capture, .. } = read(&body(0)).unwrap().unwrap();
        assert_eq!(capture.key.payment.as_str(), "2027011522001473371000001");
        assert_eq!(capture.amount.to_string(), "110600 CNY", "not what the buyer paid");
        assert_eq!(read(&body(1)), Ok(None));
        let of_another_kind = body(0).replace("trade_status_sync", "open_app_auth_notify");
        assert_eq!(read(&of_another_kind), Ok(None));
    }

    #[test]
    fn anothers_notification_is_a_defect() {
        let alipay = &vectors()["alipay"];
        let (app_id, seller_id) = (text(&alipay["app_id"]), text(&alipay["seller_id"]));
        assert!(capture_for(&body(0), "2014072300007149", &seller_id).is_err());
        assert!(capture_for(&body(0), &app_id, "2088102146225136").is_err());
        for field in
            ["app_id", "seller_id", "out_trade_no", "trade_no", "trade_status", "total_amount"]
        {
            let without = body(0).replace(&format!("&{field}="), "&other=");
            assert!(read(&without).is_err(), "{field}");
        }
        assert!(read(&body(0).replace("TRADE_SUCCESS", "TRADE_DONE")).is_err());
        assert!(read(&body(0).replace("total_amount=1106.00", "total_amount=1,106.00")).is_err());
    }
}
