//! The guard for what an upstream answers.

use crate::body::Body;
use crate::chunks::Chunks;
use crate::correlation::Correlation;
use crate::error::FramingError;
use crate::fields::{BodyLength, Fields, Section};
use crate::input::{Input, Progress};
use crate::limits::HeadLimits;
use crate::lines::Lines;
use crate::message::ResponseSummary;
use crate::scan::{Eof, Scan, Stop};
use crate::status_line::{self, StatusLine};

/// Most interim responses to one request.
const MOST_INFORMATIONAL: u8 = 16;

/// What a response depends on in the request it answers. [RFC 9112 §6.3]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// `HEAD`: the response has no body.
    Head,
    /// `CONNECT`: after a 2xx the connection is a tunnel.
    Connect,
    /// Any other method, with `Upgrade` and `Connection: upgrade` sent along: a 101 is legal.
    Upgrade,
    /// Any other request.
    Other,
}

/// Watches the responses of one connection to an upstream.
///
/// [`expect`](Self::expect) must be called before each request is sent; a byte that answers
/// nothing is a fault.
#[derive(Debug)]
pub struct ResponseValidator {
    limits: HeadLimits,
    part: Part,
    expected: Option<RequestKind>,
    informational: u8,
    answered: ResponseSummary,
    head_bytes: u32,
    heads_seen: u64,
}

#[derive(Debug)]
enum Part {
    Line(StatusLine),
    Fields(Fields),
    Body(Body),
    /// The head of a 101, or of a 2xx to a `CONNECT`, is complete.
    Stopped,
    Tunnel,
    Faulted {
        fault: FramingError,
        in_body: bool,
    },
}

impl ResponseValidator {
    /// A guard for a connection on which nothing was asked yet.
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

    /// A request of this kind is about to be sent.
    ///
    /// One response is owed at a time; a second call before it came replaces the first.
    pub fn expect(&mut self, kind: RequestKind) {
        self.expected = Some(kind);
        self.informational = 0;
    }

    /// Judges the next bytes of the connection.
    ///
    /// With `stop` set, the bytes not accepted were not seen: after [`Stop::Upgrade`], call
    /// [`pass_through`](Self::pass_through) and give them again. A fault is for good.
    pub fn scan(&mut self, bytes: &[u8]) -> Scan {
        self.scan_noting(bytes, None)
    }

    /// The same, and notes in `lines` where the lines of the head are that leads `bytes`, if it is
    /// here whole and nothing about it is unusual; else `end` is 0.
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
        Scan {
            accepted: input.at,
            stop,
        }
    }

    /// Accepts everything from here on, after an upgrade.
    ///
    /// Does nothing unless the guard stopped for an upgrade.
    pub fn pass_through(&mut self) {
        if let Part::Stopped = self.part {
            self.part = Part::Tunnel;
        }
    }

    /// Counts bytes of the present body that went by unseen. Whether they were its own: its length is
    /// known, and it was not shorter. If not, nothing is counted.
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

    /// What it means that the upstream sends nothing more.
    ///
    /// # Errors
    /// [`FramingError::Truncated`] inside a message, or the fault that came before.
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
                let in_body = self.in_body();
                self.part = Part::Faulted {
                    fault: FramingError::Truncated,
                    in_body,
                };
                Err(FramingError::Truncated)
            }
        }
    }

    /// Whether a response is owed whose final head is not complete.
    pub fn awaits_head(&self) -> bool {
        self.expected.is_some() && matches!(self.part, Part::Line(_) | Part::Fields(_))
    }

    /// Whether no byte of a further response came.
    pub fn between_messages(&self) -> bool {
        matches!(&self.part, Part::Line(line) if line.is_blank())
    }

    /// Whether a head has begun and is not complete, or was refused.
    pub fn in_head(&self) -> bool {
        match &self.part {
            Part::Line(line) => !line.is_blank(),
            Part::Fields(_) | Part::Faulted { in_body: false, .. } => true,
            Part::Body(_) | Part::Stopped | Part::Tunnel | Part::Faulted { .. } => false,
        }
    }

    /// Whether a body is not complete, or was refused.
    pub fn in_body(&self) -> bool {
        matches!(
            self.part,
            Part::Body(_) | Part::Faulted { in_body: true, .. }
        )
    }

    /// Bytes accepted of the present head, its status line included; 0 outside of a head.
    pub fn head_bytes_so_far(&self) -> u32 {
        self.head_bytes
    }

    /// Complete heads that were accepted, interim ones included.
    pub fn heads_seen(&self) -> u64 {
        self.heads_seen
    }

    /// Out of line: what comes whole and plain never gets here.
    #[inline(never)]
    fn read(&mut self, input: &mut Input<'_>) -> Result<(), Stop> {
        loop {
            let from = input.at;
            let (expected, informational) = (self.expected, self.informational);
            let progress = match &mut self.part {
                Part::Line(_) if expected.is_none() => idle(input),
                Part::Line(line) => line.scan(input, &self.limits, |status| {
                    may(status, expected, informational)
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
                Ok(Progress::Hungry) => return Ok(()),
                Ok(Progress::Done) => {
                    self.go_on();
                    self.plain_heads(input, None);
                }
                Err(fault) => {
                    self.part = Part::Faulted {
                        fault,
                        in_body: self.in_body(),
                    };
                    return Err(Stop::FramingError(fault));
                }
            }
        }
    }

    /// Takes heads as long as they are whole and plain, and the plain lines of the one that is not.
    fn plain_heads(&mut self, input: &mut Input<'_>, mut lines: Option<&mut Lines>) {
        while let Part::Line(line) = &self.part
            && line.is_blank()
            && self.expected.is_some()
            && let Some((answered, after)) = status_line::plain(input.rest(), &self.limits)
            && may(answered.status, self.expected, self.informational).is_ok()
        {
            let from = input.at;
            input.at = input.bytes.len() - after.len();
            self.answered = answered;
            let mut fields = Fields::new(Section::Response(answered.version));
            if fields.plain_lines(input, &self.limits, &mut Correlation::Absent, lines.take()) {
                self.end_head(fields.sums().extent);
            } else {
                self.count_head(input.at - from);
                self.part = Part::Fields(fields);
            }
        }
    }

    /// Goes from a part that is complete to the next one.
    fn go_on(&mut self) {
        match &self.part {
            Part::Line(line) => {
                self.answered = line.answered();
                let section = Section::Response(self.answered.version);
                self.part = Part::Fields(Fields::new(section));
            }
            Part::Fields(fields) => {
                let extent = fields.sums().extent;
                self.part = Part::Line(StatusLine::new());
                self.end_head(extent);
            }
            Part::Body(_) | Part::Stopped | Part::Tunnel | Part::Faulted { .. } => {
                self.part = Part::Line(StatusLine::new());
                self.expected = None;
            }
        }
    }

    /// Leaves a head that is complete; the part is the next status line already.
    /// [RFC 9112 §6.3]
    fn end_head(&mut self, extent: BodyLength) {
        self.head_bytes = 0;
        self.heads_seen += 1;
        let body = match (self.answered.status, self.expected, extent) {
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
            (.., BodyLength::Unsaid) => Body::UntilClose,
        };
        self.part = Part::Body(body);
    }

    fn count_head(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.head_bytes = self.head_bytes.saturating_add(bytes);
    }
}

/// Nothing is owed, so nothing may come.
fn idle(input: &Input<'_>) -> Result<Progress, FramingError> {
    if input.peek().is_some() {
        return Err(FramingError::UnexpectedData);
    }
    Ok(Progress::Hungry)
}

/// Whether a response with this status may come now.
fn may(status: u16, expected: Option<RequestKind>, informational: u8) -> Result<(), FramingError> {
    match status {
        101 if expected == Some(RequestKind::Upgrade) => Ok(()),
        101 => Err(FramingError::UnaskedUpgrade),
        100..=199 if MOST_INFORMATIONAL <= informational => Err(FramingError::TooManyInformational),
        _ => Ok(()),
    }
}
