//! Paths that the parser behind the meter cannot hold, in every representation of HPACK. [RFC 7541]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

mod hpack;

use hpack::{Pair, Parser, Table, integer, named, string};
use proptest::prelude::*;
use proxy_framing::h2::FrameMeter;
use proxy_framing::needs_escape_in_uri;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encoding of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    NeverIndexed,
    /// Added to the table, or encoded as an index if the table has the field.
    Indexed,
    /// Like `Indexed`, with the name in plain text.
    NamedInText,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
struct Sent {
    path: Vec<u8>,
    form: Form,
    is_coded: bool,
    /// Length of the value of another field, which is added to the table.
    other: usize,
    /// The other field precedes the path, and is `:authority`; otherwise it is `x`.
    is_before: bool,
    /// Size of the table, changed at the beginning of the section.
    resized: Option<usize>,
    trailers: bool,
    is_padded: bool,
    /// The section is divided into two frames.
    is_divided: bool,
}

impl Sent {
    /// The encoded header section, and its fields.
    fn encode(&self, table: &mut Table) -> (Vec<u8>, Vec<Pair>) {
        let mut out = Vec::new();
        if let Some(bytes) = self.resized {
            integer(bytes, 5, 0x20, &mut out);
            table.resize(bytes);
        }
        out.push(0x82);
        let mut fields = vec![named(table, 2)];
        if self.is_before {
            fields.push(other(b":authority", self.other, table, &mut out));
        }
        fields.push(self.encode_path(table, &mut out));
        if !self.is_before {
            fields.push(other(b"x", self.other, table, &mut out));
        }
        (out, fields)
    }

    fn encode_path(&self, table: &mut Table, out: &mut Vec<u8>) -> Pair {
        let field = (b":path".to_vec(), self.path.clone());
        let known = table.entries.iter().position(|entry| *entry == field);
        match (self.form, known) {
            (Form::Plain, _) => out.push(0x04),
            (Form::NeverIndexed, _) => out.push(0x14),
            (Form::Indexed | Form::NamedInText, Some(index)) => {
                integer(index + 62, 7, 0x80, out);
                return field;
            }
            (Form::Indexed, None) => out.push(0x44),
            (Form::NamedInText, None) => out.extend(b"\x40\x05:path"),
        }
        string(&self.path, self.is_coded, out);
        if matches!(self.form, Form::Indexed | Form::NamedInText) {
            table.insert(field.clone());
        }
        field
    }

    /// The frames of the request.
    fn frames(&self, stream: u32, section: &[u8]) -> Vec<u8> {
        let end = if self.trailers { 0 } else { END_STREAM };
        if self.is_divided {
            let (front, back) = section.split_at(section.len() / 2);
            let first = frame(HEADERS, end, stream, front);
            return [first, frame(CONTINUATION, END_HEADERS, stream, back)].concat();
        }
        if self.is_padded {
            let padded = [&[3], section, &[0; 3]].concat();
            return frame(HEADERS, end | END_HEADERS | PADDED, stream, &padded);
        }
        frame(HEADERS, end | END_HEADERS, stream, section)
    }
}

/// Encodes a field with a value of this length, which is added to the table.
fn other(name: &[u8], length: usize, table: &mut Table, out: &mut Vec<u8>) -> Pair {
    let field = (name.to_vec(), vec![b'a'; length]);
    out.push(0x40);
    string(name, false, out);
    string(&field.1, false, out);
    table.insert(field.clone());
    field
}

/// Feeds `bytes` in pieces of `size`; returns the parser's input.
fn pass(meter: &mut FrameMeter, bytes: &[u8], size: usize) -> Vec<u8> {
    let mut seen = Vec::new();
    for piece in bytes.chunks(size) {
        let instead = meter.pass(piece, 0).unwrap();
        seen.extend(instead.unwrap_or_else(|| piece.to_vec()));
    }
    seen
}

/// The header sections in frames, as the parser reads them.
fn parsed(mut frames: &[u8], table: &mut Table) -> Vec<(u32, Vec<Pair>)> {
    let (mut sections, mut section) = (Vec::new(), Vec::new());
    while let Some(([_, a, b, kind, flags, stream @ ..], rest)) = frames.split_first_chunk::<9>() {
        let (payload, rest) = rest.split_at(usize::from(*a) * 256 + usize::from(*b));
        frames = rest;
        assert!(*kind == HEADERS || *kind == CONTINUATION);
        section.extend(match flags & PADDED {
            0 => payload,
            _ => &payload[1..payload.len() - usize::from(payload[0])],
        });
        if flags & END_HEADERS != 0 {
            let fields = Parser { rest: &section }.fields(table);
            sections.push((u32::from_be_bytes(*stream), fields));
            section.clear();
        }
    }
    sections
}

fn is_held(path: &[u8]) -> bool {
    let query = path
        .iter()
        .position(|byte| *byte == b'?')
        .unwrap_or(path.len());
    let mut bytes = path.iter().enumerate();
    !bytes.any(|(at, byte)| needs_escape_in_uri(*byte, query < at))
}

/// Sends the requests of one connection, and compares the client's and the parser's fields.
fn agree(requests: &[Sent], size: usize) -> Result<(), TestCaseError> {
    let mut meter = FrameMeter::new(256, 1 << 16);
    pass(&mut meter, PREFACE, 24);
    let (mut client, mut parser) = (Table::new(), Table::new());
    for (stream, sent) in (1..).step_by(2).zip(requests) {
        let (section, wanted) = sent.encode(&mut client);
        let frames = pass(&mut meter, &sent.frames(stream, &section), size);
        let mut sections = parsed(&frames, &mut parser);
        prop_assert_eq!(sections.len(), 1);
        let (of, mut fields) = sections.pop().unwrap();
        prop_assert_eq!(of, stream);
        let raw = meter.take_path(stream);
        prop_assert_eq!(raw.is_some(), !is_held(&sent.path));
        for (name, value) in &mut fields {
            if name == b":path" {
                prop_assert!(is_held(value), "{}", value.escape_ascii());
                prop_assert_eq!(value.len(), sent.path.len());
                if let Some(raw) = &raw {
                    *value = raw.to_vec();
                }
            }
        }
        prop_assert_eq!(fields, wanted);
        if sent.trailers {
            let mut trailers = Vec::new();
            other(b"y", sent.other, &mut client, &mut trailers);
            let trailers = frame(HEADERS, END_STREAM | END_HEADERS, stream, &trailers);
            // The meter writes a field of the static table before trailers.
            let frames = pass(&mut meter, &trailers, size);
            let led = [&frames[..9], &frames[10..]].concat();
            let length = u16::from_be_bytes([led[1], led[2]]) - 1;
            let led = [&[0], &length.to_be_bytes()[..], &led[3..]].concat();
            parsed(&led, &mut parser);
        }
        let lengths = |table: &Table| -> Vec<usize> {
            table.entries.iter().map(|(_, value)| value.len()).collect()
        };
        prop_assert_eq!(lengths(&parser), lengths(&client));
    }
    Ok(())
}

fn sent() -> impl Strategy<Value = Sent> {
    let forms = [
        Form::Plain,
        Form::NeverIndexed,
        Form::Indexed,
        Form::NamedInText,
    ];
    // Few distinct paths, so that many are in the table.
    let path = prop_oneof![
        4 => prop::collection::vec(prop::sample::select(b"a<?`".to_vec()), 1..3),
        1 => prop::collection::vec(prop::sample::select(b"/az?=\"<>`~".to_vec()), 0..40),
        1 => (0..5000_usize).prop_map(|length| [vec![b'a'; length], vec![b'<']].concat()),
    ];
    let other = prop_oneof![4 => 0..200_usize, 1 => 3900..4200_usize];
    let resized =
        prop_oneof![8 => Just(None), 1 => (0..=4096_usize).prop_map(Some), 1 => Just(Some(4096))];
    let rare = || prop::bool::weighted(0.2);
    (
        (path, prop::sample::select(forms.to_vec()), any::<bool>()),
        (other, any::<bool>(), resized),
        (rare(), rare(), rare()),
    )
        .prop_map(
            |(
                (path, form, is_coded),
                (other, is_before, resized),
                (trailers, is_padded, is_divided),
            )| Sent {
                path: [&b"/"[..], &path].concat(),
                form,
                is_coded,
                other,
                is_before,
                resized,
                trailers,
                is_padded,
                is_divided,
            },
        )
}

proptest! {
    /// Client and parser have the same fields and the same table, for any input and any division
    /// into pieces.
    #[test]
    fn client_and_parser_agree(
        requests in prop::collection::vec(sent(), 1..40),
        size in prop_oneof![1..60_usize, Just(16_384)],
    ) {
        agree(&requests, size)?;
    }
}

/// The path of stream 1 that a meter keeps of this section, and the parser's input.
fn kept(section: &[u8]) -> (Option<Vec<u8>>, Vec<u8>) {
    let mut meter = FrameMeter::new(256, 1 << 16);
    pass(&mut meter, PREFACE, 24);
    let sent = frame(HEADERS, END_STREAM | END_HEADERS, 1, section);
    let seen = pass(&mut meter, &sent, sent.len());
    let path = meter.take_path(1).map(|path| path.to_vec());
    (path, seen[9..].to_vec())
}

#[test]
fn only_bytes_that_the_parser_refuses_are_replaced() {
    for (section, path, seen) in [
        (
            &b"\x82\x04\x03/<>\x86"[..],
            "/<>",
            &b"\x82\x04\x03/~~\x86"[..],
        ),
        (b"\x82\x44\x05/`?`\"", "/`?`\"", b"\x82\x44\x05/~?`~"),
        (
            b"\x20\x3f\xe1\x1f\x14\x03/\"<",
            "/\"<",
            b"\x20\x3f\xe1\x1f\x14\x03/\"~",
        ),
        // `/<`, Huffman-coded.
        (b"\x04\x83\x63\xff\xe7", "/<", b"\x04\x02/~"),
    ] {
        assert_eq!(kept(section), (Some(path.into()), seen.to_vec()));
    }
}

#[test]
fn a_fragment_becomes_a_path_that_the_parser_refuses() {
    for (section, seen) in [
        (&b"\x82\x04\x04/a#b\x86"[..], &b"\x82\x04\x04/a b\x86"[..]),
        (b"\x82\x44\x06/a?b#c\x86", b"\x82\x44\x06/a?b c\x86"),
        (b"\x04\x01#", b"\x04\x01 "),
        (b"\x04\x03/<#", b"\x04\x03/< "),
        // `/#`, Huffman-coded.
        (b"\x04\x83\x63\xfe\xbf", b"\x04\x02/ "),
    ] {
        assert_eq!(kept(section), (None, seen.to_vec()), "{section:?}");
    }
}

#[test]
fn sections_that_http1_would_refuse_are_left_to_the_parser() {
    let long = [&b"\x04\x7f\x82\x7f"[..], b"/", &[b'<'; 16_384]].concat();
    for section in [
        &b"\x04\x02<a"[..],
        b"\x04\x03/< ",
        b"\x04\x03/<\n",
        b"\x04\x03/<\xc3",
        b"\x04\x03*<a",
        b"\x05\x00",
        // A string that ends within a code, and a string with a byte of padding.
        b"\x04\x82\x63\xff",
        b"\x04\x84\x63\xff\xe7\xff",
        // A name of the dynamic table, a Huffman-coded name, and two names of other fields.
        b"\x0f\x2f\x02/<",
        b"\x00\x84\xb9\x58\xd3\x3f\x02/<",
        b"\x41\x02/<",
        b"\x00\x05:pat_\x02/<",
        // A path after more fields than may precede it.
        b"\x82\x82\x82\x82\x82\x82\x04\x02/<",
        // A string longer than the frame, and an empty section.
        b"\x04\x7f\x02/<",
        b"",
    ] {
        assert_eq!(kept(section), (None, section.to_vec()));
    }
    let mut meter = FrameMeter::new(256, 1 << 20);
    pass(&mut meter, PREFACE, 24);
    let (front, back) = long.split_at(10_000);
    let sent = [
        frame(HEADERS, END_STREAM, 1, front),
        frame(CONTINUATION, END_HEADERS, 1, back),
    ];
    pass(&mut meter, &sent.concat(), 1 << 20);
    assert_eq!(meter.take_path(1), None);
}

#[test]
fn a_path_that_is_not_taken_is_dropped_with_the_next_stream() {
    let mut meter = FrameMeter::new(256, 1 << 16);
    pass(&mut meter, PREFACE, 24);
    for (stream, path) in [(1, b"/<"), (3, b"/>"), (5, b"/a"), (7, b"/`")] {
        let section = [&b"\x04\x02"[..], path].concat();
        pass(
            &mut meter,
            &frame(HEADERS, END_STREAM | END_HEADERS, stream, &section),
            40,
        );
    }
    assert_eq!(meter.take_path(3).as_deref(), Some(&b"/>"[..]));
    assert_eq!(meter.take_path(1), None);
    assert_eq!(meter.take_path(3), None);
    assert_eq!(meter.take_path(5), None);
    assert_eq!(meter.take_path(7).as_deref(), Some(&b"/`"[..]));
}

#[test]
fn paths_that_are_kept_have_a_largest_size_together() {
    let mut meter = FrameMeter::new(256, 1 << 16);
    pass(&mut meter, PREFACE, 24);
    let path = [&b"/<"[..], &[b'a'; 1_000]].concat();
    let mut table = Table::new();
    let mut section = Vec::new();
    section.push(0x44);
    string(&path, false, &mut section);
    let mut seen = Vec::new();
    for stream in (1..2_000).step_by(2) {
        let sent = frame(HEADERS, END_STREAM | END_HEADERS, stream, &section);
        seen.extend(parsed(&pass(&mut meter, &sent, 1 << 16), &mut table));
        // Later requests refer to the entry that the first one added.
        section = vec![0xbe];
    }
    let refused: Vec<bool> = seen.iter().map(|(_, fields)| fields[0].1 == path).collect();
    let kept = refused.iter().take_while(|refused| !**refused).count();
    // The limit of 256 KiB includes an overhead for each path.
    assert!((200..256).contains(&kept), "{kept}");
    assert!(refused[kept..].iter().all(|refused| *refused));
    let last = 2 * u32::try_from(kept).unwrap() - 1;
    assert_eq!(meter.take_path(last).as_deref(), Some(&*path));
    assert_eq!(meter.take_path(last + 2), None);
    // Taking paths has freed space.
    let sent = frame(HEADERS, END_STREAM | END_HEADERS, 2_001, &section);
    pass(&mut meter, &sent, 1 << 16);
    assert_eq!(meter.take_path(2_001).as_deref(), Some(&*path));
}
