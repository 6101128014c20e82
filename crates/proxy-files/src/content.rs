//! The contents of a file, read in chunks.

use bytes::Bytes;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Maximum size of a chunk, in bytes.
const PIECE_BYTES: u64 = 64 * 1024;

/// The unread bytes of a file.
#[derive(Debug)]
pub struct Content {
    file: File,
    left: u64,
}

impl Content {
    /// These bytes of `file`.
    pub(crate) fn new(mut file: File, bytes: &Range<u64>) -> io::Result<Self> {
        if bytes.start > 0 {
            file.seek(SeekFrom::Start(bytes.start))?;
        }
        let left = bytes.end.saturating_sub(bytes.start);
        Ok(Self { file, left })
    }

    /// Number of unread bytes.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes: at most 64 KiB, and none only at the end. Blocks.
    ///
    /// # Errors
    /// Errors of the operating system; `UnexpectedEof` if the file was truncated since it was
    /// opened.
    pub fn read(&mut self) -> io::Result<Bytes> {
        let wanted = self.left.min(PIECE_BYTES);
        let mut piece = Vec::with_capacity(usize::try_from(wanted).unwrap_or_default());
        let count = (&self.file).take(wanted).read_to_end(&mut piece)? as u64;
        self.left -= count.min(self.left);
        if count < wanted {
            self.left = 0;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(piece.into())
    }
}
