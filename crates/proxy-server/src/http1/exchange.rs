//! One request over HTTP/1.x: it is handled, then its response is written.

use crate::http1::connection::{Connection, ConnectionIo};
use crate::http1::driver::End;
use http::{HeaderValue, Method, Response, StatusCode, Version};
use http_body::Body as _;
use proxy_http1::{
    Framing, MessageWriter, RequestHead, ResponseContext, Written, keep_map, write_response,
};
use proxy_pipeline::{Body, RequestStream, handle};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// What of a request its response depends on.
struct Asked {
    method: Method,
    version: Version,
    keeps: bool,
    takes_trailers: bool,
}

/// Serves the request of `head`. Tells why no further one can follow, if none can.
pub(crate) async fn exchange(
    conn: &Rc<Connection>,
    outgoing: &mut MessageWriter<Body>,
    head: RequestHead,
) -> Option<End> {
    let asked = Asked {
        method: head.request.method().clone(),
        version: head.request.version(),
        // Behind `CONNECT` comes no HTTP, whatever the answer is.
        keeps: head.keeps && *head.request.method() != Method::CONNECT,
        takes_trailers: head.takes_trailers,
    };
    let response = match answer(conn, outgoing, head).await {
        Ok(response) => response,
        Err(end) => {
            conn.place.deadline.clear();
            return Some(end);
        }
    };
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let asked = Asked {
        keeps: asked.keeps && !conn.is_to_close(),
        ..asked
    };
    let written = begin(outgoing, response, &asked, &conn.place.worker.date());
    let end = poll_fn(|cx| poll_response(conn, outgoing, cx)).await;
    conn.unblocked();
    conn.place.deadline.clear();
    if end.is_some() {
        let ends_it = written.framing == Some(Framing::UntilClose);
        return if ends_it { Some(End::Torn) } else { end };
    }
    if switches || !written.keeps || !poll_fn(|cx| Poll::Ready(conn.discard_body(cx))).await {
        return Some(End::Over);
    }
    conn.inbox().resume();
    None
}

/// Has the request handled, and writes interim responses meanwhile.
async fn answer(
    conn: &Rc<Connection>,
    outgoing: &mut MessageWriter<Body>,
    head: RequestHead,
) -> Result<Response<Body>, End> {
    let stream = RequestStream {
        client: Rc::clone(&conn.client),
        deadline: Rc::clone(&conn.place.deadline),
    };
    let body = conn.body(&head);
    let (head, ()) = head.request.into_parts();
    let mut handling = pin!(handle(Rc::clone(&conn.place.worker), stream, head, body));
    poll_fn(|cx| {
        conn.place.deadline.watch(cx.waker());
        if let Poll::Ready(response) = handling.as_mut().poll(cx) {
            if let Some(heads) = conn.take_interim() {
                outgoing.text().extend_from_slice(&heads);
            }
            return Poll::Ready(Ok(response));
        }
        if let Some(heads) = conn.take_interim() {
            outgoing.text().extend_from_slice(&heads);
        }
        if outgoing.is_blocked()
            && let Poll::Ready(Err(_)) = outgoing.poll(cx, &mut ConnectionIo(Rc::clone(conn)))
        {
            return Poll::Ready(Err(End::Over));
        }
        conn.poll_gone(cx).map(|()| Err(End::Over))
    })
    .await
}

/// Writes the head of `response` and sends its body behind it.
fn begin(
    outgoing: &mut MessageWriter<Body>,
    response: Response<Body>,
    asked: &Asked,
    date: &HeaderValue,
) -> Written {
    let (head, body) = response.into_parts();
    let to = ResponseContext {
        method: &asked.method,
        version: asked.version,
        keeps: asked.keeps,
        takes_trailers: asked.takes_trailers,
        date,
        field: body.correlation_field(),
        length: body.size_hint().exact(),
    };
    let written = write_response(&head, &to, outgoing.text());
    keep_map(head.headers);
    outgoing.begin(written.framing.map(|framing| (body, framing)));
    written
}

/// Writes the response. Ready when it is out, or why it will never be.
fn poll_response(
    conn: &Rc<Connection>,
    outgoing: &mut MessageWriter<Body>,
    cx: &mut Context<'_>,
) -> Poll<Option<End>> {
    conn.place.deadline.watch(cx.waker());
    match outgoing.poll(cx, &mut ConnectionIo(Rc::clone(conn))) {
        Poll::Ready(Ok(())) => return Poll::Ready(outgoing.is_deaf().then_some(End::Over)),
        Poll::Ready(Err(_)) => return Poll::Ready(Some(End::Over)),
        Poll::Pending if outgoing.is_blocked() => {
            conn.blocked(outgoing.sent());
            if let Some(body) = outgoing.body_mut() {
                body.poll_upload(cx);
            }
        }
        Poll::Pending => conn.unblocked(),
    }
    if conn.poll_gone(cx).is_ready() {
        return Poll::Ready(Some(End::Over));
    }
    match conn.place.deadline.take_expired() {
        Some((timer, after)) => {
            conn.client.timed_out.set(Some((timer, after)));
            Poll::Ready(Some(End::Expired(timer, after)))
        }
        None => Poll::Pending,
    }
}
