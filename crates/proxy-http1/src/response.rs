//! Parsing of response heads.

use crate::body_length::BodyLength;
use crate::buffer_pool;
use crate::fields::{Fields, Head, is_hop_by_hop, number, trimmed};
use crate::response_head_writer::Reason;
use crate::verbatim::VerbatimFields;
use http::{Response, StatusCode, Version};
use proxy_framing::{RequestKind, is_name};

/// Length of `HTTP/1.x SSS`, which the validator has checked.
const STATUS_END: usize = 12;

/// A response head, and its meaning for framing and connection.
#[derive(Debug)]
pub struct ResponseHead {
    /// The head as a type of the `http` crate; an unusual reason phrase is in its extensions.
    pub response: Response<()>,
    /// Framing of the body.
    pub extent: BodyLength,
    /// Whether the connection persists after the response.
    pub keeps: bool,
}

impl Head {
    /// Status of a response head; `None` if it is malformed.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        StatusCode::from_bytes(self.bytes.get(9..STATUS_END)?).ok()
    }
}

/// Parses a validated head of the response to a request with this method; `None` if it is
/// malformed.
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
    // A body announced despite a status without one would be read as the next response. [RFC 9112
    // §6.3]
    let announces_surplus = status == StatusCode::NO_CONTENT
        && read
            .extent
            .is_some_and(|extent| extent != BodyLength::Length(0));
    Some(ResponseHead {
        response,
        extent: if bodiless {
            BodyLength::Length(0)
        } else {
            read.extent.unwrap_or(BodyLength::UntilClose)
        },
        keeps: keeps && !announces_surplus,
    })
}

/// Reads a validated head without parsing its fields, if it is a final response with a body of
/// known length and no hop-by-hop field. Otherwise returns the head, for [`read_response`].
///
/// # Errors
/// The head, if its fields must be parsed.
pub fn read_verbatim(
    head: Head,
    kind: RequestKind,
) -> Result<(ResponseHead, VerbatimFields), Head> {
    match summary(&head, kind) {
        Some(read) => Ok((read, VerbatimFields(head))),
        None => Err(head),
    }
}

fn summary(head: &Head, kind: RequestKind) -> Option<ResponseHead> {
    let status = head.status()?;
    let is_usual = matches!(status.as_u16(), 200..=203 | 206..=303 | 305..=599);
    if !is_usual || kind != RequestKind::Other {
        return None;
    }
    let mut length = None;
    for line in &head.lines.fields {
        let name = head.bytes.get(line.from..line.colon)?;
        match name.len() {
            14 if is_name(name, b"content-length") => {
                let (from, to) = trimmed(&head.bytes, line.colon + 1, line.end);
                length = Some(number(head.bytes.get(from..to)?)?);
            }
            _ if is_hop_by_hop(name) => return None,
            _ => {}
        }
    }
    let (response, keeps) = start(head, status);
    Some(ResponseHead {
        response,
        extent: BodyLength::Length(length?),
        keeps,
    })
}

/// Response without its fields, and whether its version makes connections persistent by default.
fn start(head: &Head, status: StatusCode) -> (Response<()>, bool) {
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
    fn a_message_without_a_body_has_none_despite_its_fields() {
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
    fn version_and_connection_options_decide_on_keep_alive() {
        for (head, keeps) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nconnection: x, Close\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n\r\n", true),
            ("HTTP/1.1 204 None\r\n\r\n", true),
            ("HTTP/1.1 204 None\r\ncontent-length: 0\r\n\r\n", true),
            ("HTTP/1.1 204 None\r\ncontent-length: 2\r\n\r\n", false),
            (
                "HTTP/1.1 204 None\r\ntransfer-encoding: chunked\r\n\r\n",
                false,
            ),
            ("HTTP/1.1 304 Same\r\ncontent-length: 2\r\n\r\n", true),
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

    fn read_passing(head: &str, kind: RequestKind) -> Result<(ResponseHead, VerbatimFields), Head> {
        let head = Head::take(&mut BytesMut::from(head), Lines::new()).unwrap();
        read_verbatim(head, kind)
    }

    #[test]
    fn a_head_with_more_than_a_length_is_read_in_full() {
        const LENGTH: &str = "Content-Length: 5\r\n";
        for (status, fields, kind) in [
            ("204 No Content", "", RequestKind::Other),
            ("304 Not Modified", "", RequestKind::Other),
            ("103 Early Hints", "", RequestKind::Other),
            ("200 OK", "", RequestKind::Head),
            ("200 OK", "", RequestKind::Upgrade),
            (
                "200 OK",
                "Connection: x-a\r\nX-A: 1\r\n",
                RequestKind::Other,
            ),
            ("200 OK", "keep-Alive: 5\r\n", RequestKind::Other),
            ("200 OK", "Upgrade: h2c\r\n", RequestKind::Other),
            ("200 OK", "TE: trailers\r\n", RequestKind::Other),
        ] {
            let head = format!("HTTP/1.1 {status}\r\n{fields}{LENGTH}\r\n");
            let head = read_passing(&head, kind).unwrap_err();
            assert!(
                head.as_bytes().starts_with(b"HTTP/1.1 "),
                "{status} {fields}"
            );
        }
        assert!(read_passing("HTTP/1.1 200 OK\r\nx: 1\r\n\r\n", RequestKind::Other).is_err());
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(read_passing(chunked, RequestKind::Other).is_err());
    }

    #[test]
    fn a_target_of_http_1_0_does_not_keep_the_connection() {
        let (read, _) = read_passing(
            "HTTP/1.0 404 Gone Away\r\ncontent-length: 0\r\n\r\n",
            RequestKind::Other,
        )
        .unwrap();
        assert!(!read.keeps);
        assert_eq!(read.response.status(), 404);
        assert!(!read.response.extensions().is_empty());
    }
}
