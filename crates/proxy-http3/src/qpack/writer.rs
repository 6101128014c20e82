//! Encoding of header sections: references to the static table, and literals without Huffman
//! coding.

use super::integer;
use super::static_table::{Found, STATUS_INDEX, find};
use http::{HeaderMap, StatusCode};

/// A header section being written.
#[derive(Debug)]
pub(crate) struct SectionWriter(Vec<u8>);

impl SectionWriter {
    pub(crate) fn new() -> Self {
        // Prefix without dynamic references. [RFC 9204 §4.5.1]
        Self(vec![0, 0])
    }

    pub(crate) fn status(&mut self, status: StatusCode) {
        match find(":status", status.as_str().as_bytes()) {
            Some(Found::Field(index)) => integer::write(0xc0, 6, index, &mut self.0),
            Some(Found::Name(_)) | None => {
                integer::write(0x50, 4, STATUS_INDEX, &mut self.0);
                self.string(status.as_str().as_bytes());
            }
        }
    }

    pub(crate) fn fields(&mut self, fields: &HeaderMap) {
        for (name, value) in fields {
            let never_indexed = if value.is_sensitive() { 0x20 } else { 0 };
            match find(name.as_str(), value.as_bytes()) {
                Some(Found::Field(index)) => integer::write(0xc0, 6, index, &mut self.0),
                Some(Found::Name(index)) => {
                    integer::write(0x50 | never_indexed, 4, index, &mut self.0);
                    self.string(value.as_bytes());
                }
                None => {
                    let mark = 0x20 | never_indexed >> 1;
                    integer::write(mark, 3, name.as_str().len(), &mut self.0);
                    self.0.extend_from_slice(name.as_str().as_bytes());
                    self.string(value.as_bytes());
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn string(&mut self, string: &[u8]) {
        integer::write(0, 7, string.len(), &mut self.0);
        self.0.extend_from_slice(string);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qpack::{FieldSection, SectionLimits};
    use http::HeaderValue;

    #[test]
    fn a_section_survives_a_round_trip() {
        let mut fields = HeaderMap::new();
        let mut secret = HeaderValue::from_static("s3cr3t");
        secret.set_sensitive(true);
        fields.append("content-type", HeaderValue::from_static("text/plain"));
        fields.append("content-type", HeaderValue::from_static("text/x"));
        fields.append("set-cookie", secret.clone());
        fields.append("x-correlation-id", secret);
        fields.append("x-long", HeaderValue::from_str(&"a".repeat(300)).unwrap());
        for status in [StatusCode::OK, StatusCode::IM_A_TEAPOT] {
            let mut writer = SectionWriter::new();
            writer.status(status);
            writer.fields(&fields);
            let limits = SectionLimits {
                max_bytes: 10_000,
                max_fields: 100,
            };
            let section = FieldSection::decode(&writer.finish(), limits).unwrap();
            let read: Vec<_> = section.fields().collect();
            assert_eq!(
                (&read[0].name[..], &read[0].value[..]),
                (&b":status"[..], status.as_str().as_bytes())
            );
            let fields: Vec<_> = fields.iter().collect();
            assert_eq!(read.len(), fields.len() + 1);
            for (read, (name, value)) in read[1..].iter().zip(fields) {
                assert_eq!(read.name, name.as_str());
                assert_eq!(read.value, value.as_bytes());
                assert_eq!(read.never_indexed, value.is_sensitive());
            }
        }
    }
}
