//! The format of access records.

use super::line_format::LineFormat;
use std::sync::Arc;

/// A field that is written only if the configuration requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalField {
    /// `user_agent`.
    UserAgent,
    /// `referer`, with the same query values redacted as in `path`.
    Referer,
}

/// The syntax of an access record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LineSyntax {
    /// An object in JSON.
    #[default]
    Json,
    /// A line of the Combined Log Format.
    Combined,
    /// A line in a format of the configuration.
    Custom(Arc<LineFormat>),
}

/// The format of access records, and of requests in error records. Part of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessFormat {
    /// Syntax of access records.
    pub line: LineSyntax,
    /// Optional fields of a record in JSON.
    pub fields: Vec<OptionalField>,
    /// Names of query parameters with values to be replaced by `REDACTED`, ignoring case.
    pub redact_query: Vec<String>,
}
