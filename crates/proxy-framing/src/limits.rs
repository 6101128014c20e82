//! Limits on the size of a head.

pub(crate) mod measured;

/// Limits on one message's head and on its trailers.
///
/// Four of them are settings of the `limits` block. Each is exact: a size equal to the limit is
/// accepted, one more is a [`FramingError`](crate::error::FramingError) of the class
/// [`Limit`](crate::error::FramingErrorKind::Limit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Maximum size of the field section, in bytes: all field lines with their CRLF, without the
    /// start line and the empty line at the end.
    ///
    /// A trailer section has the same limit, and at most 16 381 bytes.
    pub max_head_bytes: u32,
    /// Maximum number of field lines in one section; values above 16 384 count as 16 384.
    pub max_header_count: u32,
    /// Maximum length of a field name, in bytes; values above 65 535 count as 65 535.
    pub max_name_bytes: u32,
    /// Maximum length of a field value without the white space around it, in bytes.
    pub max_value_bytes: u32,
    /// Maximum length of a request target, or of a response's reason phrase, in bytes; values above
    /// 65 534 count as 65 534.
    pub max_target_bytes: u32,
}

impl HeadLimits {
    /// These limits, reduced to the capacity of the `http` crate.
    pub(crate) fn held(self) -> Self {
        let Self {
            max_head_bytes,
            max_header_count,
            max_name_bytes,
            max_value_bytes,
            max_target_bytes,
        } = self;
        Self {
            max_head_bytes,
            max_header_count: max_header_count.min(16_384),
            max_name_bytes: max_name_bytes.min(65_535),
            max_value_bytes,
            max_target_bytes: max_target_bytes.min(65_534),
        }
    }
}
