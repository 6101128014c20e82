//! The request target, read byte by byte in the form that its method allows.

use crate::authority::Authority;
use crate::chars;

/// The forms of target that a method allows. [RFC 9112 §3.2]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `host:port` only.
    Connect,
    /// A path, an absolute URI, or `*`.
    Options,
    /// `*` only, because it begins the preface of HTTP/2.
    Pri,
    /// A path or an absolute URI.
    Other,
}

/// State of reading a target.
///
/// Paths and queries hold every visible ASCII character but `#`, never a fragment; an absolute URI
/// has the scheme `http` or `https` and no user information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Empty,
    Star,
    Path,
    Query,
    /// Position in `https://`; `http` skips one.
    Scheme(u8),
    /// The authority of an absolute URI.
    Authority(Authority),
    /// The whole target of a `CONNECT`.
    Tunnel(Authority),
}

const SCHEME: &[u8; 8] = b"https://";

impl Target {
    /// Consumes one byte; false if it is not allowed here.
    pub(crate) fn push(&mut self, byte: u8, method: Method) -> bool {
        match self {
            Self::Empty => match first(byte, method) {
                Some(target) => *self = target,
                None => return false,
            },
            Self::Star => return false,
            Self::Path if byte == b'?' => *self = Self::Query,
            Self::Path => return chars::is_path(byte),
            Self::Query => return chars::is_query(byte),
            Self::Scheme(place) => match scheme(*place, byte) {
                Some(target) => *self = target,
                None => return false,
            },
            Self::Authority(host) if host.is_complete() && byte == b'/' => *self = Self::Path,
            Self::Authority(host) if host.is_complete() && byte == b'?' => *self = Self::Query,
            Self::Authority(host) | Self::Tunnel(host) => return host.push(byte),
        }
        true
    }

    /// Returns true if the target may end here.
    pub(crate) fn is_complete(self) -> bool {
        match self {
            Self::Empty | Self::Scheme(_) => false,
            Self::Star | Self::Path | Self::Query => true,
            Self::Authority(host) => host.is_complete(),
            Self::Tunnel(host) => host.has_port(),
        }
    }
}

fn first(byte: u8, method: Method) -> Option<Target> {
    match (method, byte) {
        (Method::Connect, _) => {
            let mut host = Authority::Empty;
            host.push(byte).then_some(Target::Tunnel(host))
        }
        (Method::Options | Method::Pri, b'*') => Some(Target::Star),
        (Method::Options | Method::Other, b'/') => Some(Target::Path),
        (Method::Options | Method::Other, b'h' | b'H') => Some(Target::Scheme(1)),
        (Method::Options | Method::Other | Method::Pri, _) => None,
    }
}

fn scheme(place: u8, byte: u8) -> Option<Target> {
    const COLON: u8 = 5;
    let place = if place + 1 == COLON && byte == b':' {
        COLON
    } else {
        place
    };
    if SCHEME.get(usize::from(place)) != Some(&byte.to_ascii_lowercase()) {
        return None;
    }
    let next = place + 1;
    if usize::from(next) == SCHEME.len() {
        return Some(Target::Authority(Authority::Empty));
    }
    Some(Target::Scheme(next))
}
