//! Skipping of common bytes, eight at a time.
//!
//! A word holds eight bytes, the first in the lowest bits. The tests below work on all of them at
//! once, in the seven low bits of each, so that no sum carries into the next byte; the results are
//! the high bits.

#![expect(
    clippy::inline_always,
    reason = "calls would cost a sixth of a head's scan"
)]

const ONES: u64 = u64::MAX / 0xff;
const LOW: u64 = 0x7f * ONES;
const HIGH: u64 = 0x80 * ONES;
const WORD_BYTES: usize = size_of::<u64>();
const BLOCK_BYTES: usize = 16;

/// The rest of `bytes` after its leading letters and `-`, which most names consist of.
#[inline(always)]
pub(crate) fn after_letters(bytes: &[u8]) -> &[u8] {
    let stops = |word: u64| {
        let letters = between((word | (0x20 * ONES)) & LOW, b'a', b'z');
        (!letters & other_than(word & LOW, b'-')) | word
    };
    if let Some((word, after)) = bytes.split_first_chunk() {
        let marks = stops(u64::from_le_bytes(*word)) & HIGH;
        if marks != 0 {
            return from_mark(bytes, marks);
        }
        return find(after, stops);
    }
    find(bytes, stops)
}

/// The rest of `bytes` after its leading letters, digits, `-` and `.`, which most hosts consist
/// of.
#[inline(always)]
pub(crate) fn after_labels(bytes: &[u8]) -> &[u8] {
    find(bytes, |word| {
        let low = word & LOW;
        let letters = between(low | (0x20 * ONES), b'a', b'z');
        let rest = between(low, b'-', b'9') & other_than(low, b'/');
        !(letters | rest) | word
    })
}

/// The rest of `bytes` after its leading digits.
#[inline(always)]
pub(crate) fn after_digits(bytes: &[u8]) -> &[u8] {
    find(bytes, |word| !between(word & LOW, b'0', b'9') | word)
}

/// The rest of `bytes` after its leading bytes that are legal in both a path and a query.
#[inline(always)]
pub(crate) fn after_target(bytes: &[u8]) -> &[u8] {
    find(bytes, |word| {
        let low = word & LOW;
        let angles = other_than(low | (0x02 * ONES), b'>');
        let rest = between(low, b'$', b'~') & other_than(low, b'`');
        !(angles & rest) | word
    })
}

/// The rest of `bytes` after its leading value bytes, tabs excluded.
#[inline(always)]
pub(crate) fn after_value(bytes: &[u8]) -> &[u8] {
    let stops = |word: u64| !(between(word & LOW, b' ', b'~') | word);
    let mut rest = bytes;
    if let Some((word, after)) = rest.split_first_chunk() {
        let marks = stops(u64::from_le_bytes(*word)) & HIGH;
        if marks != 0 {
            return from_mark(rest, marks);
        }
        rest = after;
    }
    while let Some((block, after)) = rest.split_first_chunk::<BLOCK_BYTES>() {
        // The compiler turns this sum into four vector instructions.
        let stops = |byte: u8| u8::from(byte < b' ') | u8::from(byte == 0x7f);
        if block.iter().fold(0, |any, &byte| any | stops(byte)) != 0 {
            break;
        }
        rest = after;
    }
    find(rest, stops)
}

/// Marks the bytes from `first` to `last`; `low` has no high bits.
#[inline(always)]
const fn between(low: u64, first: u8, last: u8) -> u64 {
    let reach = low + (0x80 - first as u64) * ONES;
    let pass = low + (0x7f - last as u64) * ONES;
    reach & !pass
}

/// Marks the bytes other than `byte`; `low` has no high bits.
#[inline(always)]
const fn other_than(low: u64, byte: u8) -> u64 {
    (low ^ (byte as u64 * ONES)) + LOW
}

/// The rest of `bytes` from the first byte that `stops` marks; `stops` must mark a zero byte.
#[inline(always)]
fn find(bytes: &[u8], stops: impl Fn(u64) -> u64) -> &[u8] {
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk() {
        let marks = stops(u64::from_le_bytes(*word)) & HIGH;
        if marks != 0 {
            return from_mark(rest, marks);
        }
        rest = after;
    }
    from_mark(rest, stops(few(rest)) & HIGH)
}

#[inline(always)]
fn from_mark(rest: &[u8], marks: u64) -> &[u8] {
    rest.get(marks.trailing_zeros() as usize / 8..)
        .unwrap_or_default()
}

/// Packs fewer than eight bytes into a word, filled with zeros.
#[cold]
#[inline(never)]
fn few(bytes: &[u8]) -> u64 {
    const HALF: usize = WORD_BYTES / 2;
    if let (Some(first), Some(last)) = (bytes.first_chunk::<HALF>(), bytes.last_chunk::<HALF>()) {
        // The two halves overlap, and agree where they do.
        let last = u64::from(u32::from_le_bytes(*last)) << ((bytes.len() - HALF) * 8);
        return last | u64::from(u32::from_le_bytes(*first));
    }
    bytes
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}
