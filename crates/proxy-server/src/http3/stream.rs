//! One request stream: a request, its response, and interim responses.

use super::connection::number;
use super::contain::panic_problem;
use super::request_body::{ReadFailure, RequestHalf};
use super::response_sender::ResponseSender;
use super::session::{OpenStream, Session, protocol_problem};
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{CONTENT_LENGTH, DATE, EXPECT};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Request, StatusCode, Uri, Version, request, response};
use http_body::Body as _;
use proxy_clock::{Deadline, Timer};
use proxy_errors::{Detail, Problem};
use proxy_http1::RawTarget;
use proxy_http3::{ErrorCode, FloodKind, Http3Error, RequestHead, write_head};
use proxy_pipeline::{
    Body, ClientBody, Reply, RequestStream, Source, Worker, handle, informational,
    log_connection_problem, timeout_problem,
};
use quinn_proto::StreamId;
use std::cell::Cell;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// Serves the request on the stream `id` until our half has ended. A panic outside of the pipeline
/// ends the connection, because its state may be inconsistent.
pub(super) async fn serve(stream: OpenStream, id: StreamId) {
    let session = &stream.0;
    let served = AssertUnwindSafe(serve_request(session, id));
    if served.catch_unwind().await.is_err() {
        session.fail(&panic_problem(), ErrorCode::INTERNAL_ERROR, "");
    }
}

async fn serve_request(session: &Rc<Session>, id: StreamId) {
    let deadline = Rc::<Deadline>::default();
    let _entry = session.worker.timers.register(Rc::clone(&deadline));
    let half = RequestHalf::new(session, id);
    if let Some(head) = read_head(session, &half, &deadline, id).await {
        deadline.clear();
        exchange(session, &half, head, &deadline, id).await;
    }
    drop(half);
    session.connection.forget_stream(id);
}

/// Reads the head in time; `None` if that fails, after the cause is logged and the stream reset.
async fn read_head(
    session: &Session,
    half: &RequestHalf,
    deadline: &Deadline,
    id: StreamId,
) -> Option<request::Parts> {
    let time = session.settings.in_force().header_timeout;
    deadline.start(&session.clock, Timer::RequestHeader, time);
    let read = poll_fn(|cx| {
        deadline.watch(cx.waker());
        if let Poll::Ready(head) = half.poll_head(cx) {
            return Poll::Ready(Ok(head.and_then(|head| half.look_ahead(cx).map(|()| head))));
        }
        match deadline.take_expired() {
            Some((timer, after)) => Poll::Ready(Err(timeout_problem(timer, after))),
            None => Poll::Pending,
        }
    });
    let problem = match read.await {
        Ok(Ok(head)) => {
            if let Some(parts) = parts(head) {
                return Some(parts);
            }
            let error = Http3Error::malformed("the path is longer than any other");
            session.reject(id, error);
            protocol_problem(error)
        }
        Ok(Err(ReadFailure::Lost)) => {
            session.connection.reset(id, ErrorCode::REQUEST_CANCELLED);
            session.charge(FloodKind::Reset, 1);
            return None;
        }
        // The connection's end is logged already.
        Ok(Err(ReadFailure::Malformed(_))) if session.connection.is_lost() => return None,
        Ok(Err(ReadFailure::Malformed(error))) => {
            let text = format!("stream {} was reset: {error}", number(id));
            Problem::new(protocol_problem(error).reason(), Detail::text(text))
        }
        Err(problem) => {
            session.connection.stop(id, ErrorCode::REQUEST_REJECTED);
            session.connection.reset(id, ErrorCode::REQUEST_REJECTED);
            problem
        }
    };
    log_connection_problem(&session.worker, &session.client, &problem);
    None
}

/// The head in the form of the pipeline; `None` if the `http` crate cannot hold its path.
fn parts(head: RequestHead) -> Option<request::Parts> {
    let RequestHead {
        method,
        authority,
        path,
        fields,
        length: _,
    } = head;
    let (mut parts, ()) = Request::new(()).into_parts();
    let mut uri = http::uri::Parts::default();
    if let Some(path) = path {
        let known = PathAndQuery::from_maybe_shared(path.clone()).ok();
        if known.is_none() {
            parts.extensions.insert(RawTarget(path.clone()));
        }
        uri.path_and_query = Some(known.or_else(|| RawTarget(path).for_uri())?);
    }
    if let Some(authority) = authority {
        uri.authority = Some(Authority::from_maybe_shared(authority).ok()?);
        if uri.path_and_query.is_some() {
            uri.scheme = Some(Scheme::HTTPS);
        }
    }
    parts.uri = Uri::from_parts(uri).ok()?;
    parts.method = method;
    parts.version = Version::HTTP_3;
    parts.headers = fields;
    Some(parts)
}

async fn exchange(
    session: &Rc<Session>,
    half: &Rc<RequestHalf>,
    head: request::Parts,
    deadline: &Rc<Deadline>,
    id: StreamId,
) {
    let connection = &session.connection;
    let continue_wanted = head
        .headers
        .contains_key(EXPECT)
        .then(Rc::<Cell<bool>>::default);
    let body = if half.has_ended() {
        ClientBody::Empty
    } else {
        if let Some(wanted) = &continue_wanted {
            half.announce(Rc::clone(wanted));
        }
        ClientBody::Http3(Rc::clone(half) as Rc<dyn Source>)
    };
    let stream = RequestStream {
        client: Rc::clone(&session.client),
        deadline: Rc::clone(deadline),
    };
    let mut handled = pin!(Some(handle(
        Rc::clone(&session.worker),
        stream,
        head,
        None,
        body
    )));
    let mut interim = Interim::default();
    let answered = poll_fn(|cx| {
        deadline.watch(cx.waker());
        connection.watch_stream(id, cx);
        let polled = match handled.as_mut().as_pin_mut() {
            Some(handled) => handled.poll(cx).map(Some),
            None => Poll::Ready(None),
        };
        interim.send(session, id, continue_wanted.as_deref(), cx);
        let is_gone = || connection.is_lost() || connection.is_stopped(id) || half.is_cancelled();
        if polled.is_pending() && is_gone() {
            return Poll::Ready(None);
        }
        polled
    });
    let Some(Reply { response, upgrade }) = answered.await else {
        // The client has cancelled the request, or it is malformed.
        session.client.malformed.set(half.violation().is_some());
        handled.set(None);
        session.client.malformed.set(false);
        connection.reset(id, ErrorCode::REQUEST_CANCELLED);
        session.charge(FloodKind::Reset, 1);
        return;
    };
    // Only extended CONNECT, which is not offered, switches protocols.
    drop(upgrade);
    let (mut head, body) = response.into_parts();
    complete(&session.worker, &mut head, &body);
    let mut frames = interim.unsent;
    write_head(head.status, &head.headers, &mut frames);
    let mut sender = ResponseSender::new(id, frames, body);
    let timed_out = poll_fn(|cx| {
        deadline.watch(cx.waker());
        sender.poll(cx, session, deadline)
    })
    .await;
    // Set only for this stream's record.
    session.client.timed_out.set(timed_out);
    drop(sender);
    session.client.timed_out.set(None);
}

/// Heads of interim responses that do not fit into the client's windows yet; they are sent before
/// the final one.
#[derive(Debug, Default)]
struct Interim {
    unsent: Vec<u8>,
}

impl Interim {
    fn send(
        &mut self,
        session: &Session,
        id: StreamId,
        continue_wanted: Option<&Cell<bool>>,
        cx: &std::task::Context<'_>,
    ) {
        if let Some(heads) = session.client.take_interim() {
            for head in informational(&heads) {
                write_head(head.status(), head.headers(), &mut self.unsent);
            }
        }
        if continue_wanted.is_some_and(Cell::take) {
            write_head(StatusCode::CONTINUE, &HeaderMap::new(), &mut self.unsent);
        }
        if self.unsent.is_empty() {
            return;
        }
        let mut chunks = [Bytes::from(std::mem::take(&mut self.unsent))];
        if let Poll::Ready(Err(_)) = session.connection.poll_write(cx, id, &mut chunks) {
            // The caller notices that the client has left.
            return;
        }
        let [rest] = chunks;
        self.unsent = rest.into();
    }
}

/// Adds the header fields that the encoder adds for HTTP/1.1.
fn complete(worker: &Worker, head: &mut response::Parts, body: &Body) {
    if !head.headers.contains_key(DATE) {
        head.headers.insert(DATE, worker.date());
    }
    if !head.headers.contains_key(CONTENT_LENGTH)
        && let Some(length @ 1..) = body.size_hint().exact()
    {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn head(authority: Option<&'static str>, path: &'static str) -> RequestHead {
        RequestHead {
            method: Method::GET,
            authority: authority.map(|text| Bytes::from_static(text.as_bytes())),
            path: Some(Bytes::from_static(path.as_bytes())),
            fields: HeaderMap::new(),
            length: None,
        }
    }

    #[test]
    fn a_path_is_kept_as_sent() {
        let parts = parts(head(Some("a.test:443"), "/<?a=\"")).unwrap();
        assert_eq!(parts.uri, "https://a.test:443/%3C?a=%22");
        assert_eq!(parts.extensions.get::<RawTarget>().unwrap().0, "/<?a=\"");
        assert_eq!(parts.version, Version::HTTP_3);
    }

    #[test]
    fn a_head_without_an_authority_has_a_path_alone() {
        let parts = parts(head(None, "/x?y")).unwrap();
        assert_eq!(parts.uri, "/x?y");
        assert!(parts.extensions.get::<RawTarget>().is_none());
    }
}
