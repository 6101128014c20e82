//! Relaying of connections without requests: the decision, the connection to a target, and its
//! record.

mod copy;
mod half;
mod stream;

pub use stream::RelayStream;

use crate::exchange::Exchange;
use crate::failure::{panic, timeout_problem};
use crate::forward;
use crate::forward::destination::Destination;
use crate::pipeline::{Decided, count_unrouted, decide};
use crate::policy::rate_limit::{self, Checked};
use crate::policy::{circuit_breaker, route_connections};
use crate::record::completion::CompletionGuard;
use crate::response::tunnel::{IdleTimer, TunnelEnd};
use crate::worker::connection_info::RequestStream;
use crate::worker::state::Worker;
use copy::Copy;
use http::StatusCode;
use proxy_clock::{Clock, Deadline, Timer};
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::{Outcome, RateStage};
use proxy_pool::{ConnectionPermit, UpstreamStream};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// A connection of a client with one to a target; its record is written when it is dropped.
#[derive(Debug)]
pub struct Relay {
    target: UpstreamStream,
    /// Maximum time without traffic in either direction.
    idle: Duration,
    permit: Option<ConnectionPermit>,
    completion: Box<CompletionGuard>,
}

/// Connects a client's connection to a target, as the plan decides by its listener, its server name
/// and the client's address. `None` if it is refused, which is recorded.
pub async fn open_relay(
    worker: Rc<Worker>,
    stream: RequestStream,
    server_name: Option<&str>,
) -> Option<Relay> {
    let mut exchange = Exchange::relayed(worker, stream, server_name);
    let connected = panic::contain(pin!(connect(&mut exchange))).await;
    match connected {
        Ok(Connected {
            target,
            permit,
            idle,
        }) => {
            let mut completion = exchange.completion;
            completion.record.status = Some(StatusCode::OK);
            completion.origin.extract(completion.record.parts);
            Some(Relay {
                target,
                idle,
                permit,
                completion,
            })
        }
        Err(problem) => {
            // No response is sent: a relayed protocol has no error messages of the proxy.
            let status = exchange.refuse(problem).status();
            exchange.record().status = Some(status);
            None
        }
    }
}

/// A connection to a target.
struct Connected {
    target: UpstreamStream,
    permit: Option<ConnectionPermit>,
    idle: Duration,
}

async fn connect(exchange: &mut Exchange) -> Result<Connected, Problem> {
    let active = Rc::clone(exchange.active());
    let Decided { route, outcome, .. } = match decide(exchange, &active) {
        Ok(decided) => decided,
        Err(problem) => return Err(count_unrouted(exchange, problem)),
    };
    exchange.set_route(route);
    let stage = RateStage::First;
    if rate_limit::check(exchange, route.index, stage)? == Checked::NotShared {
        rate_limit::check_shared(exchange, route.index, stage).await?;
    }
    let (upstream, choice) = match outcome {
        Outcome::Forward(upstream, choice) => (upstream, choice),
        Outcome::Refuse(problem) => return Err(problem),
        Outcome::Answer(_) | Outcome::Files | Outcome::Redirect(_) | Outcome::Respond(_) => {
            let detail = Detail::text("a relayed connection has no response");
            return Err(Problem::new(Reason::InternalError, detail));
        }
    };
    circuit_breaker::check(exchange, route, upstream)?;
    route_connections::admit(exchange, route.index)?;
    let destination = Destination {
        route,
        upstream,
        choice,
        total: None,
    };
    let (target, permit) = forward::relayed::connect(exchange, destination).await?;
    Ok(Connected {
        target,
        permit,
        idle: route.timeouts.tunnel_idle,
    })
}

impl Relay {
    /// Copies bytes between `client`, which has sent `early`, and the target until both have
    /// closed, one fails, no byte moves for the idle time, or the route or target is removed.
    /// Resets both sides unless both have closed.
    pub async fn carry(
        self,
        mut client: impl RelayStream,
        early: Vec<u8>,
        clock: &Clock,
        deadline: &Deadline,
    ) {
        let Self {
            mut target,
            idle,
            permit,
            mut completion,
        } = self;
        let mut removed = None;
        let (end, carried) = {
            let is_cut = || {
                removed = completion.removed();
                removed.is_some()
            };
            let copy = Copy::new(&mut client, &mut target, early);
            let timer = IdleTimer {
                clock,
                deadline,
                idle,
            };
            copy.run(timer, is_cut).await
        };
        if end != TunnelEnd::Closed {
            client.abort();
            RelayStream::abort(&mut target);
        }
        let problem = match end {
            TunnelEnd::Idle(after) => Some(timeout_problem(Timer::TunnelIdle, after)),
            TunnelEnd::Cut => removed,
            TunnelEnd::Closed | TunnelEnd::Broken => None,
        };
        completion.record.problem = problem.map(Box::new);
        completion.record.bytes_out = carried.down;
        completion.record.tunnelled_in = carried.up;
        completion.record.complete = true;
        drop(permit);
    }
}
