//! The decompressed content of a body, up to the agents' limit.

use agent_protocol::BodyData;
use http::HeaderMap;
use proxy_coding::{Decoder, DecodingError, DecodingLimits};
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::BodyReservation;
use proxy_model::Limits;
use proxy_plan::AgentPlan;
use proxy_telemetry::LimitSetting;
use std::borrow::Cow;
use std::rc::Rc;

/// Maximum size of one body event, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The decompressed content of a body, up to the agents' limit.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and none excludes another"
)]
pub(super) struct Content {
    bytes: Vec<u8>,
    memory: Rc<BodyReservation>,
    /// Bytes reserved in `memory`.
    reserved: usize,
    is_out_of_memory: bool,
    max_bytes: u64,
    /// Number of bytes of the body as sent.
    raw_bytes: u64,
    decoder: Option<Decoder>,
    was_decoded: bool,
    /// The head names a coding that is not decoded, or more than three.
    is_opaque: bool,
    /// Bytes of the body may follow.
    is_truncated: bool,
    error: Option<DecodingError>,
}

/// A piece of the content, for one event.
#[derive(Debug)]
pub(super) struct ContentPiece<'c> {
    pub(super) data: BodyData<'c>,
    pub(super) is_last: bool,
    pub(super) is_truncated: bool,
    pub(super) was_decoded: bool,
}

impl Content {
    /// Empty content of a body with these fields, to be filled up to `max_bytes`. An unknown coding
    /// is not decompressed.
    pub(super) fn new(
        headers: &HeaderMap,
        limits: &Limits,
        max_bytes: u64,
        memory: Rc<BodyReservation>,
    ) -> Result<Self, Problem> {
        let limits = DecodingLimits {
            max_ratio: *limits.max_decompression_ratio,
            max_bytes: *limits.max_decompressed_size_bytes,
        };
        let decoder = match Decoder::from_headers(headers, limits) {
            Ok(decoder) => Some(decoder),
            Err(DecodingError::Unsupported) => None,
            Err(error) => return Err(problem(error)),
        };
        let is_opaque = decoder.is_none();
        let decoder = decoder.flatten();
        Ok(Self {
            bytes: Vec::new(),
            memory,
            reserved: 0,
            is_out_of_memory: false,
            max_bytes,
            raw_bytes: 0,
            was_decoded: decoder.is_some(),
            decoder,
            is_opaque,
            is_truncated: false,
            error: None,
        })
    }

    /// Refuses a body in a coding that is not decoded: the target might decode it.
    pub(super) fn check_coding(&self) -> Result<(), Problem> {
        if self.is_opaque {
            return Err(problem(DecodingError::Unsupported));
        }
        Ok(())
    }

    /// The whole content of a body that has ended, if it was decompressed.
    pub(super) fn decoded(&self) -> Option<&[u8]> {
        self.was_decoded.then_some(&self.bytes)
    }

    /// Appends a piece of the body as sent. Returns true if agents may see more.
    pub(super) fn push(&mut self, piece: &[u8]) -> bool {
        self.raw_bytes += piece.len() as u64;
        let Self { bytes, decoder, .. } = self;
        match decoder {
            None => bytes.extend_from_slice(piece),
            Some(decoder) => {
                let decoded = decoder.push(piece, |content| bytes.extend_from_slice(content));
                self.error = decoded.err();
            }
        }
        let seen = self.raw_bytes.max(self.bytes.len() as u64);
        self.is_truncated = self.max_bytes < seen;
        self.reserve();
        self.error.is_none() && !self.is_truncated && !self.is_out_of_memory
    }

    fn reserve(&mut self) {
        let more = self.bytes.capacity().saturating_sub(self.reserved);
        if more > 0 {
            self.reserved += more;
            self.is_out_of_memory |= self.memory.grow(more as u64, None).is_err();
        }
    }

    pub(super) fn is_out_of_memory(&self) -> bool {
        self.is_out_of_memory
    }

    /// Marks the content as incomplete without reading it: the body may be endless.
    pub(super) fn skip(&mut self) {
        self.is_truncated = true;
    }

    /// Ends the content at the end of the body, with the decoder's last bytes.
    pub(super) fn finish(&mut self) -> Result<(), Problem> {
        if let Some(error) = self.error {
            return Err(problem(error));
        }
        let Some(decoder) = self.decoder.take() else {
            return Ok(());
        };
        let bytes = &mut self.bytes;
        let finished = decoder.finish(|content| bytes.extend_from_slice(content));
        finished.map_err(problem)?;
        self.is_truncated = self.max_bytes < self.bytes.len() as u64;
        Ok(())
    }

    /// The problem of a body that cannot be decompressed.
    pub(super) fn decoding_problem(&self) -> Option<Problem> {
        self.error.map(problem)
    }

    /// Refuses content above `agent`'s limit, unless the remainder may pass uninspected.
    pub(super) fn check_size(&self, agent: &AgentPlan) -> Result<(), Problem> {
        if !self.is_truncated || agent.passes_oversize {
            return Ok(());
        }
        let detail = Detail::Limit {
            current: self.raw_bytes.max(self.bytes.len() as u64),
            limit: self.max_bytes,
        };
        let problem = Problem::new(Reason::BodySizeLimit, detail);
        Err(problem.with_setting(agent.max_body_setting).at_least())
    }

    /// The content for an agent: in pieces if `in_pieces`, else in one.
    pub(super) fn pieces(&self, in_pieces: bool) -> impl Iterator<Item = ContentPiece<'_>> {
        let max = usize::try_from(self.max_bytes).unwrap_or(usize::MAX);
        let seen = self.bytes.get(..max).unwrap_or(&self.bytes);
        let size = if in_pieces {
            PIECE_BYTES
        } else {
            seen.len().max(1)
        };
        let count = seen.len().div_ceil(size).max(1);
        (0..count).map(move |index| {
            let end = seen.len().min((index + 1).saturating_mul(size));
            let piece = seen.get(index * size..end).unwrap_or_default();
            ContentPiece {
                data: BodyData(Cow::Borrowed(piece)),
                is_last: index + 1 == count,
                is_truncated: self.is_truncated,
                was_decoded: self.was_decoded,
            }
        })
    }
}

/// The problem of a body that exceeds a decompression limit. It ignores `on-oversize`, because such
/// a body is an attack.
fn problem(error: DecodingError) -> Problem {
    let limited = |(current, limit), setting: LimitSetting| {
        let problem = Problem::new(Reason::DecompressionLimit, Detail::Limit { current, limit });
        problem.with_setting(setting.path())
    };
    match error {
        DecodingError::Size { limit, current } => {
            limited((current, limit), LimitSetting::MaxDecompressedSize)
        }
        DecodingError::Ratio { limit, current } => {
            limited((current, limit), LimitSetting::MaxDecompressionRatio)
        }
        DecodingError::Malformed | DecodingError::Unsupported => {
            let detail = Detail::text(error.to_string());
            Problem::new(Reason::BadContentEncoding, detail)
        }
    }
}
