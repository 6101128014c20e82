//! Sections of field lines: their meaning for framing, and their size.

pub(crate) mod correlation;
pub(crate) mod field_line;
pub(crate) mod grpc_timeout;
pub(crate) mod hops;
pub(crate) mod names;
mod plain_lines;
pub(crate) mod values;

use crate::error::FramingError;
use crate::fields::correlation::Correlation;
use crate::fields::field_line::{Event, Line, Step};
use crate::fields::names::KnownField;
use crate::fields::values::Value;
use crate::input::{Input, Progress};
use crate::limits::HeadLimits;
use crate::message::Version;

/// Maximum number of bytes of trailer lines: hyper refuses 16 KiB, the empty line included.
const MAX_TRAILER_BYTES: u32 = 16 * 1024 - 3;

/// Position in a section of field lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Request(Version),
    Response(Version),
    Trailers,
}

/// The length of the body, as far as the fields determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    Unspecified,
    Length(u64),
    Chunked,
}

/// The fields of a section that decide how later bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadSummary {
    pub(crate) body_length: BodyLength,
    /// The head has `Upgrade` and `Connection: upgrade`. [RFC 9110 §7.8]
    pub(crate) asks_upgrade: bool,
}

/// A section of field lines, from its first byte to its empty line.
#[derive(Debug)]
pub(crate) struct Fields {
    section: Section,
    host: bool,
    upgrade: bool,
    upgrade_option: bool,
    body_length: BodyLength,
    count: u32,
    size: u32,
    line: Line,
}

impl Fields {
    pub(crate) const fn new(section: Section) -> Self {
        Self {
            section,
            host: false,
            upgrade: false,
            upgrade_option: false,
            body_length: BodyLength::Unspecified,
            count: 0,
            size: 0,
            line: Line::new(),
        }
    }

    /// Summary of the lines read.
    pub(crate) fn summary(&self) -> HeadSummary {
        let may_upgrade = self.section == Section::Request(Version::Http11);
        HeadSummary {
            body_length: self.body_length,
            asks_upgrade: may_upgrade && self.upgrade && self.upgrade_option,
        }
    }

    /// Reads to the end of the section or of the input.
    pub(crate) fn scan(
        &mut self,
        input: &mut Input<'_>,
        limits: &HeadLimits,
        correlation: &mut Correlation,
    ) -> Result<Progress, FramingError> {
        loop {
            if self.line.step == Step::Start && self.plain_lines(input, limits, correlation, None) {
                return Ok(Progress::Done);
            }
            let run = self.line.run(input.rest(), self.room(limits), limits);
            self.size += run;
            input.at += run as usize;
            let Some(byte) = input.peek() else {
                return Ok(Progress::Incomplete);
            };
            let event = self.push(byte, limits, correlation)?;
            input.at += 1;
            if event == Event::SectionEnd {
                return Ok(Progress::Done);
            }
        }
    }

    fn push(
        &mut self,
        byte: u8,
        limits: &HeadLimits,
        correlation: &mut Correlation,
    ) -> Result<Event, FramingError> {
        match self.line.step {
            Step::Start => self.start(byte, limits)?,
            Step::LastLf => {}
            Step::Name | Step::Gap | Step::Value | Step::Lf => self.grow(limits)?,
        }
        let event = self.line.push(byte, limits)?;
        match event {
            Event::Nothing | Event::SectionEnd => {}
            Event::Named(known) => self.named(known, correlation)?,
            Event::Correlation => correlation.push(byte),
            Event::Valued(value) => self.valued(value, correlation)?,
            Event::LineEnd => {
                self.count += 1;
                self.line = Line::new();
            }
        }
        Ok(event)
    }

    fn start(&mut self, byte: u8, limits: &HeadLimits) -> Result<(), FramingError> {
        match byte {
            b'\r' => self.may_end(),
            0 | b'\n' => Ok(()),
            b' ' | b'\t' if self.count == 0 => Err(FramingError::SpaceBeforeFields),
            b' ' | b'\t' => Err(FramingError::ObsFold),
            _ if limits.max_header_count <= self.count => {
                let limit = limits.max_header_count;
                Err(FramingError::HeaderCount {
                    actual: self.count + 1,
                    limit,
                })
            }
            _ => self.grow(limits),
        }
    }

    fn named(
        &mut self,
        known: KnownField,
        correlation: &mut Correlation,
    ) -> Result<(), FramingError> {
        let known = match (self.section, known) {
            (Section::Trailers, KnownField::Other | KnownField::CorrelationId) => KnownField::Other,
            (Section::Trailers, _) => return Err(FramingError::BadTrailer),
            (Section::Response(_), KnownField::ContentLength | KnownField::TransferEncoding) => {
                known
            }
            (Section::Response(_), _) => KnownField::Other,
            (Section::Request(_), KnownField::CorrelationId) if !correlation.open() => {
                KnownField::Other
            }
            (Section::Request(_), _) => known,
        };
        self.line.read_as(Value::new(known));
        Ok(())
    }

    fn valued(&mut self, value: Value, correlation: &mut Correlation) -> Result<(), FramingError> {
        match value {
            Value::Plain => Ok(()),
            Value::Length(length) => self.length(length.end()?),
            Value::Coding(coding) => {
                coding.end()?;
                self.chunked()
            }
            Value::Host(host) => {
                host.end()?;
                self.host()
            }
            Value::Options(options) => {
                self.upgrade_option |= options.end();
                Ok(())
            }
            Value::Upgrade => {
                self.upgrade = true;
                Ok(())
            }
            Value::Correlation => {
                correlation.close();
                Ok(())
            }
        }
    }

    fn length(&mut self, length: u64) -> Result<(), FramingError> {
        match self.body_length {
            BodyLength::Unspecified => {
                self.body_length = BodyLength::Length(length);
                Ok(())
            }
            BodyLength::Length(before) if before == length => {
                Err(FramingError::RepeatedContentLength)
            }
            BodyLength::Length(_) => Err(FramingError::ConflictingContentLength),
            BodyLength::Chunked => Err(FramingError::ContentLengthWithTransferEncoding),
        }
    }

    fn chunked(&mut self) -> Result<(), FramingError> {
        if let Section::Request(Version::Http10) | Section::Response(Version::Http10) = self.section
        {
            return Err(FramingError::TransferEncodingInHttp10);
        }
        match self.body_length {
            BodyLength::Unspecified => {
                self.body_length = BodyLength::Chunked;
                Ok(())
            }
            BodyLength::Length(_) => Err(FramingError::ContentLengthWithTransferEncoding),
            BodyLength::Chunked => Err(FramingError::TransferEncodingNotChunked),
        }
    }

    fn host(&mut self) -> Result<(), FramingError> {
        if self.host {
            return Err(FramingError::RepeatedHost);
        }
        self.host = true;
        Ok(())
    }

    /// Checks that the section may end here.
    fn may_end(&self) -> Result<(), FramingError> {
        if self.section == Section::Request(Version::Http11) && !self.host {
            return Err(FramingError::MissingHost);
        }
        Ok(())
    }

    /// Counts one more byte of the current line against the limit.
    fn grow(&mut self, limits: &HeadLimits) -> Result<(), FramingError> {
        if self.room(limits) == 0 {
            let limit = self.max_bytes(limits);
            return Err(FramingError::HeaderSize {
                actual: limit.saturating_add(1),
                limit,
            });
        }
        self.size += 1;
        Ok(())
    }

    /// Bytes left until the section reaches its limit.
    fn room(&self, limits: &HeadLimits) -> u32 {
        self.max_bytes(limits).saturating_sub(self.size)
    }

    fn max_bytes(&self, limits: &HeadLimits) -> u32 {
        match self.section {
            Section::Request(_) | Section::Response(_) => limits.max_head_bytes,
            Section::Trailers => limits.max_head_bytes.min(MAX_TRAILER_BYTES),
        }
    }
}
