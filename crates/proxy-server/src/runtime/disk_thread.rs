//! A thread for blocking file operations of the control thread.

use std::io;
use std::sync::mpsc::{SendError, Sender, channel};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// Maximum time that the exit of the process waits for jobs that are not done yet.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// A single thread for all loads of the configuration, in sequence.
///
/// The allocator keeps freed memory per thread: a new thread for each load would leak
/// memory each time.
#[derive(Clone, Debug)]
pub(crate) struct DiskThread {
    jobs: Sender<DiskJob>,
}

type DiskJob = Box<dyn FnOnce() + Send>;

impl DiskThread {
    /// Starts the thread. It ends on drop, or with the process if its disk does not respond.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, waiting) = channel::<DiskJob>();
        let thread = thread::Builder::new().name("proxy-disk".to_owned());
        thread.spawn(move || waiting.into_iter().for_each(|job| job()))?;
        Ok(Self { jobs })
    }

    /// Runs `job`, which may block, and returns its result.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] if this job or an earlier one panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (answer, answered) = oneshot::channel();
        // The receiver is dropped if the process ends.
        let job = Box::new(move || drop(answer.send(job())));
        let lost = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.jobs.send(job).map_err(|_| lost())?;
        answered.await.map_err(|_| lost())
    }

    /// Queues `job`, which may block, without waiting for it. Runs it here if an earlier one
    /// panicked.
    pub(crate) fn leave(&self, job: impl FnOnce() + Send + 'static) {
        if let Err(SendError(job)) = self.jobs.send(Box::new(job)) {
            job();
        }
    }

    /// Waits until the queued jobs are done, for at most [`SETTLE_TIME`].
    pub(crate) async fn settle(&self) {
        let settled = tokio::time::timeout(SETTLE_TIME, self.run(|| ())).await;
        if settled.is_err() {
            tracing::warn!("the disk does not answer; files of Unix sockets may stay");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_done_one_after_the_other_by_one_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let disk = DiskThread::start().unwrap();
            let first = disk.run(|| thread::current().id()).await.unwrap();
            let second = disk.run(|| thread::current().id()).await.unwrap();

            assert_eq!(first, second);
            assert_ne!(first, thread::current().id());
        });
    }
}
