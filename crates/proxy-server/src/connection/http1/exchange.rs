//! One HTTP/1.x exchange: the request is handled, then its response is written.

use crate::connection::http1::connection::{Connection, ConnectionIo};
use crate::connection::http1::end::End;
use http::{HeaderValue, Method, Response, StatusCode, Version};
use http_body::Body as _;
use proxy_http1::{
    Framing, MessageWriter, RequestHead, ResponseContext, Written, keep_map, write_response,
};
use proxy_pipeline::{Body, Reply, RequestStream, handle};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// The properties of a request that its response depends on.
struct RequestInfo {
    method: Method,
    version: Version,
    keeps: bool,
    takes_trailers: bool,
}

/// Serves the request of `head`. Returns the reason why no further request can follow, if any.
pub(crate) async fn exchange(
    conn: &Rc<Connection>,
    writer: &mut MessageWriter<Body>,
    head: RequestHead,
) -> Option<End> {
    let request = RequestInfo {
        method: head.request.method().clone(),
        version: head.request.version(),
        // After `CONNECT` no HTTP follows, whatever the response.
        keeps: head.keeps && *head.request.method() != Method::CONNECT,
        takes_trailers: head.takes_trailers,
    };
    let Reply { response, upgrade } = match handle_request(conn, writer, head).await {
        Ok(reply) => reply,
        Err(end) => {
            conn.guard.deadline.clear();
            return Some(end);
        }
    };
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let closes = poll_fn(|cx| Poll::Ready(conn.is_to_close(cx, &response))).await;
    let request = RequestInfo {
        keeps: request.keeps && !closes,
        ..request
    };
    let written = start_response(writer, response, &request, &conn.guard.worker.date());
    let end = poll_fn(|cx| poll_response(conn, writer, cx)).await;
    conn.write_unblocked();
    conn.guard.deadline.clear();
    if end.is_some() && written.framing == Some(Framing::UntilClose) {
        return Some(End::Truncated);
    }
    if let (None | Some(End::Closed), Some(switched)) = (&end, upgrade) {
        return Some(End::Switched(switched));
    }
    if end.is_some() {
        return end;
    }
    if switches || !written.keeps || !poll_fn(|cx| Poll::Ready(conn.discard_body(cx))).await {
        return Some(End::Closed);
    }
    conn.reader().resume();
    None
}

/// Runs the pipeline, and writes interim responses meanwhile.
async fn handle_request(
    conn: &Rc<Connection>,
    writer: &mut MessageWriter<Body>,
    head: RequestHead,
) -> Result<Reply, End> {
    let stream = RequestStream {
        client: Rc::clone(&conn.client),
        deadline: Rc::clone(&conn.guard.deadline),
    };
    let body = conn.body(&head);
    let (head, ()) = head.request.into_parts();
    let mut handling = pin!(handle(Rc::clone(&conn.guard.worker), stream, head, body));
    poll_fn(|cx| {
        conn.guard.deadline.watch(cx.waker());
        if let Poll::Ready(reply) = handling.as_mut().poll(cx) {
            if let Some(heads) = conn.take_interim() {
                writer.text().extend_from_slice(&heads);
            }
            return Poll::Ready(Ok(reply));
        }
        if let Some(heads) = conn.take_interim() {
            writer.text().extend_from_slice(&heads);
        }
        if writer.is_blocked()
            && let Poll::Ready(Err(_)) = writer.poll(cx, &mut ConnectionIo(Rc::clone(conn)))
        {
            return Poll::Ready(Err(End::Closed));
        }
        conn.poll_disconnect(cx).map(|()| Err(End::Closed))
    })
    .await
}

/// Writes the head of `response`, followed by its body.
fn start_response(
    writer: &mut MessageWriter<Body>,
    response: Response<Body>,
    request: &RequestInfo,
    date: &HeaderValue,
) -> Written {
    let (head, body) = response.into_parts();
    let to = ResponseContext {
        method: &request.method,
        version: request.version,
        keeps: request.keeps,
        takes_trailers: request.takes_trailers,
        date,
        field: body.correlation_field(),
        length: body.size_hint().exact(),
    };
    let written = write_response(&head, &to, writer.text());
    keep_map(head.headers);
    writer.begin(written.framing.map(|framing| (body, framing)));
    written
}

/// Writes the response. Ready when it is sent, or with the reason why it cannot be.
fn poll_response(
    conn: &Rc<Connection>,
    writer: &mut MessageWriter<Body>,
    cx: &mut Context<'_>,
) -> Poll<Option<End>> {
    conn.guard.deadline.watch(cx.waker());
    match writer.poll(cx, &mut ConnectionIo(Rc::clone(conn))) {
        Poll::Ready(Ok(())) => return Poll::Ready(writer.is_write_closed().then_some(End::Closed)),
        Poll::Ready(Err(_)) => return Poll::Ready(Some(End::Closed)),
        Poll::Pending if writer.is_blocked() => {
            conn.write_blocked(writer.sent());
            if let Some(body) = writer.body_mut() {
                body.poll_upload(cx);
            }
        }
        Poll::Pending => conn.write_unblocked(),
    }
    if conn.poll_disconnect(cx).is_ready() {
        return Poll::Ready(Some(End::Closed));
    }
    match conn.guard.deadline.take_expired() {
        Some((timer, after)) => {
            conn.client.timed_out.set(Some((timer, after)));
            Poll::Ready(Some(End::TimedOut(timer, after)))
        }
        None => Poll::Pending,
    }
}
