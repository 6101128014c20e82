//! Refuses unsupported expectations. [RFC 9110 §10.1.1]

use crate::known_headers::KnownHeaders;
use http::HeaderMap;
use http::header::EXPECT;
use proxy_errors::{Detail, Problem, Reason};

/// Only `100-continue` is supported; it is met when the upstream takes the body.
pub(crate) fn check(headers: &HeaderMap, known: &KnownHeaders) -> Result<(), Problem> {
    if !known.has(KnownHeaders::EXPECT) {
        return Ok(());
    }
    let mut expectations = headers.get_all(EXPECT).iter();
    if expectations.all(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        return Ok(());
    }
    Err(Problem::new(Reason::UnsupportedExpectation, Detail::None))
}
