//! Why a condition of a rule was refused.

use crate::host::HostError;
use crate::path::PathError;

/// What is wrong with the text of a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The host cannot stand in any request.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host has a port; ports are not compared.
    #[error("a host condition has no port, hosts are compared without it")]
    HostPort,
    /// A `*` that does not stand alone for the leading labels.
    #[error("`*` may only stand for leading labels, as in `*.example.com`")]
    Wildcard,
    /// The path cannot stand in any request.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path goes on into a query or a fragment.
    #[error("a path has no `?` and no `#`; use `query-param` for the query")]
    PathEnd,
    /// The regex holds characters that a canonical path holds in escaped form only.
    #[error("a path is matched in its escaped form: write `%C3%A9` for `é`")]
    RegexNotAscii,
    /// The regex cannot be read; the text shows where.
    #[error("{0}")]
    RegexSyntax(String),
    /// The regex needs more memory than one may have.
    #[error("the compiled regex is larger than {0} bytes")]
    RegexTooLarge(usize),
    /// Not a header field's name.
    #[error("not a header name")]
    HeaderName,
    /// Not a value that a header field can have.
    #[error("not a header value")]
    HeaderValue,
    /// A query parameter without a name.
    #[error("a query parameter needs a name")]
    QueryName,
}
