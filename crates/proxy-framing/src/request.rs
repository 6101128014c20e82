//! The validator of a client's requests.

use crate::body::Body;
use crate::body::chunks::Chunks;
use crate::error::FramingError;
use crate::fields::correlation::Correlation;
use crate::fields::{BodyLength, Fields, HeadSummary, Section};
use crate::input::{Input, Progress};
use crate::limits::HeadLimits;
use crate::part::Part;
use crate::scan::lines::Lines;
use crate::scan::{Eof, Scan, Stop};
use crate::start_line::request_line::{self, RequestLine};

/// Validates the requests of one connection.
///
/// Pass it every byte of the client once, in order, and forward the accepted ones. One scan
/// continues through any number of pipelined requests.
///
/// Bytes after a request with `Connection: close` are validated as well; the caller should not read
/// them.
#[derive(Debug)]
pub struct RequestValidator {
    limits: HeadLimits,
    part: Part<RequestLine>,
    /// The request has an upgrade, or is a `CONNECT`.
    upgrade: bool,
    head_bytes: u32,
    heads_seen: u64,
    correlation: Correlation,
}

impl RequestValidator {
    /// A validator for a new connection.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        Self {
            limits: limits.held(),
            part: Part::Line(RequestLine::new()),
            upgrade: false,
            head_bytes: 0,
            heads_seen: 0,
            correlation: Correlation::Absent,
        }
    }

    /// Validates the next bytes of the connection.
    ///
    /// With `stop` set, the bytes that were not accepted were not scanned: pass them again after
    /// [`resume_http`](Self::resume_http) or [`pass_through`](Self::pass_through). An error is
    /// final.
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
        let done = input.at == bytes.len() && self.between_messages();
        let stop = if done {
            None
        } else {
            self.read(&mut input).err()
        };
        self.correlation.copy_from(bytes);
        Scan {
            accepted: input.at,
            stop,
        }
    }

    /// Continues with the next request, after a declined upgrade.
    ///
    /// Has no effect unless the validator stopped for an upgrade.
    pub fn resume_http(&mut self) {
        if let Part::Stopped = self.part {
            self.part = Part::Line(RequestLine::new());
        }
    }

    /// Accepts all further bytes, after a granted upgrade.
    ///
    /// Has no effect unless the validator stopped for an upgrade, so that a tunnel needs a request
    /// for one.
    pub fn pass_through(&mut self) {
        if let Part::Stopped = self.part {
            self.part = Part::Tunnel;
        }
    }

    /// Classifies the end of the client's stream.
    ///
    /// # Errors
    /// [`FramingError::Truncated`] within a message, or the error that was returned before.
    pub fn eof(&mut self) -> Result<Eof, FramingError> {
        match &self.part {
            Part::Line(line) if line.is_blank() => Ok(Eof::Idle),
            Part::Stopped => Ok(Eof::Idle),
            Part::Tunnel => Ok(Eof::Tunnel),
            Part::Faulted { fault, .. } => Err(*fault),
            Part::Line(_) | Part::Fields(_) | Part::Body(_) => {
                Err(self.part.refuse(FramingError::Truncated))
            }
        }
    }

    /// Returns true if no byte of a further request arrived, except empty lines before it.
    pub fn between_messages(&self) -> bool {
        matches!(&self.part, Part::Line(line) if line.is_blank())
    }

    /// Returns true if no byte at all arrived after the last request, not even an empty line.
    pub fn is_untouched(&self) -> bool {
        matches!(&self.part, Part::Line(line) if line.is_untouched())
    }

    /// Returns true if a head has begun and is incomplete, or was refused.
    pub fn in_head(&self) -> bool {
        self.part.in_head(RequestLine::is_blank)
    }

    /// Returns true if a body is incomplete, or was refused.
    pub fn in_body(&self) -> bool {
        self.part.in_body()
    }

    /// Accepted bytes of the current head, its request line included; 0 outside of a head.
    pub fn head_bytes_so_far(&self) -> u32 {
        self.head_bytes
    }

    /// Number of complete heads accepted.
    pub fn heads_seen(&self) -> u64 {
        self.heads_seen
    }

    /// The `X-Correlation-Id` of the refused head, if it precedes the error and has 1 to 128
    /// characters `[A-Za-z0-9._-]`.
    pub fn correlation_id(&self) -> Option<&[u8]> {
        self.correlation.value()
    }

    /// The slow path: input that is whole and plain never gets here.
    #[inline(never)]
    fn read(&mut self, input: &mut Input<'_>) -> Result<(), Stop> {
        loop {
            let from = input.at;
            let progress = match &mut self.part {
                Part::Line(line) => line.scan(input, &self.limits),
                Part::Fields(fields) => fields.scan(input, &self.limits, &mut self.correlation),
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
                    return Err(Stop::FramingError(self.part.refuse(fault)));
                }
            }
        }
    }

    /// Consumes whole and plain heads, and the plain lines of the first other one.
    fn plain_heads(&mut self, input: &mut Input<'_>, mut lines: Option<&mut Lines>) {
        while let Part::Line(line) = &self.part
            && line.is_untouched()
            && let Some((version, after)) = request_line::plain(input.rest(), &self.limits)
        {
            let from = input.at;
            input.at = input.bytes.len() - after.len();
            self.upgrade = false;
            let mut fields = Fields::new(Section::Request(version));
            if fields.plain_lines(input, &self.limits, &mut self.correlation, lines.take()) {
                self.end_head(&fields.summary());
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
                let summary = line.summary();
                self.upgrade = summary.connect;
                self.part = Part::Fields(Fields::new(Section::Request(summary.version)));
            }
            Part::Fields(fields) => {
                let summary = fields.summary();
                self.part = Part::Line(RequestLine::new());
                self.end_head(&summary);
            }
            Part::Body(_) | Part::Stopped | Part::Tunnel | Part::Faulted { .. } => {
                let upgrade = self.upgrade;
                self.part = if upgrade {
                    Part::Stopped
                } else {
                    Part::Line(RequestLine::new())
                };
            }
        }
    }

    /// Ends a complete head; the current part is already the next request line.
    fn end_head(&mut self, summary: &HeadSummary) {
        self.upgrade |= summary.asks_upgrade;
        self.head_bytes = 0;
        self.heads_seen += 1;
        self.correlation.forget();
        match summary.body_length {
            BodyLength::Chunked => self.part = Part::Body(Body::Chunked(Chunks::new())),
            BodyLength::Length(length) if 0 < length => {
                self.part = Part::Body(Body::Length(length));
            }
            BodyLength::Unspecified | BodyLength::Length(_) if self.upgrade => {
                self.part = Part::Stopped;
            }
            BodyLength::Unspecified | BodyLength::Length(_) => {}
        }
    }

    fn count_head(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.head_bytes = self.head_bytes.saturating_add(bytes);
    }
}
