//! The host of a request in the one form that is compared.

use crate::byte_set::ByteSet;
use std::borrow::Cow;
use std::net::Ipv6Addr;

/// Longest host name, in bytes; a DNS name has at most 253.
const MAX_NAME_BYTES: usize = 255;
/// Characters of a registered name, less capitals and escapes. [RFC 3986 §3.2.2]
const NAME: ByteSet = ByteSet::of(b"0123456789abcdefghijklmnopqrstuvwxyz-._~!$&'()*+,;=");

const DOT: u8 = 1;
const CAPITAL: u8 = 2;
/// Of bytes that no name may hold.
const ALIEN: u8 = 4;

/// What each byte is in a name.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut rest: &mut [u8] = &mut classes;
    let mut byte = 0_u8;
    while let [place, behind @ ..] = rest {
        *place = class(byte);
        byte = byte.wrapping_add(1);
        rest = behind;
    }
    classes
};

/// What `byte` is in a name; 0 if it is nothing special.
const fn class(byte: u8) -> u8 {
    match byte {
        b'.' => DOT,
        b'A'..=b'Z' => CAPITAL,
        _ if NAME.has(byte) => 0,
        _ => ALIEN,
    }
}

/// A host and the port written after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host<'a> {
    /// Lower case, without port and trailing dot; IPv6 literals in brackets and in the short form
    /// of RFC 5952. Borrowed when it was written so.
    pub name: Cow<'a, str>,
    /// The port, if one was written.
    pub port: Option<u16>,
}

/// Why a host was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// There is no name.
    #[error("the host is empty")]
    Empty,
    /// The name is longer than 255 bytes.
    #[error("the host is longer than 255 bytes")]
    TooLong,
    /// A byte that no host name may hold; `%` and `@` are among them.
    #[error("the host holds a character that is not allowed")]
    Character,
    /// Two dots in a row, or a leading dot.
    #[error("the host holds an empty label")]
    EmptyLabel,
    /// What follows the colon is not a number from 0 to 65535.
    #[error("the port is not a number from 0 to 65535")]
    Port,
    /// The brackets do not hold an IPv6 address.
    #[error("the brackets do not hold an IPv6 address")]
    Literal,
}

/// Reads `host [":" port]` as it stands in `Host`, `:authority` or a request target.
///
/// The grammar is RFC 3986 §3.2.2 less what HTTP has no use for: percent-encoded names, empty
/// labels, zone identifiers and future address forms are refused.
///
/// # Errors
/// [`HostError`] says what is wrong with the text.
pub fn normal_host(text: &str) -> Result<Host<'_>, HostError> {
    let (name, port) = split(text)?;
    let name = match name.strip_prefix('[') {
        Some(inner) => literal(name, inner)?,
        None => registered_name(name)?,
    };
    Ok(Host { name, port })
}

fn split(text: &str) -> Result<(&str, Option<u16>), HostError> {
    let after = if text.starts_with('[') {
        text.find(']').ok_or(HostError::Literal)? + 1
    } else {
        text.bytes()
            .position(|byte| byte == b':')
            .unwrap_or(text.len())
    };
    let (name, rest) = text.split_at(after);
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok((name, None)),
        None => Err(HostError::Literal),
        Some("") => Ok((name, None)),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let port = digits.parse().map_err(|_| HostError::Port)?;
            Ok((name, Some(port)))
        }
        Some(_) => Err(HostError::Port),
    }
}

fn literal<'a>(whole: &'a str, inner: &str) -> Result<Cow<'a, str>, HostError> {
    let address: Ipv6Addr = inner
        .strip_suffix(']')
        .and_then(|text| text.parse().ok())
        .ok_or(HostError::Literal)?;
    let short = format!("[{address}]");
    if short == whole {
        Ok(Cow::Borrowed(whole))
    } else {
        Ok(Cow::Owned(short))
    }
}

fn registered_name(name: &str) -> Result<Cow<'_, str>, HostError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    if MAX_NAME_BYTES < name.len() {
        return Err(HostError::TooLong);
    }
    let mut before = DOT;
    let (mut all, mut empty) = (0, 0);
    for byte in name.bytes() {
        let class = CLASSES.get(usize::from(byte)).copied().unwrap_or(ALIEN);
        empty |= class & before & DOT;
        all |= class;
        before = class;
    }
    if all & ALIEN != 0 {
        return Err(HostError::Character);
    }
    if (empty | before) & DOT != 0 {
        return Err(HostError::EmptyLabel);
    }
    if all & CAPITAL != 0 {
        Ok(Cow::Owned(name.to_ascii_lowercase()))
    } else {
        Ok(Cow::Borrowed(name))
    }
}
