//! The rooms as DynamoDB keeps them, and the beacon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::domain::admission::room::code::{CodeShard, CodeUses};
use engine::domain::admission::room::join::{JoinWindow, Membership, Replaced, TakenIndices, Tree};
use engine::domain::admission::room::log::Record;
use engine::domain::admission::room::visit::{Enter, EnterReply};
use engine::domain::basics::bytes::{Hash, Secret, Signature};
use engine::domain::basics::guard::{Guard, stands};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::ports::{AppendReply, MembershipPage, StoreError, Stored};

/// The counter of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Counter {
    pub next: u32,
    /// N, once the first window is closed.
    pub closed: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RoomsModel {
    pub secrets: BTreeMap<SaleId, Secret>,
    /// The records as their lines, by number.
    pub logs: BTreeMap<SaleId, BTreeMap<u64, Arc<str>>>,
    pub counters: BTreeMap<(SaleId, GroupId), Counter>,
    /// The memberships, by bucket and buyer.
    pub members: BTreeMap<(SaleId, u16), BTreeMap<UserId, Membership>>,
    /// The codes, by group and shard.
    pub codes: BTreeMap<(SaleId, GroupId, CodeShard), CodeUses>,
    /// The buckets that have a marker.
    pub marked: BTreeSet<(SaleId, u16)>,
    /// The chunks of leaves.
    pub chunks: BTreeMap<(SaleId, GroupId, u32), Vec<Hash>>,
    pub trees: BTreeMap<(SaleId, GroupId), Tree>,
}

/// Memberships of a page: two, so that small buckets have more than one.
const PAGE: usize = 2;

fn read(line: &Arc<str>) -> Stored<Record> {
    Record::from_line(line).map_err(|error| StoreError::Contract(error.to_string()))
}

impl RoomsModel {
    /// See [`engine::ports::Rooms::keep_secret`].
    pub fn keep_secret(&mut self, sale: &SaleId, secret: &Secret) -> Secret {
        *self.secrets.entry(sale.clone()).or_insert(*secret)
    }

    /// See [`engine::ports::Rooms::append`].
    pub fn append(&mut self, sale: &SaleId, record: &Record) -> AppendReply {
        let log = self.logs.entry(sale.clone()).or_default();
        let line: Arc<str> = record.line().into();
        match log.get(&record.number) {
            Some(kept) if *kept == line => AppendReply::Appended,
            Some(_) if stands(Guard::RoomRecord) => AppendReply::Conflict,
            Some(_) | None => {
                log.insert(record.number, line);
                AppendReply::Appended
            }
        }
    }

    /// See [`engine::ports::Rooms::record`].
    ///
    /// # Errors
    /// `Contract` for a line that is no record.
    pub fn record(&self, sale: &SaleId, number: u64) -> Stored<Option<Record>> {
        self.logs.get(sale).and_then(|log| log.get(&number)).map(read).transpose()
    }

    /// See [`engine::ports::Rooms::records`].
    ///
    /// # Errors
    /// `Contract` for a line that is no record.
    pub fn records(&self, sale: &SaleId, from: u64, most: u16) -> Stored<Vec<Record>> {
        let log = self.logs.get(sale).into_iter().flat_map(|log| log.range(from..));
        log.take(most.into()).map(|(_, line)| read(line)).collect()
    }

    /// See [`engine::ports::Rooms::last_record`].
    ///
    /// # Errors
    /// `Contract` for a line that is no record.
    pub fn last_record(&self, sale: &SaleId) -> Stored<Option<Record>> {
        let last = self.logs.get(sale).and_then(BTreeMap::last_key_value);
        last.map(|(_, line)| read(line)).transpose()
    }

    fn counter(&mut self, sale: &SaleId, group: &GroupId) -> &mut Counter {
        self.counters.entry((sale.clone(), group.clone())).or_default()
    }

    /// See [`engine::ports::Rooms::take_indices`].
    pub fn take_indices(&mut self, sale: &SaleId, group: &GroupId, count: u16) -> TakenIndices {
        let counter = self.counter(sale, group);
        let first = counter.next;
        counter.next += u32::from(count);
        let window = if counter.closed.is_some() { JoinWindow::Later } else { JoinWindow::First };
        TakenIndices { first, count, window }
    }

    /// See [`engine::ports::Rooms::close_window`].
    pub fn close_window(&mut self, sale: &SaleId, group: &GroupId) -> u32 {
        let counter = self.counter(sale, group);
        if !stands(Guard::RoomClosing) {
            counter.closed = None;
        }
        *counter.closed.get_or_insert(counter.next)
    }

    /// See [`engine::ports::Rooms::membership`].
    #[must_use]
    pub fn membership(&self, sale: &SaleId, bucket: u16, buyer: &UserId) -> Option<Membership> {
        self.members.get(&(sale.clone(), bucket))?.get(buyer).cloned()
    }

    /// See [`engine::ports::Rooms::join`].
    ///
    /// # Errors
    /// `Contract` if there is nothing that could be replaced.
    pub fn join(
        &mut self,
        membership: &Membership,
        bucket: u16,
        replaces: Option<Replaced>,
    ) -> Stored<Membership> {
        let members = self.members.entry((membership.sale.clone(), bucket)).or_default();
        let kept = members.get(&membership.buyer);
        let may_write = match (kept, replaces) {
            (None, None) => true,
            (Some(kept), Some(replaced)) => {
                let is_read = Replaced::from(kept) == replaced && kept.group == membership.group;
                !stands(Guard::RejoinCondition) || is_read
            }
            (Some(_), None) => false,
            (None, Some(_)) => {
                return Err(StoreError::Contract("there is no membership to replace".to_owned()));
            }
        };
        if may_write {
            members.insert(membership.buyer.clone(), membership.clone());
        }
        Ok(members.get(&membership.buyer).unwrap_or(membership).clone())
    }

    /// See [`engine::ports::Rooms::join_by_code`].
    ///
    /// # Errors
    /// As [`Self::join`].
    pub fn join_by_code(
        &mut self,
        membership: &Membership,
        bucket: u16,
        shard: CodeShard,
    ) -> Stored<Option<Membership>> {
        let Membership { sale, group, buyer, .. } = membership;
        if let Some(kept) = self.membership(sale, bucket, buyer) {
            return Ok(Some(kept));
        }
        let uses = self.codes.get_mut(&(sale.clone(), group.clone(), shard));
        let Some(uses) = uses else { return Ok(None) };
        let Some(used) = uses.used_once_more() else { return Ok(None) };
        *uses = used;
        self.join(membership, bucket, None).map(Some)
    }

    /// See [`engine::ports::Rooms::enter`].
    pub fn enter(&mut self, enter: &Enter) -> EnterReply {
        let members = self.members.get_mut(&(enter.sale.clone(), enter.bucket));
        let member = members.and_then(|members| members.get_mut(&enter.buyer));
        let reply = enter.reply(member.as_deref());
        if let (Some(member), EnterReply::Entered(entered)) = (member, reply) {
            member.visit = Some(entered.visit);
        }
        reply
    }

    /// See [`engine::ports::Rooms::joined`].
    #[must_use]
    pub fn joined(&self, sale: &SaleId, group: &GroupId) -> u32 {
        self.counters.get(&(sale.clone(), group.clone())).map_or(0, |counter| counter.next)
    }

    /// See [`engine::ports::Rooms::memberships`].
    #[must_use]
    pub fn memberships(
        &self,
        sale: &SaleId,
        bucket: u16,
        after: Option<&UserId>,
    ) -> MembershipPage {
        let members = self.members.get(&(sale.clone(), bucket));
        let members = members.into_iter().flat_map(BTreeMap::values);
        let mut rest = members.filter(|member| after.is_none_or(|after| member.buyer > *after));
        let memberships: Vec<Membership> = rest.by_ref().take(PAGE).cloned().collect();
        let last = memberships.last().map(|last| last.buyer.clone());
        let next = if rest.next().is_some() { last } else { None };
        MembershipPage { memberships, next }
    }

    /// See [`engine::ports::Rooms::keep_chunk`].
    pub fn keep_chunk(
        &mut self,
        sale: &SaleId,
        group: &GroupId,
        chunk: u32,
        leaves: &[Hash],
    ) -> Vec<Hash> {
        let key = (sale.clone(), group.clone(), chunk);
        if !stands(Guard::RoomChunk) {
            self.chunks.remove(&key);
        }
        self.chunks.entry(key).or_insert_with(|| leaves.to_vec()).clone()
    }

    /// See [`engine::ports::Rooms::keep_tree`].
    pub fn keep_tree(&mut self, sale: &SaleId, group: &GroupId, tree: &Tree) -> Tree {
        self.trees.entry((sale.clone(), group.clone())).or_insert_with(|| tree.clone()).clone()
    }
}

/// A beacon of one chain, whose signatures follow from the round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BeaconModel {
    /// The latest round; `None` while it does not answer.
    pub latest: Option<u64>,
}

impl BeaconModel {
    fn answering(&self) -> Stored<u64> {
        self.latest.ok_or_else(|| StoreError::Unavailable("the beacon does not answer".to_owned()))
    }

    /// See [`engine::ports::Beacon::round`].
    ///
    /// # Errors
    /// `Unavailable` while it does not answer.
    pub fn round(&self, round: u64) -> Stored<Option<Signature>> {
        let is_out = round <= self.answering()?;
        Ok(is_out.then(|| Self::signature(round)))
    }

    /// The signature of a round.
    #[must_use]
    pub fn signature(round: u64) -> Signature {
        let mut signature = [0; 48];
        signature.iter_mut().zip(round.to_be_bytes()).for_each(|(to, from)| *to = from);
        Signature(signature)
    }
}
