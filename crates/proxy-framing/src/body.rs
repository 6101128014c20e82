//! Message bodies: by length, chunked, or until the connection closes.

pub(crate) mod chunks;
pub(crate) mod extension;

use crate::body::chunks::Chunks;
use crate::error::FramingError;
use crate::fields::correlation::Correlation;
use crate::fields::{Fields, Section};
use crate::input::{Input, Progress};
use crate::limits::HeadLimits;

/// A body in progress. [RFC 9112 §6.3]
#[derive(Debug)]
pub(crate) enum Body {
    /// Remaining bytes; never 0.
    Length(u64),
    Chunked(Chunks),
    Trailers(Fields),
    UntilClose,
}

impl Body {
    /// Reads to the end of the body or of the input.
    pub(crate) fn scan(
        &mut self,
        input: &mut Input<'_>,
        limits: &HeadLimits,
    ) -> Result<Progress, FramingError> {
        if let Self::Chunked(chunks) = self {
            if chunks.scan(input)? == Progress::Incomplete {
                return Ok(Progress::Incomplete);
            }
            *self = Self::Trailers(Fields::new(Section::Trailers));
        }
        match self {
            Self::Length(left) => {
                *left -= input.skip(*left);
                Ok(if *left == 0 {
                    Progress::Done
                } else {
                    Progress::Incomplete
                })
            }
            Self::Trailers(fields) => fields.scan(input, limits, &mut Correlation::Absent),
            Self::UntilClose | Self::Chunked(_) => {
                input.skip(u64::MAX);
                Ok(Progress::Incomplete)
            }
        }
    }
}
