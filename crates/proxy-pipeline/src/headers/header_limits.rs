//! Refuses heads that are too large. Over HTTP/1.x the framing validator has done so before.

use crate::headers::inbound_head::InboundHead;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue};
use proxy_errors::{Detail, Problem, Reason};
use proxy_http1::RawTarget;
use proxy_model::Limits;

/// Maximum length of a request target, in bytes.
const MAX_TARGET_BYTES: u64 = 16 * 1024;

/// Bytes of a field line besides its name and value: the colon, a space, and the line end.
const LINE_OVERHEAD: u64 = 4;

/// Bounds on the fields of one section, by the settings of the same names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldLimits {
    size_bytes: u64,
    fields: u64,
    name_bytes: u64,
    value_bytes: u64,
}

impl From<&Limits> for FieldLimits {
    #[inline]
    fn from(limits: &Limits) -> Self {
        Self {
            size_bytes: *limits.max_header_size_bytes,
            fields: u64::from(*limits.max_header_count),
            name_bytes: *limits.max_header_name_bytes,
            value_bytes: *limits.max_header_value_bytes,
        }
    }
}

/// Refuses a head above the limits, by the size that it would have over HTTP/1.1.
pub(crate) fn check(head: &InboundHead, limits: &Limits) -> Result<(), Problem> {
    let target = match head.extensions.get::<RawTarget>() {
        Some(RawTarget(raw)) => bytes(raw),
        None => head
            .uri
            .path_and_query()
            .map_or(0, |target| bytes(PathAndQuery::as_str(target))),
    };
    within(Reason::HeaderSizeLimit, target, MAX_TARGET_BYTES).map_err(Problem::without_setting)?;
    check_fields(head.headers.as_map(), FieldLimits::from(limits))
}

/// Checks the fields of a head, or of trailers.
#[inline]
pub(crate) fn check_fields(fields: &HeaderMap, limits: FieldLimits) -> Result<(), Problem> {
    let count = fields.len() as u64;
    within(Reason::HeaderCountLimit, count, limits.fields)?;
    let mut total = 0;
    for (field, value) in fields {
        let (name, value) = (bytes(field), bytes(value));
        let of_this = |problem: Problem| problem.with_field(field.as_str());
        within(Reason::HeaderNameLimit, name, limits.name_bytes).map_err(of_this)?;
        within(Reason::HeaderValueLimit, value, limits.value_bytes).map_err(of_this)?;
        total += name + value + LINE_OVERHEAD;
    }
    within(Reason::HeaderSizeLimit, total, limits.size_bytes)
}

/// Checks one value that was joined from several fields.
pub(crate) fn check_value(
    name: &HeaderName,
    value: &HeaderValue,
    limits: &Limits,
) -> Result<(), Problem> {
    let limit = *limits.max_header_value_bytes;
    within(Reason::HeaderValueLimit, bytes(value), limit)
        .map_err(|problem| problem.with_field(name.as_str()))
}

#[inline]
fn bytes(text: impl AsRef<[u8]>) -> u64 {
    text.as_ref().len() as u64
}

#[inline]
fn within(reason: Reason, current: u64, limit: u64) -> Result<(), Problem> {
    if current <= limit {
        return Ok(());
    }
    Err(Problem::new(reason, Detail::Limit { current, limit }))
}
