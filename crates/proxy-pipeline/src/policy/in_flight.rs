//! Refuses new requests while too many are in flight.

use crate::exchange::Exchange;
use proxy_errors::{Detail, Problem, Reason};

/// Takes a permit for a request in flight, held until the response's body ends.
pub(crate) fn admit(exchange: &mut Exchange) -> Result<(), Problem> {
    match exchange.worker().shared.in_flight.acquire() {
        Ok(permit) => {
            exchange.record().permit = Some(permit);
            Ok(())
        }
        Err(full) => {
            let (current, limit) = (u64::from(full.held), u64::from(full.max));
            let detail = Detail::Limit { current, limit };
            Err(Problem::new(Reason::InFlightLimit, detail))
        }
    }
}
