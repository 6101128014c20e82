//! Conditional requests. [RFC 9110 §13]

use crate::validators::Validators;
use http::header::{
    HeaderMap, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderValue, Method};
use std::time::UNIX_EPOCH;

/// The conditional fields of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    if_match: Vec<HeaderValue>,
    if_none_match: Vec<HeaderValue>,
    if_unmodified_since: Option<HeaderValue>,
    if_modified_since: Option<HeaderValue>,
    if_range: Option<HeaderValue>,
    range: Option<HeaderValue>,
}

/// The result of evaluating the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Serve,
    NotModified,
    Failed,
}

impl Conditions {
    /// The conditions of a request for the file; only GET has ranges. [RFC 9110 §14.2]
    pub(crate) fn from_request(method: &Method, headers: &HeaderMap) -> Self {
        let all = |name: HeaderName| headers.get_all(name).iter().cloned().collect();
        let one = |name: HeaderName| headers.get(name).cloned();
        let range = one(RANGE).filter(|_| *method == Method::GET);
        Self {
            if_match: all(IF_MATCH),
            if_none_match: all(IF_NONE_MATCH),
            if_unmodified_since: one(IF_UNMODIFIED_SINCE),
            if_modified_since: one(IF_MODIFIED_SINCE),
            if_range: one(IF_RANGE),
            range,
        }
    }

    /// Evaluates in the order of RFC 9110 §13.2.2.
    pub(crate) fn judge(&self, now: &Validators) -> Verdict {
        if !self.if_match.is_empty() {
            if !matches_any(&self.if_match, |tag| tag == now.tag.as_bytes()) {
                return Verdict::Failed;
            }
        } else if let (Some(limit), Some(changed)) =
            (date(self.if_unmodified_since.as_ref()), now.changed_s)
            && changed > limit
        {
            return Verdict::Failed;
        }
        if !self.if_none_match.is_empty() {
            if matches_any(&self.if_none_match, |tag| {
                tag.strip_prefix(b"W/").unwrap_or(tag) == now.tag.as_bytes()
            }) {
                return Verdict::NotModified;
            }
        } else if let (Some(limit), Some(changed)) =
            (date(self.if_modified_since.as_ref()), now.changed_s)
            && changed <= limit
        {
            return Verdict::NotModified;
        }
        Verdict::Serve
    }

    /// The requested ranges, unless `If-Range` names another state of the file. A date is compared
    /// only if it is a strong validator. [RFC 9110 §13.1.5]
    pub(crate) fn range(&self, now: &Validators) -> Option<&str> {
        let range = self.range.as_ref()?.to_str().ok()?;
        let Some(known) = &self.if_range else {
            return Some(range);
        };
        let is_same_tag = *known == now.tag;
        let is_same_date =
            now.is_settled && date(Some(known)).is_some_and(|date| Some(date) == now.changed_s);
        (is_same_tag || is_same_date).then_some(range)
    }
}

/// Seconds since 1970; `None` for a malformed date. [RFC 9110 §5.6.7]
fn date(value: Option<&HeaderValue>) -> Option<u64> {
    let time = httpdate::parse_http_date(value?.to_str().ok()?).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// Returns true if the list is `*` or contains a tag that `is_it` accepts.
fn matches_any(lines: &[HeaderValue], is_it: impl Fn(&[u8]) -> bool) -> bool {
    lines.iter().any(|line| {
        let mut rest = line.as_bytes().trim_ascii();
        if rest == b"*" {
            return true;
        }
        while let Some((tag, after)) = next_tag(rest) {
            if is_it(tag) {
                return true;
            }
            rest = after;
        }
        false
    })
}

/// The first tag of a list, with its quotes, and the bytes after it; a tag may contain a comma.
fn next_tag(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = list
        .iter()
        .position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
    let (_, list) = list.split_at_checked(begin)?;
    let prefix = if list.starts_with(b"W/") { 2 } else { 0 };
    let quoted = list.get(prefix..)?.strip_prefix(b"\"")?;
    let length = quoted.iter().position(|byte| *byte == b'"')?;
    list.split_at_checked(prefix + length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "Thu, 01 Jan 1970 00:00:10 GMT";
    const SAME: &str = "Thu, 01 Jan 1970 00:01:40 GMT";
    const NEW: &str = "Thu, 01 Jan 1970 00:10:00 GMT";

    fn file() -> Validators {
        Validators {
            tag: HeaderValue::from_static("\"a,b\""),
            changed_s: Some(100),
            is_settled: true,
        }
    }

    fn conditions(fields: &[(&str, &str)]) -> Conditions {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        Conditions::from_request(&Method::GET, &headers)
    }

    #[test]
    fn conditions_are_judged_in_the_order_of_the_standard() {
        use Verdict::{Failed, NotModified, Serve};
        let cases: &[(&[(&str, &str)], Verdict)] = &[
            (&[], Serve),
            (&[("if-match", "*")], Serve),
            (&[("if-match", "\"x\", \"a,b\"")], Serve),
            (&[("if-match", "\"x\""), ("if-match", "\"a,b\"")], Serve),
            (&[("if-match", "\"x\"")], Failed),
            (&[("if-match", "W/\"a,b\"")], Failed),
            (&[("if-match", "nonsense")], Failed),
            (&[("if-match", "*"), ("if-unmodified-since", OLD)], Serve),
            (&[("if-unmodified-since", OLD)], Failed),
            (&[("if-unmodified-since", SAME)], Serve),
            (&[("if-unmodified-since", "yesterday")], Serve),
            (&[("if-none-match", "*")], NotModified),
            (&[("if-none-match", "W/\"a,b\"")], NotModified),
            (&[("if-none-match", "\"x\" , \"a,b\"")], NotModified),
            (&[("if-none-match", "\"a\"")], Serve),
            (
                &[("if-none-match", "\"x\""), ("if-modified-since", NEW)],
                Serve,
            ),
            (&[("if-modified-since", OLD)], Serve),
            (&[("if-modified-since", SAME)], NotModified),
            (&[("if-modified-since", NEW)], NotModified),
            (&[("if-modified-since", "soon")], Serve),
            (&[("if-match", "\"x\""), ("if-none-match", "*")], Failed),
        ];
        for (fields, verdict) in cases {
            assert_eq!(conditions(fields).judge(&file()), *verdict, "{fields:?}");
        }
    }

    #[test]
    fn a_range_is_served_only_of_the_file_version_that_the_client_has() {
        let range = ("range", "bytes=0-1");
        for (known, is_taken) in [
            ("\"a,b\"", true),
            ("W/\"a,b\"", false),
            ("\"x\"", false),
            (SAME, true),
            (NEW, false),
            (OLD, false),
        ] {
            let taken = conditions(&[range, ("if-range", known)]);
            assert_eq!(taken.range(&file()).is_some(), is_taken, "{known}");
        }
        let unsettled = Validators {
            is_settled: false,
            ..file()
        };
        let by_date = conditions(&[range, ("if-range", SAME)]);
        assert_eq!(by_date.range(&unsettled), None);
        assert_eq!(conditions(&[range]).range(&file()), Some("bytes=0-1"));
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, HeaderValue::from_static("bytes=0-1"));
        let of_head = Conditions::from_request(&Method::HEAD, &headers);
        assert_eq!(of_head.range(&file()), None);
    }
}
