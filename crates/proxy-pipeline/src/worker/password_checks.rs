//! Threads that compare passwords with their hashes, which takes milliseconds to seconds.

use crate::worker::fair_queue::{FairQueue, JobOwner};
use crate::worker::time::Time;
use proxy_auth::{BasicCredentials, UserTable};
use proxy_clock::ProcessClock;
use proxy_errors::Detail;
use proxy_limits::{ClientKey, KeyedBuckets, RateDecision, RateKey};
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Threads of one worker; an Argon2 hash takes up to 256 MiB while it runs.
const THREADS: usize = 2;
/// Checks of one worker that wait at most.
const MAX_WAITING: usize = 64;

/// The checks of one worker. Clients share its places: one with few checks displaces the newest of the one
/// with the most.
#[derive(Debug)]
pub(crate) struct PasswordChecks(Arc<Lock>);

#[expect(
    clippy::disallowed_types,
    reason = "held for a push or a pop, between one worker and its threads for passwords"
)]
type Lock = std::sync::Mutex<State>;

#[derive(Debug)]
struct State {
    waiting: FairQueue<Job>,
    threads: usize,
}

/// A thread that has taken a slot.
struct Thread {
    state: Arc<Lock>,
    /// Its slot has been released.
    is_over: bool,
}

/// Credentials that are to be compared.
#[derive(Debug)]
pub(crate) struct PasswordCheck {
    pub(crate) users: Arc<UserTable>,
    pub(crate) credentials: BasicCredentials,
    /// Wrong passwords by client.
    pub(crate) attempts: Option<Arc<KeyedBuckets>>,
    pub(crate) client: ClientKey,
    pub(crate) clock: ProcessClock,
}

/// The result of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    Right,
    Wrong,
    /// The client has to wait for its next attempt.
    TooMany(RateDecision),
}

#[derive(Debug)]
struct Job {
    check: PasswordCheck,
    verdict: oneshot::Sender<Verdict>,
}

impl Default for PasswordChecks {
    fn default() -> Self {
        let state = State {
            waiting: FairQueue::new(MAX_WAITING),
            threads: 0,
        };
        Self(Arc::new(state.into()))
    }
}

impl PasswordChecks {
    /// Runs `check` on another thread.
    ///
    /// # Errors
    /// All places are used by clients with equally few checks, or one of them displaced this check.
    pub(crate) async fn run(&self, check: PasswordCheck) -> Result<Verdict, Detail> {
        let owner = JobOwner {
            client: check.client,
            has_failed: check.has_failed(),
        };
        let (verdict, decided) = oneshot::channel();
        if !self.submit(owner, Job { check, verdict }) {
            let limit = u64::try_from(MAX_WAITING).unwrap_or(u64::MAX);
            return Err(Detail::Limit {
                current: limit,
                limit,
            });
        }
        // A check that was displaced or panicked has no verdict.
        let verdict = decided.await;
        verdict.map_err(|_| Detail::text("another client's check took the place of this one"))
    }

    /// Queues `job` for the next free thread; `false` if there is no place.
    fn submit(&self, owner: JobOwner, job: Job) -> bool {
        let mut state = lock(&self.0);
        state.waiting.retain(|job| !job.verdict.is_closed());
        if state.waiting.push(owner, job).is_err() {
            return false;
        }
        if state.threads < THREADS {
            state.threads += 1;
            drop(state);
            let thread = Thread {
                state: Arc::clone(&self.0),
                is_over: false,
            };
            drop(spawn_blocking(move || thread.work()));
        }
        true
    }
}

impl Thread {
    /// Runs checks until none waits. Blocks.
    fn work(mut self) {
        while let Some(job) = self.next() {
            if !job.verdict.is_closed() {
                job.run();
            }
        }
    }

    /// The next check. Without one, the slot is released under the same lock, so that the next check starts
    /// a thread.
    fn next(&mut self) -> Option<Job> {
        let mut state = lock(&self.state);
        let next = state.waiting.pop();
        if next.is_none() {
            state.threads -= 1;
            self.is_over = true;
        }
        next
    }
}

impl Drop for Thread {
    /// Releases the slot after a panic too.
    fn drop(&mut self) {
        if !self.is_over {
            lock(&self.state).threads -= 1;
        }
    }
}

fn lock(state: &Lock) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PasswordCheck {
    /// The rate limit's decision if the client has no attempt left.
    pub(crate) fn refused(&self) -> Option<RateDecision> {
        let attempts = self.attempts.as_ref()?;
        let now_ns = Time::shared_ns(&self.clock);
        let decision = attempts.peek(&RateKey::Client(self.client), now_ns);
        (!decision.admitted).then_some(decision)
    }

    /// Returns true if the client has sent wrong passwords that still count.
    fn has_failed(&self) -> bool {
        self.attempts.as_ref().is_some_and(|attempts| {
            let now_ns = Time::shared_ns(&self.clock);
            let decision = attempts.peek(&RateKey::Client(self.client), now_ns);
            decision.remaining.saturating_add(1) < decision.limit
        })
    }

    /// Compares the password. Blocks. Attempts are counted here, so that concurrent checks cannot
    /// exceed the limit by more than the number of threads.
    fn run(&self) -> Verdict {
        if let Some(decision) = self.refused() {
            return Verdict::TooMany(decision);
        }
        if self.users.verify(&self.credentials) {
            return Verdict::Right;
        }
        if let Some(attempts) = &self.attempts {
            let now_ns = Time::shared_ns(&self.clock);
            attempts.admit(&RateKey::Client(self.client), now_ns);
        }
        Verdict::Wrong
    }
}

impl Job {
    fn run(self) {
        let Self { check, verdict } = self;
        // The receiver is dropped when the request is cancelled.
        verdict.send(check.run()).unwrap_or(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;
    use tokio::runtime::Builder;

    type Run<'c> = Pin<Box<dyn Future<Output = Result<Verdict, Detail>> + 'c>>;

    /// `htpasswd -nbB -C 4` of `one`.
    const ONE: &str = "$2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS";

    /// Starts the check of ann's password.
    fn begin<'c>(checks: &'c PasswordChecks, users: &Arc<UserTable>, client: u32) -> Run<'c> {
        Box::pin(checks.run(PasswordCheck {
            users: Arc::clone(users),
            credentials: BasicCredentials::parse(b"Basic YW5uOm9uZQ==").unwrap(),
            attempts: None,
            client: ClientKey::V4(client),
            clock: ProcessClock::starting_at(0, Duration::ZERO),
        }))
    }

    fn poll(run: &mut Run<'_>) -> Poll<Result<Verdict, Detail>> {
        run.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_client_with_many_checks_leaves_places_to_others() {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(1)
            .build();
        runtime.unwrap().block_on(async {
            let (release, released) = mpsc::channel::<()>();
            drop(spawn_blocking(move || released.recv()));
            let checks = PasswordChecks::default();
            let users = Arc::new(UserTable::new([("ann".to_owned(), ONE.parse().unwrap())]));
            let mut many: Vec<_> = (0..MAX_WAITING)
                .map(|_| begin(&checks, &users, 1))
                .collect();
            assert!(many.iter_mut().all(|run| poll(run).is_pending()));
            let mut above = begin(&checks, &users, 1);
            assert!(matches!(poll(&mut above), Poll::Ready(Err(_))));

            let mut other = begin(&checks, &users, 2);
            assert!(poll(&mut other).is_pending());
            drop(release);

            assert!(matches!(other.await, Ok(Verdict::Right)));
            let displaced = many.pop().unwrap().await;
            assert!(displaced.is_err(), "the newest of the client with the most");
            assert!(matches!(many.pop().unwrap().await, Ok(Verdict::Right)));
        });
    }
}
