//! Capture of one exchange at both ends, for comparison.

use crate::backend;
use crate::backend::request_reader::LastRequest;
use crate::command::{Capture, Protocol};
use crate::http::frame::{Frame, Kind};
use crate::http::head;

/// Parses the response that the client read, and adds the request that the upstream read.
pub(crate) fn capture(read: &[u8], protocol: Protocol, seen: Option<LastRequest>) -> Capture {
    let (head, body) = match protocol {
        Protocol::Plain | Protocol::Tls => {
            let (head, body) = head::split(read).unwrap_or((read, &[]));
            (String::from_utf8_lossy(head).into_owned(), body.to_vec())
        }
        Protocol::Http2 => (String::new(), data(read)),
    };
    let LastRequest {
        user_agent: _,
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
