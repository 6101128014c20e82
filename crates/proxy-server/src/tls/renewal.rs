//! Reports of renewed certificates, and the rotation of ticket keys.

use super::manager::CertificateManager;
use super::watching::CertificateChanges;
use proxy_telemetry::Registry;
use proxy_tls::{Change, TlsError};
use std::path::Path;
use std::time::SystemTime;

impl CertificateManager {
    /// The result of the next check of the files in use, after changed files are applied.
    pub(crate) async fn next(&mut self) -> CertificateChanges {
        self.watch.next().await
    }

    /// Reports the result of a check, and rotates ticket keys that are due.
    pub(crate) fn report(
        &mut self,
        changed: CertificateChanges,
        registry: &Registry,
        now: SystemTime,
    ) {
        let mut swapped = false;
        for change in changed.changes {
            swapped |= matches!(change, Change::Swapped { .. });
            log_change(&change);
        }
        if swapped {
            self.show_expiry(registry);
        }
        if let Some(Err(error)) = self.loader.tickets.get().map(|tickets| tickets.rotate(now)) {
            tracing::error!(%error, "cannot renew the keys of session tickets");
        }
    }
}

fn log_change(change: &Change) {
    match change {
        Change::Swapped { file } => log_in_use(file, "a new certificate is in use"),
        Change::Recovered { file } => log_in_use(file, "the certificate in use is back on disk"),
        Change::StapleDropped { file } => {
            tracing::warn!(file = %file.display(), "the OCSP response is stale and no longer sent");
        }
        Change::Kept { faults } => log_kept(faults),
    }
}

fn log_in_use(file: &Path, message: &str) {
    tracing::info!(file = %file.display(), "{message}");
}

fn log_kept(faults: &[TlsError]) {
    let faults: Vec<_> = faults.iter().map(TlsError::to_string).collect();
    let faults = faults.join("; ");
    tracing::error!(
        faults,
        "a new certificate cannot be used; the old one stays"
    );
}
