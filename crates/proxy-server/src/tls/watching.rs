//! Checking of certificate files on a blocking thread, so that the control thread never waits for a
//! disk.

use proxy_tls::{Change, TlsError, Watcher};
use std::future::pending;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;
use tokio::task::{JoinHandle, spawn_blocking};

/// A watcher that a blocking thread polls while the control thread continues.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedWatcher(Arc<Lock>);

#[expect(
    clippy::disallowed_types,
    reason = "taken by the thread that looks at certificate files, never for a request"
)]
type Lock = std::sync::Mutex<Watcher>;

/// The result of one check.
#[derive(Debug, Default)]
pub(crate) struct CertificateChanges {
    pub(super) changes: Vec<Change>,
    /// Errors of contents on disk that are not used for that reason.
    pub(super) kept: Vec<TlsError>,
}

impl SharedWatcher {
    pub(super) fn new(watcher: Watcher) -> Self {
        Self(Arc::new(watcher.into()))
    }

    /// Checks every file and applies new contents. Blocks.
    pub(super) fn poll(&self, now: SystemTime) -> CertificateChanges {
        let mut watcher = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = watcher.poll(now);
        let kept = watcher.faults().cloned().collect();
        CertificateChanges { changes, kept }
    }

    /// Like [`Self::poll`], on a blocking thread.
    pub(super) fn check(&self, now: SystemTime) -> JoinHandle<CertificateChanges> {
        let watcher = self.clone();
        spawn_blocking(move || watcher.poll(now))
    }
}

/// The result of the current check; pending if there is none.
pub(crate) async fn end(
    looking: &mut Option<JoinHandle<CertificateChanges>>,
) -> CertificateChanges {
    let Some(look) = looking else {
        return pending().await;
    };
    let changed = look.await.unwrap_or_default();
    *looking = None;
    changed
}
