//! Threads that compare passwords with their hashes, which takes milliseconds to seconds.

pub(crate) mod hash_gate;

use crate::worker::fair_queue::{FairQueue, JobOwner};
use crate::worker::time::Time;
use hash_gate::{HashCost, HashGate};
use proxy_auth::{BasicCredentials, UserTable};
use proxy_clock::ProcessClock;
use proxy_errors::Detail;
use proxy_limits::{ClientKey, KeyedBuckets, MemoryLimit, RateDecision, RateKey};
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Number of threads of one worker that compute hashes.
pub const PASSWORD_THREADS: usize = 2;
/// Maximum number of waiting checks of one worker.
const MAX_WAITING: usize = 64;

/// The checks of one worker. Clients share its places: one with few checks displaces the newest of
/// the one with the most.
#[derive(Debug)]
pub(crate) struct PasswordChecks(Arc<Lock>);

#[expect(
    clippy::disallowed_types,
    reason = "held for a push or a pop, between one worker and its threads for passwords"
)]
type Lock = std::sync::Mutex<CheckQueue>;

#[derive(Debug)]
struct CheckQueue {
    waiting: FairQueue<Job>,
    threads: usize,
}

/// A thread that has taken a slot.
struct Thread {
    state: Arc<Lock>,
    /// The slot has been released: drop must not do it again.
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
    pub(crate) hashes: Arc<HashGate>,
    pub(crate) memory: Arc<MemoryLimit>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    Right,
    Wrong,
    /// The client has to wait for its next attempt.
    TooMany(RateDecision),
    /// The process has no memory for the hash.
    MemoryShort,
}

#[derive(Debug)]
struct Job {
    check: PasswordCheck,
    verdict: oneshot::Sender<Verdict>,
}

impl Default for PasswordChecks {
    fn default() -> Self {
        let state = CheckQueue {
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
        if state.threads < PASSWORD_THREADS {
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

    /// The next check. Without one, the slot is released under the same lock, so that the next
    /// check starts a thread.
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

fn lock(state: &Lock) -> MutexGuard<'_, CheckQueue> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PasswordCheck {
    /// The rate limit's decision if the client has no attempt left, and no running check may
    /// release one.
    pub(crate) fn refused(&self) -> Option<RateDecision> {
        let attempts = self.attempts.as_ref()?;
        let now_ns = Time::shared_ns(&self.clock);
        let decision = attempts.peek(&RateKey::Client(self.client), now_ns);
        (!decision.admitted && self.hashes.running(self.client) == 0).then_some(decision)
    }

    /// Returns true if the client has sent wrong passwords that still count.
    fn has_failed(&self) -> bool {
        self.attempts.as_ref().is_some_and(|attempts| {
            let now_ns = Time::shared_ns(&self.clock);
            let decision = attempts.peek(&RateKey::Client(self.client), now_ns);
            let running = self.hashes.running(self.client);
            decision.remaining.saturating_add(1).saturating_add(running) < decision.limit
        })
    }

    /// Compares the password. Blocks. An attempt is taken before the hash and released after a
    /// right password, so that concurrent checks never exceed the limit.
    fn run(&self) -> Verdict {
        let bytes = self.users.memory_bytes(&self.credentials);
        let cost = HashCost {
            client: self.client,
            bytes,
            max_bytes: HashGate::max_bytes(self.memory.max_bytes()),
        };
        let running = match self.hashes.begin(cost, || self.take_attempt()) {
            Ok(running) => running,
            Err(decision) => return Verdict::TooMany(decision),
        };
        let verdict = if bytes > 0 && self.memory.is_shedding() {
            Verdict::MemoryShort
        } else if self.users.verify(&self.credentials) {
            Verdict::Right
        } else {
            Verdict::Wrong
        };
        if !matches!(verdict, Verdict::Wrong) {
            self.refund_attempt();
        }
        // Dropped after the attempt was released: further checks of the client wait for this one.
        drop(running);
        verdict
    }

    fn take_attempt(&self) -> Result<(), RateDecision> {
        let Some(attempts) = &self.attempts else {
            return Ok(());
        };
        let now_ns = Time::shared_ns(&self.clock);
        let decision = attempts.admit(&RateKey::Client(self.client), now_ns);
        decision.admitted.then_some(()).ok_or(decision)
    }

    fn refund_attempt(&self) {
        if let Some(attempts) = &self.attempts {
            let now_ns = Time::shared_ns(&self.clock);
            attempts.refund(&RateKey::Client(self.client), now_ns);
        }
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
    use proxy_limits::{KeySeed, Rate, RateLimitSettings};
    use std::pin::Pin;
    use std::sync::{Barrier, mpsc};
    use std::task::{Context, Poll, Waker};
    use std::thread;
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
            hashes: Arc::default(),
            memory: Arc::default(),
        }))
    }

    /// Verdicts of concurrent checks of one client, with `credentials` and two attempts an hour.
    fn concurrent(credentials: &[u8]) -> Vec<Verdict> {
        const CHECKS: usize = 8;
        let settings = RateLimitSettings {
            rate: Rate::per(2, 3_600).unwrap(),
            burst: 2,
        };
        let seed = KeySeed { low: 1, high: 2 };
        let check = PasswordCheck {
            users: Arc::new(UserTable::new([("ann".to_owned(), ONE.parse().unwrap())])),
            credentials: BasicCredentials::parse(credentials).unwrap(),
            attempts: Some(Arc::new(KeyedBuckets::new(settings, 10, seed).unwrap())),
            client: ClientKey::V4(1),
            clock: ProcessClock::starting_at(0, Duration::ZERO),
            hashes: Arc::default(),
            memory: Arc::default(),
        };
        let start = Barrier::new(CHECKS);
        thread::scope(|scope| {
            let run = || {
                start.wait();
                check.run()
            };
            let threads: Vec<_> = (0..CHECKS).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    #[test]
    fn concurrent_guesses_are_as_many_as_the_attempts() {
        let verdicts = concurrent(b"Basic YW5uOnR3bw==");

        let wrong = verdicts.iter().filter(|it| matches!(it, Verdict::Wrong));
        let refused = verdicts
            .iter()
            .filter(|it| matches!(it, Verdict::TooMany(_)));
        assert_eq!((wrong.count(), refused.count()), (2, 6));
    }

    #[test]
    fn concurrent_checks_of_the_right_password_all_pass() {
        let verdicts = concurrent(b"Basic YW5uOm9uZQ==");

        assert!(
            verdicts.iter().all(|it| matches!(it, Verdict::Right)),
            "{verdicts:?}"
        );
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
