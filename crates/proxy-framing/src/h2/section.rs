//! A header section that is reassembled from its frames and divided again.
//!
//! The HTTP/2 library checks a section frame by frame, and so misses two defects
//! that make a request malformed: pseudo-header fields at the beginning of a trailer section, which
//! it drops [RFC 9113 §8.1], and a malformed field before one that continues in the next frame. It
//! refuses both if the section is divided between fields and a regular field precedes all trailers.

use super::field::{Field, read_field};
use super::frame::{
    CONTINUATION, END_HEADERS, END_STREAM, FrameHeader, HEADERS, MAX_PAYLOAD_BYTES,
};
use std::ops::Range;

/// The field written before all trailers: `host` without a value, entry 38 (`0x26`) of the static
/// table. [RFC 7541 §A] It has no meaning in trailers, and is not forwarded.
const LEADING_FIELD_BYTE: u8 = 0xa6;

/// `:status` with the value 200, entry 8 of the static table.
const STATUS_BYTE: u8 = 0x88;

/// A part of a header section, and the bytes in its place.
pub(super) type Edit = (Range<usize>, Vec<u8>);

/// A header section in progress.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Header of the section's first frame.
    header: FrameHeader,
    is_trailers: bool,
    fragment: Vec<u8>,
}

impl Section {
    pub(super) fn new(header: FrameHeader, is_trailers: bool) -> Self {
        Self {
            header,
            is_trailers,
            fragment: Vec::new(),
        }
    }

    /// Returns true if the frame continues this section.
    pub(super) fn goes_on_with(&self, header: FrameHeader) -> bool {
        header.kind == CONTINUATION && header.stream == self.header.stream && header.is_in_size()
    }

    /// Appends the payload of the next frame. False if the frame is malformed.
    pub(super) fn add(&mut self, header: FrameHeader, payload: &[u8]) -> bool {
        let fragment = match header.kind {
            HEADERS => fragment(header, payload),
            _ => Some(payload),
        };
        self.fragment
            .extend_from_slice(fragment.unwrap_or_default());
        fragment.is_some()
    }

    pub(super) fn header(&self) -> FrameHeader {
        self.header
    }

    /// The stream, and whether the section opens it.
    pub(super) fn stream(&self) -> (u32, bool) {
        (self.header.stream, !self.is_trailers)
    }

    /// The encoded fields collected.
    pub(super) fn fragment(&self) -> &[u8] {
        &self.fragment
    }

    /// Replaces the collected fields.
    pub(super) fn set_fragment(&mut self, fragment: Vec<u8>) {
        self.fragment = fragment;
    }

    /// Number of bytes collected.
    pub(super) fn bytes(&self) -> usize {
        self.fragment.len()
    }

    /// Makes the section one that the library refuses by resetting its stream, after it has applied
    /// the changes of the table: a pseudo-header field behind a regular one. `edits`, in ascending
    /// order, replace fields that the library cannot hold.
    pub(super) fn refuse(&mut self, edits: Vec<Edit>) {
        for (range, instead) in edits.into_iter().rev() {
            self.fragment.splice(range, instead);
        }
        let at = size_updates(&self.fragment);
        let refused = [LEADING_FIELD_BYTE, STATUS_BYTE];
        self.fragment.splice(at..at, refused);
    }

    /// Writes the section as frames. Without `ended` the last one lacks `END_HEADERS`.
    pub(super) fn write(mut self, ended: bool, out: &mut Vec<u8>) {
        if self.is_trailers {
            let at = size_updates(&self.fragment);
            self.fragment.insert(at, LEADING_FIELD_BYTE);
        }
        let stream_end = if self.header.ends_stream() {
            END_STREAM
        } else {
            0
        };
        let pieces = pieces(&self.fragment);
        let last = pieces.len().saturating_sub(1);
        for (index, piece) in pieces.into_iter().enumerate() {
            let (kind, flags) = match index {
                0 => (HEADERS, stream_end),
                _ => (CONTINUATION, 0),
            };
            let is_end = ended && index == last;
            let flags = flags | if is_end { END_HEADERS } else { 0 };
            FrameHeader::write(kind, flags, self.header.stream, piece, out);
        }
    }
}

/// The part of a `HEADERS` frame's payload that belongs to the section; `None` if its padding or
/// priority is malformed. [RFC 9113 §6.2]
pub(super) fn fragment(header: FrameHeader, payload: &[u8]) -> Option<&[u8]> {
    let mut rest = payload;
    let mut padding = 0;
    if header.is_padded() {
        let (bytes, after) = rest.split_first()?;
        (padding, rest) = (usize::from(*bytes), after);
    }
    if header.has_priority() {
        let (priority, after) = rest.split_first_chunk::<5>()?;
        let [dependency @ .., _] = *priority;
        if u32::from_be_bytes(dependency) & 0x7fff_ffff == header.stream {
            return None;
        }
        rest = after;
    }
    rest.get(..rest.len().checked_sub(padding)?)
}

/// Length of the table size updates at the beginning of a section: no field may precede them. [RFC
/// 7541 §4.2]
pub(super) fn size_updates(fragment: &[u8]) -> usize {
    let mut at = 0;
    while let Some(rest) = fragment.get(at..)
        && let Some((Field::SizeUpdate, bytes)) = read_field(rest)
    {
        at += bytes;
    }
    at
}

/// Divides a section into payloads of frames, between two fields, or within a field that is larger
/// than a frame and begins its piece.
fn pieces(fragment: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let (mut rest, mut at) = (fragment, 0);
    while let Some((_, bytes)) = rest.get(at..).and_then(read_field) {
        if MAX_PAYLOAD_BYTES < at + bytes && 0 < at {
            let (piece, after) = rest.split_at(at);
            pieces.push(piece);
            (rest, at) = (after, 0);
        }
        at += bytes;
        while MAX_PAYLOAD_BYTES < at {
            let (piece, after) = rest.split_at(MAX_PAYLOAD_BYTES);
            pieces.push(piece);
            (rest, at) = (after, at - MAX_PAYLOAD_BYTES);
        }
    }
    // The rest is empty, or an incomplete field, which the library refuses.
    while let Some((piece, after)) = rest.split_at_checked(MAX_PAYLOAD_BYTES) {
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u8, flags: u8, length: usize) -> FrameHeader {
        FrameHeader {
            length: u32::try_from(length).unwrap_or(u32::MAX),
            kind,
            flags,
            stream: 1,
        }
    }

    /// The frames made of trailers that arrive in these fragments.
    fn cut(fragments: &[&[u8]]) -> Vec<(u8, u8, Vec<u8>)> {
        let mut section = Section::new(header(HEADERS, END_STREAM, 0), true);
        let mut kind = HEADERS;
        for fragment in fragments {
            assert!(section.add(header(kind, 0, fragment.len()), fragment));
            kind = CONTINUATION;
        }
        let mut out = Vec::new();
        section.write(true, &mut out);
        let (mut rest, mut frames) = (&*out, Vec::new());
        while let Some((bytes, after)) = rest.split_first_chunk() {
            let header = FrameHeader::parse(*bytes);
            assert!(header.is_in_size() && header.stream == 1);
            let (payload, after) = after.split_at(header.length as usize);
            frames.push((header.kind, header.flags, payload.to_vec()));
            rest = after;
        }
        frames
    }

    #[test]
    fn the_marker_of_trailers_follows_table_size_updates() {
        let whole = END_STREAM | END_HEADERS;
        for (fragments, wanted) in [
            (&[&b"\x84"[..]][..], &b"\xa6\x84"[..]),
            (&[b"\x20\x84"], b"\x20\xa6\x84"),
            (&[b"\x3f", b"\xe1\x1f\x84"], b"\x3f\xe1\x1f\xa6\x84"),
            (&[b"", b"\x84"], b"\xa6\x84"),
            (&[b""], b"\xa6"),
        ] {
            assert_eq!(cut(fragments), [(HEADERS, whole, wanted.to_vec())]);
        }
    }

    #[test]
    fn a_section_is_cut_between_fields() {
        let field = [&[0, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'v'; 4000]].concat();
        let sent = field.repeat(9);
        let frames = cut(&sent.chunks(10_000).collect::<Vec<_>>());

        let sizes: Vec<_> = frames.iter().map(|(_, _, payload)| payload.len()).collect();
        let four = 4 * field.len();
        assert_eq!(sizes, [four + 1, four, field.len()]);
        let flags: Vec<_> = frames
            .iter()
            .map(|(kind, flags, _)| (*kind, *flags))
            .collect();
        let wanted = [
            (HEADERS, END_STREAM),
            (CONTINUATION, 0),
            (CONTINUATION, END_HEADERS),
        ];
        assert_eq!(flags, wanted);
    }

    #[test]
    fn a_field_larger_than_a_frame_leads_its_piece() {
        // 40 000 bytes of value.
        let large = [
            &[0, 1, b'x', 0x7f, 0xc1, 0xb7, 0x02][..],
            &vec![b'v'; 40_000],
        ]
        .concat();
        let frames = cut(&[b"\x84", &large[..10_000], &large[10_000..]]);

        let sizes: Vec<_> = frames.iter().map(|(_, _, payload)| payload.len()).collect();
        assert_eq!(
            sizes,
            [
                2,
                MAX_PAYLOAD_BYTES,
                MAX_PAYLOAD_BYTES,
                large.len() - 2 * MAX_PAYLOAD_BYTES
            ]
        );
    }

    #[test]
    fn padding_and_priority_are_removed_and_validated() {
        let fragment_of = |flags: u8, payload: &[u8]| {
            fragment(header(HEADERS, flags, payload.len()), payload).map(<[u8]>::to_vec)
        };
        assert_eq!(fragment_of(0x8, b"\x02ab\0\0"), Some(b"ab".to_vec()));
        assert_eq!(
            fragment_of(0x28, b"\x01\0\0\0\0\x0fab\0"),
            Some(b"ab".to_vec())
        );
        assert_eq!(fragment_of(0x8, b"\x03ab"), None);
        assert_eq!(fragment_of(0x8, b""), None);
        assert_eq!(fragment_of(0x20, b"\0\0\0\0"), None);
        assert_eq!(fragment_of(0x20, b"\0\0\0\x01\x0f"), None);
    }
}
