//! Checking of certificate files on a blocking thread, so that the control thread never waits for a
//! disk.

use crate::runtime::system_clock;
use crate::runtime::task_scope::{TaskContext, TaskScope};
use proxy_tls::{Change, TlsError, Watcher};
use std::future::pending;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;
use tokio::time::MissedTickBehavior;

/// Interval of checking every file.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The task that checks the files in use: one for the lifetime of the process, so that the result
/// of a check during a reload is not lost.
#[derive(Debug)]
pub(super) struct CertificateWatch {
    tasks: TaskScope<(), SharedWatcher>,
    sender: Sender<CertificateChanges>,
    changes: Receiver<CertificateChanges>,
}

impl CertificateWatch {
    /// A watch without a task.
    pub(super) fn new() -> Self {
        // The next check waits until the result of the last has been taken.
        let (sender, changes) = channel(1);
        Self {
            tasks: TaskScope::new(system_clock::now),
            sender,
            changes,
        }
    }

    /// Checks exactly the files of `watcher` from now on.
    pub(super) fn apply(&mut self, watcher: SharedWatcher) {
        let mut tasks = self.tasks.begin();
        let sender = self.sender.clone();
        let name = "watch of certificates".to_owned();
        tasks.add((), name, watcher, |context| watch(context, sender));
        self.tasks.commit(tasks);
    }

    /// The result of the next check.
    pub(super) async fn next(&mut self) -> CertificateChanges {
        match self.changes.recv().await {
            Some(changes) => changes,
            // The channel is open as long as its sender, a field of this value.
            None => pending().await,
        }
    }
}

/// A watcher that a blocking thread polls while the control thread continues.
#[derive(Clone, Debug)]
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
}

/// Watchers are equal if they are the same.
impl PartialEq for SharedWatcher {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Checks every file once in each interval, on a blocking thread that takes as long as the disk
/// does. A check that panics is logged, and the next one follows.
async fn watch(context: TaskContext<SharedWatcher>, changes: Sender<CertificateChanges>) {
    let TaskContext { settings, now } = context;
    let mut timer = tokio::time::interval(CHECK_INTERVAL);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        timer.tick().await;
        let watcher = settings.borrow().clone();
        let checked = spawn_blocking(move || watcher.poll(now())).await;
        let checked = checked.unwrap_or_else(|error| {
            tracing::error!(%error, "a check of the certificate files panicked");
            CertificateChanges::default()
        });
        if changes.send(checked).await.is_err() {
            return;
        }
    }
}
