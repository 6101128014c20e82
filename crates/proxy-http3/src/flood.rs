//! Flood protection: allowances for frames and streams that cost work but carry no data.

use std::fmt;

/// Kind of event that a client can cause cheaply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloodKind {
    /// A stream reset by the client before its request was forwarded or answered. [CVE-2023-44487]
    Reset,
    /// A frame on the control stream, or an instruction on a QPACK stream.
    Control,
    /// An unknown frame on a request stream, or an empty `DATA` frame.
    EmptyFrame,
    /// A unidirectional stream of an unknown type.
    UnknownStream,
    /// A request that was refused as malformed.
    MalformedRequest,
}

impl fmt::Display for FloodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "cancelled streams",
            Self::Control => "control frames",
            Self::EmptyFrame => "frames without data",
            Self::UnknownStream => "streams of an unknown type",
            Self::MalformedRequest => "malformed requests",
        })
    }
}

/// The client has exhausted an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many {0}")]
pub struct Flood(pub FloodKind);

const KINDS: usize = 5;

/// Burst of each kind except resets, in the order of the variants. An eighth of it is refilled per
/// second.
const BURSTS: [u32; KINDS] = [0, 256, 256, 64, 256];

/// Events are counted in tenths, because refills happen in tenths of a second.
const TENTHS_PER_EVENT: u32 = 10;

/// Maximum configurable burst of resets, which keeps the sums below from overflowing.
const MAX_RESETS: u32 = 1_000_000;

/// Maximum number of resets that requests can earn beyond the burst: one per stream that may be
/// open.
const MAX_EARNED: u32 = 10_000;

/// Number of control frames, and of empty frames, that each request earns. Browsers send a priority
/// update with each request, and some send frames of reserved types. [RFC 9218 §7, RFC 9114 §7.2.8]
const FRAMES_PER_REQUEST: u32 = 4;

/// Remaining allowances of one connection.
#[derive(Clone, Debug)]
pub struct FloodMeter {
    /// Remaining events by kind, in tenths.
    left: [u32; KINDS],
    bursts: [u32; KINDS],
    /// Time of the last refill, in tenths of a second.
    now: u64,
}

impl FloodMeter {
    /// Full allowances; `max_resets` is the burst of [`FloodKind::Reset`]. `now` is in tenths of a
    /// second.
    #[must_use]
    pub fn new(max_resets: u32, now: u64) -> Self {
        let [_, rest @ ..] = BURSTS;
        let mut bursts = [max_resets.min(MAX_RESETS); KINDS];
        if let Some(others) = bursts.get_mut(1..) {
            others.copy_from_slice(&rest);
        }
        Self {
            left: bursts.map(|burst| burst * TENTHS_PER_EVENT),
            bursts,
            now,
        }
    }

    /// Charges `count` events at `now`, in tenths of a second.
    ///
    /// # Errors
    /// [`Flood`] if the allowance is exhausted.
    pub fn take(&mut self, kind: FloodKind, count: u32, now: u64) -> Result<(), Flood> {
        self.refill(now);
        let wanted = count.saturating_mul(TENTHS_PER_EVENT);
        let left = self.left.get_mut(kind as usize).ok_or(Flood(kind))?;
        *left = left.checked_sub(wanted).ok_or(Flood(kind))?;
        Ok(())
    }

    /// Earns allowances for `requests` that were forwarded or answered: further resets, control
    /// frames and empty frames.
    pub fn earn(&mut self, requests: u32) {
        let frames = requests.saturating_mul(FRAMES_PER_REQUEST);
        self.allow(FloodKind::Reset, requests);
        self.allow(FloodKind::Control, frames);
        self.allow(FloodKind::EmptyFrame, frames);
    }

    fn allow(&mut self, kind: FloodKind, count: u32) {
        let index = kind as usize;
        if let (Some(left), Some(burst)) = (self.left.get_mut(index), self.bursts.get(index)) {
            let most = (burst + MAX_EARNED) * TENTHS_PER_EVENT;
            *left = left
                .saturating_add(count.saturating_mul(TENTHS_PER_EVENT))
                .min(most.max(*left));
        }
    }

    fn refill(&mut self, now: u64) {
        let tenths = now.saturating_sub(self.now);
        if tenths == 0 {
            return;
        }
        self.now = now;
        let tenths = u32::try_from(tenths).unwrap_or(u32::MAX);
        for (left, burst) in self.left.iter_mut().zip(self.bursts) {
            // Earned allowances may exceed the burst.
            let full = (burst * TENTHS_PER_EVENT).max(*left);
            let more = burst.div_ceil(8).saturating_mul(tenths);
            *left = left.saturating_add(more).min(full);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(meter: &mut FloodMeter, kind: FloodKind, now: u64) -> u32 {
        let mut events = 0..100_000_u32;
        events
            .find(|_| meter.take(kind, 1, now).is_err())
            .unwrap_or(100_000)
    }

    #[test]
    fn an_allowance_is_refilled_by_an_eighth_each_second() {
        let mut meter = FloodMeter::new(80, 0);
        assert_eq!(taken(&mut meter, FloodKind::Reset, 0), 80);
        assert_eq!(taken(&mut meter, FloodKind::Reset, 10), 10);
        assert_eq!(taken(&mut meter, FloodKind::Reset, u64::MAX), 80);
        assert_eq!(taken(&mut meter, FloodKind::Control, u64::MAX), 256);
        assert_eq!(
            meter.take(FloodKind::Control, 1, u64::MAX),
            Err(Flood(FloodKind::Control))
        );
    }

    #[test]
    fn answered_requests_earn_resets_and_frames() {
        let mut meter = FloodMeter::new(16, 0);
        meter.earn(100);
        assert_eq!(taken(&mut meter, FloodKind::Reset, 0), 116);
        assert_eq!(taken(&mut meter, FloodKind::Control, 0), 656);
        assert_eq!(taken(&mut meter, FloodKind::EmptyFrame, 0), 656);
        assert_eq!(taken(&mut meter, FloodKind::UnknownStream, 0), 64);
        meter.earn(u32::MAX);
        assert_eq!(taken(&mut meter, FloodKind::Reset, 0), 10_016);
    }
}
