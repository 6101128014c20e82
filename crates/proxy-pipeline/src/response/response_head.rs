//! Rewrites a target's response head for the client.

use crate::headers::header_edits::ResponseEdits;
use crate::headers::hop_by_hop;
use http::header::{CONNECTION, CONTENT_LENGTH, UPGRADE};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, Version};

/// Removes hop-by-hop fields and applies the edits of the route.
#[inline]
pub(crate) fn apply(edits: ResponseEdits<'_>, head: &mut Parts) {
    hop_by_hop::strip_response(&mut head.headers);
    if head.status == StatusCode::NO_CONTENT {
        // The response has no body, and HTTP/2 clients would expect the bytes. [RFC 9110 §8.6]
        head.headers.remove(CONTENT_LENGTH);
    }
    edits.apply(&mut head.headers);
    // A target's HTTP/1.0 does not affect the version for the client.
    head.version = Version::HTTP_11;
}

/// The protocols that a 426 requires of a client of HTTP/1.1, before [`apply`] removes them. Other
/// versions of HTTP have no `Upgrade`.
#[inline]
pub(crate) fn required_upgrade(head: &Parts, client: Version) -> Option<HeaderValue> {
    if head.status != StatusCode::UPGRADE_REQUIRED || client != Version::HTTP_11 {
        return None;
    }
    let lines = head.headers.get_all(UPGRADE).iter();
    let lines: Vec<&[u8]> = lines.map(HeaderValue::as_bytes).collect();
    HeaderValue::from_bytes(&lines.join(&b", "[..]))
        .ok()
        .filter(|value| !value.is_empty())
}

/// Requires an upgrade to `protocols`. [RFC 9110 §7.8, §15.5.22]
#[cold]
pub(crate) fn require_upgrade(protocols: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(UPGRADE, protocols);
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
}
