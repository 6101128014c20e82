//! Compresses responses that the client accepts in a content coding. [RFC 9110 §8.4]

use crate::exchange::Exchange;
use crate::response::body::Body;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HeaderMap, HeaderName, IF_NONE_MATCH, VARY,
};
use http::{HeaderValue, Method, Response, StatusCode, Version};
use proxy_coding::{Accepted, Coding, Encoder};
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::{CompressionPlan, RoutePlan};

/// Digests of the bytes that were not compressed. [RFC 9530]
const DIGESTS: [&str; 4] = ["content-digest", "repr-digest", "digest", "content-md5"];

/// The client's preferences for compression, kept after its head was forwarded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompressionRequest {
    coding: Option<Coding>,
    is_head: bool,
    /// The client holds a representation with a weak tag, as compressed ones have.
    has_weak_tag: bool,
}

/// Types that are never compressed, even if the route lists them: their receivers read them piece
/// by piece.
const STREAMS: [&[u8]; 2] = [b"text/event-stream", b"application/grpc"];

/// The client's preferences; `None` if the response must be left unchanged.
#[inline]
pub(crate) fn negotiate(exchange: &Exchange, route: &RoutePlan) -> Option<CompressionRequest> {
    let plan = route.compression.as_deref()?;
    let head = &exchange.head;
    if head.version == Version::HTTP_10
        || head.method == Method::CONNECT
        || forbids_transformation(head.headers.as_map())
    {
        return None;
    }
    Some(CompressionRequest {
        coding: Accepted::from_headers(head.headers.as_map(), &plan.codings)
            .iter()
            .next(),
        is_head: head.method == Method::HEAD,
        has_weak_tag: has_weak_tag(head.headers.as_map()),
    })
}

/// Compresses an eligible response body and sets the header fields.
///
/// A body that is compressed while it is sent needs memory for its encoder; without it, the
/// response stays as it is.
pub(crate) fn apply(
    exchange: &Exchange,
    wanted: CompressionRequest,
    route: &RoutePlan,
    response: Response<Body>,
) -> Result<Response<Body>, Problem> {
    let Some(plan) = route.compression.as_deref() else {
        return Ok(response);
    };
    let CompressionRequest {
        coding,
        is_head,
        has_weak_tag,
    } = wanted;
    if !is_negotiated(plan, response.status(), response.headers()) {
        return Ok(response);
    }
    let (mut head, mut body) = response.into_parts();
    vary(&mut head.headers);
    if head.status == StatusCode::NOT_MODIFIED && has_weak_tag {
        weaken(&mut head.headers);
    }
    let is_large = content_length(&head.headers).is_none_or(|length| length >= plan.min_bytes);
    let is_whole = is_whole(head.status, &head.headers);
    let Some(coding) = coding.filter(|_| is_large && is_whole) else {
        return Ok(Response::from_parts(head, body));
    };
    let needs_encoder = !is_head && !body.is_compressed_at_once();
    let memory = needs_encoder.then(|| exchange.reserve_response(Encoder::max_bytes(coding)));
    if matches!(memory, Some(None)) {
        return Ok(Response::from_parts(head, body));
    }
    let headers = &mut head.headers;
    headers.insert(CONTENT_ENCODING, coding.value());
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    for digest in DIGESTS {
        headers.remove(digest);
    }
    weaken(headers);
    if let Some(memory) = memory.flatten() {
        body = body.compress(coding, plan.levels, memory);
    } else if !is_head {
        let compressed = body.compress_at_once(coding, plan.levels);
        body = compressed.map_err(|error| {
            Problem::new(Reason::InternalError, Detail::text(error.to_string()))
        })?;
    }
    Ok(Response::from_parts(head, body))
}

/// Returns true if the whole representation, at least, is compressed for clients that accept it. A
/// 304 and a partial response report it as the full response would. [RFC 9110 §15.3.7, §15.4.5]
fn is_negotiated(plan: &CompressionPlan, status: StatusCode, headers: &HeaderMap) -> bool {
    let has_content = !status.is_informational()
        && ![StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT].contains(&status);
    // A 304 mostly leaves out the type.
    let may_lack_type = status == StatusCode::NOT_MODIFIED && !headers.contains_key(CONTENT_TYPE);
    has_content
        && !is_encoded(headers)
        && !forbids_transformation(headers)
        && (may_lack_type || has_type(plan, headers))
}

/// Returns true if the response carries its complete representation: no range, and a body.
fn is_whole(status: StatusCode, headers: &HeaderMap) -> bool {
    ![StatusCode::PARTIAL_CONTENT, StatusCode::NOT_MODIFIED].contains(&status)
        && !headers.contains_key(CONTENT_RANGE)
}

fn has_type(plan: &CompressionPlan, headers: &HeaderMap) -> bool {
    let Some(media_type) = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes) else {
        return false;
    };
    let name = media_type.trim_ascii_start();
    let is_stream = STREAMS.iter().any(|stream| {
        let beginning = name.get(..stream.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(stream))
    });
    !is_stream && plan.types.iter().any(|range| range.contains(name))
}

fn is_encoded(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(CONTENT_ENCODING).iter();
    codings
        .into_iter()
        .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn forbids_transformation(headers: &HeaderMap) -> bool {
    lists(headers, &CACHE_CONTROL, "no-transform")
}

fn vary(headers: &mut HeaderMap) {
    if !lists(headers, &VARY, "accept-encoding") && !lists(headers, &VARY, "*") {
        headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
}

/// Returns true if the comma-separated field `name` has `member`, ignoring case.
fn lists(headers: &HeaderMap, name: &HeaderName, member: &str) -> bool {
    let lines = headers.get_all(name).iter();
    let mut lines = lines.filter_map(|line| line.to_str().ok());
    lines.any(|line| {
        let mut members = line.split(',').map(str::trim);
        members.any(|one| one.eq_ignore_ascii_case(member))
    })
}

/// Makes the tag a weak one: the compressed bytes are another representation with the same meaning.
/// [RFC 9110 §8.8.1]
fn weaken(headers: &mut HeaderMap) {
    let Some(tag) = headers
        .get(ETAG)
        .filter(|tag| tag.as_bytes().starts_with(b"\""))
    else {
        return;
    };
    let weak = [b"W/", tag.as_bytes()].concat();
    match HeaderValue::from_bytes(&weak) {
        Ok(weak) => headers.insert(ETAG, weak),
        Err(_) => headers.remove(ETAG),
    };
}

fn has_weak_tag(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(IF_NONE_MATCH).iter();
    let mut tags = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    tags.any(|tag| tag.trim_ascii_start().starts_with(b"W/\""))
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}
