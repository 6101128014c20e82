//! The request line, with the empty lines that may precede it.

use crate::chars;
use crate::chars::runs;
use crate::error::FramingError;
use crate::input::{Input, Progress};
use crate::limits::HeadLimits;
use crate::message::{RequestSummary, Version};
use crate::start_line::target::{Method, Target};

const MAX_METHOD_BYTES: u32 = 32;
/// Maximum number of empty lines before a request: one that old clients send after a body, and one
/// more. [RFC 9112 §2.2]
const MAX_EMPTY_LINES: u8 = 2;
const VERSION: &[u8; 7] = b"HTTP/1.";

/// A request line that may be divided at any byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLine {
    step: Step,
    empty_lines: u8,
    /// Bits of the methods `CONNECT`, `OPTIONS`, `PRI` that begin with the letters read.
    candidates: u8,
    method: Method,
    version: Version,
    /// Number of bytes of the current part.
    len: u32,
    target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Before the first byte of the method.
    Blank,
    BlankLf,
    Method,
    Target,
    Version,
    Cr,
    Lf,
    End,
}

const SPECIAL: [(&[u8], Method); 3] = [
    (b"CONNECT", Method::Connect),
    (b"OPTIONS", Method::Options),
    (b"PRI", Method::Pri),
];

impl RequestLine {
    pub(crate) const fn new() -> Self {
        Self {
            step: Step::Blank,
            empty_lines: 0,
            candidates: 0b111,
            method: Method::Other,
            version: Version::Http11,
            len: 0,
            target: Target::Empty,
        }
    }

    /// Returns true if no byte arrived.
    pub(crate) fn is_untouched(&self) -> bool {
        self.step == Step::Blank && self.empty_lines == 0
    }

    /// Returns true if only empty lines arrived.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self.step, Step::Blank | Step::BlankLf)
    }

    /// Summary of a complete line: its version, and whether the method is CONNECT.
    pub(crate) fn summary(&self) -> RequestSummary {
        RequestSummary {
            version: self.version,
            connect: self.method == Method::Connect,
        }
    }

    /// Reads to the end of the line or of the input.
    pub(crate) fn scan(
        &mut self,
        input: &mut Input<'_>,
        limits: &HeadLimits,
    ) -> Result<Progress, FramingError> {
        while let Some(byte) = input.peek() {
            self.push(byte, limits)?;
            input.at += 1;
            if self.step == Step::End {
                return Ok(Progress::Done);
            }
        }
        Ok(Progress::Incomplete)
    }

    fn push(&mut self, byte: u8, limits: &HeadLimits) -> Result<(), FramingError> {
        match (self.step, byte) {
            (Step::BlankLf | Step::Lf, b'\n') => {
                self.step = if self.step == Step::Lf {
                    Step::End
                } else {
                    Step::Blank
                };
                Ok(())
            }
            (Step::BlankLf | Step::Lf, _) => Err(FramingError::BareCr),
            (_, 0) => Err(FramingError::NulByte),
            (_, b'\n') => Err(FramingError::BareLf),
            (Step::Blank, b'\r') if self.empty_lines < MAX_EMPTY_LINES => {
                self.empty_lines += 1;
                self.step = Step::BlankLf;
                Ok(())
            }
            (Step::Cr, b'\r') => {
                self.step = Step::Lf;
                Ok(())
            }
            (_, b'\r') => Err(FramingError::BadRequestLine),
            (Step::Blank | Step::Method, _) => self.push_method(byte),
            (Step::Target, _) => self.push_target(byte, limits),
            (Step::Version, _) => self.push_version(byte),
            (Step::Cr | Step::End, b'0'..=b'9') => Err(FramingError::BadVersion),
            (Step::Cr | Step::End, _) => Err(FramingError::BadRequestLine),
        }
    }

    fn push_method(&mut self, byte: u8) -> Result<(), FramingError> {
        if byte == b' ' && self.step == Step::Method {
            let special = SPECIAL.iter().enumerate().find(|(bit, (spelling, _))| {
                self.candidates & (1 << bit) != 0 && spelling.len() == self.len as usize
            });
            self.method = special.map_or(Method::Other, |(_, (_, method))| *method);
            self.step = Step::Target;
            self.len = 0;
            return Ok(());
        }
        if !chars::is_token(byte) || MAX_METHOD_BYTES <= self.len {
            return Err(FramingError::BadMethod);
        }
        for (bit, (spelling, _)) in SPECIAL.iter().enumerate() {
            if spelling.get(self.len as usize) != Some(&byte) {
                self.candidates &= !(1 << bit);
            }
        }
        self.step = Step::Method;
        self.len += 1;
        Ok(())
    }

    fn push_target(&mut self, byte: u8, limits: &HeadLimits) -> Result<(), FramingError> {
        if byte == b' ' {
            if !self.target.is_complete() {
                return Err(FramingError::BadTarget);
            }
            self.step = Step::Version;
            self.len = 0;
            return Ok(());
        }
        let limit = limits.max_target_bytes;
        if limit <= self.len {
            return Err(FramingError::TargetSize {
                actual: limit + 1,
                limit,
            });
        }
        if !self.target.push(byte, self.method) {
            return Err(FramingError::BadTarget);
        }
        self.len += 1;
        Ok(())
    }

    fn push_version(&mut self, byte: u8) -> Result<(), FramingError> {
        const MAJOR: u32 = 5;
        let expected = VERSION.get(self.len as usize);
        let preface = self.method == Method::Pri;
        match (expected, byte) {
            (Some(_), b'2') if preface && self.len == MAJOR => {
                return Err(FramingError::Http2Preface);
            }
            (Some(_), b'1') if preface && self.len == MAJOR => return Err(FramingError::BadTarget),
            (Some(&expected), _) if byte == expected => {}
            (None, b'0') => self.version = Version::Http10,
            (None, b'1') => self.version = Version::Http11,
            (_, b' ' | b'\t') => return Err(FramingError::BadRequestLine),
            _ => return Err(FramingError::BadVersion),
        }
        self.len += 1;
        if expected.is_none() {
            self.step = Step::Cr;
        }
        Ok(())
    }
}

/// The parsed request line at the beginning of `bytes`, and the bytes after it, if
/// its method is a common one and its target a path of common bytes.
#[inline]
pub(crate) fn plain<'a>(bytes: &'a [u8], limits: &HeadLimits) -> Option<(Version, &'a [u8])> {
    const HTTP11: u64 = u64::from_le_bytes(*b"HTTP/1.1");
    const HTTP10: u64 = u64::from_le_bytes(*b"HTTP/1.0");
    let ([b'G', b'E', b'T', b' ', target @ ..]
    | [b'P', b'U', b'T', b' ', target @ ..]
    | [b'P', b'O', b'S', b'T', b' ', target @ ..]
    | [b'H', b'E', b'A', b'D', b' ', target @ ..]) = bytes
    else {
        return None;
    };
    let after = runs::after_target(target);
    let fits = target.len() - after.len() <= limits.max_target_bytes as usize;
    let [b' ', after @ ..] = after else {
        return None;
    };
    let (version, after) = after.split_first_chunk()?;
    let version = match u64::from_le_bytes(*version) {
        HTTP11 => Version::Http11,
        HTTP10 => Version::Http10,
        _ => return None,
    };
    let [b'\r', b'\n', after @ ..] = after else {
        return None;
    };
    (fits && target.first() == Some(&b'/')).then_some((version, after))
}
