//! The way to a target: a connection of one's own, or a place on one that others use too.

use super::Attempts;
use crate::request_body::RequestBody;
use proxy_clock::Timer;
use proxy_limits::Permit;
use proxy_plan::TargetPlan;
use proxy_pool::{
    Building, ConnectFault, ConnectSettings, Connection, Lane, Transport, Waiting, Way, connect,
    wait_for_place,
};
use proxy_upstream::TargetId;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

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
}

impl Attempts<'_, '_> {
    /// A connection to `target`: one that was kept, else a new one.
    pub(super) async fn link(&self, target: u16) -> Result<Link, ConnectFault> {
        let plan = self.to.upstream.targets.get(usize::from(target));
        let plan = plan.ok_or(ConnectFault::NoAddress)?;
        let origin = (plan.id, plan.state.generation());
        if self.to.upstream.http2 {
            return self.lane(target, origin).await.map(Link::Http2);
        }
        let (id, generation) = origin;
        let kept = self.pool.take(id, generation);
        let used = kept.is_some();
        let connection = match kept {
            Some(connection) => connection,
            // Boxed: it is rare, and would make every request's future as large as itself.
            None => Box::pin(self.open(target, origin)).await?,
        };
        Ok(Link::Http1(Kept { connection, used }))
    }

    async fn open(
        &self,
        target: u16,
        origin: (TargetId, u32),
    ) -> Result<Connection<RequestBody>, ConnectFault> {
        let (transport, permit) = self.connect(target).await?;
        let limits = self.active.response_limits;
        Ok(Connection::new(transport, limits, origin, permit))
    }

    /// A place on a connection that carries many requests.
    async fn lane(
        &self,
        target: u16,
        (id, generation): (TargetId, u32),
    ) -> Result<Lane, ConnectFault> {
        let mut first = true;
        loop {
            match self.pool.trunks().way(id, generation) {
                Way::Lane(lane) => return Ok(lane),
                Way::Build(building) => return Box::pin(self.build(target, building)).await,
                Way::Wait(waiting) => self.wait(&waiting, first).await?,
            }
            first = false;
        }
    }

    async fn build(&self, target: u16, building: Building) -> Result<Lane, ConnectFault> {
        let (transport, permit) = self.connect(target).await?;
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

    async fn connect(&self, target: u16) -> Result<(Transport, Option<Permit>), ConnectFault> {
        let (plan, links) = self.target(target).ok_or(ConnectFault::NoAddress)?;
        let mut settings = links.clone();
        settings.timeout = self.to.route.times.connect;
        let permit = match &settings.limit {
            Some(limit) => Some(wait_for_place(limit, settings.timeout, &self.timers).await?),
            None => None,
        };
        let transport = connect(&plan.state.addresses(), &settings, &self.timers).await?;
        Ok((transport, permit))
    }

    fn target(&self, target: u16) -> Option<(&TargetPlan, &ConnectSettings)> {
        let upstream = self.active.upstreams.get(self.to.upstream.index)?;
        let plan = self.to.upstream.targets.get(usize::from(target))?;
        Some((plan, upstream.links.targets.get(usize::from(target))?))
    }
}
