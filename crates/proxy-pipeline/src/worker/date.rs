//! The `Date` field, formatted once per second.

use bytes::Bytes;
use http::HeaderValue;
use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

/// The last value of `Date`, with its second.
#[derive(Debug, Default)]
pub(crate) struct DateCache(RefCell<Option<(u64, HeaderValue)>>);

impl DateCache {
    /// The value of `Date` in this second since 1970.
    pub(crate) fn value(&self, second: u64) -> HeaderValue {
        let mut held = self.0.borrow_mut();
        if let Some((made, value)) = &*held
            && *made == second
        {
            return value.clone();
        }
        let now = UNIX_EPOCH + Duration::from_secs(second);
        let text = Bytes::from(httpdate::fmt_http_date(now));
        let value = HeaderValue::from_maybe_shared(text);
        let value =
            value.unwrap_or_else(|_| HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
        *held = Some((second, value.clone()));
        value
    }
}
