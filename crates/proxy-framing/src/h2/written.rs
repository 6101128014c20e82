//! Scans the frames written to a client for responses and resets.

use super::frame::{FrameHeader, HEADER_BYTES, HEADERS, RST_STREAM};

/// Parses the headers of written frames.
#[derive(Clone, Debug, Default)]
pub struct WrittenFrames {
    /// The header of the current frame, followed by the error code of an `RST_STREAM`.
    held: [u8; HELD_BYTES],
    filled: usize,
    /// Remaining bytes of a payload to skip.
    skip: u32,
}

/// A frame that begins a response or resets a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenFrame {
    /// `HEADERS` on this stream.
    Head(u32),
    /// `RST_STREAM` of this stream, with this error code.
    Reset(u32, u32),
}

const CODE_BYTES: usize = 4;
const HELD_BYTES: usize = HEADER_BYTES + CODE_BYTES;

impl WrittenFrames {
    /// Scans written `bytes`; calls `on_frame` for each frame that begins a response or resets a
    /// stream.
    pub fn scan(&mut self, bytes: &[u8], mut on_frame: impl FnMut(WrittenFrame)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.skip > 0 {
                let skipped = rest.len().min(self.skip as usize);
                rest = rest.get(skipped..).unwrap_or_default();
                self.skip -= u32::try_from(skipped).unwrap_or(self.skip);
                continue;
            }
            rest = self.fill(rest);
            let Some(header) = self.header() else {
                return;
            };
            match header.kind {
                RST_STREAM if header.length == 4 => {
                    let Some([.., a, b, c, d]) = self
                        .held
                        .get(..self.filled)
                        .filter(|held| held.len() == HELD_BYTES)
                    else {
                        continue;
                    };
                    on_frame(WrittenFrame::Reset(
                        header.stream,
                        u32::from_be_bytes([*a, *b, *c, *d]),
                    ));
                    self.filled = 0;
                }
                kind => {
                    if kind == HEADERS {
                        on_frame(WrittenFrame::Head(header.stream));
                    }
                    self.filled = 0;
                    self.skip = header.length;
                }
            }
        }
    }

    /// Completes the held header, or the code after it. Returns the remaining bytes.
    fn fill<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let wanted = if self.filled < HEADER_BYTES {
            HEADER_BYTES
        } else {
            HELD_BYTES
        };
        let count = bytes.len().min(wanted - self.filled);
        let (now, after) = bytes.split_at(count);
        if let Some(place) = self.held.get_mut(self.filled..self.filled + count) {
            place.copy_from_slice(now);
        }
        self.filled += count;
        after
    }

    fn header(&self) -> Option<FrameHeader> {
        let header = self.held.first_chunk()?;
        (HEADER_BYTES <= self.filled).then(|| FrameHeader::parse(*header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_resets_are_counted_however_they_are_cut() {
        let mut bytes = Vec::new();
        for (kind, stream, payload) in [
            (4, 0, &[0; 6][..]),
            (HEADERS, 1, b"\x88"),
            (0, 1, b"hello"),
            (RST_STREAM, 3, &[0, 0, 0, 1]),
            (HEADERS, 5, b""),
        ] {
            FrameHeader::write(kind, 0, stream, payload, &mut bytes);
        }
        let wanted = [
            WrittenFrame::Head(1),
            WrittenFrame::Reset(3, 1),
            WrittenFrame::Head(5),
        ];
        for size in 1..=bytes.len() {
            let (mut frames, mut found) = (WrittenFrames::default(), Vec::new());
            for piece in bytes.chunks(size) {
                frames.scan(piece, |frame| found.push(frame));
            }
            assert_eq!(found, wanted, "pieces of {size}");
        }
    }
}
