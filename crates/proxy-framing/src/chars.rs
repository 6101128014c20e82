//! Character classes of the HTTP grammar, for single bytes.

pub(crate) mod plain;
pub(crate) mod runs;

/// A byte of a token. [RFC 9110 §5.6.2]
pub(crate) const fn is_token(byte: u8) -> bool {
    matches!(byte,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.'
        | b'^' | b'_' | b'`' | b'|' | b'~')
}

/// A byte of a field's value, whitespace included. [RFC 9110 §5.5]
pub(crate) const fn is_value(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// A byte of a path: every visible ASCII character except those that begin a query or a fragment.
/// Clients send `"`, `<`, `>`, `` ` ``, `{`, `}`, `|` and `^` unescaped.
pub(crate) const fn is_path(byte: u8) -> bool {
    matches!(byte, b'!' | b'"' | b'$'..=b'>' | b'@'..=b'~')
}

/// A byte of a query: one of a path, or `?`.
pub(crate) const fn is_query(byte: u8) -> bool {
    matches!(byte, b'!' | b'"' | b'$'..=b'~')
}

/// Returns true if the URI of the `http` crate holds this byte of a path or a query only escaped,
/// though it is one of those that clients send unescaped.
#[must_use]
pub const fn needs_escape_in_uri(byte: u8, in_query: bool) -> bool {
    match byte {
        b'<' | b'>' => true,
        b'`' => !in_query,
        b'"' => in_query,
        _ => false,
    }
}

/// Escapes those bytes of `target`, a path with or without a query, that framing accepts and the
/// URI of the `http` crate does not. The escaped target is equivalent.
#[cold]
#[must_use]
pub fn escaped_for_uri(target: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(target.len() + 16);
    let mut in_query = false;
    for &byte in target {
        in_query |= byte == b'?';
        if needs_escape_in_uri(byte, in_query) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(byte);
        }
    }
    out
}

/// A byte of a registered name that needs no escaping. [RFC 3986 §2.3]
pub(crate) const fn is_unreserved(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~')
}

/// The value of a hexadecimal digit.
#[inline]
pub(crate) const fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
