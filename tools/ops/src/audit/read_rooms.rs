//! Reads the waiting rooms: each item once, page by page, and nothing of it is kept but what the check needs.

use std::collections::HashSet;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::basics::bytes::{Hash, Nonce};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::sale::archive::Lifecycle;

use super::AuditError;
use super::facts::{Facts, RoomFacts, Unreadable};
use super::read_dynamodb::{Item, Read, key_of, number, parsed, text};
use super::room_check::{MemberFact, RoomCheck, VisitFact};

/// Buckets of a sale's memberships.
const BUCKETS: u16 = 256;

/// Reads the room of each sale that has one.
///
/// # Errors
/// [`AuditError::DynamoDb`] if the table cannot be read.
pub(super) async fn read(
    client: &Client,
    table: &str,
    facts: &mut Facts,
) -> Result<(), AuditError> {
    let mut unreadable = Vec::new();
    for (id, sale) in &mut facts.sales {
        if sale.sale.file().room.is_none() {
            continue;
        }
        let buyers = sale.orders.values().map(|order| &order.user).collect();
        let is_archived = sale.lifecycle == Lifecycle::Archived;
        let rooms = Rooms { client, table, sale: id, is_archived, unreadable: &mut unreadable };
        sale.room = Some(rooms.read(buyers).await?);
    }
    facts.records +=
        facts.sales.values().filter_map(|of| Some(of.room.as_ref()?.read)).sum::<u64>();
    facts.unreadable.extend(unreadable);
    Ok(())
}

struct Rooms<'a> {
    client: &'a Client,
    table: &'a str,
    sale: &'a SaleId,
    is_archived: bool,
    unreadable: &'a mut Vec<Unreadable>,
}

impl Rooms<'_> {
    async fn read(mut self, buyers: HashSet<&UserId>) -> Result<RoomFacts, AuditError> {
        let sale = self.sale;
        let mut check = RoomCheck::new(sale, buyers);
        self.each(format!("log#{sale}"), |item| {
            check.record(text(item, "line")?);
            Ok(())
        })
        .await?;
        self.each(format!("counter#{sale}"), |item| {
            let closed = item.contains_key("closed").then(|| number(item, "closed")).transpose()?;
            check.counter(&parsed(text(item, "sk")?, "sk")?, number(item, "next")?, closed)
        })
        .await?;
        self.each(format!("tree#{sale}"), |item| {
            let group: GroupId = parsed(text(item, "sk")?, "sk")?;
            check.tree(&group, number(item, "count")?, hashes(item, "chunk_roots")?)
        })
        .await?;
        for group in check.groups() {
            for chunk in 0..check.chunks(&group) {
                let mut leaves = None;
                self.each(format!("leaves#{sale}#{group}#{chunk}"), |item| {
                    leaves = Some(hashes(item, "leaves")?);
                    Ok(())
                })
                .await?;
                // The group is one of the room's.
                let _is_its = check.chunk(&group, leaves);
            }
        }
        for bucket in 0..BUCKETS {
            self.each(format!("members#{sale}#{bucket}"), |item| match text(item, "sk")? {
                "marker" => Ok(()),
                _ => check.member(&read_member(item, bucket)?),
            })
            .await?;
        }
        Ok(check.finish(self.is_archived))
    }

    /// Reads each item of a partition; what is wrong with one is recorded.
    async fn each(
        &mut self,
        partition: String,
        mut read: impl FnMut(&Item) -> Read<()>,
    ) -> Result<(), AuditError> {
        let query = self.client.query().table_name(self.table).consistent_read(true);
        let query = query.key_condition_expression("pk = :pk");
        let query = query.expression_attribute_values(":pk", AttributeValue::S(partition));
        let mut items = query.into_paginator().items().send();
        while let Some(item) = items.next().await {
            let item = item.map_err(|error| {
                let (table, error) = (self.table, DisplayErrorContext(&error));
                AuditError::DynamoDb(format!("reading {table}: {error}"))
            })?;
            if let Err(what) = read(&item) {
                let record = format!("item {} of table rooms", key_of(&item));
                let sale = Some(self.sale.clone());
                self.unreadable.push(Unreadable { sale, record, what });
            }
        }
        Ok(())
    }
}

fn read_member(item: &Item, bucket: u16) -> Read<MemberFact> {
    let buyer = text(item, "sk")?.strip_prefix("buyer#").ok_or("is nothing that belongs there")?;
    let is_first = match text(item, "window")? {
        "first" => true,
        "later" => false,
        other => return Err(format!("has window {other}")),
    };
    let nonce = bytes(item, "nonce")?.try_into().map_err(|_| "has another length of nonce")?;
    let rejoined = item.contains_key("rejoined").then(|| number(item, "rejoined")).transpose()?;
    let visit = item.contains_key("attempts").then(|| read_visit(item)).transpose()?;
    number::<i64>(item, "joined_ms")?;
    Ok(MemberFact {
        bucket,
        buyer: parsed(buyer, "sk")?,
        group: parsed(text(item, "group")?, "group")?,
        index: number(item, "index")?,
        is_first,
        nonce: Nonce(nonce),
        rejoined: rejoined.unwrap_or(0),
        visit,
    })
}

fn read_visit(item: &Item) -> Read<VisitFact> {
    number::<u64>(item, "began_ms")?;
    Ok(VisitFact {
        place: number(item, "place")?,
        turn: number(item, "turn")?,
        attempts: number(item, "attempts")?,
    })
}

fn bytes<'a>(item: &'a Item, name: &str) -> Read<&'a [u8]> {
    match item.get(name) {
        Some(AttributeValue::B(bytes)) => Ok(bytes.as_ref()),
        _ => Err(format!("has no bytes in {name}")),
    }
}

fn hashes(item: &Item, name: &str) -> Read<Vec<Hash>> {
    match bytes(item, name)?.as_chunks::<32>() {
        (hashes, []) => Ok(hashes.iter().map(|hash| Hash(*hash)).collect()),
        _ => Err(format!("has no hashes in {name}")),
    }
}
