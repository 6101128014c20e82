//! The connection to a target: an exclusive one, or a stream of a shared one.

use super::acquired::{Acquired, PooledConnection, UpstreamConnection};
use super::attempts::Attempts;
use super::destination::within_try;
use crate::health::reachability;
use crate::upload::request_body::RequestBody;
use proxy_clock::Timer;
use proxy_framing::ProxyVersion;
use proxy_limits::ClientKey;
use proxy_plan::TargetPlan;
use proxy_pool::{
    Candidate, Checkout, ConnectError, ConnectSettings, Connecting, Connection, ConnectionLimit,
    ConnectionOwner, ConnectionPermit, ConnectionWait, Dialed, Place, Waiting, connect,
};
use proxy_upstream::TargetId;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

impl Attempts<'_, '_> {
    /// A connection to `target`: a pooled one, else a new one.
    pub(super) async fn acquire(&self, target: u16) -> Result<Acquired, ConnectError> {
        let plan = self.to.upstream.targets.get(usize::from(target));
        let plan = plan.ok_or(ConnectError::NoAddress)?;
        if self.to.upstream.http2 {
            return self.acquire_stream(target, plan).await;
        }
        let pooled = match self.owner() {
            _ if self.fresh => None,
            None => self.pool.checkout(plan.id),
            Some(owner) => self.pool.checkout_of_client(plan.id, &owner),
        };
        match pooled {
            Some(connection) => Ok(Acquired {
                connection: UpstreamConnection::Http1(PooledConnection {
                    connection,
                    reused: true,
                    at_hand: true,
                }),
                target,
            }),
            // Boxed, because it is rare and would enlarge every request's future.
            None => Box::pin(self.timed(self.open(target, plan.id))).await,
        }
    }

    /// Adds the time of `work` to the request's time for connections.
    async fn timed<T>(&self, work: impl Future<Output = T>) -> T {
        let since = self.exchange.worker().time.elapsed();
        let done = work.await;
        let took = self.exchange.worker().time.elapsed().saturating_sub(since);
        self.exchange.completion.record.waits.add_connecting(took);
        done
    }

    async fn open(&self, target: u16, origin: TargetId) -> Result<Acquired, ConnectError> {
        let candidate = self.candidate(target)?;
        let permit = match &candidate.settings.limit {
            None => None,
            Some(limit) => match self
                .place(limit, origin, candidate.settings.timeout)
                .await?
            {
                Place::Permit(permit) => Some(permit),
                Place::Connection(connection) => {
                    return Ok(Acquired {
                        connection: UpstreamConnection::Http1(PooledConnection {
                            connection,
                            reused: true,
                            at_hand: false,
                        }),
                        target,
                    });
                }
            },
        };
        let (dialed, origin) = self
            .dial(Candidate {
                permit,
                ..candidate
            })
            .await?;
        let Dialed {
            position,
            transport,
            permit,
        } = dialed;
        let limits = self.active.response_limits;
        let since = self.timers.clock().now();
        let connection = Connection::new(transport, limits, origin, since, permit);
        Ok(Acquired {
            connection: UpstreamConnection::Http1(PooledConnection {
                connection: connection.for_client(self.owner().map(Rc::new)),
                reused: false,
                at_hand: false,
            }),
            target: position,
        })
    }

    /// A new connection to `first`, or to another address of the same name that connects first.
    /// Addresses that fail in the meantime count as failed targets.
    pub(super) async fn dial(&self, first: Candidate) -> Result<(Dialed, TargetId), ConnectError> {
        let others = self.other_addresses(first.position);
        let other = |target| {
            let mut candidate = self.candidate(target).ok()?;
            if let Some(limit) = &candidate.settings.limit {
                candidate.permit = Some(limit.acquire()?);
            }
            Some(candidate)
        };
        let failed = |target, fault: &ConnectError| {
            self.exchange
                .address_failed(self.to.upstream, target, fault);
        };
        let (position, limit) = (first.position, first.settings.limit.clone());
        let dialed = match connect(first, &others, other, failed, &self.timers).await {
            Err(ConnectError::NoDescriptor(_)) => {
                // The descriptors of idle connections are of more use to this request.
                self.exchange.worker().free_descriptors();
                let mut again = self.candidate(position)?;
                if let Some(limit) = limit {
                    let full = ConnectError::LimitReached { max: limit.max() };
                    again.permit = Some(limit.acquire().ok_or(full)?);
                }
                connect(again, &[], |_| None, |_, _| {}, &self.timers).await?
            }
            dialed => dialed?,
        };
        let target = self.to.upstream.targets.get(usize::from(dialed.position));
        let target = target.ok_or(ConnectError::NoAddress)?;
        if self.to.upstream.http2 {
            dialed.transport.check_http2()?;
        }
        reachability::succeeded(self.exchange.worker(), self.to.upstream, dialed.position);
        Ok((dialed, target.id))
    }

    /// The other usable addresses of the DNS name of `target`, starting after it; empty for a
    /// target with an address.
    fn other_addresses(&self, target: u16) -> Vec<u16> {
        let targets = &self.to.upstream.targets;
        let chosen = targets.get(usize::from(target));
        let Some(chosen) = chosen.filter(|chosen| chosen.name.is_some()) else {
            return Vec::new();
        };
        let upstream = self.active.upstreams.get(self.to.upstream.index);
        let ready = upstream.map(|upstream| upstream.ready.borrow());
        let ready = ready.as_ref().map_or(&[][..], |ready| ready.targets());
        let is_other = |other: &u16| {
            let plan = targets.get(usize::from(*other));
            *other != target
                && !self.tried.contains(other)
                && plan.is_some_and(|plan| plan.position == chosen.position)
        };
        let (before, behind): (Vec<u16>, Vec<u16>) = ready
            .iter()
            .copied()
            .filter(is_other)
            .partition(|other| *other < target);
        behind.into_iter().chain(before).collect()
    }

    /// `target` without a permit, with the settings for this request's connection.
    pub(super) fn candidate(&self, target: u16) -> Result<Candidate, ConnectError> {
        let (plan, settings) = self.settings(target)?;
        Ok(Candidate {
            position: target,
            address: plan.state.address(),
            settings,
            permit: None,
        })
    }

    /// A permit for a new connection, or a connection returned meanwhile.
    async fn place(
        &self,
        limit: &Arc<ConnectionLimit>,
        origin: TargetId,
        timeout: Duration,
    ) -> Result<Place<RequestBody>, ConnectError> {
        if let Some(permit) = limit.acquire() {
            return Ok(Place::Permit(permit));
        }
        let wait = ConnectionWait::for_connection(&self.pool, limit, origin, self.client());
        wait.within(timeout, &self.timers).await
    }

    /// A stream of a shared connection.
    async fn acquire_stream(
        &self,
        target: u16,
        plan: &TargetPlan,
    ) -> Result<Acquired, ConnectError> {
        let mut first = true;
        loop {
            match self.pool.http2_pool().checkout(plan.id) {
                Checkout::StreamSlot(stream_slot) => {
                    return Ok(Acquired {
                        connection: UpstreamConnection::Http2(stream_slot),
                        target,
                    });
                }
                Checkout::Build(connecting) => {
                    return Box::pin(self.timed(self.build(target, connecting))).await;
                }
                Checkout::Wait(waiting) => {
                    Box::pin(self.timed(self.wait(&waiting, first))).await?;
                }
            }
            first = false;
        }
    }

    async fn build(&self, target: u16, connecting: Connecting) -> Result<Acquired, ConnectError> {
        let candidate = self.candidate(target)?;
        let permit = match &candidate.settings.limit {
            Some(limit) => Some(self.permit(limit, candidate.settings.timeout).await?),
            None => None,
        };
        let (dialed, origin) = self
            .dial(Candidate {
                permit,
                ..candidate
            })
            .await?;
        let Dialed {
            position,
            transport,
            permit,
        } = dialed;
        let built = connecting
            .for_target(origin)
            .finish(transport, permit)
            .await;
        let stream_slot = built.map_err(|error| {
            ConnectError::Io(io::Error::new(io::ErrorKind::ConnectionReset, error))
        })?;
        Ok(Acquired {
            connection: UpstreamConnection::Http2(stream_slot),
            target: position,
        })
    }

    /// Waits for another request's connection attempt, for at most the connect timeout.
    async fn wait(&self, waiting: &Waiting, first: bool) -> Result<(), ConnectError> {
        if first {
            let time = self.to.route.timeouts.connect;
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
    pub(super) async fn permit(
        &self,
        limit: &Arc<ConnectionLimit>,
        timeout: Duration,
    ) -> Result<ConnectionPermit, ConnectError> {
        if let Some(permit) = limit.acquire() {
            return Ok(permit);
        }
        let wait = ConnectionWait::for_permit(&self.pool, limit, self.client());
        match wait.within(timeout, &self.timers).await? {
            Place::Permit(permit) => Ok(permit),
            Place::Connection(_) => Err(ConnectError::LimitReached { max: limit.max() }),
        }
    }

    fn client(&self) -> ClientKey {
        ClientKey::from(self.exchange.completion.record.client_ip)
    }

    /// The target, with the settings for this request's connection.
    fn settings(&self, target: u16) -> Result<(&TargetPlan, ConnectSettings), ConnectError> {
        let (plan, connectors) = self.target(target).ok_or(ConnectError::NoAddress)?;
        let settings = ConnectSettings {
            timeout: within_try(self.to.route, self.to.route.timeouts.connect),
            proxy_header: self.owner().map(|owner| owner.proxy_header),
            ..connectors.clone()
        };
        Ok((plan, settings))
    }

    /// The client that a connection of this request is for; `None` for an upstream without PROXY
    /// protocol headers.
    #[inline]
    fn owner(&self) -> Option<ConnectionOwner> {
        let version = self.to.upstream.send_proxy?;
        Some(self.owner_by(version))
    }

    #[cold]
    fn owner_by(&self, version: ProxyVersion) -> ConnectionOwner {
        let completion = &self.exchange.completion;
        let (client, client_ip) = (&completion.client, completion.record.client_ip);
        // A proxy in front may spread the requests of one client over several connections.
        let is_named = client.peer.is_named_by_proxy || client.peer.ip != client_ip;
        ConnectionOwner {
            proxy_header: client.peer.proxy_header(version, client_ip).into(),
            connection: (!is_named).then(|| client.identity()),
        }
    }

    fn target(&self, target: u16) -> Option<(&TargetPlan, &ConnectSettings)> {
        let upstream = self.active.upstreams.get(self.to.upstream.index)?;
        let plan = self.to.upstream.targets.get(usize::from(target))?;
        Some((plan, upstream.connectors.targets.get(usize::from(target))?))
    }
}
