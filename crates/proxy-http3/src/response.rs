//! Encoding of responses as frames.

use crate::frame::FrameType;
use crate::qpack::SectionWriter;
use crate::varint;
use http::{HeaderMap, StatusCode};

/// Appends the head of a response, final or interim, as a HEADERS frame.
pub fn write_head(status: StatusCode, fields: &HeaderMap, out: &mut Vec<u8>) {
    let mut section = SectionWriter::new();
    section.status(status);
    section.fields(fields);
    write_headers(section, out);
}

/// Appends trailers as a HEADERS frame.
pub fn write_trailers(fields: &HeaderMap, out: &mut Vec<u8>) {
    let mut section = SectionWriter::new();
    section.fields(fields);
    write_headers(section, out);
}

/// Appends the header of a DATA frame; `length` bytes of data must follow.
pub fn write_data_header(length: usize, out: &mut Vec<u8>) {
    varint::write(FrameType::DATA, out);
    varint::write(length as u64, out);
}

fn write_headers(section: SectionWriter, out: &mut Vec<u8>) {
    let section = section.finish();
    varint::write(FrameType::HEADERS, out);
    varint::write(section.len() as u64, out);
    out.extend_from_slice(&section);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_one_frame() {
        let mut out = Vec::new();
        write_head(StatusCode::OK, &HeaderMap::new(), &mut out);
        assert_eq!(out, [0x1, 3, 0, 0, 0xd9]);
    }

    #[test]
    fn data_follows_its_length() {
        let mut out = Vec::new();
        write_data_header(300, &mut out);
        assert_eq!(out, [0x0, 0x41, 0x2c]);
    }
}
