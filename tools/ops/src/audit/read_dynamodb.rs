//! Reads DynamoDB: a strongly consistent scan of each table, every attribute decoded here.
//!
//! `docs/tables.md` is the format; the engine's own readers are deliberately not used.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::str::FromStr;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::ids::{Legs, ProviderId, SaleId, Seat, TierId, UserId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::SeatLeg;
use engine::domain::order::PaymentKey;
use engine::domain::order::attempt::AttemptState;
use engine::domain::order::attendee::AttendeeHash;
use engine::domain::order::fact::FactKind;
use engine::domain::order::refund::RefundState;
use engine::domain::sale::archive::Lifecycle;
use engine::domain::sale::attachment::{Attachment, AttachmentKind};
use engine::domain::sale::event::{EventAbout, FileAbout, pictures};
use engine::domain::sale::{Sale, SaleFile};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use shared::dynamodb::Tables;

use super::AuditError;
use super::decode;
use super::facts::{
    AccountFact, AwardFact, BilledFact, CallFact, CallKey, CheckInFact, ClaimFact, CounterFact,
    DoubleFact, EntryFact, Facts, LineFact, ORDERLESS, OrderFact, POSTED, PaymentFact, PointsFact,
    RefundFact, SaleFacts, StopKey, TicketFact, ToldFact, Unreadable, WaitingFact, WalletEntryFact,
    WalletFact,
};

pub(super) type Item = HashMap<String, AttributeValue>;
/// A fact, or what is wrong with its record.
pub(super) type Read<T> = Result<T, String>;

/// Reads every table. With a choice of sale, only that sale's facts are kept.
///
/// # Errors
/// [`AuditError::DynamoDb`] if a table cannot be scanned, [`AuditError::NoSuchSale`] if the chosen
/// sale is not in the catalogue.
pub(super) async fn read(
    client: &Client,
    tables: &Tables,
    only: Option<&SaleId>,
) -> Result<Facts, AuditError> {
    let mut reading = Reading { facts: Facts::default(), only };
    let catalogue = scan(client, &tables.sales).await?;
    reading.catalogue(&catalogue);
    if let Some(sale) = only.filter(|sale| !reading.facts.sales.contains_key(sale)) {
        return Err(AuditError::NoSuchSale(sale.clone()));
    }
    for item in scan(client, &tables.orders).await? {
        reading.one("orders", &item, Reading::order_item);
    }
    for item in scan(client, &tables.seats).await? {
        reading.one("seats", &item, Reading::seat_item);
    }
    let mut log = scan(client, &tables.log).await?;
    log.sort_by_key(|item| number::<u64>(item, "position").unwrap_or_default());
    for item in log {
        reading.one("log", &item, Reading::log_item);
    }
    for item in scan(client, &tables.accounts).await? {
        reading.one("accounts", &item, Reading::account_item);
    }
    let mut facts = reading.facts;
    let elsewhere = std::mem::take(&mut facts.elsewhere);
    facts.payments.retain(|payment| !elsewhere.contains(&payment.order));
    facts.elsewhere = elsewhere;
    Ok(facts)
}

async fn scan(client: &Client, table: &str) -> Result<Vec<Item>, AuditError> {
    let pages = client.scan().table_name(table).consistent_read(true).into_paginator().items();
    let items = pages.send().try_collect().await;
    items.map_err(|error| {
        AuditError::DynamoDb(format!("scanning {table}: {}", DisplayErrorContext(&error)))
    })
}

struct Reading<'a> {
    facts: Facts,
    only: Option<&'a SaleId>,
}

impl Reading<'_> {
    /// Reads one item; what is wrong with it is recorded.
    fn one(&mut self, table: &str, item: &Item, read: fn(&mut Self, &Item) -> Read<()>) {
        self.facts.records += 1;
        if let Err(what) = read(self, item) {
            self.record(sale_of(item), table, item, what);
        }
    }

    /// Records what is wrong with an item, unless it is of a sale that is not audited.
    fn record(&mut self, sale: Option<SaleId>, table: &str, item: &Item, what: String) {
        let is_elsewhere = self.only.is_some() && sale.is_some() && sale.as_ref() != self.only;
        if !is_elsewhere {
            let record = format!("item {} of table {table}", key_of(item));
            self.facts.unreadable.push(Unreadable { sale, record, what });
        }
    }

    fn is_audited(&self, sale: &SaleId) -> bool {
        self.only.is_none_or(|only| only == sale)
    }

    fn sale(&mut self, id: &SaleId) -> Read<&mut SaleFacts> {
        let sale = self.facts.sales.get_mut(id);
        sale.ok_or_else(|| format!("is of sale {id}, which is not in the catalogue"))
    }

    /// Reads the sales first, then their counters.
    fn catalogue(&mut self, items: &[Item]) {
        let mut listed = HashSet::new();
        let kept: BTreeMap<Hash, Attachment> = items
            .iter()
            .filter_map(|item| attachment(item).ok().flatten())
            .map(|kept| (kept.hash(), kept))
            .collect();
        let mut chunks: HashMap<String, BTreeMap<String, &[u8]>> = HashMap::new();
        for item in items {
            let (Ok(sale), Ok(sk)) = (text(item, "pk"), text(item, "sk")) else { continue };
            if sale == "#sales" {
                listed.insert(sk.to_owned());
            } else if sk.starts_with("file#")
                && let Some(AttributeValue::B(data)) = item.get("data")
            {
                let of_sale = chunks.entry(sale.to_owned()).or_default();
                of_sale.insert(sk.to_owned(), data.as_ref());
            }
        }
        for item in items.iter().filter(|item| text(item, "sk") == Ok("sale")) {
            let chunks = text(item, "pk").ok().and_then(|sale| chunks.get(sale));
            match read_sale(item, chunks) {
                Ok((sale, epoch, lifecycle, version)) if self.is_audited(sale.id()) => {
                    let is_listed = listed.contains(sale.id().as_str());
                    let what = match (is_listed, lifecycle) {
                        (false, Lifecycle::Listed | Lifecycle::Unloading) => {
                            Some("is not in the list of sales")
                        }
                        (true, Lifecycle::Archived) => Some("is archived and yet listed"),
                        (true, Lifecycle::Listed | Lifecycle::Unloading)
                        | (false, Lifecycle::Archived) => None,
                    };
                    if let Some(what) = what {
                        let id = Some(sale.id().clone());
                        self.record(id, "sales", item, what.to_owned());
                    }
                    for missing in not_kept(&sale, &kept) {
                        let what = format!("names {missing}, which is not kept");
                        self.record(Some(sale.id().clone()), "sales", item, what);
                    }
                    let facts = SaleFacts { lifecycle, version, ..SaleFacts::new(sale, epoch) };
                    self.facts.sales.insert(facts.sale.id().clone(), facts);
                }
                Ok(_) => {}
                Err(what) => self.record(sale_of(item), "sales", item, what),
            }
        }
        for item in items {
            self.one("sales", item, Self::catalogue_item);
        }
    }

    /// What differs in a bill; what an operator has said something of is settled.
    fn bill_item(&mut self, item: &Item, provider: &str, sk: &str) -> Read<()> {
        let kind = text(item, "kind")?;
        let day: i64 = number(item, "bill_day")?;
        if !sk.contains(kind) || day < 0 {
            return Err("has another name than it should".to_owned());
        }
        let is_of_what_went_back = ["unknown_refund", "paid_twice"].contains(&kind);
        if !is_of_what_went_back || item.contains_key("done") {
            return Ok(());
        }
        let currency = Currency::new(text(item, "currency")?);
        let currency = currency.map_err(|error| error.to_string())?;
        let payment = match (text(item, "payment"), text(item, "order")) {
            (Ok(payment), Ok(order)) => {
                let provider = parsed(provider, "pk")?;
                let key = PaymentKey { provider, payment: parsed(payment, "payment")? };
                Some((key, parsed(order, "order")?))
            }
            (Err(_), _) | (_, Err(_)) => None,
        };
        let amount = Money { amount_minor: MinorUnits(number(item, "amount_minor")?), currency };
        self.facts.billed.push(BilledFact { payment, name: format!("{provider} {sk}"), amount });
        Ok(())
    }

    fn catalogue_item(&mut self, item: &Item) -> Read<()> {
        let (sale, sk) = (text(item, "pk")?, text(item, "sk")?);
        if sale == "#sales" {
            let id: SaleId = parsed(sk, "sk")?;
            return if self.is_audited(&id) { self.sale(&id).map(|_| ()) } else { Ok(()) };
        }
        if sale.starts_with(ATTACHMENT) {
            return attachment(item).map(drop);
        }
        if let Some(partition) = sale.strip_prefix("#trains#") {
            return self.call_item(item, partition, sk);
        }
        if let Some(partition) = sale.strip_prefix("#stops#") {
            return self.stop_item(item, partition, sk);
        }
        if let Some((sale, copy)) = sale.split_once("#copy#") {
            // A compressed copy of a file: whoever finds it wanting reads the file itself.
            let (id, _): (SaleId, u8) = (parsed(sale, "pk")?, parsed(copy, "pk")?);
            return match sk.starts_with("file#") {
                true if self.is_audited(&id) => self.sale(&id).map(|_| ()),
                true => Ok(()),
                false => Err("is nothing that belongs there".to_owned()),
            };
        }
        if let Some(sale) = sale.strip_suffix("#map") {
            let id: SaleId = parsed(sale, "pk")?;
            return match sk.starts_with("file#") {
                true if self.is_audited(&id) => self.sale(&id).map(|_| ()),
                true => Ok(()),
                false => Err("is nothing that belongs there".to_owned()),
            };
        }
        if let Some(sale) = sale.strip_suffix("#tokens") {
            let id: SaleId = parsed(sale, "pk")?;
            return if self.is_audited(&id) { tokens_item(item, sk) } else { Ok(()) };
        }
        if let Some(sale) = sale.strip_suffix("#revoked") {
            let id: SaleId = parsed(sale, "pk")?;
            return if self.is_audited(&id) { self.revoked_item(&id, item, sk) } else { Ok(()) };
        }
        if let Some(sale) = sale.strip_suffix("#check-ins") {
            let id: SaleId = parsed(sale, "pk")?;
            return if self.is_audited(&id) { self.check_in_item(&id, item, sk) } else { Ok(()) };
        }
        if sale.starts_with("#provider#") {
            return provider_item(item, sk);
        }
        if let Some(provider) = sale.strip_prefix("#bills#") {
            return self.bill_item(item, provider, sk);
        }
        if sale == "#actions" {
            return action_item(item);
        }
        if sale == "#webhooks" {
            return webhook_item(item);
        }
        if let Some(webhook) = sale.strip_prefix("#subscriber#") {
            return self.subscriber_item(item, webhook, sk);
        }
        let id: SaleId = parsed(sale, "pk")?;
        if sk == "sale" || sk.starts_with("file#") || !self.is_audited(&id) {
            return Ok(());
        }
        let tier = sk.strip_prefix("counter#").and_then(|rest| rest.split_once('#'));
        let (tier, _) = tier.ok_or("is nothing that belongs there")?;
        let tickets: i64 = number(item, "tickets")?;
        let revenue_minor: MinorUnits = number(item, "revenue_minor")?;
        let tier: TierId = parsed(tier, "sk")?;
        let sum: &mut CounterFact = self.sale(&id)?.counters.entry(tier).or_default();
        sum.tickets += tickets;
        sum.revenue_minor += revenue_minor;
        Ok(())
    }

    /// How far a webhook was told of a shard of the log, or what of an order waits for it.
    fn subscriber_item(&mut self, item: &Item, webhook: &str, sk: &str) -> Read<()> {
        if let Some(shard) = sk.strip_prefix("shard#") {
            let _until: i64 = number(item, "reader_until_ms")?;
            // One that was only taken has told nothing yet.
            if item.contains_key("position") {
                let shard: u8 = parsed(shard, "sk")?;
                let position = number(item, "position")?;
                self.facts.told_to.insert((webhook.to_owned(), shard), position);
            }
            return Ok(());
        }
        let waiting = sk.strip_prefix("waiting#").and_then(|rest| rest.split_once('#'));
        let (shard, order) = waiting.ok_or("is nothing that belongs there")?;
        let shard: u8 = parsed(shard, "sk")?;
        let number_of: OrderNumber = parsed(order.trim_start_matches('0'), "sk")?;
        if number::<u64>(item, "order")? != number_of.get() || order.len() != 19 {
            return Err("is not under its order".to_owned());
        }
        let facts = (number(item, "from_fact")?, number(item, "to_fact")?);
        let _tries: (i64, u32) =
            (number(item, "failing_since_ms")?, number(item, "failing_tries")?);
        let webhook = webhook.to_owned();
        self.facts.waiting.push(WaitingFact { webhook, shard, order: number_of, facts });
        Ok(())
    }

    /// A call by which searches find a train.
    fn call_item(&mut self, item: &Item, partition: &str, sk: &str) -> Read<()> {
        let (day, stop) = partition.split_once('#').ok_or("is at no stop")?;
        let (time, sale) = sk.split_once('#').ok_or("is the call of no sale")?;
        let later = item.get("later").and_then(|later| later.as_ss().ok());
        let later = later.ok_or("has no set in later")?.iter().cloned().collect();
        let departs_ms = item.get("departs").map(|_| number(item, "departs")).transpose()?;
        let fact = CallFact { version: number(item, "version")?, later, departs_ms };
        let id: SaleId = parsed(sale, "sk")?;
        if !self.is_audited(&id) {
            return Ok(());
        }
        let [day, stop, time] = [day, stop, time].map(str::to_owned);
        self.sale(&id)?.calls.insert(CallKey { day, stop, time }, fact);
        Ok(())
    }

    /// A stop of a day's list, or a train that has brought it there.
    fn stop_item(&mut self, item: &Item, partition: &str, sk: &str) -> Read<()> {
        let Some((day, mark)) = partition.split_once('#') else {
            let names = [text(item, "name")?, text(item, "stop")?].map(str::to_lowercase);
            let [day, mark] = [partition, sk].map(str::to_owned);
            let is_there = names.join("\t") == mark;
            self.facts.stops.insert(StopKey { day, mark });
            return if is_there { Ok(()) } else { Err("is not under its name and id".to_owned()) };
        };
        let (id, version): (SaleId, u64) = (parsed(sk, "sk")?, number(item, "version")?);
        if self.is_audited(&id) {
            let [day, mark] = [day, mark].map(str::to_owned);
            self.sale(&id)?.stops.insert(StopKey { day, mark }, version);
        }
        Ok(())
    }

    /// What is revoked of an order: an attribute for each of its tickets.
    fn revoked_item(&mut self, sale: &SaleId, item: &Item, sk: &str) -> Read<()> {
        let order: OrderNumber = parsed(sk.trim_start_matches('0'), "sk")?;
        if sk != format!("{:019}", order.get()) {
            return Err("is not under its order".to_owned());
        }
        let mut tickets = BTreeMap::new();
        for name in item.keys().filter(|name| *name != "pk" && *name != "sk") {
            let ticket = name.strip_prefix('t').ok_or("says more than tickets")?;
            tickets.insert(parsed(ticket, name)?, number(item, name)?);
        }
        self.sale(sale)?.revoked.insert(order, tickets);
        Ok(())
    }

    /// A shard of the count of check-ins, or a check-in after the first.
    fn check_in_item(&mut self, sale: &SaleId, item: &Item, sk: &str) -> Read<()> {
        let facts = self.sale(sale)?;
        if sk.starts_with("count#") {
            let count = |name| if item.contains_key(name) { number(item, name) } else { Ok(0_u64) };
            facts.check_ins.0 += count("admitted")?;
            facts.check_ins.1 += count("doubles")?;
            return Ok(());
        }
        let order: OrderNumber = parsed(text(item, "order")?, "order")?;
        let ticket: u8 = number(item, "ticket")?;
        let first = (number(item, "first_at_ms")?, text(item, "first_door")?.to_owned());
        let again: (i64, String) = (number(item, "at_ms")?, text(item, "door")?.to_owned());
        let key = format!("double#{:019}#{ticket:02}#{:015}#{}", order.get(), again.0, again.1);
        facts.doubles.push(DoubleFact { order, ticket, first, again });
        if sk == key {
            Ok(())
        } else {
            Err("is not under its order, ticket, time and door".to_owned())
        }
    }

    fn order_item(&mut self, item: &Item) -> Read<()> {
        let sk = text(item, "sk")?;
        let mut parts = sk.splitn(3, '#');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("order"), Some(order), None) => self.order(item, order),
            (Some("payment"), Some(provider), Some(payment)) => {
                self.payment(item, provider, payment)
            }
            (Some("refund"), Some(order), Some(number)) => self.refund(item, order, number),
            (Some("buyer"), Some(sale), Some(user)) => self.count(item, sale, user),
            (Some("attendee"), Some(sale), Some(attendee)) => self.attendee(item, sale, attendee),
            (Some("wallet"), Some(user), Some(wallet)) => self.wallet(item, user, wallet),
            (Some("points"), Some(user), Some(order)) => self.points(item, user, order),
            _ => Err("is nothing that belongs there".to_owned()),
        }
    }

    /// What a buyer has of points, or what an order has given.
    fn points(&mut self, item: &Item, user: &str, order: &str) -> Read<()> {
        let user: UserId = parsed(user, "user")?;
        check_gene(item, decode::gene_of_text(user.as_str()))?;
        let given = PointsFact { points: number(item, "points")?, growth: number(item, "growth")? };
        let user = user.to_string();
        if order.is_empty() {
            self.facts.points.insert(user, given);
        } else {
            let award = AwardFact { user, facts: number(item, "facts")?, given };
            self.facts.awards.insert(parsed(order, "order")?, award);
        }
        Ok(())
    }

    /// A wallet, or an entry of one.
    fn wallet(&mut self, item: &Item, user: &str, wallet: &str) -> Read<()> {
        let user: UserId = parsed(user, "user")?;
        check_gene(item, decode::gene_of_text(user.as_str()))?;
        let Some((currency, name)) = wallet.split_once('#') else {
            let entry = EntryFact {
                incoming: number(item, "in_minor")?,
                outgoing: number(item, "out_minor")?,
            };
            let found = WalletFact { entry, balance: number(item, "balance_minor")? };
            self.facts.wallets.insert((user.to_string(), wallet.to_owned()), found);
            return Ok(());
        };
        self.facts.wallet_entries.push(WalletEntryFact {
            wallet: (user.to_string(), currency.to_owned()),
            name: name.to_owned(),
            order: parsed(text(item, "order")?, "order")?,
            amount_minor: number(item, "amount_minor")?,
            is_gone: item.contains_key("gone"),
        });
        Ok(())
    }

    /// An order is always in the same shard, so that its facts come in the order of positions.
    fn log_item(&mut self, item: &Item) -> Read<()> {
        let shard: u8 = number(item, "shard")?;
        let positions = self.facts.log_positions.entry(shard).or_default();
        positions.insert(number(item, "position")?);
        let transfers = match item.get("transfers") {
            Some(_) => json::<Vec<WrittenTransfer>>(text(item, "transfers")?)?,
            None => Vec::new(),
        };
        for (from, to, _, amount, currency) in &transfers {
            self.book(from, to, i128::from(*amount), currency, &shard.to_string());
        }
        let sale: SaleId = parsed(text(item, "sale")?, "sale")?;
        if !self.is_audited(&sale) {
            return Ok(());
        }
        for (from, to, code, amount, currency) in transfers {
            let sums = &mut self.sale(&sale)?.transfers;
            *sums.entry((from, to, code, currency)).or_default() += i128::from(amount);
        }
        for WrittenOrder { order, facts } in json::<Vec<WrittenOrder>>(text(item, "orders")?)? {
            let order: OrderNumber = parsed(&order, "order")?;
            let facts = facts.into_iter().map(|(number, fact)| Ok((number, read_told(fact)?)));
            let facts: Vec<(u32, ToldFact)> = facts.collect::<Read<_>>()?;
            self.sale(&sale)?.log.entry(order).or_default().extend(facts);
        }
        Ok(())
    }

    /// Notes what a transfer moves on a part of each of its accounts.
    fn book(&mut self, from: &str, to: &str, amount: i128, currency: &str, part: &str) {
        let of = |account: &str| (account.to_owned(), currency.to_owned(), part.to_owned());
        self.facts.booked.entry(of(from)).or_default().outgoing += amount;
        self.facts.booked.entry(of(to)).or_default().incoming += amount;
    }

    fn account_item(&mut self, item: &Item) -> Read<()> {
        let account = text(item, "account")?.to_owned();
        if account.starts_with("posting:") {
            let (from, to, currency) =
                (text(item, "from")?, text(item, "to")?, text(item, "currency")?);
            self.book(from, to, number(item, "amount_minor")?, currency, POSTED);
            return Ok(());
        }
        let part = text(item, "part")?;
        let (currency, shard) = part.split_once('#').ok_or("has a part without a name")?;
        self.facts.accounts.push(AccountFact {
            part: (account, currency.to_owned(), shard.to_owned()),
            entry: EntryFact {
                incoming: number(item, "in_minor")?,
                outgoing: number(item, "out_minor")?,
            },
            balance: number(item, "balance_minor")?,
        });
        Ok(())
    }

    fn order(&mut self, item: &Item, order: &str) -> Read<()> {
        let sale: SaleId = parsed(text(item, "sale")?, "sale")?;
        let order_number: OrderNumber = parsed(order, "sk")?;
        if !self.is_audited(&sale) {
            self.facts.elsewhere.insert(order_number);
            return Ok(());
        }
        let order = read_order(item, order_number)?;
        let by_user = format!("{}#{:019}", order.user, order_number.get());
        // A tombstone is nobody's order; any other is found by its buyer.
        let found = item.get("by_user").and_then(|value| value.as_s().ok());
        let is_listed = order.lines.is_empty() || found == Some(&by_user);
        let (user, numbers_gene) = (order.user.clone(), decode::gene_of_order(order_number));
        self.sale(&sale)?.orders.insert(order_number, order);
        check_gene(item, numbers_gene)?;
        check_gene(item, decode::gene_of_text(user.as_str()))?;
        if is_listed { Ok(()) } else { Err("is not among its buyer's orders".to_owned()) }
    }

    /// What the capture of no order moves by itself.
    fn of_no_order(
        &mut self,
        item: &Item,
        provider: &ProviderId,
        refund: Option<RefundState>,
    ) -> Read<()> {
        let Money { amount_minor, currency } = money(item)?;
        let (amount, currency) = (i128::from(amount_minor), currency.to_string());
        let provider = format!("provider:{provider}");
        self.book(&provider, "owed", amount, &currency, ORDERLESS);
        // Each time that its money came to us again it had been back.
        let undone: u8 = match item.contains_key("undone") {
            true => number(item, "undone")?,
            false => 0,
        };
        for _ in 0..undone {
            self.book("owed", &provider, amount, &currency, ORDERLESS);
            self.book(&provider, "owed", amount, &currency, ORDERLESS);
        }
        match refund {
            Some(RefundState::Settled) => {
                self.book("owed", "bank", amount, &currency, ORDERLESS);
            }
            Some(RefundState::Refunded) => {
                self.book("owed", &provider, amount, &currency, ORDERLESS);
            }
            Some(RefundState::Explained) => {
                self.book("owed", "explained", amount, &currency, ORDERLESS);
            }
            _ => {}
        }
        Ok(())
    }

    fn payment(&mut self, item: &Item, provider: &str, payment: &str) -> Read<()> {
        let order: OrderNumber = parsed(text(item, "order")?, "order")?;
        let accepted = match text(item, "outcome")? {
            "accepted" => true,
            "refund" => false,
            other => return Err(format!("has outcome {other}")),
        };
        let refund = match item.get("refund_state") {
            Some(_) => {
                let state = text(item, "refund_state")?;
                let known = decode::refund_state(state);
                Some(known.ok_or_else(|| format!("has refund state {state}"))?)
            }
            None => None,
        };
        let key = PaymentKey { provider: parsed(provider, "sk")?, payment: parsed(payment, "sk")? };
        if item
            .get("reason")
            .and_then(|value| value.as_s().ok())
            .is_some_and(|it| it == "unknown_order")
        {
            self.of_no_order(item, &key.provider, refund)?;
        }
        self.facts.payments.push(PaymentFact {
            key,
            order,
            amount: money(item)?,
            attempt: match item.contains_key("attempt") {
                true => Some(number(item, "attempt")?),
                false => None,
            },
            accepted,
            refund,
            back_minor: match item.contains_key("back_minor") {
                true => number(item, "back_minor")?,
                false => MinorUnits::ZERO,
            },
            disputes: match item.contains_key("disputes") {
                true => decode::disputes(text(item, "disputes")?)?,
                false => Vec::new(),
            },
            disputed: item
                .get("disputed")
                .map(|_| text(item, "disputed").map(str::to_owned))
                .transpose()?,
            listed: match item.contains_key("dispute_at") {
                true => {
                    let place = text(item, "dispute_at")?.to_owned();
                    Some((text(item, "dispute_list")?.to_owned(), place))
                }
                false => None,
            },
            captured: match item.contains_key("captured") {
                true => Some(decode::moved(text(item, "captured")?)?),
                false => None,
            },
        });
        check_gene(item, decode::gene_of_order(order))
    }

    fn refund(&mut self, item: &Item, order: &str, number: &str) -> Read<()> {
        let order: OrderNumber = parsed(order, "sk")?;
        let state = text(item, "refund_state")?;
        let state = decode::refund_state(state).ok_or_else(|| format!("has state {state}"))?;
        let ticket = |ticket: &Item| {
            Ok((parsed(text(ticket, "tier")?, "tier")?, text(ticket, "seat")?.to_owned()))
        };
        self.facts.refunds.push(RefundFact {
            order,
            number: parsed(number, "sk")?,
            payment: PaymentKey {
                provider: parsed(text(item, "payment_provider")?, "payment_provider")?,
                payment: parsed(text(item, "payment_id")?, "payment_id")?,
            },
            tickets: maps(item, "tickets")?.into_iter().map(ticket).collect::<Read<_>>()?,
            amount: money(item)?,
            kept_minor: match item.contains_key("kept_minor") {
                true => self::number(item, "kept_minor")?,
                false => MinorUnits::ZERO,
            },
            exchanged_for: match text(item, "asked_by")? {
                "exchange" => Some(parsed(text(item, "reason")?, "reason")?),
                _ => None,
            },
            state,
            is_due: item.contains_key("due_ms") && item.contains_key("due_shard"),
            is_of_cancelled_sale: text(item, "asked_by")? == "sale_cancelled",
            dispute: match text(item, "asked_by")? {
                "dispute" => Some(text(item, "reason")?.to_owned()),
                _ => None,
            },
            is_by_dispute: item.contains_key("refusal")
                && text(item, "refusal")?.starts_with("by dispute "),
            ended: match item.contains_key("ended") {
                true => self::number(item, "ended")?,
                false => 0,
            },
        });
        check_gene(item, decode::gene_of_order(order))
    }

    fn count(&mut self, item: &Item, sale: &str, user: &str) -> Read<()> {
        let (sale, user): (SaleId, UserId) = (parsed(sale, "sk")?, parsed(user, "sk")?);
        if !self.is_audited(&sale) {
            return Ok(());
        }
        let gene = decode::gene_of_text(user.as_str());
        let tickets: i64 = number(item, "tickets")?;
        let named = item.get("named").map(|named| named.as_ss().map_err(|_| "has no set in named"));
        let named = named.transpose()?.into_iter().flatten();
        let named: Read<BTreeSet<AttendeeHash>> = named.map(|hash| parsed(hash, "named")).collect();
        let named = named?;
        let facts = self.sale(&sale)?;
        facts.named.entry(user.clone()).or_default().extend(named);
        *facts.counts.entry(user).or_default() += tickets;
        check_gene(item, gene)
    }

    fn attendee(&mut self, item: &Item, sale: &str, attendee: &str) -> Read<()> {
        let sale: SaleId = parsed(sale, "sk")?;
        if !self.is_audited(&sale) {
            return Ok(());
        }
        let order = parsed(text(item, "order")?, "order")?;
        self.sale(&sale)?.attendees.push((parsed(attendee, "sk")?, order));
        check_gene(item, decode::gene_of_text(attendee))
    }

    fn seat_item(&mut self, item: &Item) -> Read<()> {
        let block = text(item, "pk")?;
        let mut parts = block.split('#');
        let (Some(sale), Some(tier), Some(block), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("is in no block of a tier".to_owned());
        };
        let (id, tier): (SaleId, TierId) = (parsed(sale, "pk")?, parsed(tier, "pk")?);
        if !self.is_audited(&id) {
            return Ok(());
        }
        let seat = Seat(number(item, "sk")?);
        let sale = self.sale(&id)?;
        for (name, value) in item {
            let Some(leg) = name.strip_prefix('l').and_then(|leg| leg.parse().ok()) else {
                continue;
            };
            let order = value.as_s().map_err(|_| format!("has no text in {name}"))?;
            let at = SeatLeg { tier: tier.clone(), leg, seat };
            sale.claims.push(ClaimFact { at, order: parsed(order, name)? });
        }
        let is_there = block.parse() == Ok(decode::block_of(seat));
        if is_there { Ok(()) } else { Err("is in another block than its seat's".to_owned()) }
    }
}

/// A snapshot of a sale's tokens, which expires.
fn tokens_item(item: &Item, sk: &str) -> Read<()> {
    let at_ms: i64 = number(item, "at_ms")?;
    if sk != format!("{:010}", at_ms.div_euclid(60_000)) {
        return Err("is not under its minute".to_owned());
    }
    let counts = ["issued", "by_hand", "remaining", "since_ms", "bought", "expires_s"];
    counts.iter().try_for_each(|name| number::<i64>(item, name).map(drop))
}

/// What an operator did: who, what and when.
fn action_item(item: &Item) -> Read<()> {
    let _at_ms: i64 = number(item, "at_ms")?;
    text(item, "who").and(text(item, "action")).map(|_| ())
}

/// A webhook.
fn webhook_item(item: &Item) -> Read<()> {
    let numbers = ["secret_generation", "since_ms"];
    let texts = ["url", "kinds", "sales", "secret_key"];
    numbers.iter().try_for_each(|name| number::<i64>(item, name).map(drop))?;
    texts.iter().try_for_each(|name| text(item, name).map(drop))
}

/// What is kept of a payment provider: how far its captures and bills were read, the turns of calls to it, and under which
/// deployment's id payments are started at it.
fn provider_item(item: &Item, sk: &str) -> Read<()> {
    if sk.starts_with("calls#") {
        return number::<i64>(item, "next_us").map(drop);
    }
    if sk == "deployment" {
        return text(item, "deployment").map(drop);
    }
    if sk == "bills" {
        // A reader that has read nothing yet has written its lease alone; an operator may have named a day before.
        let name = if item.contains_key("bill_day") { "bill_day" } else { "reader_until_ms" };
        return number::<i64>(item, name).map(drop);
    }
    if sk != "captures" {
        return Err("is nothing that belongs there".to_owned());
    }
    // A reader that has read no page yet has written its lease alone.
    if item.contains_key("since_ms") {
        let (since, read_to): (i64, i64) = (number(item, "since_ms")?, number(item, "read_to_ms")?);
        if read_to < since {
            return Err("was read to before it was read".to_owned());
        }
    }
    // A callback may have asked for a list that nobody has read yet.
    if item.contains_key("asked_ms") && !item.contains_key("reader_until_ms") {
        return number::<i64>(item, "asked_ms").map(drop);
    }
    number::<i64>(item, "reader_until_ms").map(drop)
}

/// The sale that an item is of, where its key or an attribute says so.
fn sale_of(item: &Item) -> Option<SaleId> {
    let named = text(item, "sale").ok().and_then(|sale| sale.parse().ok());
    let in_partition = || text(item, "pk").ok()?.split('#').next()?.parse().ok();
    let in_key = || {
        let sk = text(item, "sk").ok()?;
        let rest = sk.strip_prefix("buyer#").or_else(|| sk.strip_prefix("attendee#"))?;
        rest.split('#').next()?.parse().ok()
    };
    named.or_else(in_partition).or_else(in_key)
}

pub(super) fn key_of(item: &Item) -> String {
    let value = |name: &&str| match item.get(*name) {
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => Some(text.clone()),
        _ => None,
    };
    let partition = ["gene", "pk"].iter().find_map(value);
    format!("{}/{}", partition.unwrap_or_default(), value(&"sk").unwrap_or_default())
}

/// An item of an order lies where its gene is, or nobody finds it.
fn check_gene(item: &Item, gene: u64) -> Read<()> {
    if number::<u64>(item, "gene")? == gene {
        Ok(())
    } else {
        Err(format!("belongs in partition {gene}"))
    }
}

fn read_sale(
    header: &Item,
    chunks: Option<&BTreeMap<String, &[u8]>>,
) -> Read<(Sale, Option<String>, Lifecycle, u64)> {
    let file = format!("file#{}#", text(header, "file")?);
    let of_file = |sk: &str| sk.starts_with(&file);
    let chunks: Vec<&[u8]> = chunks
        .into_iter()
        .flatten()
        .filter_map(|(sk, data)| of_file(sk).then_some(*data))
        .collect();
    let expected: usize = number(header, "chunks")?;
    if chunks.len() != expected {
        return Err(format!("has {} chunks of its file, not {expected}", chunks.len()));
    }
    let file: SaleFile =
        serde_json::from_slice(&chunks.concat()).map_err(|error| format!("has a file: {error}"))?;
    if file.sale.as_str() != text(header, "pk")? {
        return Err(format!("has the file of sale {}", file.sale));
    }
    let epoch = header.contains_key("epoch").then(|| text(header, "epoch").map(str::to_owned));
    let sale = Sale::new(file).map_err(|defects| {
        let defects: Vec<String> = defects.iter().map(ToString::to_string).collect();
        format!("has a file with defects: {}", defects.join("; "))
    })?;
    let lifecycle = match header.contains_key("lifecycle").then(|| text(header, "lifecycle")) {
        None => Lifecycle::Listed,
        Some(Ok("unloading")) => Lifecycle::Unloading,
        Some(Ok("archived")) => Lifecycle::Archived,
        Some(Ok(other)) => return Err(format!("has lifecycle {other}")),
        Some(Err(what)) => return Err(what),
    };
    Ok((sale, epoch.transpose()?, lifecycle, number(header, "version")?))
}

fn read_order(item: &Item, order: OrderNumber) -> Read<OrderFact> {
    let state = text(item, "state")?;
    let state = decode::order_state(state).ok_or_else(|| format!("has state {state}"))?;
    let payment = match (item.get("payment_provider"), item.get("payment_id")) {
        (None, None) => None,
        _ => Some(PaymentKey {
            provider: parsed(text(item, "payment_provider")?, "payment_provider")?,
            payment: parsed(text(item, "payment_id")?, "payment_id")?,
        }),
    };
    let due_ms = item.contains_key("due_ms").then(|| number(item, "due_ms"));
    let is_due = item.contains_key("due_shard");
    let started = started(item)?;
    Ok(OrderFact {
        number: order,
        user: parsed(text(item, "user")?, "user")?,
        state,
        lines: maps(item, "lines")?.into_iter().map(read_line).collect::<Read<_>>()?,
        total: money(item)?,
        pay_by: Timestamp::from_ms(number(item, "pay_by_ms")?),
        extended_to: read_extension(item)?,
        places: read_places(item)?,
        changed_at: Timestamp::from_ms(number(item, "changed_ms")?),
        due_ms: due_ms.transpose()?.filter(|_| is_due),
        payment,
        told: match item.contains_key("facts") {
            true => read_facts(item)?,
            false => Vec::new(),
        },
        settled: if item.contains_key("settled") { number(item, "settled")? } else { 0 },
        refunds: if item.contains_key("refunds") { number(item, "refunds")? } else { 0 },
        refunds_back: if item.contains_key("refunds") { number(item, "refunds_back")? } else { 0 },
        attempts: started.iter().copied().map(read_attempt).collect::<Read<_>>()?,
        unhanded: started
            .iter()
            .filter(|attempt| {
                attempt.contains_key("named_first") && !attempt.contains_key("reference")
            })
            .map(|attempt| number(attempt, "number"))
            .collect::<Read<_>>()?,
        absent: started
            .iter()
            .filter(|attempt| attempt.contains_key("absent"))
            .map(|attempt| {
                let expires_at = Timestamp::from_ms(number(attempt, "expires_ms")?);
                Ok((number(attempt, "number")?, expires_at))
            })
            .collect::<Read<_>>()?,
        steps: read_steps(item)?,
        paid_attempt: match item.contains_key("paid_attempt") {
            true => Some(number(item, "paid_attempt")?),
            false => None,
        },
        merchant: match item.contains_key("merchant") {
            true => (text(item, "merchant")?.to_owned(), number(item, "commission_basis_points")?),
            false => ("house".to_owned(), 0),
        },
        points: match item.contains_key("points") {
            true => Some(decode::points_terms(text(item, "points")?)?),
            false => None,
        },
        tickets: read_tickets(item)?,
        exchange: match item.contains_key("exchange") {
            true => Some(decode::exchange(text(item, "exchange")?)?),
            false => None,
        },
    })
}

/// What an order says of its tickets, apart from their seats.
fn read_tickets(order: &Item) -> Read<Vec<TicketFact>> {
    let lines = maps(order, "lines")?.into_iter().map(|line| maps(line, "tickets"));
    let tickets: Vec<&Item> = lines.collect::<Read<Vec<_>>>()?.into_iter().flatten().collect();
    let read = |(place, ticket): (u8, &Item)| {
        let has = |name: &str| ticket.contains_key(name);
        let check_in = || -> Read<CheckInFact> {
            Ok((number(ticket, "checked_in_ms")?, text(ticket, "checked_in_door")?.to_owned()))
        };
        Ok(TicketFact {
            number: place,
            refund: if has("refund") { Some(number(ticket, "refund")?) } else { None },
            issue: if has("issue") { number(ticket, "issue")? } else { 1 },
            check_in: if has("checked_in_ms") { Some(check_in()?) } else { None },
        })
    };
    (1..).zip(tickets).map(read).collect()
}

/// The payments that were started for an order, as its item has them.
fn started(order: &Item) -> Read<Vec<&Item>> {
    if order.contains_key("attempts") { maps(order, "attempts") } else { Ok(Vec::new()) }
}

/// The time to which a place has extended an order.
fn read_extension(order: &Item) -> Read<Option<Timestamp>> {
    let is_extended = order.contains_key("extended_ms");
    is_extended.then(|| number(order, "extended_ms").map(Timestamp::from_ms)).transpose()
}

/// The providers at which an order has a place.
fn read_places(order: &Item) -> Read<Vec<String>> {
    let Some(places) = order.get("places") else { return Ok(Vec::new()) };
    let places = places.as_m().map_err(|_| "places is no map".to_owned())?;
    Ok(places.keys().cloned().collect())
}

/// The numbers of the started payments of which an order keeps what its buyer does next.
fn read_steps(order: &Item) -> Read<Vec<u8>> {
    let Some(steps) = order.get("steps") else { return Ok(Vec::new()) };
    let steps = steps.as_m().map_err(|_| "steps is no map".to_owned())?;
    let mut numbers =
        steps.keys().map(|number| parsed(number, "steps")).collect::<Read<Vec<u8>>>()?;
    numbers.sort_unstable();
    Ok(numbers)
}

fn read_attempt(attempt: &Item) -> Read<(u8, AttemptState)> {
    let state = text(attempt, "state")?;
    let known = AttemptState::ALL.into_iter().find(|known| known.as_str() == state);
    let known = known.ok_or_else(|| format!("has a started payment that is {state}"))?;
    Ok((number(attempt, "number")?, known))
}

/// A fact as it is written: kind, time, who caused it, and what moved: the payment's provider and id, amount,
/// currency, reason and refund.
type WrittenFact = (String, i64, String, Option<WrittenMoney>);
type WrittenMoney = (String, String, i64, String, Option<String>, Option<u8>);

/// A transfer as it is written: from, to, what for, amount and currency.
type WrittenTransfer = (String, String, String, i64, String);

/// What a record of the log tells of an order, as far as it is audited.
#[derive(Deserialize)]
struct WrittenOrder {
    order: String,
    facts: Vec<(u32, WrittenFact)>,
}

/// Facts are texts of a list, each JSON.
fn read_facts(order: &Item) -> Read<Vec<ToldFact>> {
    let list = order.get("facts").and_then(|value| value.as_l().ok()).ok_or("has no facts")?;
    let read = |text: &AttributeValue| match text.as_s() {
        Ok(text) => read_told(json(text)?),
        Err(_) => Err("has a fact that is no text".to_owned()),
    };
    list.iter().map(read).collect()
}

fn read_told((kind, at_ms, by, moved): WrittenFact) -> Read<ToldFact> {
    let known = FactKind::ALL.into_iter().find(|known| known.as_str() == kind);
    let (payment, amount_minor, currency, reason, refund) = match moved {
        Some((provider, payment, amount_minor, currency, reason, refund)) => {
            (Some((provider, payment)), Some(amount_minor), Some(currency), reason, refund)
        }
        None => (None, None, None, None, None),
    };
    Ok(ToldFact {
        kind: known.ok_or_else(|| format!("tells {kind}"))?,
        at: Timestamp::from_ms(at_ms),
        by,
        payment,
        amount_minor,
        currency,
        is_disputed: reason.as_deref() == Some("disputed"),
        refund,
    })
}

fn json<T: DeserializeOwned>(text: &str) -> Read<T> {
    serde_json::from_str(text).map_err(|error| format!("has a text that is no such JSON: {error}"))
}

fn read_line(line: &Item) -> Read<LineFact> {
    let legs = Legs::new(number(line, "from")?, number(line, "to")?);
    let (refunded, live): (Vec<&Item>, Vec<&Item>) =
        maps(line, "tickets")?.into_iter().partition(|ticket| ticket.contains_key("refund"));
    let mark = |ticket: &Item| Ok((text(ticket, "name")?.to_owned(), number(ticket, "refund")?));
    Ok(LineFact {
        tier: parsed(text(line, "tier")?, "tier")?,
        legs: legs.ok_or("has a line without legs")?,
        price_minor: number(line, "price_minor")?,
        seats: live.into_iter().map(read_seat).collect::<Read<_>>()?,
        refunded: refunded.into_iter().map(mark).collect::<Read<_>>()?,
    })
}

/// The seat of a ticket, and the hashes of its attendee.
fn read_seat(ticket: &Item) -> Read<(Seat, Vec<AttendeeHash>)> {
    let seat = Seat(number(ticket, "seat")?);
    let Some(hashes) = ticket.get("attendee_hashes") else {
        let is_unclaimed = ticket.contains_key("attendee");
        let what = || "names somebody without a hash".to_owned();
        return if is_unclaimed { Err(what()) } else { Ok((seat, Vec::new())) };
    };
    let hashes = hashes.as_l().map_err(|_| "has no list in attendee_hashes")?;
    let hash = |hash: &AttributeValue| {
        let hash = hash.as_s().map_err(|_| "has no text in attendee_hashes")?;
        parsed(hash, "attendee_hashes")
    };
    Ok((seat, hashes.iter().map(hash).collect::<Read<_>>()?))
}

fn money(item: &Item) -> Read<Money> {
    let currency = Currency::new(text(item, "currency")?).map_err(|error| error.to_string())?;
    Ok(Money { amount_minor: number(item, "amount_minor")?, currency })
}

pub(super) fn text<'a>(item: &'a Item, name: &str) -> Read<&'a str> {
    match item.get(name) {
        Some(AttributeValue::S(text)) => Ok(text),
        _ => Err(format!("has no text in {name}")),
    }
}

pub(super) fn number<T: FromStr>(item: &Item, name: &str) -> Read<T> {
    match item.get(name) {
        Some(AttributeValue::N(number)) => parsed(number, name),
        _ => Err(format!("has no number in {name}")),
    }
}

/// How the partition of an attachment begins.
const ATTACHMENT: &str = "#attachment#";

/// The attachment of an item, whose key is the hash of its bytes; `None` of another item.
fn attachment(item: &Item) -> Read<Option<Attachment>> {
    let Some(hash) = text(item, "pk")?.strip_prefix(ATTACHMENT) else { return Ok(None) };
    let hash: Hash = parsed(hash, "pk")?;
    let kind = AttachmentKind::from_text(text(item, "kind")?);
    let kind = kind.ok_or_else(|| "is of no kind".to_owned())?;
    let Some(AttributeValue::B(data)) = item.get("data") else {
        return Err("has no data".to_owned());
    };
    let kept = Attachment::new(kind, data.as_ref().to_vec());
    if kept.hash() == hash { Ok(Some(kept)) } else { Err("has other bytes".to_owned()) }
}

/// The document and the pictures that a sale names and that are not kept.
fn not_kept(sale: &Sale, kept: &BTreeMap<Hash, Attachment>) -> Vec<Hash> {
    let Some(event) = &sale.file().event else { return Vec::new() };
    let named = match &event.about {
        Some(FileAbout::Kept(hash)) => Some(*hash),
        Some(FileAbout::Own(_)) | None => None,
    };
    let of_kind = |hash: &Hash, kind| kept.get(hash).is_some_and(|kept| kept.kind == kind);
    let about = named.and_then(|hash| EventAbout::from_attachment(kept.get(&hash)?).ok());
    let named = named.filter(|hash| !of_kind(hash, AttachmentKind::About));
    let pictures = pictures(event, about.as_ref()).into_iter();
    named.into_iter().chain(pictures.filter(|hash| !of_kind(hash, AttachmentKind::Jpeg))).collect()
}

fn maps<'a>(item: &'a Item, name: &str) -> Read<Vec<&'a Item>> {
    let list = item.get(name).and_then(|value| value.as_l().ok());
    let maps = list.map(|list| list.iter().map(|value| value.as_m().ok()).collect());
    maps.flatten().ok_or_else(|| format!("has no list of maps in {name}"))
}

pub(super) fn parsed<T: FromStr>(text: &str, name: &str) -> Read<T> {
    text.parse().map_err(|_| format!("has {text:?} in {name}"))
}
