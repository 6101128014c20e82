//! `host[:port]` in a request target or in `Host`, read byte by byte.

use crate::chars::{self, plain};

/// Returns true if `text` is a host, with or without a port, that the validators accept in `Host`
/// or `:authority`. [RFC 9110 §7.2, RFC 3986 §3.2]
#[must_use]
pub fn is_host(text: &[u8]) -> bool {
    if plain::host(text, text.len()) {
        return true;
    }
    let mut seen = Authority::Empty;
    text.iter().all(|&byte| seen.push(byte)) && seen.is_complete()
}

/// State of reading a `host[:port]`. [RFC 9110 §4.2, RFC 3986 §3.2]
///
/// Stricter than the grammar, and always accepted by `http::uri::Authority`: names contain
/// unreserved bytes only (no `%`, no commas, no user information), an IP literal contains
/// hexadecimal digits, dots and at most eight colons, a port is below 65 536.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authority {
    Empty,
    Name,
    Literal { len: u8, colons: u8 },
    LiteralEnd,
    Port { digits: u8, value: u16 },
}

impl Authority {
    /// Consumes one byte; false if it is not allowed here.
    pub(crate) fn push(&mut self, byte: u8) -> bool {
        let next = match (*self, byte) {
            (Self::Empty, b'[') => Some(Self::Literal { len: 0, colons: 0 }),
            (Self::Empty | Self::Name, _) if chars::is_unreserved(byte) => Some(Self::Name),
            (Self::Name | Self::LiteralEnd, b':') => Some(Self::Port {
                digits: 0,
                value: 0,
            }),
            (Self::Literal { len, colons }, _) => literal(len, colons, byte),
            (Self::Port { digits, value }, b'0'..=b'9') => port(digits, value, byte),
            (Self::Empty | Self::Name | Self::LiteralEnd | Self::Port { .. }, _) => None,
        };
        if let Some(next) = next {
            *self = next;
        }
        next.is_some()
    }

    /// Returns true if a host, with or without a port, is complete.
    pub(crate) fn is_complete(self) -> bool {
        matches!(self, Self::Name | Self::LiteralEnd | Self::Port { .. })
    }

    /// Returns true if a host with a port of at least one digit is complete.
    pub(crate) fn has_port(self) -> bool {
        matches!(self, Self::Port { digits: 1.., .. })
    }
}

fn literal(len: u8, colons: u8, byte: u8) -> Option<Authority> {
    const MAX_LITERAL_CHARS: u8 = 45;
    const MAX_COLONS: u8 = 8;
    let colons = colons + u8::from(byte == b':');
    match byte {
        b']' if 1 < len => Some(Authority::LiteralEnd),
        b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b'.' | b':'
            if len < MAX_LITERAL_CHARS && colons <= MAX_COLONS =>
        {
            Some(Authority::Literal {
                len: len + 1,
                colons,
            })
        }
        _ => None,
    }
}

fn port(digits: u8, value: u16, byte: u8) -> Option<Authority> {
    const MAX_PORT_DIGITS: u8 = 5;
    let digit = u16::from(byte.wrapping_sub(b'0'));
    let value = value.checked_mul(10)?.checked_add(digit)?;
    (digits < MAX_PORT_DIGITS).then_some(Authority::Port {
        digits: digits + 1,
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for host in [
            "a.test",
            "a_b",
            "A-1.test:80",
            "[::1]",
            "[::1]:80",
            "127.0.0.1",
            "a.:",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for other in [
            "",
            " ",
            ":80",
            "a b",
            "a,b",
            "me@a",
            "a/",
            "a?b",
            "a#b",
            "a:b",
            "a:65536",
            "[::1",
            "[::1]x",
            "a%41",
            "a\r\nb",
            "caf\u{e9}",
        ] {
            assert!(!is_host(other.as_bytes()), "{other:?}");
        }
    }
}
