//! The field `Cache-Status`. [RFC 9211]

use http::HeaderValue;
use std::fmt::Write;

/// Effect of the cache on a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// True if the response is a stored one, not validated for this request.
    pub is_hit: bool,
    /// Why the request went upstream: a word of RFC 9211.
    pub forwarded: Option<&'static str>,
    /// Status of the upstream's response, if it differs from the client's.
    pub forwarded_status: Option<u16>,
    /// Seconds until the stored response is stale; negative if it already is.
    pub rest: Option<i64>,
    /// True if the response is being stored.
    pub is_stored: bool,
    /// True if the response was fetched for another request.
    pub is_collapsed: bool,
    /// A further reason, as a token.
    pub detail: Option<&'static str>,
}

impl CacheStatus {
    /// The member of the field for a cache called `name`, which is a token.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<HeaderValue> {
        let Self {
            is_hit,
            forwarded,
            forwarded_status,
            rest,
            is_stored,
            is_collapsed,
            detail,
        } = *self;
        let mut text = name.to_owned();
        let mut add = |part: std::fmt::Arguments<'_>| {
            // Writing to a string cannot fail.
            let _written = text.write_fmt(part);
        };
        if is_hit {
            add(format_args!("; hit"));
        }
        if let Some(reason) = forwarded {
            add(format_args!("; fwd={reason}"));
        }
        if let Some(status) = forwarded_status {
            add(format_args!("; fwd-status={status}"));
        }
        if let Some(rest) = rest {
            add(format_args!("; ttl={rest}"));
        }
        if is_stored {
            add(format_args!("; stored"));
        }
        if is_collapsed {
            add(format_args!("; collapsed"));
        }
        if let Some(detail) = detail {
            add(format_args!("; detail={detail}"));
        }
        HeaderValue::try_from(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_follow_the_name_in_the_order_of_the_standard() {
        let hit = CacheStatus {
            is_hit: true,
            rest: Some(-3),
            detail: Some("stale-if-error"),
            ..CacheStatus::default()
        };
        assert_eq!(
            hit.value("proxyd").unwrap(),
            "proxyd; hit; ttl=-3; detail=stale-if-error"
        );
        let fetched = CacheStatus {
            forwarded: Some("stale"),
            forwarded_status: Some(304),
            is_stored: true,
            is_collapsed: true,
            ..CacheStatus::default()
        };
        assert_eq!(
            fetched.value("proxyd").unwrap(),
            "proxyd; fwd=stale; fwd-status=304; stored; collapsed"
        );
    }
}
