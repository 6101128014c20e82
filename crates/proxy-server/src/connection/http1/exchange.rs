//! One HTTP/1.x exchange: the request is handled, then its response is written.

use crate::connection::http1::connection::{Connection, ConnectionIo};
use crate::connection::http1::end::ConnectionEnd;
use http::{HeaderValue, Method, Response, StatusCode, Version};
use http_body::Body as _;
use proxy_http1::{Framing, MessageWriter, ResponseContext, Written, recycle_map, write_response};
use proxy_pipeline::{Body, Reply, RequestStream, handle};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

/// The properties of a request that its response depends on.
struct RequestInfo {
    method: Method,
    version: Version,
    keeps: bool,
    takes_trailers: bool,
}

/// Serves the request with a complete head. Returns why no further request can follow, if so.
pub(crate) async fn exchange(
    conn: &Rc<Connection>,
    writer: &mut MessageWriter<Body>,
) -> Option<ConnectionEnd> {
    let (handled, request) = {
        // Taken here, and not passed in: each future that passes a head on holds a copy of it.
        let taken = conn.reader().take_request();
        let Some(head) = taken else {
            let fault = conn.reader().fault();
            return Some(fault.map_or(ConnectionEnd::Closed, ConnectionEnd::Malformed));
        };
        let request = RequestInfo {
            method: head.request.method().clone(),
            version: head.request.version(),
            // No HTTP follows a `CONNECT`, regardless of the response.
            keeps: head.keeps && *head.request.method() != Method::CONNECT,
            takes_trailers: head.takes_trailers,
        };
        let stream = RequestStream {
            client: Rc::clone(&conn.client),
            deadline: Rc::clone(&conn.guard.deadline),
        };
        let body = conn.body(&head);
        let (parts, ()) = head.request.into_parts();
        let worker = Rc::clone(&conn.guard.worker);
        let mut handling = pin!(handle(worker, stream, parts, head.fields, body));
        let handled = poll_fn(|cx| poll_handling(conn, writer, handling.as_mut(), cx)).await;
        (handled, request)
    };
    let Ok(Reply { response, upgrade }) = handled else {
        conn.guard.deadline.clear();
        return Some(ConnectionEnd::Closed);
    };
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let closes = poll_fn(|cx| Poll::Ready(conn.is_to_close(cx, &response))).await;
    let request = RequestInfo {
        keeps: request.keeps && !closes,
        ..request
    };
    let worker = &conn.guard.worker;
    let written = worker.with_date(|date| start_response(writer, response, &request, date));
    let end = poll_fn(|cx| poll_response(conn, writer, cx)).await;
    conn.write_unblocked();
    conn.guard.deadline.clear();
    if end.is_some() && written.framing == Some(Framing::UntilClose) {
        return Some(ConnectionEnd::Truncated);
    }
    if let (None | Some(ConnectionEnd::Closed), Some(switched)) = (&end, upgrade) {
        return Some(ConnectionEnd::SwitchedConnection(switched));
    }
    if end.is_some() {
        return end;
    }
    if switches || !written.keeps || !poll_fn(|cx| Poll::Ready(conn.discard_body(cx))).await {
        return Some(ConnectionEnd::Closed);
    }
    conn.reader().resume();
    None
}

struct ClientLeft;

/// Runs the pipeline, and writes interim responses concurrently.
fn poll_handling(
    conn: &Rc<Connection>,
    writer: &mut MessageWriter<Body>,
    handling: Pin<&mut impl Future<Output = Reply>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Reply, ClientLeft>> {
    conn.guard.deadline.watch(cx.waker());
    let handled = handling.poll(cx);
    if let Some(heads) = conn.take_interim() {
        writer.text().extend_from_slice(&heads);
    }
    if let Poll::Ready(reply) = handled {
        return Poll::Ready(Ok(reply));
    }
    if writer.is_blocked()
        && let Poll::Ready(Err(_)) = writer.poll(cx, &mut ConnectionIo(Rc::clone(conn)))
    {
        return Poll::Ready(Err(ClientLeft));
    }
    conn.poll_disconnect(cx).map(|()| Err(ClientLeft))
}

/// Writes the head of `response`, followed by its body.
fn start_response(
    writer: &mut MessageWriter<Body>,
    response: Response<Body>,
    request: &RequestInfo,
    date: &HeaderValue,
) -> Written {
    let (head, mut body) = response.into_parts();
    let numbers = body.rate_fields();
    let to = ResponseContext {
        method: &request.method,
        version: request.version,
        keeps: request.keeps,
        takes_trailers: request.takes_trailers,
        date,
        field: body.correlation_field(),
        verbatim: body.verbatim_fields(),
        numbers: numbers.as_ref().map_or(&[], |numbers| numbers),
        length: body.size_hint().exact(),
    };
    let written = write_response(&head, &to, writer.text());
    body.drop_verbatim_fields();
    recycle_map(head.headers);
    writer.begin(written.framing.map(|framing| (body, framing)));
    written
}

/// Writes the response. Ready when it is sent, or with the reason why it cannot be.
fn poll_response(
    conn: &Rc<Connection>,
    writer: &mut MessageWriter<Body>,
    cx: &mut Context<'_>,
) -> Poll<Option<ConnectionEnd>> {
    conn.guard.deadline.watch(cx.waker());
    match writer.poll(cx, &mut ConnectionIo(Rc::clone(conn))) {
        Poll::Ready(Ok(())) => {
            return Poll::Ready(writer.is_write_closed().then_some(ConnectionEnd::Closed));
        }
        Poll::Ready(Err(_)) => return Poll::Ready(Some(ConnectionEnd::Closed)),
        Poll::Pending if writer.is_blocked() => {
            conn.write_blocked(writer.sent());
            if let Some(body) = writer.body_mut() {
                body.poll_upload(cx);
            }
        }
        Poll::Pending => conn.write_unblocked(),
    }
    if conn.poll_disconnect(cx).is_ready() {
        return Poll::Ready(Some(ConnectionEnd::Closed));
    }
    match conn.guard.deadline.take_expired() {
        Some((timer, after)) => {
            conn.client.timed_out.set(Some((timer, after)));
            Poll::Ready(Some(ConnectionEnd::TimedOut(timer, after)))
        }
        None => Poll::Pending,
    }
}
