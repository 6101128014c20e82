//! Normalization of paths.

pub(crate) mod readings;

use crate::byte_set::ByteSet;
use std::borrow::Cow;

/// Characters with the same meaning escaped and unescaped. [RFC 3986 §2.3]
pub(crate) const UNRESERVED: ByteSet =
    ByteSet::new(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~");
/// Characters that need no escape in a path, and the separator. [RFC 3986 §3.3]
pub(crate) const PATH: ByteSet = ByteSet::new(
    b"/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~!$&'()*+,;=:@",
);

/// The reason why a path is ambiguous or invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// `%2F`, which some servers treat as a separator.
    #[error("the path holds an encoded slash")]
    EncodedSlash,
    /// `%5C` or a raw `\`, which some servers treat as a separator.
    #[error("the path holds a backslash")]
    Backslash,
    /// `%00` or a raw NUL, at which some servers end the path.
    #[error("the path holds a NUL")]
    Nul,
    /// A `%` without two hexadecimal digits.
    #[error("the path holds a broken percent escape")]
    BadEscape,
    /// More `..` segments than segments before them.
    #[error("the path leaves its root")]
    LeavesRoot,
    /// More dot segments than are examined one by one.
    #[error("the path holds too many dot segments")]
    DotSegments,
    /// The path has neither a leading `/` nor the asterisk form.
    #[error("the path does not begin with a slash")]
    NotAbsolute,
}

/// The path for matching.
///
/// Escapes of unreserved characters are decoded [RFC 3986 §6.2.2.2], other escapes are kept with
/// upper-case digits, bytes that are not allowed unescaped are escaped, dot segments are removed
/// [RFC 3986 §5.2.4], `//` is kept. An empty path becomes `/`; `*` [RFC 9112 §3.2.4] is kept. The
/// result is ASCII, and canonical: normalizing it again returns it. A canonical path is borrowed.
///
/// # Errors
/// The first [`PathError`] found.
pub fn canonical_path(raw: &str) -> Result<Cow<'_, str>, PathError> {
    match forgiving_path(raw) {
        (path, None) => Ok(path),
        (_, Some(fault)) => Err(fault),
    }
}

/// Like [`canonical_path`], for callers that accept invalid paths: returns the path and the first
/// error; offending bytes are escaped and `..` stops at the root. A path that does not begin with a
/// slash is returned unchanged.
pub fn forgiving_path(raw: &str) -> (Cow<'_, str>, Option<PathError>) {
    if is_canonical(raw.as_bytes()) || raw == "*" {
        return (Cow::Borrowed(raw), None);
    }
    if raw.is_empty() {
        return (Cow::Borrowed("/"), None);
    }
    if !raw.starts_with('/') {
        return (Cow::Borrowed(raw), Some(PathError::NotAbsolute));
    }
    let (text, unescaping) = unescape(raw);
    let (path, left_root) = without_dot_segments(&text);
    let leaving = left_root.then_some(PathError::LeavesRoot);
    (Cow::Owned(path), unescaping.or(leaving))
}

fn is_canonical(path: &[u8]) -> bool {
    let mut rest = path;
    let mut before = 0;
    while let [byte, tail @ ..] = rest {
        rest = match byte {
            b'.' if before == b'/' && ends_dot_segment(tail) => return false,
            b'%' => match kept_escape(tail) {
                Some(after) => after,
                None => return false,
            },
            _ if PATH.has(*byte) => tail,
            _ => return false,
        };
        before = *byte;
    }
    path.first() == Some(&b'/')
}

pub(crate) fn ends_dot_segment(after_dot: &[u8]) -> bool {
    matches!(after_dot, [] | [b'/', ..] | [b'.'] | [b'.', b'/', ..])
}

/// The bytes after an escape that is already in canonical form.
fn kept_escape(after_percent: &[u8]) -> Option<&[u8]> {
    let [high, low, after @ ..] = after_percent else {
        return None;
    };
    let upper = !high.is_ascii_lowercase() && !low.is_ascii_lowercase();
    let byte = escaped_byte(*high, *low)?;
    let kept = upper && !UNRESERVED.has(byte) && escape_fault(byte).is_none();
    kept.then_some(after)
}

fn unescape(raw: &str) -> (String, Option<PathError>) {
    let mut text = String::with_capacity(raw.len());
    let mut first = None;
    let mut rest = raw.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        let fault = match (byte, tail) {
            (b'%', [high, low, after @ ..]) if escaped_byte(*high, *low).is_some() => {
                let byte = escaped_byte(*high, *low).unwrap_or_default();
                rest = after;
                push(&mut text, byte, UNRESERVED.has(byte));
                escape_fault(byte)
            }
            (b'%', _) => {
                push(&mut text, b'%', false);
                Some(PathError::BadEscape)
            }
            (byte, _) => {
                push(&mut text, *byte, PATH.has(*byte));
                escape_fault(*byte).filter(|_| *byte != b'/')
            }
        };
        first = first.or(fault);
    }
    (text, first)
}

pub(crate) fn push(text: &mut String, byte: u8, raw: bool) {
    if raw {
        text.push(char::from(byte));
        return;
    }
    text.push('%');
    text.push(upper_hex(byte >> 4));
    text.push(upper_hex(byte & 0x0F));
}

pub(crate) fn without_dot_segments(path: &str) -> (String, bool) {
    let mut out = String::with_capacity(path.len());
    let mut left_root = false;
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." => {}
            ".." => match out.rfind('/') {
                Some(parent) => out.truncate(parent),
                None => left_root = true,
            },
            _ => {
                out.push('/');
                out.push_str(segment);
                continue;
            }
        }
        if segments.peek().is_none() {
            out.push('/');
        }
    }
    (out, left_root)
}

fn escape_fault(byte: u8) -> Option<PathError> {
    match byte {
        b'/' => Some(PathError::EncodedSlash),
        b'\\' => Some(PathError::Backslash),
        0 => Some(PathError::Nul),
        _ => None,
    }
}

pub(crate) fn escaped_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

fn upper_hex(digit: u8) -> char {
    let digit = char::from_digit(u32::from(digit), 16).unwrap_or('0');
    digit.to_ascii_uppercase()
}
