//! Keeps the heads of 1xx responses, which hyper swallows, for the client.

use crate::wire::Wire;

const START: &[u8] = b"HTTP/1.1 1";
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Whether `fresh`, read where a response may start, could be a 1xx response.
#[inline]
pub(crate) fn may_start(fresh: &[u8]) -> bool {
    let length = START.len().min(fresh.len());
    length > 0 && fresh.get(..length) == START.get(..length)
}

/// Moves every complete 1xx head at the front of what was read so far to the ones to pass on. The
/// framing guard bounds a head's size and their number.
pub(crate) fn collect(wire: &Wire, fresh: &[u8]) {
    let mut partial = wire.interim.borrow_mut();
    partial.extend_from_slice(fresh);
    while partial.starts_with(START) {
        let Some(end) = partial
            .windows(HEAD_END.len())
            .position(|at| at == HEAD_END)
        else {
            return;
        };
        let head: Vec<u8> = partial.drain(..end + HEAD_END.len()).collect();
        if is_for_clients(&head) {
            wire.informational.borrow_mut().extend_from_slice(&head);
        }
    }
    let undecided = !partial.is_empty() && START.starts_with(&partial);
    if !undecided {
        // What follows is the final response.
        wire.interim_over.set(!partial.is_empty());
        *partial = Vec::new();
    }
}

/// 100 answers an expectation that this proxy met by itself, 101 is a final answer.
fn is_for_clients(head: &[u8]) -> bool {
    !matches!(head.get(9..12), None | Some(b"100" | b"101"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_framing::HeadLimits;

    const LIMITS: HeadLimits = HeadLimits {
        max_head_bytes: 8192,
        max_header_count: 100,
        max_name_bytes: 256,
        max_value_bytes: 4096,
        max_target_bytes: 1024,
    };

    fn collected(pieces: &[&[u8]]) -> Vec<u8> {
        let wire = Wire::new(LIMITS);
        for piece in pieces {
            collect(&wire, piece);
        }
        wire.take_informational()
    }

    const HINT: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    const FINAL: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

    #[test]
    fn hints_are_kept_and_the_final_head_is_not() {
        let all = [HINT, HINT, FINAL].concat();

        assert_eq!(collected(&[&all]), [HINT, HINT].concat());
    }

    #[test]
    fn a_head_in_pieces_is_kept_whole() {
        let all = [HINT, FINAL].concat();
        let bytes: Vec<&[u8]> = all.chunks(1).collect();

        assert_eq!(collected(&bytes), HINT);
    }

    #[test]
    fn a_100_is_not_passed_on() {
        assert_eq!(collected(&[b"HTTP/1.1 100 Continue\r\n\r\n", FINAL]), b"");
    }
}
