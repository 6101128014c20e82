//! Decoding of header sections: references to the static table, and literals.

use super::integer;
use super::static_table::STATIC_TABLE;
use crate::code::{ErrorCode, Http3Error};
use bytes::Bytes;
use proxy_framing::h2::huffman::Symbols;
use std::ops::Range;

/// Bytes added to a section's size per field. [RFC 9114 §4.2.2]
const FIELD_OVERHEAD: usize = 32;

/// Limits on a decoded header section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionLimits {
    /// Maximum sum of names and values in bytes, plus 32 bytes per field.
    pub max_bytes: usize,
    /// Maximum number of fields.
    pub max_fields: usize,
}

/// A decoded header section. Names and values share one allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSection {
    text: Bytes,
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    name: Range<usize>,
    value: Range<usize>,
    never_indexed: bool,
}

/// A field as sent, not validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, not validated.
    pub name: Bytes,
    /// Value, not validated.
    pub value: Bytes,
    /// Set if the client forbids compression of the value. [RFC 9204 §7.1.3]
    pub never_indexed: bool,
}

impl FieldSection {
    /// Decodes a header section.
    ///
    /// # Errors
    /// Closes the connection if the encoding is invalid or refers to a dynamic table; resets the
    /// stream if the section exceeds `limits`.
    pub fn decode(encoded: &[u8], limits: SectionLimits) -> Result<Self, Http3Error> {
        let mut decoder = Decoder {
            rest: encoded,
            text: Vec::with_capacity(encoded.len() * 2),
            limits,
        };
        decoder.prefix()?;
        let mut lines = Vec::new();
        while !decoder.rest.is_empty() {
            if lines.len() == limits.max_fields {
                return Err(TOO_LARGE);
            }
            lines.push(decoder.line()?);
            let overhead = FIELD_OVERHEAD.saturating_mul(lines.len());
            if decoder.text.len().saturating_add(overhead) > limits.max_bytes {
                return Err(TOO_LARGE);
            }
        }
        Ok(Self {
            text: decoder.text.into(),
            lines,
        })
    }

    /// The fields in order.
    pub fn fields(&self) -> impl Iterator<Item = Field> {
        self.lines.iter().map(|line| Field {
            name: self.text.slice(line.name.clone()),
            value: self.text.slice(line.value.clone()),
            never_indexed: line.never_indexed,
        })
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns true if there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Error of a section above the limits that were announced in the settings.
const TOO_LARGE: Http3Error = Http3Error::stream(
    ErrorCode::EXCESSIVE_LOAD,
    "a header section far above the limits",
);

const fn invalid(rule: &'static str) -> Http3Error {
    Http3Error::connection(ErrorCode::QPACK_DECOMPRESSION_FAILED, rule)
}

struct Decoder<'e> {
    rest: &'e [u8],
    text: Vec<u8>,
    limits: SectionLimits,
}

impl Decoder<'_> {
    /// Reads the section's prefix, which must not refer to the dynamic table. [RFC 9204 §4.5.1]
    fn prefix(&mut self) -> Result<(), Http3Error> {
        if self.integer(8)? != 0 {
            return Err(invalid("a header section refers to a dynamic table"));
        }
        let sign = self.rest.first().is_some_and(|byte| byte & 0x80 != 0);
        self.integer(7)?;
        if sign {
            return Err(invalid("the base of a header section is below zero"));
        }
        Ok(())
    }

    /// Reads a field line. [RFC 9204 §4.5.2 to §4.5.6]
    fn line(&mut self) -> Result<Line, Http3Error> {
        let first = self.rest.first().copied().unwrap_or_default();
        match first.leading_zeros() {
            0 if first & 0x40 != 0 => {
                let (name, value) = self.static_entry(6)?;
                Ok(Line {
                    name: self.append(name.as_bytes()),
                    value: self.append(value.as_bytes()),
                    never_indexed: false,
                })
            }
            1 if first & 0x10 != 0 => {
                let (name, _) = self.static_entry(4)?;
                Ok(Line {
                    name: self.append(name.as_bytes()),
                    value: self.string(7)?,
                    never_indexed: first & 0x20 != 0,
                })
            }
            2 => Ok(Line {
                name: self.string(3)?,
                value: self.string(7)?,
                never_indexed: first & 0x10 != 0,
            }),
            _ => Err(invalid("a field refers to a dynamic table")),
        }
    }

    fn static_entry(
        &mut self,
        prefix_bits: u32,
    ) -> Result<(&'static str, &'static str), Http3Error> {
        let index = usize::try_from(self.integer(prefix_bits)?).ok();
        let entry = index.and_then(|index| STATIC_TABLE.get(index));
        let entry = entry.ok_or(invalid("a field refers beyond the static table"))?;
        Ok(*entry)
    }

    fn append(&mut self, text: &[u8]) -> Range<usize> {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        start..self.text.len()
    }

    /// Reads a string with a Huffman flag and a length prefix of `prefix_bits`.
    fn string(&mut self, prefix_bits: u32) -> Result<Range<usize>, Http3Error> {
        let first = self.rest.first().copied().unwrap_or_default();
        let is_coded = first >> prefix_bits & 1 != 0;
        let length = usize::try_from(self.integer(prefix_bits)?).unwrap_or(usize::MAX);
        let (string, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(invalid("a header section ends within a string"))?;
        self.rest = rest;
        if !is_coded {
            return Ok(self.append(string));
        }
        let start = self.text.len();
        for symbol in Symbols::new(string) {
            let symbol = symbol.map_err(|_| invalid("a string has an invalid Huffman code"))?;
            if self.text.len() >= self.limits.max_bytes {
                return Err(TOO_LARGE);
            }
            self.text.push(symbol);
        }
        Ok(start..self.text.len())
    }

    fn integer(&mut self, prefix_bits: u32) -> Result<u64, Http3Error> {
        let read = integer::read(self.rest, prefix_bits)
            .map_err(|_| invalid("an integer of a header section is too large"))?;
        let (value, used) = read.ok_or(invalid("a header section ends within an integer"))?;
        self.rest = self.rest.get(used..).unwrap_or_default();
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Scope;

    const LIMITS: SectionLimits = SectionLimits {
        max_bytes: 1000,
        max_fields: 10,
    };

    fn decode(encoded: &[u8]) -> Result<Vec<(String, String)>, Http3Error> {
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let section = FieldSection::decode(encoded, LIMITS)?;
        let fields = section.fields();
        Ok(fields
            .map(|field| (text(field.name), text(field.value)))
            .collect())
    }

    #[test]
    fn fields_in_each_form_are_decoded() {
        let encoded = [
            &[0, 0, 0xd1][..], // :method: GET
            &[0x50, 3],        // :authority: a.b
            b"a.b",
            &[0x22], // xy: z
            b"xy",
            &[1, b'z'],
            &[0x71, 1, b'/'], // :path: /, never indexed
        ]
        .concat();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            decode(&encoded),
            Ok(vec![
                pair(":method", "GET"),
                pair(":authority", "a.b"),
                pair("xy", "z"),
                pair(":path", "/"),
            ])
        );
        let section = FieldSection::decode(&encoded, LIMITS).unwrap();
        let never: Vec<bool> = section.fields().map(|field| field.never_indexed).collect();
        assert_eq!(never, [false, false, false, true]);
    }

    #[test]
    fn references_to_a_dynamic_table_end_the_connection() {
        for encoded in [
            &[1, 0, 0xd1][..],
            &[0, 0x80, 0xd1],
            &[0, 0, 0x80],
            &[0, 0, 0x40, 0],
            &[0, 0, 0x10],
            &[0, 0, 0x00, 0],
            &[0, 0, 0xff, 0x24],
            &[0],
            &[],
            &[0, 0, 0x50],
            &[0, 0, 0x50, 3, b'a'],
            &[0, 0, 0x50, 0x81, 0xff],
        ] {
            let error = decode(encoded).unwrap_err();
            assert_eq!(
                error.code,
                ErrorCode::QPACK_DECOMPRESSION_FAILED,
                "{encoded:?}"
            );
            assert_eq!(error.scope, Scope::Connection);
        }
    }

    #[test]
    fn a_small_section_cannot_become_a_large_one() {
        let many = [&[0, 0][..], &[0xd1; 11]].concat();
        assert_eq!(decode(&many), Err(TOO_LARGE));
        // Entry 85 has 75 bytes.
        let long = [&[0, 0][..], &[[0xff, 85 - 63]; 10].concat()].concat();
        assert_eq!(decode(&long), Err(TOO_LARGE));
        // Symbols of five bits each.
        let coded = [&[0, 0, 0x50, 0xff, 0xf1, 0x06][..], &[0; 1008]].concat();
        assert_eq!(decode(&coded), Err(TOO_LARGE));
    }
}
