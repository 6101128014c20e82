//! Reads a response's body before its client gets a byte.

use crate::response::body::{Body, Interruption};
use crate::upload::body_buffer::BodyBuffer;
use http::Response;
use http::header::CONTENT_TYPE;
use std::future::poll_fn;

/// Reads as much of the body of `response` as `max_bytes` allow: mostly all of it.
///
/// Event streams and gRPC are not buffered, because they may be endless, nor is a response with
/// `X-Accel-Buffering: no`, as in nginx. When no memory is left, the body is streamed from there
/// on.
pub(crate) async fn buffer_response(
    response: &mut Response<Body>,
    buffer: BodyBuffer,
    max_bytes: u64,
) -> Result<(), Interruption> {
    if !is_stream(response) && !disables_buffering(response) {
        let body = response.body_mut();
        body.begin_hold(buffer);
        poll_fn(|cx| body.poll_hold(cx, max_bytes)).await?;
    }
    Ok(())
}

fn disables_buffering(response: &Response<Body>) -> bool {
    let value = response.headers().get("x-accel-buffering");
    value.is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"no"))
}

/// Returns true if the body may have no end.
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
