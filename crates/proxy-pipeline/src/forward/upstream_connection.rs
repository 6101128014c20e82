//! The connection to a target: an exclusive one, or a stream of a shared one.

use super::{Attempts, within_try};
use crate::request_body::RequestBody;
use proxy_clock::Timer;
use proxy_plan::TargetPlan;
use proxy_pool::{
    Checkout, ConnectError, ConnectSettings, Connecting, Connection, ConnectionLimit,
    ConnectionPermit, Place, PlaceWait, StreamSlot, UpstreamStream, Waiting, connect,
};
use proxy_upstream::TargetId;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A connection to a target.
pub(super) enum UpstreamConnection {
    Http1(PooledConnection),
    Http2(StreamSlot),
}

/// An exclusive connection.
pub(super) struct PooledConnection {
    pub(super) connection: Connection<RequestBody>,
    /// It has served a request before.
    pub(super) reused: bool,
    /// It was available without waiting.
    pub(super) at_hand: bool,
}

impl Attempts<'_, '_> {
    /// A connection to `target`: a pooled one, else a new one.
    pub(super) async fn acquire(&self, target: u16) -> Result<UpstreamConnection, ConnectError> {
        let plan = self.to.upstream.targets.get(usize::from(target));
        let plan = plan.ok_or(ConnectError::NoAddress)?;
        let origin = (plan.id, plan.state.generation());
        if self.to.upstream.http2 {
            return self
                .acquire_stream(target, plan)
                .await
                .map(UpstreamConnection::Http2);
        }
        let pooled = (!self.fresh)
            .then(|| self.pool.checkout(plan.id, &plan.state))
            .flatten();
        let pooled = match pooled {
            Some(connection) => PooledConnection {
                connection,
                reused: true,
                at_hand: true,
            },
            // Boxed, because it is rare and would enlarge every request's future.
            None => Box::pin(self.open(target, origin)).await?,
        };
        Ok(UpstreamConnection::Http1(pooled))
    }

    async fn open(
        &self,
        target: u16,
        origin: (TargetId, u32),
    ) -> Result<PooledConnection, ConnectError> {
        let (plan, settings) = self.settings(target)?;
        let permit = match &settings.limit {
            None => None,
            Some(limit) => match self.place(limit, origin, settings.timeout).await? {
                Place::Permit(permit) => Some(permit),
                Place::Connection(connection) => {
                    return Ok(PooledConnection {
                        connection,
                        reused: true,
                        at_hand: false,
                    });
                }
            },
        };
        let transport = self.dial(plan, &settings).await?;
        let limits = self.active.response_limits;
        Ok(PooledConnection {
            connection: Connection::new(transport, limits, origin, permit),
            reused: false,
            at_hand: false,
        })
    }

    /// A new connection, to the next address in rotation or the first that answers after it.
    async fn dial(
        &self,
        plan: &TargetPlan,
        settings: &ConnectSettings,
    ) -> Result<UpstreamStream, ConnectError> {
        let (addresses, first) = (plan.state.addresses(), plan.state.next_turn());
        connect(&addresses, first, settings, &self.timers).await
    }

    /// A permit for a new connection, or a connection returned meanwhile.
    async fn place(
        &self,
        limit: &Arc<ConnectionLimit>,
        origin: (TargetId, u32),
        timeout: Duration,
    ) -> Result<Place<RequestBody>, ConnectError> {
        if let Some(permit) = limit.acquire() {
            return Ok(Place::Permit(permit));
        }
        let wait = PlaceWait::for_connection(&self.pool, limit, origin);
        wait.within(timeout, &self.timers).await
    }

    /// A stream of a shared connection.
    async fn acquire_stream(
        &self,
        target: u16,
        plan: &TargetPlan,
    ) -> Result<StreamSlot, ConnectError> {
        let mut first = true;
        loop {
            match self.pool.http2_pool().checkout(plan.id, &plan.state) {
                Checkout::StreamSlot(stream_slot) => return Ok(stream_slot),
                Checkout::Build(connecting) => {
                    return Box::pin(self.build(target, connecting)).await;
                }
                Checkout::Wait(waiting) => self.wait(&waiting, first).await?,
            }
            first = false;
        }
    }

    async fn build(&self, target: u16, connecting: Connecting) -> Result<StreamSlot, ConnectError> {
        let (plan, settings) = self.settings(target)?;
        let permit = match &settings.limit {
            Some(limit) => Some(self.permit(limit, settings.timeout).await?),
            None => None,
        };
        let transport = self.dial(plan, &settings).await?;
        if !transport.speaks_http2() {
            let error = io::Error::other("the target did not agree to HTTP/2");
            return Err(ConnectError::Tls(error));
        }
        let built = connecting.finish(transport, permit).await;
        built.map_err(|error| ConnectError::Io(io::Error::other(error)))
    }

    /// Waits for another request's connection attempt, for at most the connect timeout.
    async fn wait(&self, waiting: &Waiting, first: bool) -> Result<(), ConnectError> {
        if first {
            let time = self.to.route.times.connect;
            self.timers.start(Timer::UpstreamConnect, time);
        }
        let mut notified = pin!(waiting.notified());
        poll_fn(|cx| {
            if notified.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            match self.timers.deadline().take_expired() {
                Some((timer, after)) => Poll::Ready(Err(ConnectError::TimedOut { timer, after })),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// A permit for a shared connection.
    async fn permit(
        &self,
        limit: &Arc<ConnectionLimit>,
        timeout: Duration,
    ) -> Result<ConnectionPermit, ConnectError> {
        if let Some(permit) = limit.acquire() {
            return Ok(permit);
        }
        let wait = PlaceWait::for_permit(&self.pool, limit);
        match wait.within(timeout, &self.timers).await? {
            Place::Permit(permit) => Ok(permit),
            Place::Connection(_) => Err(ConnectError::LimitReached { max: limit.max() }),
        }
    }

    /// The target, with the settings for this request's connection.
    fn settings(&self, target: u16) -> Result<(&TargetPlan, ConnectSettings), ConnectError> {
        let (plan, connectors) = self.target(target).ok_or(ConnectError::NoAddress)?;
        let settings = ConnectSettings {
            timeout: within_try(self.to.route, self.to.route.times.connect),
            ..connectors.clone()
        };
        Ok((plan, settings))
    }

    fn target(&self, target: u16) -> Option<(&TargetPlan, &ConnectSettings)> {
        let upstream = self.active.upstreams.get(self.to.upstream.index)?;
        let plan = self.to.upstream.targets.get(usize::from(target))?;
        Some((plan, upstream.connectors.targets.get(usize::from(target))?))
    }
}
