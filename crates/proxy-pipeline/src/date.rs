//! The `Date` field, formatted once per second.

use crate::state::Worker;
use bytes::Bytes;
use http::HeaderValue;
use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

/// The last value of `Date`, with its second.
#[derive(Debug, Default)]
pub(crate) struct DateCache(RefCell<Option<(u64, HeaderValue)>>);

impl Worker {
    /// The value of `Date` for a response that has none. [RFC 9110 §6.6.1]
    pub fn date(&self) -> HeaderValue {
        let second = self.time.unix_second();
        let mut held = self.date.0.borrow_mut();
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
