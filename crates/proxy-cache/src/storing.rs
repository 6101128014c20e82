//! The decision whether a response may be stored. [RFC 9111 §3]

use crate::cache_control::ResponseDirectives;
use crate::freshness::{Freshness, Times};
use crate::settings::CacheSettings;
use crate::vary::{Variant, VaryError};
use http::header::{AUTHORIZATION, CONTENT_RANGE, COOKIE, ETAG, LAST_MODIFIED, SET_COOKIE};
use http::{HeaderMap, Method, StatusCode};

/// The request of a response.
#[derive(Clone, Copy, Debug)]
pub struct StoringRequest<'r> {
    /// Method of the request; only responses to GET are stored.
    pub method: &'r Method,
    /// The fields as the client sent them.
    pub headers: &'r HeaderMap,
    /// True if the response may be for one client only, apart from `Authorization`: the route
    /// requires credentials, the client has a certificate, or a field set by the proxy depends on
    /// the client.
    pub is_personal: bool,
}

/// The reason why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// The request is not a GET.
    Request,
    /// The status is not in the route's list.
    Status,
    /// The response has `no-store`.
    NoStore,
    /// The response has `private`.
    Private,
    /// The response sets a cookie.
    SetCookie,
    /// The request was authorized, and the response is not marked as usable for other requests.
    Authorized,
    /// The request has a cookie, and the response states no lifetime.
    Cookie,
    /// `Vary` is `*`, selects by too much, or names a field set by the proxy.
    Vary,
    /// The response is a stream of events or of gRPC, which may be endless.
    Stream,
    /// Neither the response nor the settings state a lifetime.
    NoLifetime,
    /// The response is already stale and cannot be validated.
    Stale,
    /// The response is larger than the maximum of a body, or there is no room.
    NoRoom,
}

impl RefuseReason {
    /// The word in `Cache-Status`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Status => "status",
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::SetCookie => "set-cookie",
            Self::Authorized => "authorized",
            Self::Cookie => "cookie",
            Self::Vary => "vary",
            Self::Stream => "stream",
            Self::NoLifetime => "no-lifetime",
            Self::Stale => "already-stale",
            Self::NoRoom => "no-room",
        }
    }

    /// Returns true if the response to another request may be storable, because the reason is not a
    /// property of the resource.
    #[must_use]
    pub const fn is_request_specific(self) -> bool {
        match self {
            Self::Request | Self::Authorized | Self::Cookie | Self::NoRoom => true,
            Self::Status
            | Self::NoStore
            | Self::Private
            | Self::SetCookie
            | Self::Vary
            | Self::Stream
            | Self::NoLifetime
            | Self::Stale => false,
        }
    }
}

/// Freshness and variant of a response that may be stored.
///
/// # Errors
/// The reason why the response may not be stored.
pub fn may_store(
    request: StoringRequest<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    settings: &CacheSettings,
    times: Times,
) -> Result<(Freshness, Variant), RefuseReason> {
    let StoringRequest {
        method,
        headers: sent,
        is_personal,
    } = request;
    if *method != Method::GET {
        return Err(RefuseReason::Request);
    }
    if !settings.statuses.contains(&status.as_u16()) || headers.contains_key(CONTENT_RANGE) {
        return Err(RefuseReason::Status);
    }
    let directives = ResponseDirectives::read(headers);
    // This cache understands each status in the route's list. [RFC 9111 §5.2.2.3]
    if directives.no_store && !directives.must_understand {
        return Err(RefuseReason::NoStore);
    }
    if directives.private {
        return Err(RefuseReason::Private);
    }
    if headers.contains_key(SET_COOKIE) && !directives.excepts_cookies {
        return Err(RefuseReason::SetCookie);
    }
    let is_authorized = is_personal || sent.contains_key(AUTHORIZATION);
    let is_for_all =
        directives.public || directives.s_maxage.is_some() || directives.must_revalidate;
    if is_authorized && !is_for_all {
        return Err(RefuseReason::Authorized);
    }
    let variant = Variant::read(sent, headers).map_err(|error| match error {
        VaryError::Any | VaryError::TooLarge => RefuseReason::Vary,
    })?;
    // Default lifetimes are for responses that state none. With a cookie, such a response may be
    // for one client only.
    let may_default = !is_authorized && !sent.contains_key(COOKIE);
    let freshness = Freshness::read((status, headers), &directives, settings, times, may_default);
    let freshness = freshness.ok_or_else(|| {
        let of_another = Freshness::read((status, headers), &directives, settings, times, true);
        match (of_another, is_authorized) {
            (None, _) => RefuseReason::NoLifetime,
            (Some(_), true) => RefuseReason::Authorized,
            (Some(_), false) => RefuseReason::Cookie,
        }
    })?;
    let now = times.received_at;
    let is_useful = freshness.is_fresh(now)
        || freshness.is_usable_while_revalidating(now)
        || has_validator(headers);
    if is_useful {
        Ok((freshness, variant))
    } else {
        Err(RefuseReason::Stale)
    }
}

/// Returns true if a request has `Authorization` or `Cookie`: its response may be for one client
/// only.
pub(crate) fn has_credentials(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION) || headers.contains_key(COOKIE)
}

/// Returns true if a response with these fields can be validated.
pub(crate) fn has_validator(headers: &HeaderMap) -> bool {
    headers.contains_key(ETAG) || headers.contains_key(LAST_MODIFIED)
}
