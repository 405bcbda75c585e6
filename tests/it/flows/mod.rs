//! The flows on real servers, cut off after every step, and after Redis has forgotten.

mod crash_points;
mod crashing;
mod world;
