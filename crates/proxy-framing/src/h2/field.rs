//! The encoded fields of a header section. [RFC 7541 §6]

/// Maximum number of bytes of an integer: the limit of the HTTP/2 library behind the meter.
const MAX_INTEGER_BYTES: usize = 6;

/// One field, or one table size update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// A field of the table with this index.
    Indexed(usize),
    Literal(Literal),
    SizeUpdate,
}

/// A field with a literal value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    /// Index of the name in the tables; 0 if the name is literal, from the second byte of the field
    /// on.
    pub(super) name_index: usize,
    /// The name is `:path`, by its index in the static table or in plain text.
    pub(super) names_path: bool,
    /// The field is added to the dynamic table.
    pub(super) is_inserted: bool,
    /// Offset of the value's length prefix.
    pub(super) value_at: usize,
}

/// A string, without its length prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EncodedString<'b> {
    Plain(&'b [u8]),
    Huffman(&'b [u8]),
}

/// The field, or the table size update, at the beginning of `bytes`, with its length; `None` if it
/// is incomplete or malformed.
pub(super) fn read_field(bytes: &[u8]) -> Option<(Field, usize)> {
    let first = *bytes.first()?;
    let (prefix, is_inserted) = match first {
        0x80.. => {
            let (index, length) = integer(bytes, 7)?;
            return Some((Field::Indexed(index), length));
        }
        0x40.. => (6, true),
        0x20.. => return Some((Field::SizeUpdate, integer(bytes, 5)?.1)),
        _ => (4, false),
    };
    let (index, mut value_at) = integer(bytes, prefix)?;
    // Two entries of the static table have the name. [RFC 7541 §A]
    let mut names_path = matches!(index, 4 | 5);
    if index == 0 {
        let (name, length) = read_string(bytes.get(value_at..)?)?;
        names_path = name == EncodedString::Plain(b":path");
        value_at += length;
    }
    let literal = Literal {
        name_index: index,
        names_path,
        is_inserted,
        value_at,
    };
    let (_, length) = read_string(bytes.get(value_at..)?)?;
    Some((Field::Literal(literal), value_at + length))
}

/// The string at the beginning of `bytes`, and its length with the length prefix.
pub(super) fn read_string(bytes: &[u8]) -> Option<(EncodedString<'_>, usize)> {
    let (length, at) = integer(bytes, 7)?;
    let whole = at.checked_add(length)?;
    let string = bytes.get(at..whole)?;
    let string = match bytes.first()? {
        0x80.. => EncodedString::Huffman(string),
        _ => EncodedString::Plain(string),
    };
    Some((string, whole))
}

/// Appends `text` as a string that is not Huffman-coded.
pub(super) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    const PREFIX_MAX: usize = 0x7f;
    match u8::try_from(text.len()) {
        Ok(length) if usize::from(length) < PREFIX_MAX => out.push(length),
        _ => {
            out.push(0x7f);
            let mut rest = text.len() - PREFIX_MAX;
            while 0x80 <= rest {
                out.push(0x80 | u8::try_from(rest & 0x7f).unwrap_or(0));
                rest >>= 7;
            }
            out.extend(u8::try_from(rest));
        }
    }
    out.extend_from_slice(text);
}
/// Parses an integer in the last `prefix` bits of the first byte and the bytes after it; returns
/// it with its length. [RFC 7541 §5.1]
fn integer(bytes: &[u8], prefix: u32) -> Option<(usize, usize)> {
    let mask = (1_usize << prefix) - 1;
    let (first, after) = bytes.split_first()?;
    let mut value = usize::from(*first) & mask;
    if value < mask {
        return Some((value, 1));
    }
    for (index, byte) in after.iter().take(MAX_INTEGER_BYTES - 1).enumerate() {
        let more = usize::from(byte & 0x7f).checked_shl(u32::try_from(index * 7).ok()?)?;
        value = value.checked_add(more)?;
        if byte & 0x80 == 0 {
            return Some((value, index + 2));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_ends_where_its_strings_do() {
        let long = [&[0, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'v'; 4000]].concat();
        let cases: [(&[u8], Option<usize>); 13] = [
            (b"\x82\x84", Some(1)),
            (b"\xff\x80\x01more", Some(3)),
            (b"\x20\x82", Some(1)),
            (b"\x3f\xe1\x1f\x82", Some(3)),
            (b"\x04\x02/b\x82", Some(4)),
            (b"\x41\x06a.test\x82", Some(8)),
            (b"\x00\x01x\x01y\x82", Some(5)),
            (b"\x00\x81x\x81y", Some(5)),
            (b"\x00\x01x\x02y", None),
            (b"\x00\x01", None),
            (b"\xff\xff\xff\xff\xff\xff\xff\x01", None),
            (b"", None),
            (&long, Some(4006)),
        ];
        for (bytes, end) in cases {
            let read = read_field(bytes).map(|(_, length)| length);
            assert_eq!(read, end, "{bytes:?}");
        }
    }

    #[test]
    fn a_written_string_is_read_again() {
        for length in [0, 1, 126, 127, 128, 254, 255, 300, 16_384] {
            let (text, mut out) = (vec![b'x'; length], Vec::new());
            write_string(&text, &mut out);
            let read = Some((EncodedString::Plain(&text), out.len()));
            assert_eq!(read_string(&out), read, "{length}");
        }
    }

    #[test]
    fn a_path_is_known_by_index_or_by_name() {
        for (bytes, names_path, is_inserted) in [
            (&b"\x04\x01x"[..], true, false),
            (b"\x15\x01x", true, false),
            (b"\x44\x81x", true, true),
            (b"\x00\x05:path\x01x", true, false),
            (b"\x40\x05:pat_\x01x", false, true),
            (b"\x7e\x01x", false, true),
            (b"\x46\x01x", false, true),
        ] {
            let Some((Field::Literal(literal), length)) = read_field(bytes) else {
                panic!("{bytes:?}");
            };
            assert_eq!(length, bytes.len());
            assert_eq!(literal.value_at, bytes.len() - 2);
            let read = (literal.names_path, literal.is_inserted);
            assert_eq!(read, (names_path, is_inserted), "{bytes:?}");
        }
    }
}
