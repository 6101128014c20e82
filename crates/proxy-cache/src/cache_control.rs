//! `Cache-Control` of requests and responses. [RFC 9111 §5.2, RFC 5861]

use http::HeaderMap;
use http::header::{CACHE_CONTROL, PRAGMA};

/// Maximum of a directive in seconds; larger values are reduced to it. [RFC 9111 §1.2.2]
const MAX_SECONDS: u32 = 1 << 31;

/// Directives of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// True for `no-store`.
    pub no_store: bool,
    /// True for `no-cache`, or `Pragma: no-cache` without `Cache-Control`.
    pub no_cache: bool,
    /// True for `only-if-cached`.
    pub only_if_cached: bool,
    /// `max-age`, in seconds.
    pub max_age: Option<u32>,
    /// `min-fresh`, in seconds.
    pub min_fresh: Option<u32>,
    /// `max-stale`, in seconds; without a value any staleness.
    pub max_stale: Option<u32>,
}

/// Directives of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each directive")]
pub struct ResponseDirectives {
    /// True for `no-store`, or a field that cannot be read.
    pub no_store: bool,
    /// True for `no-cache`, with or without field names.
    pub no_cache: bool,
    /// True for `private`, with or without field names.
    pub private: bool,
    /// True if `no-cache` or `private` names `Set-Cookie`: the response may be stored without that
    /// field.
    pub excepts_cookies: bool,
    /// True for `public`.
    pub public: bool,
    /// True for `must-revalidate`.
    pub must_revalidate: bool,
    /// True for `proxy-revalidate`.
    pub proxy_revalidate: bool,
    /// True for `must-understand`.
    pub must_understand: bool,
    /// `max-age`, in seconds; 0 for one that is not a number.
    pub max_age: Option<u32>,
    /// `s-maxage`, in seconds; 0 for one that is not a number.
    pub s_maxage: Option<u32>,
    /// `stale-while-revalidate`, in seconds.
    pub stale_while_revalidate: Option<u32>,
    /// `stale-if-error`, in seconds.
    pub stale_if_error: Option<u32>,
}

impl RequestDirectives {
    /// Reads the fields of a request.
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Self {
        let mut read = Self::default();
        if !headers.contains_key(CACHE_CONTROL) {
            let mut pragma = headers.get_all(PRAGMA).iter();
            read.no_cache = pragma.any(|value| {
                let text = value.to_str().unwrap_or_default();
                text.to_ascii_lowercase().contains("no-cache")
            });
            return read;
        }
        let is_readable = each(headers, |name, value| match name {
            "no-store" => read.no_store = true,
            "no-cache" => read.no_cache = true,
            "only-if-cached" => read.only_if_cached = true,
            "max-age" => least(&mut read.max_age, seconds(value).unwrap_or(0)),
            "min-fresh" => read.min_fresh = Some(seconds(value).unwrap_or(MAX_SECONDS)),
            "max-stale" => {
                read.max_stale = Some(match value {
                    None => MAX_SECONDS,
                    Some(_) => seconds(value).unwrap_or(0),
                });
            }
            _ => {}
        });
        read.no_store |= !is_readable;
        read
    }
}

impl ResponseDirectives {
    /// Reads the fields of a response. If a directive occurs twice, the stricter value counts.
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Self {
        let mut read = Self::default();
        let is_readable = each(headers, |name, value| match name {
            "no-store" => read.no_store = true,
            "no-cache" => {
                if names_cookies(value) {
                    read.excepts_cookies = true;
                } else {
                    read.no_cache = true;
                }
            }
            "private" => {
                if names_cookies(value) {
                    read.excepts_cookies = true;
                } else {
                    read.private = true;
                }
            }
            "public" => read.public = true,
            "must-revalidate" => read.must_revalidate = true,
            "proxy-revalidate" => read.proxy_revalidate = true,
            "must-understand" => read.must_understand = true,
            "max-age" => least(&mut read.max_age, seconds(value).unwrap_or(0)),
            "s-maxage" => least(&mut read.s_maxage, seconds(value).unwrap_or(0)),
            "stale-while-revalidate" => {
                let stale = seconds(value).unwrap_or(0);
                least(&mut read.stale_while_revalidate, stale);
            }
            "stale-if-error" => least(&mut read.stale_if_error, seconds(value).unwrap_or(0)),
            _ => {}
        });
        read.no_store |= !is_readable;
        read
    }
}

/// Returns true if the value names `Set-Cookie` alone.
fn names_cookies(value: Option<&str>) -> bool {
    value.is_some_and(|names| names.trim().eq_ignore_ascii_case("set-cookie"))
}

/// Replaces `known` by `other` if that is smaller.
fn least(known: &mut Option<u32>, other: u32) {
    *known = Some(known.map_or(other, |known| known.min(other)));
}

/// Parses a number of seconds, reduced to [`MAX_SECONDS`]; `None` for anything else.
fn seconds(value: Option<&str>) -> Option<u32> {
    let digits = value?.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // All digits, so parsing fails only by overflow.
    Some(digits.parse().unwrap_or(MAX_SECONDS).min(MAX_SECONDS))
}

/// Calls `take` with the name, in lower case, and the value of each directive. Returns true if
/// every field was readable.
fn each(headers: &HeaderMap, mut take: impl FnMut(&str, Option<&str>)) -> bool {
    let mut is_readable = true;
    for field in headers.get_all(CACHE_CONTROL) {
        let Ok(mut rest) = field.to_str() else {
            is_readable = false;
            continue;
        };
        while !rest.is_empty() {
            let Some(end) = member_end(rest) else {
                is_readable = false;
                break;
            };
            let (member, after) = rest.split_at(end);
            rest = after.strip_prefix(',').unwrap_or(after);
            let (name, value) = match member.split_once('=') {
                Some((name, value)) => (name, Some(unquoted(value))),
                None => (member, None),
            };
            take(&name.trim().to_ascii_lowercase(), value);
        }
    }
    is_readable
}

/// The position after the first member of a list; `None` if a quoted string has no end.
fn member_end(list: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (position, byte) in list.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return Some(position),
            _ => {}
        }
    }
    (!is_quoted).then_some(list.len())
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn fields(values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CACHE_CONTROL, HeaderValue::from_static(value));
        }
        headers
    }

    fn response(values: &[&'static str]) -> ResponseDirectives {
        ResponseDirectives::read(&fields(values))
    }

    #[test]
    fn directives_are_read_in_any_case_and_over_several_fields() {
        let read = response(&["Public, MAX-AGE=60", "s-maxage = \"10\" ,, must-revalidate"]);
        let expected = ResponseDirectives {
            public: true,
            must_revalidate: true,
            max_age: Some(60),
            s_maxage: Some(10),
            ..ResponseDirectives::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn the_stricter_of_two_lifetimes_counts() {
        assert_eq!(response(&["max-age=60, max-age=5"]).max_age, Some(5));
        assert_eq!(response(&["max-age=5, max-age=60"]).max_age, Some(5));
    }

    #[test]
    fn a_malformed_lifetime_is_ignored_and_a_huge_one_is_bounded() {
        for wrong in [
            "max-age=x",
            "max-age",
            "max-age=-1",
            "max-age=1.5",
            "max-age=\"\"",
        ] {
            assert_eq!(response(&[wrong]).max_age, Some(0), "{wrong}");
        }
        let huge = response(&["max-age=99999999999999999999999"]);
        assert_eq!(huge.max_age, Some(MAX_SECONDS));
    }

    #[test]
    fn a_quoted_comma_ends_no_directive_and_an_open_quote_stores_nothing() {
        let read = response(&["ext=\"a, no-store\", max-age=1"]);
        assert!(!read.no_store);
        assert_eq!(read.max_age, Some(1));
        assert!(response(&["ext=\"a, max-age=60"]).no_store);
        let mut headers = HeaderMap::new();
        let unreadable = HeaderValue::from_bytes(b"max-age=60, \xff").unwrap();
        headers.insert(CACHE_CONTROL, unreadable);
        assert!(ResponseDirectives::read(&headers).no_store);
    }

    #[test]
    fn field_names_of_private_and_no_cache_count_for_the_whole_unless_they_name_cookies() {
        assert!(response(&["private=\"x-user\""]).private);
        assert!(response(&["no-cache=\"set-cookie, x\""]).no_cache);
        let cookies = response(&["no-cache=\"Set-Cookie\""]);
        assert!(cookies.excepts_cookies && !cookies.no_cache);
    }

    #[test]
    fn pragma_counts_without_cache_control_only() {
        let mut headers = HeaderMap::new();
        headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
        assert!(RequestDirectives::read(&headers).no_cache);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-stale"));
        let read = RequestDirectives::read(&headers);
        assert!(!read.no_cache);
        assert_eq!(read.max_stale, Some(MAX_SECONDS));
    }
}
