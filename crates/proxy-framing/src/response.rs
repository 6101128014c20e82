//! The validator of an upstream's responses.

use crate::body::Body;
use crate::body::chunks::Chunks;
use crate::error::FramingError;
use crate::fields::correlation::Correlation;
use crate::fields::{BodyLength, Fields, Section};
use crate::input::{Input, Progress};
use crate::limits::HeadLimits;
use crate::message::ResponseSummary;
use crate::part::Part;
use crate::scan::lines::Lines;
use crate::scan::{Eof, Scan, Stop};
use crate::start_line::status_line::{self, StatusLine};

/// Maximum number of interim responses to one request.
const MAX_INTERIM_RESPONSES: u8 = 16;

/// The properties of a request that the framing of its response depends on. [RFC 9112 §6.3]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// `HEAD`: the response has no body.
    Head,
    /// `CONNECT`: after a 2xx the connection is a tunnel.
    Connect,
    /// Any other method, with `Upgrade` and `Connection: upgrade`: a 101 is legal.
    Upgrade,
    /// Any other request.
    Other,
}

/// Validates the responses of one connection to an upstream.
///
/// Call [`expect`](Self::expect) before each request is sent; a byte without an expected response
/// is an error.
#[derive(Debug)]
pub struct ResponseValidator {
    limits: HeadLimits,
    part: Part<StatusLine>,
    expected: Option<RequestKind>,
    informational: u8,
    answered: ResponseSummary,
    head_bytes: u32,
    heads_seen: u64,
}

impl ResponseValidator {
    /// A validator for a connection before its first request.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        let line = StatusLine::new();
        Self {
            limits: limits.held(),
            answered: line.answered(),
            part: Part::Line(line),
            expected: None,
            informational: 0,
            head_bytes: 0,
            heads_seen: 0,
        }
    }

    /// Announces a request of this kind.
    ///
    /// One response is expected at a time; a second call before it arrived replaces the first.
    pub fn expect(&mut self, kind: RequestKind) {
        self.expected = Some(kind);
        self.informational = 0;
        self.answered = StatusLine::new().answered();
    }

    /// Validates the next bytes of the connection.
    ///
    /// With `stop` set, the bytes that were not accepted were not scanned: after [`Stop::Upgrade`],
    /// call [`pass_through`](Self::pass_through) and pass them again. An error is final.
    pub fn scan(&mut self, bytes: &[u8]) -> Scan {
        self.scan_noting(bytes, None)
    }

    /// Like [`scan`](Self::scan); also records in `lines` the positions of the lines of the head at
    /// the beginning of `bytes`, if it is whole and in common form. Otherwise `end` is 0.
    pub fn scan_noting(&mut self, bytes: &[u8], mut lines: Option<&mut Lines>) -> Scan {
        if let Some(lines) = &mut lines {
            lines.begin(0);
        }
        let mut input = Input::new(bytes);
        self.plain_heads(&mut input, lines);
        // Usually the remaining bytes are the body.
        let rest = bytes.len() - input.at;
        if 0 < rest && self.skip_body(rest as u64) {
            input.at = bytes.len();
        }
        let done = input.at == bytes.len() && self.between_messages();
        let stop = if done {
            None
        } else {
            self.read(&mut input).err()
        };
        Scan {
            accepted: input.at,
            stop,
        }
    }

    /// Accepts all further bytes, after an upgrade.
    ///
    /// Has no effect unless the validator stopped for an upgrade.
    pub fn pass_through(&mut self) {
        if let Part::Stopped = self.part {
            self.part = Part::Tunnel;
        }
    }

    /// Counts bytes of the current body that were moved without a scan. Returns false, and counts
    /// nothing, unless the body has a known length of at least `count`.
    #[must_use]
    pub fn skip_body(&mut self, count: u64) -> bool {
        match &mut self.part {
            Part::Body(Body::Length(left)) if count < *left => *left -= count,
            Part::Body(Body::Length(left)) if count == *left => self.go_on(),
            Part::Line(_)
            | Part::Fields(_)
            | Part::Body(_)
            | Part::Stopped
            | Part::Tunnel
            | Part::Faulted { .. } => return false,
        }
        true
    }

    /// Classifies the end of the upstream's stream.
    ///
    /// # Errors
    /// [`FramingError::Truncated`] within a message, or the error that was returned before.
    pub fn eof(&mut self) -> Result<Eof, FramingError> {
        match &self.part {
            Part::Line(line) if line.is_blank() && self.expected.is_none() => Ok(Eof::Idle),
            Part::Line(line) if line.is_blank() && self.informational == 0 => Ok(Eof::Unanswered),
            Part::Body(Body::UntilClose) => {
                self.go_on();
                Ok(Eof::BodyEnd)
            }
            Part::Stopped | Part::Tunnel => Ok(Eof::Tunnel),
            Part::Faulted { fault, .. } => Err(*fault),
            Part::Line(_) | Part::Fields(_) | Part::Body(_) => {
                Err(self.part.refuse(FramingError::Truncated))
            }
        }
    }

    /// Returns true if a response is expected and its final head is incomplete.
    pub fn awaits_head(&self) -> bool {
        self.expected.is_some() && matches!(self.part, Part::Line(_) | Part::Fields(_))
    }

    /// Returns true if no byte of a further response arrived.
    pub fn between_messages(&self) -> bool {
        matches!(&self.part, Part::Line(line) if line.is_blank())
    }

    /// Returns true if a head has begun and is incomplete, or was refused.
    pub fn in_head(&self) -> bool {
        self.part.in_head(|line| line.is_blank())
    }

    /// Returns true if a body is incomplete, or was refused.
    pub fn in_body(&self) -> bool {
        self.part.in_body()
    }

    /// The status of the last response since [`expect`](Self::expect), interim ones included, as
    /// soon as its three digits were read. It stays when the rest is refused.
    pub fn status(&self) -> Option<u16> {
        let answered = match &self.part {
            Part::Line(line) if !line.is_blank() => line.answered(),
            Part::Line(_)
            | Part::Fields(_)
            | Part::Body(_)
            | Part::Stopped
            | Part::Tunnel
            | Part::Faulted { .. } => self.answered,
        };
        Some(answered.status).filter(|status| 100 <= *status)
    }

    /// Accepted bytes of the current head, its status line included; 0 outside of a head.
    pub fn head_bytes_so_far(&self) -> u32 {
        self.head_bytes
    }

    /// Number of complete heads accepted, interim ones included.
    pub fn heads_seen(&self) -> u64 {
        self.heads_seen
    }

    /// The slow path: input that is whole and plain never gets here.
    #[inline(never)]
    fn read(&mut self, input: &mut Input<'_>) -> Result<(), Stop> {
        loop {
            let from = input.at;
            let (expected, informational) = (self.expected, self.informational);
            let progress = match &mut self.part {
                Part::Line(_) if expected.is_none() => idle(input),
                Part::Line(line) => line.scan(input, &self.limits, |status| {
                    check_status(status, expected, informational)
                }),
                Part::Fields(fields) => fields.scan(input, &self.limits, &mut Correlation::Absent),
                Part::Body(body) => body.scan(input, &self.limits),
                Part::Stopped => return Err(Stop::Upgrade),
                Part::Tunnel => {
                    input.skip(u64::MAX);
                    return Ok(());
                }
                Part::Faulted { fault, .. } => return Err(Stop::FramingError(*fault)),
            };
            if !matches!(self.part, Part::Body(_)) {
                self.count_head(input.at - from);
            }
            match progress {
                Ok(Progress::Incomplete) => return Ok(()),
                Ok(Progress::Done) => {
                    self.go_on();
                    self.plain_heads(input, None);
                }
                Err(fault) => {
                    if let Part::Line(line) = &self.part
                        && !line.is_blank()
                    {
                        self.answered = line.answered();
                    }
                    return Err(Stop::FramingError(self.part.refuse(fault)));
                }
            }
        }
    }

    /// Consumes whole and plain heads, and the plain lines of the first other one.
    fn plain_heads(&mut self, input: &mut Input<'_>, mut lines: Option<&mut Lines>) {
        while let Part::Line(line) = &self.part
            && line.is_blank()
            && self.expected.is_some()
            && let Some((answered, after)) = status_line::plain(input.rest(), &self.limits)
            && check_status(answered.status, self.expected, self.informational).is_ok()
        {
            let from = input.at;
            input.at = input.bytes.len() - after.len();
            self.answered = answered;
            let mut fields = Fields::new(Section::Response(answered.version));
            if fields.plain_lines(input, &self.limits, &mut Correlation::Absent, lines.take()) {
                self.end_head(fields.summary().body_length);
            } else {
                self.count_head(input.at - from);
                self.part = Part::Fields(fields);
            }
        }
    }

    /// Continues with the part after a complete one.
    fn go_on(&mut self) {
        match &self.part {
            Part::Line(line) => {
                self.answered = line.answered();
                let section = Section::Response(self.answered.version);
                self.part = Part::Fields(Fields::new(section));
            }
            Part::Fields(fields) => {
                let body_length = fields.summary().body_length;
                self.part = Part::Line(StatusLine::new());
                self.end_head(body_length);
            }
            Part::Body(_) | Part::Stopped | Part::Tunnel | Part::Faulted { .. } => {
                self.part = Part::Line(StatusLine::new());
                self.expected = None;
            }
        }
    }

    /// Ends a complete head; the current part is already the next status line. [RFC 9112 §6.3]
    fn end_head(&mut self, body_length: BodyLength) {
        self.head_bytes = 0;
        self.heads_seen += 1;
        let body = match (self.answered.status, self.expected, body_length) {
            (101, ..) | (200..=299, Some(RequestKind::Connect), _) => {
                self.part = Part::Stopped;
                return;
            }
            (100..=199, ..) => {
                self.informational += 1;
                return;
            }
            (204 | 304, ..) | (_, Some(RequestKind::Head), _) | (.., BodyLength::Length(0)) => {
                self.expected = None;
                return;
            }
            (.., BodyLength::Chunked) => Body::Chunked(Chunks::new()),
            (.., BodyLength::Length(length)) => Body::Length(length),
            (.., BodyLength::Unspecified) => Body::UntilClose,
        };
        self.part = Part::Body(body);
    }

    fn count_head(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.head_bytes = self.head_bytes.saturating_add(bytes);
    }
}

/// Without an expected response, any byte is an error.
fn idle(input: &Input<'_>) -> Result<Progress, FramingError> {
    if input.peek().is_some() {
        return Err(FramingError::UnexpectedData);
    }
    Ok(Progress::Incomplete)
}

/// Checks that a response with this status is legal now.
fn check_status(
    status: u16,
    expected: Option<RequestKind>,
    informational: u8,
) -> Result<(), FramingError> {
    match status {
        101 if expected == Some(RequestKind::Upgrade) => Ok(()),
        101 => Err(FramingError::UnaskedUpgrade),
        100..=199 if MAX_INTERIM_RESPONSES <= informational => {
            Err(FramingError::TooManyInformational)
        }
        _ => Ok(()),
    }
}
