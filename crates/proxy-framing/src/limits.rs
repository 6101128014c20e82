//! How large a head may be.

/// Bounds on one message's head, and on its trailers.
///
/// Four of them are settings of the `limits` block; each is told exactly: the bound itself is
/// allowed, one more is a [`FramingError`](crate::Fault) of the group
/// [`Limit`](crate::FaultGroup::Limit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Most bytes of the field section: all field lines with their CRLF, without the start line
    /// and without the empty line at the end.
    ///
    /// A trailer section is bounded by this too, and never longer than 16 381 bytes.
    pub max_head_bytes: u32,
    /// Most field lines in one section. More than 16 384 counts as 16 384.
    pub max_header_count: u32,
    /// Longest field name, in bytes. More than 65 535 counts as 65 535.
    pub max_name_bytes: u32,
    /// Longest field value without the whitespace around it, in bytes.
    pub max_value_bytes: u32,
    /// Longest request target, or reason phrase of a response, in bytes. More than 65 534 counts
    /// as 65 534.
    pub max_target_bytes: u32,
}

impl HeadLimits {
    /// These limits, cut down to what the `http` crate can hold without refusing or panicking.
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
