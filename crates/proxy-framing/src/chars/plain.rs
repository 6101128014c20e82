//! Recognition of input in common form.
//!
//! Input that is recognised here would be accepted by the byte-wise machines with the same meaning.

#![expect(
    clippy::inline_always,
    reason = "calls would cost a sixth of a head's scan"
)]

use crate::chars;
use crate::chars::runs;

/// A whole field line with only common bytes in its name and value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Length of the name; never 0.
    pub(crate) name_len: usize,
    /// Length of the value with the white space around it, without one space before it.
    pub(crate) value_len: usize,
}

/// The line at the beginning of `bytes`, if it is whole and plain, and the bytes after it.
#[inline(always)]
pub(crate) fn line(bytes: &[u8]) -> Option<(Line, &[u8])> {
    if let [b'\r', ..] = bytes {
        return None;
    }
    let from_colon = runs::after_letters(bytes);
    let (from_colon, from_value) = match from_colon.split_first_chunk() {
        Some((b": ", from_value)) => (from_colon, from_value),
        _ => odd_name(from_colon)?,
    };
    let name_len = bytes.len() - from_colon.len();
    let from_end = runs::after_value(from_value);
    let value_len = from_value.len() - from_end.len();
    match from_end.split_first_chunk() {
        Some((b"\r\n", after)) if 0 < name_len => Some((
            Line {
                name_len,
                value_len,
            },
            after,
        )),
        _ => None,
    }
}

/// The bytes from the colon and from the value on, for a name with other characters than letters or
/// a colon without a space after it.
#[cold]
#[inline(never)]
fn odd_name(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let more = rest.iter().position(|&byte| !chars::is_token(byte))?;
    let from_colon = rest.get(more..)?;
    let from_value = from_colon.strip_prefix(b":")?;
    Some((
        from_colon,
        from_value.strip_prefix(b" ").unwrap_or(from_value),
    ))
}

/// Returns true if the first `len` of `bytes` are a name of letters, digits, `-` and `.`, with or
/// without a port.
#[inline(always)]
pub(crate) fn host(bytes: &[u8], len: usize) -> bool {
    let after_name = runs::after_labels(bytes);
    let name_len = bytes.len() - after_name.len();
    if name_len == len {
        return 0 < len;
    }
    let [b':', port @ ..] = after_name else {
        return false;
    };
    let port_len = port.len() - runs::after_digits(port).len();
    0 < name_len && name_len + 1 + port_len == len && matches!(port_len, 1..=4)
}

/// A decimal number of 1 to 18 digits.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if !matches!(text.len(), 1..=18) {
        return None;
    }
    text.iter().try_fold(0, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(value * 10 + u64::from(digit))
    })
}

/// The size of a chunk of 1 to 15 hexadecimal digits, and the length of its line with its CRLF.
#[inline]
pub(crate) fn chunk_size(bytes: &[u8]) -> Option<(u64, usize)> {
    let digits = bytes.iter().take(16).map_while(|&byte| chars::hex(byte));
    let sum = |(size, len), digit| ((size << 4) | u64::from(digit), len + 1);
    let (size, len) = digits.fold((0, 0), sum);
    let whole = matches!(len, 1..=15) && bytes.get(len..)?.starts_with(b"\r\n");
    whole.then_some((size, len + 2))
}
