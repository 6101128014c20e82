//! Streams that the HTTP/2 library resets or answers on its own, without a report.

use proxy_errors::{Detail, Problem, Reason};
use proxy_framing::h2::WrittenFrame;
use std::cell::{Cell, RefCell};

/// `PROTOCOL_ERROR`, which only the library sends. [RFC 9113 §7]
const PROTOCOL_ERROR: u32 = 1;

/// Maximum number of gaps between streams that are recorded. The oldest is dropped first; its
/// streams then count as started.
const MAX_GAPS: usize = 64;

/// The streams of a connection that were started here, and those that were not.
#[derive(Debug, Default)]
pub(super) struct RefusedStreams {
    /// The highest stream that became a request.
    last: Cell<u32>,
    /// Lower streams that did not, as half-open ranges.
    gaps: RefCell<Vec<(u32, u32)>>,
    /// Responses and resets written by the library and not logged yet.
    written: RefCell<Vec<WrittenFrame>>,
    /// Started streams that later became malformed.
    malformed: RefCell<Vec<u32>>,
}

impl RefusedStreams {
    /// Records that `stream` became a request. Streams are started in order.
    #[inline]
    pub(super) fn begin(&self, stream: u32) {
        let next = self.last.replace(stream).saturating_add(2);
        // The first stream is 1.
        let next = next.saturating_sub(u32::from(next == 2));
        if next < stream {
            let mut gaps = self.gaps.borrow_mut();
            if gaps.len() == MAX_GAPS {
                gaps.remove(0);
            }
            gaps.push((next, stream));
        }
    }

    /// Records a frame written to the client.
    #[inline]
    pub(super) fn record(&self, frame: WrittenFrame) {
        let by_itself = match frame {
            WrittenFrame::Head(stream) => !self.was_begun(stream),
            WrittenFrame::Reset(_, code) => code == PROTOCOL_ERROR,
        };
        if by_itself {
            self.written.borrow_mut().push(frame);
        }
    }

    /// Returns true if the library reset a started stream because it is malformed.
    pub(super) fn is_malformed(&self, stream: u32) -> bool {
        let written = self.written.borrow();
        let mut ends = written.iter().filter_map(|frame| match frame {
            WrittenFrame::Reset(ended, _) => Some(*ended),
            WrittenFrame::Head(_) => None,
        });
        ends.any(|ended| ended == stream) || self.malformed.borrow().contains(&stream)
    }

    /// Problems of streams that never became requests; each is returned once.
    pub(super) fn take(&self) -> Vec<Problem> {
        if self.written.borrow().is_empty() {
            return Vec::new();
        }
        let written = self.written.take();
        let problem = |frame| match frame {
            WrittenFrame::Head(stream) => Some(too_large(stream)),
            WrittenFrame::Reset(stream, _) if self.was_begun(stream) => {
                self.malformed.borrow_mut().push(stream);
                None
            }
            WrittenFrame::Reset(stream, _) => Some(malformed(stream)),
        };
        written.into_iter().filter_map(problem).collect()
    }

    fn was_begun(&self, stream: u32) -> bool {
        let gaps = self.gaps.borrow();
        let in_a_gap = || gaps.iter().any(|(from, to)| (*from..*to).contains(&stream));
        stream <= self.last.get() && !in_a_gap()
    }
}

/// A stream's head or trailers are malformed; the library does not report how.
pub(super) fn malformed(stream: u32) -> Problem {
    let text = format!(
        "stream {stream} was reset: its head or its trailers are malformed, or its path has a \
         character that must be escaped"
    );
    Problem::new(Reason::Http2ProtocolError, Detail::text(text))
}

/// The library answers such heads with 431.
fn too_large(stream: u32) -> Problem {
    let text = format!("stream {stream} has a header section far above the limits");
    Problem::new(Reason::HeaderSizeLimit, Detail::text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(refused: &RefusedStreams) -> Vec<Reason> {
        let problems = refused.take();
        problems.iter().map(Problem::reason).collect()
    }

    #[test]
    fn only_streams_that_were_not_begun_are_reported() {
        let refused = RefusedStreams::default();
        for stream in [1, 3, 9] {
            refused.begin(stream);
        }
        for stream in [1, 3, 5, 9, 11] {
            refused.record(WrittenFrame::Head(stream));
        }
        assert_eq!(reasons(&refused), [Reason::HeaderSizeLimit; 2]);
        for stream in [3, 7, 11] {
            refused.record(WrittenFrame::Reset(stream, 1));
            refused.record(WrittenFrame::Reset(stream, 8));
        }
        assert_eq!(reasons(&refused), [Reason::Http2ProtocolError; 2]);
        assert!(refused.is_malformed(3) && !refused.is_malformed(9));
        assert!(reasons(&refused).is_empty());
    }
}
