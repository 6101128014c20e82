//! Refuses clients without a required certificate.

use crate::worker::connection_info::ConnectionInfo;
use crate::worker::time::Time;
use proxy_errors::{Detail, Problem, Reason};
use proxy_tls::{ClientAuthVerdict, VerifyFailure};
use std::time::Duration;

/// Answers 495 to every request of a connection with a missing or rejected client certificate.
pub(crate) fn check(client: &ConnectionInfo, time: &Time, began: Duration) -> Result<(), Problem> {
    let Some(session) = &client.session else {
        return Ok(());
    };
    if session.verdict.has_expired(time.unix(began)) {
        let reason = VerifyFailure::Expired;
        let verdict = ClientAuthVerdict::Rejected { reason };
        let detail = Detail::text(verdict.to_string());
        return Err(Problem::new(Reason::ClientCertificateInvalid, detail));
    }
    let reason = match &session.verdict {
        ClientAuthVerdict::NotAsked | ClientAuthVerdict::Missing { .. }
            if client.terms.needs_certificate() =>
        {
            let verdict = ClientAuthVerdict::Missing { required: true };
            let detail = Detail::text(verdict.to_string());
            return Err(Problem::new(Reason::ClientCertificateMissing, detail));
        }
        ClientAuthVerdict::NotAsked
        | ClientAuthVerdict::Verified { .. }
        | ClientAuthVerdict::Missing { required: false } => return Ok(()),
        ClientAuthVerdict::Missing { required: true } => Reason::ClientCertificateMissing,
        ClientAuthVerdict::Rejected { .. } => Reason::ClientCertificateInvalid,
    };
    Err(Problem::new(
        reason,
        Detail::text(session.verdict.to_string()),
    ))
}
