//! Tasks that serve streams, one after the other.
//!
//! A task holds all that serving a request takes, which makes it large: making one for each stream
//! would cost more than much of what it does.

use super::stream::{StreamTask, serve};
use proxy_clock::Deadline;
use proxy_pipeline::Worker;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

/// Most tasks that wait for their next stream: about a megabyte.
const MOST_IDLE: usize = 256;

/// The tasks that serve the streams of one listener's connections.
#[derive(Debug, Default)]
pub(crate) struct TaskPool(Rc<Idle>);

/// Those that have nothing to do.
#[derive(Debug, Default)]
struct Idle(RefCell<Vec<Rc<PooledTask>>>);

/// A task, as others see it.
#[derive(Debug, Default)]
struct PooledTask {
    next: RefCell<Option<StreamTask>>,
    dismissed: Cell<bool>,
    /// Of the stream that is served, and what wakes the task.
    deadline: Rc<Deadline>,
}

impl TaskPool {
    /// Has `job` done by whoever is free.
    pub(super) fn begin(&self, worker: &Rc<Worker>, job: StreamTask) {
        let free = self.0.0.borrow_mut().pop();
        if let Some(hand) = free {
            *hand.next.borrow_mut() = Some(job);
            hand.deadline.wake();
        } else {
            let hand = Rc::new(PooledTask::with(job));
            let work = work(Rc::downgrade(&self.0), Rc::clone(worker), hand);
            drop(tokio::task::spawn_local(work));
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        for hand in self.0.take() {
            hand.dismissed.set(true);
            hand.deadline.wake();
        }
    }
}

impl Idle {
    /// Whether there is use for one more.
    fn take(&self, hand: &Rc<PooledTask>) -> bool {
        let mut idle = self.0.borrow_mut();
        let wanted = idle.len() < MOST_IDLE;
        if wanted {
            idle.push(Rc::clone(hand));
        }
        wanted
    }
}

impl PooledTask {
    fn with(job: StreamTask) -> Self {
        Self {
            next: RefCell::new(Some(job)),
            ..Self::default()
        }
    }

    /// True when there is a job, false when there will be no more. It stays where it is, being large.
    async fn has_job(&self) -> bool {
        poll_fn(|cx| {
            let has_job = self.next.borrow().is_some();
            if has_job || self.dismissed.get() {
                return Poll::Ready(has_job);
            }
            self.deadline.watch(cx.waker());
            Poll::Pending
        })
        .await
    }
}

async fn work(idle: Weak<Idle>, worker: Rc<Worker>, hand: Rc<PooledTask>) {
    while hand.has_job().await {
        let entry = worker.sweep.register(Rc::clone(&hand.deadline));
        serve(&hand.next, &worker, &hand.deadline).await;
        hand.deadline.clear();
        drop(entry);
        let wanted = idle.upgrade().is_some_and(|idle| idle.take(&hand));
        if !wanted {
            return;
        }
    }
}
