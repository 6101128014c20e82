//! `Max-Forwards` of OPTIONS and TRACE. [RFC 9110 §7.6.2]

use crate::headers::inbound_head::InboundHead;
use http::header::MAX_FORWARDS;
use http::{HeaderValue, Method};
use proxy_errors::{Detail, Problem, Reason};

/// Decrements the field. At zero this proxy is the final recipient, which supports neither method.
/// A malformed value is ignored.
pub(crate) fn decrement(head: &mut InboundHead) -> Result<(), Problem> {
    if head.method != Method::OPTIONS && head.method != Method::TRACE {
        return Ok(());
    }
    let Some(value) = head.headers.as_map().get(MAX_FORWARDS) else {
        return Ok(());
    };
    let Some(left) = number(value) else {
        return Ok(());
    };
    let Some(left) = left.checked_sub(1) else {
        let detail = Detail::text("no server further on is to be asked");
        return Err(Problem::new(Reason::MethodNotAllowed, detail));
    };
    head.headers.insert(MAX_FORWARDS, HeaderValue::from(left));
    Ok(())
}

fn number(value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}
