//! Reads a response's body before its client gets a byte.

use crate::body::Body;
use http::Response;
use http::header::CONTENT_TYPE;
use proxy_pool::SendError;
use std::future::poll_fn;

/// Reads as much of the body of `response` as `max_bytes` allow: mostly all of it.
///
/// Event streams and gRPC are left as they are: what waits for their end waits for ever. So is a response
/// with `X-Accel-Buffering: no`, by which upstreams ask the same of nginx.
pub(crate) async fn hold(response: &mut Response<Body>, max_bytes: u64) -> Result<(), SendError> {
    if !is_stream(response) && !asks_for_no_buffering(response) {
        let body = response.body_mut();
        poll_fn(|cx| body.poll_hold(cx, max_bytes)).await?;
    }
    Ok(())
}

fn asks_for_no_buffering(response: &Response<Body>) -> bool {
    let wish = response.headers().get("x-accel-buffering");
    wish.is_some_and(|wish| wish.as_bytes().trim_ascii().eq_ignore_ascii_case(b"no"))
}

/// Whether the body is one that may have no end.
pub(crate) fn is_stream(response: &Response<Body>) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE);
    media_type.is_some_and(|value| {
        let value = value.as_bytes().trim_ascii_start();
        [&b"text/event-stream"[..], b"application/grpc"]
            .iter()
            .any(|stream| {
                let beginning = value.get(..stream.len());
                beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(stream))
            })
    })
}
