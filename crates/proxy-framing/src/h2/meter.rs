//! Reads frame headers as bytes pass, and keeps the accounts.

use super::flood_limits::{FloodLimits, FrameKind};
use super::frame::{
    CONTINUATION, DATA, FrameHeader, HEADER_BYTES, HEADERS, PING, PRIORITY, PRIORITY_UPDATE,
    RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use super::section::Section;

/// `PRI * HTTP/2.0` and what follows it, which a client sends before any frame. [RFC 9113 §3.4]
const PREFACE_BYTES: u32 = 24;

/// The accounts of one connection: what its client sends, frame by frame.
///
/// It looks at frame headers, and takes them as they come: whether a frame is legal is for the parser
/// behind it to say. Trailers, and header sections of several frames, are collected and written anew
/// before the parser sees them, so that it misses nothing about them.
#[derive(Clone, Debug)]
pub struct FrameMeter {
    state: State,
    left: FloodLimits,
    at: u32,
    in_head: bool,
    /// The last stream that was opened; a header section of it, or of one before, is trailers.
    last_stream: u32,
    /// The header section that is being collected.
    pub(super) section: Option<Box<Section>>,
    /// Most bytes of such a section, as it comes.
    max_section_bytes: usize,
    /// What the parser has not been given of the frame that is at hand, from its header on.
    pub(super) held: Vec<u8>,
    /// Bytes of that frame when it must be collected, or 0.
    pub(super) wanted: usize,
}

/// A frame that must be collected whole before the parser sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collect {
    /// Where the frame's header ends in what was scanned. What comes behind it was not scanned.
    pub(super) header_end: usize,
    /// Bytes to collect from the first of the header on, for [`FrameMeter::collect`].
    pub(super) bytes: usize,
}

/// A peer sent more frames of one kind than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many {chore} frames")]
pub struct Flood {
    /// The kind.
    pub chore: FrameKind,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Bytes that are of no interest: the preface, or a payload.
    Skip(u32),
    /// Some bytes of a frame's header.
    Header {
        bytes: [u8; HEADER_BYTES],
        filled: usize,
    },
    /// The first byte of a padded `DATA` frame's payload, of this many bytes.
    Padding(u32),
}

const BEFORE_HEADER: State = State::Header {
    bytes: [0; HEADER_BYTES],
    filled: 0,
};

impl FrameMeter {
    /// For a connection on which nothing has come, not even the preface. Its client may reset
    /// `max_resets` streams at once that came to nothing, and header sections that are collected may
    /// have `max_section_bytes`.
    #[must_use]
    pub fn new(max_resets: u32, max_section_bytes: usize) -> Self {
        Self {
            state: State::Skip(PREFACE_BYTES),
            left: FloodLimits::full(max_resets),
            at: 0,
            in_head: false,
            last_stream: 0,
            section: None,
            max_section_bytes,
            held: Vec::new(),
            wanted: 0,
        }
    }

    /// Looks at `bytes` that came at `now`, and stops at a frame that must be collected.
    pub(super) fn scan(&mut self, bytes: &[u8], now: u32) -> Result<Option<Collect>, Flood> {
        let passed = now.saturating_sub(self.at);
        if passed > 0 {
            self.at = now;
            self.left.pass(passed);
        }
        let (mut rest, whole) = (bytes, bytes.len());
        while let Some((first, behind)) = rest.split_first() {
            match &mut self.state {
                State::Skip(count) => {
                    let skipped = rest.len().min(*count as usize);
                    rest = rest.get(skipped..).unwrap_or_default();
                    *count -= u32::try_from(skipped).unwrap_or(*count);
                    if *count == 0 {
                        self.state = BEFORE_HEADER;
                    }
                }
                State::Header { filled: 0, .. }
                    if let Some((header, behind)) = rest.split_first_chunk() =>
                {
                    rest = behind;
                    if let Some(frame) = self.enter(FrameHeader::parse(*header))? {
                        return Ok(Some(self.stop_for(frame, whole - rest.len())));
                    }
                }
                State::Header { bytes, filled } => {
                    if let Some(place) = bytes.get_mut(*filled) {
                        *place = *first;
                    }
                    *filled += 1;
                    rest = behind;
                    let header = (*filled == HEADER_BYTES).then(|| FrameHeader::parse(*bytes));
                    if let Some(header) = header
                        && let Some(frame) = self.enter(header)?
                    {
                        return Ok(Some(self.stop_for(frame, whole - rest.len())));
                    }
                }
                State::Padding(length) => {
                    let padding = u32::from(*first);
                    let length = *length;
                    rest = behind;
                    self.skip(length.saturating_sub(1));
                    if length <= padding + 1 {
                        self.charge(FrameKind::EmptyData)?;
                    }
                }
            }
        }
        Ok(None)
    }

    /// The bytes of a frame's header that came, when it did not come whole: they are to be held back.
    pub(super) fn held_header(&self) -> usize {
        match self.state {
            State::Header { filled, .. } => filled,
            State::Skip(_) | State::Padding(_) => 0,
        }
    }

    /// Takes the whole `frame` that [`Self::scan`] stopped at, its header included, and gives what the
    /// parser is to see: nothing before the section is complete.
    pub(super) fn collect(&mut self, frame: &[u8]) -> Result<Vec<u8>, Flood> {
        let mut out = Vec::new();
        let Some((header, payload)) = frame.split_first_chunk() else {
            return Ok(out);
        };
        let header = FrameHeader::parse(*header);
        let mut section = match self.section.take() {
            Some(section) if section.goes_on_with(header) => section,
            Some(section) => {
                // The parser ends the connection for it.
                section.write(false, &mut out);
                out.extend_from_slice(frame);
                return Ok(out);
            }
            None => {
                let opens = self.opens(header);
                self.last_stream = self.last_stream.max(header.stream);
                Box::new(Section::new(header, !opens))
            }
        };
        if !section.add(header, payload) {
            out.extend_from_slice(frame);
            return Ok(out);
        }
        if self.max_section_bytes < section.bytes() {
            return Err(Flood {
                chore: FrameKind::Continuation,
            });
        }
        if header.ends_headers() {
            section.write(true, &mut out);
        } else {
            self.section = Some(section);
        }
        Ok(out)
    }

    /// Whether a header section has begun and not ended.
    #[must_use]
    pub fn in_head(&self) -> bool {
        self.in_head
    }

    /// Counts `bytes` that the peer took at once: it may acknowledge them.
    pub fn wrote(&mut self, bytes: usize) {
        let kibibytes = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        self.left
            .earn(FrameKind::WindowUpdate, kibibytes.saturating_add(2));
        self.left.earn(FrameKind::Ping, 1);
    }

    /// Counts requests that came to something: they were answered, or an upstream was asked. Their
    /// streams may be given up, or others for them.
    pub fn served(&mut self, count: u32) {
        self.left.earn(FrameKind::Reset, count);
    }

    /// Whether a header section is the first of its stream.
    fn opens(&self, header: FrameHeader) -> bool {
        self.last_stream < header.stream
    }

    /// The parser sees nothing of this frame yet.
    fn stop_for(&mut self, frame: FrameHeader, header_end: usize) -> Collect {
        let is_taken = match &self.section {
            Some(section) => section.goes_on_with(frame),
            None => true,
        };
        let payload = if is_taken { frame.length } else { 0 };
        self.skip(frame.length - payload);
        Collect {
            header_end,
            bytes: HEADER_BYTES + payload as usize,
        }
    }

    /// Gives the frame if it must be collected.
    fn enter(&mut self, header: FrameHeader) -> Result<Option<FrameHeader>, Flood> {
        self.skip(header.length);
        let mut collects = self.section.is_some();
        if header.kind == HEADERS {
            let opens = self.opens(header);
            collects |= (!opens || !header.ends_headers()) && header.is_in_size();
            if opens && !collects {
                self.last_stream = header.stream;
            }
        }
        self.charge_for(header)?;
        Ok(collects.then_some(header))
    }

    fn charge_for(&mut self, header: FrameHeader) -> Result<(), Flood> {
        match header.kind {
            DATA if header.ends_stream() => Ok(()),
            DATA if header.length == 0 => self.charge(FrameKind::EmptyData),
            DATA if header.is_padded() => {
                self.state = State::Padding(header.length);
                Ok(())
            }
            DATA => Ok(()),
            HEADERS => {
                self.in_head = !header.ends_headers();
                // Browsers send the priority of a request in a frame of its own.
                self.left.earn(FrameKind::Priority, 2);
                Ok(())
            }
            CONTINUATION => {
                self.in_head = !header.ends_headers();
                self.charge(FrameKind::Continuation)
            }
            RST_STREAM => self.charge(FrameKind::Reset),
            SETTINGS => self.charge(FrameKind::Settings),
            PING => self.charge(FrameKind::Ping),
            WINDOW_UPDATE => self.charge(FrameKind::WindowUpdate),
            PRIORITY | PRIORITY_UPDATE => self.charge(FrameKind::Priority),
            _ => self.charge(FrameKind::Other),
        }
    }

    fn skip(&mut self, count: u32) {
        self.state = match count {
            0 => BEFORE_HEADER,
            count => State::Skip(count),
        };
    }

    fn charge(&mut self, chore: FrameKind) -> Result<(), Flood> {
        if self.left.take(chore) {
            Ok(())
        } else {
            Err(Flood { chore })
        }
    }
}
