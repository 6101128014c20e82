//! The client side of HTTP/1.1, reduced to the needs of a load: one request at a time.

use crate::http::head;
use crate::request_error::RequestError;
use std::time::Duration;

/// State of one connection.
#[derive(Debug, Default)]
pub(crate) struct Http1 {
    /// The beginning of an incomplete head.
    held: Vec<u8>,
    awaiting: Awaiting,
    since: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
enum Awaiting {
    #[default]
    Nothing,
    Head,
    Body {
        left: usize,
    },
}

impl Http1 {
    /// Appends a request to `out`; its time counts from `since`.
    pub(crate) fn queue_request(&mut self, request: &[u8], out: &mut Vec<u8>, since: Duration) {
        out.extend_from_slice(request);
        self.awaiting = Awaiting::Head;
        self.since = since;
    }

    /// Returns true if no byte has arrived since the last response ended.
    pub(crate) fn is_between_responses(&self) -> bool {
        match self.awaiting {
            Awaiting::Nothing => true,
            Awaiting::Head => self.held.is_empty(),
            Awaiting::Body { .. } => false,
        }
    }

    /// Consumes input. If it completes the response, returns the request's start time.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        body_bytes: Option<usize>,
    ) -> Result<Option<Duration>, RequestError> {
        let left = match self.awaiting {
            Awaiting::Nothing => return Err(RequestError::Unasked),
            Awaiting::Head if self.held.is_empty() => remaining(bytes, body_bytes)?,
            Awaiting::Head => {
                self.held.extend_from_slice(bytes);
                remaining(&self.held, body_bytes)?
            }
            Awaiting::Body { left } => {
                let left = left.checked_sub(bytes.len());
                Some(left.ok_or(RequestError::Length)?)
            }
        };
        let Some(left) = left else {
            if self.held.is_empty() {
                self.held.extend_from_slice(bytes);
            }
            return Ok(None);
        };
        self.held.clear();
        if left > 0 {
            self.awaiting = Awaiting::Body { left };
            return Ok(None);
        }
        self.awaiting = Awaiting::Nothing;
        Ok(Some(self.since))
    }
}

/// Remaining bytes of the body, once the head is complete.
fn remaining(bytes: &[u8], expected_bytes: Option<usize>) -> Result<Option<usize>, RequestError> {
    let Some((head, begun)) = head::split(bytes) else {
        return Ok(None);
    };
    let status = head.get(9..12).unwrap_or_default();
    if status != b"200" {
        return Err(RequestError::Status(
            String::from_utf8_lossy(status).into_owned(),
        ));
    }
    let body_bytes = head::content_length(head).ok_or(RequestError::Length)?;
    if expected_bytes.is_some_and(|expected| expected != body_bytes) {
        return Err(RequestError::Length);
    }
    let left = body_bytes.checked_sub(begun.len());
    left.map(Some).ok_or(RequestError::Length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Duration = Duration::from_millis(7);

    /// The result of reading a response in pieces of this size.
    fn answer(text: &str, size: usize) -> Result<Vec<Duration>, RequestError> {
        let mut http1 = Http1::default();
        http1.queue_request(b"", &mut Vec::new(), SINCE);
        let mut answered = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            answered.extend(http1.take(piece, Some(5))?);
        }
        Ok(answered)
    }

    #[test]
    fn an_answer_is_complete_once_for_every_split() {
        let text = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nxxxxx";
        for size in 1..=text.len() {
            assert_eq!(answer(text, size), Ok(vec![SINCE]), "in pieces of {size}");
        }
    }

    #[test]
    fn anything_but_the_upstreams_answer_is_a_fault() {
        let cases = [
            (
                "HTTP/1.1 502 No\r\ncontent-length: 5\r\n\r\nxxxxx",
                RequestError::Status("502".to_owned()),
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nxxxx",
                RequestError::Length,
            ),
            ("HTTP/1.1 200 OK\r\n\r\nxxxxx", RequestError::Length),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nxxxxxx",
                RequestError::Length,
            ),
        ];
        for (text, fault) in cases {
            assert_eq!(answer(text, text.len()), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_second_answer_to_one_request_is_a_fault() {
        let text = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nxxxxx";
        assert_eq!(
            answer(&format!("{text}{text}"), text.len()),
            Err(RequestError::Unasked)
        );
    }
}
