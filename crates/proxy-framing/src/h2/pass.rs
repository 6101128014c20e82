//! The path of a client's bytes to the parser.

use super::frame::HEADER_BYTES;
use super::meter::{Collect, Flood, FrameMeter};

impl FrameMeter {
    /// Consumes `bytes` received at `now`, in tenths of a second since any origin. Returns the
    /// bytes for the parser if they differ from `bytes`: a header section that is a trailer section
    /// or has several frames is withheld until it is complete.
    ///
    /// # Errors
    /// [`Flood`] when an allowance is exceeded. Bytes after that frame are not scanned.
    pub fn pass(&mut self, bytes: &[u8], now: u32) -> Result<Option<Vec<u8>>, Flood> {
        if !self.held.is_empty() {
            return self.pass_slowly(bytes, now).map(Some);
        }
        let stopped = self.scan(bytes, now)?;
        if stopped.is_none() && self.held_header() == 0 {
            return Ok(None);
        }
        let mut out = Vec::new();
        let rest = self.take_scanned(bytes, stopped, &mut out);
        out.append(&mut self.pass_slowly(rest, now)?);
        Ok(Some(out))
    }

    /// The withheld bytes, at the end of the connection.
    pub fn take_held(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(section) = self.section.take() {
            section.write(false, &mut out);
        }
        self.wanted = 0;
        out.append(&mut self.held);
        out
    }

    #[cold]
    fn pass_slowly(&mut self, bytes: &[u8], now: u32) -> Result<Vec<u8>, Flood> {
        let (mut out, mut rest) = (Vec::new(), bytes);
        loop {
            if self.wanted > 0 {
                let missing = self.wanted.saturating_sub(self.held.len());
                let (more, after) = rest.split_at(missing.min(rest.len()));
                self.held.extend_from_slice(more);
                rest = after;
                if self.held.len() < self.wanted {
                    return Ok(out);
                }
                self.wanted = 0;
                let frame = std::mem::take(&mut self.held);
                out.append(&mut self.collect(&frame)?);
            }
            if rest.is_empty() {
                return Ok(out);
            }
            let stopped = self.scan(rest, now)?;
            rest = self.take_scanned(rest, stopped, &mut out);
        }
    }

    /// Appends the scanned part of `bytes` to `out`, except a header to be withheld. Returns the
    /// rest.
    fn take_scanned<'b>(
        &mut self,
        bytes: &'b [u8],
        stopped: Option<Collect>,
        out: &mut Vec<u8>,
    ) -> &'b [u8] {
        let (end, held) = match stopped {
            Some(frame) => {
                self.wanted = frame.bytes;
                (frame.header_end, HEADER_BYTES)
            }
            None => (bytes.len(), self.held_header()),
        };
        let (scanned, rest) = bytes.split_at(end.min(bytes.len()));
        out.append(&mut self.held);
        out.extend_from_slice(scanned);
        self.held = out.split_off(out.len().saturating_sub(held));
        rest
    }
}
