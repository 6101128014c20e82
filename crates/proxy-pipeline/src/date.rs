//! The time of day as responses tell it, made once a second.

use crate::state::Worker;
use bytes::Bytes;
use http::HeaderValue;
use std::cell::RefCell;
use std::time::UNIX_EPOCH;

/// The last `Date` that was made, and when.
#[derive(Debug, Default)]
pub(crate) struct DateCache(RefCell<Option<(u32, HeaderValue)>>);

impl Worker {
    /// The value of `Date` for a response that has none. [RFC 9110 §6.6.1]
    pub fn date(&self) -> HeaderValue {
        const TICKS_PER_SECOND: u32 = 10;
        let second = self.clock.now().0 / TICKS_PER_SECOND;
        let mut held = self.date.0.borrow_mut();
        if let Some((made, value)) = &*held
            && *made == second
        {
            return value.clone();
        }
        let now = UNIX_EPOCH + self.time.unix(self.time.elapsed());
        let text = Bytes::from(httpdate::fmt_http_date(now));
        let value = HeaderValue::from_maybe_shared(text);
        let value =
            value.unwrap_or_else(|_| HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
        *held = Some((second, value.clone()));
        value
    }
}
