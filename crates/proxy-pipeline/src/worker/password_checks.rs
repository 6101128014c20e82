//! Threads that compare passwords with their hashes, which takes milliseconds to seconds.

use crate::worker::disk::{JobQueue, Work};
use crate::worker::time::Time;
use proxy_auth::{BasicCredentials, UserTable};
use proxy_clock::ProcessClock;
use proxy_errors::Detail;
use proxy_limits::{
    ClientKey, ConcurrencyLimit, KeyedBuckets, LimitReached, RateDecision, RateKey,
};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Threads of one worker.
const THREADS: usize = 2;
/// Checks of one worker that run or wait at most; an Argon2 hash takes up to 256 MiB while it runs.
const MAX_CHECKS: u32 = 64;

/// The checks of one worker.
#[derive(Debug)]
pub(crate) struct PasswordChecks {
    queue: Arc<JobQueue<Job>>,
    places: ConcurrencyLimit,
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
        let work = Work {
            run: Job::run,
            is_wanted: |job: &Job| !job.verdict.is_closed(),
        };
        Self {
            queue: Arc::new(JobQueue::new(THREADS, work)),
            places: ConcurrencyLimit::new(MAX_CHECKS),
        }
    }
}

impl PasswordChecks {
    /// Runs `check` on another thread.
    ///
    /// # Errors
    /// All places are taken.
    pub(crate) async fn run(&self, check: PasswordCheck) -> Result<Verdict, Detail> {
        let place = self.places.acquire();
        let _place = place.map_err(|LimitReached { held, max }| Detail::Limit {
            current: u64::from(held),
            limit: u64::from(max),
        })?;
        let (verdict, decided) = oneshot::channel();
        self.queue.submit(Job { check, verdict });
        // A check that panics has no verdict.
        decided.await.map_err(|_| Detail::text("the check failed"))
    }
}

impl PasswordCheck {
    /// The decision that makes the client wait, if it has no attempt left.
    pub(crate) fn refused(&self) -> Option<RateDecision> {
        let attempts = self.attempts.as_ref()?;
        let now_ns = Time::shared_ns(&self.clock);
        let decision = attempts.peek(&RateKey::Client(self.client), now_ns);
        (!decision.admitted).then_some(decision)
    }

    /// Compares the password. Blocks. Attempts are counted here, so that no more run at once than threads
    /// before the limit holds.
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
        // The request may be gone.
        verdict.send(check.run()).unwrap_or(());
    }
}
