//! The flows on real servers, cut off or frozen at every step, and after Redis has forgotten.

mod archiving;
mod cancelling;
mod cancelling_many;
mod captures;
mod churning;
mod comparing;
mod connecting;
mod counting;
mod crash_points;
pub mod crashing;
mod departing;
mod disputes;
mod draws;
pub mod ended;
mod environment;
mod event_bus;
mod exchanging;
mod keeping;
mod limited;
mod ours;
mod outside;
mod reconciling;
mod refund;
mod reload;
mod starting;
mod tokens;
mod wallets;
