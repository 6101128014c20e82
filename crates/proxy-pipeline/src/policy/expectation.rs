//! Refuses unsupported expectations. [RFC 9110 §10.1.1]

use crate::headers::indexed_headers::{IndexedHeaders, KnownHeaders};
use http::header::EXPECT;
use proxy_errors::{Detail, Problem, Reason};

/// Only `100-continue` is supported; it is met when the upstream takes the body.
pub(crate) fn check(headers: &IndexedHeaders) -> Result<(), Problem> {
    if !headers.has(KnownHeaders::EXPECT) {
        return Ok(());
    }
    let mut expectations = headers.as_map().get_all(EXPECT).iter();
    if expectations.all(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        return Ok(());
    }
    Err(Problem::new(Reason::UnsupportedExpectation, Detail::None))
}
