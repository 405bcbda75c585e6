//! What can be checked by reading the repository and asking cargo: one binary that links none of our crates, one
//! module a subject.

#![allow(
    clippy::expect_used,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod architecture;
mod contributing;
mod documents;
mod hazards;
mod vocabulary;
