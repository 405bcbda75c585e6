//! The snapshots of a sale's tokens: one item a minute while the sale is on, in a partition of their own,
//! which DynamoDB deletes some days later. An item is some 200 bytes: one write unit.

use super::super::dynamo::Dynamo;
use super::super::expressions::{conditional, keyed};
use super::super::items::{Fields, Item, item, number, text};
use super::super::tables::{minute_key, tokens_key};
use engine::domain::admission::gate::tokens::{TokenCounts, TokenSnapshot};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::ports::{Stored, TOKEN_SNAPSHOTS_DAYS};

/// Most snapshots that are read at once: DynamoDB may keep them some days longer than it has to.
const MAX_SNAPSHOTS: usize = 20_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Keeps a snapshot, unless a later one of the same minute is kept.
pub(super) async fn keep(db: &Dynamo, id: &SaleId, snapshot: &TokenSnapshot) -> Stored<()> {
    let TokenSnapshot { at, counts, bought } = snapshot;
    let TokenCounts { issued, by_hand, remaining, since } = *counts;
    let expires_s = at.ms().div_euclid(1000) + TOKEN_SNAPSHOTS_DAYS * SECONDS_PER_DAY;
    let minute = minute_key(TokenSnapshot::minute(*at));
    let update = db.client().update_item().table_name(&db.tables().sales);
    let update = update.set_key(Some(item([("pk", text(tokens_key(id))), ("sk", text(minute))])));
    let set = "SET #at_ms = :at, #issued = :issued, #by_hand = :by_hand, #remaining = :remaining, \
         #since_ms = :since, #bought = :bought, #expires_s = :expires";
    // True again if the answer was lost: an attempt may be repeated.
    let condition = "attribute_not_exists(#at_ms) OR #at_ms <= :at";
    let with = [
        ("at", number(at.ms())),
        ("issued", number(issued)),
        ("by_hand", number(by_hand)),
        ("remaining", number(remaining)),
        ("since", number(since.ms())),
        ("bought", number(*bought)),
        ("expires", number(expires_s)),
    ];
    db.update(conditional(update, set, condition, with)).await.map(drop)
}

/// The snapshots from the minute of `since` on, oldest first, as they were a moment ago.
pub(super) async fn kept(db: &Dynamo, id: &SaleId, since: Timestamp) -> Stored<Vec<TokenSnapshot>> {
    let query = keyed(
        db.client().query().table_name(&db.tables().sales),
        "#pk = :tokens AND #sk >= :first",
        [
            ("tokens", text(tokens_key(id))),
            ("first", text(minute_key(TokenSnapshot::minute(since).max(0)))),
        ],
    );
    let found = db.query(query, MAX_SNAPSHOTS).await?;
    found.iter().map(read_snapshot).collect()
}

fn read_snapshot(item: &Item) -> Stored<TokenSnapshot> {
    let fields = Fields::from_item(item);
    let time = |name: &str| fields.number(name).map(Timestamp::from_ms);
    let counts = TokenCounts {
        issued: fields.number("issued")?,
        by_hand: fields.number("by_hand")?,
        remaining: fields.number("remaining")?,
        since: time("since_ms")?,
    };
    Ok(TokenSnapshot { at: time("at_ms")?, counts, bought: fields.number("bought")? })
}
