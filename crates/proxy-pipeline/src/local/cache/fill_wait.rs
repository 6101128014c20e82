//! The wait of a request for another request's fetch.

use crate::exchange::Exchange;
use crate::failure::timeout_problem;
use proxy_cache::{FillWait, StoredResponse};
use proxy_clock::Timer;
use proxy_errors::Problem;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

pub(super) enum Waited {
    /// The fetch has ended; `None` without a response to share.
    Finished(Option<Arc<StoredResponse>>),
    /// The fetch takes longer than the wait.
    TimedOut,
}

/// Waits for another request's response, for at most `max_wait`.
///
/// # Errors
/// The request's own time, which ends at `end_by`, is over first.
pub(super) async fn wait(
    exchange: &Exchange,
    fill_wait: FillWait,
    max_wait: Duration,
    end_by: Option<Duration>,
) -> Result<Waited, Problem> {
    let now = exchange.worker().time.elapsed();
    let timers = exchange.timers(end_by.map(|end| end.saturating_sub(now)));
    timers.start(Timer::ResponseHeader, max_wait);
    let mut fill_wait = pin!(fill_wait);
    let waited = poll_fn(|cx| {
        if let Poll::Ready(response) = fill_wait.as_mut().poll(cx) {
            return Poll::Ready(Ok(Waited::Finished(response)));
        }
        match timers.deadline().take_expired() {
            Some((timer @ Timer::Total, after)) => Poll::Ready(Err(timeout_problem(timer, after))),
            Some(_) => Poll::Ready(Ok(Waited::TimedOut)),
            None => Poll::Pending,
        }
    });
    let waited = waited.await;
    timers.stop();
    waited
}
