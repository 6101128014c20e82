//! A field line, read byte by byte by the state machine that decides what is malformed.

use crate::chars;
use crate::chars::runs;
use crate::error::FramingError;
use crate::fields::names::{Candidates, KnownField};
use crate::fields::values::Value;
use crate::limits::HeadLimits;

/// A field line, or the empty line that ends a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) step: Step,
    candidates: Candidates,
    /// Number of bytes of the name read, then of the value.
    len: u32,
    value: Value,
}

/// The part of a [`Line`] that is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The first byte of a name, or the empty line.
    Start,
    Name,
    /// Whitespace between the colon and the value.
    Gap,
    Value,
    Lf,
    /// The line feed of the empty line.
    LastLf,
}

/// The meaning of one byte of a field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Nothing,
    /// The name is complete.
    Named(KnownField),
    /// The byte belongs to the value of the correlation ID.
    Correlation,
    /// The value is complete, its line is not.
    Valued(Value),
    /// The line is complete.
    LineEnd,
    /// The empty line is complete.
    SectionEnd,
}

impl Line {
    pub(crate) const fn new() -> Self {
        Self {
            step: Step::Start,
            candidates: Candidates::ALL,
            len: 0,
            value: Value::Plain,
        }
    }

    /// Sets how the value after the last [`Event::Named`] is read.
    pub(crate) fn read_as(&mut self, value: Value) {
        self.value = value;
    }

    /// Number of bytes of `rest`, at most `room`, that certainly belong to the value.
    pub(crate) fn run(&mut self, rest: &[u8], room: u32, limits: &HeadLimits) -> u32 {
        if self.step != Step::Value || self.value != Value::Plain {
            return 0;
        }
        let room = room.min(limits.max_value_bytes.saturating_sub(self.len));
        let rest = rest.get(..room as usize).unwrap_or(rest);
        let run = rest.len() - runs::after_value(rest).len();
        let run = u32::try_from(run).unwrap_or(room);
        self.len += run;
        run
    }

    /// Consumes one byte.
    pub(crate) fn push(&mut self, byte: u8, limits: &HeadLimits) -> Result<Event, FramingError> {
        match (self.step, byte) {
            (Step::Lf, b'\n') => Ok(Event::LineEnd),
            (Step::LastLf, b'\n') => Ok(Event::SectionEnd),
            (Step::Lf | Step::LastLf, _) => Err(FramingError::BareCr),
            (_, 0) => Err(FramingError::NulByte),
            (_, b'\n') => Err(FramingError::BareLf),
            (Step::Start, b'\r') => {
                self.step = Step::LastLf;
                Ok(Event::Nothing)
            }
            (Step::Start | Step::Name, _) => self.name(byte, limits),
            (Step::Gap | Step::Value, b'\r') => {
                self.step = Step::Lf;
                Ok(Event::Valued(self.value))
            }
            (Step::Gap, b' ' | b'\t') => Ok(Event::Nothing),
            (Step::Gap | Step::Value, _) => self.value(byte, limits),
        }
    }

    fn name(&mut self, byte: u8, limits: &HeadLimits) -> Result<Event, FramingError> {
        match byte {
            b':' if self.step == Step::Start => Err(FramingError::EmptyName),
            b':' => {
                let known = self.candidates.known(self.len);
                self.step = Step::Gap;
                self.len = 0;
                Ok(Event::Named(known))
            }
            b' ' | b'\t' => Err(FramingError::SpaceBeforeColon),
            _ if !chars::is_token(byte) => Err(FramingError::BadNameByte),
            _ if limits.max_name_bytes <= self.len => Err(FramingError::NameSize {
                actual: self.len + 1,
                limit: limits.max_name_bytes,
            }),
            _ => {
                self.candidates.narrow(self.len, byte);
                self.step = Step::Name;
                self.len += 1;
                Ok(Event::Nothing)
            }
        }
    }

    fn value(&mut self, byte: u8, limits: &HeadLimits) -> Result<Event, FramingError> {
        if !chars::is_value(byte) {
            return Err(FramingError::ControlByteInValue);
        }
        let limit = limits.max_value_bytes;
        if limit <= self.len && !chars::is_space(byte) {
            return Err(FramingError::ValueSize {
                actual: self.len.saturating_add(1),
                limit,
            });
        }
        self.step = Step::Value;
        self.len = self.len.saturating_add(1);
        self.value.push(byte)?;
        Ok(if self.value == Value::Correlation {
            Event::Correlation
        } else {
            Event::Nothing
        })
    }
}
