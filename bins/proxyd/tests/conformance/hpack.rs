//! Encoding of header sections. [RFC 7541]

/// `GET / ` over `http`, without a host.
pub(crate) const BARE: &[u8] = b"\x82\x84\x86";

/// The same at `a.test`.
pub(crate) const GET: &[u8] = b"\x82\x84\x86\x41\x06a.test";

/// `POST / ` over `http` at `a.test`.
pub(crate) const POST: &[u8] = b"\x83\x84\x86\x41\x06a.test";

/// `GET /wait` over `http` at `a.test`, which is never answered.
pub(crate) const WAITING: &[u8] = b"\x82\x04\x05/wait\x86\x41\x06a.test";

/// `POST /wait` over `http` at `a.test`.
pub(crate) const WAITING_POST: &[u8] = b"\x83\x04\x05/wait\x86\x41\x06a.test";

/// `GET / ` at a host that the proxy itself answers for.
pub(crate) const LOCAL: &[u8] = b"\x82\x84\x86\x41\x0cnowhere.test";

/// `POST / ` at that host.
pub(crate) const LOCAL_POST: &[u8] = b"\x83\x84\x86\x41\x0cnowhere.test";

/// A literal field without indexing.
pub(crate) fn field(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Vec<u8> {
    let mut field = vec![0];
    string(name.as_ref(), &mut field);
    string(value.as_ref(), &mut field);
    field
}

/// Literal fields, including pseudo-header fields.
pub(crate) fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let each = fields.iter().map(|(name, value)| field(name, value));
    each.collect::<Vec<_>>().concat()
}

/// `GET / ` at `a.test`, with one more field.
pub(crate) fn get_with(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Vec<u8> {
    [GET, &field(name, value)].concat()
}

/// `POST / ` at `a.test`, with one more field.
pub(crate) fn post_with(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Vec<u8> {
    [POST, &field(name, value)].concat()
}

/// A whole head of pseudo-header fields: method, scheme, authority, path.
pub(crate) fn request_head(method: &str, scheme: &str, authority: &str, path: &str) -> Vec<u8> {
    fields(&[
        (":method", method),
        (":scheme", scheme),
        (":authority", authority),
        (":path", path),
    ])
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    let mut length = text.len();
    if length < 127 {
        out.push(u8::try_from(length).unwrap());
    } else {
        out.push(127);
        length -= 127;
        while length >= 128 {
            out.push(u8::try_from(length % 128).unwrap() | 0x80);
            length /= 128;
        }
        out.push(u8::try_from(length).unwrap());
    }
    out.extend_from_slice(text);
}

/// The status at the beginning of a connection's first header section; 0 if there is none.
pub(crate) fn status(section: &[u8]) -> u16 {
    let section = match section {
        // The size of the table changes.
        [first, rest @ ..] if first & 0xe0 == 0x20 => rest,
        section => section,
    };
    match section {
        [first @ 0x88..=0x8e, ..] => [200, 204, 206, 304, 400, 404, 500][usize::from(first - 0x88)],
        [0x48..=0x4e | 0x08..=0x0e, length, text @ ..] if length & 0x80 == 0 => {
            let digits = text.get(..usize::from(*length)).unwrap_or_default();
            std::str::from_utf8(digits).map_or(0, |text| text.parse().unwrap_or(0))
        }
        [0x48..=0x4e | 0x08..=0x0e, length, text @ ..] => {
            digits(text.get(..usize::from(length & 0x7f)).unwrap_or_default())
        }
        _ => 0,
    }
}

/// Three digits in Huffman code, which has 5 bits for 0, 1 and 2, and 6 for all other digits.
fn digits(text: &[u8]) -> u16 {
    let bit = |at: usize| u16::from(text.get(at / 8).copied().unwrap_or(0xff) >> (7 - at % 8) & 1);
    let bits = |at: usize, count: usize| (at..at + count).fold(0, |sum, at| sum << 1 | bit(at));
    let (mut at, mut number) = (0, 0);
    for _ in 0..3 {
        let (digit, length) = match bits(at, 5) {
            short @ 0..=2 => (short, 5),
            _ => (bits(at, 6).wrapping_sub(0x16), 6),
        };
        number = number * 10 + digit;
        at += length;
    }
    number
}
