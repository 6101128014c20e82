//! Frames that a connection has not written yet.

use std::io;
use tokio::net::unix::OwnedWriteHalf;

/// Number of unsent bytes above which these are written at once, not at the end of the round.
const MAX_COLLECTED_BYTES: usize = 32 << 10;
/// Number of written bytes that are removed from the buffer even if frames follow.
const MAX_WRITTEN_BYTES: usize = 64 << 10;
/// Capacity that an empty buffer keeps.
const KEPT_BYTES: usize = 256 << 10;

/// Frames of a connection with unwritten bytes. The first `written` bytes are already written.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    pub(crate) fn unsent(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Returns true if the unsent data is too large to wait for the end of the round.
    pub(crate) fn is_large(&self) -> bool {
        MAX_COLLECTED_BYTES < self.unsent()
    }

    /// The buffer to which frames are appended.
    pub(crate) fn frames(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Writes as much as the socket accepts. Returns true if nothing remains.
    pub(crate) fn flush(&mut self, stream: &OwnedWriteHalf) -> io::Result<bool> {
        let Self { bytes, written } = self;
        while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
            match stream.try_write(rest) {
                Ok(count) => *written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if MAX_WRITTEN_BYTES < *written {
                        bytes.drain(..*written);
                        *written = 0;
                    }
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        bytes.clear();
        bytes.shrink_to(KEPT_BYTES);
        *written = 0;
        Ok(true)
    }
}
