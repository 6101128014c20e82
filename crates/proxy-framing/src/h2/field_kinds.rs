//! The kinds of fields in header sections of a target, found without decoding them.

use super::field::{EncodedString, Field, Literal, read_field, read_string, write_string};
use super::huffman::{InvalidCode, Symbols, may_have_long_codes};
use crate::chars::{is_token, is_value};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// `:status`.
    Status {
        /// The status is 1xx.
        is_interim: bool,
    },
    /// A field that makes every response malformed: another pseudo-header field, an invalid
    /// `:status`, or an invalid name, as one in capitals. [RFC 9113 §8.2.1, §8.3]
    Malformed,
    /// A regular field with an invalid value. Other fields may refer to its name.
    InvalidValue,
    Regular,
}

/// A field of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadField<'b> {
    /// `None` for a table size update.
    pub(super) kind: Option<FieldKind>,
    /// A field of the same size in the table that the parser can hold, in place of a malformed one.
    pub(super) replacement: Option<Vec<u8>>,
    /// The bytes after the field.
    pub(super) rest: &'b [u8],
}

/// Index of the newest entry of the dynamic table. [RFC 7541 §2.3.3]
const NEWEST_INDEX: usize = 62;

/// Maximum number of entries in a table of the initial size. [RFC 9113 §6.5.2, RFC 7541 §4.1]
const MAX_ENTRIES: usize = 4096 / 32;

const STATUS: &[u8] = b":status";

/// Index after the last entry of the static table for `:status`. [RFC 7541 §A]
const STATIC_STATUS_END: usize = 15;

/// The kinds of the entries of one connection's dynamic table, the newest first. The oldest may
/// have been evicted: the parser refuses their indexes.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldKinds {
    entries: VecDeque<FieldKind>,
}

impl FieldKinds {
    /// The next field of a section. `None` at the end, and at a field of a malformed
    /// representation, for which the parser ends the connection.
    pub(super) fn next<'b>(&mut self, bytes: &'b [u8]) -> Option<ReadField<'b>> {
        let (field, length) = read_field(bytes)?;
        let rest = bytes.get(length..)?;
        let mut replacement = None;
        let kind = match field {
            Field::Indexed(index) => Some(self.indexed(index)),
            Field::Literal(literal) => {
                let kind = self.literal(literal, bytes);
                if matches!(kind, FieldKind::Malformed | FieldKind::InvalidValue) {
                    replacement = self.replacement(literal, kind, bytes);
                }
                if literal.is_inserted {
                    self.entries.truncate(MAX_ENTRIES - 1);
                    self.entries.push_front(kind);
                }
                Some(kind)
            }
            Field::SizeUpdate => None,
        };
        Some(ReadField {
            kind,
            replacement,
            rest,
        })
    }

    /// The kind of an entry. [RFC 7541 §A]
    fn indexed(&self, index: usize) -> FieldKind {
        match index {
            1..=7 => FieldKind::Malformed,
            8..=14 => FieldKind::Status { is_interim: false },
            NEWEST_INDEX.. => {
                let entry = self.entries.get(index - NEWEST_INDEX);
                entry.copied().unwrap_or(FieldKind::Regular)
            }
            _ => FieldKind::Regular,
        }
    }

    fn literal(&self, literal: Literal, field: &[u8]) -> FieldKind {
        let named = match literal.name_index {
            0 => name(field).map_or(FieldKind::Regular, named),
            index => self.indexed(index),
        };
        let Some(value) = value(literal, field) else {
            return named;
        };
        match named {
            FieldKind::Status { .. } => status(value),
            FieldKind::Regular | FieldKind::InvalidValue if is_valid(value) => FieldKind::Regular,
            FieldKind::Regular | FieldKind::InvalidValue => FieldKind::InvalidValue,
            FieldKind::Malformed => named,
        }
    }

    /// A literal in place of a malformed one, with equal flags and lengths of name and value.
    /// `None` if a string cannot be decoded: then the parser ends the connection.
    #[cold]
    fn replacement(&self, literal: Literal, kind: FieldKind, field: &[u8]) -> Option<Vec<u8>> {
        let name_length = match literal.name_index {
            _ if kind == FieldKind::InvalidValue => None,
            0 => Some(decoded_length(name(field)?)?),
            1 => Some(":authority".len()),
            4 | 5 => Some(":path".len()),
            index if index < STATIC_STATUS_END => Some(STATUS.len()),
            index if matches!(self.indexed(index), FieldKind::Status { .. }) => Some(STATUS.len()),
            _ => None,
        };
        let mut out = Vec::new();
        match name_length {
            None => out.extend_from_slice(field.get(..literal.value_at)?),
            Some(length) => {
                let flags = if literal.is_inserted { 0xc0 } else { 0xf0 };
                out.push(field.first()? & flags);
                write_string(&vec![b'x'; length], &mut out);
            }
        }
        write_string(
            &vec![b'1'; decoded_length(value(literal, field)?)?],
            &mut out,
        );
        Some(out)
    }
}

/// The literal name of a field.
fn name(field: &[u8]) -> Option<EncodedString<'_>> {
    Some(read_string(field.get(1..)?)?.0)
}

fn value(literal: Literal, field: &[u8]) -> Option<EncodedString<'_>> {
    Some(read_string(field.get(literal.value_at..)?)?.0)
}

fn named(name: EncodedString<'_>) -> FieldKind {
    // The parser holds quotation marks, and the proxy refuses them itself.
    let is_name = |byte: u8| byte == b'"' || is_token(byte) && !byte.is_ascii_uppercase();
    if symbols(name).eq(STATUS.iter().copied().map(Ok)) {
        FieldKind::Status { is_interim: false }
    } else if symbols(name).all(|symbol| symbol.map_or(true, is_name)) {
        FieldKind::Regular
    } else {
        FieldKind::Malformed
    }
}

/// The kind of `:status` with this value: the parser requires three digits, the first of them not
/// 0.
fn status(value: EncodedString<'_>) -> FieldKind {
    let mut digits = symbols(value);
    let mut digit = || {
        digits
            .next()
            .and_then(Result::ok)
            .filter(u8::is_ascii_digit)
    };
    let status = (digit(), digit(), digit());
    match status {
        (Some(first @ b'1'..), Some(_), Some(_)) if digits.next().is_none() => FieldKind::Status {
            is_interim: first == b'1',
        },
        _ => FieldKind::Malformed,
    }
}

/// Returns true if a regular field may have this value. [RFC 9113 §8.2.1]
fn is_valid(value: EncodedString<'_>) -> bool {
    match value {
        EncodedString::Plain(text) => text.iter().all(|byte| is_value(*byte)),
        // All control characters have long codes.
        EncodedString::Huffman(string) => {
            !may_have_long_codes(string)
                || Symbols::new(string).all(|symbol| symbol.map_or(true, is_value))
        }
    }
}

fn decoded_length(string: EncodedString<'_>) -> Option<usize> {
    let length = symbols(string).try_fold(0, |length, symbol| symbol.map(|_| length + 1));
    length.ok()
}

fn symbols(string: EncodedString<'_>) -> impl Iterator<Item = Result<u8, InvalidCode>> {
    let (plain, coded) = match string {
        EncodedString::Plain(text) => (text, &[][..]),
        EncodedString::Huffman(coded) => (&[][..], coded),
    };
    plain.iter().copied().map(Ok).chain(Symbols::new(coded))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: FieldKind = FieldKind::Status { is_interim: false };
    const INTERIM: FieldKind = FieldKind::Status { is_interim: true };

    fn kinds(known: &mut FieldKinds, mut section: &[u8]) -> Vec<FieldKind> {
        let mut kinds = Vec::new();
        while let Some(read) = known.next(section) {
            kinds.extend(read.kind);
            section = read.rest;
        }
        kinds
    }

    #[test]
    fn a_field_is_known_in_each_representation() {
        for (field, kind) in [
            (&b"\x88"[..], OK),
            (b"\x8e", OK),
            (b"\x84", FieldKind::Malformed),
            (b"\x87", FieldKind::Malformed),
            (b"\x8f", FieldKind::Regular),
            (b"\x08\x03103", INTERIM),
            (b"\x18\x03299", OK),
            // "103" in Huffman code.
            (b"\x08\x82\x08\x19", INTERIM),
            (b"\x04\x01/", FieldKind::Malformed),
            (b"\x00\x07:status\x03100", INTERIM),
            (b"\x00\x05:path\x01/", FieldKind::Malformed),
            (b"\x00\x02:x\x01y", FieldKind::Malformed),
            (b"\x00\x01x\x01y", FieldKind::Regular),
            (b"\x00\x00\x01y", FieldKind::Regular),
            // ":path" and ":status" in Huffman code.
            (b"\x00\x84\xb9\x58\xd3\x3f\x01/", FieldKind::Malformed),
            (b"\x00\x85\xb8\x84\x8d\x36\xa3\x03200", OK),
        ] {
            let found = kinds(&mut FieldKinds::default(), field);
            assert_eq!(found, [kind], "{field:?}");
        }
    }

    #[test]
    fn a_malformed_field_is_replaced_by_one_of_its_size() {
        for (field, kind, replacement) in [
            // Names in capitals, with a colon, with a space; "X-A" in Huffman code.
            (
                &b"\x40\x03X-A\x01y"[..],
                FieldKind::Malformed,
                &b"\x40\x03xxx\x011"[..],
            ),
            (
                b"\x10\x03x:a\x01y",
                FieldKind::Malformed,
                b"\x10\x03xxx\x011",
            ),
            (b"\x00\x03x a\x00", FieldKind::Malformed, b"\x00\x03xxx\x00"),
            (
                b"\x00\x83\xfc\x5a\x1f\x01y",
                FieldKind::Malformed,
                b"\x00\x03xxx\x011",
            ),
            (
                b"\x00\x05:path\x02/a",
                FieldKind::Malformed,
                b"\x00\x05xxxxx\x0211",
            ),
            (
                b"\x41\x01a",
                FieldKind::Malformed,
                b"\x40\x0axxxxxxxxxx\x011",
            ),
            (
                b"\x08\x042000",
                FieldKind::Malformed,
                b"\x00\x07xxxxxxx\x041111",
            ),
            (
                b"\x48\x03099",
                FieldKind::Malformed,
                b"\x40\x07xxxxxxx\x03111",
            ),
            (
                b"\x00\x01x\x03a\nb",
                FieldKind::InvalidValue,
                b"\x00\x01x\x03111",
            ),
            // "server", by its index, and a zero byte in Huffman code.
            (b"\x76\x82\xff\xc7", FieldKind::InvalidValue, b"\x76\x011"),
        ] {
            let mut known = FieldKinds::default();
            let read = known.next(field).unwrap();
            assert_eq!(read.kind, Some(kind), "{field:?}");
            assert_eq!(read.replacement.as_deref(), Some(replacement), "{field:?}");
        }
    }

    #[test]
    fn names_and_values_are_those_that_the_parser_can_hold() {
        for byte in 0..=u8::MAX {
            let name = [b'x', byte];
            let is_held = http::HeaderName::from_lowercase(&name).is_ok();
            assert_eq!(
                named(EncodedString::Plain(&name)) == FieldKind::Regular,
                is_held,
                "{byte}"
            );
            let is_held = http::HeaderValue::from_bytes(&name).is_ok();
            assert_eq!(is_valid(EncodedString::Plain(&name)), is_held, "{byte}");
        }
        for value in [
            "", "1", "20", "2000", "099", "-20", "2 0", "200", "999", "100", "abc",
        ] {
            let is_held = http::StatusCode::from_bytes(value.as_bytes()).is_ok();
            let kind = status(EncodedString::Plain(value.as_bytes()));
            assert_eq!(kind != FieldKind::Malformed, is_held, "{value}");
        }
    }

    #[test]
    fn a_field_that_refers_to_a_malformed_one_is_malformed_unless_its_value_alone_was() {
        let mut known = FieldKinds::default();
        let inserted = b"\x40\x01X\x01y\x40\x01x\x01\n";
        assert_eq!(
            kinds(&mut known, inserted),
            [FieldKind::Malformed, FieldKind::InvalidValue]
        );
        assert_eq!(
            kinds(&mut known, b"\xbe\xbf\x0f\x2f\x01y\x0f\x30\x01y"),
            [
                FieldKind::InvalidValue,
                FieldKind::Malformed,
                FieldKind::Regular,
                FieldKind::Malformed,
            ]
        );
        let read = known.next(b"\x0f\x30\x01y").unwrap();
        assert_eq!(read.replacement.as_deref(), Some(&b"\x0f\x30\x011"[..]));
    }

    #[test]
    fn an_entry_of_the_dynamic_table_keeps_its_kind() {
        let mut known = FieldKinds::default();
        let inserted = b"\x48\x03103\x40\x05:path\x01/\x40\x01x\x01y";
        assert_eq!(
            kinds(&mut known, inserted),
            [INTERIM, FieldKind::Malformed, FieldKind::Regular]
        );
        assert_eq!(
            kinds(&mut known, b"\xbe\xbf\xc0\xc1"),
            [
                FieldKind::Regular,
                FieldKind::Malformed,
                INTERIM,
                FieldKind::Regular
            ]
        );
        // A name of the table with a value of its own, inserted in turn.
        assert_eq!(kinds(&mut known, b"\x7f\x01\x03200\xbe"), [OK, OK]);
    }

    #[test]
    fn as_many_entries_are_kept_as_a_table_may_have() {
        let mut known = FieldKinds::default();
        kinds(&mut known, b"\x44\x01/");
        kinds(&mut known, &b"\x40\x01x\x01y".repeat(MAX_ENTRIES - 1));
        let oldest = [&b"\xff"[..], &[62]].concat();
        assert_eq!(known.entries.len(), MAX_ENTRIES);
        assert_eq!(kinds(&mut known, &oldest), [FieldKind::Malformed]);
        kinds(&mut known, b"\x40\x01x\x01y");
        assert_eq!(known.entries.len(), MAX_ENTRIES);
        assert_eq!(kinds(&mut known, &oldest), [FieldKind::Regular]);
    }
}
