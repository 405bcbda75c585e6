//! The adapter to Redis: the scripts of `lua/`, and the ports [`Seats`](engine::ports::Seats) and
//! [`Gate`](engine::ports::Gate) over them.
//!
//! - One file a script (`hold`, `sell`, …): its contract, the encoding of its arguments and the
//!   decoding of its reply.
//! - [`contract`] is the form of a contract, `script` the scripts' sources, `call` one call.
//! - [`hold_record`] is the text form of a hold.
//! - [`keys`] names every key.
//! - [`RedisSeats`], [`RedisGate`] and [`RedisBoard`] implement the ports; `reads` and `unload` have the commands that
//!   need no script.
//! - [`RedisChallenges`] counts and remembers challenges.
//! - [`availability`] reads the seats that are left, seldom, for everyone who asks.
//! - [`counters`] counts requests for the limits of the gate.
//! - [`connection`] hides the client library, and bounds the time of a request.
//! - [`Meter`] counts the commands to the slot of a sale, for a load test.

pub mod availability;
pub mod connection;
pub mod contract;
pub mod counters;
pub mod hold_record;
pub mod keys;
pub mod leg_bytes;

mod add_tokens;
mod admit;
mod call;
mod challenges;
mod gate;
mod hold;
mod load;
mod mark;
mod meter;
mod reads;
mod recount;
mod release;
mod repair;
mod restore;
mod room_board;
mod script;
mod seats;
mod sell;
mod unload;
mod unlock;
mod unsell;
mod wallet_locks;

use engine::ports::StoreError;

pub use challenges::{ChallengePlace, RedisChallenges};
pub use connection::{Bounds, Connection, Topology};
pub use gate::RedisGate;
pub use meter::Meter;
pub use room_board::RedisBoard;
pub use script::{Script, Scripts};
pub use seats::RedisSeats;
pub use wallet_locks::RedisWalletLocks;

/// The error of what is in Redis, or shall be sent to it, and has no meaning.
fn broken(what: impl std::fmt::Display) -> StoreError {
    StoreError::Contract(what.to_string())
}
