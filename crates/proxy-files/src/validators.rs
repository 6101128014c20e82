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
    /// The second of the last change is over, so that a further change has another time. Until then,
    /// the time is a weak validator. [RFC 9110 §8.8.2.2]
    pub(crate) is_settled: bool,
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
        let now_s = since_1970(now).unwrap_or_default().as_secs();
        let changed_s = changed.map(|changed| changed.as_secs().min(now_s));
        Self {
            tag: tag.unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
            changed_s,
            is_settled: changed_s.is_some_and(|changed| changed < now_s),
        }
    }

    /// Value of `Last-Modified`. Omitted until the second of the last change is over: a client could
    /// not tell the state of the file that it got from a later one of the same second, and a range
    /// by `If-Range` would mix the two.
    pub(crate) fn last_modified(&self) -> Option<HeaderValue> {
        if !self.is_settled {
            return None;
        }
        let time = UNIX_EPOCH + Duration::from_secs(self.changed_s?);
        HeaderValue::try_from(httpdate::fmt_http_date(time)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_change_is_named_when_its_second_is_over() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        let named = |now| Validators::new(Some(at(100_200)), 1, None, at(now)).last_modified();
        assert_eq!(named(100_200), None);
        assert_eq!(named(100_999), None);
        // The clock was set back.
        assert_eq!(named(90_000), None);
        let expected = HeaderValue::from_static("Thu, 01 Jan 1970 00:01:40 GMT");
        assert_eq!(named(101_000), Some(expected));
    }
}
