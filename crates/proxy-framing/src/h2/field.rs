//! Length of one field of a header section. [RFC 7541 §6]

/// Maximum number of bytes of an integer: the limit of the HTTP/2 library behind the meter.
const MAX_INTEGER_BYTES: usize = 6;

/// Length of the field, or of the table size update, at the beginning of `bytes`; `None` if it is
/// incomplete or malformed.
pub(super) fn field_bytes(bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    let prefix = match first {
        0x80.. => return Some(integer(bytes, 7)?.1),
        0x40.. => 6,
        0x20.. => return Some(integer(bytes, 5)?.1),
        _ => 4,
    };
    let (index, mut at) = integer(bytes, prefix)?;
    if index == 0 {
        at += string_bytes(bytes.get(at..)?)?;
    }
    at += string_bytes(bytes.get(at..)?)?;
    Some(at)
}

/// Length of a string with its length prefix, Huffman-coded or not.
fn string_bytes(bytes: &[u8]) -> Option<usize> {
    let (length, at) = integer(bytes, 7)?;
    let whole = at.checked_add(length)?;
    (whole <= bytes.len()).then_some(whole)
}

/// Parses an integer in the last `prefix` bits of the first byte and the bytes behind it; returns
/// it with its length. [RFC 7541 §5.1]
fn integer(bytes: &[u8], prefix: u32) -> Option<(usize, usize)> {
    let mask = (1_usize << prefix) - 1;
    let (first, behind) = bytes.split_first()?;
    let mut value = usize::from(*first) & mask;
    if value < mask {
        return Some((value, 1));
    }
    for (index, byte) in behind.iter().take(MAX_INTEGER_BYTES - 1).enumerate() {
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
            assert_eq!(field_bytes(bytes), end, "{bytes:?}");
        }
    }
}
