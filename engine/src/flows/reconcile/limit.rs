//! The time limit of a part of a run.

use std::future::Future;
use std::pin::{Pin, pin};

use futures_util::future::{Either, select};

/// The time limit of some work.
pub(super) struct Limit<E> {
    end: Pin<Box<E>>,
    pub(super) is_over: bool,
}

impl<E: Future<Output = ()> + Send> Limit<E> {
    pub(super) fn until(end: E) -> Self {
        Self { end: Box::pin(end), is_over: false }
    }

    /// Does some work; `None` if the time is over before the work is done. The work is then dropped where it is.
    pub(super) async fn within<T>(&mut self, work: impl Future<Output = T> + Send) -> Option<T> {
        if self.is_over {
            return None;
        }
        match select(pin!(work), &mut self.end).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(((), _)) => {
                self.is_over = true;
                None
            }
        }
    }
}
