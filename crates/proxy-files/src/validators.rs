//! Validators: `ETag` and `Last-Modified`. [RFC 9110 §8.8]

use http::HeaderValue;
use proxy_coding::Coding;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `ETag` and `Last-Modified` of one representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validators {
    /// A strong tag, made of the time of the last change to the nanosecond, the size, and the
    /// coding.
    pub(crate) tag: HeaderValue,
    /// The last change in seconds since 1970; `None` where the file system has no time.
    pub(crate) changed_s: Option<u64>,
}

impl Validators {
    /// Validators of a file of this size, last changed at `changed`. A time in the future is
    /// replaced by `now`. [RFC 9110 §8.8.2.1]
    pub(crate) fn new(
        changed: Option<SystemTime>,
        size_bytes: u64,
        coding: Option<Coding>,
        now: SystemTime,
    ) -> Self {
        let since_1970 = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
        let changed = changed.and_then(since_1970);
        let nanos = changed.unwrap_or_default().as_nanos();
        let (dash, coding) = coding.map_or(("", ""), |coding| ("-", coding.name()));
        let tag = HeaderValue::try_from(format!("\"{nanos:x}-{size_bytes:x}{dash}{coding}\""));
        let last_modified = changed.map(|changed| changed.min(since_1970(now).unwrap_or_default()));
        Self {
            tag: tag.unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
            changed_s: last_modified.as_ref().map(Duration::as_secs),
        }
    }

    pub(crate) fn last_modified(&self) -> Option<HeaderValue> {
        let time = UNIX_EPOCH + Duration::from_secs(self.changed_s?);
        HeaderValue::try_from(httpdate::fmt_http_date(time)).ok()
    }
}
