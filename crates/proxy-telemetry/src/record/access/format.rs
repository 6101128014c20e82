//! The format of access records.

/// A field that is written only if the configuration requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalField {
    /// `user_agent`.
    UserAgent,
    /// `referer`, with the same query values redacted as in `path`.
    Referer,
}

/// The format of access records, and of requests in error records. Part of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessFormat {
    /// True if access records are lines of the Combined Log Format in place of JSON.
    pub combined: bool,
    /// Optional fields of a record in JSON.
    pub fields: Vec<OptionalField>,
    /// Names of query parameters with values to be replaced by `REDACTED`, ignoring case.
    pub redact_query: Vec<String>,
}
