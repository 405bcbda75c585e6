//! HTTP: what a request must be before a flow sees it, and what a reply looks like.
//!
//! A handler reads as *who, what, do*: [`identity`] finds who calls; [`routes`], [`checks`], [`reservation`],
//! [`tokens`], [`place_token`] and the signature of a provider find what the caller asks for; a flow does it; and
//! [`respond`] writes the reply. Every refusal on the way becomes a problem document in one place, [`problem`].

// Others read it without its code: each public item says what it is.
#![warn(missing_docs)]

pub mod accounts;
pub mod admission;
pub mod attendees;
pub mod callback;
pub mod checks;
pub mod cursor;
pub mod disputes;
pub mod edge;
pub mod figures;
pub mod identity;
pub mod journey_query;
pub mod limits;
pub mod objects;
pub mod operators;
pub mod order_refund;
pub mod order_reply;
pub mod origin;
pub mod page_policy;
pub mod payment_reply;
pub mod payment_start;
pub mod pictures;
pub mod place;
pub mod place_token;
pub mod points;
pub mod problem;
pub mod reservation;
pub mod respond;
pub mod room;
pub mod room_address;
pub mod routes;
pub mod sale_body;
pub mod sale_reply;
pub mod sales_page;
pub mod standing;
pub mod stops;
pub mod takings;
pub mod ticket;
pub mod tokens;
pub mod trains;
pub mod unmatched;
pub mod visit;
pub mod wallet;

pub use problem::Problem;
