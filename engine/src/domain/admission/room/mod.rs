//! The waiting room: it decides in what order members are admitted, and how many at a time.
//!
//! Whoever joins gets an *index* ([`join`]). The joins of a *window* are drawn together: [`shuffle`] makes their
//! *places* out of a seed that [`draw`] derives from what was published before anybody could know it, and
//! [`tree`] proves who was in the draw. [`serving`] moves the *serving number*, below which places are due,
//! one *turn* at a time, by what the gates count ([`counts`]); [`log`] is the chain of records of all that, by
//! which anybody checks it afterwards. People see the [`document`], and a gate decides by the [`view`].
//!
//! # First bytes
//!
//! Everything that is hashed here has a form that its first byte or its length identifies, so that no text
//! is another's:
//!
//! | first byte | what follows | module |
//! |---|---|---|
//! | `0x00` | a leaf: one who joined; nothing at all if nobody holds the index | [`tree`], [`draw`] |
//! | `0x01` | a node: two hashes | [`tree`] |
//! | `0x02`, `0x03` | the seed of the first window, by beacon or by secret | [`draw`] |
//! | `0x04` | the seed of a later window | [`draw`] |
//! | `0x05` | a code by which a group is joined | [`code`] |
//! | `0x06` | the seed of the first window after a beacon that was given up | [`draw`] |
//! | `0x7b` (`{`) | a record of the log, which is JSON | [`log`] |
//!
//! Two inputs have no such byte, because others have fixed their form: the commitment (the 32 bytes of the secret) and
//! the steps of the shuffle (the 32 bytes of the seed, and one or five more).

pub mod code;
pub mod counts;
pub mod document;
pub mod draw;
pub mod join;
pub mod leaves;
pub mod log;
pub mod memory;
pub mod serving;
pub mod shuffle;
pub mod slot;
pub mod stock;
pub mod tree;
pub mod view;
pub mod visit;
pub mod watch;
