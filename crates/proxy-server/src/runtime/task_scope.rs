//! The background tasks of the control thread, bound to the active configuration.

use futures_util::FutureExt;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::SystemTime;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The running tasks of one kind, at most one for each identity `K`, on the runtime of the control
/// thread. Drop ends all of them.
///
/// `S` are the settings, which may change while a task runs. A task that panics is logged with its
/// name; the next [`Self::commit`] that has its identity starts it again.
#[derive(Debug)]
pub(crate) struct TaskScope<K, S> {
    now: fn() -> SystemTime,
    running: HashMap<K, RunningTask<S>>,
}

/// The tasks of a configuration that is not active yet. They start only when it is committed.
#[derive(Debug)]
pub(crate) struct TaskTransaction<K, S> {
    now: fn() -> SystemTime,
    tasks: Vec<(K, PreparedTask<S>)>,
}

/// Settings and clock of a task. Its timers are the runtime's, which a test can pause.
#[derive(Debug)]
pub(crate) struct TaskContext<S> {
    /// The current settings; another configuration may replace them. Closed when the task must end.
    pub(crate) settings: watch::Receiver<S>,
    /// Reads the time of day, which may jump: certificates expire by it.
    pub(crate) now: fn() -> SystemTime,
}

#[derive(Debug)]
struct RunningTask<S> {
    settings: watch::Sender<S>,
    task: AbortOnDropHandle<()>,
}

struct PreparedTask<S> {
    name: String,
    settings: watch::Sender<S>,
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<K: Eq + Hash, S: Clone + PartialEq> TaskScope<K, S> {
    /// A scope without tasks; `now` is their clock.
    pub(crate) fn new(now: fn() -> SystemTime) -> Self {
        Self {
            now,
            running: HashMap::new(),
        }
    }

    /// An empty transaction; committing it ends all tasks.
    pub(crate) fn begin(&self) -> TaskTransaction<K, S> {
        TaskTransaction {
            now: self.now,
            tasks: Vec::new(),
        }
    }

    /// Runs exactly the tasks of `transaction` from now on. A task that runs already keeps its
    /// state, and gets its settings if they differ. Returns the last settings of the tasks that
    /// were ended.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn commit(&mut self, transaction: TaskTransaction<K, S>) -> Vec<S> {
        let mut before = std::mem::take(&mut self.running);
        let mut finished = Vec::new();
        for (key, prepared) in transaction.tasks {
            let running = match before.remove(&key) {
                Some(running) if !running.task.is_finished() => running.with_settings_of(&prepared),
                other => {
                    finished.extend(other);
                    prepared.start()
                }
            };
            self.running.insert(key, running);
        }
        let ended = before.into_values().chain(finished);
        ended.map(|task| task.settings.borrow().clone()).collect()
    }

    /// Waits until all tasks have ended. If this future is dropped, the remaining tasks end.
    pub(crate) async fn join(&mut self) {
        for (_, RunningTask { settings, task }) in self.running.drain() {
            drop(task.await);
            drop(settings);
        }
    }

    /// The identities of the tasks.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.running.keys()
    }
}

impl<K, S> TaskTransaction<K, S> {
    /// Adds the task with the identity `key`, which must be unique in this transaction. `name`
    /// appears in the log. `work` must do nothing before its future is polled.
    pub(crate) fn add<F>(
        &mut self,
        key: K,
        name: String,
        settings: S,
        work: impl FnOnce(TaskContext<S>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, settings) = watch::channel(settings);
        let now = self.now;
        let prepared = PreparedTask {
            name,
            settings: sender,
            task: Box::pin(work(TaskContext { settings, now })),
        };
        self.tasks.push((key, prepared));
    }
}

impl<S: Clone + PartialEq> RunningTask<S> {
    /// Applies the settings of `prepared`.
    fn with_settings_of(self, prepared: &PreparedTask<S>) -> Self {
        let settings = prepared.settings.borrow().clone();
        self.settings.send_if_modified(|held| {
            let is_other = *held != settings;
            *held = settings;
            is_other
        });
        self
    }
}

impl<S> PreparedTask<S> {
    fn start(self) -> RunningTask<S> {
        let Self {
            name,
            settings,
            task,
        } = self;
        let running = async move {
            if AssertUnwindSafe(task).catch_unwind().await.is_err() {
                tracing::error!(
                    task = name,
                    "a background task panicked; a reload starts it again"
                );
            }
        };
        RunningTask {
            settings,
            task: AbortOnDropHandle::new(tokio::spawn(running)),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for PreparedTask<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTask")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
