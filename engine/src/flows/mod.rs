//! The flows of the engine, one file each: admit, reserve, start and close payments, pay, pay from a wallet, award
//! points, refund, give back, dispute, reissue, check in, cancel, expire, sync, tell, publish, load, reconcile,
//! archive, read captures, read bills, and the flows of a waiting room.
//!
//! Each flow calls the ports of [`crate::ports`], takes the time as an argument, and may be cut off after any step: the
//! next run of the same flow, or of another one, finishes the work.

pub mod admit;
pub mod archive;
pub mod award;
pub mod bills;
pub mod cancel;
pub mod cancel_sale;
pub mod captures;
pub mod check_in;
pub mod close;
pub mod discrepancy;
pub mod dispute;
pub mod exchange;
pub mod expire;
pub mod give_back;
pub mod hold;
pub mod load;
pub mod outside;
mod own;
pub mod pay;
pub mod post;
pub mod publish;
pub mod reconcile;
pub mod refund;
pub mod reissue;
pub mod reserve;
pub mod room;
pub mod standing;
pub mod start;
pub mod stuck;
pub mod sync;
pub mod tell;
pub mod tokens;
mod top_up;
pub mod unmatched;
pub mod unrecorded;
pub mod wallet;
