//! What the audit checks, and how it names what breaks a rule.

use std::fmt;

use engine::domain::basics::ids::{GroupId, Leg, SaleId, SeatName, TierId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::inventory::SeatLeg;
use engine::domain::order::PaymentKey;
use engine::domain::order::attendee::AttendeeHash;
use engine::domain::sale::Sale;
use serde::Serialize;

/// One rule of the engine. Those with a number are the invariants of `docs/architecture.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Rule {
    /// A seat-leg has at most one live order.
    I1,
    /// Claims and live orders correspond.
    I2,
    /// A buyer's count is right and within the limit.
    I3,
    /// Redis says what DynamoDB says.
    I4,
    /// Every captured payment is decided exactly once.
    I5,
    /// The statistics are the sums of the paid orders.
    I6,
    /// Nothing stays pending for too long.
    I7,
    /// Money is neither made nor lost: accounts are their transfers.
    I8,
    /// No balance is below its limit.
    I9,
    /// The log says what the orders' facts say, and moves what they speak of.
    I10,
    /// A ticket has its claims exactly while it lives, and no more goes back of a payment than was captured.
    I11,
    /// What is void is listed, and check-ins are of tickets.
    I12,
    /// What is another system's on the same account is left alone.
    I13,
    /// Nobody pays what was not handed out.
    I14,
    /// What a provider has sent back is what the refunds say.
    I15,
    /// Payments that were started are closed.
    #[serde(rename = "attempts")]
    Attempts,
    /// No more was ordered than the gate has admitted.
    #[serde(rename = "tokens")]
    Tokens,
    /// Trains are found where they can be boarded, and nowhere else.
    #[serde(rename = "trains")]
    Trains,
    /// A waiting room did what its log says, and orders are of those whom it let in.
    #[serde(rename = "rooms")]
    Rooms,
    /// An acknowledged order is still there. Only with a ledger.
    #[serde(rename = "ledger")]
    Ledger,
    /// Every record is one that the engine writes, where the engine looks for it.
    #[serde(rename = "records")]
    Records,
}

impl Rule {
    /// Its name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::I1 => "I1",
            Self::I2 => "I2",
            Self::I3 => "I3",
            Self::I4 => "I4",
            Self::I5 => "I5",
            Self::I6 => "I6",
            Self::I7 => "I7",
            Self::I8 => "I8",
            Self::I9 => "I9",
            Self::I10 => "I10",
            Self::I11 => "I11",
            Self::I12 => "I12",
            Self::I13 => "I13",
            Self::I14 => "I14",
            Self::I15 => "I15",
            Self::Attempts => "attempts",
            Self::Tokens => "tokens",
            Self::Trains => "trains",
            Self::Rooms => "rooms",
            Self::Ledger => "ledger",
            Self::Records => "records",
        }
    }

    /// The rule in words, in one line.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Self::I1 => "no seat-leg has two live orders",
            Self::I2 => "claims and live orders correspond one to one",
            Self::I3 => "a buyer's count is the sum of the live orders and within the limit",
            Self::I4 => "Redis equals DynamoDB: taken, sold, holds, deadlines, buyers",
            Self::I5 => "every captured payment paid its order or is refunded, once",
            Self::I6 => "each tier's counter is the sum of the live tickets of its paid orders",
            Self::I7 => "no order is pending past its deadline",
            Self::I8 => "each account is its transfers, and all together are nothing",
            Self::I9 => "no balance is below its limit",
            Self::I10 => "the log says and books what the orders' facts say, each once",
            Self::I11 => {
                "refunds are their orders' and payments', and never more than was captured"
            }
            Self::I13 => "what is another system's on the same account is left alone",
            Self::I14 => "nobody pays what was not handed out, and steps go with their orders",
            Self::I15 => "what a provider has sent back is what the refunds of the payment say",
            Self::I12 => "void tickets are listed, and each lets one in, counted and named",
            Self::Attempts => "one payment of an order is open at most, none long after its end",
            Self::Tokens => "no more tickets were ordered than the gate has admitted",
            Self::Trains => "trains are found where they can be boarded, and nowhere else",
            Self::Rooms => "waiting rooms follow their logs, and let in who has ordered",
            Self::Ledger => "every acknowledged order is there",
            Self::Records => "every record can be read and is where it belongs",
        }
    }

    /// Unit of what is counted while it is checked.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::I1 => "seat-legs",
            Self::I2 => "claims",
            Self::I3 => "buyers",
            Self::I4 => "bits and entries",
            Self::I5 => "payments and orders",
            Self::I6 => "paid orders",
            Self::I7 => "pending orders",
            Self::I8 => "parts of accounts",
            Self::I9 => "accounts",
            Self::I10 => "settled facts",
            Self::I11 => "refunds",
            Self::I12 => "tickets and check-ins",
            Self::I13 => "captures in the providers' books",
            Self::I14 => "payments, and orders with a step",
            Self::I15 => "payments in the providers' books",
            Self::Attempts | Self::Tokens => "orders",
            Self::Trains => "calls",
            Self::Rooms => "records, places and buyers",
            Self::Ledger => "acknowledged orders",
            Self::Records => "records",
        }
    }
}

/// The thing that a violation is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// A seat on a leg.
    SeatLeg {
        /// Its tier.
        tier: TierId,
        /// Its name; absent if the bit is no seat.
        seat: Option<SeatName>,
        /// Its bit in the leg's bitmap.
        bit: u32,
        /// The leg, from 0.
        leg: Leg,
    },
    /// An order.
    Order {
        /// Its number.
        order: OrderNumber,
    },
    /// A buyer.
    Buyer {
        /// The buyer's user id.
        user: UserId,
    },
    /// An attendee.
    Attendee {
        /// The attendee's hash: part of the key of the claim.
        #[serde(serialize_with = "as_text")]
        attendee: AttendeeHash,
    },
    /// A payment.
    Payment {
        /// The number of the order that it is for.
        order: OrderNumber,
        /// Its provider, and the provider's id for it.
        #[serde(flatten)]
        key: PaymentKey,
    },
    /// A tier as a whole.
    Tier {
        /// Tier id, unique in the sale.
        tier: TierId,
    },
    /// The sale as a whole.
    Sale,
    /// A group of a waiting room.
    Group {
        /// The group.
        group: GroupId,
    },
    /// An index of a waiting room.
    Index {
        /// The group.
        group: GroupId,
        /// The index.
        index: u32,
    },
    /// A record of a waiting room's log.
    Turn {
        /// Its number.
        record: u64,
    },
    /// A record in a table, or a key in Redis.
    Record {
        /// Name of the record: table and keys, or key.
        record: String,
    },
}

fn as_text<S: serde::Serializer>(hash: &AttendeeHash, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(hash)
}

impl Subject {
    /// A seat on a leg, with its name.
    #[must_use]
    pub fn seat_leg(sale: &Sale, at: &SeatLeg) -> Self {
        let seat = sale.tier(&at.tier).and_then(|tier| tier.layout.name(at.seat));
        Self::SeatLeg { tier: at.tier.clone(), seat, bit: at.seat.0, leg: at.leg }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeatLeg { tier, seat: Some(seat), leg, .. } => {
                write!(f, "seat {seat} of tier {tier} on leg {leg}")
            }
            Self::SeatLeg { tier, seat: None, bit, leg } => {
                write!(f, "bit {bit} (no seat) of tier {tier} on leg {leg}")
            }
            Self::Order { order } => write!(f, "order {order}"),
            Self::Buyer { user } => write!(f, "buyer {user}"),
            Self::Attendee { attendee } => write!(f, "attendee {attendee}"),
            Self::Payment { order, key } => {
                write!(f, "payment {} {} for order {order}", key.provider, key.payment)
            }
            Self::Tier { tier } => write!(f, "tier {tier}"),
            Self::Sale => f.write_str("the sale"),
            Self::Group { group } => write!(f, "group {group}"),
            Self::Index { group, index } => write!(f, "index {index} of group {group}"),
            Self::Turn { record } => write!(f, "record {record} of the log"),
            Self::Record { record } => f.write_str(record),
        }
    }
}

/// One thing that breaks one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Violation {
    /// The rule that is broken.
    pub rule: Rule,
    /// The sale, if it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sale: Option<SaleId>,
    /// The thing that breaks it.
    pub subject: Subject,
    /// What is wrong with it, in words.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.rule.name())?;
        if let Some(sale) = &self.sale {
            write!(f, "{sale}: ")?;
        }
        write!(f, "{} {}", self.subject, self.what)
    }
}
