//! Paths that the parser behind the meter refuses, though HTTP/1.1 clients may send them.
//!
//! The URI that the parser makes of `:path` cannot hold `<`, `>` and `` ` `` in a path, and `"`,
//! `<` and `>` in a query. Each such byte is replaced by one that it can hold, and the value as it
//! was sent is kept for the stream. The replacement has the same length, so that the parser's
//! dynamic table drops an entry when the client's table does.
//!
//! The parser would silently drop a fragment (`#…`), and HTTP/1.1 refuses such a request. [RFC 9112
//! §3.2] So each `#` is replaced by a byte that the parser refuses.

use super::field::{EncodedString, Field, Literal, read_field, read_string, write_string};
use super::huffman::{Symbols, may_have_long_codes};
use super::section::{Edit, size_updates};
use crate::chars::{is_query, needs_escape_in_uri};
use std::collections::VecDeque;
use std::sync::Arc;

/// Substitute for a byte that the parser refuses.
const SUBSTITUTE: u8 = b'~';

/// Substitute for the `#` that begins a fragment. The parser refuses it in every path.
const REFUSED: u8 = b' ';

/// Number of pseudo-header fields that exist. No other field precedes one of them, and none is
/// repeated, in a section that the parser accepts. [RFC 9113 §8.3, RFC 8441 §4]
const MAX_PSEUDO_FIELDS: usize = 6;

/// Maximum size of a kept value, in bytes: a quarter of the limit of the `http` crate.
const MAX_PATH_BYTES: usize = 16 * 1024;

/// Maximum size of the values kept for streams, in bytes, each with its overhead. Beyond it the
/// parser refuses the stream.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// Overhead of a kept value, in bytes.
const KEPT_OVERHEAD: usize = 64;

/// Index of the newest entry of the dynamic table. [RFC 7541 §2.3.3]
const NEWEST_INDEX: u64 = 62;

/// Size of the parser's dynamic table, the initial one. [RFC 9113 §6.5.2]
const TABLE_BYTES: usize = 4096;

/// Size of an entry without its name and value. [RFC 7541 §4.1]
const ENTRY_OVERHEAD: usize = 32;

/// The paths of one connection that were replaced.
#[derive(Clone, Debug, Default)]
pub(super) struct RawPaths {
    /// Values of streams that are not yet requests, in the order of the streams.
    kept: VecDeque<(u32, Arc<[u8]>)>,
    /// Size of `kept`.
    kept_bytes: usize,
    /// Replaced entries of the dynamic table, the oldest first. The table may have dropped some of
    /// them; the parser refuses their indexes.
    entries: VecDeque<Entry>,
    /// Number of insertions into the dynamic table, counted as long as `entries` has any.
    insertions: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    path: Arc<[u8]>,
    /// Number of insertions up to this one.
    insertions: u64,
}

impl RawPaths {
    /// Returns true if [`Self::replace`] must see this header section, which opens a stream.
    pub(super) fn concerns(&self, fragment: &[u8]) -> bool {
        !self.entries.is_empty() || may_have_raw_path(fragment)
    }

    /// The header section for the parser, if it differs; `opens` if it is the first of `stream`.
    pub(super) fn replace(&mut self, stream: u32, opens: bool, fragment: &[u8]) -> Option<Vec<u8>> {
        let mut at = size_updates(fragment);
        let mut edit = None;
        let mut pseudo_fields = if opens { MAX_PSEUDO_FIELDS } else { 0 };
        while pseudo_fields > 0 || !self.entries.is_empty() {
            let Some(rest) = fragment.get(at..) else {
                break;
            };
            let Some((field, bytes)) = read_field(rest) else {
                break;
            };
            let wanted = (pseudo_fields > 0).then_some(stream);
            pseudo_fields = pseudo_fields.saturating_sub(1);
            let replaced = match field {
                Field::Indexed(index) => self.replace_indexed(wanted, index, bytes),
                Field::Literal(literal) => self.replace_literal(wanted, literal, rest),
                Field::SizeUpdate => None,
            };
            if let Some((range, instead)) = replaced {
                edit = Some((at + range.start..at + range.end, instead));
            }
            if names_path(field) {
                pseudo_fields = 0;
            }
            at += bytes;
        }
        edit.map(|edit| edited(fragment, edit))
    }

    /// Takes the path of `stream` as sent, if it was replaced. Paths of lower streams are dropped:
    /// streams become requests in order.
    pub(super) fn take_path(&mut self, stream: u32) -> Option<Arc<[u8]>> {
        while let Some((kept, path)) = self.kept.pop_front_if(|(kept, _)| *kept <= stream) {
            self.kept_bytes -= path.len() + KEPT_OVERHEAD;
            if kept == stream {
                return Some(path);
            }
        }
        None
    }

    /// Keeps `path` for `stream`; false if there is no space.
    fn store_path(&mut self, stream: u32, path: Arc<[u8]>) -> bool {
        let bytes = self.kept_bytes + path.len() + KEPT_OVERHEAD;
        let has_space = bytes <= MAX_KEPT_BYTES;
        if has_space {
            self.kept_bytes = bytes;
            self.kept.push_back((stream, path));
        }
        has_space
    }

    /// Finds the path to which an indexed field of `stream` refers.
    fn replace_indexed(&mut self, stream: Option<u32>, index: usize, bytes: usize) -> Option<Edit> {
        let path = self.entry(index)?;
        if self.store_path(stream?, Arc::clone(&path)) {
            return None;
        }
        // The parser refuses the literal, as it would refuse the entry.
        let mut literal = vec![PATH_LITERAL];
        write_string(&path, &mut literal);
        Some((0..bytes, literal))
    }

    fn entry(&self, index: usize) -> Option<Arc<[u8]>> {
        let age = u64::try_from(index).ok()?.checked_sub(NEWEST_INDEX)?;
        let insertions = self.insertions.checked_sub(age)?;
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| entry.insertions == insertions)?;
        Some(Arc::clone(&entry.path))
    }

    fn replace_literal(
        &mut self,
        stream: Option<u32>,
        literal: Literal,
        field: &[u8],
    ) -> Option<Edit> {
        let stream = stream.filter(|_| literal.names_path);
        let refused = stream.and_then(|_| refused_fragment(field.get(literal.value_at..)?));
        let path = stream
            .and_then(|stream| Some((stream, raw_path(field.get(literal.value_at..)?)?)))
            .filter(|(stream, path)| self.store_path(*stream, Arc::clone(path)));
        if literal.is_inserted {
            self.count_insertion(path.as_ref().map(|(_, path)| Arc::clone(path)));
        }
        let value = refused.or_else(|| path.map(|(_, path)| substituted(&path)))?;
        let (_, bytes) = read_string(field.get(literal.value_at..)?)?;
        let mut instead = Vec::with_capacity(value.len() + 4);
        write_string(&value, &mut instead);
        Some((literal.value_at..literal.value_at + bytes, instead))
    }

    /// Counts an insertion into the dynamic table, of a replaced `path` or of any other field.
    fn count_insertion(&mut self, path: Option<Arc<[u8]>>) {
        self.insertions += 1;
        let insertions = self.insertions;
        self.entries
            .extend(path.map(|path| Entry { path, insertions }));
        while self
            .entries
            .front()
            .is_some_and(|entry| self.is_dropped(entry))
        {
            self.entries.pop_front();
        }
    }

    /// Returns true if the dynamic table can no longer hold the oldest entry.
    fn is_dropped(&self, oldest: &Entry) -> bool {
        let paths = self
            .entries
            .iter()
            .map(|entry| entry.path.len() + b":path".len());
        let named: usize = paths.sum();
        let age = self.insertions.saturating_sub(oldest.insertions);
        let entries = usize::try_from(age).unwrap_or(usize::MAX).saturating_add(1);
        TABLE_BYTES < entries.saturating_mul(ENTRY_OVERHEAD).saturating_add(named)
    }
}

/// A literal field without indexing with the name `:path`.
const PATH_LITERAL: u8 = 0x04;

/// Returns true if the field is `:path`, except by the dynamic table.
const fn names_path(field: Field) -> bool {
    match field {
        Field::Indexed(index) => matches!(index, 4 | 5),
        Field::Literal(literal) => literal.names_path,
        Field::SizeUpdate => false,
    }
}

/// Returns true if the `:path` of a request may be one that the parser refuses.
fn may_have_raw_path(fragment: &[u8]) -> bool {
    let mut at = size_updates(fragment);
    for _ in 0..MAX_PSEUDO_FIELDS {
        let Some(rest) = fragment.get(at..) else {
            return false;
        };
        let Some((field, bytes)) = read_field(rest) else {
            return false;
        };
        if let Field::Literal(literal) = field
            && literal.names_path
        {
            let value = rest.get(literal.value_at..).and_then(read_string);
            return value.is_some_and(|(value, _)| may_be_raw(value));
        }
        if names_path(field) {
            return false;
        }
        at += bytes;
    }
    false
}

fn may_be_raw(value: EncodedString<'_>) -> bool {
    let is_refused = |byte: &u8| matches!(byte, b'"' | b'<' | b'>' | b'`' | b'#');
    match value {
        EncodedString::Plain(text) => text.iter().any(is_refused),
        EncodedString::Huffman(string) => {
            may_have_long_codes(string)
                && Symbols::new(string).any(|symbol| symbol.as_ref().is_ok_and(is_refused))
        }
    }
}

/// The text of the string at the beginning of `bytes`.
fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    match read_string(bytes)?.0 {
        EncodedString::Plain(text) => Some(text.to_vec()),
        EncodedString::Huffman(string) => Symbols::new(string).collect::<Result<_, _>>().ok(),
    }
}

/// The path at the beginning of `bytes` in a form that the parser refuses, if it has a fragment.
fn refused_fragment(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut path = decoded(bytes).filter(|path| path.contains(&b'#'))?;
    for byte in path.iter_mut().filter(|byte| **byte == b'#') {
        *byte = REFUSED;
    }
    Some(path)
}

/// The path at the beginning of `bytes`, if the parser refuses it and HTTP/1.1 allows it.
fn raw_path(bytes: &[u8]) -> Option<Arc<[u8]>> {
    let path = decoded(bytes)?;
    if path.len() > MAX_PATH_BYTES || !path.starts_with(b"/") {
        return None;
    }
    let is_legal = path.iter().all(|byte| is_query(*byte));
    (is_legal && substituted(&path) != path).then(|| path.into())
}

/// `path` with a substitute for each byte that the parser refuses.
fn substituted(path: &[u8]) -> Vec<u8> {
    let mut in_query = false;
    let bytes = path.iter().map(|byte| {
        in_query |= *byte == b'?';
        if needs_escape_in_uri(*byte, in_query) {
            SUBSTITUTE
        } else {
            *byte
        }
    });
    bytes.collect()
}

fn edited(fragment: &[u8], (range, instead): Edit) -> Vec<u8> {
    let before = fragment.get(..range.start).unwrap_or_default();
    let after = fragment.get(range.end..).unwrap_or_default();
    [before, &instead, after].concat()
}
