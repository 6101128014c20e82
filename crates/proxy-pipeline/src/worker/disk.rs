//! Threads for blocking file operations: a bounded number for each root, so that a mount that hangs
//! affects only its own files.

use bytes::Bytes;
use proxy_files::{Content, Directory, FileError, FileRequest, FileResponse};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Maximum number of threads of one worker for one root.
const THREADS_PER_ROOT: usize = 8;

/// The queues of one worker, by root. They outlive plans, so that threads that hang still count.
#[derive(Debug, Default)]
pub(crate) struct Disks(RefCell<BTreeMap<PathBuf, Disk>>);

/// The queue of one root.
pub(crate) type Disk = Arc<JobQueue<DiskJob>>;

/// A file operation. Its result is dropped if the request was cancelled.
#[derive(Debug)]
pub(crate) enum DiskJob {
    /// Opens a file and reads its first chunk.
    Open {
        folder: Arc<Directory>,
        asked: Box<FileRequest>,
        now: SystemTime,
        answer: oneshot::Sender<Result<(FileResponse, Bytes), FileError>>,
    },
    /// Reads the next chunk of a file.
    Read {
        content: Content,
        answer: oneshot::Sender<(Content, io::Result<Bytes>)>,
    },
}

impl Disks {
    /// The queue for files beneath `root`.
    pub(crate) fn for_root(&self, root: &Path) -> Disk {
        if let Some(disk) = self.0.borrow().get(root) {
            return Arc::clone(disk);
        }
        let work = JobHandler {
            run: DiskJob::run,
            is_wanted: DiskJob::is_wanted,
        };
        let disk = Arc::new(JobQueue::new(THREADS_PER_ROOT, work));
        let known = Arc::clone(&disk);
        self.0.borrow_mut().insert(root.to_owned(), known);
        disk
    }

    /// Removes the queues without work.
    pub(crate) fn forget_idle(&self) {
        self.0.borrow_mut().retain(|_, disk| disk.is_busy());
    }
}

impl DiskJob {
    /// Executes the operation. Blocks.
    fn run(self) {
        match self {
            Self::Open {
                folder,
                asked,
                now,
                answer,
            } => {
                let opened = folder.serve(&asked, now).and_then(first_piece);
                drop(answer.send(opened));
            }
            Self::Read {
                mut content,
                answer,
            } => {
                let piece = content.read();
                drop(answer.send((content, piece)));
            }
        }
    }

    /// Returns true if the request was not cancelled.
    fn is_wanted(&self) -> bool {
        match self {
            Self::Open { answer, .. } => !answer.is_closed(),
            Self::Read { answer, .. } => !answer.is_closed(),
        }
    }
}

/// Reads the first chunk of an opened file.
fn first_piece(mut served: FileResponse) -> Result<(FileResponse, Bytes), FileError> {
    let piece = served.content.as_mut().map(Content::read);
    let piece = piece.transpose()?.unwrap_or_default();
    Ok((served, piece))
}

/// A queue of blocking jobs, executed in order by a bounded number of threads.
#[derive(Debug)]
pub(crate) struct JobQueue<J> {
    max_threads: usize,
    work: JobHandler<J>,
    state: Lock<J>,
}

/// The functions that handle a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobHandler<J> {
    /// Executes the job. Blocks.
    pub(crate) run: fn(J),
    /// Returns true if the job's result is still needed.
    pub(crate) is_wanted: fn(&J) -> bool,
}

#[expect(
    clippy::disallowed_types,
    reason = "held for a push or a pop, between threads that read files of one root for one worker"
)]
type Lock<J> = std::sync::Mutex<QueueState<J>>;

#[derive(Debug)]
struct QueueState<J> {
    waiting: VecDeque<J>,
    threads: usize,
    /// Number of waiting jobs at which cancelled ones are removed next.
    sweep_at: usize,
}

/// Minimum number of waiting jobs at which cancelled ones are removed.
const MIN_SWEEP_AT: usize = 64;

impl<J: Send + 'static> JobQueue<J> {
    pub(crate) fn new(max_threads: usize, work: JobHandler<J>) -> Self {
        let state = QueueState {
            waiting: VecDeque::new(),
            threads: 0,
            sweep_at: MIN_SWEEP_AT,
        };
        Self {
            max_threads,
            work,
            state: state.into(),
        }
    }

    /// Queues `job` for the next free thread.
    pub(crate) fn submit(self: &Arc<Self>, job: J) {
        let mut state = self.lock();
        if state.sweep_at <= state.waiting.len() {
            state.waiting.retain(self.work.is_wanted);
            state.sweep_at = MIN_SWEEP_AT.max(state.waiting.len() * 2);
        }
        state.waiting.push_back(job);
        if state.threads == self.max_threads {
            return;
        }
        state.threads += 1;
        drop(state);
        let thread = Thread {
            queue: Arc::clone(self),
            is_over: false,
        };
        drop(spawn_blocking(move || thread.work()));
    }

    /// Returns true if a job is being executed.
    pub(crate) fn is_busy(&self) -> bool {
        self.lock().threads > 0
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Thread<J: Send + 'static> {
    queue: Arc<JobQueue<J>>,
    /// The slot has been released: drop must not do it again.
    is_over: bool,
}

impl<J: Send + 'static> Thread<J> {
    fn work(mut self) {
        while let Some(job) = self.next() {
            if (self.queue.work.is_wanted)(&job) {
                (self.queue.work.run)(job);
            }
        }
    }

    fn next(&mut self) -> Option<J> {
        let mut state = self.queue.lock();
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.threads -= 1;
            self.is_over = true;
        }
        next
    }
}

impl<J: Send + 'static> Drop for Thread<J> {
    /// Releases the slot after a panic too.
    fn drop(&mut self) {
        if !self.is_over {
            self.queue.lock().threads -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tokio::runtime::Builder;

    type Job = (Arc<JobQueueGate>, mpsc::Sender<u32>, u32);

    /// A lock that is held while a job is to hang.
    #[expect(clippy::disallowed_types, reason = "a test may wait")]
    type JobQueueGate = std::sync::Mutex<()>;

    const WORK: JobHandler<Job> = JobHandler {
        run,
        is_wanted: |(_, _, number)| *number != UNWANTED,
    };

    const UNWANTED: u32 = 7;

    fn run((gate, done, number): Job) {
        drop(gate.lock());
        done.send(number).unwrap_or_default();
    }

    #[test]
    fn a_root_that_hangs_costs_its_own_threads_only() {
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.unwrap();
        let _entered = runtime.enter();
        let (done, finished) = mpsc::channel();
        let (stuck, free) = <(Arc<JobQueueGate>, Arc<JobQueueGate>)>::default();
        let held = stuck.lock().unwrap();
        let [hanging, other] = [0, 1].map(|_| Arc::new(JobQueue::new(2, WORK)));

        for number in 0..200 {
            hanging.submit((Arc::clone(&stuck), done.clone(), number));
        }
        other.submit((Arc::clone(&free), done.clone(), 1_000));

        assert_eq!(finished.recv().unwrap(), 1_000);
        assert!(hanging.is_busy());
        assert_eq!(hanging.lock().threads, 2);
        assert!(!hanging.lock().waiting.iter().any(|job| job.2 == UNWANTED));
        drop(held);
        drop(done);
        let mut numbers: Vec<u32> = finished.iter().take(199).collect();
        numbers.sort_unstable();
        let wanted = (0..200).filter(|number| *number != UNWANTED);
        assert_eq!(numbers, wanted.collect::<Vec<_>>());
    }
}
