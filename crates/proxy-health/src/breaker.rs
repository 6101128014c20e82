//! The circuit breaker.

mod machine;
mod settings;
mod table;

use machine::{Phase, Step};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use machine::{BreakerEvent, BreakerState};
pub use settings::BreakerSettings;
pub use table::{BREAKER_TRANSITIONS, BreakerCondition, BreakerTransition, breaker_reference_page};

/// A breaker for one route and upstream, or one agent, over all threads: one atomic word.
///
/// Every request takes a [`BreakerPermit`] and settles it once, with its last attempt's result.
/// Connection errors, timeouts and 5xx of the upstream are failures; responses below 500 are
/// successes; if a client disconnects, the permit is dropped and neither is counted. Times are
/// nanoseconds since a common origin; the timeout ends on a whole millisecond.
#[derive(Clone, Debug)]
pub struct CircuitBreaker(Arc<Inner>);

#[derive(Debug)]
#[repr(align(64))]
struct Inner {
    // A phase and its generation: see `machine`.
    word: AtomicU64,
    settings: BreakerSettings,
    /// Number of entries into each state since the last query.
    entered: [AtomicU64; BreakerState::ALL.len()],
}

/// Permission for one request. Dropped without a result, it releases a probe's slot and counts
/// nothing.
#[derive(Debug)]
pub struct BreakerPermit {
    breaker: Arc<Inner>,
    // The permit counts only in the phase in which it was issued.
    generation: u16,
    probe: bool,
    settled: bool,
}

/// The breaker refuses a request: `CircuitBreakerOpen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the circuit breaker is open")]
pub struct BreakerOpen {
    /// Time until a probe is admitted; zero while probes are in flight.
    pub retry_after: Duration,
}

impl CircuitBreaker {
    /// Creates a closed breaker.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        Self(Arc::new(Inner {
            word: AtomicU64::new(Phase::Closed { failures: 0 }.pack(0)),
            settings,
            entered: Default::default(),
        }))
    }

    /// Requests admission at `now_ns`.
    ///
    /// # Errors
    /// [`BreakerOpen`] if it is refused.
    #[inline]
    pub fn admit(&self, now_ns: u64) -> Result<BreakerPermit, BreakerOpen> {
        let (phase, generation) = Phase::unpack(self.0.word.load(Ordering::Acquire));
        let (generation, probe) = match phase {
            // The common case writes nothing.
            Phase::Closed { .. } => (generation, false),
            Phase::Open { .. } | Phase::HalfOpen { .. } => self.0.admit_probe(now_ns)?,
        };
        Ok(BreakerPermit {
            breaker: Arc::clone(&self.0),
            generation,
            probe,
            settled: false,
        })
    }

    /// Checks that a request would be admitted at `now_ns`. Takes no probe's place.
    ///
    /// # Errors
    /// [`BreakerOpen`] if it would be refused.
    #[inline]
    pub fn check(&self, now_ns: u64) -> Result<(), BreakerOpen> {
        let (phase, _) = Phase::unpack(self.0.word.load(Ordering::Acquire));
        if matches!(phase, Phase::Closed { .. }) {
            return Ok(());
        }
        self.0.check_probe(phase, now_ns)
    }

    /// Admits a request again that has given up its place meanwhile. An open breaker refuses it, and its
    /// result counts nothing.
    pub fn readmit(&self) -> Option<BreakerPermit> {
        // No timeout has ended at this time.
        self.admit(0).ok()
    }

    /// The current state. An open breaker stays open until a request arrives after its timeout.
    pub fn state(&self) -> BreakerState {
        let (phase, _) = Phase::unpack(self.0.word.load(Ordering::Acquire));
        phase.state()
    }

    /// The state for metrics at `now_ns`: an open breaker is half-open after its timeout, when a
    /// request would be admitted, although none has arrived.
    pub fn state_at(&self, now_ns: u64) -> BreakerState {
        let (phase, _) = Phase::unpack(self.0.word.load(Ordering::Acquire));
        match phase {
            Phase::Open { .. } => {
                let settings = self.settings();
                let step = phase.step(BreakerEvent::Request, settings, now_ns);
                step.next.state()
            }
            Phase::Closed { .. } | Phase::HalfOpen { .. } => phase.state(),
        }
    }

    /// The state in one word, for a process that takes over on the same machine. A half-open breaker is
    /// passed as an open one with its timeout over: its probes end in this process.
    pub fn to_word(&self) -> u64 {
        let word = self.0.word.load(Ordering::Acquire);
        match Phase::unpack(word) {
            (Phase::HalfOpen { .. }, generation) => Phase::Open { until_ms: 0 }.pack(generation),
            (Phase::Closed { .. } | Phase::Open { .. }, _) => word,
        }
    }

    /// Takes over the state of a breaker with the same settings in another process.
    pub fn restore(&self, word: u64) {
        self.0.word.store(word, Ordering::Release);
    }

    /// Number of entries into each state since the last call, in the order of [`BreakerState::ALL`].
    pub fn take_entered(&self) -> [u64; BreakerState::ALL.len()] {
        let entered = self.0.entered.each_ref();
        entered.map(|count| count.swap(0, Ordering::Relaxed))
    }

    /// Thresholds and timeout.
    pub fn settings(&self) -> &BreakerSettings {
        &self.0.settings
    }
}

impl BreakerPermit {
    /// Records a response below 500. Returns the new state, if it changed.
    pub fn success(mut self, now_ns: u64) -> Option<BreakerState> {
        self.settle(BreakerEvent::Success, now_ns)
    }

    /// Records a failure: no connection, a timeout, or a 5xx. Returns the new state, if it changed.
    pub fn failure(mut self, now_ns: u64) -> Option<BreakerState> {
        self.settle(BreakerEvent::Failure, now_ns)
    }

    /// Returns true if the request is a probe.
    pub const fn is_probe(&self) -> bool {
        self.probe
    }

    fn settle(&mut self, event: BreakerEvent, now_ns: u64) -> Option<BreakerState> {
        self.settled = true;
        self.breaker.settle(self.generation, event, now_ns)
    }
}

impl Drop for BreakerPermit {
    fn drop(&mut self) {
        if self.probe && !self.settled {
            self.breaker
                .settle(self.generation, BreakerEvent::Abandoned, 0);
        }
    }
}

impl Inner {
    #[cold]
    fn check_probe(&self, phase: Phase, now_ns: u64) -> Result<(), BreakerOpen> {
        let step = phase.step(BreakerEvent::Request, &self.settings, now_ns);
        if step.admitted {
            return Ok(());
        }
        Err(self.refusal(phase, now_ns))
    }

    fn refusal(&self, phase: Phase, now_ns: u64) -> BreakerOpen {
        // The end is rounded up to a millisecond, and a worker's clock may lag.
        let retry_after = phase.retry_after(now_ns).min(self.settings.timeout);
        BreakerOpen { retry_after }
    }

    /// The generation and whether the request is a probe.
    #[cold]
    fn admit_probe(&self, now_ns: u64) -> Result<(u16, bool), BreakerOpen> {
        let mut seen = self.word.load(Ordering::Acquire);
        loop {
            let (phase, generation) = Phase::unpack(seen);
            let Step { next, admitted } = phase.step(BreakerEvent::Request, &self.settings, now_ns);
            if !admitted {
                return Err(self.refusal(phase, now_ns));
            }
            let generation = next_generation(generation, phase, next);
            match self.exchange(seen, next.pack(generation)) {
                Ok(()) => {
                    self.count_change(phase, next);
                    return Ok((generation, next.state() == BreakerState::HalfOpen));
                }
                Err(other) => seen = other,
            }
        }
    }

    fn settle(&self, given: u16, event: BreakerEvent, now_ns: u64) -> Option<BreakerState> {
        let mut seen = self.word.load(Ordering::Acquire);
        loop {
            let (phase, generation) = Phase::unpack(seen);
            let event = if generation == given {
                event
            } else {
                BreakerEvent::LateResult
            };
            let next = phase.step(event, &self.settings, now_ns).next;
            if next == phase {
                return None;
            }
            let generation = next_generation(generation, phase, next);
            match self.exchange(seen, next.pack(generation)) {
                Ok(()) => {
                    self.count_change(phase, next);
                    return (next.state() != phase.state()).then(|| next.state());
                }
                Err(other) => seen = other,
            }
        }
    }

    fn count_change(&self, before: Phase, after: Phase) {
        let position = BreakerState::ALL
            .iter()
            .position(|state| *state == after.state());
        let changed = before.state() != after.state();
        let count = position.and_then(|position| self.entered.get(position));
        if let Some(count) = count.filter(|_| changed) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn exchange(&self, seen: u64, next: u64) -> Result<(), u64> {
        self.word
            .compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
    }
}

fn next_generation(generation: u16, before: Phase, after: Phase) -> u16 {
    generation.wrapping_add(u16::from(before.state() != after.state()))
}

#[cfg(test)]
mod tests;
