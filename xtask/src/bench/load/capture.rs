//! One exchange kept for whoever wants to compare.

use super::backend;
use super::frame::{Frame, Kind};
use super::head;
use super::intake::Seen;
use crate::bench::order::{Capture, Carrier};

/// Takes apart what the client read, and puts beside it what the upstream saw.
pub(super) fn capture(read: &[u8], carrier: Carrier, seen: Option<Seen>) -> Capture {
    let (head, body) = match carrier {
        Carrier::Plain | Carrier::Tls => {
            let (head, body) = head::split(read).unwrap_or((read, &[]));
            (String::from_utf8_lossy(head).into_owned(), body.to_vec())
        }
        Carrier::Http2 => (String::new(), data(read)),
    };
    let Seen {
        head: request_head,
        body_bytes: request_body_bytes,
    } = seen.unwrap_or_default();
    Capture {
        answer_head: head,
        answer_body_bytes: body.len(),
        answer_body_intact: body.iter().all(|byte| *byte == backend::BODY_BYTE),
        request_head,
        request_body_bytes,
    }
}

fn data(read: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut rest = read;
    while let Some((frame, after)) = Frame::split(rest) {
        if frame.kind == Kind::Data {
            data.extend_from_slice(frame.content().unwrap_or_default());
        }
        rest = after;
    }
    data
}
