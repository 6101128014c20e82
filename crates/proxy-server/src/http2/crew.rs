//! Tasks that serve streams, one after the other.
//!
//! A task holds all that serving a request takes, which makes it large: making one for each stream
//! would cost more than much of what it does.

use super::stream::{Job, serve};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

/// Most tasks that wait for their next stream.
const MOST_IDLE: usize = 64;

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
    waker: RefCell<Option<Waker>>,
}

impl Crew {
    /// Has `job` done by whoever is free.
    pub(super) fn begin(&self, job: Job) {
        let free = self.0.0.borrow_mut().pop();
        match free {
            Some(hand) => {
                hand.next.replace(Some(job));
                hand.wake();
            }
            None => drop(tokio::task::spawn_local(work(Rc::downgrade(&self.0), job))),
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        for hand in self.0.take() {
            hand.dismissed.set(true);
            hand.wake();
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
    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// The next job; none when there will be no more.
    async fn job(&self) -> Option<Job> {
        poll_fn(|cx| {
            let job = self.next.take();
            if job.is_some() || self.dismissed.get() {
                return Poll::Ready(job);
            }
            self.waker.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

async fn work(idle: Weak<Idle>, first: Job) {
    let hand = Rc::<Hand>::default();
    let mut next = Some(first);
    while let Some(job) = next {
        serve(job).await;
        let wanted = idle.upgrade().is_some_and(|idle| idle.take(&hand));
        if !wanted {
            return;
        }
        next = hand.job().await;
    }
}
