//! Prefixed integers. [RFC 7541 §5.1, RFC 9204 §4.1.1]

/// Error of an integer above the accepted maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Maximum number of bytes after the prefix: no value needs more than 32 bits.
const MAX_MORE_BYTES: usize = 5;

/// Reads an integer with a prefix of `prefix_bits`; returns it with its encoded length, or `None`
/// if it is incomplete.
pub(crate) fn read(bytes: &[u8], prefix_bits: u32) -> Result<Option<(u64, usize)>, TooLarge> {
    let Some((first, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    let mask = (1_u64 << prefix_bits) - 1;
    let mut value = u64::from(*first) & mask;
    if value < mask {
        return Ok(Some((value, 1)));
    }
    for (index, byte) in rest.iter().enumerate() {
        if index == MAX_MORE_BYTES {
            return Err(TooLarge);
        }
        value += u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return if value > u64::from(u32::MAX) {
                Err(TooLarge)
            } else {
                Ok(Some((value, index + 2)))
            };
        }
    }
    if rest.len() >= MAX_MORE_BYTES {
        Err(TooLarge)
    } else {
        Ok(None)
    }
}

/// Appends `value` with a prefix of `prefix_bits`; `mark` is the bits above the prefix.
pub(super) fn write(mark: u8, prefix_bits: u32, value: usize, out: &mut Vec<u8>) {
    let mask = (1_usize << prefix_bits) - 1;
    let low = |value: usize| value.to_le_bytes().first().copied().unwrap_or_default();
    if value < mask {
        return out.push(mark | low(value));
    }
    out.push(mark | low(mask));
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(low(rest & 0x7f) | 0x80);
        rest >>= 7;
    }
    out.push(low(rest));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        assert_eq!(read(&[0b1110_1010], 5), Ok(Some((10, 1))));
        assert_eq!(
            read(&[0b0001_1111, 0b1001_1010, 0b0000_1010], 5),
            Ok(Some((1337, 3)))
        );
        assert_eq!(read(&[42], 8), Ok(Some((42, 1))));
    }

    #[test]
    fn integers_are_read_as_they_were_written() {
        for prefix in 3..=8 {
            for value in [0, 1, 6, 7, 30, 31, 127, 128, 254, 255, 1337, 1 << 20] {
                let mut out = Vec::new();
                write(0, prefix, value, &mut out);
                assert_eq!(read(&out, prefix), Ok(Some((value as u64, out.len()))));
                assert_eq!(read(&out[..out.len() - 1], prefix), Ok(None));
            }
        }
    }

    #[test]
    fn endless_integers_are_refused() {
        assert_eq!(read(&[0xff; 12], 8), Err(TooLarge));
        assert_eq!(
            read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 8),
            Err(TooLarge)
        );
        assert_eq!(
            read(&[0xff, 0x80, 0x80, 0x80, 0x80, 0x80], 8),
            Err(TooLarge)
        );
    }
}
