//! Two scripts to compare with: the usual way to keep seats, one JSON value a seat in one hash.
//!
//! They do what such scripts do and nothing to slow them down: the values are as short as they can
//! be with what a seat needs, only the values are read (not the names, which they contain), and
//! nothing is decoded twice. They check neither window nor limit and keep no deadline, which ours
//! does in the same call.

use engine::domain::basics::bitmap;
use engine::domain::basics::ids::Seat;
use redis::aio::MultiplexedConnection;

use super::Error;
use super::halls::Tier;

/// Where the seats are kept.
const KEY: &str = "{baseline}:seats";
/// Number of seats that a call takes.
const SEATS: u16 = 2;
/// Number of seats that are written in one command while the hall is put together.
const SEATS_A_COMMAND: usize = 1000;

/// One of the scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// Any seats: decodes one seat after another until enough of them are free.
    Any,
    /// The best seats: decodes every seat, sorts the free ones by price, row and place, and takes
    /// the first that are neighbours.
    Best,
}

impl Baseline {
    pub const ALL: [Self; 2] = [Self::Any, Self::Best];

    /// Its name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "JSON seats, any",
            Self::Best => "JSON seats, best",
        }
    }

    #[must_use]
    pub fn source(self) -> &'static str {
        match self {
            Self::Any => include_str!("any_seats.lua"),
            Self::Best => include_str!("best_seats.lua"),
        }
    }

    /// A call that takes two seats for an order; answers their names, none if there are not enough.
    #[must_use]
    pub fn call(self, order: &str) -> redis::Cmd {
        let mut call = redis::cmd("EVALSHA");
        call.arg(redis::Script::new(self.source()).get_hash());
        call.arg(1).arg(KEY).arg(SEATS).arg(order);
        call
    }
}

/// Writes every seat of a tier as these scripts keep it: taken where a bitmap says so.
///
/// # Errors
/// Fails if the server does not take them.
pub async fn write(
    connection: &mut MultiplexedConnection,
    tier: &Tier,
    taken: &[u8],
) -> Result<(), Error> {
    let row_bits = tier.row_bytes * 8;
    let seats: Vec<Seat> = (0..bitmap::places(&tier.initial))
        .map(Seat)
        .filter(|seat| bitmap::get(&tier.initial, *seat) == Some(false))
        .collect();
    for some in seats.chunks(SEATS_A_COMMAND) {
        let mut write = redis::cmd("HSET");
        write.arg(KEY);
        for at @ Seat(seat) in some {
            let (row, place) = (seat / row_bits, seat % row_bits);
            let state = if bitmap::get(taken, *at) == Some(true) { "sold" } else { "free" };
            let name = format!("{row}-{place}");
            // The back rows are cheaper.
            let price = 28_000 - 2_000 * (row / 10).min(10);
            let value = serde_json::json!({
                "name": name, "row": row, "place": place, "price": price, "state": state,
            });
            write.arg(name).arg(value.to_string());
        }
        write.query_async::<()>(connection).await?;
    }
    Ok(())
}
