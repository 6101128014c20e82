//! Parsing of response heads.

use crate::body_length::BodyLength;
use crate::buffer_pool;
use crate::fields::{Fields, Head};
use crate::response_head_writer::Reason;
use http::{Response, StatusCode, Version};
use proxy_framing::RequestKind;

/// Length of `HTTP/1.x SSS`, which the validator has found to be present.
const STATUS_END: usize = 12;

/// A response head with its meaning for the message.
#[derive(Debug)]
pub struct ResponseHead {
    /// The head as the `http` crate represents it; an uncommon reason phrase is in its extensions.
    pub response: Response<()>,
    /// Framing of the body.
    pub extent: BodyLength,
    /// The target keeps the connection open.
    pub keeps: bool,
}

impl Head {
    /// The status of a response head; `None` if it is not one.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        StatusCode::from_bytes(self.bytes.get(9..STATUS_END)?).ok()
    }
}

/// Parses an accepted head of the response to a request of this kind; `None` if it is not one.
#[must_use]
pub fn read_response(whole: &Head, kind: RequestKind) -> Option<ResponseHead> {
    let Head { bytes: head, lines } = whole;
    let status = whole.status()?;
    let (mut response, is_new) = start(whole, status);
    let mut read = Fields::new(buffer_pool::map(), is_new);
    read.take(head, lines)?;
    let keeps = read.keeps();
    *response.headers_mut() = read.headers;
    let bodiless = kind == RequestKind::Head
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    Some(ResponseHead {
        response,
        extent: if bodiless {
            BodyLength::Length(0)
        } else {
            read.extent.unwrap_or(BodyLength::UntilClose)
        },
        keeps,
    })
}

/// The response without its fields, and whether its version keeps connections open by default.
pub(crate) fn start(head: &Head, status: StatusCode) -> (Response<()>, bool) {
    let is_new = head.bytes.get(7) == Some(&b'1');
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.version_mut() = if is_new {
        Version::HTTP_11
    } else {
        Version::HTTP_10
    };
    let phrase = STATUS_END + 1..head.lines.start.saturating_sub(2);
    if let Some(reason) = Reason::uncommon(&head.bytes, phrase, status) {
        response.extensions_mut().insert(reason);
    }
    (response, is_new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proxy_framing::Lines;

    fn read(head: &'static str, kind: RequestKind) -> ResponseHead {
        read_response(
            &Head::take(&mut BytesMut::from(head), Lines::new()).unwrap(),
            kind,
        )
        .unwrap()
    }

    #[test]
    fn what_has_no_body_has_none_whatever_it_says() {
        for (head, kind) in [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
                RequestKind::Head,
            ),
            (
                "HTTP/1.1 304 x\r\ntransfer-encoding: chunked\r\n\r\n",
                RequestKind::Other,
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", RequestKind::Other),
        ] {
            assert_eq!(read(head, kind).extent, BodyLength::Length(0), "{head}");
        }
    }

    #[test]
    fn a_connection_is_kept_as_its_version_and_options_say() {
        for (head, keeps) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nconnection: x, Close\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n\r\n", true),
        ] {
            assert_eq!(read(head, RequestKind::Other).keeps, keeps, "{head}");
        }
    }

    #[test]
    fn an_uncommon_reason_is_kept() {
        let common = read("HTTP/1.1 200 OK\r\n\r\n", RequestKind::Other);
        assert!(common.response.extensions().is_empty());
        let own = read("HTTP/1.1 200 Fine\r\n\r\n", RequestKind::Other);
        assert!(own.response.extensions().get::<Reason>().is_some());
        for none in ["HTTP/1.1 200 \r\n\r\n", "HTTP/1.1 200\r\n\r\n"] {
            let none = read(none, RequestKind::Other);
            assert!(none.response.extensions().is_empty());
        }
    }
}
