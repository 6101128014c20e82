//! Field lines: read from validated bytes, written from headers.

use crate::body_length::BodyLength;
use crate::{buffer_pool, find_byte, names};
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, TE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};
use proxy_framing::{FieldLine, Lines, is_name};

/// Raw bytes of a head, with the positions of its lines.
#[derive(Debug)]
pub struct Head {
    pub(crate) bytes: Bytes,
    pub(crate) lines: Lines,
}

impl Head {
    /// Takes the head at the start of `unread`, including its empty line; `None` if it is
    /// incomplete.
    ///
    /// `lines` are the positions recorded by the validator; if empty, the lines are searched.
    pub fn take(unread: &mut BytesMut, mut lines: Lines) -> Option<Self> {
        if lines.end == 0 {
            let start = find_byte::position(b'\n', unread)? + 1;
            find(&mut lines, unread, start)?;
        }
        if unread.len() < lines.end {
            return None;
        }
        let bytes = unread.split_to(lines.end).freeze();
        Some(Self { bytes, lines })
    }

    /// Positions of the lines.
    #[must_use]
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Raw bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        buffer_pool::recycle_lines(std::mem::take(&mut self.lines));
    }
}

/// Records the positions of field lines from `start` to the empty line; `None` if they are
/// incomplete.
pub(crate) fn find(lines: &mut Lines, bytes: &[u8], start: usize) -> Option<()> {
    lines.begin(start);
    let mut from = start;
    loop {
        let rest = bytes.get(from..)?;
        if let [b'\r', b'\n', ..] = rest {
            lines.end = from + 2;
            return Some(());
        }
        let colon = find_byte::position(b':', rest)?;
        let end = colon + find_byte::position(b'\n', rest.get(colon..)?)?;
        lines.fields.push(FieldLine {
            from,
            colon: from + colon,
            end: from + end,
        });
        from += end + 1;
    }
}

/// Header fields, and their meaning for the framing and the connection.
#[derive(Debug)]
pub(crate) struct Fields {
    pub(crate) headers: HeaderMap,
    /// Framing of the body; `None` if no field determines it.
    pub(crate) extent: Option<BodyLength>,
    /// Whether connections persist by default in the message's version.
    usual: bool,
    /// `Connection`: true for `keep-alive`, false for `close`; `None` for neither.
    persistent: Option<bool>,
    /// Whether `Expect: 100-continue` is present.
    pub(crate) expects: bool,
    /// Whether `TE: trailers` is present.
    pub(crate) takes_trailers: bool,
}

impl Fields {
    /// Starts without fields; `keeps` is the version's default for persistence.
    pub(crate) fn new(headers: HeaderMap, keeps: bool) -> Self {
        Self {
            headers,
            extent: None,
            usual: keeps,
            persistent: None,
            expects: false,
            takes_trailers: false,
        }
    }

    /// Returns true if the connection persists after the message.
    pub(crate) fn keeps(&self) -> bool {
        self.persistent.unwrap_or(self.usual)
    }

    /// Parses the `lines` of `bytes`; `None` if one is not a field line.
    pub(crate) fn take(&mut self, bytes: &Bytes, lines: &Lines) -> Option<()> {
        names::with_cache(|names| {
            for &FieldLine { from, colon, end } in &lines.fields {
                let name = names.name(bytes.get(from..)?, colon - from)?;
                let (from, to) = trimmed(bytes, colon + 1, end);
                let value = HeaderValue::from_maybe_shared(bytes.slice(from..to));
                self.add(name, value.ok()?);
            }
            Some(())
        })?;
        buffer_pool::bound_map(&mut self.headers);
        Some(())
    }

    fn add(&mut self, name: HeaderName, value: HeaderValue) {
        match name.as_str().len() {
            2 if name == TE => self.takes_trailers |= lists(&value, "trailers"),
            6 if name == EXPECT => {
                self.expects |= value.as_bytes().eq_ignore_ascii_case(b"100-continue");
            }
            10 if name == CONNECTION => self.connect(&value),
            14 if name == CONTENT_LENGTH => {
                let length = value.to_str().ok().and_then(|text| text.parse().ok());
                self.extent = length.map(BodyLength::Length).or(self.extent);
            }
            17 if name == TRANSFER_ENCODING => self.extent = Some(BodyLength::Chunked),
            _ => {}
        }
        self.headers.append(name, value);
    }

    /// Evaluates a `Connection` line. `close` wins over `keep-alive`, in whichever line it is. [RFC
    /// 9112 §9.3]
    fn connect(&mut self, options: &HeaderValue) {
        if lists(options, "close") {
            self.persistent = Some(false);
        } else if lists(options, "keep-alive") {
            self.persistent.get_or_insert(true);
        }
    }
}

/// Appends a field line for each header.
pub(crate) fn write(headers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in headers {
        write_line(name, value, out);
    }
}

/// Appends one field line.
#[inline]
pub fn write_line(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Returns true if the comma-separated `list` contains `wanted`, ignoring case.
pub(crate) fn lists(list: &HeaderValue, wanted: &str) -> bool {
    let list = list.as_bytes();
    list.eq_ignore_ascii_case(wanted.as_bytes())
        || list
            .split(|byte| *byte == b',')
            .any(|one| one.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()))
}

/// Returns true if the field is hop-by-hop, or may list such fields.
#[inline]
pub(crate) fn is_hop_by_hop(name: &[u8]) -> bool {
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

/// Parses a decimal number of 1 to 18 digits.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if !matches!(text.len(), 1..=18) {
        return None;
    }
    text.iter().try_fold(0, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(value * 10 + u64::from(digit))
    })
}

/// Range of the text between `from` and `to`, without surrounding white space.
#[inline]
pub(crate) fn trimmed(line: &[u8], from: usize, to: usize) -> (usize, usize) {
    match line.get(from..to) {
        // Fast path: one space before the text, and a CR after it.
        Some([b' ', b'!'..=b'~', .., b'!'..=b'~', b'\r']) => (from + 1, to - 1),
        Some(_) | None => trimmed_anyhow(line, from, to),
    }
}

fn trimmed_anyhow(line: &[u8], mut from: usize, mut to: usize) -> (usize, usize) {
    let is_space = |at: usize| {
        let byte = line.get(at);
        byte.is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
    };
    while from < to && is_space(from) {
        from += 1;
    }
    while from < to && is_space(to - 1) {
        to -= 1;
    }
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(section: &'static str) -> Fields {
        let mut fields = Fields::new(HeaderMap::new(), true);
        let section = Bytes::from_static(section.as_bytes());
        let mut lines = Lines::default();
        find(&mut lines, &section, 0).unwrap();
        fields.take(&section, &lines).unwrap();
        fields
    }

    #[test]
    fn fields_are_read_without_the_space_around_them() {
        let fields = read("A:b\r\nx-empty:  \r\nSet-Cookie: \t1 2 \r\nset-cookie: 3\r\n\r\n");

        assert_eq!(fields.headers["a"], "b");
        assert_eq!(fields.headers["x-empty"], "");
        let cookies: Vec<_> = fields.headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["1 2", "3"]);
        assert_eq!(fields.extent, None);
    }

    #[test]
    fn framing_fields_are_read() {
        let fields = read("TE: a, Trailers\r\nExpect: 100-Continue\r\nContent-Length: 7\r\n\r\n");

        assert!(fields.takes_trailers && fields.expects && fields.keeps());
        assert_eq!(fields.extent, Some(BodyLength::Length(7)));
        let fields = read("Connection: close\r\nConnection: keep-alive\r\n\r\n");
        assert!(!fields.keeps());
        let fields = read("Connection: x, close\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert!(!fields.keeps());
        assert_eq!(fields.extent, Some(BodyLength::Chunked));
    }

    #[test]
    fn half_a_head_stays_where_it_is() {
        let mut unread = BytesMut::from("GET / HTTP/1.1\r\nHost: a\r\n");
        assert!(Head::take(&mut unread, Lines::new()).is_none());
        unread.extend_from_slice(b"\r\nnext");

        assert!(Head::take(&mut unread, Lines::new()).is_some());
        assert_eq!(unread, "next");
    }
}
