//! The fakes of WeChat Pay and Alipay beside a local engine, and its accounts there.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fake_limits::Enforced;
use fake_payments::{Behaviour, Error, Form, LedgerEntry, MerchantOptions, MerchantProvider};
use serde_json::{Map, Value};
use shared::runtime::merchants::MerchantsSource;

use crate::data_dir::Secrets;
use crate::payment;

/// File of the accounts in the data directory: the document that `ONSALE_MERCHANTS_FILE` names. It has private
/// keys, which are made anew at each start.
pub const FILE: &str = "merchants.json";
/// By what every time that the providers publish is divided beside a local engine: WeChat Pay's five minutes
/// without a close are two seconds, and a notification comes again after a tenth of a second.
pub const HURRY: u32 = 150;

/// Both fakes of one engine.
#[derive(Debug)]
pub struct MerchantProviders(Vec<MerchantProvider>);

impl MerchantProviders {
    /// Starts both, with queries that lag as the search of the other provider does. Their trades are kept in
    /// `kept_in`, or in memory.
    ///
    /// # Errors
    /// No port is free, or a file cannot be read.
    pub fn start(
        kept_in: Option<&Path>,
        query_lag_seconds: u32,
        limits: Option<&Enforced>,
    ) -> Result<Self, Error> {
        let query_lag = Duration::from_secs(query_lag_seconds.into());
        let start = |form: Form| {
            let file = kept_in.map(|dir| dir.join(format!("{}.jsonl", form.as_str())));
            let behaviour = Behaviour::published(query_lag, HURRY);
            let limits = limits.cloned();
            MerchantProvider::start(form, MerchantOptions { file, behaviour, limits })
        };
        Form::ALL.into_iter().map(start).collect::<Result<_, _>>().map(Self)
    }

    pub fn iter(&self) -> impl Iterator<Item = &MerchantProvider> {
        self.0.iter()
    }

    /// The one of a form.
    #[must_use]
    pub fn of(&self, form: Form) -> Option<&MerchantProvider> {
        self.iter().find(|provider| provider.form() == form)
    }

    /// Its address; empty if there is none.
    #[must_use]
    pub fn url(&self, form: Form) -> String {
        self.of(form).map(MerchantProvider::url).unwrap_or_default()
    }

    /// Every payment that was captured there.
    #[must_use]
    pub fn ledger(&self) -> Vec<LedgerEntry> {
        self.iter().flat_map(MerchantProvider::ledger).collect()
    }

    /// True if one of them serves no more though nobody has stopped it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.iter().any(MerchantProvider::has_ended)
    }

    /// Writes the accounts to the data directory. Notifications go to the gateway at this address: WeChat Pay's
    /// to the entry of callbacks, Alipay's, whose payers read the address, to the public route.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, data_dir: &Path, gateway: &str, secrets: &Secrets) -> Result<(), Error> {
        let settings = |provider: &MerchantProvider| {
            let name = provider.form().as_str();
            let path = match provider.form() {
                Form::Wechat => format!("/callbacks/{}/{name}", payment::entry_key(secrets)),
                Form::Alipay => format!("/payments/{name}/callback"),
            };
            Ok((name.to_owned(), provider.settings(&format!("{gateway}{path}"))?))
        };
        let document = self.iter().map(settings).collect::<Result<Map<_, _>, Error>>()?;
        let path = path(data_dir);
        let mut options = std::fs::File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let written = options
            .open(&path)
            .and_then(|mut file| file.write_all(Value::Object(document).to_string().as_bytes()));
        let what = format!("writing {}", path.display());
        written.map_err(|source| Error::Io { what, source })
    }

    /// Answers what is under way, then stops.
    pub async fn stop(self) {
        for provider in self.0 {
            provider.stop().await;
        }
    }
}

fn path(data_dir: &Path) -> PathBuf {
    let dir = data_dir.canonicalize();
    dir.unwrap_or_else(|_| data_dir.to_owned()).join(FILE)
}

/// Where the accounts are of the engine that runs on a data directory.
#[must_use]
pub fn source(data_dir: &Path) -> MerchantsSource {
    let path = path(data_dir);
    match path.is_file() {
        true => MerchantsSource::File(path.to_string_lossy().into_owned()),
        false => MerchantsSource::Absent,
    }
}
