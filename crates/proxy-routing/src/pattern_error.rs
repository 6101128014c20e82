//! Errors of conditions.

use crate::host::HostError;
use crate::path::PathError;

/// The reason why the text of a condition is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// No request can have this host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host has a port; ports are not compared.
    #[error("a host condition has no port, hosts are compared without it")]
    HostPort,
    /// A `*` other than as the whole of the leading labels.
    #[error("`*` may only replace leading labels, as in `*.example.com`")]
    Wildcard,
    /// No request can have this path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path contains a query or a fragment.
    #[error("a path has no `?` and no `#`; use `query-param` for the query")]
    PathEnd,
    /// The regex contains characters that are always escaped in a canonical path.
    #[error("a path is matched in its escaped form: write `%C3%A9` for `é`")]
    RegexNotAscii,
    /// The regex is malformed; the text shows the position.
    #[error("{0}")]
    RegexSyntax(String),
    /// The compiled regex exceeds this size, in bytes.
    #[error("the compiled regex is larger than {0} bytes")]
    RegexTooLarge(usize),
    /// All regexes of the configuration together exceed this size, in bytes.
    #[error("the regexes up to here take more than {0} bytes together")]
    RegexesTooLarge(usize),
    /// The text is not a header name.
    #[error("not a header name")]
    HeaderName,
    /// The text is not a header value.
    #[error("not a header value")]
    HeaderValue,
    /// The query parameter has no name.
    #[error("a query parameter needs a name")]
    QueryName,
}
