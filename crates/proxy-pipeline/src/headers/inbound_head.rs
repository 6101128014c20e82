//! The head of a request to the upstream: as its client sent it, with agents' edits.

use crate::headers::indexed_headers::{IndexedHeaders, LoggedHeaders};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Extensions, Method, Uri, Version};
use proxy_http1::{RawTarget, VerbatimFields};

/// A request's head, its fields indexed. Header fields and target are moved out when the request is
/// forwarded.
#[derive(Debug)]
pub(crate) struct InboundHead {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) headers: IndexedHeaders,
    pub(crate) extensions: Extensions,
}

/// The parts of a head that the access log may write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedHead<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) extensions: &'a Extensions,
    pub(crate) headers: LoggedHeaders<'a>,
}

impl InboundHead {
    /// Reads each field of `received`, else of `parts`, once. Returns also the result of `log` for
    /// the head.
    #[inline]
    pub(crate) fn read<T>(
        parts: Parts,
        received: Option<VerbatimFields>,
        log: impl FnOnce(LoggedHead<'_>) -> T,
    ) -> (Self, T) {
        let Parts {
            method,
            uri,
            version,
            headers,
            extensions,
            ..
        } = parts;
        let (headers, logged) = IndexedHeaders::read(headers, received, |headers| {
            log(LoggedHead {
                method: &method,
                uri: &uri,
                extensions: &extensions,
                headers,
            })
        });
        let head = Self {
            method,
            uri,
            version,
            headers,
            extensions,
        };
        (head, logged)
    }
}

/// Path and query as the client sent them.
#[inline]
pub(crate) fn path_as_sent<'h>(uri: &'h Uri, extensions: &'h Extensions) -> &'h [u8] {
    match extensions.get::<RawTarget>() {
        Some(RawTarget(raw)) => raw,
        None => uri
            .path_and_query()
            .map_or("", PathAndQuery::as_str)
            .as_bytes(),
    }
}
