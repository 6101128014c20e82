//! Times in documents.

use jiff::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time as RFC 3339 in UTC, with milliseconds.
#[must_use]
pub fn timestamp(time: SystemTime) -> String {
    rfc3339(unix_millis(time))
}

/// Milliseconds since 1970.
pub(super) fn unix_millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time in milliseconds since 1970 as RFC 3339.
pub(super) fn rfc3339(unix_millis: u64) -> String {
    let millis = i64::try_from(unix_millis).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}
