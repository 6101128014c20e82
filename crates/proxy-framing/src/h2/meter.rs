//! Reads frame headers as bytes pass, and keeps the accounts.

use super::allowance::{Allowances, Chore};
use super::frame::{
    CONTINUATION, DATA, FrameHeader, HEADER_BYTES, HEADERS, PING, PRIORITY, PRIORITY_UPDATE,
    RST_STREAM, SETTINGS, WINDOW_UPDATE,
};

/// `PRI * HTTP/2.0` and what follows it, which a client sends before any frame. [RFC 9113 §3.4]
const PREFACE_BYTES: u32 = 24;

/// The accounts of one connection: what its client sends, frame by frame.
///
/// It looks at frame headers only, and takes them as they come: whether a frame is legal is for the
/// parser behind it to say.
#[derive(Clone, Debug)]
pub struct FrameMeter {
    state: State,
    left: Allowances,
    at: u32,
    in_head: bool,
}

/// A peer sent more frames of one kind than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many {chore} frames")]
pub struct Flood {
    /// The kind.
    pub chore: Chore,
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
    /// For a connection on which nothing has come, not even the preface.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Skip(PREFACE_BYTES),
            left: Allowances::full(),
            at: 0,
            in_head: false,
        }
    }

    /// Takes `bytes` that came at `now`, in tenths of a second since any beginning.
    ///
    /// # Errors
    /// [`Flood`] when an allowance is used up. What comes after it is not looked at.
    pub fn scan(&mut self, bytes: &[u8], now: u32) -> Result<(), Flood> {
        let passed = now.saturating_sub(self.at);
        if passed > 0 {
            self.at = now;
            self.left.pass(passed);
        }
        let mut rest = bytes;
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
                    self.enter(FrameHeader::parse(*header))?;
                }
                State::Header { bytes, filled } => {
                    if let Some(place) = bytes.get_mut(*filled) {
                        *place = *first;
                    }
                    *filled += 1;
                    rest = behind;
                    if *filled == HEADER_BYTES {
                        let header = FrameHeader::parse(*bytes);
                        self.enter(header)?;
                    }
                }
                State::Padding(length) => {
                    let padding = u32::from(*first);
                    let length = *length;
                    rest = behind;
                    self.skip(length.saturating_sub(1));
                    if length <= padding + 1 {
                        self.charge(Chore::EmptyData)?;
                    }
                }
            }
        }
        Ok(())
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
            .earn(Chore::WindowUpdate, kibibytes.saturating_add(2));
        self.left.earn(Chore::Ping, 1);
    }

    /// Counts a request that was answered to its end: another may be given up for it.
    pub fn served(&mut self) {
        self.left.earn(Chore::Reset, 1);
    }

    fn enter(&mut self, header: FrameHeader) -> Result<(), Flood> {
        self.skip(header.length);
        match header.kind {
            DATA if header.ends_stream() => Ok(()),
            DATA if header.length == 0 => self.charge(Chore::EmptyData),
            DATA if header.is_padded() => {
                self.state = State::Padding(header.length);
                Ok(())
            }
            DATA => Ok(()),
            HEADERS => {
                self.in_head = !header.ends_headers();
                // Browsers send the priority of a request in a frame of its own.
                self.left.earn(Chore::Priority, 2);
                Ok(())
            }
            CONTINUATION => {
                self.in_head = !header.ends_headers();
                self.charge(Chore::Continuation)
            }
            RST_STREAM => self.charge(Chore::Reset),
            SETTINGS => self.charge(Chore::Settings),
            PING => self.charge(Chore::Ping),
            WINDOW_UPDATE => self.charge(Chore::WindowUpdate),
            PRIORITY | PRIORITY_UPDATE => self.charge(Chore::Priority),
            _ => self.charge(Chore::Other),
        }
    }

    fn skip(&mut self, count: u32) {
        self.state = match count {
            0 => BEFORE_HEADER,
            count => State::Skip(count),
        };
    }

    fn charge(&mut self, chore: Chore) -> Result<(), Flood> {
        if self.left.take(chore) {
            Ok(())
        } else {
            Err(Flood { chore })
        }
    }
}

impl Default for FrameMeter {
    fn default() -> Self {
        Self::new()
    }
}
