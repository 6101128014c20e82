//! A thread that waits for disks in place of the control thread.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use tokio::sync::oneshot;

/// One thread for all of a process's configurations, one after the other.
///
/// The allocator keeps freed memory by thread: configurations that were loaded by a new thread each time
/// would leave as much behind in every one of them.
#[derive(Clone, Debug)]
pub(crate) struct DiskThread {
    jobs: Sender<StreamTask>,
}

type StreamTask = Box<dyn FnOnce() + Send>;

impl DiskThread {
    /// Starts it. It ends when the last copy of this is dropped, or with the process if its disk does not answer.
    ///
    /// # Errors
    /// When the system grants no thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, waiting) = channel::<StreamTask>();
        let thread = thread::Builder::new().name("proxy-disk".to_owned());
        thread.spawn(move || waiting.into_iter().for_each(|job| job()))?;
        Ok(Self { jobs })
    }

    /// What `job` gives, which may block.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] when a job has panicked, this one or one before.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (answer, answered) = oneshot::channel();
        // The caller is gone if the process ends meanwhile.
        let job = Box::new(move || drop(answer.send(job())));
        let lost = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.jobs.send(job).map_err(|_| lost())?;
        answered.await.map_err(|_| lost())
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
