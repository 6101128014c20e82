//! Recognises what is spelt as usual, and says nothing about the rest.
//!
//! Whatever is recognised here would be accepted by the byte-wise machines with the same meaning.

use crate::octets;
use crate::runs;

/// A whole field line whose name and value hold only common bytes.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) name: &'a [u8],
    /// With the whitespace around it, but for one space before it.
    pub(crate) value: &'a [u8],
    /// The value and all that follows it.
    pub(crate) from_value: &'a [u8],
    /// What follows the line.
    pub(crate) after: &'a [u8],
}

/// The line that leads `bytes`, if it is whole and plain.
#[inline(always)]
pub(crate) fn line(bytes: &[u8]) -> Option<Line<'_>> {
    let (name, after) = name(bytes)?;
    let from_value = if let [b':', b' ', value @ ..] = after {
        value
    } else {
        after.strip_prefix(b":")?
    };
    let (value, after) = from_value.split_at_checked(runs::value(from_value))?;
    let after = after.strip_prefix(b"\r\n")?;
    (!name.is_empty()).then_some(Line { name, value, from_value, after })
}

/// The token that leads `bytes`, and what follows it.
#[inline(always)]
fn name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, after) = bytes.split_at_checked(runs::letters(bytes))?;
    if let [b':', ..] = after {
        return Some((name, after));
    }
    let more = after.iter().position(|&byte| !octets::is_token(byte))?;
    bytes.split_at_checked(name.len() + more)
}

/// A decimal number of 1 to 18 digits.
#[inline]
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if !matches!(text.len(), 1..=18) {
        return None;
    }
    text.iter().try_fold(0, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(value * 10 + u64::from(digit))
    })
}

/// Whether a line's value is a name of letters, digits, `-` and `.`, with or without a port.
#[inline]
pub(crate) fn host(line: &Line<'_>) -> bool {
    // The value's end is no part of a name, so looking beyond it does no harm and is faster.
    match line.value.split_at_checked(runs::labels(line.from_value)) {
        Some(([_, ..], [])) => true,
        Some(([_, ..], [b':', port @ ..])) if port.len() <= 5 => {
            number(port).is_some_and(|port| port <= u64::from(u16::MAX))
        }
        _ => false,
    }
}

/// The size of a chunk of 1 to 15 hexadecimal digits and the bytes of its line with its CRLF.
#[inline]
pub(crate) fn chunk_size(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut size = 0;
    for (place, &byte) in bytes.iter().enumerate().take(16) {
        match octets::hex(byte) {
            Some(digit) if place < 15 => size = size * 16 + u64::from(digit),
            _ => {
                let line_end = bytes.get(place..)?.first_chunk() == Some(b"\r\n");
                return (line_end && 0 < place).then_some((size, place + 2));
            }
        }
    }
    None
}
