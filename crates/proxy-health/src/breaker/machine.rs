//! The breaker's state machine.

use super::settings::BreakerSettings;
use std::time::Duration;

/// A breaker's state. The value of the metric `proxy_circuit_breaker_state` is
/// [`BreakerState::metric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// Requests are admitted.
    Closed,
    /// Requests are refused.
    Open,
    /// A few probes are admitted, other requests are refused.
    HalfOpen,
}

/// An event of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerEvent {
    /// A request for admission.
    Request,
    /// A request admitted in this state had a response below 500.
    Success,
    /// A request admitted in this state failed.
    Failure,
    /// A request admitted in this state ended without a result, because its client disconnected.
    Abandoned,
    /// A request admitted in an earlier state ended, with any result.
    LateResult,
}

impl BreakerState {
    /// All states, in the order of their metric values.
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// The value of `proxy_circuit_breaker_state`: 0 closed, 1 open, 2 half-open.
    pub const fn metric(self) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Open => 1,
            Self::HalfOpen => 2,
        }
    }

    /// The state's name in logs and in the admin interface.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

impl BreakerEvent {
    /// All events.
    pub const ALL: [Self; 5] = [
        Self::Request,
        Self::Success,
        Self::Failure,
        Self::Abandoned,
        Self::LateResult,
    ];
}

/// A state with its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Closed { failures: u32 },
    Open { until_ms: u64 },
    HalfOpen { probes: u16, successes: u16 },
}

/// The effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) next: Phase,
    /// True if the request is admitted; false for all other events.
    pub(super) admitted: bool,
}

const FIRST_PROBE: Phase = Phase::HalfOpen {
    probes: 1,
    successes: 0,
};

impl Phase {
    pub(super) const fn state(self) -> BreakerState {
        match self {
            Self::Closed { .. } => BreakerState::Closed,
            Self::Open { .. } => BreakerState::Open,
            Self::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    pub(super) fn step(self, event: BreakerEvent, settings: &BreakerSettings, now_ns: u64) -> Step {
        match self {
            Self::Closed { failures } => in_closed(failures, event, settings, now_ns),
            Self::Open { until_ms } => in_open(until_ms, event, now_ns),
            Self::HalfOpen { probes, successes } => {
                in_half_open(probes, successes, event, settings, now_ns)
            }
        }
    }

    /// Time until a probe is admitted.
    pub(super) fn retry_after(self, now_ns: u64) -> Duration {
        match self {
            Self::Open { until_ms } => {
                Duration::from_nanos((until_ms * NS_PER_MS).saturating_sub(now_ns))
            }
            Self::Closed { .. } | Self::HalfOpen { .. } => Duration::ZERO,
        }
    }
}

fn in_closed(failures: u32, event: BreakerEvent, settings: &BreakerSettings, now_ns: u64) -> Step {
    match event {
        BreakerEvent::Request => admitted(Phase::Closed { failures }),
        BreakerEvent::Success => moved(Phase::Closed { failures: 0 }),
        BreakerEvent::Failure => {
            let failures = failures.saturating_add(1);
            if failures < settings.failure_threshold {
                moved(Phase::Closed { failures })
            } else {
                moved(opened(settings, now_ns))
            }
        }
        BreakerEvent::Abandoned | BreakerEvent::LateResult => moved(Phase::Closed { failures }),
    }
}

fn in_open(until_ms: u64, event: BreakerEvent, now_ns: u64) -> Step {
    let over = until_ms <= now_ns / NS_PER_MS;
    match event {
        BreakerEvent::Request if over => admitted(FIRST_PROBE),
        // No request passes in this state, and so none ends that did.
        BreakerEvent::Request
        | BreakerEvent::Success
        | BreakerEvent::Failure
        | BreakerEvent::Abandoned
        | BreakerEvent::LateResult => moved(Phase::Open { until_ms }),
    }
}

fn in_half_open(
    probes: u16,
    successes: u16,
    event: BreakerEvent,
    settings: &BreakerSettings,
    now_ns: u64,
) -> Step {
    let stay = |probes, successes| Phase::HalfOpen { probes, successes };
    match event {
        BreakerEvent::Request
            if u32::from(probes) < at_least_one(settings.half_open_max_requests) =>
        {
            admitted(stay(probes + 1, successes))
        }
        BreakerEvent::Request | BreakerEvent::LateResult => moved(stay(probes, successes)),
        BreakerEvent::Success => {
            let successes = successes.saturating_add(1);
            if u32::from(successes) < at_least_one(settings.success_threshold) {
                moved(stay(probes.saturating_sub(1), successes))
            } else {
                moved(Phase::Closed { failures: 0 })
            }
        }
        BreakerEvent::Failure => moved(opened(settings, now_ns)),
        BreakerEvent::Abandoned => moved(stay(probes.saturating_sub(1), successes)),
    }
}

fn opened(settings: &BreakerSettings, now_ns: u64) -> Phase {
    let BreakerSettings {
        failure_threshold: _,
        timeout,
        half_open_max_requests: _,
        success_threshold: _,
    } = settings;
    let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    let until_ms = now_ns.saturating_add(timeout_ns).div_ceil(NS_PER_MS);
    Phase::Open { until_ms }
}

const fn admitted(next: Phase) -> Step {
    Step {
        next,
        admitted: true,
    }
}

const fn moved(next: Phase) -> Step {
    Step {
        next,
        admitted: false,
    }
}

/// A count as a word can hold it.
fn at_least_one(count: u32) -> u32 {
    count.clamp(1, u32::from(u16::MAX))
}

const NS_PER_MS: u64 = 1_000_000;

/// A word is, from its lowest bit: 2 bits of state, 46 of counts, 16 of generation.
const COUNT_SHIFT: u32 = 2;
const COUNT_BITS: u32 = 46;
const GENERATION_SHIFT: u32 = COUNT_SHIFT + COUNT_BITS;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

impl Phase {
    pub(super) fn pack(self, generation: u16) -> u64 {
        let (state, counts) = match self {
            Self::Closed { failures } => (0, u64::from(failures)),
            Self::Open { until_ms } => (1, until_ms.min(COUNT_MASK)),
            Self::HalfOpen { probes, successes } => {
                (2, u64::from(probes) | u64::from(successes) << 16)
            }
        };
        state | counts << COUNT_SHIFT | u64::from(generation) << GENERATION_SHIFT
    }

    #[expect(clippy::cast_possible_truncation, reason = "the fields of a word")]
    #[inline]
    pub(super) const fn unpack(word: u64) -> (Self, u16) {
        let counts = word >> COUNT_SHIFT & COUNT_MASK;
        let phase = match word & 3 {
            0 => Self::Closed {
                failures: counts as u32,
            },
            1 => Self::Open { until_ms: counts },
            _ => Self::HalfOpen {
                probes: counts as u16,
                successes: (counts >> 16) as u16,
            },
        };
        (phase, (word >> GENERATION_SHIFT) as u16)
    }
}
