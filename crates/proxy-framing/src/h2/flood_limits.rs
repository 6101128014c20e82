//! Allowances for frames that carry no data.

use std::fmt;

/// A kind of frame that costs work and carries nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// `RST_STREAM`: work on the request is wasted. [CVE-2023-44487]
    Reset,
    /// `SETTINGS`, which must be applied and acknowledged. [CVE-2019-9515]
    Settings,
    /// `PING`, which must be answered. [CVE-2019-9512]
    Ping,
    /// `WINDOW_UPDATE`, with any increment. [CVE-2019-9517]
    WindowUpdate,
    /// `PRIORITY` and `PRIORITY_UPDATE`. [CVE-2019-9513]
    Priority,
    /// `DATA` without data and without `END_STREAM`. [CVE-2019-9518]
    EmptyData,
    /// `CONTINUATION` of a header section. [CVE-2024-27316]
    Continuation,
    /// Any other frame without a meaning here.
    Other,
}

/// Burst and refill rate of one kind, in frames and frames per second.
#[derive(Debug)]
struct FrameRate {
    kind: FrameKind,
    name: &'static str,
    burst: u32,
    per_second: u32,
}

const fn rate(kind: FrameKind, name: &'static str, burst: u32, per_second: u32) -> FrameRate {
    FrameRate {
        kind,
        name,
        burst,
        per_second,
    }
}

const FRAME_KIND_COUNT: usize = 8;

/// The rate of each kind of frame, in the order of the variants.
static FRAME_RATES: [FrameRate; FRAME_KIND_COUNT] = [
    // The burst and rate of resets are the listener's.
    rate(FrameKind::Reset, "RST_STREAM", 0, 0),
    rate(FrameKind::Settings, "SETTINGS", 16, 1),
    rate(FrameKind::Ping, "PING", 64, 8),
    rate(FrameKind::WindowUpdate, "WINDOW_UPDATE", 1024, 128),
    rate(FrameKind::Priority, "PRIORITY", 256, 32),
    rate(FrameKind::EmptyData, "empty DATA", 64, 8),
    rate(FrameKind::Continuation, "CONTINUATION", 32, 8),
    rate(FrameKind::Other, "meaningless", 64, 8),
];

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = FRAME_RATES.iter().find(|rate| rate.kind == *self);
        f.write_str(named.map_or("", |rate| rate.name))
    }
}

/// The remaining allowance of each kind, in tenths of a frame.
#[derive(Clone, Debug)]
pub(super) struct FloodLimits {
    left: [u32; FRAME_KIND_COUNT],
    /// Burst of resets; an eighth of it is refilled each second.
    resets: u32,
}

const TENTHS_PER_FRAME: u32 = 10;

/// Maximum burst of resets.
const MAX_RESETS: u32 = 1_000_000;

/// Maximum number of streams of a connection: all of them may be cancelled at the same time.
const MAX_STREAMS: u32 = 10_000;

impl FloodLimits {
    pub(super) fn full(resets: u32) -> Self {
        let mut full = Self {
            left: [0; FRAME_KIND_COUNT],
            resets,
        };
        full.left = std::array::from_fn(|index| {
            let rate = FRAME_RATES.get(index);
            rate.map_or(0, |rate| full.burst(rate) * TENTHS_PER_FRAME)
        });
        full
    }

    fn burst(&self, rate: &FrameRate) -> u32 {
        if rate.kind == FrameKind::Reset {
            return self.resets.min(MAX_RESETS);
        }
        rate.burst
    }

    fn per_second(&self, rate: &FrameRate) -> u32 {
        if rate.kind == FrameKind::Reset {
            return self.burst(rate).div_ceil(8);
        }
        rate.per_second
    }

    /// Takes one frame from the allowance; false if it is exhausted.
    pub(super) fn take(&mut self, kind: FrameKind) -> bool {
        let Some(left) = self.left.get_mut(kind as usize) else {
            return false;
        };
        let Some(rest) = left.checked_sub(TENTHS_PER_FRAME) else {
            return false;
        };
        *left = rest;
        true
    }

    /// Refills for `tenths` of a second.
    pub(super) fn pass(&mut self, tenths: u32) {
        for (index, rate) in FRAME_RATES.iter().enumerate() {
            let more = self.per_second(rate).saturating_mul(tenths);
            let burst = self.burst(rate) * TENTHS_PER_FRAME;
            if let Some(left) = self.left.get_mut(index) {
                // Credit earned by traffic beyond the burst is kept.
                let full = burst.max(*left);
                *left = left.saturating_add(more).min(full);
            }
        }
    }

    fn most_earned(&self, rate: &FrameRate) -> u32 {
        if rate.kind == FrameKind::Reset {
            return (self.burst(rate) + MAX_STREAMS) * TENTHS_PER_FRAME;
        }
        rate.burst * TENTHS_PER_FRAME * 8
    }

    /// Adds credit for useful traffic: at most eight times the burst, and a reset for each stream
    /// that may be open.
    pub(super) fn earn(&mut self, kind: FrameKind, frames: u32) {
        let index = kind as usize;
        let most = FRAME_RATES.get(index).map(|rate| self.most_earned(rate));
        if let (Some(left), Some(most)) = (self.left.get_mut(index), most) {
            *left = left
                .saturating_add(frames.saturating_mul(TENTHS_PER_FRAME))
                .min(most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_at_its_index() {
        for (index, rate) in FRAME_RATES.iter().enumerate() {
            assert_eq!(rate.kind as usize, index);
        }
    }

    #[test]
    fn time_refills_up_to_the_burst() {
        let mut left = FloodLimits::full(256);
        for _ in 0..16 {
            assert!(left.take(FrameKind::Settings));
        }
        assert!(!left.take(FrameKind::Settings));

        left.pass(9);
        assert!(!left.take(FrameKind::Settings));
        left.pass(1);
        assert!(left.take(FrameKind::Settings));
        assert!(!left.take(FrameKind::Settings));

        left.pass(u32::MAX);
        assert_eq!(
            (0..100).filter(|_| left.take(FrameKind::Settings)).count(),
            16
        );
    }

    #[test]
    fn earned_credit_is_kept_when_time_passes() {
        let mut left = FloodLimits::full(256);
        left.earn(FrameKind::Ping, 100);
        left.pass(10);
        assert_eq!(
            (0..1000).filter(|_| left.take(FrameKind::Ping)).count(),
            164
        );
    }
}
