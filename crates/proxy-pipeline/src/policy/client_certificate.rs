//! Refuses clients without a required certificate.

use crate::worker::connection_info::ConnectionInfo;
use crate::worker::time::Time;
use proxy_errors::{Detail, Problem, Reason};
use proxy_tls::{ClientAuthVerdict, VerifyFailure};
use std::time::Duration;

/// Refuses every request of a connection without a valid client certificate, with status 495.
/// `began` is the time of the request, since a certificate may expire while its connection is open.
pub(crate) fn check(client: &ConnectionInfo, time: &Time, began: Duration) -> Result<(), Problem> {
    let Some(session) = &client.session else {
        return Ok(());
    };
    let verdict = &session.verdict;
    if verdict.has_expired(time.unix(began)) {
        let reason = VerifyFailure::Expired;
        return refuse(&ClientAuthVerdict::Rejected { reason });
    }
    match verdict {
        ClientAuthVerdict::NotAsked | ClientAuthVerdict::Missing { .. }
            if client.terms.needs_certificate() =>
        {
            refuse(&ClientAuthVerdict::Missing { required: true })
        }
        ClientAuthVerdict::Missing { required: true } | ClientAuthVerdict::Rejected { .. } => {
            refuse(verdict)
        }
        ClientAuthVerdict::NotAsked
        | ClientAuthVerdict::Missing { required: false }
        | ClientAuthVerdict::Verified { .. } => Ok(()),
    }
}

fn refuse(verdict: &ClientAuthVerdict) -> Result<(), Problem> {
    let reason = match verdict {
        ClientAuthVerdict::Rejected { .. } => Reason::ClientCertificateInvalid,
        ClientAuthVerdict::NotAsked
        | ClientAuthVerdict::Missing { .. }
        | ClientAuthVerdict::Verified { .. } => Reason::ClientCertificateMissing,
    };
    Err(Problem::new(reason, Detail::text(verdict.to_string())))
}
