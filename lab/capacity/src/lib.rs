//! `onsale capacity`: what a sale will take, said before it opens.
//!
//! A discrete-event simulation of the deployed engine. It stands on three things that are not its own: the meters of
//! the fakes (`fake-limits`), which have the services' limits; the engine's own rules of the gate and of the waiting
//! room, called as they are; and what each kind of work was measured to use (`onsale cost`). Its own are the crowd and
//! the way of a visitor: pages and documents at the edge, sign-in, joining, draw, turns, admission, hold, order, start
//! of a payment, callback, expiry, refund, and the settling of facts.
//!
//! Nobody is simulated who only waits: a crowd is a number in a bin of time, and whoever is let in is a buyer with
//! events of its own, who stands for several people where there would be too many. `docs/capacity.md` says what is
//! modelled, what is assumed, and how far it agrees with a real run.

mod check;
mod clock;
mod costs;
mod curves;
pub mod deployment;
pub mod endpoints;
pub mod forecast;

mod gate;
mod meters;
mod page;
mod plan;
mod polls;
pub mod ready;
mod room;
mod simulation;
mod stock;
mod visitors;

pub use check::{Check, Compared, check};
pub use costs::Costs;
pub use curves::{Curves, Point, curves};
pub use deployment::Deployment;
pub use forecast::{Forecast, forecast};
pub use page::{of_curves, of_forecast};
pub use plan::{Crowd, Plan};
pub use simulation::{Run, simulate};

/// Why it cannot be said, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
