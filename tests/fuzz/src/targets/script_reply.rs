//! What the adapter to Redis makes of replies: whatever comes back is understood or is told to be a
//! broken contract, and never taken for something that did not happen or may have.

use std::fmt::Debug;
use std::sync::LazyLock;
use std::time::Duration;

use engine::domain::admission::gate::tokens::AddTokens;
use engine::domain::admission::gate::{Admit, Share};
use engine::domain::basics::ids::{
    AdditionId, Epoch, InventoryId, Legs, RequestFingerprint, SaleId, TierId, UserId,
};
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::tickets::Tickets;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::inventory::{HeldLine, Hold, HoldRecord, HoldReply, Line, Release, Sell};
use engine::ports::{Gate as _, Seats as _, StoreError, Stored};
use shared::redis::{Bounds, Connection, RedisGate, RedisSeats, Topology, hold_record};
use tokio::runtime::{Builder, Runtime};

use crate::sample::NOW;
use crate::scripted::Scripted;
use crate::{Outcome, Target, must};

pub(crate) const SCRIPT_REPLY: Target = Target {
    name: "script-reply",
    about: "Each line a text of the reply to each script and query: it is understood, or told to be \
            a broken contract, and never a lost reply; a hold that is understood can be packed.",
    run,
};

/// Most texts of a reply.
const MAX_TEXTS: usize = 16;

/// The adapters, in front of a server that answers as it is told.
struct Rig {
    server: Scripted,
    seats: RedisSeats,
    gate: RedisGate,
    runtime: Runtime,
}

static RIG: LazyLock<Rig> = LazyLock::new(|| {
    let server = Scripted::start();
    // Patient: on a busy machine a reply may take a while, and is not lost.
    let deadline = Duration::from_secs(30);
    let bounds = Bounds { connect: deadline, response: deadline, attempts: 1, ..Bounds::default() };
    let topology = Topology::Single(server.url.clone());
    let connection = must(Connection::new(&topology, bounds), "the address of the server");
    let runtime = must(Builder::new_current_thread().enable_all().build(), "a runtime");
    let (seats, gate) = (RedisSeats::new(connection.clone()), RedisGate::new(connection));
    Rig { server, seats, gate, runtime }
});

fn run(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else { return Outcome::Refused };
    let texts: Vec<&str> = text.split('\n').take(MAX_TEXTS).collect();
    let Rig { server, seats, gate, runtime } = &*RIG;
    let sample = Sample::new();

    server.answer_list(&texts);
    let understood = runtime.block_on(async {
        let held = seats.hold(&sample.hold()).await;
        if let Ok(HoldReply::Held { record, .. }) = &held {
            let again = must(
                hold_record::from_text(&hold_record::to_text(record)),
                "a packed hold is unpacked",
            );
            assert_eq!(again, *record);
        }
        let mut understood = is_understood(&held);
        understood |= is_understood(&gate.admit(&sample.admit()).await);
        understood |= is_understood(&gate.add_tokens(&sample.add_tokens()).await);
        understood |= is_understood(&gate.tokens(&sample.sale, 2).await);
        understood |= is_understood(&seats.sell(&sample.sell()).await);
        understood |= is_understood(&seats.release(&sample.release()).await);
        understood | is_understood(&seats.due(&sample.inventory(), NOW, MAX_TEXTS).await)
    });
    server.answer_text(text);
    let read = runtime.block_on(async {
        let record = is_understood(&seats.record(&sample.inventory(), sample.order).await);
        record | is_understood(&seats.epoch(&sample.inventory()).await)
    });
    Outcome::from_accepted(understood || read)
}

/// True for a reply that was understood.
fn is_understood<T: Debug>(reply: &Stored<T>) -> bool {
    match reply {
        Ok(_) => true,
        Err(StoreError::Contract(_)) => false,
        Err(StoreError::Unavailable(_) | StoreError::Unknown(_) | StoreError::Limited(_)) => {
            panic!("a reply that came is taken for a lost one: {reply:?}")
        }
    }
}

/// The sale and load that the replies are about.
struct Sample {
    sale: SaleId,
    epoch: Epoch,
    user: UserId,
    order: OrderNumber,
    record: HoldRecord,
}

impl Sample {
    fn new() -> Self {
        let user = must(UserId::new("alice"), "a user");
        let record = HoldRecord {
            user: user.clone(),
            fingerprint: must(RequestFingerprint::new("0123456789abcdef"), "a fingerprint"),
            deadline: NOW,
            lines: vec![HeldLine {
                tier: must(TierId::new("a"), "a tier"),
                legs: Legs::ONE,
                seats: Vec::from([0, 1].map(engine::domain::basics::ids::Seat)),
            }],
        };
        Self {
            sale: must(SaleId::new("s"), "a sale"),
            epoch: must(Epoch::new("e1"), "an epoch"),
            order: Mint::new(7).mint(NOW, &user),
            user,
            record,
        }
    }

    fn inventory(&self) -> InventoryId {
        InventoryId::whole(self.sale.clone())
    }

    fn hold(&self) -> Hold {
        let choice = Choice::Best { count: 2, together: Together::Required };
        let line = Line { tier: self.record.lines[0].tier.clone(), legs: Legs::ONE, choice };
        Hold {
            inventory: self.inventory(),
            epoch: self.epoch.clone(),
            order: self.order,
            user: self.user.clone(),
            fingerprint: self.record.fingerprint.clone(),
            now: NOW,
            deadline: NOW.plus_seconds(600),
            replaced: Tickets::NONE,
            lines: vec![line],
        }
    }

    fn sell(&self) -> Sell {
        Sell {
            inventory: self.inventory(),
            epoch: self.epoch.clone(),
            order: self.order,
            user: self.user.clone(),
            lines: self.record.lines.clone(),
            freed: None,
        }
    }

    fn release(&self) -> Release {
        Release { inventory: self.inventory(), order: self.order, record: self.record.clone() }
    }

    fn add_tokens(&self) -> AddTokens {
        AddTokens {
            sale: self.sale.clone(),
            shard: 0,
            id: must(AdditionId::new("a"), "an addition"),
            tokens: 5,
            total: 20,
            max_additions: 100,
            first: Share { budget: 100, left: 100 },
            now: NOW,
        }
    }

    fn admit(&self) -> Admit {
        Admit {
            sale: self.sale.clone(),
            shard: 0,
            user: self.user.clone(),
            tickets: 2,
            now: NOW,
            user_lock_ms: 5000,
            rate_per_second: 100,
            first: Share { budget: 100, left: 100 },
            top_up: None,
        }
    }
}
