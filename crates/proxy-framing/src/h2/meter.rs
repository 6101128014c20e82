//! Reads frame headers as bytes pass, and counts them against the allowances.

use super::flood_limits::{FloodLimits, FrameKind};
use super::frame::{
    CONTINUATION, DATA, FrameHeader, HEADER_BYTES, HEADERS, PING, PRIORITY, PRIORITY_UPDATE,
    RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use super::open_streams::OpenStreams;
use super::raw_paths::RawPaths;
use super::section::{Section, fragment};
use std::sync::Arc;

/// Size of the connection preface that a client sends before any frame. [RFC 9113 §3.4]
const PREFACE_BYTES: u32 = 24;

/// Counts the frames that one connection's client sends.
///
/// The meter reads frame headers only; the parser behind it decides whether a frame is legal.
/// Trailers, and header sections of several frames, are collected and rewritten before they reach
/// the parser, so that the parser checks them completely. A `:path` that the parser's URI cannot
/// hold is replaced, see [`Self::take_path`].
#[derive(Clone, Debug)]
pub struct FrameMeter {
    state: FramingState,
    left: FloodLimits,
    at: u32,
    in_head: bool,
    /// The highest stream opened; a header section on it or on a lower one is a trailer section.
    last_stream: u32,
    /// The streams on which a trailer section may follow.
    open_streams: OpenStreams,
    /// The frame being collected opens no stream and is no trailer section of an open one.
    is_misplaced: bool,
    /// The header section being collected.
    pub(super) section: Option<Box<Section>>,
    raw_paths: RawPaths,
    /// Maximum size of a collected section, in bytes before decompression.
    max_section_bytes: usize,
    /// Bytes of the current frame, from its header on, that the parser has not got yet.
    pub(super) held: Vec<u8>,
    /// Size of the current frame if it must be collected, else 0.
    pub(super) wanted: usize,
    /// Frames since [`Self::take_count`].
    count: usize,
}

/// A frame that must be collected whole before the parser gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collect {
    /// Offset of the end of the frame's header in the scanned bytes; bytes after it were not
    /// scanned.
    pub(super) header_end: usize,
    /// Bytes to collect, from the start of the header, for [`FrameMeter::collect`].
    pub(super) bytes: usize,
}

/// A peer exceeded the allowance of one kind of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many {kind} frames")]
pub struct Flood {
    /// The kind of frame.
    pub kind: FrameKind,
}

#[derive(Clone, Copy, Debug)]
enum FramingState {
    /// Bytes to skip: the preface, or a payload.
    Skip(u32),
    /// Bytes of an incomplete frame header.
    Header {
        bytes: [u8; HEADER_BYTES],
        filled: usize,
    },
    /// Before the first payload byte of a padded `DATA` frame with this payload size.
    Padding(u32),
}

const BEFORE_HEADER: FramingState = FramingState::Header {
    bytes: [0; HEADER_BYTES],
    filled: 0,
};

impl FrameMeter {
    /// A meter for a new connection, before the preface. The client may reset at once `max_resets`
    /// streams that were neither forwarded nor answered; a collected header section may have
    /// `max_section_bytes`.
    #[must_use]
    pub fn new(max_resets: u32, max_section_bytes: usize) -> Self {
        Self {
            state: FramingState::Skip(PREFACE_BYTES),
            left: FloodLimits::full(max_resets),
            at: 0,
            in_head: false,
            last_stream: 0,
            open_streams: OpenStreams::default(),
            is_misplaced: false,
            section: None,
            raw_paths: RawPaths::default(),
            max_section_bytes,
            held: Vec::new(),
            wanted: 0,
            count: 0,
        }
    }

    /// Scans `bytes` received at `now`, up to a frame that must be collected.
    pub(super) fn scan(&mut self, bytes: &[u8], now: u32) -> Result<Option<Collect>, Flood> {
        let passed = now.saturating_sub(self.at);
        if passed > 0 {
            self.at = now;
            self.left.pass(passed);
        }
        let (mut rest, whole) = (bytes, bytes.len());
        while let Some((first, after)) = rest.split_first() {
            match &mut self.state {
                FramingState::Skip(count) => {
                    let skipped = rest.len().min(*count as usize);
                    rest = rest.get(skipped..).unwrap_or_default();
                    *count -= u32::try_from(skipped).unwrap_or(*count);
                    if *count == 0 {
                        self.state = BEFORE_HEADER;
                    }
                }
                FramingState::Header { filled: 0, .. }
                    if let Some((header, after)) = rest.split_first_chunk() =>
                {
                    rest = after;
                    if let Some(frame) = self.enter(FrameHeader::parse(*header), after)? {
                        return Ok(Some(self.stop_for(frame, whole - rest.len())));
                    }
                }
                FramingState::Header { bytes, filled } => {
                    if let Some(place) = bytes.get_mut(*filled) {
                        *place = *first;
                    }
                    *filled += 1;
                    rest = after;
                    let header = (*filled == HEADER_BYTES).then(|| FrameHeader::parse(*bytes));
                    if let Some(header) = header
                        && let Some(frame) = self.enter(header, after)?
                    {
                        return Ok(Some(self.stop_for(frame, whole - rest.len())));
                    }
                }
                FramingState::Padding(length) => {
                    let padding = u32::from(*first);
                    let length = *length;
                    rest = after;
                    self.skip(length.saturating_sub(1));
                    if length <= padding + 1 {
                        self.charge(FrameKind::EmptyData)?;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Takes the number of frames that began since the last call.
    pub fn take_count(&mut self) -> usize {
        std::mem::take(&mut self.count)
    }

    /// Number of bytes of an incomplete frame header at the end of the input, which must be held
    /// back.
    pub(super) fn held_header(&self) -> usize {
        match self.state {
            FramingState::Header { filled, .. } => filled,
            FramingState::Skip(_) | FramingState::Padding(_) => 0,
        }
    }

    /// Consumes the whole `frame` at which [`Self::scan`] stopped, header included, and returns the
    /// bytes for the parser: none before the section is complete.
    pub(super) fn collect(&mut self, frame: &[u8]) -> Result<Vec<u8>, Flood> {
        let mut out = Vec::new();
        let Some((header, payload)) = frame.split_first_chunk() else {
            return Ok(out);
        };
        let header = FrameHeader::parse(*header);
        if std::mem::take(&mut self.is_misplaced) {
            // The parser ends the connection because of this frame. For a trailer section with
            // pseudo-header fields it would only reset the stream, before it checks the identifier.
            FrameHeader::write(DATA, 0, 0, &[], &mut out);
            return Ok(out);
        }
        let mut section = match self.section.take() {
            Some(section) if section.goes_on_with(header) => section,
            Some(section) => {
                // The parser ends the connection because of this frame.
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
        let (stream, opens) = section.stream();
        let is_plain = opens && header.kind == HEADERS && header.ends_headers();
        if !is_plain && self.max_section_bytes < section.bytes() {
            return Err(Flood {
                kind: FrameKind::Continuation,
            });
        }
        if !header.ends_headers() {
            self.section = Some(section);
            return Ok(out);
        }
        match self.raw_paths.replace(stream, opens, section.fragment()) {
            Some(replaced) => section.set_fragment(replaced),
            None if is_plain => {
                out.extend_from_slice(frame);
                return Ok(out);
            }
            None => {}
        }
        section.write(true, &mut out);
        Ok(out)
    }

    /// Takes the `:path` of the request that opened `stream`, as sent, if it has a raw `<` or `>`,
    /// `` ` `` before the query or `"` in it: the parser received a substitute. Call it for every
    /// request of the parser; values of lower streams are dropped.
    #[inline]
    pub fn take_path(&mut self, stream: u32) -> Option<Arc<[u8]>> {
        self.raw_paths.take_path(stream)
    }

    /// Returns true if a header section has begun and is not complete.
    #[must_use]
    pub fn in_head(&self) -> bool {
        self.in_head
    }

    /// Counts `bytes` that the peer has taken: its `WINDOW_UPDATE` frames for them are useful
    /// traffic.
    pub fn wrote(&mut self, bytes: usize) {
        let kibibytes = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        self.left
            .earn(FrameKind::WindowUpdate, kibibytes.saturating_add(2));
        self.left.earn(FrameKind::Ping, 1);
    }

    /// Counts requests that were answered or forwarded. The same number of resets is not charged.
    pub fn served(&mut self, count: u32) {
        self.left.earn(FrameKind::Reset, count);
    }

    /// Returns true if a header section is the first of its stream.
    fn opens(&self, header: FrameHeader) -> bool {
        self.last_stream < header.stream
    }

    /// Withholds this frame from the parser.
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

    /// Returns the frame if it must be collected. `after` are the bytes received after its
    /// header.
    fn enter(&mut self, header: FrameHeader, after: &[u8]) -> Result<Option<FrameHeader>, Flood> {
        self.count += 1;
        self.skip(header.length);
        let mut collects = self.section.is_some();
        if header.kind == HEADERS {
            let opens = self.opens(header);
            let is_known = opens || self.open_streams.contains(header.stream);
            self.is_misplaced = !is_known && header.is_in_size() && !collects;
            if opens && !header.ends_stream() {
                self.open_streams.insert(header.stream);
            }
            collects |= header.is_in_size()
                && (!opens || !header.ends_headers() || self.may_replace(header, after));
            if opens && !collects {
                self.last_stream = header.stream;
            }
        }
        let ends_stream = matches!(header.kind, HEADERS | DATA) && header.ends_stream();
        if ends_stream || header.kind == RST_STREAM {
            self.open_streams.remove(header.stream);
        }
        self.charge_for(header)?;
        Ok(collects.then_some(header))
    }

    /// Returns true if the `:path` of this frame, which opens a stream, may have to be replaced;
    /// true if the frame is incomplete.
    fn may_replace(&self, header: FrameHeader, after: &[u8]) -> bool {
        let payload = after.get(..header.length as usize);
        payload.is_none_or(|payload| {
            fragment(header, payload).is_some_and(|fields| self.raw_paths.concerns(fields))
        })
    }

    fn charge_for(&mut self, header: FrameHeader) -> Result<(), Flood> {
        match header.kind {
            DATA if header.ends_stream() => Ok(()),
            DATA if header.length == 0 => self.charge(FrameKind::EmptyData),
            DATA if header.is_padded() => {
                self.state = FramingState::Padding(header.length);
                Ok(())
            }
            DATA => Ok(()),
            HEADERS => {
                self.in_head = !header.ends_headers();
                // Browsers send a request's priority in a separate frame.
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
            count => FramingState::Skip(count),
        };
    }

    fn charge(&mut self, kind: FrameKind) -> Result<(), Flood> {
        if self.left.take(kind) {
            Ok(())
        } else {
            Err(Flood { kind })
        }
    }
}
