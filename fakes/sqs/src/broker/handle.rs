//! Receipt handles: the queue, the message and the receipt that a handle was given out for, as text.

use crate::error::{ErrorKind, SqsError};
use crate::message::Seq;
use crate::queue::QueueId;

/// Every receipt handle begins like this.
const HANDLE_PREFIX: &str = "AQEB";

/// The handle of one delivery of a message.
pub(super) fn format_handle(queue: QueueId, seq: Seq, receipt: u32) -> String {
    format!("{HANDLE_PREFIX}{queue:016x}{seq:016x}{receipt:08x}")
}

/// The message and the receipt that a handle was given out for.
///
/// # Errors
/// `ReceiptHandleIsInvalid` for a handle of another queue, and for any other text.
pub(super) fn parse_handle(queue: QueueId, text: &str) -> Result<(Seq, u32), SqsError> {
    let parse = || {
        let digits = text.strip_prefix(HANDLE_PREFIX).filter(|digits| digits.len() == 40)?;
        let number = |range| u64::from_str_radix(digits.get(range)?, 16).ok();
        let receipt = u32::try_from(number(32..40)?).ok()?;
        Some((number(0..16)?, number(16..32)?, receipt))
    };
    match parse() {
        Some((given, seq, receipt)) if given == queue => Ok((seq, receipt)),
        Some(_) | None => Err(SqsError::new(
            ErrorKind::ReceiptHandleIsInvalid,
            format!("The input receipt handle \"{text}\" is not a valid receipt handle."),
        )),
    }
}
