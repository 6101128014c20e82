//! Rewrites a target's response head for the client.

use crate::headers::header_edits::ResponseEdits;
use crate::headers::hop_by_hop;
use http::header::CONTENT_LENGTH;
use http::response::Parts;
use http::{StatusCode, Version};

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
