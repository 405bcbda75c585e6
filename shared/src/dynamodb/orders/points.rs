//! Points: the award of each order, and the sum that its buyer has.
//!
//! Both lie in the buyer's partition of the table of orders. An award is written under the condition that the earlier
//! award is still there. The same transaction adds the difference to the buyer's sum, which needs no condition.

use super::{Committed, DynamoOrders, Part};
use crate::dynamodb::expressions::{Value, keyed, update};
use crate::dynamodb::items::{Fields, Item, number, orders_key, text};
use crate::dynamodb::tables;
use engine::domain::basics::ids::UserId;
use engine::domain::basics::number::{Gene, OrderNumber};
use engine::domain::ledger::points::{Award, Points, PointsStatement};
use engine::ports::{ChangeReply, Stored};

fn key(user: &UserId, sk: String) -> Item {
    orders_key(Gene::from_text(user.as_str()), sk)
}

fn read_points(fields: &Fields<'_>) -> Stored<Points> {
    Ok(Points { points: fields.number("points")?, growth: fields.number("growth")? })
}

fn read_award(fields: &Fields<'_>) -> Stored<Award> {
    Ok(Award { facts: fields.number("facts")?, given: read_points(fields)? })
}

impl DynamoOrders {
    pub(super) async fn awarded(&self, user: &UserId, order: OrderNumber) -> Stored<Option<Award>> {
        let found = self.db.get(self.orders(), key(user, tables::award_key(user, order))).await?;
        found.map(|item| read_award(&Fields::from_item(&item))).transpose()
    }

    pub(super) async fn award(
        &self,
        user: &UserId,
        order: OrderNumber,
        award: &Award,
        before: Option<Award>,
    ) -> Stored<ChangeReply> {
        let Award { facts, given } = award;
        let mut with: Vec<Value> = vec![
            ("facts", number(*facts)),
            ("points", number(given.points)),
            ("growth", number(given.growth)),
        ];
        let condition = match before {
            None => "attribute_not_exists(#facts)",
            Some(Award { facts, given }) => {
                with.extend([
                    ("facts_seen", number(facts)),
                    ("points_seen", number(given.points)),
                    ("growth_seen", number(given.growth)),
                ]);
                "#facts = :facts_seen AND #points = :points_seen AND #growth = :growth_seen"
            }
        };
        let set = "SET #facts = :facts, #points = :points, #growth = :growth";
        let of_order = key(user, tables::award_key(user, order));
        let write = update(self.orders(), of_order, set, condition, with)?;
        let before = before.map(|before| before.given).unwrap_or_default();
        let more = |before: u64, given: u64| i128::from(given) - i128::from(before);
        let with = [
            ("points", number(more(before.points, given.points))),
            ("growth", number(more(before.growth, given.growth))),
        ];
        let of_buyer = key(user, tables::points_key(user));
        let add =
            update(self.orders(), of_buyer, "ADD #points :points, #growth :growth", "", with)?;
        let plan = vec![(Part::Award, write), (Part::Award, add)];
        Ok(match self.commit(1, plan).await? {
            Committed::Done => ChangeReply::Done,
            Committed::Cancelled(_) => ChangeReply::Conflict,
        })
    }

    pub(super) async fn points(&self, user: &UserId) -> Stored<PointsStatement> {
        let query = keyed(
            self.db.client().query().table_name(self.orders()),
            "#gene = :gene AND begins_with(#sk, :points)",
            [
                ("gene", number(Gene::from_text(user.as_str()).get())),
                ("points", text(tables::points_key(user))),
            ],
        );
        let mut statement = PointsStatement::default();
        for item in self.db.query(query.consistent_read(true), usize::MAX).await? {
            let fields = Fields::from_item(&item);
            let sk: String = fields.text("sk")?;
            let (_, order) =
                tables::points_of_key(&sk).ok_or_else(|| fields.broken("sk", "is no points'"))?;
            match order {
                None => statement.has = read_points(&fields)?,
                Some(order) => {
                    statement.awards.insert(order, read_award(&fields)?);
                }
            }
        }
        Ok(statement)
    }
}
