//! Futures with a time limit.

use proxy_clock::{Clock, Deadline, Timer};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// The deadline of a connection, with its clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionDeadline<'d> {
    pub(crate) clock: &'d Clock,
    pub(crate) deadline: &'d Deadline,
}

impl ConnectionDeadline<'_> {
    /// The result of `future`, if it is ready within `time`; `timer` is the operation for logs.
    pub(crate) async fn within<T>(
        self,
        timer: Timer,
        time: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let Self { clock, deadline } = self;
        deadline.start(clock, timer, time);
        let mut future = pin!(future);
        let done = poll_fn(|cx| {
            deadline.watch(cx.waker());
            if let Poll::Ready(done) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            match deadline.take_expired() {
                Some(_) => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await;
        deadline.stop();
        done
    }
}
