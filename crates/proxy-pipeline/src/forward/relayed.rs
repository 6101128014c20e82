//! The connection of a relay to a target.

use super::attempts::Attempts;
use super::destination::Destination;
use super::{advance, expected};
use crate::exchange::Exchange;
use crate::policy::circuit_breaker;
use crate::upload::request_body::RequestBody;
use http::HeaderMap;
use proxy_clock::Tick;
use proxy_errors::Problem;
use proxy_pool::{Candidate, ConnectError, ConnectionPermit, Dialed, UpstreamStream};
use std::rc::Rc;

/// Connects to the chosen target, or to further ones while connects fail and the route's `retry`
/// permits it.
pub(crate) async fn connect(
    exchange: &mut Exchange,
    to: Destination<'_>,
) -> Result<(UpstreamStream, Option<ConnectionPermit>), Problem> {
    circuit_breaker::admit(exchange, to.route, to.upstream)?;
    let timers = exchange.timers(to.total);
    let active = Rc::clone(exchange.active());
    advance(exchange, &active, to.upstream, to.choice.target);
    let pool = Rc::clone(&exchange.worker().pool);
    let expected = expected(exchange, to, false);
    let mut attempts = Attempts {
        forwarded_at: timers.clock().now(),
        request: exchange.take_request(HeaderMap::new(), RequestBody::default()),
        exchange,
        active,
        pool,
        to,
        timers,
        expected,
        replayable: true,
        upload: None,
        tried: Vec::new(),
        began_at: Tick::default(),
        retries: 0,
        fresh: true,
        was_closing: false,
    };
    match attempts.connect().await {
        Ok(Dialed {
            transport, permit, ..
        }) => {
            attempts.exchange.observe_outcome(to.upstream, false);
            circuit_breaker::settle(attempts.exchange, Some(false));
            Ok((transport, permit))
        }
        Err(problem) => {
            attempts.settle_failure(&problem);
            Err(problem)
        }
    }
}

impl Attempts<'_, '_> {
    /// Connects to targets in turn until one accepts.
    async fn connect(&mut self) -> Result<Dialed, Problem> {
        let mut target = self.to.choice.target;
        loop {
            self.began_at = self.timers.clock().now();
            let began = self.exchange.worker().time.elapsed();
            self.exchange.record_attempt(self.to.upstream.index, target);
            match self.dial_exclusive(target).await {
                Ok(dialed) => {
                    if dialed.position != target {
                        self.exchange.move_attempt(dialed.position);
                    }
                    self.exchange.connected();
                    self.answered(began);
                    return Ok(dialed);
                }
                Err(fault) => target = self.after_failed_connect(target, &fault)?,
            }
        }
    }

    /// Opens a new connection to `target`, within its `max-connections`.
    async fn dial_exclusive(&self, target: u16) -> Result<Dialed, ConnectError> {
        let candidate = self.candidate(target)?;
        let permit = match &candidate.settings.limit {
            Some(limit) => Some(self.permit(limit, candidate.settings.timeout).await?),
            None => None,
        };
        let (dialed, _) = self
            .dial(Candidate {
                permit,
                ..candidate
            })
            .await?;
        Ok(dialed)
    }
}
