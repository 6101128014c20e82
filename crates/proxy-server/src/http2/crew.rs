//! Tasks that serve streams, one after the other.
//!
//! A task holds all that serving a request takes, which makes it large: making one for each stream
//! would cost more than much of what it does.

use super::stream::{Job, serve};
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
pub(crate) struct Crew(Rc<Idle>);

/// Those that have nothing to do.
#[derive(Debug, Default)]
struct Idle(RefCell<Vec<Rc<Hand>>>);

/// A task, as others see it.
#[derive(Debug, Default)]
struct Hand {
    next: RefCell<Option<Job>>,
    dismissed: Cell<bool>,
    /// Of the stream that is served, and what wakes the task.
    deadline: Rc<Deadline>,
}

impl Crew {
    /// Has `job` done by whoever is free.
    pub(super) fn begin(&self, worker: &Rc<Worker>, job: Job) {
        let free = self.0.0.borrow_mut().pop();
        if let Some(hand) = free {
            hand.next.replace(Some(job));
            hand.deadline.wake();
        } else {
            let work = work(Rc::downgrade(&self.0), Rc::clone(worker), job);
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
    fn take(&self, hand: &Rc<Hand>) -> bool {
        let mut idle = self.0.borrow_mut();
        let wanted = idle.len() < MOST_IDLE;
        if wanted {
            idle.push(Rc::clone(hand));
        }
        wanted
    }
}

impl Hand {
    /// The next job; none when there will be no more.
    async fn job(&self) -> Option<Job> {
        poll_fn(|cx| {
            let job = self.next.take();
            if job.is_some() || self.dismissed.get() {
                return Poll::Ready(job);
            }
            self.deadline.watch(cx.waker());
            Poll::Pending
        })
        .await
    }
}

async fn work(idle: Weak<Idle>, worker: Rc<Worker>, first: Job) {
    let hand = Rc::<Hand>::default();
    let mut next = Some(first);
    while let Some(job) = next {
        let entry = worker.sweep.register(Rc::clone(&hand.deadline));
        serve(job, &worker, &hand.deadline).await;
        hand.deadline.stop();
        drop(entry);
        let wanted = idle.upgrade().is_some_and(|idle| idle.take(&hand));
        if !wanted {
            return;
        }
        next = hand.job().await;
    }
}
