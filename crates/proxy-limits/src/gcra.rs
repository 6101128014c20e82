//! The generic cell rate algorithm: a token bucket in one word, without rounding.

use crate::rate::{RateError, RateLimitSettings};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The decision on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateDecision {
    /// True if the request is within the limit.
    pub admitted: bool,
    /// Requests that a full bucket admits at once: `X-RateLimit-Limit`.
    pub limit: u32,
    /// Requests that would be admitted now, after this one: `X-RateLimit-Remaining`.
    pub remaining: u32,
    /// Time until the bucket is full again without further requests: `X-RateLimit-Reset`.
    pub reset: Duration,
    /// Time until one more request would be admitted; zero while there is room: `Retry-After`.
    pub retry_after: Duration,
}

impl RateDecision {
    /// [`reset`](Self::reset) in whole seconds, rounded up.
    #[must_use]
    pub fn reset_secs(&self) -> u64 {
        whole_secs(self.reset)
    }

    /// [`retry_after`](Self::retry_after) in whole seconds, rounded up: at least 1 for a refused
    /// request.
    #[must_use]
    pub fn retry_after_secs(&self) -> u64 {
        whole_secs(self.retry_after)
    }
}

/// A rate limit, ready for use: every bucket under it is one word.
///
/// A bucket's word is its *theoretical arrival time*: the point at which the bucket is full again.
/// In its unit, `step` pass in a tick and a request costs `cost`. The rate is the fraction
/// `step / cost` itself, so nothing is rounded and nothing drifts. The line of units wraps, and
/// only differences have a meaning: the word of a bucket without use must be settled at least every
/// [`Gcra::settle_within`].
///
/// A tick is a nanosecond, or the least power of ten of them with which the capacity fits: at most
/// 10 µs for a burst of 100 million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gcra {
    tick_ns: u64,
    step: u64,
    cost: u64,
    capacity: u64,
    burst: u32,
}

/// Greatest capacity in units, so that words beyond `now` fill a sixteenth of the line at most.
const MAX_CAPACITY: u64 = 1 << 60;

/// Longest tick: periods are whole seconds.
const MAX_TICK_NS: u64 = 1_000_000_000;

/// Maximum distance ahead of now; a larger one, modulo 2^64, lies in the past.
const MAX_AHEAD: u64 = 1 << 63;

impl Gcra {
    pub(crate) fn new(settings: RateLimitSettings) -> Result<Self, RateError> {
        let RateLimitSettings { rate, burst } = settings;
        if burst == 0 {
            return Err(RateError::Zero);
        }
        let mut tick_ns = 1;
        loop {
            let (step, cost) = rate.fraction(tick_ns);
            let capacity = cost.checked_mul(u64::from(burst));
            // With ticks of a second, the period is below 2^17 and the capacity below 2^49.
            match capacity.filter(|units| *units <= MAX_CAPACITY) {
                None if tick_ns < MAX_TICK_NS => tick_ns *= 10,
                capacity => {
                    return Ok(Self {
                        tick_ns,
                        step,
                        cost,
                        capacity: capacity.unwrap_or(MAX_CAPACITY),
                        burst,
                    });
                }
            }
        }
    }

    /// Maximum time that a word may stay untouched.
    pub(crate) fn settle_within(&self) -> Duration {
        Duration::from_nanos((MAX_AHEAD / self.step).saturating_mul(self.tick_ns))
    }

    /// The word of a bucket that is full at `now_ns`.
    #[inline]
    pub(crate) fn full(&self, now_ns: u64) -> u64 {
        // Most limits have ticks of a nanosecond, and need no division.
        let ticks = match self.tick_ns {
            1 => now_ns,
            tick_ns => now_ns / tick_ns,
        };
        ticks.wrapping_mul(self.step)
    }

    /// Takes one request from the bucket of `word`.
    #[inline]
    pub(crate) fn admit(&self, word: &AtomicU64, now_ns: u64) -> RateDecision {
        let now = self.full(now_ns);
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let used = Self::used(seen, now);
            let after = used + self.cost;
            if self.capacity < after {
                return self.decision(false, used);
            }
            let next = now.wrapping_add(after);
            match word.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return self.decision(true, after),
                Err(other) => seen = other,
            }
        }
    }

    /// Refunds one request to the bucket of `word`.
    pub(crate) fn refund(&self, word: &AtomicU64, now_ns: u64) {
        let now = self.full(now_ns);
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let rest = Self::used(seen, now).saturating_sub(self.cost);
            let next = now.wrapping_add(rest);
            match word.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }

    /// The decision of [`Self::admit`], without taking anything.
    pub(crate) fn peek(&self, word: &AtomicU64, now_ns: u64) -> RateDecision {
        let used = Self::used(word.load(Ordering::Relaxed), self.full(now_ns));
        self.decision(used + self.cost <= self.capacity, used)
    }

    /// Brings the word of a bucket that is full up to `now_ns`, so that it does not wrap.
    pub(crate) fn settle(&self, word: &AtomicU64, now_ns: u64) {
        let now = self.full(now_ns);
        let seen = word.load(Ordering::Relaxed);
        if Self::used(seen, now) == 0 {
            // A concurrent request wins: it has settled the word itself.
            let _seen = word.compare_exchange(seen, now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Units missing in the bucket of `word`.
    #[inline]
    pub(crate) fn used(word: u64, now: u64) -> u64 {
        let ahead = word.wrapping_sub(now);
        // Values after `now` are in the past, when the bucket became full. A worker with a time
        // slightly older than the last writer's may find the word beyond the capacity: that value
        // is kept.
        if ahead > MAX_AHEAD { 0 } else { ahead }
    }

    #[inline]
    fn decision(&self, admitted: bool, used: u64) -> RateDecision {
        let room = self.capacity.saturating_sub(used);
        let lacking = (used + self.cost).saturating_sub(self.capacity);
        RateDecision {
            admitted,
            limit: self.burst,
            remaining: u32::try_from(room / self.cost).unwrap_or(u32::MAX),
            reset: self.time_of(used),
            retry_after: self.time_of(lacking),
        }
    }

    /// Time in which `units` are refilled, rounded up; at most 584 years.
    #[inline]
    fn time_of(&self, units: u64) -> Duration {
        let ticks = units.div_ceil(self.step);
        Duration::from_nanos(ticks.saturating_mul(self.tick_ns))
    }
}

fn whole_secs(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() != 0)
}
