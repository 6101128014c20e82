//! The size of a head that was refused for its size, as far as its bytes have arrived.

use crate::chars::is_space;
use crate::error::FramingError;

/// Multiple of the limit up to which a size is measured.
const MAX_TIMES_LIMIT: u32 = 4;

/// Maximum number of bytes examined: a limit on the number of lines alone permits many.
const MAX_BYTES: usize = 256 * 1024;

/// Measures the refused part of a message: a name, a value, a target, a section, or its lines.
#[derive(Clone, Debug)]
pub struct SizeMeter {
    fault: FramingError,
    /// Bytes or lines from the first one that was refused on.
    length: u32,
    /// Bytes examined.
    bytes: usize,
    /// The last four examined bytes.
    tail: u32,
    state: MeterState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeterState {
    Counting,
    /// The end was reached: the size is exact.
    Ended,
    /// The bound was reached first: the size is at least this.
    TooLarge,
}

impl SizeMeter {
    /// A meter for `fault`; `None` for a fault that is not about a size.
    #[must_use]
    pub fn new(fault: FramingError) -> Option<Self> {
        fault.size().map(|_| Self {
            fault,
            length: 0,
            bytes: 0,
            // A refused line feed follows an accepted carriage return.
            tail: u32::from(b'\r'),
            state: MeterState::Counting,
        })
    }

    /// Examines the next bytes, from the refused one on.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.state != MeterState::Counting {
                return;
            }
            self.bytes += 1;
            self.tail = self.tail << 8 | u32::from(*byte);
            if self.ends_at(*byte) {
                self.state = MeterState::Ended;
            } else if self.is_full() {
                self.state = MeterState::TooLarge;
            }
        }
    }

    /// Returns true if the measurement is complete.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state != MeterState::Counting
    }

    /// Returns true if the size is known, not only how large it is at least.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.state == MeterState::Ended
    }

    /// The fault, with the size as far as it was measured.
    #[must_use]
    pub fn fault(&self) -> FramingError {
        self.fault.larger_by(self.length.saturating_sub(1))
    }

    /// Counts `byte`. Returns true if the measured part has ended with it.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other faults are not about sizes"
    )]
    fn ends_at(&mut self, byte: u8) -> bool {
        let seen = u32::try_from(self.bytes).unwrap_or(u32::MAX);
        match self.fault {
            FramingError::NameSize { .. } if b":\r\n".contains(&byte) => return true,
            FramingError::TargetSize { .. } if b" \r\n".contains(&byte) => return true,
            FramingError::ValueSize { .. } => match byte {
                b'\r' | b'\n' => return true,
                // Trailing white space is not part of the value.
                byte if is_space(byte) => {}
                _ => self.length = seen,
            },
            FramingError::HeaderCount { .. } => {
                // The first line has not ended when its first byte is refused.
                let is_empty_line = self.tail.to_be_bytes().ends_with(b"\n\r\n");
                self.length += u32::from(byte == b'\n' && !is_empty_line);
                return is_empty_line;
            }
            FramingError::HeaderSize { .. } => {
                let ended = &self.tail.to_be_bytes() == b"\r\n\r\n";
                self.length = if ended { seen.saturating_sub(2) } else { seen };
                return ended;
            }
            _ => self.length = seen,
        }
        false
    }

    fn is_full(&self) -> bool {
        let (actual, limit) = self.fault().size().unwrap_or_default();
        MAX_BYTES <= self.bytes || limit.saturating_mul(MAX_TIMES_LIMIT) <= actual
    }
}

impl FramingError {
    /// The size reached and the limit, for a fault that is about a size.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other faults are not about sizes"
    )]
    fn size(self) -> Option<(u32, u32)> {
        match self {
            Self::NameSize { actual, limit }
            | Self::ValueSize { actual, limit }
            | Self::TargetSize { actual, limit }
            | Self::HeaderCount { actual, limit }
            | Self::HeaderSize { actual, limit } => Some((actual, limit)),
            _ => None,
        }
    }

    /// Adds `more` to the size in the fault.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other faults are not about sizes"
    )]
    fn larger_by(mut self, more: u32) -> Self {
        match &mut self {
            Self::NameSize { actual, .. }
            | Self::ValueSize { actual, .. }
            | Self::TargetSize { actual, .. }
            | Self::HeaderCount { actual, .. }
            | Self::HeaderSize { actual, .. } => *actual = actual.saturating_add(more),
            _ => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u32 = 10;
    const ACTUAL: u32 = 11;
    const FAULTS: [FramingError; 5] = [
        FramingError::NameSize {
            actual: ACTUAL,
            limit: LIMIT,
        },
        FramingError::ValueSize {
            actual: ACTUAL,
            limit: LIMIT,
        },
        FramingError::TargetSize {
            actual: ACTUAL,
            limit: LIMIT,
        },
        FramingError::HeaderCount {
            actual: ACTUAL,
            limit: LIMIT,
        },
        FramingError::HeaderSize {
            actual: ACTUAL,
            limit: LIMIT,
        },
    ];

    /// The measured size, whether it is exact, and whether more input is needed.
    fn measure<'b>(
        fault: FramingError,
        pieces: impl Iterator<Item = &'b [u8]>,
    ) -> (u32, bool, bool) {
        let mut meter = SizeMeter::new(fault).unwrap();
        for piece in pieces {
            meter.push(piece);
        }
        let (actual, _) = meter.fault().size().unwrap();
        (actual, meter.is_exact(), !meter.is_over())
    }

    #[test]
    fn the_size_is_measured_to_its_end_however_it_is_cut() {
        let [name, value, target, count, size] = FAULTS;
        for (fault, rest, whole) in [
            (name, "xyz: 1\r\n", 13),
            (value, "xyz \t\r\n", 13),
            (value, "xyz z\r\n", 15),
            (target, "xyz HTTP/1.1\r\n", 13),
            (count, "a: 1\r\nb: 2\r\n\r\nrest", 12),
            (count, "a: 1\r\n\r\n", 11),
            (size, "z\r\nb: 2\r\n\r\nrest", 19),
            (size, "\r\n\r\n", 12),
            (size, "\n\r\n", 11),
        ] {
            let known = (whole, true, false);
            let at_once = std::iter::once(rest.as_bytes());
            assert_eq!(measure(fault, at_once), known, "{fault:?} {rest:?}");
            assert_eq!(
                measure(fault, rest.as_bytes().chunks(1)),
                known,
                "{fault:?} {rest:?}"
            );
        }
    }

    #[test]
    fn an_unfinished_head_is_measured_as_far_as_it_arrived() {
        let [name, value, target, count, size] = FAULTS;
        for (fault, rest, so_far) in [
            (name, "", 11),
            (name, "xyz", 13),
            (value, "xyz ", 13),
            (target, "xyz", 13),
            (count, "a: 1\r\nb: 2", 11),
            (size, "z\r\nb", 14),
        ] {
            let reported = measure(fault, std::iter::once(rest.as_bytes()));
            assert_eq!(reported, (so_far, false, true), "{fault:?} {rest:?}");
        }
    }

    #[test]
    fn no_more_than_four_times_the_limit_is_measured() {
        for fault in FAULTS {
            let endless = b"\n".repeat(1000);
            let endless = if matches!(fault, FramingError::HeaderCount { .. }) {
                endless
            } else {
                b"x".repeat(1000)
            };
            let reported = measure(fault, std::iter::once(&*endless));
            assert_eq!(reported, (40, false, false), "{fault:?}");
        }
        assert!(SizeMeter::new(FramingError::BareLf).is_none());
    }
}
