//! The status line of a response.

use crate::chars;
use crate::chars::runs;
use crate::error::FramingError;
use crate::input::{Input, Progress};
use crate::limits::HeadLimits;
use crate::message::{ResponseSummary, Version};

const VERSION: &[u8; 7] = b"HTTP/1.";

/// A status line that may be divided at any byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusLine {
    step: Step,
    version: Version,
    status: u16,
    /// Number of bytes of the current part.
    len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Version,
    /// The space before the code.
    Space,
    Code,
    /// The space after the code, or the line end if the server omits the reason.
    Gap,
    Reason,
    Lf,
    End,
}

impl StatusLine {
    pub(crate) const fn new() -> Self {
        Self {
            step: Step::Version,
            version: Version::Http11,
            status: 0,
            len: 0,
        }
    }

    /// Returns true if no byte arrived.
    pub(crate) fn is_blank(self) -> bool {
        self.step == Step::Version && self.len == 0
    }

    /// The meaning of a complete line.
    pub(crate) fn answered(self) -> ResponseSummary {
        ResponseSummary {
            version: self.version,
            status: self.status,
        }
    }

    /// Reads to the end of the line or of the input; `may` decides on the status code as soon as it
    /// is known.
    pub(crate) fn scan(
        &mut self,
        input: &mut Input<'_>,
        limits: &HeadLimits,
        may: impl Fn(u16) -> Result<(), FramingError>,
    ) -> Result<Progress, FramingError> {
        while let Some(byte) = input.peek() {
            self.push(byte, limits, &may)?;
            input.at += 1;
            if self.step == Step::End {
                return Ok(Progress::Done);
            }
        }
        Ok(Progress::Incomplete)
    }

    fn push(
        &mut self,
        byte: u8,
        limits: &HeadLimits,
        may: impl Fn(u16) -> Result<(), FramingError>,
    ) -> Result<(), FramingError> {
        match (self.step, byte) {
            (Step::Lf, b'\n') => self.step = Step::End,
            (Step::Lf, _) => return Err(FramingError::BareCr),
            (_, 0) => return Err(FramingError::NulByte),
            (_, b'\n') => return Err(FramingError::BareLf),
            (Step::Gap | Step::Reason, b'\r') => self.step = Step::Lf,
            (Step::Version, _) => self.push_version(byte)?,
            (Step::Space, b' ') => self.go(Step::Code),
            (Step::Space, b'0'..=b'9') => return Err(FramingError::BadVersion),
            (Step::Code, b'0'..=b'9') => self.push_code(byte, may)?,
            (Step::Gap, b' ') => self.go(Step::Reason),
            (Step::Code | Step::Gap, _) => return Err(FramingError::BadStatusCode),
            (Step::Reason, _) => self.push_reason(byte, limits)?,
            (Step::Space | Step::End, _) => return Err(FramingError::BadStatusLine),
        }
        Ok(())
    }

    fn go(&mut self, step: Step) {
        self.step = step;
        self.len = 0;
    }

    fn push_version(&mut self, byte: u8) -> Result<(), FramingError> {
        let expected = VERSION.get(self.len as usize);
        match (expected, byte) {
            (Some(&expected), _) if byte == expected => {}
            (None, b'0') => self.version = Version::Http10,
            (None, b'1') => self.version = Version::Http11,
            _ if self.len < 5 => return Err(FramingError::BadStatusLine),
            _ => return Err(FramingError::BadVersion),
        }
        self.len += 1;
        if expected.is_none() {
            self.go(Step::Space);
        }
        Ok(())
    }

    fn push_code(
        &mut self,
        byte: u8,
        may: impl Fn(u16) -> Result<(), FramingError>,
    ) -> Result<(), FramingError> {
        if self.len == 0 && !matches!(byte, b'1'..=b'5') {
            return Err(FramingError::BadStatusCode);
        }
        self.status = self.status * 10 + u16::from(byte - b'0');
        self.len += 1;
        if self.len == 3 {
            may(self.status)?;
            self.go(Step::Gap);
        }
        Ok(())
    }

    fn push_reason(&mut self, byte: u8, limits: &HeadLimits) -> Result<(), FramingError> {
        let limit = limits.max_target_bytes;
        if !chars::is_value(byte) {
            return Err(FramingError::ControlByteInValue);
        }
        if limit <= self.len {
            return Err(FramingError::TargetSize {
                actual: limit + 1,
                limit,
            });
        }
        self.len += 1;
        Ok(())
    }
}

/// The parsed status line at the beginning of `bytes`, and the bytes after it, if
/// its reason has no tab.
#[inline]
pub(crate) fn plain<'a>(
    bytes: &'a [u8],
    limits: &HeadLimits,
) -> Option<(ResponseSummary, &'a [u8])> {
    const HTTP11: u64 = u64::from_le_bytes(*b"HTTP/1.1");
    const HTTP10: u64 = u64::from_le_bytes(*b"HTTP/1.0");
    let (version, after) = bytes.split_first_chunk()?;
    let version = match u64::from_le_bytes(*version) {
        HTTP11 => Version::Http11,
        HTTP10 => Version::Http10,
        _ => return None,
    };
    let [
        b' ',
        a @ b'1'..=b'5',
        b @ b'0'..=b'9',
        c @ b'0'..=b'9',
        b' ',
        reason @ ..,
    ] = after
    else {
        return None;
    };
    let digit = |byte: &u8| u16::from(byte - b'0');
    let status = digit(a) * 100 + digit(b) * 10 + digit(c);
    let from_end = runs::after_value(reason);
    let fits = reason.len() - from_end.len() <= limits.max_target_bytes as usize;
    let [b'\r', b'\n', after @ ..] = from_end else {
        return None;
    };
    fits.then_some((ResponseSummary { version, status }, after))
}
