//! The kinds of fields in header sections of a target, found without decoding them.

use super::field::{EncodedString, Field, Literal, read_field, read_string};
use crate::huffman::{InvalidCode, Symbols};
use std::collections::VecDeque;

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// `:status`.
    Status {
        /// True if it is 1xx.
        is_interim: bool,
    },
    /// A pseudo-header field of requests, or an unknown one.
    OtherPseudo,
    Regular,
}

/// Index of the newest entry of the dynamic table. [RFC 7541 §2.3.3]
const NEWEST_INDEX: usize = 62;

/// Maximum number of entries in a table of the initial size. [RFC 9113 §6.5.2, RFC 7541 §4.1]
const MAX_ENTRIES: usize = 4096 / 32;

const STATUS: &[u8] = b":status";

/// The kinds of the entries of one connection's dynamic table, the newest first. The oldest may have been evicted: the
/// parser refuses their indexes.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldKinds {
    entries: VecDeque<FieldKind>,
}

impl FieldKinds {
    /// The kind of the next field of a section, and the bytes after it. `None` at the end, and at a malformed field,
    /// which the parser refuses.
    pub(super) fn next<'b>(&mut self, rest: &'b [u8]) -> Option<(Option<FieldKind>, &'b [u8])> {
        let (field, bytes) = read_field(rest)?;
        let kind = match field {
            Field::Indexed(index) => Some(self.indexed(index)),
            Field::Literal(literal) => {
                let kind = self.literal(literal, rest);
                if literal.is_inserted {
                    self.entries.truncate(MAX_ENTRIES - 1);
                    self.entries.push_front(kind);
                }
                Some(kind)
            }
            Field::SizeUpdate => None,
        };
        Some((kind, rest.get(bytes..)?))
    }

    /// The kind of an entry. [RFC 7541 §A]
    fn indexed(&self, index: usize) -> FieldKind {
        match index {
            1..=7 => FieldKind::OtherPseudo,
            8..=14 => FieldKind::Status { is_interim: false },
            NEWEST_INDEX.. => {
                let entry = self.entries.get(index - NEWEST_INDEX);
                entry.copied().unwrap_or(FieldKind::Regular)
            }
            _ => FieldKind::Regular,
        }
    }

    fn literal(&self, literal: Literal, field: &[u8]) -> FieldKind {
        let string = |at: usize| field.get(at..).and_then(read_string);
        let named = match literal.name_index {
            0 => string(1).map_or(FieldKind::Regular, |(name, _)| named(name)),
            index => self.indexed(index),
        };
        match named {
            FieldKind::Status { .. } => FieldKind::Status {
                is_interim: string(literal.value_at)
                    .is_some_and(|(value, _)| first_byte(value) == Some(b'1')),
            },
            FieldKind::OtherPseudo | FieldKind::Regular => named,
        }
    }
}

fn named(name: EncodedString<'_>) -> FieldKind {
    if first_byte(name) != Some(b':') {
        return FieldKind::Regular;
    }
    let is_status = match name {
        EncodedString::Plain(name) => name == STATUS,
        EncodedString::Huffman(name) => {
            let status = STATUS.iter().copied().map(Ok::<_, InvalidCode>);
            Symbols::new(name).eq(status)
        }
    };
    if is_status {
        FieldKind::Status { is_interim: false }
    } else {
        FieldKind::OtherPseudo
    }
}

fn first_byte(string: EncodedString<'_>) -> Option<u8> {
    match string {
        EncodedString::Plain(text) => text.first().copied(),
        EncodedString::Huffman(text) => Symbols::new(text).next()?.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: FieldKind = FieldKind::Status { is_interim: false };
    const INTERIM: FieldKind = FieldKind::Status { is_interim: true };

    fn kinds(known: &mut FieldKinds, mut section: &[u8]) -> Vec<FieldKind> {
        let mut kinds = Vec::new();
        while let Some((kind, rest)) = known.next(section) {
            kinds.extend(kind);
            section = rest;
        }
        kinds
    }

    #[test]
    fn a_field_is_known_in_each_representation() {
        for (field, kind) in [
            (&b"\x88"[..], OK),
            (b"\x8e", OK),
            (b"\x84", FieldKind::OtherPseudo),
            (b"\x87", FieldKind::OtherPseudo),
            (b"\x8f", FieldKind::Regular),
            (b"\x08\x03103", INTERIM),
            (b"\x18\x03299", OK),
            // "103" in Huffman code.
            (b"\x08\x82\x08\x19", INTERIM),
            (b"\x04\x01/", FieldKind::OtherPseudo),
            (b"\x00\x07:status\x03100", INTERIM),
            (b"\x00\x05:path\x01/", FieldKind::OtherPseudo),
            (b"\x00\x02:x\x01y", FieldKind::OtherPseudo),
            (b"\x00\x01x\x01y", FieldKind::Regular),
            (b"\x00\x00\x01y", FieldKind::Regular),
            // ":path" and ":status" in Huffman code.
            (b"\x00\x84\xb9\x58\xd3\x3f\x01/", FieldKind::OtherPseudo),
            (b"\x00\x85\xb8\x84\x8d\x36\xa3\x03200", OK),
        ] {
            let found = kinds(&mut FieldKinds::default(), field);
            assert_eq!(found, [kind], "{field:?}");
        }
    }

    #[test]
    fn an_entry_of_the_dynamic_table_keeps_its_kind() {
        let mut known = FieldKinds::default();
        let inserted = b"\x48\x03103\x40\x05:path\x01/\x40\x01x\x01y";
        assert_eq!(
            kinds(&mut known, inserted),
            [INTERIM, FieldKind::OtherPseudo, FieldKind::Regular]
        );
        assert_eq!(
            kinds(&mut known, b"\xbe\xbf\xc0\xc1"),
            [
                FieldKind::Regular,
                FieldKind::OtherPseudo,
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
        assert_eq!(kinds(&mut known, &oldest), [FieldKind::OtherPseudo]);
        kinds(&mut known, b"\x40\x01x\x01y");
        assert_eq!(known.entries.len(), MAX_ENTRIES);
        assert_eq!(kinds(&mut known, &oldest), [FieldKind::Regular]);
    }
}
