//! A `host` condition: one name, or all names below one.

use crate::host::normal_host;
use crate::pattern_error::PatternError;
use crate::rank::narrow;
use std::fmt;

/// A pattern of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    kind: HostKind,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum HostKind {
    /// This host only.
    Exact(Box<str>),
    /// Hosts with this suffix, which begins with a dot; every host if it is empty.
    Below(Box<str>),
}

impl HostPattern {
    /// Parses `example.com`, `*.example.com` (one or more labels before it, so not `example.com`
    /// itself), `[::1]`, or `*` (every request with a host).
    ///
    /// # Errors
    /// [`PatternError::Host`], [`PatternError::HostPort`] or [`PatternError::Wildcard`].
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let kind = match (text, text.strip_prefix("*.")) {
            ("*", _) => HostKind::Below("".into()),
            (_, Some(parent)) if parent.starts_with('[') => return Err(PatternError::Wildcard),
            (_, Some(parent)) => HostKind::Below(format!(".{}", plain_name(parent)?).into()),
            (name, None) => HostKind::Exact(plain_name(name)?.into()),
        };
        Ok(Self { kind })
    }

    /// Returns true if `host`, in the form of [`normal_host`], matches.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        match &self.kind {
            HostKind::Exact(name) => **name == *host,
            HostKind::Below(suffix) => suffix.len() < host.len() && host.ends_with(&**suffix),
        }
    }

    /// Returns true if every host that matches `other` matches this pattern too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (_, HostKind::Exact(name)) => self.matches(name),
            (HostKind::Exact(_), HostKind::Below(_)) => false,
            (HostKind::Below(wide), HostKind::Below(narrow)) => narrow.ends_with(&**wide),
        }
    }

    /// Rank, greater than any less specific pattern's; 0 is reserved for no pattern.
    pub(crate) fn specificity(&self) -> u32 {
        match &self.kind {
            HostKind::Exact(_) => u32::MAX,
            HostKind::Below(suffix) => narrow(suffix.len()).saturating_add(1),
        }
    }

    pub(crate) fn kind(&self) -> &HostKind {
        &self.kind
    }
}

fn plain_name(text: &str) -> Result<String, PatternError> {
    if text.contains('*') {
        return Err(PatternError::Wildcard);
    }
    let host = normal_host(text)?;
    match host.port {
        None if !text.ends_with(':') => Ok(host.name.into_owned()),
        None | Some(_) => Err(PatternError::HostPort),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            HostKind::Exact(name) => f.write_str(name),
            HostKind::Below(suffix) => write!(f, "*{suffix}"),
        }
    }
}
