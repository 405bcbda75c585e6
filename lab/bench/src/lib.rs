//! Measurements of the engine on the machine they run on: `onsale bench`.
//!
//! What a server does is taken from the server's own counters wherever it has them, so that neither
//! our client nor the network is in the figure.

pub mod cost;
pub mod draw;
pub mod growth;
pub mod http;
pub mod reload;
pub mod room;
pub mod sales;
pub mod scripts;
pub mod seats;
pub mod selling;
pub mod trains;
