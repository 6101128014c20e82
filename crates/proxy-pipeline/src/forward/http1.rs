//! An attempt over HTTP/1.1.

use super::acquired::PooledConnection;
use super::attempts::{Answered, AttemptOutcome, Attempts};
use super::interim_fields;
use crate::response::interim;
use proxy_model::RetryCause;
use proxy_pool::SendError;

impl Attempts<'_, '_> {
    /// Sends the request on an exclusive connection, and waits for the head of its response.
    pub(super) async fn send_http1(&mut self, mut pooled: PooledConnection) -> AttemptOutcome {
        self.start_timer();
        let understands = self.client_takes_interim();
        let (exchange, route) = (&*self.exchange, self.to.route);
        let notice = |head: &[u8]| {
            if understands {
                let is_kept = |name: &_| interim_fields::is_kept(exchange, route, name);
                let kept = interim::for_clients(head, is_kept);
                exchange.client().queue_interim(&kept);
            }
        };
        let more = |out: &mut Vec<u8>| {
            if let Some(forwarded) = &exchange.forwarded {
                let completion = &exchange.completion;
                forwarded.write(
                    &completion.client.peer,
                    completion.record.correlation_id.as_bytes(),
                    out,
                );
            }
        };
        let deadline = self.timers.deadline();
        let connection = &mut pooled.connection;
        let request = &mut self.request;
        let sending = connection.send(self.expected, request, more, deadline, notice);
        match sending.await {
            Ok(status) => AttemptOutcome::Answered(Answered::Http1(status, pooled)),
            // The target had closed a pooled connection: nothing was sent, and it is not a failure.
            Err(SendError::UnsentRequest) if pooled.reused => {
                self.record_stale();
                AttemptOutcome::RetrySame
            }
            Err(fault) => {
                let problem = self.problem(&fault);
                let unanswered = pooled.connection.received() == 0;
                let Some(cause) = self.cause_of(&fault).filter(|_| unanswered) else {
                    return AttemptOutcome::Failed(problem);
                };
                if pooled.reused && cause == RetryCause::Reset {
                    if !self.take_stale_retry() {
                        return AttemptOutcome::Failed(problem);
                    }
                    // The connection may have been closing already when the request was sent.
                    self.record_retry();
                    self.record_stale();
                    self.fresh = true;
                    return AttemptOutcome::RetrySame;
                }
                if !self.take_retry(cause) {
                    return AttemptOutcome::Failed(problem);
                }
                self.record_retry();
                self.record_failure(&problem);
                AttemptOutcome::RetryNext
            }
        }
    }
}
