//! Search for a byte that is expected nearby.

/// Length above which a search with wider registers is worth its start-up cost.
const SHORT_SEARCH_BYTES: usize = 64;

const WORD_BYTES: usize = size_of::<u64>();
const ONES: u64 = u64::MAX / 0xff;
const HIGH: u64 = 0x80 * ONES;

/// Position of the first `wanted` in `bytes`.
///
/// Tests eight bytes at a time. A zero byte in `differs` is a match: subtracting one then borrows
/// from its high bit. The lowest such bit is exact, because no lower byte has borrowed.
#[inline]
pub(crate) fn position(wanted: u8, bytes: &[u8]) -> Option<usize> {
    let pattern = ONES * u64::from(wanted);
    let mut rest = bytes;
    let mut at = 0;
    while at < SHORT_SEARCH_BYTES
        && let Some((word, after)) = rest.split_first_chunk::<WORD_BYTES>()
    {
        let differs = u64::from_le_bytes(*word) ^ pattern;
        let found = differs.wrapping_sub(ONES) & !differs & HIGH;
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += WORD_BYTES;
        rest = after;
    }
    Some(at + memchr::memchr(wanted, rest)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_is_found_wherever_it_is() {
        for before in 0..200 {
            for filler in [0_u8, b';', b'9', 0xff, b':' - 1, b':' | 0x80] {
                let mut bytes = vec![filler; before];
                assert_eq!(position(b':', &bytes), None);
                bytes.extend_from_slice(b":a:");
                assert_eq!(position(b':', &bytes), Some(before));
            }
        }
    }
}
