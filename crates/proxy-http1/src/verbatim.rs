//! Response heads whose fields are written again as they came, without a map of them.
//!
//! Most responses pass a proxy unchanged. Reading their fields into a map, and writing them from it, costs
//! more than the rest of the head.

use crate::body_length::BodyLength;
use crate::fields::{Head, trimmed};
use crate::response::{self, ResponseHead};
use proxy_framing::{FieldLine, RequestKind, is_name};

/// The field lines of a response head, none of which concerns the connection to the target.
#[derive(Debug)]
pub struct VerbatimFields(Head);

/// Reads an accepted head without its fields, if it is a final response with a body of known length and has
/// no hop-by-hop field; returns any other head, for [`read_response`](crate::read_response).
///
/// # Errors
/// The head, if its fields must be read.
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
            2 | 6 | 7 | 10 | 14 | 16 | 17 if is_hop_by_hop(name) => return None,
            _ => {}
        }
    }
    let (response, keeps) = response::start(head, status);
    Some(ResponseHead {
        response,
        extent: BodyLength::Length(length?),
        keeps,
    })
}

/// Whether the field of this name ends at the proxy, or says which fields do.
fn is_hop_by_hop(name: &[u8]) -> bool {
    match name.len() {
        2 => is_name(name, b"te"),
        6 => is_name(name, b"expect"),
        7 => is_name(name, b"upgrade") || is_name(name, b"trailer"),
        10 => is_name(name, b"connection") || is_name(name, b"keep-alive"),
        14 => is_name(name, b"http2-settings"),
        16 => is_name(name, b"proxy-connection"),
        17 => is_name(name, b"transfer-encoding"),
        _ => false,
    }
}

/// A decimal number of 1 to 18 digits.
fn number(text: &[u8]) -> Option<u64> {
    if !matches!(text.len(), 1..=18) {
        return None;
    }
    text.iter().try_fold(0, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(value * 10 + u64::from(digit))
    })
}

/// Writes the letters of an accepted name in lower case, eight at a time.
fn lower(name: &mut [u8]) {
    const ONES: u64 = u64::MAX / 0xff;
    let (words, rest) = name.as_chunks_mut();
    for word in words {
        let letters = u64::from_le_bytes(*word);
        // Names are ASCII, so that no sum carries into the next byte.
        let from_a = letters + u64::from(0x80 - b'A') * ONES;
        let beyond_z = letters + u64::from(0x7f - b'Z') * ONES;
        let capitals = from_a & !beyond_z & (0x80 * ONES);
        *word = (letters | capitals >> 2).to_le_bytes();
    }
    for byte in rest {
        byte.make_ascii_lowercase();
    }
}

impl VerbatimFields {
    /// Appends the fields of which `takes` accepts the name, with names in lower case.
    pub(crate) fn write(&self, out: &mut Vec<u8>, mut takes: impl FnMut(&[u8]) -> bool) {
        let Head { bytes, lines } = &self.0;
        for FieldLine { from, colon, end } in &lines.fields {
            let name = bytes.get(*from..*colon).unwrap_or_default();
            if !takes(name) {
                continue;
            }
            let at = out.len();
            let (start, stop) = trimmed(bytes, colon + 1, *end);
            if start == colon + 2 && stop + 1 == *end {
                // The common form: the line is copied whole.
                out.extend_from_slice(bytes.get(*from..=*end).unwrap_or_default());
            } else {
                out.extend_from_slice(name);
                out.extend_from_slice(b": ");
                out.extend_from_slice(bytes.get(start..stop).unwrap_or_default());
                out.extend_from_slice(b"\r\n");
            }
            lower(out.get_mut(at..at + name.len()).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proxy_framing::Lines;

    fn read(head: &str, kind: RequestKind) -> Result<(ResponseHead, VerbatimFields), Head> {
        let head = Head::take(&mut BytesMut::from(head), Lines::new()).unwrap();
        read_verbatim(head, kind)
    }

    #[test]
    fn fields_are_written_as_they_came_with_names_in_lower_case() {
        let head = "HTTP/1.1 200 OK\r\nX-A: 1\r\nSet-Cookie:\ta; B \r\nx-Skip: 2\r\n\
            Content-Length: 5\r\nSET-cookie: c\r\nx-empty:\r\n\r\n";
        let (read, fields) = read(head, RequestKind::Other).unwrap();
        assert_eq!(read.extent, BodyLength::Length(5));
        assert!(read.keeps && read.response.headers().is_empty());

        let mut out = Vec::new();
        fields.write(&mut out, |name| name != b"x-Skip");

        assert_eq!(
            String::from_utf8(out).unwrap(),
            "x-a: 1\r\nset-cookie: a; B\r\ncontent-length: 5\r\nset-cookie: c\r\nx-empty: \r\n"
        );
    }

    #[test]
    fn names_of_any_length_are_lowered() {
        let name = b"AZaz09-_@[X-ABCDEFGHIJKLMNOPQRSTUVWXYZ~!#$%&'*+.^`|";
        for length in 0..name.len() {
            let mut lowered = name[..length].to_vec();
            lower(&mut lowered);
            assert_eq!(lowered, name[..length].to_ascii_lowercase());
        }
    }

    #[test]
    fn a_head_that_says_more_than_its_length_is_read() {
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
            let head = read(&head, kind).unwrap_err();
            assert!(
                head.as_bytes().starts_with(b"HTTP/1.1 "),
                "{status} {fields}"
            );
        }
        assert!(read("HTTP/1.1 200 OK\r\nx: 1\r\n\r\n", RequestKind::Other).is_err());
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(read(chunked, RequestKind::Other).is_err());
    }

    #[test]
    fn a_target_of_http_1_0_does_not_keep_the_connection() {
        let (read, _) = read(
            "HTTP/1.0 404 Gone Away\r\ncontent-length: 0\r\n\r\n",
            RequestKind::Other,
        )
        .unwrap();
        assert!(!read.keeps);
        assert_eq!(read.response.status(), 404);
        assert!(!read.response.extensions().is_empty());
    }
}
