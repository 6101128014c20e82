//! Responses to requests from a stored response: whole, a range, or only the head. [RFC 9110 §13,
//! §14]

use crate::clock_reading::ClockReading;
use crate::freshness::seconds_of;
use crate::stored_response::{StoredResponse, opaque};
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, AGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, DATE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::ops::Range;

/// A response made from a stored one.
#[derive(Debug)]
pub struct SelectedResponse {
    /// Status; differs from the stored one for a range or a validation.
    pub status: StatusCode,
    /// The fields, with `Age` and with `Content-Length` if the body has one.
    pub headers: HeaderMap,
    /// The body; empty for HEAD.
    pub body: Bytes,
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// No single range of bytes is requested.
    Whole,
    Bytes(Range<u64>),
    /// The range is beyond the end.
    Unsatisfiable,
}

/// Makes the response to a request with these fields at `now` from `stored`.
#[must_use]
pub fn select(
    method: &Method,
    request: &HeaderMap,
    stored: &StoredResponse,
    now: ClockReading,
) -> SelectedResponse {
    let mut headers = stored.headers.clone();
    headers.insert(AGE, HeaderValue::from(stored.freshness.age(now)));
    if stored.status.is_success() && is_not_modified(request, stored) {
        for name in [
            CONTENT_ENCODING,
            CONTENT_LANGUAGE,
            CONTENT_LENGTH,
            CONTENT_TYPE,
        ] {
            headers.remove(name);
        }
        return SelectedResponse {
            status: StatusCode::NOT_MODIFIED,
            headers,
            body: Bytes::new(),
        };
    }
    let length = stored.body.len() as u64;
    let part = if *method == Method::GET && stored.status == StatusCode::OK {
        part(request, stored, length)
    } else {
        Part::Whole
    };
    let (status, body) = match part {
        Part::Whole => (stored.status, stored.body.clone()),
        Part::Bytes(range) => {
            let last = range.end.saturating_sub(1);
            let value = format!("bytes {}-{last}/{length}", range.start);
            insert(&mut headers, value);
            (StatusCode::PARTIAL_CONTENT, slice(&stored.body, &range))
        }
        Part::Unsatisfiable => {
            headers.remove(CONTENT_TYPE);
            headers.remove(CONTENT_ENCODING);
            insert(&mut headers, format!("bytes */{length}"));
            (StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new())
        }
    };
    if stored.status == StatusCode::OK {
        headers
            .entry(ACCEPT_RANGES)
            .or_insert(HeaderValue::from_static("bytes"));
    }
    if status != StatusCode::NO_CONTENT {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    let body = if *method == Method::HEAD {
        Bytes::new()
    } else {
        body
    };
    SelectedResponse {
        status,
        headers,
        body,
    }
}

fn insert(headers: &mut HeaderMap, content_range: String) {
    if let Ok(value) = HeaderValue::try_from(content_range) {
        headers.insert(CONTENT_RANGE, value);
    }
}

fn slice(body: &Bytes, range: &Range<u64>) -> Bytes {
    let position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(body.len());
    body.slice(position(range.start)..position(range.end))
}

/// Returns true if the client has the stored response already. [RFC 9110 §13.1.2, §13.1.3]
fn is_not_modified(request: &HeaderMap, stored: &StoredResponse) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        let own = stored.headers.get(ETAG).map(opaque);
        let mut lines = request.get_all(IF_NONE_MATCH).iter();
        return lines.any(|line| {
            let is_any = line.as_bytes().trim_ascii() == b"*";
            is_any || own.is_some_and(|own| names_tag(line, own))
        });
    }
    let Some(since) = seconds_of(request, &IF_MODIFIED_SINCE) else {
        return false;
    };
    let modified =
        seconds_of(&stored.headers, &LAST_MODIFIED).or_else(|| seconds_of(&stored.headers, &DATE));
    modified.is_some_and(|modified| modified <= since)
}

/// Returns true if a list of entity tags contains one with this opaque value.
fn names_tag(list: &HeaderValue, wanted: &[u8]) -> bool {
    let mut rest = list.as_bytes().trim_ascii();
    while !rest.is_empty() {
        rest = rest.strip_prefix(b"W/").unwrap_or(rest);
        // A tag ends with its second quote, and may contain commas.
        let Some(inner) = rest.strip_prefix(b"\"") else {
            return false;
        };
        let Some(end) = inner.iter().position(|byte| *byte == b'"') else {
            return false;
        };
        let (tag, after) = rest.split_at(end + 2);
        if tag == wanted {
            return true;
        }
        let after = after.trim_ascii_start();
        rest = after.strip_prefix(b",").unwrap_or(after).trim_ascii_start();
    }
    false
}

/// The requested part of a body of `length` bytes.
fn part(request: &HeaderMap, stored: &StoredResponse, length: u64) -> Part {
    let mut ranges = request.get_all(RANGE).iter();
    let (Some(range), None) = (ranges.next(), ranges.next()) else {
        return Part::Whole;
    };
    if !is_same_version(request, stored) {
        return Part::Whole;
    }
    let Some(spec) = range.to_str().ok().and_then(bytes_spec) else {
        return Part::Whole;
    };
    match spec {
        // A server may answer several ranges with the whole body. [RFC 9110 §14.2]
        (None, None) => Part::Whole,
        (Some(first), _) if first >= length => Part::Unsatisfiable,
        (Some(first), last) => {
            let end = last.map_or(length, |last| last.saturating_add(1).min(length));
            Part::Bytes(first..end)
        }
        (None, Some(0)) => Part::Unsatisfiable,
        (None, Some(_)) if length == 0 => Part::Unsatisfiable,
        (None, Some(suffix)) => Part::Bytes(length.saturating_sub(suffix)..length),
    }
}

/// First and last position of a single range of bytes, or the length of a suffix; `None` for
/// anything else.
fn bytes_spec(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, ranges) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    if ranges.contains(',') {
        return Some((None, None));
    }
    let (first, last) = ranges.trim().split_once('-')?;
    let number = |text: &str| -> Option<Option<u64>> {
        if text.is_empty() {
            return Some(None);
        }
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Some(text.parse().unwrap_or(u64::MAX)))
    };
    let (first, last) = (number(first)?, number(last)?);
    let is_valid = match (first, last) {
        (None, None) => false,
        (Some(first), Some(last)) => first <= last,
        (Some(_), None) | (None, Some(_)) => true,
    };
    is_valid.then_some((first, last))
}

/// Returns true unless `If-Range` is present and names another version. [RFC 9110 §13.1.5]
fn is_same_version(request: &HeaderMap, stored: &StoredResponse) -> bool {
    let Some(condition) = request.get(IF_RANGE) else {
        return true;
    };
    let bytes = condition.as_bytes().trim_ascii();
    if bytes.ends_with(b"\"") {
        // Weak tags never match here.
        let own = stored.headers.get(ETAG);
        return own.is_some_and(|own| bytes.starts_with(b"\"") && own.as_bytes() == bytes);
    }
    let own = stored.headers.get(LAST_MODIFIED);
    own.is_some_and(|own| own.as_bytes() == bytes) && is_date_strong(stored)
}

/// Returns true if `Last-Modified` is a strong validator: the response was made after that second,
/// in which the resource may have changed again. [RFC 9110 §8.8.2.2]
fn is_date_strong(stored: &StoredResponse) -> bool {
    let modified = seconds_of(&stored.headers, &LAST_MODIFIED);
    let made = seconds_of(&stored.headers, &DATE);
    modified
        .zip(made)
        .is_some_and(|(modified, made)| modified < made)
}
