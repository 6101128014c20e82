//! Properties of the parsers for any input, checked by the fuzz targets and by a test that replays
//! their corpora.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Version};
use httparse::EMPTY_HEADER;
use proxy_framing::{HeadLimits, Lines, RequestKind, RequestValidator, ResponseValidator};
use proxy_http1::{
    BodyDecoder, BodyLength, Head, ResponseContext, VerbatimFields, read_request, read_response,
    read_verbatim, write_response,
};

const LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 8192,
    max_header_count: 100,
    max_name_bytes: 256,
    max_value_bytes: 4096,
    max_target_bytes: 8192,
};

/// Property: the first request of a stream is parsed as by httparse, and its body does not depend
/// on how the stream is divided.
pub(crate) fn request(data: &[u8]) {
    let mut guard = RequestValidator::new(LIMITS);
    let mut noted = Lines::new();
    let accepted = guard.scan_noting(data, Some(&mut noted)).accepted;
    if guard.heads_seen() == 0 {
        return;
    }
    let accepted = data.get(..accepted).unwrap_or_default();
    let start = accepted.iter().position(|byte| !b"\r\n".contains(byte));
    let accepted = accepted
        .get(start.unwrap_or_default()..)
        .unwrap_or_default();
    let mut unread = BytesMut::from(accepted);
    let head = take(&mut unread, noted);
    let length_of_head = head.as_bytes().len();
    let read = read_request(head).expect("`http` accepts every accepted head");

    let mut fields = [EMPTY_HEADER; 101];
    let mut parsed = httparse::Request::new(&mut fields);
    let length = parsed
        .parse(accepted)
        .expect("`httparse` accepts every accepted head")
        .unwrap();
    assert_eq!(length, length_of_head);
    assert_eq!(parsed.method, Some(read.request.method().as_str()));
    if let Some(fields) = &read.fields {
        same_fields(parsed.headers, &fields.to_map());
        let mut passed = Vec::new();
        fields.write_end_to_end(&mut passed);
        assert_eq!(passed, end_to_end(parsed.headers));
    } else {
        same_fields(parsed.headers, read.request.headers());
    }
    same_body(read.extent, &unread);
}

/// Returns the lines of `fields` to forward.
fn end_to_end(fields: &[httparse::Header<'_>]) -> Vec<u8> {
    let mut lines = Vec::new();
    for field in fields {
        let name = field.name.to_ascii_lowercase();
        if name != "connection" {
            let value = field.value.trim_ascii();
            lines.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
    }
    lines
}

/// Checks a response. The first byte selects a request by GET; the rest is the response.
pub(crate) fn response(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    let kind = if kind & 1 == 0 {
        RequestKind::Other
    } else {
        RequestKind::Head
    };
    let mut guard = ResponseValidator::new(LIMITS);
    guard.expect(kind);
    let mut noted = Lines::new();
    let accepted = guard.scan_noting(data, Some(&mut noted)).accepted;
    if guard.heads_seen() == 0 {
        return;
    }
    let accepted = data.get(..accepted).unwrap_or_default();
    let mut unread = BytesMut::from(accepted);
    let head = take(&mut unread, noted);
    let read = read_response(&head, kind).expect("`http` accepts every accepted head");

    let mut fields = [EMPTY_HEADER; 101];
    let mut parsed = httparse::Response::new(&mut fields);
    let length = parsed
        .parse(accepted)
        .expect("`httparse` accepts every accepted head")
        .unwrap();
    assert_eq!(length, head.as_bytes().len());
    assert_eq!(parsed.code, Some(read.response.status().as_u16()));
    same_fields(parsed.headers, read.response.headers());
    if !read.response.status().is_informational() {
        same_body(read.extent, &unread);
    }
    let again = Head::take(&mut BytesMut::from(accepted), Lines::new()).expect("as before");
    if let Ok((verbatim, fields)) = read_verbatim(again, kind) {
        assert_eq!(verbatim.extent, read.extent);
        assert_eq!(verbatim.keeps, read.keeps);
        let BodyLength::Length(length) = read.extent else {
            unreachable!("its length is known");
        };
        let passed = written(verbatim.response, Some(&fields), length);
        assert_eq!(passed, written(read.response, None, length));
    }
}

/// Returns the lines of the head that the client receives, sorted.
fn written(response: Response<()>, verbatim: Option<&VerbatimFields>, length: u64) -> Vec<String> {
    let (head, ()) = response.into_parts();
    let to = ResponseContext {
        method: &Method::GET,
        version: Version::HTTP_11,
        keeps: true,
        takes_trailers: false,
        date: &HeaderValue::from_static("now"),
        field: Some((HeaderName::from_static("x-correlation-id"), b"an-id")),
        verbatim,
        numbers: &[(HeaderName::from_static("x-ratelimit-limit"), 7)],
        length: Some(length),
    };
    let mut out = Vec::new();
    write_response(&head, &to, &mut out);
    let lines = out.split(|byte| *byte == b'\n');
    let mut lines: Vec<_> = lines.map(|line| line.escape_ascii().to_string()).collect();
    lines.sort();
    lines
}

/// Takes the head at the start of `unread`, with the line positions that the validator recorded.
fn take(unread: &mut BytesMut, noted: Lines) -> Head {
    let mut again = unread.clone();
    let found = Head::take(&mut again, Lines::new()).expect("a head was accepted");
    if noted.end != 0 {
        assert_eq!(*found.lines(), noted);
    }
    Head::take(unread, noted).expect("a head was accepted")
}

fn same_fields(theirs: &[httparse::Header<'_>], ours: &HeaderMap) {
    assert_eq!(theirs.len(), ours.len());
    for field in theirs {
        let mut values = ours.get_all(field.name).iter();
        assert!(values.any(|value| value.as_bytes() == field.value.trim_ascii()));
    }
}

/// Property: a body's data and end are the same if it arrives at once or byte by byte.
fn same_body(extent: BodyLength, body: &[u8]) {
    let whole = read_body(extent, [body]);
    assert_eq!(read_body(extent, body.chunks(1)), whole);
}

fn read_body<'b>(extent: BodyLength, pieces: impl IntoIterator<Item = &'b [u8]>) -> (Bytes, bool) {
    let (mut reading, mut unread) = (BodyDecoder::new(extent), BytesMut::new());
    let mut data = BytesMut::new();
    for piece in pieces {
        unread.extend_from_slice(piece);
        while let Some(frame) = reading.take(&mut unread) {
            if let Ok(bytes) = frame.into_data() {
                data.extend_from_slice(&bytes);
            }
        }
    }
    (data.freeze(), reading.is_over())
}
