//! Variable-length integers of QUIC. [RFC 9000 §16]

/// Maximum value.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Reads an integer and its encoded length; `None` if it is incomplete.
pub(crate) fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let len = 1 << (first >> 6);
    let rest = bytes.get(1..len)?;
    let value = rest.iter().fold(u64::from(first & 0x3f), |value, byte| {
        value << 8 | u64::from(*byte)
    });
    Some((value, len))
}

/// Appends `value`, at most [`MAX`], in its shortest encoding.
pub(crate) fn write(value: u64, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let (len, mark) = match value {
        0..=0x3f => (1, 0x00),
        0x40..=0x3fff => (2, 0x40),
        0x4000..=0x3fff_ffff => (4, 0x80),
        _ => (8, 0xc0),
    };
    let start = out.len();
    out.extend_from_slice(bytes.get(bytes.len() - len..).unwrap_or_default());
    if let Some(first) = out.get_mut(start) {
        *first |= mark;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        for (bytes, value) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(read(bytes), Some((value, bytes.len())));
            assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn integers_are_read_as_they_were_written() {
        for value in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, MAX] {
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(read(&out), Some((value, out.len())));
        }
    }
}
