//! The tables, their keys and their indexes, as data: the template, the local stack, the tests and
//! the adapters all read them here.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{BuildError, DisplayErrorContext};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
    LocalSecondaryIndex, Projection, ProjectionType, ScalarAttributeType,
};

use engine::domain::admission::room::code::CodeShard;
use engine::domain::basics::ids::{
    GroupId, Leg, PostingKey, ProviderId, SaleId, SubscriberId, TierId, UserId,
};
use engine::domain::basics::money::Currency;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::LogShard;
use engine::domain::ledger::wallet::WalletEntryName;
use engine::domain::order::PaymentKey;
use engine::domain::order::attendee::AttendeeHash;
use engine::domain::order::order_refund::RefundKey;
use engine::ports::{StoreError, Stored};

/// The names of the six tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// Orders, payments, buyers' counts, attendees.
    pub orders: String,
    pub seats: String,
    /// The catalogue, the statistics, and what is kept of payment providers.
    pub sales: String,
    pub rooms: String,
    /// The facts of all orders, as they were settled.
    pub log: String,
    /// The accounts of the ledger.
    pub accounts: String,
}

impl Tables {
    /// Names that begin alike, such as `onsale-orders`; an empty prefix is allowed.
    #[must_use]
    pub fn with_prefix(prefix: &str) -> Self {
        let name = |table: &str| format!("{prefix}{table}");
        let [orders, seats, sales, rooms, log, accounts] =
            ["orders", "seats", "sales", "rooms", "log", "accounts"].map(name);
        Self { orders, seats, sales, rooms, log, accounts }
    }

    /// Each definition with the name of its table.
    #[must_use]
    pub fn definitions(&self) -> [(&str, &'static TableDefinition); 6] {
        [
            (&self.orders, &ORDERS),
            (&self.seats, &SEATS),
            (&self.sales, &SALES),
            (&self.rooms, &ROOMS),
            (&self.log, &LOG),
            (&self.accounts, &ACCOUNTS),
        ]
    }
}

/// The type of a key attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Text (`S`).
    Text,
    /// A number (`N`).
    Number,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub kind: KeyKind,
}

const fn text(name: &'static str) -> Key {
    Key { name, kind: KeyKind::Text }
}

const fn number(name: &'static str) -> Key {
    Key { name, kind: KeyKind::Number }
}

/// A second order of a table's items. Both kinds are sparse: they hold the items that have the
/// sort attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    pub name: &'static str,
    pub partition: Key,
    pub sort: Key,
    /// The attributes it carries besides all keys.
    pub carries: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableDefinition {
    pub partition: Key,
    pub sort: Key,
    /// Local secondary indexes: strongly consistent, of the same partition.
    pub local: &'static [Index],
    /// Global secondary indexes: eventually consistent.
    pub global: &'static [Index],
    /// The attribute with the time, in seconds since 1970-01-01 UTC, after which DynamoDB deletes an item
    /// that has it; `None` if nothing expires.
    pub expires: Option<&'static str>,
}

/// The index of a buyer's orders, and of an order's payments.
pub const BY_USER: &str = "by-user";
/// The index of work that should have been finished by now.
pub const DUE: &str = "due";
/// The index of payments that are or were disputed.
pub const DISPUTES: &str = "disputes";

/// The attribute by which items of the table of sales expire.
pub const EXPIRES: &str = "expires_s";

/// The table of orders. `by-user` carries keys only, so that an order's later writes do not touch
/// it; `due` carries the order number of a payment, which the payment's key does not name; `disputes` carries what its
/// reader shows. Disputes are so few that one partition has those which are open, and one the others.
pub const ORDERS: TableDefinition = TableDefinition {
    partition: number("gene"),
    sort: text("sk"),
    local: &[Index {
        name: BY_USER,
        partition: number("gene"),
        sort: text("by_user"),
        carries: &[],
    }],
    global: &[
        Index {
            name: DUE,
            partition: number("due_shard"),
            sort: number("due_ms"),
            carries: &["order"],
        },
        Index {
            name: DISPUTES,
            partition: text("dispute_list"),
            sort: text("dispute_at"),
            carries: &["order", "currency", "disputes"],
        },
    ],
    expires: None,
};

/// The table of claims: one item a seat, in partitions of neighbouring seats.
pub const SEATS: TableDefinition = TableDefinition {
    partition: text("pk"),
    sort: number("sk"),
    local: &[],
    global: &[],
    expires: None,
};

/// The table of sales. Snapshots of tokens, actions of operators and differences of bills expire.
pub const SALES: TableDefinition = TableDefinition {
    partition: text("pk"),
    sort: text("sk"),
    local: &[],
    global: &[],
    expires: Some(EXPIRES),
};

/// The table of waiting rooms. It has no local index, so that DynamoDB may spread what is busy.
pub const ROOMS: TableDefinition = TableDefinition {
    partition: text("pk"),
    sort: text("sk"),
    local: &[],
    global: &[],
    expires: None,
};

/// The index of a sale's records in the log.
pub const BY_SALE: &str = "by-sale";

/// The table of the log: a partition for each shard, in which positions are dense. `by-sale` carries keys
/// only, so that a record is written once in full.
pub const LOG: TableDefinition = TableDefinition {
    partition: number("shard"),
    sort: number("position"),
    local: &[],
    global: &[Index {
        name: BY_SALE,
        partition: text("sale"),
        sort: number("at_ms"),
        carries: &[],
    }],
    expires: None,
};

/// The table of accounts: a partition for each account, in it an item for each currency and shard of the log, and
/// one for each currency that postings write; and a partition for each posting.
pub const ACCOUNTS: TableDefinition = TableDefinition {
    partition: text("account"),
    sort: text("part"),
    local: &[],
    global: &[],
    expires: None,
};

/// Creates the tables that are missing: for servers that emulate DynamoDB. In production the
/// template makes them.
///
/// # Errors
/// [`StoreError::Unavailable`] if the server refuses or does not answer.
pub async fn create_tables(client: &Client, tables: &Tables) -> Stored<()> {
    for (name, definition) in tables.definitions() {
        create_table(client, name, definition).await?;
    }
    Ok(())
}

async fn create_table(client: &Client, name: &str, table: &TableDefinition) -> Stored<()> {
    let built = |error: BuildError| StoreError::Contract(format!("table {name}: {error}"));
    let local = table.local.iter().map(|index| {
        LocalSecondaryIndex::builder()
            .index_name(index.name)
            .set_key_schema(Some(key_schema(index.partition, index.sort)?))
            .projection(projection(index))
            .build()
    });
    let global = table.global.iter().map(|index| {
        GlobalSecondaryIndex::builder()
            .index_name(index.name)
            .set_key_schema(Some(key_schema(index.partition, index.sort)?))
            .projection(projection(index))
            .build()
    });
    let some = |indexes: usize| indexes > 0;
    let local: Vec<_> = local.collect::<Result<_, _>>().map_err(built)?;
    let global: Vec<_> = global.collect::<Result<_, _>>().map_err(built)?;
    let created = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(key_schema(table.partition, table.sort).map_err(built)?))
        .set_attribute_definitions(Some(attributes(table).map_err(built)?))
        .set_local_secondary_indexes(some(local.len()).then_some(local))
        .set_global_secondary_indexes(some(global.len()).then_some(global))
        .send()
        .await;
    match created {
        Ok(_) => Ok(()),
        Err(error)
            if error
                .as_service_error()
                .is_some_and(|error| error.is_resource_in_use_exception()) =>
        {
            Ok(())
        }
        Err(error) => Err(StoreError::Unavailable(format!(
            "creating table {name}: {}",
            DisplayErrorContext(&error)
        ))),
    }
}

fn key_schema(partition: Key, sort: Key) -> Result<Vec<KeySchemaElement>, BuildError> {
    let element = |key: Key, kind: KeyType| {
        KeySchemaElement::builder().attribute_name(key.name).key_type(kind).build()
    };
    Ok(vec![element(partition, KeyType::Hash)?, element(sort, KeyType::Range)?])
}

fn projection(index: &Index) -> Projection {
    let carries: Vec<String> = index.carries.iter().map(|&name| name.to_owned()).collect();
    if carries.is_empty() {
        return Projection::builder().projection_type(ProjectionType::KeysOnly).build();
    }
    Projection::builder()
        .projection_type(ProjectionType::Include)
        .set_non_key_attributes(Some(carries))
        .build()
}

fn attributes(table: &TableDefinition) -> Result<Vec<AttributeDefinition>, BuildError> {
    let indexes = table.local.iter().chain(table.global);
    let mut keys = vec![table.partition, table.sort];
    for key in indexes.flat_map(|index| [index.partition, index.sort]) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let attribute = |key: Key| {
        let kind = match key.kind {
            KeyKind::Text => ScalarAttributeType::S,
            KeyKind::Number => ScalarAttributeType::N,
        };
        AttributeDefinition::builder().attribute_name(key.name).attribute_type(kind).build()
    };
    keys.into_iter().map(attribute).collect()
}

/// The number of shards of one tier's counter: as many batches can add to it at once.
pub const COUNTER_SHARDS: u64 = 8;

/// The partition that lists every sale; no sale id has a `#`.
pub const SALES_LIST: &str = "#sales";
/// The sort key of a sale's header.
pub const SALE_HEADER: &str = "sale";

/// The sort key of a provider's cursor.
pub const CURSOR: &str = "captures";
/// The sort key of how far a provider's bills are read.
pub const BILLS: &str = "bills";

/// The sort key of the header of a sale's rules.
pub const RULES_HEADER: &str = "rules";
/// What the sort key of a rule of a sale begins with.
pub const RULE_PREFIX: &str = "rule#";

/// The partition of what of a sale's tickets was revoked; no sale id has a `#`. Refunds come one by one, far fewer
/// in a second than one partition takes.
#[must_use]
pub fn revoked_key(sale: &SaleId) -> String {
    format!("{sale}#revoked")
}

/// The sort key of what of an order was revoked: text order is the order of the numbers.
#[must_use]
pub fn revoked_order_key(order: OrderNumber) -> String {
    format!("{:019}", order.get())
}

/// The partition of a sale's check-ins, counted, and of those after the first of their ticket.
#[must_use]
pub fn check_ins_key(sale: &SaleId) -> String {
    format!("{sale}#check-ins")
}

/// What the sort key of a shard of the count of check-ins begins with.
pub const CHECK_IN_COUNT_PREFIX: &str = "count#";
/// What the sort key of a check-in after the first begins with; comes after every count.
pub const DOUBLE_PREFIX: &str = "double#";

/// The sort key of the shard of the count of check-ins that an order adds to.
#[must_use]
pub fn check_in_count_key(order: OrderNumber) -> String {
    format!("{CHECK_IN_COUNT_PREFIX}{}", (order.get() >> 10) % COUNTER_SHARDS)
}

/// The partition of the snapshots of a sale's tokens; no sale id has a `#`.
#[must_use]
pub fn tokens_key(sale: &SaleId) -> String {
    format!("{sale}#tokens")
}

/// The sort key of the snapshot of a minute, counted from 1970-01-01 UTC: text order is the order in time.
#[must_use]
pub fn minute_key(minute: i64) -> String {
    format!("{minute:010}")
}

/// The partition of what is kept of a provider; no sale id has a `#`.
#[must_use]
pub fn provider_key(provider: &ProviderId) -> String {
    format!("#provider#{provider}")
}

/// The partition of what differs in a provider's bills; no sale id has a `#`.
#[must_use]
pub fn differences_key(provider: &ProviderId) -> String {
    format!("#bills#{provider}")
}

/// The partition of what is kept of a subscriber: how far it was told; no sale id has a `#`.
#[must_use]
pub fn subscriber_key(subscriber: &SubscriberId) -> String {
    format!("#subscriber#{subscriber}")
}

/// The sort key of how far a subscriber was told of a shard of the log.
#[must_use]
pub fn subscriber_shard_key(shard: LogShard) -> String {
    format!("shard#{}", shard.get())
}

/// What the sort keys of the orders of a shard begin with of which facts wait for a subscriber.
#[must_use]
pub fn waiting_prefix(shard: LogShard) -> String {
    format!("waiting#{}#", shard.get())
}

/// The sort key of an order of which facts wait for a subscriber.
#[must_use]
pub fn waiting_order_key(shard: LogShard, order: OrderNumber) -> String {
    format!("{}{:019}", waiting_prefix(shard), order.get())
}

/// The partition that lists the webhooks; no sale id has a `#`.
pub const WEBHOOKS: &str = "#webhooks";

/// The sort key of the deployment under whose id payments are started at a provider.
pub const DEPLOYMENT: &str = "deployment";

/// The sort key of the turns of an operation of a provider's.
#[must_use]
pub fn calls_key(operation: &str) -> String {
    format!("calls#{operation}")
}

/// The sort key of the part of an account that a shard of the log writes.
#[must_use]
pub fn account_part_key(currency: Currency, shard: LogShard) -> String {
    format!("{currency}#{}", shard.get())
}

/// The sort key of the part of an account that captures write for which there is no order.
#[must_use]
pub fn of_no_order_part_key(currency: Currency) -> String {
    format!("{currency}#orderless")
}

/// The sort key of the part of an account that postings write.
#[must_use]
pub fn posted_part_key(currency: Currency) -> String {
    format!("{currency}#posted")
}

/// The partition of a posting, which is the only item of it; no account's name begins so.
#[must_use]
pub fn posting_key(key: &PostingKey) -> String {
    format!("posting:{key}")
}

/// The sort key of a posting.
pub const POSTING: &str = "posting";

/// The currency of a sort key that [`account_part_key`] or [`posted_part_key`] made.
#[must_use]
pub fn currency_of_part(part: &str) -> Option<Currency> {
    let (currency, _) = part.split_once('#')?;
    Currency::new(currency).ok()
}

/// The partition of what operators did; no sale id has a `#`. Their routes let so few requests through that one
/// partition suffices.
pub const ACTIONS: &str = "#actions";

/// The sort key of an action: text order is the order in time.
#[must_use]
pub fn action_key(at: Timestamp, nonce: &str) -> String {
    format!("{:015}-{nonce}", at.ms().max(0))
}

/// The sort key of an item that is alone in its partition.
pub const ONLY: &str = "only";
/// The sort key of a bucket's marker.
pub const MARKER: &str = "marker";
/// Begins the sort key of every membership.
pub const MEMBER_PREFIX: &str = "buyer#";

/// The partition of a sale's secret. What is allowed by leading keys can name all secrets.
#[must_use]
pub fn secret_key(sale: &SaleId) -> String {
    format!("secret#{sale}")
}

/// The partition of a room's log.
#[must_use]
pub fn log_key(sale: &SaleId) -> String {
    format!("log#{sale}")
}

/// The sort key of a record in a room's log.
#[must_use]
pub fn record_key(number: u64) -> String {
    format!("{number:020}")
}

/// The partition of a room's counters; the sort key is the group.
#[must_use]
pub fn room_counter_key(sale: &SaleId) -> String {
    format!("counter#{sale}")
}

/// The partition of a bucket of memberships.
#[must_use]
pub fn members_key(sale: &SaleId, bucket: u16) -> String {
    format!("members#{sale}#{bucket}")
}

/// The sort key of a membership.
#[must_use]
pub fn member_key(buyer: &UserId) -> String {
    format!("{MEMBER_PREFIX}{buyer}")
}

/// The buyer of a sort key that [`member_key`] made.
#[must_use]
pub fn buyer_of_member(sk: &str) -> Option<UserId> {
    sk.strip_prefix(MEMBER_PREFIX)?.parse().ok()
}

/// Buckets of the codes of a group.
pub const CODE_BUCKETS: u16 = 256;
/// Ends the sort key of the first shard of every code.
pub const FIRST_SHARD: &str = "#00";

/// The partition of a bucket of the codes of a group.
#[must_use]
pub fn codes_key(sale: &SaleId, group: &GroupId, bucket: u16) -> String {
    format!("codes#{sale}#{group}#{bucket}")
}

/// The sort key of a shard of a code.
#[must_use]
pub fn code_shard_key(CodeShard { code, shard }: CodeShard) -> String {
    format!("{}#{shard:02}", code.0)
}

/// The partition of a chunk of leaves: each has its own, for one partition takes 30 of them a second.
#[must_use]
pub fn chunk_key(sale: &SaleId, group: &GroupId, chunk: u32) -> String {
    format!("leaves#{sale}#{group}#{chunk}")
}

/// The partition of a room's trees; the sort key is the group.
#[must_use]
pub fn tree_key(sale: &SaleId) -> String {
    format!("tree#{sale}")
}

/// The partition of a block's claims.
#[must_use]
pub fn block_key(sale: &SaleId, tier: &TierId, block: u32) -> String {
    format!("{sale}#{tier}#{block}")
}

/// The attribute that names the owner of a seat on a leg.
#[must_use]
pub fn leg_attribute(leg: Leg) -> String {
    format!("l{leg}")
}

/// The leg of an attribute that [`leg_attribute`] named.
#[must_use]
pub fn leg_of_attribute(name: &str) -> Option<Leg> {
    name.strip_prefix('l')?.parse().ok()
}

/// The sort key of an order.
#[must_use]
pub fn order_key(order: OrderNumber) -> String {
    format!("order#{order}")
}

/// The order of a sort key that [`order_key`] made.
#[must_use]
pub fn order_of_key(sk: &str) -> Option<OrderNumber> {
    sk.strip_prefix("order#")?.parse().ok()
}

/// The partition of the index of disputes with the payments of which one is open, or with the others.
#[must_use]
pub const fn dispute_list(is_open: bool) -> &'static str {
    if is_open { "open" } else { "over" }
}

/// The partition of the same index with the captures of no order of which no operator has said what becomes of them.
pub const UNMATCHED: &str = "unmatched";

/// The sort key of an unmatched capture there: text order is the order in which their numbers were minted, which is all
/// that is known of their orders.
#[must_use]
pub fn unmatched_at(order: OrderNumber) -> String {
    dispute_at(order.minted_at(), order)
}

/// The sort key of a disputed payment there: text order is the order of the last changes.
#[must_use]
pub fn dispute_at(changed_at: Timestamp, order: OrderNumber) -> String {
    format!("{:015}-{:019}", changed_at.ms(), order.get())
}

/// Most characters of the mark of a page of this index.
const MAX_MARK_CHARS: usize = 40;

/// True if a text may be the mark of a page of this index, which is such a sort key.
#[must_use]
pub fn is_mark(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_MARK_CHARS).contains(&text.len()) && text.bytes().all(is_known)
}

/// The sort key of a payment, in the partition of its order.
#[must_use]
pub fn payment_key(payment: &PaymentKey) -> String {
    format!("payment#{}#{}", payment.provider, payment.payment)
}

/// The payment of a sort key that [`payment_key`] made.
#[must_use]
pub fn payment_of_key(sk: &str) -> Option<PaymentKey> {
    let (provider, payment) = sk.strip_prefix("payment#")?.split_once('#')?;
    Some(PaymentKey { provider: provider.parse().ok()?, payment: payment.parse().ok()? })
}

/// The prefix of the sort keys of an order's refunds, in its partition.
#[must_use]
pub fn refund_prefix(order: OrderNumber) -> String {
    format!("refund#{order}#")
}

/// The sort key of a refund of an order: text order is that of the numbers.
#[must_use]
pub fn refund_key(key: RefundKey) -> String {
    format!("{}{:02}", refund_prefix(key.order), key.number.get())
}

/// The refund of a sort key that [`refund_key`] made.
#[must_use]
pub fn refund_of_key(sk: &str) -> Option<RefundKey> {
    let (order, number) = sk.strip_prefix("refund#")?.split_once('#')?;
    let number: u8 = number.parse().ok()?;
    Some(RefundKey { order: order.parse().ok()?, number: number.try_into().ok()? })
}

/// Begins the sort key of every claim of an attendee.
pub const ATTENDEE_PREFIX: &str = "attendee#";

/// The sort key of a buyer's count in a sale, in the partition of the buyer.
#[must_use]
pub fn buyer_key(sale: &SaleId, user: &UserId) -> String {
    format!("buyer#{sale}#{user}")
}

/// What the sort keys of a buyer's wallets, and of their entries, begin with, in the partition of the buyer.
#[must_use]
pub fn wallet_prefix(user: &UserId) -> String {
    format!("{WALLET_PREFIX}{user}#")
}

/// Begins the sort key of every wallet and of every entry of one.
pub const WALLET_PREFIX: &str = "wallet#";

/// The sort key of a buyer's wallet in a currency.
#[must_use]
pub fn wallet_key(user: &UserId, currency: Currency) -> String {
    format!("{}{currency}", wallet_prefix(user))
}

/// The sort key of an entry of a wallet.
#[must_use]
pub fn wallet_entry_key(user: &UserId, currency: Currency, name: &WalletEntryName) -> String {
    format!("{}#{name}", wallet_key(user, currency))
}

/// The buyer and the currency of a sort key that [`wallet_key`] or [`wallet_entry_key`] made, and the entry.
#[must_use]
pub fn wallet_of_key(sk: &str) -> Option<(UserId, Currency, Option<WalletEntryName>)> {
    let (user, rest) = sk.strip_prefix(WALLET_PREFIX)?.split_once('#')?;
    let (currency, entry) = match rest.split_once('#') {
        None => (rest, None),
        Some((currency, name)) => (currency, Some(name.parse().ok()?)),
    };
    Some((user.parse().ok()?, Currency::new(currency).ok()?, entry))
}

/// The sort key of what a buyer has of points and growth, in the partition of the buyer. What each order has given
/// begins with it.
#[must_use]
pub fn points_key(user: &UserId) -> String {
    format!("{POINTS_PREFIX}{user}#")
}

/// Begins the sort key of what every buyer has of points, and of what each order has given.
pub const POINTS_PREFIX: &str = "points#";

/// The sort key of what an order has given its buyer.
#[must_use]
pub fn award_key(user: &UserId, order: OrderNumber) -> String {
    format!("{}{order}", points_key(user))
}

/// The buyer of a sort key that [`points_key`] or [`award_key`] made, and the order.
#[must_use]
pub fn points_of_key(sk: &str) -> Option<(UserId, Option<OrderNumber>)> {
    let (user, order) = sk.strip_prefix(POINTS_PREFIX)?.split_once('#')?;
    let order = if order.is_empty() { None } else { Some(order.parse().ok()?) };
    Some((user.parse().ok()?, order))
}

/// The sort key of an attendee's claim in a sale, in the partition of the hash.
#[must_use]
pub fn attendee_key(sale: &SaleId, hash: AttendeeHash) -> String {
    format!("{ATTENDEE_PREFIX}{sale}#{hash}")
}

/// The sort key of an order in the index of its buyer's orders.
#[must_use]
pub fn by_user_key(user: &UserId, order: OrderNumber) -> String {
    format!("{user}#{}", order.sortable())
}

/// The sort key of a payment in the index of a buyer's orders, in the partition of its order: an
/// order's payments follow each other there as they were decided. No user's orders begin alike,
/// because no user id holds a `#`.
#[must_use]
pub fn ledger_key(order: OrderNumber, decided_at: Timestamp) -> String {
    format!("{}{:015}", ledger_prefix(order), decided_at.ms())
}

/// The prefix of the keys of one order's payments in that index.
#[must_use]
pub fn ledger_prefix(order: OrderNumber) -> String {
    format!("#{}#", order.sortable())
}

/// The sort key of one shard of a tier's counter; the first order of a batch chooses the shard.
#[must_use]
pub fn counter_key(tier: &TierId, first: OrderNumber) -> String {
    format!("counter#{tier}#{}", (first.get() >> 10) % COUNTER_SHARDS)
}

/// The tier of a sort key that [`counter_key`] made.
#[must_use]
pub fn tier_of_counter(sk: &str) -> Option<TierId> {
    let (tier, _) = sk.strip_prefix("counter#")?.split_once('#')?;
    tier.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::basics::ids::PaymentId;

    #[test]
    fn keys_are_read_back_as_they_were_written() {
        let order: OrderNumber = "123456789".parse().unwrap();
        assert_eq!(order_of_key(&order_key(order)), Some(order));
        let payment = PaymentKey {
            provider: ProviderId::new("stripe").unwrap(),
            payment: PaymentId::new("pi_3/x|y").unwrap(),
        };
        assert_eq!(payment_of_key(&payment_key(&payment)), Some(payment));
        let (user, currency) = (UserId::new("7 | Li").unwrap(), Currency::new("CNY").unwrap());
        let of_wallet = (user.clone(), currency, None);
        assert_eq!(wallet_of_key(&wallet_key(&user, currency)), Some(of_wallet));
        let name: WalletEntryName = "123456789-r1-refunded".parse().unwrap();
        let of_entry = (user.clone(), currency, Some(name));
        assert_eq!(wallet_of_key(&wallet_entry_key(&user, currency, &name)), Some(of_entry));
        let of_points = [points_key(&user), award_key(&user, order)].map(|sk| points_of_key(&sk));
        assert_eq!(of_points, [Some((user.clone(), None)), Some((user.clone(), Some(order)))]);
        let tier = TierId::new("second-class").unwrap();
        assert_eq!(tier_of_counter(&counter_key(&tier, order)), Some(tier));
        assert_eq!(leg_of_attribute(&leg_attribute(Leg(14))), Some(Leg(14)));
        for other in ["sold", "pk", "sk", "lx"] {
            assert_eq!(leg_of_attribute(other), None, "{other}");
        }
    }

    #[test]
    fn text_order_is_number_order_in_the_index_of_a_buyer() {
        let user = UserId::new("alice").unwrap();
        let key = |number: &str| by_user_key(&user, number.parse().unwrap());
        assert!(key("999") < key("1000"));
        assert_eq!(key("9223372036854775807"), "alice#9223372036854775807");
    }
}
