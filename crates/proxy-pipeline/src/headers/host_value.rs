//! The value of `Host` for requests with the host in their target.

use http::HeaderValue;
use std::cell::RefCell;

/// Creates and caches `Host` values: clients of HTTP/2 send the same host again and again.
#[derive(Debug)]
pub(crate) struct HostValue(RefCell<HeaderValue>);

impl Default for HostValue {
    fn default() -> Self {
        Self(RefCell::new(HeaderValue::from_static("")))
    }
}

impl HostValue {
    /// `None` if `host` is not a valid field value.
    pub(crate) fn get(&self, host: &str) -> Option<HeaderValue> {
        let mut last = self.0.borrow_mut();
        if last.as_bytes() != host.as_bytes() {
            *last = HeaderValue::from_str(host).ok()?;
        }
        Some(last.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_logged_unchanged() {
        let values = HostValue::default();
        for host in ["a.test", "a.test", "b.test:81", "", "a.test"] {
            assert_eq!(values.get(host).unwrap(), host);
        }
        assert_eq!(values.get("a\nb"), None);
        assert_eq!(values.get("a.test").unwrap(), "a.test");
    }
}
