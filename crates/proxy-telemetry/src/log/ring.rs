//! The newest lines of a log, in memory.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, PoisonError};

/// Minimum number of bytes dropped at once, so that line ends are rarely searched for.
const MIN_DROPPED_BYTES: usize = 16 * 1024;

#[expect(
    clippy::disallowed_types,
    reason = "only the thread that writes the log and the admin interface wait for it"
)]
type Locked<T> = std::sync::Mutex<T>;

/// The newest whole lines of a log, up to a number of bytes.
#[derive(Debug, Default)]
pub struct LineRing(Locked<Lines>);

/// A log's destination in a ring.
#[derive(Clone, Debug)]
pub struct RingWriter(Arc<LineRing>);

#[derive(Debug, Default)]
struct Lines {
    bytes: VecDeque<u8>,
    /// 0 keeps nothing.
    max_bytes: usize,
}

impl LineRing {
    /// Keeps at most `max_bytes` from now on; 0 keeps nothing.
    pub fn resize(&self, max_bytes: usize) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.max_bytes = max_bytes;
        lines.make_room(0);
        lines.bytes.shrink_to(max_bytes);
    }

    /// A copy of the lines, oldest first; `None` if nothing is kept.
    pub fn lines(&self) -> Option<Vec<u8>> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, second) = lines.bytes.as_slices();
        (lines.max_bytes > 0).then(|| [first, second].concat())
    }
}

impl RingWriter {
    /// Appends to `ring`.
    pub fn new(ring: Arc<LineRing>) -> Self {
        Self(ring)
    }
}

impl Write for RingWriter {
    /// Takes whole lines.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn push(&mut self, mut lines: &[u8]) {
        while self.max_bytes < lines.len() {
            let end = lines.iter().position(|byte| *byte == b'\n');
            let rest = end.and_then(|end| lines.get(end + 1..));
            lines = rest.unwrap_or_default();
            if lines.is_empty() {
                return;
            }
        }
        self.make_room(lines.len());
        self.bytes.extend(lines);
    }

    /// Drops the oldest lines until `added` bytes fit.
    fn make_room(&mut self, added: usize) {
        let excess = (self.bytes.len() + added).saturating_sub(self.max_bytes);
        if excess == 0 {
            return;
        }
        let dropped = excess.max(MIN_DROPPED_BYTES.min(self.max_bytes / 8));
        let dropped = dropped.min(self.bytes.len());
        let rest = self.bytes.range(dropped.saturating_sub(1)..);
        let end = rest.take_while(|byte| **byte != b'\n').count();
        let dropped = (dropped + end).min(self.bytes.len());
        drop(self.bytes.drain(..dropped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(max_bytes: usize, batches: &[&str]) -> String {
        let ring = Arc::new(LineRing::default());
        ring.resize(max_bytes);
        let mut writer = RingWriter::new(Arc::clone(&ring));
        for batch in batches {
            writer.write_all(batch.as_bytes()).unwrap();
        }
        String::from_utf8(ring.lines().unwrap_or_default()).unwrap()
    }

    #[test]
    fn the_newest_whole_lines_are_kept() {
        assert_eq!(kept(12, &["one\n", "two\n", "six\n"]), "one\ntwo\nsix\n");
        assert_eq!(
            kept(12, &["one\n", "two\n", "six\n", "ten\n"]),
            "two\nsix\nten\n"
        );
        assert_eq!(kept(12, &["one\n", "two\n", "fourteen\n"]), "fourteen\n");
        assert_eq!(kept(9, &["one\ntwo\nsix\n"]), "two\nsix\n");
        assert_eq!(kept(3, &["one\n", "fourteen\n"]), "");
        assert_eq!(kept(0, &["one\n"]), "");
    }

    #[test]
    fn a_ring_never_exceeds_its_size_and_loses_no_more_than_it_must() {
        let line = "x".repeat(99) + "\n";
        let ring = Arc::new(LineRing::default());
        let mut writer = RingWriter::new(Arc::clone(&ring));
        ring.resize(100_000);
        for _ in 0..5_000 {
            writer.write_all(line.as_bytes()).unwrap();
            assert!(ring.lines().unwrap().len() <= 100_000);
        }
        let lines = ring.lines().unwrap();
        assert!(80_000 <= lines.len(), "{}", lines.len());
        assert_eq!(lines.len() % 100, 0, "whole lines");
        ring.resize(1_000);
        let shorter = ring.lines().unwrap();
        assert!(shorter.len() <= 1_000 && shorter.ends_with(line.as_bytes()));
        ring.resize(0);
        assert_eq!(ring.lines(), None);
    }
}
