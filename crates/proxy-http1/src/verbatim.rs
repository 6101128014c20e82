//! Heads that are forwarded without parsing their fields into a map.
//!
//! Most messages pass a proxy unchanged. Parsing their fields into a map and serializing them costs
//! more than the rest of the head.

use crate::buffer_pool;
use crate::fields::{Fields, Head, trimmed};
use http::{HeaderMap, HeaderName, HeaderValue};
use proxy_framing::{FieldLine, is_name};

/// Field lines of a head. None of them is hop-by-hop, except `Connection: keep-alive` in a request.
#[derive(Debug)]
pub struct VerbatimFields(pub(crate) Head);

/// Converts a validated name to lower case, eight letters at a time.
fn lower(name: &mut [u8]) {
    let (words, _) = name.as_chunks_mut();
    for word in words {
        lower_word(word);
    }
    match name.last_chunk_mut() {
        // This word overlaps the previous one: its letters are already in lower case.
        Some(word) => lower_word(word),
        None => {
            for byte in name {
                byte.make_ascii_lowercase();
            }
        }
    }
}

#[inline]
fn lower_word(word: &mut [u8; 8]) {
    const ONES: u64 = u64::MAX / 0xff;
    let letters = u64::from_le_bytes(*word);
    // Names are ASCII, so no sum carries into the next byte.
    let from_a = letters + u64::from(0x80 - b'A') * ONES;
    let beyond_z = letters + u64::from(0x7f - b'Z') * ONES;
    let capitals = from_a & !beyond_z & (0x80 * ONES);
    *word = (letters | capitals >> 2).to_le_bytes();
}

impl VerbatimFields {
    /// Name, in the sender's spelling, and value of each field.
    #[inline]
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let lines = self.0.lines.fields.iter();
        lines.map(|line| (self.name(line), self.value(line)))
    }

    /// Iterates over the name, in the sender's spelling, and the value of each field. Fields with
    /// the same name follow each other, at the position of the first. Each line is compared with
    /// all lines, so for hundreds of lines a map is faster.
    pub fn grouped(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let lines = &self.0.lines.fields;
        lines.iter().enumerate().flat_map(move |(at, line)| {
            let name = self.name(line);
            let is_same = move |other: &&FieldLine| self.name(other).eq_ignore_ascii_case(name);
            let (before, rest) = lines.split_at_checked(at).unwrap_or_default();
            let rest = if before.iter().any(|other| is_same(&other)) {
                &[]
            } else {
                rest
            };
            let group = rest.iter().filter(is_same);
            group.map(|line| (self.name(line), self.value(line)))
        })
    }

    /// Value of the first field with this name.
    #[must_use]
    pub fn first(&self, name: &HeaderName) -> Option<HeaderValue> {
        let name = name.as_str().as_bytes();
        let mut lines = self.0.lines.fields.iter();
        let line = lines.find(|line| self.name(line).eq_ignore_ascii_case(name))?;
        self.shared(self.value(line))
    }

    /// A `Bytes` that shares the memory of `value`, which must be a value of these fields.
    #[must_use]
    pub fn shared(&self, value: &[u8]) -> Option<HeaderValue> {
        HeaderValue::from_maybe_shared(self.0.bytes.slice_ref(value)).ok()
    }

    /// Parses the fields into a map.
    #[must_use]
    pub fn to_map(&self) -> HeaderMap {
        let Head { bytes, lines } = &self.0;
        let mut read = Fields::new(buffer_pool::map(), true);
        let taken = read.take(bytes, lines);
        debug_assert!(taken.is_some(), "a validator has accepted every line");
        read.headers
    }

    /// Appends the fields for the next hop, with names in lower case.
    pub fn write_end_to_end(&self, out: &mut Vec<u8>) {
        self.write(out, |name| !is_name(name, b"connection"));
    }

    #[inline]
    fn name(&self, line: &FieldLine) -> &[u8] {
        self.0.bytes.get(line.from..line.colon).unwrap_or_default()
    }

    #[inline]
    fn value(&self, line: &FieldLine) -> &[u8] {
        let (from, to) = trimmed(&self.0.bytes, line.colon + 1, line.end);
        self.0.bytes.get(from..to).unwrap_or_default()
    }

    /// Appends the fields with names that `takes` accepts, in lower case.
    pub(crate) fn write(&self, out: &mut Vec<u8>, mut takes: impl FnMut(&[u8]) -> bool) {
        let lines = &self.0.lines.fields;
        // First line that is neither written nor left out yet.
        let mut first = 0;
        for (at, line) in lines.iter().enumerate() {
            let is_taken = takes(self.name(line));
            if is_taken && self.is_common(line) {
                continue;
            }
            self.copy(lines.get(first..at).unwrap_or_default(), out);
            first = at + 1;
            if is_taken {
                self.write_anew(line, out);
            }
        }
        self.copy(lines.get(first..).unwrap_or_default(), out);
    }

    /// Returns true if a line is in canonical form, apart from capital letters in its name.
    #[inline]
    fn is_common(&self, line: &FieldLine) -> bool {
        let after_colon = self.0.bytes.get(line.colon + 1..line.end);
        matches!(
            after_colon,
            Some([b' ', b'!'..=b'~', b'\r'] | [b' ', b'!'..=b'~', .., b'!'..=b'~', b'\r'])
        )
    }

    /// Appends adjacent lines in canonical form with a single copy.
    fn copy(&self, lines: &[FieldLine], out: &mut Vec<u8>) {
        let [first, ..] = lines else {
            return;
        };
        let end = lines.last().unwrap_or(first).end;
        let at = out.len();
        out.extend_from_slice(self.0.bytes.get(first.from..=end).unwrap_or_default());
        let copied = out.get_mut(at..).unwrap_or_default();
        for line in lines {
            let name = copied.get_mut(line.from - first.from..line.colon - first.from);
            lower(name.unwrap_or_default());
        }
    }

    /// Appends a line in another form.
    #[cold]
    fn write_anew(&self, line: &FieldLine, out: &mut Vec<u8>) {
        let at = out.len();
        let name = self.name(line);
        out.extend_from_slice(name);
        lower(out.get_mut(at..).unwrap_or_default());
        out.extend_from_slice(b": ");
        out.extend_from_slice(self.value(line));
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proxy_framing::Lines;

    #[test]
    fn field_values_are_written_unchanged_with_lower_case_names() {
        let head = "HTTP/1.1 200 OK\r\nX-A: 1\r\nSet-Cookie:\ta; B \r\nx-Skip: 2\r\n\
            Content-Length: 5\r\nSET-cookie: c\r\nx-empty:\r\nTab:\tt\r\n\r\n";
        let head = Head::take(&mut BytesMut::from(head), Lines::new()).unwrap();

        let mut out = Vec::new();
        VerbatimFields(head).write(&mut out, |name| name != b"x-Skip");

        assert_eq!(
            String::from_utf8(out).unwrap(),
            "x-a: 1\r\nset-cookie: a; B\r\ncontent-length: 5\r\nset-cookie: c\r\nx-empty: \r\ntab: t\r\n"
        );
    }

    #[test]
    fn fields_of_one_name_are_grouped() {
        let head = "GET / HTTP/1.1\r\nA: 1\r\nCookie: a\r\nB: 2\r\ncookie:  b \r\na:\r\nCOOKIE: c\r\nd: 4\r\n\r\n";
        let head = Head::take(&mut BytesMut::from(head), Lines::new()).unwrap();
        let fields = VerbatimFields(head);

        let text = |bytes| str::from_utf8(bytes).unwrap();
        let grouped = fields.grouped();
        let grouped: Vec<(&str, &str)> = grouped
            .map(|(name, value)| (text(name), text(value)))
            .collect();

        assert_eq!(
            grouped,
            [
                ("A", "1"),
                ("a", ""),
                ("Cookie", "a"),
                ("cookie", "b"),
                ("COOKIE", "c"),
                ("B", "2"),
                ("d", "4")
            ]
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
}
