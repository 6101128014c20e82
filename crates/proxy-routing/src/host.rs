//! Normalization of hosts.

use crate::byte_set::ByteSet;
use std::borrow::Cow;
use std::net::Ipv6Addr;

/// Maximum length of a host name, in bytes; a DNS name has at most 253.
const MAX_NAME_BYTES: usize = 255;
/// Characters of a registered name, without upper case and escapes. [RFC 3986 §3.2.2]
const NAME: ByteSet = ByteSet::new(b"0123456789abcdefghijklmnopqrstuvwxyz-._~!$&'()*+,;=");

const DOT: u8 = 1;
const CAPITAL: u8 = 2;
/// The class of bytes that are not allowed in names.
const FORBIDDEN: u8 = 4;

/// The class of each byte.
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

/// The class of `byte`; 0 if it needs no treatment.
const fn class(byte: u8) -> u8 {
    match byte {
        b'.' => DOT,
        b'A'..=b'Z' => CAPITAL,
        _ if NAME.has(byte) => 0,
        _ => FORBIDDEN,
    }
}

/// A host with its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host<'a> {
    /// Lower case, without port and trailing dot; IPv6 literals in brackets and in the short form
    /// of RFC 5952. Borrowed if it was written so.
    pub name: Cow<'a, str>,
    /// The port; `None` if none was written.
    pub port: Option<u16>,
}

/// The reason why a host is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The name is empty.
    #[error("the host is empty")]
    Empty,
    /// The name is longer than 255 bytes.
    #[error("the host is longer than 255 bytes")]
    TooLong,
    /// The name contains a byte that is not allowed in host names, such as `%` or `@`.
    #[error("the host holds a character that is not allowed")]
    Character,
    /// Two dots in a row, or a leading dot.
    #[error("the host holds an empty label")]
    EmptyLabel,
    /// The text after the colon is not a number from 0 to 65535.
    #[error("the port is not a number from 0 to 65535")]
    Port,
    /// The brackets do not contain an IPv6 address.
    #[error("the brackets do not hold an IPv6 address")]
    Literal,
}

/// Parses `host [":" port]` as in `Host`, `:authority` or a request target.
///
/// The grammar is RFC 3986 §3.2.2 without forms that HTTP does not use: percent-encoded names,
/// empty labels, zone identifiers and future address forms are refused.
///
/// # Errors
/// The text is invalid for the reason in [`HostError`].
pub fn normal_host(text: &str) -> Result<Host<'_>, HostError> {
    if is_normal_name(text) {
        return Ok(Host {
            name: Cow::Borrowed(text),
            port: None,
        });
    }
    let (name, port) = split(text)?;
    let name = match name.strip_prefix('[') {
        Some(inner) => literal(name, inner)?,
        None => registered_name(name)?,
    };
    Ok(Host { name, port })
}

/// Returns true if `text` is a registered name in normal form, without a port: one pass over most
/// hosts.
#[inline]
fn is_normal_name(text: &str) -> bool {
    let (mut before, mut odd) = (DOT, 0);
    for byte in text.bytes() {
        let class = CLASSES.get(usize::from(byte)).copied().unwrap_or(FORBIDDEN);
        odd |= class & (before | CAPITAL | FORBIDDEN);
        before = class;
    }
    odd == 0 && before != DOT && text.len() <= MAX_NAME_BYTES
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
        let class = CLASSES.get(usize::from(byte)).copied().unwrap_or(FORBIDDEN);
        empty |= class & before & DOT;
        all |= class;
        before = class;
    }
    if all & FORBIDDEN != 0 {
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
