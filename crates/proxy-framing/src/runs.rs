//! Where a run of common bytes ends, told eight bytes at a time.
//!
//! A word holds eight bytes, the first lowest. The tests below work on all of them at once, in the
//! seven low bits of each, so that no sum carries into the next byte; they answer in the high bits.

const ONES: u64 = u64::MAX / 0xff;
const LOW: u64 = 0x7f * ONES;
const HIGH: u64 = 0x80 * ONES;
const WORD: usize = size_of::<u64>();
const BLOCK: usize = 16;

/// How many letters and `-` lead `bytes`: most names are nothing else.
#[inline(always)]
pub(crate) fn letters(bytes: &[u8]) -> usize {
    find(bytes, |word| {
        let letters = between((word | (0x20 * ONES)) & LOW, b'a', b'z');
        (!letters & other_than(word & LOW, b'-')) | word
    })
}

/// How many letters, digits, `-` and `.` lead `bytes`: most hosts are nothing else.
#[inline]
pub(crate) fn labels(bytes: &[u8]) -> usize {
    find(bytes, |word| {
        let low = word & LOW;
        let letters = between(low | (0x20 * ONES), b'a', b'z');
        let rest = between(low, b'-', b'9') & other_than(low, b'/');
        !(letters | rest) | word
    })
}

/// How many bytes that both a path and a query can hold lead `bytes`.
#[inline]
pub(crate) fn target(bytes: &[u8]) -> usize {
    find(bytes, |word| {
        let low = word & LOW;
        let angles = other_than(low | (0x02 * ONES), b'>');
        let rest = between(low, b'$', b'~') & other_than(low, b'`');
        !(angles & rest) | word
    })
}

/// How many bytes of a value lead `bytes`; a tab is not counted among them.
#[inline]
pub(crate) fn value(bytes: &[u8]) -> usize {
    let stops = |word: u64| !(between(word & LOW, b' ', b'~') | word);
    if let Some(word) = bytes.first_chunk::<WORD>() {
        let marks = stops(u64::from_le_bytes(*word)) & HIGH;
        if marks != 0 {
            return marks.trailing_zeros() as usize / 8;
        }
    }
    let clean = |block: &&[u8; BLOCK]| {
        // The compiler makes four vector instructions of this sum.
        !block.iter().fold(false, |any, &byte| any | (byte < b' ') | (byte == 0x7f))
    };
    let (blocks, _) = bytes.as_chunks();
    let skipped = blocks.iter().take_while(clean).count() * BLOCK;
    skipped + find(bytes.get(skipped..).unwrap_or_default(), stops)
}

/// The bytes from `first` to `last`; `low` has no high bits.
#[inline(always)]
const fn between(low: u64, first: u8, last: u8) -> u64 {
    let reach = low + (0x80 - first as u64) * ONES;
    let pass = low + (0x7f - last as u64) * ONES;
    reach & !pass
}

/// The bytes that are not `byte`; `low` has no high bits.
#[inline(always)]
const fn other_than(low: u64, byte: u8) -> u64 {
    (low ^ (byte as u64 * ONES)) + LOW
}

/// How many bytes there are before the first that `stops` marks; it must mark a zero byte.
#[inline(always)]
fn find(bytes: &[u8], stops: impl Fn(u64) -> u64) -> usize {
    let (words, rest) = bytes.as_chunks();
    for (place, word) in words.iter().enumerate() {
        let marks = stops(u64::from_le_bytes(*word)) & HIGH;
        if marks != 0 {
            return place * WORD + marks.trailing_zeros() as usize / 8;
        }
    }
    let marks = stops(last(rest)) & HIGH;
    words.len() * WORD + marks.trailing_zeros() as usize / 8
}

/// Fewer than eight bytes, and zeroes.
#[inline(never)]
fn last(bytes: &[u8]) -> u64 {
    const HALF: usize = WORD / 2;
    if let (Some(first), Some(last)) = (bytes.first_chunk::<HALF>(), bytes.last_chunk::<HALF>()) {
        // They overlap, and agree where they do.
        let shift = (bytes.len() - HALF) as u32 * 8;
        let last = u64::from(u32::from_le_bytes(*last)) << shift;
        return last | u64::from(u32::from_le_bytes(*first));
    }
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}
