//! The way to a target: a connection of one's own, or a place on one that others use too.

use super::Attempts;
use crate::request_body::RequestBody;
use proxy_clock::Timer;
use proxy_plan::TargetPlan;
use proxy_pool::{
    Building, ConnectFault, ConnectSettings, Connection, ConnectionLimit, ConnectionPermit, Lane,
    Place, PlaceWait, Transport, Waiting, Way, connect,
};
use proxy_upstream::TargetId;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A way to a target.
pub(super) enum Link {
    Http1(Kept),
    Http2(Lane),
}

/// A connection of one's own.
pub(super) struct Kept {
    pub(super) connection: Connection<RequestBody>,
    /// Whether it had served a request before.
    pub(super) used: bool,
    /// Whether it was there without a wait.
    pub(super) at_hand: bool,
}

impl Attempts<'_, '_> {
    /// A connection to `target`: one that was kept, else a new one.
    pub(super) async fn link(&self, target: u16) -> Result<Link, ConnectFault> {
        let plan = self.to.upstream.targets.get(usize::from(target));
        let plan = plan.ok_or(ConnectFault::NoAddress)?;
        let origin = (plan.id, plan.state.generation());
        if self.to.upstream.http2 {
            return self.lane(target, plan).await.map(Link::Http2);
        }
        let kept = match self.pool.take(plan.id, &plan.state) {
            Some(connection) => Kept {
                connection,
                used: true,
                at_hand: true,
            },
            // Boxed: it is rare, and would make every request's future as large as itself.
            None => Box::pin(self.open(target, origin)).await?,
        };
        Ok(Link::Http1(kept))
    }

    async fn open(&self, target: u16, origin: (TargetId, u32)) -> Result<Kept, ConnectFault> {
        let (plan, settings) = self.settings(target)?;
        let permit = match &settings.limit {
            None => None,
            Some(limit) => match self.place(limit, origin, settings.timeout).await? {
                Place::Permit(permit) => Some(permit),
                Place::Connection(connection) => {
                    return Ok(Kept {
                        connection,
                        used: true,
                        at_hand: false,
                    });
                }
            },
        };
        let transport = self.dial(plan, &settings).await?;
        let limits = self.active.response_limits;
        Ok(Kept {
            connection: Connection::new(transport, limits, origin, permit),
            used: false,
            at_hand: false,
        })
    }

    /// A new connection, to the address whose turn it is or to the next one that answers.
    async fn dial(
        &self,
        plan: &TargetPlan,
        settings: &ConnectSettings,
    ) -> Result<Transport, ConnectFault> {
        let (addresses, turn) = (plan.state.addresses(), plan.state.next_turn());
        connect(&addresses, turn, settings, &self.timers).await
    }

    /// A place for one more connection, or a connection that was returned meanwhile.
    async fn place(
        &self,
        limit: &Arc<ConnectionLimit>,
        origin: (TargetId, u32),
        timeout: Duration,
    ) -> Result<Place<RequestBody>, ConnectFault> {
        if let Some(permit) = limit.acquire() {
            return Ok(Place::Permit(permit));
        }
        let wait = PlaceWait::for_connection(&self.pool, limit, origin);
        wait.within(timeout, &self.timers).await
    }

    /// A place on a connection that carries many requests.
    async fn lane(&self, target: u16, plan: &TargetPlan) -> Result<Lane, ConnectFault> {
        let mut first = true;
        loop {
            match self.pool.trunks().way(plan.id, &plan.state) {
                Way::Lane(lane) => return Ok(lane),
                Way::Build(building) => return Box::pin(self.build(target, building)).await,
                Way::Wait(waiting) => self.wait(&waiting, first).await?,
            }
            first = false;
        }
    }

    async fn build(&self, target: u16, building: Building) -> Result<Lane, ConnectFault> {
        let (plan, settings) = self.settings(target)?;
        let permit = match &settings.limit {
            Some(limit) => Some(self.permit(limit, settings.timeout).await?),
            None => None,
        };
        let transport = self.dial(plan, &settings).await?;
        if !transport.speaks_http2() {
            let error = io::Error::other("the target did not agree to HTTP/2");
            return Err(ConnectFault::Tls(error));
        }
        let built = building.finish(transport, permit).await;
        built.map_err(|error| ConnectFault::Io(io::Error::other(error)))
    }

    /// Waits until somebody else has made a connection, or has not; as long as making one may take.
    async fn wait(&self, waiting: &Waiting, first: bool) -> Result<(), ConnectFault> {
        if first {
            let time = self.to.route.times.connect;
            self.timers.start(Timer::UpstreamConnect, time);
        }
        let mut notified = pin!(waiting.news());
        poll_fn(|cx| {
            if notified.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            match self.timers.deadline().take_expired() {
                Some((timer, after)) => Poll::Ready(Err(ConnectFault::TimedOut { timer, after })),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// A place for a connection that is to be shared.
    async fn permit(
        &self,
        limit: &Arc<ConnectionLimit>,
        timeout: Duration,
    ) -> Result<ConnectionPermit, ConnectFault> {
        if let Some(permit) = limit.acquire() {
            return Ok(permit);
        }
        let wait = PlaceWait::for_permit(&self.pool, limit);
        match wait.within(timeout, &self.timers).await? {
            Place::Permit(permit) => Ok(permit),
            Place::Connection(_) => Err(ConnectFault::Full { max: limit.max() }),
        }
    }

    /// The target, and how it is connected to by this request.
    fn settings(&self, target: u16) -> Result<(&TargetPlan, ConnectSettings), ConnectFault> {
        let (plan, links) = self.target(target).ok_or(ConnectFault::NoAddress)?;
        let settings = ConnectSettings {
            timeout: self.to.route.times.connect,
            ..links.clone()
        };
        Ok((plan, settings))
    }

    fn target(&self, target: u16) -> Option<(&TargetPlan, &ConnectSettings)> {
        let upstream = self.active.upstreams.get(self.to.upstream.index)?;
        let plan = self.to.upstream.targets.get(usize::from(target))?;
        Some((plan, upstream.links.targets.get(usize::from(target))?))
    }
}
