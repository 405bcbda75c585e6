//! The accounts at WeChat Pay and Alipay: a JSON document, one for the deployment, with an object for each
//! provider by its name. `docs/payments-wechat-alipay.md` lists the fields.
//!
//! The document holds private keys, which do not fit the environment of a function. So it is read from a
//! [source](MerchantsSource), when the function starts. Nothing of it is ever printed but names of providers
//! and of fields.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::providers::rsa::{SigningKey, VerifyingKey};
use crate::providers::wechat::resource::ApiV3Key;
use crate::runtime::config::Secret;
use engine::domain::basics::ids::ProviderId;

/// The document itself, for tests and the local engine.
pub const MERCHANTS: &str = "ONSALE_MERCHANTS";
/// Names a secret of AWS Secrets Manager that has the document.
pub const MERCHANTS_SECRET: &str = "ONSALE_MERCHANTS_SECRET";
/// Names a file that has the document.
pub const MERCHANTS_FILE: &str = "ONSALE_MERCHANTS_FILE";
/// The rule that a second source breaks.
pub const ONE_SOURCE: &str = "must not be set beside another of ONSALE_MERCHANTS, ONSALE_MERCHANTS_FILE and ONSALE_MERCHANTS_SECRET";
/// Most bytes of the document: those of a secret in Secrets Manager.
/// Source: <https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html>
pub const MAX_MERCHANTS_BYTES: usize = 65_536;
/// Most public keys of one provider: two while one replaces the other, and as many certificates.
pub const MAX_PUBLIC_KEYS: usize = 4;
/// Most API v3 keys: one, and the one that replaces it.
pub const MAX_API_V3_KEYS: usize = 2;
/// Most characters of a description: WeChat Pay takes 127, a Chinese character may count as three.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012791877>
pub const MAX_DESCRIPTION_CHARS: usize = 42;
/// Most bytes of an address to which notifications come.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012791877>
const MAX_NOTIFY_URL_BYTES: usize = 255;
/// Most bytes of an account's number, an app's id or a serial number.
const MAX_ID_BYTES: usize = 64;

/// Where the document is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MerchantsSource {
    /// There is none: no provider of these forms is configured.
    #[default]
    Absent,
    Text(Secret),
    File(String),
    /// A secret of AWS Secrets Manager, by name or ARN: its current version.
    Secret(String),
}

/// What is wrong in the document, and where. It never says what the value is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at} {rule}")]
pub struct MerchantsDefect {
    /// The place: the variable, or provider and field.
    pub at: String,
    /// The rule that it breaks, in words.
    pub rule: String,
}

impl MerchantsDefect {
    fn new(at: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { at: at.into(), rule: rule.into() }
    }
}

#[derive(Debug, Default)]
pub struct Merchants {
    pub(crate) by_name: BTreeMap<ProviderId, Merchant>,
}

/// The account at a provider.
#[derive(Debug)]
pub(crate) enum Merchant {
    /// `"form": "wechat"`.
    Wechat(WechatMerchant),
    /// `"form": "alipay"`.
    Alipay(AlipayMerchant),
}

/// What every account has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shop {
    /// Address of the API; `None` for the provider's own.
    pub(crate) url: Option<String>,
    /// Address to which notifications come.
    pub(crate) notify_url: String,
    /// What buyers read on their bill.
    pub(crate) description: String,
    /// Id of the app.
    pub(crate) app_id: String,
}

/// An account at WeChat Pay.
#[derive(Debug)]
pub(crate) struct WechatMerchant {
    pub(crate) shop: Shop,
    pub(crate) merchant_id: String,
    /// Serial number of the merchant's certificate, whose key signs.
    pub(crate) serial: String,
    pub(crate) private_key: SigningKey,
    /// Serial number and key of the certificate that replaces it.
    pub(crate) next: Option<(String, SigningKey)>,
    /// WeChat Pay's keys, by serial number of a certificate or by id.
    pub(crate) public_keys: BTreeMap<String, VerifyingKey>,
    pub(crate) api_v3_keys: Vec<ApiV3Key>,
}

/// An account at Alipay.
#[derive(Debug)]
pub(crate) struct AlipayMerchant {
    pub(crate) shop: Shop,
    /// The user number of the seller, to whom money goes.
    pub(crate) seller_id: String,
    pub(crate) private_key: SigningKey,
    /// The key that replaces it.
    pub(crate) next_private_key: Option<SigningKey>,
    /// Alipay's keys, any of which may have signed.
    pub(crate) public_keys: Vec<VerifyingKey>,
}

impl MerchantsSource {
    /// The source that the variables name; `variable` gives those that are set and not empty.
    ///
    /// # Errors
    /// A [`MerchantsDefect`] if more than one is set.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, MerchantsDefect> {
        let names = [MERCHANTS, MERCHANTS_FILE, MERCHANTS_SECRET];
        match names.map(variable) {
            [None, None, None] => Ok(Self::Absent),
            [Some(text), None, None] => Ok(Self::Text(Secret(text.into_bytes()))),
            [None, Some(file), None] => Ok(Self::File(file)),
            [None, None, Some(secret)] => Ok(Self::Secret(secret)),
            [_, file, _] => {
                let at = if file.is_some() { MERCHANTS_FILE } else { MERCHANTS_SECRET };
                Err(MerchantsDefect::new(at, ONE_SOURCE))
            }
        }
    }

    /// The secret that has the document, if it is one.
    #[must_use]
    pub fn secret(&self) -> Option<&str> {
        match self {
            Self::Absent | Self::Text(_) | Self::File(_) => None,
            Self::Secret(name) => Some(name),
        }
    }

    /// Reads the document; `secret` is the text of the secret that has it, if it is one.
    ///
    /// # Errors
    /// The first [`MerchantsDefect`].
    pub fn load(&self, secret: Option<&Secret>) -> Result<Merchants, MerchantsDefect> {
        match self {
            Self::Absent => Ok(Merchants::default()),
            Self::Secret(_) => {
                let unread = || MerchantsDefect::new(MERCHANTS_SECRET, "must name a secret");
                Merchants::read(&secret.ok_or_else(unread)?.0)
            }
            Self::Text(Secret(text)) => Merchants::read(text),
            Self::File(file) => {
                let unreadable = |_| MerchantsDefect::new(MERCHANTS_FILE, "must name a file");
                Merchants::read(&std::fs::read(file).map_err(unreadable)?)
            }
        }
    }
}

impl Merchants {
    /// Reads a document.
    ///
    /// # Errors
    /// The first [`MerchantsDefect`].
    pub fn read(json: &[u8]) -> Result<Self, MerchantsDefect> {
        const DOCUMENT: &str = "the document of merchants";
        if json.len() > MAX_MERCHANTS_BYTES {
            return Err(MerchantsDefect::new(DOCUMENT, "must have at most 65536 bytes"));
        }
        // What the parser says of the syntax is a place; what it would say of types quotes values.
        let parsed: Value = serde_json::from_slice(json).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let rule = format!("must be JSON; it is not at line {line}, column {column}");
            MerchantsDefect::new(DOCUMENT, rule)
        })?;
        let Value::Object(objects) = parsed else {
            return Err(MerchantsDefect::new(DOCUMENT, "must be an object by names of providers"));
        };
        let mut by_name = BTreeMap::new();
        for (name, value) in objects {
            let name = ProviderId::new(name).map_err(|_| {
                MerchantsDefect::new(DOCUMENT, "must name providers by 1 to 32 of a-z, 0-9 and -")
            })?;
            if name.is_reserved() {
                return Err(MerchantsDefect::new(name.as_str(), "is the name of no provider"));
            }
            let Value::Object(values) = value else {
                return Err(MerchantsDefect::new(name.as_str(), "must be an object"));
            };
            let merchant = merchant(Fields { provider: name.as_str(), values })?;
            by_name.insert(name, merchant);
        }
        Ok(Self { by_name })
    }

    /// Names of the providers.
    pub fn names(&self) -> impl Iterator<Item = &ProviderId> {
        self.by_name.keys()
    }
}

fn merchant(mut fields: Fields<'_>) -> Result<Merchant, MerchantsDefect> {
    let form = fields.text("form", 16)?;
    let merchant = match form.as_str() {
        "wechat" => Merchant::Wechat(wechat(&mut fields)?),
        "alipay" => Merchant::Alipay(alipay(&mut fields)?),
        _ => return Err(fields.defect("form", "must be wechat or alipay")),
    };
    fields.end()?;
    Ok(merchant)
}

fn wechat(fields: &mut Fields<'_>) -> Result<WechatMerchant, MerchantsDefect> {
    let shop = shop(fields)?;
    let (merchant_id, serial) = (fields.id("merchant_id")?, fields.id("serial")?);
    let private_key = fields.private_key()?;
    let next = match (fields.maybe_id("next_serial")?, fields.maybe_key("next_private_key")?) {
        (None, None) => None,
        (Some(serial), Some(key)) => Some((serial, key)),
        (_, _) => {
            let rule = "must be set with next_private_key, or neither";
            return Err(fields.defect("next_serial", rule));
        }
    };
    let mut public_keys = BTreeMap::new();
    for (serial, text) in fields.texts_by_name("public_keys", MAX_PUBLIC_KEYS)? {
        if !is_id(&serial) {
            return Err(fields.defect("public_keys", "must have serial numbers or ids as names"));
        }
        public_keys.insert(serial, fields.public_key(&text)?);
    }
    let mut api_v3_keys = Vec::new();
    for text in fields.texts("api_v3_keys", MAX_API_V3_KEYS)? {
        let key = ApiV3Key::read(&text);
        api_v3_keys
            .push(key.ok_or_else(|| fields.defect("api_v3_keys", "must have 32 bytes each"))?);
    }
    Ok(WechatMerchant { shop, merchant_id, serial, private_key, next, public_keys, api_v3_keys })
}

fn alipay(fields: &mut Fields<'_>) -> Result<AlipayMerchant, MerchantsDefect> {
    let shop = shop(fields)?;
    let seller_id = fields.id("seller_id")?;
    let private_key = fields.private_key()?;
    let next_private_key = fields.maybe_key("next_private_key")?;
    let texts = fields.texts("public_keys", MAX_PUBLIC_KEYS)?;
    let keys = texts.iter().map(|text| fields.public_key(text));
    let public_keys = keys.collect::<Result<_, _>>()?;
    Ok(AlipayMerchant { shop, seller_id, private_key, next_private_key, public_keys })
}

fn shop(fields: &mut Fields<'_>) -> Result<Shop, MerchantsDefect> {
    let url = fields.maybe_text("url", MAX_NOTIFY_URL_BYTES)?;
    if url.as_deref().is_some_and(|url| !is_address(url)) {
        return Err(fields.defect("url", "must be an http:// or https:// address"));
    }
    let notify_url = fields.text("notify_url", MAX_NOTIFY_URL_BYTES)?;
    if !is_address(&notify_url) || notify_url.contains(['?', '#']) {
        let rule = "must be an http:// or https:// address without a query";
        return Err(fields.defect("notify_url", rule));
    }
    let description = fields.text("description", 4 * MAX_DESCRIPTION_CHARS)?;
    let is_odd = |character: char| character.is_control() || "/=&".contains(character);
    if description.chars().count() > MAX_DESCRIPTION_CHARS || description.contains(is_odd) {
        let rule = "must have at most 42 characters, without / = & and control characters";
        return Err(fields.defect("description", rule));
    }
    Ok(Shop { url, notify_url, description, app_id: fields.id("app_id")? })
}

fn is_address(text: &str) -> bool {
    let is_http = text.starts_with("https://") || text.starts_with("http://");
    is_http && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=MAX_ID_BYTES).contains(&text.len()) && text.bytes().all(is_plain)
}

/// The fields of one provider that are not read yet.
struct Fields<'a> {
    provider: &'a str,
    values: Map<String, Value>,
}

impl Fields<'_> {
    fn defect(&self, field: &str, rule: impl Into<String>) -> MerchantsDefect {
        MerchantsDefect::new(format!("{}.{field}", self.provider), rule)
    }

    fn maybe_text(
        &mut self,
        field: &str,
        most_bytes: usize,
    ) -> Result<Option<String>, MerchantsDefect> {
        match self.values.remove(field) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() && text.len() <= most_bytes => {
                Ok(Some(text))
            }
            Some(_) => Err(self.defect(field, format!("must be text of 1 to {most_bytes} bytes"))),
        }
    }

    fn text(&mut self, field: &str, most_bytes: usize) -> Result<String, MerchantsDefect> {
        self.maybe_text(field, most_bytes)?.ok_or_else(|| self.defect(field, "must be set"))
    }

    fn id(&mut self, field: &str) -> Result<String, MerchantsDefect> {
        self.maybe_id(field)?.ok_or_else(|| self.defect(field, "must be set"))
    }

    fn maybe_id(&mut self, field: &str) -> Result<Option<String>, MerchantsDefect> {
        let text = self.maybe_text(field, MAX_ID_BYTES)?;
        let rule = "must be letters, digits, _ and -";
        match text {
            Some(text) if !is_id(&text) => Err(self.defect(field, rule)),
            text => Ok(text),
        }
    }

    /// A private key, if there is one.
    fn maybe_key(&mut self, field: &str) -> Result<Option<SigningKey>, MerchantsDefect> {
        let text = self.maybe_text(field, MAX_MERCHANTS_BYTES)?;
        let read = text.map(|text| SigningKey::read(&text)).transpose();
        read.map_err(|defect| self.defect(field, defect.to_string()))
    }

    fn private_key(&mut self) -> Result<SigningKey, MerchantsDefect> {
        let key = self.maybe_key("private_key")?;
        key.ok_or_else(|| self.defect("private_key", "must be set"))
    }

    fn public_key(&self, text: &str) -> Result<VerifyingKey, MerchantsDefect> {
        VerifyingKey::read(text)
            .map_err(|defect| self.defect("public_keys", format!("{defect}, each")))
    }

    /// A list of texts, at least one.
    fn texts(&mut self, field: &str, most: usize) -> Result<Vec<String>, MerchantsDefect> {
        let rule = || format!("must be a list of 1 to {most} texts");
        let Some(Value::Array(values)) = self.values.remove(field) else {
            return Err(self.defect(field, rule()));
        };
        let texts: Option<Vec<String>> =
            values.into_iter().map(|value| value.as_str().map(str::to_owned)).collect();
        let texts = texts.filter(|texts| (1..=most).contains(&texts.len()));
        texts.ok_or_else(|| self.defect(field, rule()))
    }

    /// Texts by name, at least one.
    fn texts_by_name(
        &mut self,
        field: &str,
        most: usize,
    ) -> Result<BTreeMap<String, String>, MerchantsDefect> {
        let rule = || format!("must be an object of 1 to {most} texts");
        let Some(Value::Object(values)) = self.values.remove(field) else {
            return Err(self.defect(field, rule()));
        };
        let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
        let texts: Option<BTreeMap<String, String>> = values.into_iter().map(text).collect();
        let texts = texts.filter(|texts| (1..=most).contains(&texts.len()));
        texts.ok_or_else(|| self.defect(field, rule()))
    }

    /// Refuses fields that nothing has read. Their names are shown only if they look like a name: somebody may
    /// have put a secret there.
    fn end(&self) -> Result<(), MerchantsDefect> {
        let Some(name) = self.values.keys().next() else { return Ok(()) };
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let shown = name.len() <= 20 && name.bytes().all(is_plain);
        let name = if shown { name.as_str() } else { "*" };
        Err(self.defect(name, "is not a field of this form"))
    }
}

impl fmt::Display for Merchants {
    /// Names of the providers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().map(ProviderId::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::vectors::{alipay_settings, wechat_settings};
    use serde_json::json;

    fn read(document: &Value) -> Result<Merchants, String> {
        Merchants::read(document.to_string().as_bytes()).map_err(|defect| defect.to_string())
    }

    fn with(mut settings: Value, field: &str, value: Value) -> Option<String> {
        settings[field] = value;
        read(&json!({ "cn": settings })).err()
    }

    #[test]
    fn a_document_has_accounts_of_both_forms() {
        let document = json!({ "wechat": wechat_settings(), "alipay-2": alipay_settings() });
        let merchants = read(&document).unwrap();
        assert_eq!(merchants.to_string(), "alipay-2, wechat");
        let shown = format!("{merchants:?}");
        assert!(!shown.contains("0123456789abcdef") && !shown.contains("PRIVATE"), "{shown}");
        assert!(read(&json!({})).unwrap().by_name.is_empty());
        // Those are made here alone.
        for name in ["wallet", "free"] {
            let refused = read(&json!({ name: wechat_settings() })).err();
            assert_eq!(refused.unwrap(), format!("{name} is the name of no provider"));
        }
    }

    #[test]
    fn every_field_is_needed_but_the_address() {
        for settings in [wechat_settings(), alipay_settings()] {
            for field in settings.as_object().unwrap().keys() {
                let mut lacking = settings.clone();
                lacking.as_object_mut().unwrap().remove(field);
                let refused = read(&json!({ "cn": lacking })).err();
                assert!(refused.unwrap().starts_with(&format!("cn.{field} must be")), "{field}");
            }
            assert_eq!(with(settings.clone(), "url", json!("http://127.0.0.1:9/")), None);
        }
    }

    #[test]
    fn no_value_is_ever_shown() {
        let secret = "hunter2";
        for settings in [wechat_settings(), alipay_settings()] {
            for field in settings.as_object().unwrap().keys() {
                for value in
                    [json!(secret.repeat(40)), json!(7), json!([secret]), json!({ secret: secret })]
                {
                    let refused = with(settings.clone(), field, value);
                    assert!(refused.is_some_and(|text| !text.contains(secret)), "{field}");
                }
            }
            let unknown = with(settings.clone(), "app_idd", json!(secret)).unwrap();
            assert_eq!(unknown, "cn.app_idd is not a field of this form");
            let named = with(settings, "MIIEvHunter2", json!(1)).unwrap();
            assert_eq!(named, "cn.* is not a field of this form");
        }
        let cut = Merchants::read(br#"{"cn":{"private_key":"hunter2""#).unwrap_err().to_string();
        assert_eq!(cut, "the document of merchants must be JSON; it is not at line 1, column 30");
        for wrong in
            [json!([]), json!("hunter2"), json!({ "Hunter2": {} }), json!({ "cn": "hunter2" })]
        {
            assert!(read(&wrong).is_err_and(|text| !text.to_lowercase().contains(secret)));
        }
        let long = " ".repeat(MAX_MERCHANTS_BYTES + 1);
        assert!(Merchants::read(long.as_bytes()).is_err());
    }

    #[test]
    fn values_have_rules() {
        let wechat = |field: &str, value: Value| with(wechat_settings(), field, value).unwrap();
        assert_eq!(wechat("form", json!("stripe")), "cn.form must be wechat or alipay");
        assert!(wechat("notify_url", json!("https://a.example/?x=1")).contains("without a query"));
        assert!(wechat("notify_url", json!("ftp://a.example")).contains("http://"));
        assert!(wechat("description", json!("a=b")).contains("at most 42"));
        assert!(wechat("description", json!("票".repeat(43))).contains("at most 42"));
        assert!(wechat("merchant_id", json!("1 2")).contains("letters"));
        assert!(wechat("api_v3_keys", json!([])).contains("1 to 2"));
        assert!(wechat("api_v3_keys", json!(["x"])).contains("32 bytes"));
        assert!(wechat("public_keys", json!({})).contains("1 to 4"));
        assert!(wechat("private_key", json!("AAAA")).contains("RSA private key"));
        assert!(wechat("next_private_key", json!("AAAA")).contains("RSA private key"));
        let lone = wechat("next_serial", json!("1DDE"));
        assert_eq!(lone, "cn.next_serial must be set with next_private_key, or neither");
        let key = wechat_settings()["private_key"].clone();
        assert_eq!(with(alipay_settings(), "next_private_key", key), None);
    }

    #[test]
    fn a_source_is_text_or_a_file() {
        let source = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            MerchantsSource::read(variable)
        };
        assert!(source(&[]).unwrap().load(None).unwrap().by_name.is_empty());
        let text = source(&[(MERCHANTS, "{}")]).unwrap();
        assert!(text.load(None).is_ok() && format!("{text:?}") == "Text(Secret)");
        let file = source(&[(MERCHANTS_FILE, "/nowhere/merchants.json")]).unwrap();
        assert_eq!(
            file.load(None).unwrap_err().to_string(),
            "ONSALE_MERCHANTS_FILE must name a file"
        );
        let secret = source(&[(MERCHANTS_SECRET, "onsale/merchants")]).unwrap();
        assert_eq!(secret.secret(), Some("onsale/merchants"));
        assert!(secret.load(Some(&Secret(b"{}".to_vec()))).is_ok());
        assert!(secret.load(None).unwrap_err().to_string().starts_with("ONSALE_MERCHANTS_SECRET"));
        for (first, second) in [
            (MERCHANTS, MERCHANTS_FILE),
            (MERCHANTS, MERCHANTS_SECRET),
            (MERCHANTS_FILE, MERCHANTS_SECRET),
        ] {
            let both = source(&[(first, "{}"), (second, "x")]).unwrap_err();
            assert!(both.to_string().contains("must not be set beside another"), "{both}");
        }
    }
}
