//! A pool of tasks that serve streams, each task one stream after another.
//!
//! A task holds all state for serving a request, which makes it large: allocating one for each
//! stream would cost more than most of its work.

use super::stream::{StreamTask, serve};
use proxy_clock::Deadline;
use proxy_pipeline::Worker;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

/// Maximum number of idle tasks: about a megabyte.
const MAX_IDLE_TASKS: usize = 256;

/// The tasks that serve the streams of one listener's connections.
#[derive(Debug, Default)]
pub(crate) struct TaskPool(Rc<Idle>);

#[derive(Debug, Default)]
struct Idle(RefCell<Vec<Rc<PooledTask>>>);

/// A task, shared with the pool.
#[derive(Debug, Default)]
struct PooledTask {
    next: RefCell<Option<StreamTask>>,
    dismissed: Cell<bool>,
    /// Deadline of the current stream; expiry wakes the task.
    deadline: Rc<Deadline>,
}

impl TaskPool {
    /// Runs `stream_task` on an idle task, or on a new one.
    pub(super) fn begin(&self, worker: &Rc<Worker>, stream_task: StreamTask) {
        let free = self.0.0.borrow_mut().pop();
        if let Some(task) = free {
            *task.next.borrow_mut() = Some(stream_task);
            task.deadline.wake();
        } else {
            let task = Rc::new(PooledTask::with(stream_task));
            let running = run(Rc::downgrade(&self.0), Rc::clone(worker), task);
            drop(tokio::task::spawn_local(running));
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        for task in self.0.take() {
            task.dismissed.set(true);
            task.deadline.wake();
        }
    }
}

impl Idle {
    /// Adds an idle task to the pool. Returns false if the pool is full.
    fn take(&self, task: &Rc<PooledTask>) -> bool {
        let mut idle = self.0.borrow_mut();
        let wanted = idle.len() < MAX_IDLE_TASKS;
        if wanted {
            idle.push(Rc::clone(task));
        }
        wanted
    }
}

impl PooledTask {
    fn with(stream_task: StreamTask) -> Self {
        Self {
            next: RefCell::new(Some(stream_task)),
            ..Self::default()
        }
    }

    /// Resolves to true if a stream is queued, to false if the pool was dropped. The stream is not
    /// moved out, because it is large.
    async fn has_stream(&self) -> bool {
        poll_fn(|cx| {
            let has_stream = self.next.borrow().is_some();
            if has_stream || self.dismissed.get() {
                return Poll::Ready(has_stream);
            }
            self.deadline.watch(cx.waker());
            Poll::Pending
        })
        .await
    }
}

async fn run(idle: Weak<Idle>, worker: Rc<Worker>, task: Rc<PooledTask>) {
    while task.has_stream().await {
        let entry = worker.timers.register(Rc::clone(&task.deadline));
        serve(&task.next, &worker, &task.deadline).await;
        task.deadline.clear();
        drop(entry);
        let wanted = idle.upgrade().is_some_and(|idle| idle.take(&task));
        if !wanted {
            return;
        }
    }
}
