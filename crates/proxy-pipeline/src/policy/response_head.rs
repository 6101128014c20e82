//! Makes a target's response head one that may go to the client.

use crate::known_headers::{self, KnownHeaders};
use crate::policy::header_edits;
use http::header::CONTENT_LENGTH;
use http::response::Parts;
use http::{StatusCode, Version};
use proxy_plan::RoutePlan;

/// Removes what concerned the upstream connection and applies the route's edits.
#[inline]
pub(crate) fn apply(route: &RoutePlan, head: &mut Parts) {
    let known = KnownHeaders::in_response(&head.headers);
    known_headers::strip(&mut head.headers, &known);
    if head.status == StatusCode::NO_CONTENT {
        // It has no length, and clients that speak HTTP/2 miss the bytes. [RFC 9110 §8.6]
        head.headers.remove(CONTENT_LENGTH);
    }
    header_edits::apply(&route.response_headers, &mut head.headers);
    // A target that speaks HTTP/1.0 says nothing about what the client speaks.
    head.version = Version::HTTP_11;
}
