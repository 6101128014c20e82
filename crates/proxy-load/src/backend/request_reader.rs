//! Parsing of requests at the upstream, reduced to finding their ends.

use crate::command::ResponseSize;
use crate::http::head;
use memchr::memmem;

/// The end of a chunked body. The requests of a load never contain these bytes.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// The byte that request bodies consist of.
pub(crate) const BODY_BYTE: u8 = b'p';

/// Reads the requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct RequestReader {
    /// The beginning of an incomplete part.
    held: Vec<u8>,
    awaiting: Awaiting,
    /// True if the request being read is the captured one.
    is_captured: bool,
}

/// The last request with a given `User-Agent`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastRequest {
    pub(crate) user_agent: String,
    pub(crate) head: String,
    pub(crate) body_bytes: usize,
}

impl LastRequest {
    /// Captures requests with this `User-Agent` only.
    pub(crate) fn new(user_agent: &str) -> Self {
        Self {
            user_agent: user_agent.to_owned(),
            ..Self::default()
        }
    }

    /// Returns true if `head` is captured, which it is by its `User-Agent`.
    fn take(&mut self, head: &[u8]) -> bool {
        if head::value(head, b"user-agent") != Some(self.user_agent.as_bytes()) {
            return false;
        }
        self.head = String::from_utf8_lossy(head).into_owned();
        self.body_bytes = 0;
        true
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum Awaiting {
    #[default]
    Head,
    Body {
        left: usize,
        answer: ResponseSize,
    },
    Chunks(ResponseSize),
}

impl RequestReader {
    /// Consumes input, and appends to `owed` the response to each request that is now complete.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        owed: &mut impl Extend<ResponseSize>,
        seen: Option<&mut LastRequest>,
    ) {
        if self.held.is_empty() {
            let rest = self.read(bytes, owed, seen);
            self.held.extend_from_slice(rest);
        } else {
            let mut whole = std::mem::take(&mut self.held);
            whole.extend_from_slice(bytes);
            let rest = self.read(&whole, owed, seen).len();
            whole.drain(..whole.len() - rest);
            self.held = whole;
        }
    }

    fn read<'a>(
        &mut self,
        bytes: &'a [u8],
        owed: &mut impl Extend<ResponseSize>,
        mut seen: Option<&mut LastRequest>,
    ) -> &'a [u8] {
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = match self.awaiting {
                Awaiting::Head => {
                    let head = head::split(rest).map(|(head, _)| head);
                    self.is_captured = head
                        .zip(seen.as_deref_mut())
                        .is_some_and(|(head, seen)| seen.take(head));
                    read_head(rest)
                }
                Awaiting::Body { left, answer } => read_body(rest, left, answer),
                Awaiting::Chunks(answer) => read_chunks(rest, answer),
            };
            let Some(step) = step else { break };
            if let Some(seen) = seen.as_deref_mut()
                && self.is_captured
                && self.awaiting.is_body()
            {
                let used = rest.len() - step.rest.len();
                seen.body_bytes += count(rest.get(..used).unwrap_or_default());
            }
            owed.extend(step.answer);
            self.awaiting = step.awaiting;
            let stuck = step.rest.len() == rest.len();
            rest = step.rest;
            if stuck {
                break;
            }
        }
        rest
    }
}

impl Awaiting {
    fn is_body(self) -> bool {
        !matches!(self, Self::Head)
    }
}

/// The result of consuming some bytes.
struct Step<'a> {
    rest: &'a [u8],
    awaiting: Awaiting,
    answer: Option<ResponseSize>,
}

fn read_head(bytes: &[u8]) -> Option<Step<'_>> {
    let (head, rest) = head::split(bytes)?;
    let path = head.split(|byte| *byte == b' ').nth(1);
    let answer = ResponseSize::for_path(path.unwrap_or_default());
    let awaiting = if head.starts_with(b"GET ") {
        Awaiting::Head
    } else if head::value(head, b"transfer-encoding").is_some() {
        Awaiting::Chunks(answer)
    } else {
        let left = head::content_length(head).unwrap_or(0);
        Awaiting::Body { left, answer }
    };
    let whole = match awaiting {
        Awaiting::Head | Awaiting::Body { left: 0, .. } => Some(answer),
        Awaiting::Body { .. } | Awaiting::Chunks(_) => None,
    };
    Some(Step {
        rest,
        awaiting: if whole.is_some() {
            Awaiting::Head
        } else {
            awaiting
        },
        answer: whole,
    })
}

fn read_body(bytes: &[u8], left: usize, answer: ResponseSize) -> Option<Step<'_>> {
    let (taken, rest) = bytes.split_at_checked(left.min(bytes.len()))?;
    let left = left - taken.len();
    let over = left == 0;
    Some(Step {
        rest,
        awaiting: if over {
            Awaiting::Head
        } else {
            Awaiting::Body { left, answer }
        },
        answer: over.then_some(answer),
    })
}

fn read_chunks(bytes: &[u8], answer: ResponseSize) -> Option<Step<'_>> {
    if let Some(at) = memmem::find(bytes, LAST_CHUNK) {
        return Some(Step {
            rest: bytes.get(at + LAST_CHUNK.len()..)?,
            awaiting: Awaiting::Head,
            answer: Some(answer),
        });
    }
    // The last chunk may have begun.
    let kept = bytes.len().min(LAST_CHUNK.len() - 1);
    Some(Step {
        rest: bytes.get(bytes.len() - kept..)?,
        awaiting: Awaiting::Chunks(answer),
        answer: None,
    })
}

fn count(bytes: &[u8]) -> usize {
    memchr::memchr_iter(BODY_BYTE, bytes).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &str = "GET /m HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\n\r\n";
    const POST: &str = "POST /s HTTP/1.1\r\nUser-Agent: x\r\nContent-Length: 5\r\n\r\nppppp";
    const HEALTH_CHECK: &str = "GET /s HTTP/1.1\r\nUser-Agent: check\r\n\r\n";
    const CHUNKED: &str =
        "POST /l HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10\r\npppppppppppppppp\r\n0\r\n\r\n";

    /// The responses for a stream read in pieces of every size must be `answers`.
    #[track_caller]
    fn owes(stream: &str, answers: &[ResponseSize]) -> LastRequest {
        let mut last = LastRequest::new("x");
        for size in 1..=stream.len() {
            let mut intake = RequestReader::default();
            let mut owed = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                intake.take(piece, &mut owed, Some(&mut last));
            }
            assert_eq!(owed, answers, "in pieces of {size}");
        }
        last
    }

    #[test]
    fn requests_are_separated_in_pieces_of_any_size() {
        owes(GET, &[ResponseSize::Medium]);
        owes(
            &format!("{GET}{GET}"),
            &[ResponseSize::Medium, ResponseSize::Medium],
        );
        owes(
            &format!("{POST}{GET}"),
            &[ResponseSize::Small, ResponseSize::Medium],
        );
        owes(
            &format!("{CHUNKED}{GET}"),
            &[ResponseSize::Large, ResponseSize::Medium],
        );
    }

    #[test]
    fn the_last_request_is_seen_with_its_body() {
        let seen = owes(POST, &[ResponseSize::Small]);
        assert!(seen.head.starts_with("POST /s "));
        assert_eq!(seen.body_bytes, 5);
        assert_eq!(owes(GET, &[ResponseSize::Medium]).body_bytes, 0);
    }

    #[test]
    fn a_health_check_is_not_captured() {
        let both = format!("{POST}{HEALTH_CHECK}");
        let seen = owes(&both, &[ResponseSize::Small, ResponseSize::Small]);
        assert!(seen.head.starts_with("POST /s "));
        assert_eq!(seen.body_bytes, 5);
    }

    #[test]
    fn a_post_without_a_body_is_answered_at_once() {
        owes(
            "POST /s HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            &[ResponseSize::Small],
        );
    }
}
