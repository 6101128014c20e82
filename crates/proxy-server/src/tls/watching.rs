//! Certificate files are looked at by a thread that may wait for a disk, never by the control thread.

use proxy_tls::{Change, TlsError, Watcher};
use std::future::pending;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;
use tokio::task::{JoinHandle, spawn_blocking};

/// A watcher of files that a thread looks at while the control thread goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedWatcher(Arc<Lock>);

#[expect(
    clippy::disallowed_types,
    reason = "taken by the thread that looks at certificate files, never for a request"
)]
type Lock = std::sync::Mutex<Watcher>;

/// What one look at the files found.
#[derive(Debug, Default)]
pub(crate) struct CertificateChanges {
    pub(super) changes: Vec<Change>,
    /// Faults of content on disk that is not in use for that reason.
    pub(super) kept: Vec<TlsError>,
}

impl SharedWatcher {
    pub(super) fn new(watcher: Watcher) -> Self {
        Self(Arc::new(watcher.into()))
    }

    /// Looks at every file and takes new content into use. Blocks.
    pub(super) fn poll(&self, now: SystemTime) -> CertificateChanges {
        let mut watcher = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = watcher.poll(now);
        let kept = watcher.faults().cloned().collect();
        CertificateChanges { changes, kept }
    }

    /// The same on a thread of its own.
    pub(super) fn check(&self, now: SystemTime) -> JoinHandle<CertificateChanges> {
        let watcher = self.clone();
        spawn_blocking(move || watcher.poll(now))
    }
}

/// What a look that is under way has found; never, where none is.
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
