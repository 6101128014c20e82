//! The end of a request's span.

use crate::record::completion::CompletionGuard;
use proxy_errors::{Blame, Problem, Reason};
use proxy_telemetry::{Outcome, RequestSpan};
use std::time::Duration;

impl CompletionGuard {
    /// Hands the request's span to the exporter, if it has one.
    #[cold]
    pub(super) fn export_span(&mut self, outcome: &Outcome, now: Duration) {
        let trace = self.record.trace.as_mut();
        let Some(span) = trace.and_then(|trace| trace.span.take()) else {
            return;
        };
        let mut span = span.into_span();
        let record = &self.record;
        let unix = |at| self.worker.time.unix(at);
        let status = record.status.map(|status| status.as_u16());
        let problem = record.problem.as_deref();
        if let Some(last) = span.attempts.last_mut() {
            let blamed = problem.filter(|problem| problem.reason().blame() != Blame::Client);
            last.ended = now;
            last.error = blamed.map(|problem| problem.reason().as_str());
            last.status = status.filter(|_| record.upstream_took.is_some() && blamed.is_none());
        }
        for attempt in &mut span.attempts {
            attempt.started = unix(attempt.started);
            attempt.ended = unix(attempt.ended);
        }
        span.started = unix(record.began);
        span.ended = unix(now);
        span.protocol = record.protocol;
        span.client_ip = record.client_ip;
        span.peer_ip = self.client.peer.ip;
        span.correlation_id = RequestSpan::attribute(record.correlation_id.as_bytes());
        span.route = self.origin.route_id(record.parts).map(Into::into);
        let upstream = self.origin.upstream_name(record.parts);
        span.upstream = upstream.map(Into::into);
        span.status = status;
        span.reason = problem.map(Problem::reason).map(Reason::as_str);
        // A 4xx is the client's fault, and no error of a server's span.
        span.is_error = outcome.failed && !(400..500).contains(&outcome.status);
        span.bytes_in = outcome.bytes_in;
        span.bytes_out = outcome.bytes_out;
        span.queued = record.waits.queued();
        span.connecting = record.waits.connecting();
        span.upstream_took = record.upstream_took;
        self.worker.shared.spans.push(span);
    }
}
