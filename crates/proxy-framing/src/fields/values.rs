//! The field values that framing depends on, read byte by byte.

use crate::authority::Authority;
use crate::chars;
use crate::error::FramingError;
use crate::fields::names::KnownField;

const CHUNKED: &[u8; 7] = b"chunked";
const UPGRADE: &[u8; 7] = b"upgrade";
/// 2⁶³ − 1: far larger than any body, and adding two cannot overflow a `u64`.
const MAX_BODY_BYTES: u64 = u64::MAX / 2;

/// State of reading a value; white space around it is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A value that is only counted.
    Plain,
    Length(Length),
    Coding(Coding),
    Host(Host),
    Options(Options),
    /// A value that matters only by its presence.
    Upgrade,
    Correlation,
}

/// A decimal number, and not a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    value: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Empty,
    Begun,
    /// After white space; no other byte may follow.
    Ended,
}

/// A host. `Host` may be empty for targets without an authority only, which `http` and `https` do
/// not have. [RFC 9112 §3.2, RFC 9110 §4.2.1]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    authority: Authority,
    ended: bool,
}

/// The word `chunked`: number of its letters read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coding {
    letters: u8,
    ended: bool,
}

/// A list of connection options in which `upgrade` may occur. [RFC 9110 §7.6.1]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    word: Word,
    upgrade: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// The first letters of `upgrade`, this many, and nothing else.
    Upgrade(u8),
    /// All of `upgrade`, followed by white space.
    UpgradeGap,
    Other,
}

impl Value {
    pub(crate) fn new(known: KnownField) -> Self {
        match known {
            KnownField::Other => Self::Plain,
            KnownField::Host => Self::Host(Host {
                authority: Authority::Empty,
                ended: false,
            }),
            KnownField::Upgrade => Self::Upgrade,
            KnownField::Connection => Self::Options(Options::new()),
            KnownField::ContentLength => Self::Length(Length {
                value: 0,
                stage: Stage::Empty,
            }),
            KnownField::CorrelationId => Self::Correlation,
            KnownField::TransferEncoding => Self::Coding(Coding {
                letters: 0,
                ended: false,
            }),
        }
    }

    /// Consumes one byte of a value; the first one is not white space.
    pub(crate) fn push(&mut self, byte: u8) -> Result<(), FramingError> {
        match self {
            Self::Plain | Self::Upgrade | Self::Correlation => Ok(()),
            Self::Length(length) => length.push(byte),
            Self::Coding(coding) => coding.push(byte),
            Self::Host(host) => host.push(byte),
            Self::Options(options) => {
                options.push(byte);
                Ok(())
            }
        }
    }
}

impl Host {
    fn push(&mut self, byte: u8) -> Result<(), FramingError> {
        if chars::is_space(byte) {
            self.ended = true;
            return Ok(());
        }
        if self.ended || !self.authority.push(byte) {
            return Err(FramingError::BadHost);
        }
        Ok(())
    }

    pub(crate) fn end(self) -> Result<(), FramingError> {
        if !self.authority.is_complete() {
            return Err(FramingError::BadHost);
        }
        Ok(())
    }
}

impl Length {
    fn push(&mut self, byte: u8) -> Result<(), FramingError> {
        match byte {
            b',' => Err(FramingError::RepeatedContentLength),
            b' ' | b'\t' => {
                self.stage = Stage::Ended;
                Ok(())
            }
            b'0'..=b'9' if self.stage != Stage::Ended => {
                let digit = u64::from(byte - b'0');
                let value = self
                    .value
                    .checked_mul(10)
                    .and_then(|ten| ten.checked_add(digit));
                let value = value.filter(|&value| value <= MAX_BODY_BYTES);
                self.value = value.ok_or(FramingError::BadContentLength)?;
                self.stage = Stage::Begun;
                Ok(())
            }
            _ => Err(FramingError::BadContentLength),
        }
    }

    pub(crate) fn end(self) -> Result<u64, FramingError> {
        if self.stage == Stage::Empty {
            return Err(FramingError::BadContentLength);
        }
        Ok(self.value)
    }
}

impl Coding {
    fn push(&mut self, byte: u8) -> Result<(), FramingError> {
        if chars::is_space(byte) {
            self.ended = true;
            return Ok(());
        }
        let expected = CHUNKED.get(usize::from(self.letters));
        if self.ended || expected != Some(&byte.to_ascii_lowercase()) {
            return Err(FramingError::TransferEncodingNotChunked);
        }
        self.letters += 1;
        Ok(())
    }

    pub(crate) fn end(self) -> Result<(), FramingError> {
        if usize::from(self.letters) < CHUNKED.len() {
            return Err(FramingError::TransferEncodingNotChunked);
        }
        Ok(())
    }
}

impl Options {
    const fn new() -> Self {
        Self {
            word: Word::Upgrade(0),
            upgrade: false,
        }
    }

    fn push(&mut self, byte: u8) {
        if byte == b',' {
            self.end_option();
            return;
        }
        let space = chars::is_space(byte);
        self.word = match self.word {
            Word::Upgrade(0) if space => Word::Upgrade(0),
            Word::Upgrade(letters) if space && usize::from(letters) == UPGRADE.len() => {
                Word::UpgradeGap
            }
            Word::Upgrade(letters)
                if UPGRADE.get(usize::from(letters)) == Some(&byte.to_ascii_lowercase()) =>
            {
                Word::Upgrade(letters + 1)
            }
            Word::UpgradeGap if space => Word::UpgradeGap,
            Word::Upgrade(_) | Word::UpgradeGap | Word::Other => Word::Other,
        };
    }

    fn end_option(&mut self) {
        let whole = match self.word {
            Word::Upgrade(letters) => usize::from(letters) == UPGRADE.len(),
            Word::UpgradeGap => true,
            Word::Other => false,
        };
        *self = Self {
            word: Word::Upgrade(0),
            upgrade: self.upgrade || whole,
        };
    }

    /// Returns true if `upgrade` is one of the options.
    pub(crate) fn end(mut self) -> bool {
        self.end_option();
        self.upgrade
    }
}
