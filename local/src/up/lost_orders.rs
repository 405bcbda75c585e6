//! The look for orders that were in tables which are gone.
//!
//! A database file that was deleted, or a database that is another one, looks like a first start. But
//! Redis then still has the sale and its holds, and the payment provider the money: with empty tables
//! every one of these orders would be unknown, and its buyer's money without an order.

use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use engine::ports::StoreError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands as _, ScanOptions};
use shared::dynamodb::Dynamo;

use crate::servers::{self, RedisServer, Stack};

/// The keys of sales in Redis.
const SALE_KEYS: &str = "{*}:sale";
/// Sales that are named at most.
const SALES_NAMED: usize = 5;
/// Keys that one step of the scan looks at.
const SCANNED: usize = 1000;

/// Why an engine does not start without its tables.
#[derive(Debug, thiserror::Error)]
pub enum LostOrders {
    /// There are no tables, and others know of orders.
    #[error(
        "DynamoDB has no table {table}, but {}: the orders that were in it are gone; put the file of the \
         database back (dynamodb.sqlite with its -wal file), or start with --accept-lost-orders to begin \
         without them",
        known(sales, *payments)
    )]
    Found {
        /// The table of orders.
        table: String,
        /// The sales that Redis has.
        sales: Vec<String>,
        /// How many payments the provider has captured.
        payments: usize,
    },
    /// DynamoDB or Redis does not say.
    #[error("looking for lost orders: {0}")]
    Servers(#[from] servers::Error),
    /// DynamoDB does not answer.
    #[error("looking for the tables: {0}")]
    Tables(#[from] StoreError),
}

fn known(sales: &[String], payments: usize) -> String {
    let named = sales.iter().take(SALES_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match sales.len().saturating_sub(SALES_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let redis = (!sales.is_empty()).then(|| format!("Redis has the sales {named}{more}"));
    let book =
        (payments > 0).then(|| format!("the payment provider's book has {payments} payments"));
    redis.into_iter().chain(book).collect::<Vec<_>>().join(" and ")
}

/// Refuses to begin with empty tables while a Redis of ours or the payment provider knows of orders.
///
/// # Errors
/// [`LostOrders::Found`]; the others if one of them cannot be asked.
pub(super) async fn check(
    stack: &Stack,
    payments: usize,
    dynamo: &Dynamo,
) -> Result<(), LostOrders> {
    if has_orders(dynamo).await? {
        return Ok(());
    }
    let sales = match stack.redis() {
        Some(redis) => sales(redis).await?,
        None => Vec::new(),
    };
    if sales.is_empty() && payments == 0 {
        return Ok(());
    }
    let table = dynamo.config().tables.orders.clone();
    Err(LostOrders::Found { table, sales, payments })
}

/// True if there is a table of orders.
async fn has_orders(dynamo: &Dynamo) -> Result<bool, StoreError> {
    let table = &dynamo.config().tables.orders;
    match dynamo.client().describe_table().table_name(table).send().await {
        Ok(_) => Ok(true),
        Err(error)
            if error
                .as_service_error()
                .is_some_and(DescribeTableError::is_resource_not_found_exception) =>
        {
            Ok(false)
        }
        Err(error) => Err(StoreError::Unavailable(DisplayErrorContext(error).to_string())),
    }
}

/// The sales that Redis has, in order.
async fn sales(server: &RedisServer) -> Result<Vec<String>, servers::Error> {
    let mut connection = server.connect().await?;
    let mut keys = scan(&mut connection).await?;
    keys.sort();
    keys.dedup();
    let name = |key: String| key.trim_start_matches('{').trim_end_matches("}:sale").to_owned();
    Ok(keys.into_iter().map(name).collect())
}

async fn scan(connection: &mut MultiplexedConnection) -> redis::RedisResult<Vec<String>> {
    let options = ScanOptions::default().with_pattern(SALE_KEYS).with_count(SCANNED);
    let mut found = connection.scan_options(options).await?;
    let mut all = Vec::new();
    while let Some(key) = found.next_item().await {
        all.push(key?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use engine::domain::basics::money::{Currency, MinorUnits, Money};
    use engine::domain::basics::time::Timestamp;

    use super::super::{Engine, Error, Options};
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_start_without_the_database_of_known_orders_stops_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let options = || Options::persistent(dir.path());
        let engine = Engine::start(options()).await.unwrap();
        let amount =
            Money { amount_minor: MinorUnits(500), currency: Currency::new("EUR").unwrap() };
        let order = "7".parse().unwrap();
        engine.provider().capture("pi_7", order, amount, Timestamp::now()).unwrap();
        let mut connection = engine.stack().redis().unwrap().connect().await.unwrap();
        let mut sale = redis::cmd("HSET");
        sale.arg("{hall}:sale").arg("epoch").arg("e1");
        sale.query_async::<()>(&mut connection).await.unwrap();
        engine.stop().await.unwrap();
        // With its tables it starts as ever.
        Engine::start(options()).await.unwrap().stop().await.unwrap();

        for entry in std::fs::read_dir(dir.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_str().unwrap().starts_with("dynamodb.sqlite") {
                std::fs::remove_file(path).unwrap();
            }
        }
        // Twice: what the first start leaves behind must not look like tables to the second.
        for _ in 0..2 {
            let refused = Engine::start(options()).await.map(drop).unwrap_err();
            assert!(matches!(refused, Error::LostOrders(LostOrders::Found { .. })), "{refused}");
            let why = refused.to_string();
            for part in ["sales hall", "1 payments", "dynamodb.sqlite", "--accept-lost-orders"] {
                assert!(why.contains(part), "{why}");
            }
        }
        let accepted = Options { accept_lost_orders: true, ..options() };
        Engine::start(accepted).await.unwrap().stop().await.unwrap();
        Engine::start(options()).await.unwrap().stop().await.unwrap();
    }

    #[test]
    fn what_is_known_is_said() {
        let sales = |count: usize| (0..count).map(|index| format!("s{index}")).collect::<Vec<_>>();
        assert_eq!(known(&sales(1), 0), "Redis has the sales s0");
        assert_eq!(known(&[], 2), "the payment provider's book has 2 payments");
        let many = known(&sales(7), 1);
        assert!(many.contains("s4 and 2 more and the payment"), "{many}");
    }
}
