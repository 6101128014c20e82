//! Refuses clients that did not show the certificate they must show.

use crate::client::Client;
use proxy_errors::{Detail, Problem, Reason};
use proxy_tls::ClientAuthVerdict;

/// Answers 495 to every request of a connection whose client certificate is missing or bad.
pub(crate) fn check(client: &Client) -> Result<(), Problem> {
    let Some(session) = &client.session else {
        return Ok(());
    };
    let reason = match &session.verdict {
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
