//! Header sections of a target's responses, checked before the parser reads them.
//!
//! The HTTP/2 library ignores pseudo-header fields of requests in a response, and drops all
//! pseudo-header fields in trailers. Both make a response malformed [RFC 9113 §8.1, §8.3]. For an
//! invalid name or value it ends the connection, and so all other requests on it [RFC 9113 §8.1.1,
//! §8.2.1]. A section with such a field is rewritten, so that the library resets only its stream.
//! The same applies to every section of several frames, because the library checks only the last
//! frame.

use super::field_kinds::{FieldKind, FieldKinds};
use super::frame::{DATA, FrameHeader, HEADER_BYTES, HEADERS, RST_STREAM};
use super::section::{Edit, Section, fragment};

/// Maximum size of a section of several frames, in bytes before decompression. Huffman codes may be
/// nearly four times as long as the text, and the parser accepts at most twice 128 KiB of text.
const MAX_SECTION_BYTES: usize = 1024 * 1024;

/// Maximum number of streams with a final response that has begun. It is far above the number of
/// concurrent requests of one connection; a stream that the proxy has reset may stay until then.
const MAX_BODIES: usize = 1024;

/// A malformed section. Its edits replace the fields that would make the parser end the connection.
#[derive(Debug)]
struct Malformed {
    edits: Vec<Edit>,
}

/// Checks the header sections on one connection to a target.
#[derive(Clone, Debug, Default)]
pub struct ResponseSections {
    kinds: FieldKinds,
    /// Streams with a final response that has begun, in ascending order. Their next section is a
    /// trailer section.
    bodies: Vec<u32>,
    /// Bytes of a payload that still pass unread.
    skip: usize,
    /// Bytes of an incomplete frame, from its header on, that the parser has not got.
    held: Vec<u8>,
    /// The header section being collected.
    section: Option<Box<Section>>,
}

impl ResponseSections {
    /// Consumes `bytes` from the target. Returns the bytes for the parser if they differ from
    /// `bytes`: an incomplete frame header or header section is withheld, and a malformed section
    /// is rewritten.
    #[inline]
    pub fn pass(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.held.is_empty() && self.section.is_none() {
            if let Some(skip) = self.skip.checked_sub(bytes.len()) {
                self.skip = skip;
                return None;
            }
            let mut out = Vec::new();
            let rest = self.pass_whole_frames(bytes, &mut out);
            if rest.is_empty() && out.is_empty() {
                return None;
            }
            self.pass_slowly(rest, &mut out);
            return Some(out);
        }
        let mut out = Vec::new();
        self.pass_slowly(bytes, &mut out);
        Some(out)
    }

    /// Passes frames up to the first one that is incomplete, belongs to a section of several frames
    /// or is rewritten. Appends the passed bytes to `out`, and returns the bytes after them. `out`
    /// stays empty if all bytes pass.
    fn pass_whole_frames<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
        let mut rest = bytes;
        loop {
            let skipped = self.skip.min(rest.len());
            self.skip -= skipped;
            rest = rest.get(skipped..).unwrap_or_default();
            if rest.is_empty() {
                return rest;
            }
            let section = rest.split_first_chunk().and_then(|(header, after)| {
                let header = FrameHeader::parse(*header);
                if !is_head(header) {
                    return Some((header, None));
                }
                let payload = after.get(..header.length as usize);
                let payload = payload.filter(|_| header.ends_headers())?;
                Some((header, Some(fragment(header, payload)?)))
            });
            let Some((header, fields)) = section else {
                out.extend_from_slice(bytes.get(..bytes.len() - rest.len()).unwrap_or_default());
                return rest;
            };
            let whole = HEADER_BYTES + header.length as usize;
            let malformed = if let Some(fields) = fields {
                self.check(header, fields).err().zip(Some(fields))
            } else {
                self.note_end(header);
                None
            };
            if let Some((Malformed { edits }, fields)) = malformed {
                out.extend_from_slice(bytes.get(..bytes.len() - rest.len()).unwrap_or_default());
                let mut section = Section::new(header, false);
                section.set_fragment(fields.to_vec());
                section.refuse(edits);
                section.write(true, out);
                return rest.get(whole..).unwrap_or_default();
            }
            self.skip = whole;
        }
    }

    /// Passes bytes that may continue a withheld frame; appends the bytes for the parser to `out`.
    #[cold]
    fn pass_slowly(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.skip > 0 {
                let (skipped, after) = rest.split_at(self.skip.min(rest.len()));
                self.skip -= skipped.len();
                out.extend_from_slice(skipped);
                rest = after;
                continue;
            }
            rest = self.withhold(rest, HEADER_BYTES);
            let Some(header) = self.held.first_chunk().copied().map(FrameHeader::parse) else {
                return;
            };
            if !is_head(header) && self.section.is_none() {
                self.note_end(header);
                out.append(&mut self.held);
                self.skip = header.length as usize;
                continue;
            }
            let whole = HEADER_BYTES + header.length as usize;
            if self.is_interrupted_by(header) {
                // The parser ends the connection because of this frame.
                if let Some(section) = self.section.take() {
                    section.write(false, out);
                }
                out.append(&mut self.held);
                self.skip = header.length as usize;
                continue;
            }
            rest = self.withhold(rest, whole);
            if self.held.len() < whole {
                return;
            }
            let frame = std::mem::take(&mut self.held);
            self.collect(header, &frame, out);
        }
    }

    /// Withholds bytes until there are `wanted`; returns the bytes after them.
    fn withhold<'b>(&mut self, bytes: &'b [u8], wanted: usize) -> &'b [u8] {
        let missing = wanted.saturating_sub(self.held.len());
        let (held, after) = bytes.split_at(missing.min(bytes.len()));
        self.held.extend_from_slice(held);
        after
    }

    /// Adds a whole `frame` to the section, and writes the section if that is its last one.
    fn collect(&mut self, header: FrameHeader, frame: &[u8], out: &mut Vec<u8>) {
        let payload = frame.get(HEADER_BYTES..).unwrap_or_default();
        let continued = self.section.take();
        let is_divided = continued.is_some() || !header.ends_headers();
        let mut section = continued.unwrap_or_else(|| Box::new(Section::new(header, false)));
        if !section.add(header, payload) {
            // The parser ends the connection because of this frame.
            out.extend_from_slice(frame);
            return;
        }
        if MAX_SECTION_BYTES < section.bytes() {
            // A frame that is illegal within a section: the parser ends the connection.
            section.write(false, out);
            FrameHeader::write(DATA, 0, 0, &[], out);
            return;
        }
        if !header.ends_headers() {
            self.section = Some(section);
            return;
        }
        match self.check(section.header(), section.fragment()) {
            Ok(()) if !is_divided => {
                out.extend_from_slice(frame);
                return;
            }
            Ok(()) => {}
            Err(Malformed { edits }) => section.refuse(edits),
        }
        section.write(true, out);
    }

    fn is_interrupted_by(&self, header: FrameHeader) -> bool {
        let section = self.section.as_ref();
        section.is_some_and(|section| !section.goes_on_with(header))
    }

    /// Checks a whole section. Fails if the parser would wrongly accept it, or would end the
    /// connection because of it. A section begins with one pseudo-header field, `:status`; trailers
    /// have none. [RFC 9113 §8.3.2, §8.1]
    fn check(&mut self, header: FrameHeader, fields: &[u8]) -> Result<(), Malformed> {
        let stream = header.stream;
        let place = self.bodies.binary_search(&stream);
        let (mut status, mut has_other, mut rest) = (None, false, fields);
        let mut edits = Vec::new();
        while let Some(read) = self.kinds.next(rest) {
            if let Some(replacement) = read.replacement {
                let (from, to) = (rest.len(), read.rest.len());
                edits.push((fields.len() - from..fields.len() - to, replacement));
            }
            rest = read.rest;
            match read.kind {
                Some(FieldKind::Status { is_interim }) if status.is_none() => {
                    status = Some(is_interim);
                }
                Some(FieldKind::Regular) | None => {}
                Some(FieldKind::Status { .. } | FieldKind::Malformed | FieldKind::InvalidValue) => {
                    has_other = true;
                }
            }
        }
        // A stream that the target opens ends the connection; a reset would prevent that.
        if stream.is_multiple_of(2) {
            return Ok(());
        }
        let may_have_status = place.is_err();
        let is_well_formed = !has_other && (may_have_status || status.is_none());
        match place {
            Ok(place) if header.ends_stream() || !is_well_formed => {
                self.bodies.remove(place);
            }
            Err(place) if status == Some(false) && is_well_formed && !header.ends_stream() => {
                self.bodies.insert(place, stream);
                if MAX_BODIES < self.bodies.len() {
                    self.bodies.remove(0);
                }
            }
            Ok(_) | Err(_) => {}
        }
        if is_well_formed {
            Ok(())
        } else {
            Err(Malformed { edits })
        }
    }

    /// Forgets a stream that the target ends by this frame.
    fn note_end(&mut self, header: FrameHeader) {
        let ends = header.kind == DATA && header.ends_stream() || header.kind == RST_STREAM;
        if ends && let Ok(place) = self.bodies.binary_search(&header.stream) {
            self.bodies.remove(place);
        }
    }
}

/// Returns true if the frame begins a header section that the parser accepts.
fn is_head(header: FrameHeader) -> bool {
    header.kind == HEADERS && header.is_in_size()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::frame::{CONTINUATION, END_HEADERS, END_STREAM};
    use std::iter;

    const OK: &[u8] = b"\x88";
    const EARLY_HINTS: &[u8] = b"\x08\x03103";
    const PATH: &[u8] = b"\x04\x01/";
    /// A regular field of its size in the table.
    const REPLACED_PATH: &[u8] = b"\x00\x05xxxxx\x011";
    const FIELD: &[u8] = b"\x00\x01x\x01y";
    const REFUSED: &[u8] = b"\xa6\x88";

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        FrameHeader::write(kind, flags, stream, payload, &mut frame);
        frame
    }

    fn head(flags: u8, stream: u32, fields: &[&[u8]]) -> Vec<u8> {
        frame(HEADERS, END_HEADERS | flags, stream, &fields.concat())
    }

    /// The refused section of these fields.
    fn refused(flags: u8, fields: &[&[u8]]) -> Vec<u8> {
        let replaced = fields
            .iter()
            .map(|field| if *field == PATH { REPLACED_PATH } else { field });
        let fields: Vec<&[u8]> = iter::once(REFUSED).chain(replaced).collect();
        head(flags, 1, &fields)
    }

    /// The bytes for the parser, if `bytes` come in pieces of `size`.
    fn passed(bytes: &[u8], size: usize) -> Vec<u8> {
        let mut sections = ResponseSections::default();
        let pieces = bytes.chunks(size);
        pieces
            .flat_map(|piece| sections.pass(piece).unwrap_or_else(|| piece.to_vec()))
            .collect()
    }

    #[track_caller]
    fn check(sent: &[Vec<u8>], wanted: &[Vec<u8>]) {
        let (sent, wanted) = (sent.concat(), wanted.concat());
        for size in 1..=sent.len() {
            assert_eq!(passed(&sent, size), wanted, "pieces of {size}");
        }
    }

    #[test]
    fn well_formed_responses_pass_unchanged() {
        let responses = [
            frame(4, 0, 0, &[0; 6]),
            head(0, 1, &[EARLY_HINTS, FIELD]),
            head(0, 1, &[EARLY_HINTS]),
            head(0, 1, &[OK, FIELD]),
            head(END_STREAM, 3, &[OK]),
            frame(DATA, 0, 1, b"hello"),
            head(END_STREAM, 1, &[FIELD]),
            head(0, 5, &[OK]),
            frame(DATA, END_STREAM, 5, b""),
            head(0, 7, &[EARLY_HINTS]),
            head(END_STREAM, 7, &[OK]),
        ];
        check(&responses, &responses);
        let mut sections = ResponseSections::default();
        assert_eq!(sections.pass(&responses.concat()), None);
    }

    #[test]
    fn pseudo_header_fields_of_requests_are_refused() {
        for fields in [
            &[OK, PATH][..],
            &[PATH, OK],
            &[EARLY_HINTS, PATH],
            &[OK, OK],
            &[PATH],
        ] {
            let next = head(0, 3, &[OK]);
            check(
                &[head(0, 1, fields), next.clone()],
                &[refused(0, fields), next],
            );
        }
    }

    #[test]
    fn fields_that_the_parser_cannot_hold_are_replaced_in_a_refused_section() {
        const CAPITAL: &[u8] = b"\x40\x01X\x01y";
        const HARMLESS: &[u8] = b"\x40\x01x\x011";
        let next = head(0, 3, &[OK, FIELD]);
        check(
            &[head(0, 1, &[OK, CAPITAL, FIELD, CAPITAL]), next.clone()],
            &[refused(0, &[OK, HARMLESS, FIELD, HARMLESS]), next],
        );
        // A later section that refers to the entry.
        check(
            &[head(0, 1, &[OK, CAPITAL]), head(0, 3, &[OK, b"\xbe"])],
            &[
                refused(0, &[OK, HARMLESS]),
                head(0, 3, &[REFUSED, OK, b"\xbe"]),
            ],
        );
        check(
            &[head(0, 1, &[b"\x48\x042000"])],
            &[refused(0, &[b"\x40\x07xxxxxxx\x041111"])],
        );
    }

    #[test]
    fn sections_on_streams_of_the_target_reach_the_parser() {
        let sent = [head(0, 1, &[OK]), head(END_STREAM, 2, &[PATH])];
        check(&sent, &sent);
    }

    #[test]
    fn trailers_with_a_status_are_refused() {
        let begun = [head(0, 1, &[EARLY_HINTS]), head(0, 1, &[OK])].concat();
        for fields in [&[OK][..], &[OK, FIELD], &[EARLY_HINTS], &[PATH]] {
            check(
                &[begun.clone(), head(END_STREAM, 1, fields)],
                &[begun.clone(), refused(END_STREAM, fields)],
            );
        }
    }

    #[test]
    fn a_section_of_several_frames_is_read_as_one() {
        let divided = [
            frame(HEADERS, 0, 1, b"\x88\x00"),
            frame(CONTINUATION, 0, 1, b"\x01x"),
            frame(CONTINUATION, END_HEADERS, 1, b"\x01y"),
        ];
        check(&divided, &[head(0, 1, &[OK, FIELD])]);
        let divided = [
            frame(HEADERS, END_STREAM, 1, OK),
            frame(CONTINUATION, END_HEADERS, 1, PATH),
        ];
        check(&divided, &[refused(END_STREAM, &[OK, PATH])]);
    }

    #[test]
    fn a_refused_section_keeps_its_change_of_the_table_in_front() {
        let sent = head(0, 1, &[b"\x20", OK, PATH]);
        check(
            &[sent],
            &[head(0, 1, &[b"\x20", REFUSED, OK, REPLACED_PATH])],
        );
    }

    #[test]
    fn a_section_that_is_interrupted_reaches_the_parser() {
        let sent = [frame(HEADERS, 0, 1, OK), frame(DATA, 0, 1, b"hello")];
        check(&sent, &sent);
    }

    #[test]
    fn a_section_without_end_is_ended() {
        let mut sections = ResponseSections::default();
        let mut out = vec![sections.pass(&frame(HEADERS, 0, 1, OK))];
        let more = frame(CONTINUATION, 0, 1, &[0x88; 16_384]);
        while out.last() == Some(&Some(Vec::new())) {
            out.push(sections.pass(&more));
        }
        assert!(out.len() <= MAX_SECTION_BYTES / 16_384 + 2, "{}", out.len());
        let illegal = frame(DATA, 0, 0, b"");
        assert!(out.pop().flatten().unwrap().ends_with(&illegal));
        assert_eq!(sections.section.map(|section| section.bytes()), None);
    }

    #[test]
    fn streams_that_never_end_are_evicted_in_order() {
        let mut sections = ResponseSections::default();
        for stream in (1..).step_by(2).take(MAX_BODIES + 9) {
            assert_eq!(sections.pass(&head(0, stream, &[OK])), None);
        }
        assert_eq!(sections.bodies.len(), MAX_BODIES);
        assert_eq!(sections.bodies.first(), Some(&19));
        sections.pass(&frame(RST_STREAM, 0, 19, &[0; 4]));
        assert_eq!(sections.bodies.first(), Some(&21));
    }
}
