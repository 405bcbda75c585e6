//! Leases: an item that one reader at a time moves, whose name and end stand in the item itself (`reader`,
//! `reader_until_ms`).

use super::dynamo::Dynamo;
use super::expressions::conditional;
use super::items::{Item, number, text};
use engine::domain::basics::ids::ReaderId;
use engine::domain::basics::time::Timestamp;
use engine::ports::Stored;

/// The condition of a change by the reader that has taken the item last, which is `:reader`.
pub(super) const IS_READERS: &str = "#reader = :reader";

impl Dynamo {
    /// Takes the lease on an item until a time, if nobody has one at `now`: the item as it is then, or `None` if another
    /// reader has it.
    pub(super) async fn take_lease(
        &self,
        table: &str,
        key: Item,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> Stored<Option<Item>> {
        let update = self.client().update_item().table_name(table).set_key(Some(key));
        // Its own name: an attempt whose answer was lost is repeated.
        let condition = "attribute_not_exists(#reader_until_ms) OR #reader_until_ms <= :now \
             OR #reader = :reader";
        let with =
            [("reader", text(reader)), ("now", number(now.ms())), ("until", number(until.ms()))];
        let expression = "SET #reader = :reader, #reader_until_ms = :until";
        self.update(conditional(update, expression, condition, with)).await
    }
}
