//! Streams that the HTTP/2 library ends by itself: nothing else tells of them.

use proxy_errors::{Detail, Problem, Reason};
use proxy_framing::h2::WrittenFrame;
use std::cell::{Cell, RefCell};

/// `PROTOCOL_ERROR`, which only the library sends. [RFC 9113 §7]
const PROTOCOL_ERROR: u32 = 1;

/// Most gaps between streams that are remembered. The oldest is forgotten first: its streams are taken
/// for such as were begun.
const MOST_GAPS: usize = 64;

/// What is known of a connection's streams, of all that were begun here and some that were not.
#[derive(Debug, Default)]
pub(super) struct RefusedStreams {
    /// The last stream that became a request.
    last: Cell<u32>,
    /// Streams before it that did not: from the first up to, but without, the second.
    gaps: RefCell<Vec<(u32, u32)>>,
    /// Answers and ends that the library wrote by itself, and that are not written down yet.
    written: RefCell<Vec<WrittenFrame>>,
    /// Streams that were begun and broke the rules later.
    malformed: RefCell<Vec<u32>>,
}

impl RefusedStreams {
    /// `stream` becomes a request. Streams are begun in their order.
    #[inline]
    pub(super) fn begin(&self, stream: u32) {
        let next = self.last.replace(stream).saturating_add(2);
        // The first is 1.
        let next = next.saturating_sub(u32::from(next == 2));
        if next < stream {
            let mut gaps = self.gaps.borrow_mut();
            if gaps.len() == MOST_GAPS {
                gaps.remove(0);
            }
            gaps.push((next, stream));
        }
    }

    /// Notes what is written to the client.
    #[inline]
    pub(super) fn heard(&self, frame: WrittenFrame) {
        let by_itself = match frame {
            WrittenFrame::Head(stream) => !self.was_begun(stream),
            WrittenFrame::Reset(_, code) => code == PROTOCOL_ERROR,
        };
        if by_itself {
            self.written.borrow_mut().push(frame);
        }
    }

    /// Whether the library ended a stream that was begun, because its client broke the rules.
    pub(super) fn is_malformed(&self, stream: u32) -> bool {
        let written = self.written.borrow();
        let mut ends = written.iter().filter_map(|frame| match frame {
            WrittenFrame::Reset(ended, _) => Some(*ended),
            WrittenFrame::Head(_) => None,
        });
        ends.any(|ended| ended == stream) || self.malformed.borrow().contains(&stream)
    }

    /// What became of streams that never became requests, told once.
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

/// A stream's head or trailers are malformed; what exactly, the library does not say.
pub(super) fn malformed(stream: u32) -> Problem {
    let text = format!("stream {stream} was reset: its head or its trailers are malformed");
    Problem::new(Reason::Http2ProtocolError, Detail::text(text))
}

/// The library answers such heads 431.
fn too_large(stream: u32) -> Problem {
    let text = format!("stream {stream} has a header section far above the limits");
    Problem::new(Reason::HeaderSizeLimit, Detail::text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(refused: &RefusedStreams) -> Vec<Reason> {
        let problems = refused.take();
        problems.iter().map(Problem::reason).collect()
    }

    #[test]
    fn only_streams_that_were_not_begun_are_told_of() {
        let refused = RefusedStreams::default();
        for stream in [1, 3, 9] {
            refused.begin(stream);
        }
        for stream in [1, 3, 5, 9, 11] {
            refused.heard(WrittenFrame::Head(stream));
        }
        assert_eq!(told(&refused), [Reason::HeaderSizeLimit; 2]);
        for stream in [3, 7, 11] {
            refused.heard(WrittenFrame::Reset(stream, 1));
            refused.heard(WrittenFrame::Reset(stream, 8));
        }
        assert_eq!(told(&refused), [Reason::Http2ProtocolError; 2]);
        assert!(refused.is_malformed(3) && !refused.is_malformed(9));
        assert!(told(&refused).is_empty());
    }
}
