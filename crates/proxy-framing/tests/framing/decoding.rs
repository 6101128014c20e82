//! A second, simple decoder of legal messages, compared with the validators.

use httparse::{EMPTY_HEADER, Header, Request, Response, Status};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::{prop_assert, prop_assert_eq, proptest};
use proxy_framing::{RequestKind, RequestValidator};

use crate::cases::{self, LIMITS};
use crate::drive::{Guard, expecting};

/// A complete message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The method and the target, or the status.
    pub(crate) title: String,
    /// Field lines of the head.
    pub(crate) fields: usize,
    pub(crate) body: Vec<u8>,
    /// Field lines of the trailers.
    pub(crate) trailers: usize,
    /// Offset of the message's end in the stream.
    pub(crate) end: usize,
    /// The connection is not reused after the message.
    pub(crate) last: bool,
}

enum BodyLength {
    Length(usize),
    Chunked,
    UntilClose,
}

/// The complete requests at the beginning of `bytes`, which a validator has accepted.
pub(crate) fn requests(bytes: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut start = 0;
    while let Some(message) = request(bytes.get(start..).unwrap(), start) {
        start = message.end;
        messages.push(message);
    }
    messages
}

fn request(bytes: &[u8], start: usize) -> Option<Message> {
    let mut headers = [EMPTY_HEADER; 128];
    let mut request = Request::new(&mut headers);
    let Ok(Status::Complete(head)) = request.parse(bytes) else {
        return None;
    };
    let (body, trailers, len) = body(bytes.get(head..)?, &extent(request.headers, false))?;
    Some(Message {
        title: format!("{} {}", request.method?, request.path?),
        fields: request.headers.len(),
        body,
        trailers,
        end: start + head + len,
        last: closes(request.version?, request.headers),
    })
}

/// The final response at the beginning of `bytes`, which a validator has accepted; a body that ends
/// with the connection extends to the end of `bytes`.
pub(crate) fn response(bytes: &[u8], kind: RequestKind) -> Option<Message> {
    let mut start = 0;
    loop {
        let rest = bytes.get(start..)?;
        let mut headers = [EMPTY_HEADER; 128];
        let mut response = Response::new(&mut headers);
        let Ok(Status::Complete(head)) = response.parse(rest) else {
            return None;
        };
        let status = response.code?;
        let extent = match (status, kind) {
            (100 | 102..=199, _) => {
                start += head;
                continue;
            }
            (101 | 204 | 304, _) | (_, RequestKind::Head) | (200..=299, RequestKind::Connect) => {
                BodyLength::Length(0)
            }
            _ => extent(response.headers, true),
        };
        let (body, trailers, len) = body(rest.get(head..)?, &extent)?;
        return Some(Message {
            title: status.to_string(),
            fields: response.headers.len(),
            body,
            trailers,
            end: start + head + len,
            last: true,
        });
    }
}

fn extent(headers: &[Header<'_>], close: bool) -> BodyLength {
    let value = |name: &str| {
        let header = headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name));
        header.map(|header| str::from_utf8(header.value).unwrap())
    };
    match (value("content-length"), value("transfer-encoding")) {
        (None, Some(_)) => BodyLength::Chunked,
        (Some(length), None) => BodyLength::Length(length.parse().unwrap_or(usize::MAX)),
        (None, None) if close => BodyLength::UntilClose,
        (None, None) => BodyLength::Length(0),
        (Some(_), Some(_)) => panic!("a guard has let both through"),
    }
}

fn closes(version: u8, headers: &[Header<'_>]) -> bool {
    let option = |option: &str| {
        let lines = headers
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case("connection"));
        let mut options = lines.flat_map(|line| line.value.split(|&byte| byte == b','));
        options.any(|found| found.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
    };
    option("close") || (version == 0 && !option("keep-alive"))
}

/// The body, the number of its trailers and its length in bytes; `None` if it is incomplete.
fn body(bytes: &[u8], extent: &BodyLength) -> Option<(Vec<u8>, usize, usize)> {
    match *extent {
        BodyLength::Length(length) => Some((bytes.get(..length)?.to_vec(), 0, length)),
        BodyLength::UntilClose => Some((bytes.to_vec(), 0, bytes.len())),
        BodyLength::Chunked => chunks(bytes),
    }
}

fn chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize, usize)> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let line = line(bytes, &mut at)?;
        let digits = line
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let digits = str::from_utf8(line.get(..digits)?).unwrap();
        let size = usize::from_str_radix(digits, 16).ok()?;
        if size == 0 {
            break;
        }
        body.extend_from_slice(bytes.get(at..at.checked_add(size)?)?);
        at += size + 2;
    }
    let mut trailers = 0;
    while !line(bytes, &mut at)?.is_empty() {
        trailers += 1;
    }
    Some((body, trailers, at))
}

fn line<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let rest = bytes.get(*at..)?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    *at += end + 2;
    rest.get(..end)
}

/// The offsets at which the validator, fed byte by byte, finds the end of a message.
fn ends(guard: &mut impl Guard, bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut between = true;
    for (place, byte) in bytes.iter().enumerate() {
        if guard.scan(&[*byte]).accepted == 0 {
            break;
        }
        if guard.between_messages() && !between {
            ends.push(place + 1);
        }
        between = guard.between_messages();
    }
    ends
}

/// Body bytes that contain sequences similar to an end.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let tempting = vec(select(b"\r\n0 GET:;\0\xff".as_slice()), 0..40);
    prop_oneof![vec(any::<u8>(), 0..600), tempting]
}

fn chunked() -> impl Strategy<Value = Vec<u8>> {
    let chunk = (data(), any::<bool>(), 0..3_usize).prop_map(|(data, capital, extension)| {
        let size = if capital {
            format!("{:X}", data.len())
        } else {
            format!("{:04x}", data.len())
        };
        let extension = ["", ";a", " ; b=\"\\\";\" ;c=d"]
            .get(extension)
            .copied()
            .unwrap();
        if data.is_empty() {
            return Vec::new();
        }
        [
            size.as_bytes(),
            extension.as_bytes(),
            b"\r\n",
            &data,
            b"\r\n",
        ]
        .concat()
    });
    (vec(chunk, 0..5), 0..3_usize).prop_map(|(chunks, trailers)| {
        [
            chunks.concat(),
            b"0\r\n".to_vec(),
            b"X-T: \ta \r\n".repeat(trailers),
            b"\r\n".to_vec(),
        ]
        .concat()
    })
}

/// A legal message after its start line.
fn rest_of_message() -> impl Strategy<Value = Vec<u8>> {
    let length = data().prop_map(|data| {
        let head = format!("Content-Length: {}\r\n\r\n", data.len());
        [head.as_bytes(), &data].concat()
    });
    let coding = chunked()
        .prop_map(|body| [b"Transfer-Encoding: chunked\r\n\r\n".as_slice(), &body].concat());
    prop_oneof![length, coding]
}

const LINES: &[&str] = &[
    "GET / HTTP/1.1",
    "POST /a?b HTTP/1.1",
    "X http://a/ HTTP/1.1",
    "OPTIONS * HTTP/1.1",
];

pub(crate) fn legal_requests() -> impl Strategy<Value = Vec<u8>> {
    let bare = proptest::strategy::Just(b"\r\n".to_vec());
    let rest = prop_oneof![1 => bare, 3 => rest_of_message()];
    let request = (0..3_usize, select(LINES), 0..4_usize, rest);
    let request = request.prop_map(|(empty, line, fields, rest)| {
        let head = format!(
            "{line}\r\nHost: a.example:80\r\n{}",
            "X_y: \t a:b\r\n".repeat(fields)
        );
        [b"\r\n".repeat(empty), head.into_bytes(), rest].concat()
    });
    vec(request, 0..4).prop_map(|requests| requests.concat())
}

pub(crate) fn legal_response() -> impl Strategy<Value = Vec<u8>> {
    let until_close = data().prop_map(|data| [b"\r\n".as_slice(), &data].concat());
    let rest = prop_oneof![3 => rest_of_message(), 1 => until_close];
    (0..3_usize, 0..4_usize, rest).prop_map(|(interim, fields, rest)| {
        let interim = b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n".repeat(interim);
        let head = format!("HTTP/1.1 200 OK\r\n{}", "X-y: \t a:b\r\n".repeat(fields));
        [interim, head.into_bytes(), rest].concat()
    })
}

proptest! {
    #![proptest_config(cases::tries(256))]

    #[test]
    fn requests_end_where_a_second_decoder_says(bytes in legal_requests()) {
        let expected = requests(&bytes).iter().map(|message| message.end).collect::<Vec<_>>();
        prop_assert_eq!(expected.last().copied().unwrap_or(0), bytes.len());
        prop_assert_eq!(ends(&mut RequestValidator::new(LIMITS), &bytes), expected);
    }

    #[test]
    fn responses_end_where_a_second_decoder_says(bytes in legal_response()) {
        let message = response(&bytes, RequestKind::Other).unwrap();
        prop_assert_eq!(message.end, bytes.len());
        let mut guard = expecting(RequestKind::Other, LIMITS);
        let whole = guard.scan(&bytes);
        prop_assert_eq!(whole.accepted, bytes.len());
        prop_assert_eq!(whole.stop, None);
        prop_assert!(guard.between_messages() || guard.eof().is_ok());
    }
}
