//! Waiting for a connection to a target under its limit.

use crate::connection::Connection;
use crate::error::ConnectError;
use crate::limit::{ConnectionLimit, ConnectionPermit, Grant, Queued};
use crate::pool::Pool;
use proxy_clock::{RequestTimers, Timer};
use proxy_limits::ClientKey;
use proxy_upstream::TargetId;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The result of a wait.
#[derive(Debug)]
pub enum Place<B> {
    /// A connection that another request of the same worker has returned.
    Connection(Connection<B>),
    /// A new connection may be made.
    Permit(ConnectionPermit),
}

/// A request's wait for a [`Place`]. If dropped, it leaves the queue, and its grant goes to the
/// next request.
#[derive(Debug)]
pub struct ConnectionWait<B> {
    pool: Rc<Pool<B>>,
    limit: Arc<ConnectionLimit>,
    queued: Queued,
}

impl<B> ConnectionWait<B> {
    /// Waits for a connection to `target`, or for a permit under `limit`. Clients take turns.
    #[must_use]
    pub fn for_connection(
        pool: &Rc<Pool<B>>,
        limit: &Arc<ConnectionLimit>,
        target: TargetId,
        client: ClientKey,
    ) -> Self {
        let member = pool.member(target);
        let member = member.filter(|member| Arc::ptr_eq(member.limit(), limit));
        Self {
            pool: Rc::clone(pool),
            limit: Arc::clone(limit),
            queued: limit.enter(client, member),
        }
    }

    /// Waits for a permit under `limit` for a shared connection. Clients take turns.
    #[must_use]
    pub fn for_permit(pool: &Rc<Pool<B>>, limit: &Arc<ConnectionLimit>, client: ClientKey) -> Self {
        Self {
            pool: Rc::clone(pool),
            limit: Arc::clone(limit),
            queued: limit.enter(client, None),
        }
    }

    /// Waits for at most `timeout`.
    ///
    /// # Errors
    /// [`ConnectError::LimitReached`] if none became free in time, [`ConnectError::TimedOut`] if
    /// the whole exchange exceeded its time.
    pub async fn within(
        mut self,
        timeout: Duration,
        timers: &RequestTimers,
    ) -> Result<Place<B>, ConnectError> {
        timers.start(Timer::UpstreamConnect, timeout);
        let waited = poll_fn(|cx| {
            if let Poll::Ready(place) = self.poll(cx) {
                return Poll::Ready(place);
            }
            match timers.deadline().take_expired() {
                Some((timer @ Timer::Total, after)) => {
                    Poll::Ready(Err(ConnectError::TimedOut { timer, after }))
                }
                Some(_) => Poll::Ready(Err(self.full())),
                None => Poll::Pending,
            }
        })
        .await;
        timers.stop();
        waited
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Place<B>, ConnectError>> {
        let granted = ready!(Pin::new(&mut self.queued.granted).poll(cx));
        let place = match granted {
            Ok(Grant::Permit(permit)) => Some(Place::Permit(permit)),
            Ok(Grant::Connection) => {
                let connection = self.pool.take_handed_over(self.queued.ticket);
                connection.map(Place::Connection)
            }
            Err(_) => None,
        };
        Poll::Ready(place.ok_or_else(|| self.full()))
    }

    fn full(&self) -> ConnectError {
        ConnectError::LimitReached {
            max: self.limit.max(),
        }
    }
}

impl<B> Drop for ConnectionWait<B> {
    fn drop(&mut self) {
        self.limit.leave(self.queued.ticket);
        if let Some(connection) = self.pool.take_handed_over(self.queued.ticket) {
            self.pool.checkin(connection);
        }
    }
}
