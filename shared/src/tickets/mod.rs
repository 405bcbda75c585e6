//! The codes of tickets, and the list of those that are void: signed, so that a door needs nothing but the public
//! keys to check them.
//!
//! Both are compact JWS (RFC 7515) by Ed25519 (RFC 8037), of the kind that `typ` says in the protected header. A code has
//! no name and no time in it and is the same whenever it is made: it is stored nowhere. It is as good as its
//! copies, until the first of them is let in.

mod code;
mod keys;
mod list;

pub use code::{CodeDefect, MAX_CODE_BYTES, Standing, TicketCode};
pub(crate) use keys::TICKET_KEYS;
pub use keys::{Jwk, NoKey, NotKeys, PublicKeys, TicketKeys, TicketSecrets};
pub use list::{ListDefect, RevokedList};
