//! `onsale demo`: starts an engine, puts two sales on sale, lets the crowd sell them out, waits
//! until everything has settled, and audits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::domain::basics::bytes::Hash;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::attachment::{Attachment, AttachmentKind};
use engine::domain::sale::{GateSettings, RoomSettings, SaleFile};
use engine::flows::reconcile::Report;
use futures_util::future::{try_join, try_join3};
use reqwest::Method;

use crate::LoadTestError;
use crate::arrivals::Shape;
use crate::credentials::Credentials;
use crate::money_back::{self, MoneyBack, give_back};
use crate::neighbours::{Neighbours, capture_for_others, look_back};
use crate::pages::Till;
use crate::profile::LoadProfile;
use crate::shop::Shop;
use fake_limits::Limits;
use fake_limits::table::{STRIPE_ENDPOINT, WECHAT_REFUNDS};
use fake_payments::{MerchantProvider, Notified};
use importers::pretix::{Prices, RowOrder};
use importers::train12306::Tables;
use importers::{self, Terms, pretix, read_bounded};
use local::payment::PROVIDER;
use local::up::{self, Engine};
use ops::audit::facts::LedgerFacts;
use ops::audit::{self, AuditError, Target};
use ops::gateway::{self, Gateway};

/// The stadium that the repository brings.
const STADIUM: &str = include_str!("../../../sales/demo-stadium.json");
/// The pictures of its sales.
const PICTURES: [&[u8]; 5] = [
    include_bytes!("../../../sales/pictures/demo-club.jpg"),
    include_bytes!("../../../sales/pictures/demo-play.jpg"),
    include_bytes!("../../../sales/pictures/demo-stadium.jpg"),
    include_bytes!("../../../sales/pictures/demo-top-ups.jpg"),
    include_bytes!("../../../sales/pictures/demo-train.jpg"),
];
/// The train that the repository brings.
const TRAIN: &str = include_str!("../../../sales/demo-train.json");
/// The real stadium, below the folder of real data.
const REAL_STADIUM: &str = "seating-xinzhuang-ballpark/plan.json";
/// The real trains, below the folder of real data.
const REAL_TRAINS: &str = "train-12306-sample";
/// The real train that is sold.
const REAL_TRAIN: &str = "G35";
/// The price of a seat in the real stadium, whose plan has none: 400 TWD.
const REAL_STADIUM_PRICE_MINOR: MinorUnits = MinorUnits(40_000);
/// Time that the buyers of a demo have to pay, in seconds: short, so that what is not paid comes
/// back while the crowd is still there.
const PAY_WINDOW_SECONDS: u32 = 20;
/// People who come for the sale with the waiting room, which is cancelled later.
const CLUB_BUYERS: u64 = 150;
/// Time from the start to the opening of its waiting room, in seconds, in which they come.
const CLUB_OPENS_SECONDS: u32 = 30;
/// The buyer whose tickets can be looked at; nobody of the crowd is called so.
const SHOWN_BUYER: &str = "ann";
/// Tickets of this buyer.
const SHOWN_TICKETS: u16 = 2;
/// Time that the engine may take to settle after the last buyer.
const SETTLE: Duration = Duration::from_secs(60);

/// The options of a demo.
#[derive(Debug, Clone)]
pub struct Options {
    /// Arrival of the crowd: open or closed loop.
    pub load: crate::Load,
    /// The shares of the behaviours.
    pub profile: LoadProfile,
    /// The seed of the crowd.
    pub seed: u64,
    /// The longest that the crowd may take.
    pub most: Duration,
    /// True if a slow machine gets more time.
    pub may_take_longer: bool,
    /// True if progress bars are drawn.
    pub progress: bool,
    /// The limits of the services.
    pub limits: Limits,
    /// Which share of the buyers pays on the page of which provider, if people pay there.
    pub pages: Option<crate::Shares>,
    /// The directory of the built pages.
    pub built_pages: Option<PathBuf>,
    /// Called with what can be looked at, once it is there.
    pub on_news: fn(&News),
}

/// What can be looked at while a demo runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The engine is up.
    Started {
        /// Its address.
        url: String,
    },
    /// A buyer has tickets.
    Bought {
        /// The address of the engine.
        url: String,
        /// The order of the tickets.
        order: OrderNumber,
        /// The name with which its buyer signs in.
        buyer: &'static str,
    },
}

impl std::fmt::Display for News {
    /// A line with links. None of them lets anybody in: who opens one signs in.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Started { url } => write!(
                f,
                "{url}/ shows it while it runs: what is on sale, a waiting room that opens in half a minute, and at /operator its board"
            ),
            Self::Bought { url, order, buyer } => write!(
                f,
                "{url}/my/tickets/{order} has tickets, {url}/my/orders the order: sign in as {buyer}"
            ),
        }
    }
}

/// Result of a demo.
#[derive(Debug, serde::Serialize)]
pub struct Outcome {
    /// Time that it took from the start of the servers to the end of the audit, in seconds.
    pub seconds: f64,
    /// The report of the load test.
    #[serde(rename = "rush")]
    pub load_test: crate::report::Report,
    pub audit: audit::Report,
    /// The payments a second that its providers let it begin, beside what they publish, in words.
    pub rates: String,
    /// What became of the providers' own notifications, by provider.
    pub notified: BTreeMap<&'static str, Notified>,
    /// The report of the crowd that bought the sale which is cancelled; `None` if nobody pays on pages.
    pub club: Option<crate::report::Report>,
    /// What went back; `None` if nobody pays on pages.
    pub money_back: Option<MoneyBack>,
    /// What became of payments of others on the same account.
    pub neighbours: Neighbours,
    /// How long each part of it took, in its order.
    pub parts: Vec<TimedPart>,
}

/// A part of a demo.
#[derive(Debug, serde::Serialize)]
pub struct TimedPart {
    pub part: &'static str,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What reconcile still found to do when the engine had not settled in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<String>,
}

/// A watch that says how long the parts of a demo take.
struct Parts {
    since: Instant,
    parts: Vec<TimedPart>,
}

impl Parts {
    fn ends(&mut self, part: &'static str, unsettled: Option<Report>) {
        let seconds = self.since.elapsed().as_secs_f64();
        let unsettled = unsettled.map(|report| format!("{report:?}"));
        self.parts.push(TimedPart { part, seconds, unsettled });
        self.since = Instant::now();
    }
}

impl Outcome {
    /// True if everything was sold, nothing impossible was met and no invariant is broken.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.wrong().is_empty()
    }

    /// What is not as it should be, in words; nothing if it [is good](Self::is_good).
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let crowds = [("the crowd", Some(&self.load_test)), ("the small sale", self.club.as_ref())];
        for (who, report) in crowds.into_iter().filter_map(|(who, report)| Some((who, report?))) {
            if !report.sold_out {
                wrong.push(format!("{who}: seats are left"));
            }
            wrong.extend(report.anomalies.iter().map(|anomaly| format!("{who}: {anomaly}")));
        }
        if !self.audit.clean {
            wrong.push("the audit found violations".to_owned());
        }
        let believed = self.notified.values().map(|notified| notified.probes_believed);
        if believed.sum::<u64>() > 0 {
            wrong.push("a provider's false notification was believed".to_owned());
        }
        if !self.neighbours.are_left_alone() {
            wrong.push("payments of others were touched".to_owned());
        }
        if let (Some(club), Some(back)) = (&self.club, &self.money_back) {
            let providers = club.paid_on_pages.keys().filter_map(|name| name.parse().ok());
            if !back.is_good(&providers.collect()) {
                wrong.push("money is not back that should be".to_owned());
            }
        }
        wrong
    }
}

/// Why a demo could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine did not start, or not stop.
    #[error(transparent)]
    Engine(#[from] up::Error),
    /// A development token could not be signed.
    #[error(transparent)]
    Token(#[from] fake_identity::Refused),
    /// A sale of the repository cannot be read.
    #[error("a sale of the demo cannot be read: {0}")]
    Sale(#[from] serde_json::Error),
    /// The real data cannot be imported.
    #[error(transparent)]
    Import(#[from] importers::Error),
    /// The real data has defects that its importer does not accept.
    #[error("{0}")]
    Defects(String),
    /// The engine refused a sale.
    #[error("sale {0} was refused: {1}")]
    Refused(SaleId, String),
    /// The crowd could not begin.
    #[error(transparent)]
    LoadTest(#[from] LoadTestError),
    /// A store could not be read.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The engine did not answer.
    #[error("the engine does not answer: {0}")]
    Client(#[from] reqwest::Error),
    /// A picture of the demo was not kept.
    #[error(transparent)]
    Picture(#[from] gateway::Error),
    /// The queues could not be read.
    #[error(transparent)]
    Queues(#[from] local::queues::Error),
    #[error(transparent)]
    Store(#[from] engine::ports::StoreError),
    /// A name of the demo is none.
    #[error(transparent)]
    Name(#[from] engine::domain::basics::ids::InvalidId),
    /// The payment provider could not keep a payment.
    #[error(transparent)]
    Provider(#[from] fake_payments::Error),
    /// The crowd's ledger could not be read.
    #[error("the ledger cannot be read: {0}")]
    Ledger(#[from] std::io::Error),
    #[error("reconcile: {0}")]
    Reconcile(String),
}

/// The two sales of the repository.
///
/// # Errors
/// [`Error::Sale`] if they are not sale files.
pub fn own_sales() -> Result<Vec<SaleFile>, Error> {
    Ok(vec![serde_json::from_str(STADIUM)?, serde_json::from_str(TRAIN)?])
}

/// A real stadium and a real train, imported from `data`.
///
/// # Errors
/// [`Error::Import`] or [`Error::Defects`].
pub fn real_sales(data: &Path) -> Result<Vec<SaleFile>, Error> {
    let opens_at = Timestamp::now().plus_seconds(-3600);
    let gate =
        GateSettings { rate_per_second: 20_000, user_lock_ms: 1000, ..GateSettings::default() };
    let terms = Terms { pay_window_seconds: PAY_WINDOW_SECONDS, gate, ..Terms::opening(opens_at) };
    let plan = read_bounded(&data.join(REAL_STADIUM))?;
    let prices = Prices { for_all: Some(REAL_STADIUM_PRICE_MINOR), ..Prices::default() };
    let id = |id: &str| SaleId::new(id).ok();
    let stadium_terms = Terms { sale: id("real-stadium"), ..terms.clone() };
    let stadium =
        pretix::import(REAL_STADIUM, &plan, &stadium_terms, &prices, RowOrder::default(), None)?;
    let train_terms = Terms { sale: id("real-train-g35"), ..terms };
    let train = Tables::read(&data.join(REAL_TRAINS))?.import(REAL_TRAIN, &train_terms)?;
    let accept = |import: importers::Import| {
        import.accept(false).map_err(|report| Error::Defects(report.to_text()))
    };
    Ok(vec![accept(stadium)?.0, accept(train)?.0])
}

/// Sells `sales` out on an engine of its own and audits the result.
///
/// # Errors
/// Fails if it cannot be carried out; what went wrong in it is in the outcome.
pub async fn run(sales: &[SaleFile], options: &Options) -> Result<Outcome, Error> {
    let started = Instant::now();
    let engine = Engine::start(up::Options {
        limits: options.limits,
        port: up::PORT,
        or_free_port: true,
        pages: options.built_pages.clone(),
        ..up::Options::ephemeral()
    })
    .await?;
    put_on_sale(&engine, sales, options.on_news).await?;
    let mut parts = Parts { since: started, parts: Vec::new() };
    parts.ends("start", None);
    let ledger = engine.data_dir().join("ledger.jsonl");
    let crowd = crate::Options {
        url: engine.url().to_owned(),
        sales: sales.iter().map(|file| file.sale.to_string()).collect(),
        load: options.load,
        profile: options.profile,
        seed: options.seed,
        most: options.most,
        may_take_longer: options.may_take_longer,
        ledger: Some(ledger.clone()),
        progress: options.progress,
        callback_repeats: crate::CallbackRepeats::default(),
        pages: options.pages,
        grace: engine.endpoints().grace(),
        endpoints: Some(engine.endpoints().clone()),
        rehearsal: None,
        crowd: crate::people::plan::Crowd::default(),
    };
    let limits = options.limits;
    let (mut report, club, mut neighbours) = sell(&engine, &crowd).await?;
    parts.ends("crowds", None);
    parts.ends("settling", settle(&engine, Instant::now() + SETTLE).await?);
    report.record_throttled(engine.throttled());
    let mut money_back = None;
    if club.is_some() {
        money_back = Some(give_back(&engine, &ledger).await?);
        parts.ends("money back", None);
        parts.ends("settling", settle(&engine, Instant::now() + SETTLE).await?);
    }
    let options = audit::Options {
        book: look_back(&engine, &mut neighbours)?,
        ledger: Some(LedgerFacts::read(&ledger)?),
        bound_seconds: engine.endpoints().grace().bound_seconds(),
        ..audit::Options::at(Timestamp::now())
    };
    let stores = engine.endpoints();
    let target = Target::at(&stores.redis, &stores.dynamodb, &stores.table_prefix);
    let audit = audit::run(&target, &options).await?;
    let of = |provider: &MerchantProvider| (provider.form().as_str(), provider.notified());
    let notified = engine.merchants().iter().map(of);
    let notified = notified.chain([(PROVIDER, engine.provider().notified())]).collect();
    let rates = rates(limits);
    engine.stop().await?;
    parts.ends("audit", None);
    let (seconds, parts) = (started.elapsed().as_secs_f64(), parts.parts);
    Ok(Outcome {
        seconds,
        load_test: report,
        audit,
        rates,
        notified,
        club,
        money_back,
        neighbours,
        parts,
    })
}

/// What the crowds bought, and what became of payments of others on the account.
type Sold = (crate::report::Report, Option<crate::report::Report>, Neighbours);

/// Lets the crowds buy. While they are at work, others use the account too, and a waiting room is to be seen if somebody
/// pays on pages.
async fn sell(engine: &Engine, crowd: &crate::Options) -> Result<Sold, Error> {
    let rush =
        async { Ok::<_, Error>(crate::run(crowd, Credentials::new(engine.secrets())).await?) };
    let others = capture_for_others(engine);
    if crowd.pages.is_none() {
        let (report, others) = try_join(rush, others).await?;
        return Ok((report, None, others));
    }
    let (report, club, others) = try_join3(rush, sell_club(engine, crowd), others).await?;
    Ok((report, Some(club), others))
}

/// Publishes the sales, and says what of them can be looked at.
async fn put_on_sale(engine: &Engine, sales: &[SaleFile], on_news: fn(&News)) -> Result<(), Error> {
    on_news(&News::Started { url: engine.url().to_owned() });
    publish(engine, sales).await?;
    if let Some(file) = sales.first() {
        on_news(&buy_to_show(engine, file).await?);
    }
    Ok(())
}

/// Buys the best seats of a sale in its first tier that has seats, before the crowd comes: tickets to look at.
///
/// # Errors
/// [`Error::Refused`] if the engine does not sell them.
pub async fn buy_to_show(engine: &Engine, file: &SaleFile) -> Result<News, Error> {
    let seated = file.tiers.iter().find(|tier| !tier.sections.is_empty());
    let none = || Error::Refused(file.sale.clone(), "there is no tier".to_owned());
    let tier = seated.or(file.tiers.first()).ok_or_else(none)?;
    let shop = Shop::new(engine, file.sale.clone());
    let held = shop.order(SHOWN_BUYER, tier.tier.as_str(), SHOWN_TICKETS, None).await?;
    let order = shop.paid(&held, Till::Stripe).await?;
    Ok(News::Bought { url: engine.url().to_owned(), order, buyer: SHOWN_BUYER })
}

/// Sells the sale that will be cancelled through its waiting room, to people who pay at every provider.
async fn sell_club(
    engine: &Engine,
    crowd: &crate::Options,
) -> Result<crate::report::Report, Error> {
    let club = SaleFile {
        opens_at: Timestamp::now().plus_seconds(CLUB_OPENS_SECONDS.into()),
        room: Some(club_room()),
        ..money_back::club()?
    };
    publish(engine, std::slice::from_ref(&club)).await?;
    let crowd = crate::Options {
        sales: vec![club.sale.to_string()],
        load: crate::Load::Open {
            arrivals: CLUB_BUYERS,
            within_seconds: CLUB_OPENS_SECONDS.into(),
            shape: Shape::Steady,
            connections: 8,
        },
        profile: LoadProfile::Paying,
        seed: crowd.seed.wrapping_add(1),
        progress: false,
        ..crowd.clone()
    };
    Ok(crate::run(&crowd, Credentials::new(engine.secrets())).await?)
}

/// Its waiting room: what an opening is, within two minutes.
fn club_room() -> RoomSettings {
    RoomSettings {
        max_per_second: 2,
        draw_lead_seconds: 10,
        show_up_seconds: 120,
        visit_seconds: 120,
        ..RoomSettings::default()
    }
}

/// The payments a second that the fakes let an account begin, beside what the providers publish.
fn rates(limits: Limits) -> String {
    let stripe = match limits {
        Limits::None => "as many as come".to_owned(),
        Limits::Aws(quotas) => quotas.payments_per_second.to_string(),
    };
    format!(
        "payments begun a second, as granted by the fakes: stripe {stripe} (published: {}, more by agreement); \
         wechat and alipay as many as come (published: no rate; WeChat Pay's refunds have {})",
        STRIPE_ENDPOINT.count(),
        WECHAT_REFUNDS.count(),
    )
}

/// The operator puts the sales on sale, through the API, and first their pictures.
///
/// # Errors
/// [`Error::Client`] or [`Error::Refused`].
pub async fn publish(engine: &Engine, sales: &[SaleFile]) -> Result<(), Error> {
    let client = reqwest::Client::new();
    let operator = engine.operator_token()?;
    let gateway = Gateway::new(engine.url());
    let named: BTreeSet<Hash> =
        sales.iter().filter_map(|file| Some(file.event.as_ref()?.pictures())).flatten().collect();
    let own = PICTURES.map(|bytes| Attachment::new(AttachmentKind::Jpeg, bytes.to_vec()));
    for picture in own.iter().filter(|picture| named.contains(&picture.hash())) {
        gateway.keep_picture(picture, &operator).await?;
    }
    for file in sales {
        let url = format!("{}/sales/{}", engine.url(), file.sale);
        let put = client.request(Method::PUT, url).bearer_auth(&operator).json(file);
        let reply = put.send().await?;
        if !reply.status().is_success() {
            let said = reply.text().await?;
            return Err(Error::Refused(file.sale.clone(), said));
        }
    }
    Ok(())
}

/// Waits until every paid order has been counted and reconcile finds nothing left to do, at the
/// latest until `until`: the audit says what is missing then. What reconcile found last, if it was not done.
///
/// # Errors
/// Fails if the queues cannot be read or reconcile fails.
pub async fn settle(engine: &Engine, until: Instant) -> Result<Option<Report>, Error> {
    loop {
        let waiting = engine.sync_backlog().await?;
        let report =
            engine.reconcile().await.map_err(|error| Error::Reconcile(error.to_string()))?;
        if waiting == 0 && report.is_quiet() {
            return Ok(None);
        }
        if Instant::now() >= until {
            return Ok(Some(report));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
