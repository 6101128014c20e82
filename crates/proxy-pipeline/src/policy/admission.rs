//! The permits of a request, as its service requires them.

use crate::exchange::Exchange;
use crate::policy::in_flight::{self, InFlightScope};
use crate::policy::{circuit_breaker, max_forwards, route_connections, tunnel_connections};
use proxy_errors::Problem;
use proxy_plan::{Outcome, RoutePlan};
use std::time::Duration;

/// Takes the request's permits, as its service requires, until `end_by` at most. Returns the time
/// after that.
pub(crate) async fn admit(
    exchange: &mut Exchange,
    route: &RoutePlan,
    outcome: &Outcome<'_>,
    end_by: Option<Duration>,
) -> Result<Duration, Problem> {
    match outcome {
        Outcome::Refuse(problem) => Err(problem.clone()),
        Outcome::Answer(_) | Outcome::Redirect(_) | Outcome::Respond(_) => Ok(exchange.began()),
        Outcome::Files => {
            let upstream = None;
            enter(exchange, InFlightScope { route, upstream }, end_by).await
        }
        Outcome::Forward(upstream, _) => {
            max_forwards::decrement(&mut exchange.head)?;
            circuit_breaker::check(exchange, route, upstream)?;
            tunnel_connections::admit(exchange)?;
            let upstream = Some(*upstream);
            enter(exchange, InFlightScope { route, upstream }, end_by).await
        }
    }
}

/// Takes the request's permits, for which it may wait in the queue. Returns the time after that.
pub(crate) async fn enter(
    exchange: &mut Exchange,
    holders: InFlightScope<'_>,
    end_by: Option<Duration>,
) -> Result<Duration, Problem> {
    route_connections::admit(exchange, holders.route.index)?;
    if in_flight::try_admit(exchange, holders) {
        return Ok(exchange.began());
    }
    // Boxed: it is rare, and would make every request's future larger.
    Box::pin(in_flight::wait(exchange, holders, end_by)).await?;
    Ok(exchange.worker().time.elapsed())
}
