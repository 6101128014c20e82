//! How large a head is that was refused for its size, as far as its bytes are here.

use crate::chars::is_space;
use crate::error::FramingError;

impl FramingError {
    /// The same fault with the size that was sent, where `rest` tells it: what was read behind the
    /// accepted bytes of a request, the refused byte first. Where the end is not there yet, the size
    /// known to be too large stands.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other faults are not about sizes"
    )]
    pub fn measured(self, rest: &[u8]) -> Self {
        match self {
            Self::NameSize { actual, limit } => Self::NameSize {
                actual: grown(actual, rest.iter().position(|byte| b":\r\n".contains(byte))),
                limit,
            },
            Self::ValueSize { actual, limit } => Self::ValueSize {
                actual: grown(actual, value_end(rest)),
                limit,
            },
            Self::TargetSize { actual, limit } => Self::TargetSize {
                actual: grown(actual, rest.iter().position(|byte| b" \r\n".contains(byte))),
                limit,
            },
            Self::HeaderCount { actual, limit } => Self::HeaderCount {
                actual: grown(actual, lines(rest)),
                limit,
            },
            Self::HeaderSize { actual, limit } => Self::HeaderSize {
                actual: grown(actual, section_end(rest)),
                limit,
            },
            other => other,
        }
    }
}

/// `first_too_many`, and what follows it of the `count` that are there.
fn grown(first_too_many: u32, count: Option<usize>) -> u32 {
    let more = count.unwrap_or_default().saturating_sub(1);
    first_too_many.saturating_add(u32::try_from(more).unwrap_or(u32::MAX))
}

/// Bytes up to the end of the value that `rest` begins in, without the whitespace behind it.
fn value_end(rest: &[u8]) -> Option<usize> {
    let line_end = rest.iter().position(|byte| b"\r\n".contains(byte))?;
    let value = rest.get(..line_end)?;
    let last = value.iter().rposition(|byte| !is_space(*byte));
    Some(last.map_or(0, |last| last + 1))
}

/// Lines in `rest`, which begins with one, up to the empty line.
fn lines(rest: &[u8]) -> Option<usize> {
    let mut count = 0;
    for line in rest.split_inclusive(|byte| *byte == b'\n') {
        match line {
            b"\r\n" => return Some(count),
            [.., b'\n'] => count += 1,
            _ => return None,
        }
    }
    None
}

/// Bytes up to the end of the section's last line; `rest` may begin behind that line's first bytes, or
/// within its end.
fn section_end(rest: &[u8]) -> Option<usize> {
    if rest.starts_with(b"\n\r\n") {
        return Some(1);
    }
    let end = rest.windows(4).position(|at| at == b"\r\n\r\n")?;
    Some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_whole_is_measured() {
        let limit = 10;
        let actual = 11;
        for (fault, rest, whole) in [
            (FramingError::NameSize { actual, limit }, "xyz: 1\r\n", 13),
            (FramingError::ValueSize { actual, limit }, "xyz \t\r\n", 13),
            (
                FramingError::TargetSize { actual, limit },
                "xyz HTTP/1.1\r\n",
                13,
            ),
            (
                FramingError::HeaderCount { actual, limit },
                "a: 1\r\nb: 2\r\n\r\nrest",
                12,
            ),
            (
                FramingError::HeaderCount { actual, limit },
                "a: 1\r\n\r\n",
                11,
            ),
            (
                FramingError::HeaderSize { actual, limit },
                "z\r\nb: 2\r\n\r\nrest",
                19,
            ),
            (FramingError::HeaderSize { actual, limit }, "\r\n\r\n", 12),
            (FramingError::HeaderSize { actual, limit }, "\n\r\n", 11),
        ] {
            assert_eq!(
                size(fault.measured(rest.as_bytes())),
                whole,
                "{fault:?} {rest:?}"
            );
        }
    }

    #[test]
    fn what_is_not_here_whole_is_told_as_far_as_it_is_known() {
        let limit = 10;
        let actual = 11;
        for fault in [
            FramingError::NameSize { actual, limit },
            FramingError::ValueSize { actual, limit },
            FramingError::TargetSize { actual, limit },
            FramingError::HeaderCount { actual, limit },
            FramingError::HeaderSize { actual, limit },
        ] {
            for rest in ["", "x", "xyz"] {
                assert_eq!(fault.measured(rest.as_bytes()), fault, "{rest}");
            }
        }
        assert_eq!(
            FramingError::BareLf.measured(b"x\r\n\r\n"),
            FramingError::BareLf
        );
    }

    fn size(fault: FramingError) -> u32 {
        let (FramingError::NameSize { actual, .. }
        | FramingError::ValueSize { actual, .. }
        | FramingError::TargetSize { actual, .. }
        | FramingError::HeaderCount { actual, .. }
        | FramingError::HeaderSize { actual, .. }) = fault
        else {
            panic!("{fault}");
        };
        actual
    }
}
