//! The `Date` field, formatted once per second.

use bytes::Bytes;
use http::HeaderValue;
use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

/// The last value of `Date`, with its second.
#[derive(Debug, Default)]
pub(crate) struct DateCache(RefCell<Option<(u64, HeaderValue)>>);

impl DateCache {
    /// Lends the value of `Date` in this second since 1970.
    #[inline]
    pub(crate) fn with<T>(&self, second: u64, read: impl FnOnce(&HeaderValue) -> T) -> T {
        if let Some((made, value)) = &*self.0.borrow()
            && *made == second
        {
            return read(value);
        }
        read(&self.renew(second))
    }

    #[cold]
    fn renew(&self, second: u64) -> HeaderValue {
        let now = UNIX_EPOCH + Duration::from_secs(second);
        let text = Bytes::from(httpdate::fmt_http_date(now));
        let value = HeaderValue::from_maybe_shared(text);
        let value =
            value.unwrap_or_else(|_| HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
        self.0.replace(Some((second, value.clone())));
        value
    }
}
