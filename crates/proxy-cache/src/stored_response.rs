//! A stored response.

use crate::freshness::Freshness;
use crate::memory::Charge;
use crate::storing::has_validator;
use crate::vary::Variant;
use bytes::Bytes;
use http::header::{
    AGE, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, PROXY_AUTHENTICATE, SET_COOKIE, TRAILER,
    TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::time::{Duration, UNIX_EPOCH};

/// Fields that name the tags of a response, for purges.
const TAG_FIELDS: [&str; 2] = ["cache-tag", "surrogate-key"];
/// Fields that a validation does not replace, because they describe the stored body.
const FIXED_FIELDS: [HeaderName; 6] = [
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
    CONNECTION,
];
/// Fields for the next proxy only. [RFC 9111 §3.1]
const PROXY_FIELDS: [HeaderName; 2] = [
    PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-authentication-info"),
];
/// Memory of one field besides its bytes: the entries in the map and in its index, and the block of
/// the value.
const BYTES_PER_FIELD: usize = 160;

/// The head of a response that is being stored.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) freshness: Freshness,
}

/// A stored response: complete, and never changed.
#[derive(Debug)]
pub struct StoredResponse {
    /// Status of the stored response.
    pub status: StatusCode,
    /// The fields, without hop-by-hop fields and without `Age`.
    pub headers: HeaderMap,
    /// The whole body. Its memory is counted until the last clone is dropped.
    pub body: Bytes,
    /// Age and lifetime.
    pub freshness: Freshness,
    /// The request fields that select it.
    pub variant: Variant,
    pub(crate) _head_charge: Charge,
}

impl ResponseHead {
    /// The head of a response with these fields, already without hop-by-hop fields.
    #[must_use]
    pub fn new(status: StatusCode, headers: &HeaderMap, freshness: Freshness) -> Self {
        let mut headers = copied(headers);
        if !headers.contains_key(DATE)
            && let Some(date) = date_value(freshness.received_at.unix.as_secs())
        {
            headers.insert(DATE, date);
        }
        Self {
            status,
            headers,
            freshness,
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let fields = self.headers.iter();
        let fields =
            fields.map(|(name, value)| name.as_str().len() + value.len() + BYTES_PER_FIELD);
        size_of::<StoredResponse>() + fields.sum::<usize>()
    }
}

impl StoredResponse {
    /// Returns true if a request to the upstream can validate the response.
    #[must_use]
    pub fn has_validator(&self) -> bool {
        has_validator(&self.headers)
    }

    /// The conditions of a request that validates it.
    pub fn conditions(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let etag = self
            .headers
            .get(ETAG)
            .map(|etag| (IF_NONE_MATCH, etag.clone()));
        let date = self.headers.get(LAST_MODIFIED);
        let date = date.map(|date| (IF_MODIFIED_SINCE, date.clone()));
        etag.into_iter().chain(date)
    }

    /// The fields after a 304 with the fields `fresh`. [RFC 9111 §3.2]
    #[must_use]
    pub fn freshened(&self, fresh: &HeaderMap) -> HeaderMap {
        let mut headers = self.headers.clone();
        // A 304 without a date counts as made on arrival.
        headers.remove(DATE);
        for name in fresh.keys().filter(|name| !FIXED_FIELDS.contains(name)) {
            headers.remove(name);
            for value in fresh.get_all(name) {
                headers.append(name.clone(), value.clone());
            }
        }
        headers
    }

    /// Returns true if a 304 with these fields is about this response.
    #[must_use]
    pub fn is_validated_by(&self, fresh: &HeaderMap) -> bool {
        match (self.headers.get(ETAG), fresh.get(ETAG)) {
            (Some(own), Some(other)) => opaque(own) == opaque(other),
            (None, Some(_)) => false,
            (Some(_) | None, None) => true,
        }
    }

    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        let values = TAG_FIELDS
            .iter()
            .flat_map(|name| self.headers.get_all(*name));
        let mut lines = values.filter_map(|value| value.to_str().ok());
        lines.any(|line| line.split([',', ' ']).any(|one| one.trim() == tag))
    }
}

/// Copies the fields to be stored, each with its own memory: a value received by HTTP/1.1 refers to
/// the whole head and would keep it in memory.
fn copied(headers: &HeaderMap) -> HeaderMap {
    let mut copy = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if [AGE, SET_COOKIE, TRAILER, CONTENT_LENGTH].contains(name) || PROXY_FIELDS.contains(name)
        {
            continue;
        }
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            copy.append(name.clone(), value);
        }
    }
    copy
}

/// The value of an entity tag without `W/`.
pub(crate) fn opaque(etag: &HeaderValue) -> &[u8] {
    let bytes = etag.as_bytes().trim_ascii();
    bytes.strip_prefix(b"W/").unwrap_or(bytes)
}

fn date_value(seconds: u64) -> Option<HeaderValue> {
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    HeaderValue::try_from(httpdate::fmt_http_date(at)).ok()
}
