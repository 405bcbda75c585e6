//! One queue: a pure state machine whose clock is an argument.
//!
//! Every message is in one of three ordered indexes (ready, delayed, in flight) and in one by
//! age. A send, a receive and a delete touch a handful of entries in them, whatever the depth.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fake_limits::table::QUEUE_IN_FLIGHT;

use crate::attributes::QueueAttributes;
use crate::fifo::{Deduplication, Groups};
use crate::message::{Message, Place, Seq};

/// The number of a queue: never reused, so a queue created anew is another one.
pub(crate) type QueueId = u64;

/// Messages one receive may send to the dead-letter queue before it gives up for now.
const DEAD_LETTERS_PER_RECEIVE: usize = 1_000;

/// The parameters of one receive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Take {
    /// The most messages to deliver.
    pub count: usize,
    /// Visibility timeout in milliseconds.
    pub visibility_ms: u64,
    /// Receives after which a message is a dead letter; `None` without a redrive policy.
    pub max_receive_count: Option<u32>,
}

/// The result of one receive.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// To be delivered; they are in flight now.
    pub delivered: Vec<Seq>,
    /// Received too often: they have left this queue.
    pub dead: Vec<Message>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    /// Its name, unique in the server.
    pub name: String,
    /// Time at which it was created, Unix milliseconds.
    pub created_ms: u64,
    /// Time at which its attributes were last set, Unix milliseconds.
    pub modified_ms: u64,
    pub attributes: QueueAttributes,
    pub tags: BTreeMap<String, String>,
    /// Time at which it was last purged, Unix milliseconds.
    pub purged_ms: Option<u64>,
    /// The sends a FIFO queue recognises when they are repeated.
    pub deduplication: Deduplication,
    messages: HashMap<Seq, Message>,
    ready: BTreeSet<(u64, Seq)>,
    delayed: BTreeSet<(u64, Seq)>,
    in_flight: BTreeSet<(u64, Seq)>,
    by_age: BTreeSet<(u64, Seq)>,
    groups: Groups,
    fresh: usize,
}

impl Queue {
    pub fn new(name: String, attributes: QueueAttributes, now_ms: u64) -> Self {
        Queue {
            name,
            created_ms: now_ms,
            modified_ms: now_ms,
            attributes,
            tags: BTreeMap::new(),
            purged_ms: None,
            deduplication: Deduplication::default(),
            messages: HashMap::new(),
            ready: BTreeSet::new(),
            delayed: BTreeSet::new(),
            in_flight: BTreeSet::new(),
            by_age: BTreeSet::new(),
            groups: Groups::default(),
            fresh: 0,
        }
    }

    /// A message by its number.
    pub fn message(&self, seq: Seq) -> Option<&Message> {
        self.messages.get(&seq)
    }

    /// Visible, delayed and in flight, in this order.
    pub fn counts(&self) -> (usize, usize, usize) {
        let (delayed, in_flight) = (self.delayed.len(), self.in_flight.len());
        (self.messages.len().saturating_sub(delayed + in_flight), delayed, in_flight)
    }

    /// True if no more messages may be in flight.
    pub fn is_full_in_flight(&self) -> bool {
        self.in_flight.len() >= QUEUE_IN_FLIGHT.size()
    }

    /// Number of messages that have become available since the last call.
    pub fn take_fresh(&mut self) -> usize {
        std::mem::take(&mut self.fresh)
    }

    /// Adds a message: sent, dead-lettered, moved, or loaded from the file.
    pub fn insert(&mut self, mut message: Message, now_ms: u64) {
        message.place = if message.visible_ms <= now_ms {
            Place::Ready
        } else if message.receive_count == 0 || message.copy {
            Place::Delayed
        } else {
            Place::InFlight
        };
        let (seq, place, visible_ms) = (message.seq, message.place, message.visible_ms);
        let group = self.group_of(&message);
        self.by_age.insert((message.sent_ms, seq));
        self.messages.insert(seq, message);
        if let Some(group) = &group {
            self.groups.join(group, seq);
        }
        match place {
            Place::Ready => self.make_ready(seq, visible_ms, group.as_deref()),
            Place::Delayed => {
                self.delayed.insert((visible_ms, seq));
            }
            Place::InFlight => {
                self.in_flight.insert((visible_ms, seq));
                if let Some(group) = &group {
                    self.groups.lock(group, seq);
                }
            }
        }
        if let Some(group) = &group {
            self.settle(group);
        }
    }

    /// Makes available what has been delayed or hidden long enough. Each message is moved
    /// once, so the cost of a call is the cost of what has come due.
    pub fn wake(&mut self, now_ms: u64) {
        while let Some(&(visible_ms, seq)) = self.delayed.first() {
            if visible_ms > now_ms {
                break;
            }
            self.delayed.pop_first();
            let group = self.place(seq, Place::Ready, visible_ms);
            self.make_ready(seq, visible_ms, group.as_deref());
            if let Some(group) = &group {
                self.settle(group);
            }
        }
        while let Some(&(visible_ms, seq)) = self.in_flight.first() {
            if visible_ms > now_ms {
                break;
            }
            self.in_flight.pop_first();
            let group = self.place(seq, Place::Ready, visible_ms);
            self.return_to_ready(seq, visible_ms, group.as_deref());
        }
    }

    /// Removes messages older than the retention period; returns their numbers. A message in
    /// flight goes too, as at Amazon.
    pub fn expire(&mut self, now_ms: u64) -> Vec<Seq> {
        let mut expired = Vec::new();
        while let Some(&(sent_ms, seq)) = self.by_age.first() {
            if sent_ms.saturating_add(self.retention_ms()) > now_ms {
                break;
            }
            self.remove(seq);
            expired.push(seq);
        }
        expired
    }

    /// Takes messages for one receive. `pick` gives, for a number of ready messages, the index
    /// of the next one: 0 unless faults are injected.
    pub fn take(&mut self, take: Take, now_ms: u64, mut pick: impl FnMut(usize) -> usize) -> Taken {
        let mut taken = Taken::default();
        while taken.delivered.len() < take.count && !self.is_full_in_flight() {
            if taken.dead.len() >= DEAD_LETTERS_PER_RECEIVE {
                self.fresh += 1;
                break;
            }
            let Some(&entry) = (match pick(self.ready.len()) {
                0 => self.ready.first(),
                place => self.ready.iter().nth(place),
            }) else {
                break;
            };
            self.ready.remove(&entry);
            // In a FIFO queue the entry stands for its group, and the group gives as many
            // messages in order as are requested; otherwise the entry is the one message.
            let mut next = Some(entry.1);
            let mut group = None;
            while let Some(seq) = next {
                group = self.take_one(seq, take, now_ms, &mut taken);
                let has_room = taken.delivered.len() < take.count
                    && taken.dead.len() < DEAD_LETTERS_PER_RECEIVE;
                next = group
                    .as_deref()
                    .filter(|_| has_room)
                    .and_then(|group| self.groups.head(group))
                    .filter(|&seq| self.is_ready(seq));
            }
            if let Some(group) = group {
                self.settle(&group);
            }
        }
        taken
    }

    /// Delivers one message or takes it out as a dead letter; returns its group in a FIFO queue.
    fn take_one(&mut self, seq: Seq, take: Take, now_ms: u64, taken: &mut Taken) -> Option<String> {
        let fifo = self.attributes.fifo;
        let message = self.messages.get_mut(&seq)?;
        let group = if fifo { message.content.group.clone() } else { None };
        if take.max_receive_count.is_some_and(|most| message.receive_count >= most) {
            taken.dead.extend(self.remove(seq));
            return group;
        }
        message.receive_count += 1;
        message.receipt += 1;
        message.first_receive_ms.get_or_insert(now_ms);
        message.place = Place::InFlight;
        message.visible_ms = now_ms.saturating_add(take.visibility_ms);
        self.in_flight.insert((message.visible_ms, seq));
        if let Some(group) = &group {
            self.groups.lock(group, seq);
        }
        taken.delivered.push(seq);
        group
    }

    /// Removes a message, wherever it is.
    pub fn remove(&mut self, seq: Seq) -> Option<Message> {
        let message = self.messages.remove(&seq)?;
        self.by_age.remove(&(message.sent_ms, seq));
        let group = self.group_of(&message);
        match message.place {
            Place::Ready => {
                self.ready.remove(&self.ready_key(&message));
            }
            Place::Delayed => {
                self.delayed.remove(&(message.visible_ms, seq));
            }
            Place::InFlight => {
                self.in_flight.remove(&(message.visible_ms, seq));
            }
        }
        if let Some(group) = group {
            if message.place == Place::InFlight {
                self.groups.unlock(&group);
            } else {
                self.groups.leave(&group, seq);
            }
            self.settle(&group);
        }
        Some(message)
    }

    /// Changes from when on a message in flight is visible again; false if it is not in flight.
    pub fn hide(&mut self, seq: Seq, now_ms: u64, visibility_ms: u64) -> bool {
        let Some(message) = self.messages.get_mut(&seq) else {
            return false;
        };
        if message.place != Place::InFlight {
            return false;
        }
        self.in_flight.remove(&(message.visible_ms, seq));
        message.visible_ms = now_ms.saturating_add(visibility_ms);
        self.in_flight.insert((message.visible_ms, seq));
        self.wake(now_ms);
        true
    }

    /// Removes every message and returns how many there were.
    pub fn purge(&mut self) -> usize {
        let count = self.messages.len();
        self.messages.clear();
        self.ready.clear();
        self.delayed.clear();
        self.in_flight.clear();
        self.by_age.clear();
        self.groups.clear();
        count
    }

    /// The message that would be delivered next: what a move task takes.
    pub fn next_ready(&self) -> Option<&Message> {
        self.ready.first().and_then(|(_, seq)| self.messages.get(seq))
    }

    /// Time at which something happens in this queue by itself: a delay or a visibility timeout
    /// runs out, or a message grows too old. Unix milliseconds.
    pub fn due_ms(&self) -> Option<u64> {
        let first = |index: &BTreeSet<(u64, Seq)>| index.first().map(|&(at_ms, _)| at_ms);
        let old = first(&self.by_age).map(|sent_ms| sent_ms.saturating_add(self.retention_ms()));
        [first(&self.delayed), first(&self.in_flight), old].into_iter().flatten().min()
    }

    fn retention_ms(&self) -> u64 {
        self.attributes.retention_seconds * 1_000
    }

    fn group_of(&self, message: &Message) -> Option<String> {
        if self.attributes.fifo { message.content.group.clone() } else { None }
    }

    /// A standard queue serves in the order of becoming visible, so that a message that keeps
    /// failing does not stand in front of all others; a FIFO queue in the order of sending.
    fn ready_key(&self, message: &Message) -> (u64, Seq) {
        (if self.attributes.fifo { 0 } else { message.visible_ms }, message.seq)
    }

    fn is_ready(&self, seq: Seq) -> bool {
        self.messages.get(&seq).is_some_and(|message| message.place == Place::Ready)
    }

    fn place(&mut self, seq: Seq, place: Place, visible_ms: u64) -> Option<String> {
        let fifo = self.attributes.fifo;
        let message = self.messages.get_mut(&seq)?;
        message.place = place;
        message.visible_ms = visible_ms;
        if fifo { message.content.group.clone() } else { None }
    }

    fn make_ready(&mut self, seq: Seq, visible_ms: u64, group: Option<&str>) {
        // In a FIFO queue only `settle` offers messages, one a group.
        if group.is_none() {
            self.ready.insert((visible_ms, seq));
            self.fresh += 1;
        }
    }

    fn return_to_ready(&mut self, seq: Seq, visible_ms: u64, group: Option<&str>) {
        match group {
            None => self.make_ready(seq, visible_ms, None),
            Some(group) => {
                self.groups.unlock(group);
                self.groups.join(group, seq);
                self.settle(group);
            }
        }
    }

    fn settle(&mut self, group: &str) {
        let head_is_ready = self.groups.head(group).is_some_and(|seq| self.is_ready(seq));
        let change = self.groups.settle(group, head_is_ready);
        if let Some(seq) = change.withdrawn {
            self.ready.remove(&(0, seq));
        }
        if let Some(seq) = change.offered {
            self.ready.insert((0, seq));
            self.fresh += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Attributes, Content};
    use std::sync::Arc;

    const TAKE: Take = Take { count: 10, visibility_ms: 1_000, max_receive_count: None };

    const NONE: [Seq; 0] = [];

    fn queue(fifo: bool) -> Queue {
        let mut attributes = QueueAttributes::default();
        attributes.fifo = fifo;
        Queue::new("q".into(), attributes, 0)
    }

    fn message(seq: Seq, group: Option<&str>, now_ms: u64, visible_ms: u64) -> Message {
        let group = group.map(str::to_owned);
        let content =
            Content::new(Some("x".into()), Attributes::new(), &Attributes::new(), group, None)
                .unwrap();
        Message::sent(seq, "id".into(), Arc::new(content), now_ms, visible_ms)
    }

    fn take(queue: &mut Queue, now_ms: u64) -> Vec<Seq> {
        queue.wake(now_ms);
        queue.take(TAKE, now_ms, |_| 0).delivered
    }

    #[test]
    fn a_message_is_delayed_then_ready_then_in_flight_then_ready_again() {
        let mut queue = queue(false);
        queue.insert(message(1, None, 0, 500), 0);
        assert_eq!(queue.counts(), (0, 1, 0));
        assert_eq!(queue.due_ms(), Some(500));
        assert_eq!(take(&mut queue, 499), NONE);
        assert_eq!(take(&mut queue, 500), [1]);
        assert_eq!(queue.take_fresh(), 1);
        assert_eq!(queue.counts(), (0, 0, 1));
        assert_eq!(queue.due_ms(), Some(1_500));
        assert_eq!(take(&mut queue, 1_499), NONE);
        assert_eq!(take(&mut queue, 1_500), [1]);
        assert_eq!(queue.message(1).unwrap().receive_count, 2);
        assert!(queue.hide(1, 1_600, 0));
        assert!(!queue.hide(1, 1_600, 0), "it is no longer in flight");
        assert_eq!(take(&mut queue, 1_600), [1]);
        assert!(queue.remove(1).is_some());
        assert!(queue.remove(1).is_none());
        assert_eq!((queue.counts(), queue.due_ms()), ((0, 0, 0), None));
    }

    #[test]
    fn what_returns_stands_behind_what_waits() {
        let mut queue = queue(false);
        queue.insert(message(1, None, 0, 0), 0);
        assert_eq!(take(&mut queue, 0), [1]);
        queue.insert(message(2, None, 10, 10), 10);
        assert!(queue.hide(1, 20, 0));
        assert_eq!(take(&mut queue, 20), [2, 1]);
    }

    #[test]
    fn a_message_received_too_often_is_dead() {
        let mut queue = queue(false);
        queue.insert(message(1, None, 0, 0), 0);
        queue.insert(message(2, None, 0, 0), 0);
        let strict = Take { count: 1, visibility_ms: 0, max_receive_count: Some(1) };
        assert_eq!(queue.take(strict, 0, |_| 0).delivered, [1]);
        queue.wake(0);
        let taken = queue.take(strict, 0, |_| 0);
        assert_eq!(taken.dead.iter().map(|message| message.seq).collect::<Vec<_>>(), [1]);
        assert_eq!(taken.delivered, [2], "the dead letter does not use up the receive");
    }

    #[test]
    fn one_receive_dead_letters_a_bounded_number() {
        let mut queue = queue(false);
        let count = u64::try_from(DEAD_LETTERS_PER_RECEIVE).unwrap() + 5;
        for seq in 1..=count {
            queue.insert(Message { receive_count: 3, ..message(seq, None, 0, 0) }, 0);
        }
        let strict = Take { max_receive_count: Some(3), ..TAKE };
        queue.take_fresh();
        assert_eq!(queue.take(strict, 0, |_| 0).dead.len(), DEAD_LETTERS_PER_RECEIVE);
        assert_eq!(queue.take_fresh(), 1, "a receiver is woken for the rest");
        assert_eq!(queue.take(strict, 0, |_| 0).dead.len(), 5);
    }

    #[test]
    fn old_messages_expire_wherever_they_are() {
        let mut queue = queue(false);
        queue.attributes.retention_seconds = 60;
        queue.insert(message(1, None, 0, 0), 0);
        queue.insert(message(2, None, 0, 100_000), 0);
        queue.insert(message(3, None, 1, 1), 1);
        assert_eq!(take(&mut queue, 1), [1, 3]);
        assert_eq!(queue.expire(59_999), NONE);
        assert_eq!(queue.expire(60_000), [1, 2]);
        assert_eq!(queue.counts(), (0, 0, 1));
    }

    #[test]
    fn a_group_gives_its_messages_in_order_and_waits_for_them() {
        let mut queue = queue(true);
        for (seq, group) in [(1, "a"), (2, "b"), (3, "a"), (4, "a")] {
            queue.insert(message(seq, Some(group), 0, 0), 0);
        }
        let two = Take { count: 2, ..TAKE };
        assert_eq!(queue.take(two, 0, |_| 0).delivered, [1, 3]);
        assert_eq!(take(&mut queue, 0), [2], "group a is locked");
        queue.remove(1);
        assert_eq!(take(&mut queue, 0), NONE, "3 is still in flight");
        queue.hide(3, 0, 0);
        assert_eq!(take(&mut queue, 0), [3, 4], "3 returned before 4");
        queue.remove(3);
        queue.remove(4);
        assert_eq!(queue.counts(), (0, 0, 1));
        assert_eq!(take(&mut queue, 1_000), [2]);
    }

    #[test]
    fn a_delayed_head_holds_its_group_back() {
        let mut queue = queue(true);
        queue.insert(message(1, Some("a"), 0, 100), 0);
        queue.insert(message(2, Some("a"), 0, 0), 0);
        assert_eq!(take(&mut queue, 99), NONE);
        assert_eq!(take(&mut queue, 100), [1, 2]);
    }

    #[test]
    fn a_dead_head_of_a_group_makes_way() {
        let mut queue = queue(true);
        queue.insert(Message { receive_count: 1, ..message(1, Some("a"), 0, 0) }, 0);
        queue.insert(message(2, Some("a"), 0, 0), 0);
        let taken = queue.take(Take { max_receive_count: Some(1), ..TAKE }, 0, |_| 0);
        assert_eq!(taken.dead.len(), 1);
        assert_eq!(taken.delivered, [2]);
    }

    #[test]
    fn a_pick_may_reach_behind_the_oldest() {
        let mut queue = queue(false);
        for seq in 1..=5 {
            queue.insert(message(seq, None, 0, 0), 0);
        }
        let taken = queue.take(Take { count: 2, ..TAKE }, 0, |ready| ready - 1);
        assert_eq!(taken.delivered, [5, 4]);
    }
}
