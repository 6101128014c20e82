//! One stream: a request, its response, and interim responses.

use super::refused_streams::malformed;
use super::response_sender::ResponseSender;
use super::session::{OpenStream, Session};
use bytes::Bytes;
use h2::ext::Protocol;
use h2::server::SendResponse;
use h2::{Reason as Code, RecvStream};
use http::header::{CONTENT_LENGTH, DATE, EXPECT};
use http::{HeaderValue, Method, Request, Response, StatusCode, request, response};
use http_body::Body as _;
use proxy_clock::Deadline;
use proxy_pipeline::{
    Body, ClientBody, ExtendedConnectProtocol, Reply, RequestStream, SwitchedConnection, Worker,
    handle, informational, log_connection_problem,
};
use proxy_pool::StreamPair;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// A stream that the client has opened.
#[derive(Debug)]
pub(super) struct StreamTask {
    pub(super) slot: OpenStream,
    pub(super) request: Request<RecvStream>,
    pub(super) respond: SendResponse<Bytes>,
}

/// Serves the stream of `stream_task` until our side has ended.
pub(super) async fn serve(
    stream_task: &RefCell<Option<StreamTask>>,
    worker: &Rc<Worker>,
    deadline: &Rc<Deadline>,
) {
    let Some(stream_task) = stream_task.take() else {
        return;
    };
    let StreamTask {
        slot,
        request,
        mut respond,
    } = stream_task;
    let session = &slot.0;
    let number = u32::from(respond.stream_id());
    let (mut head, body) = request.into_parts();
    let Opened {
        body,
        tunnel_in,
        continue_wanted,
    } = open(&mut head, body);
    let stream = RequestStream {
        client: Rc::clone(&session.client),
        deadline: Rc::clone(deadline),
    };
    // A stream that was already reset is not started.
    if poll_fn(|cx| Poll::Ready(respond.poll_reset(cx).is_ready())).await {
        log_malformed(worker, session, number);
        return;
    }
    let mut handled = pin!(Some(handle(Rc::clone(worker), stream, head, None, body)));
    let mut first = true;
    let answered = poll_fn(|cx| {
        deadline.watch(cx.waker());
        let first = std::mem::take(&mut first);
        let polled = match handled.as_mut().as_pin_mut() {
            Some(handled) => handled.poll(cx).map(Some),
            None => Poll::Ready(None),
        };
        send_interim(session, &mut respond, continue_wanted.as_deref());
        // The first poll follows the test above. If there is a response, sending it detects a
        // reset.
        if !first && polled.is_pending() && respond.poll_reset(cx).is_ready() {
            return Poll::Ready(None);
        }
        polled
    });
    let Some(Reply { response, upgrade }) = answered.await else {
        // The client has reset the stream, or it is malformed.
        let is_malformed = session.refused_streams.is_malformed(number);
        session.client.malformed.set(is_malformed);
        handled.set(None);
        session.client.malformed.set(false);
        return;
    };
    let (mut head, body) = response.into_parts();
    complete(worker, session, &mut head, &body);
    let ends = upgrade.is_none() && body.is_end_stream();
    let Ok(send) = respond.send_response(Response::from_parts(head, ()), ends) else {
        return respond.send_reset(Code::INTERNAL_ERROR);
    };
    if let (Some(switched), Some(tunnel_in)) = (upgrade, tunnel_in) {
        let pair = StreamPair::new(send, tunnel_in, Rc::clone(&session.unsent));
        // Boxed, because it is large and rare.
        return Box::pin(carry(*switched, pair, session, deadline)).await;
    }
    if ends {
        return;
    }
    send_body(ResponseSender::new(send, body), session, deadline).await;
}

/// Sends a response's body, as long as the client accepts it in time.
async fn send_body(mut sender: ResponseSender, session: &Session, deadline: &Deadline) {
    let timed_out = poll_fn(|cx| {
        deadline.watch(cx.waker());
        sender.poll(cx, session, deadline)
    })
    .await;
    if timed_out.is_some() {
        // Set only for this stream's record.
        session.client.timed_out.set(timed_out);
        drop(sender);
        session.client.timed_out.set(None);
    }
}

/// Logs a malformed stream that was not started.
fn log_malformed(worker: &Worker, session: &Session, stream: u32) {
    if session.refused_streams.is_malformed(stream) {
        log_connection_problem(worker, &session.client, &malformed(stream));
    }
}

/// The parts of a request after its head: for the pipeline, and for this task.
#[derive(Debug)]
struct Opened {
    body: ClientBody,
    /// The client's half of a requested tunnel.
    tunnel_in: Option<RecvStream>,
    /// Set when the pipeline reads a body that the client withholds until `100 Continue`.
    continue_wanted: Option<Rc<Cell<bool>>>,
}

fn open(head: &mut request::Parts, body: RecvStream) -> Opened {
    if let Some(protocol) = extended_connect_protocol(head) {
        // The method of the request to the upstream. [RFC 8441 §5]
        head.method = Method::GET;
        head.extensions.insert(protocol);
        return Opened {
            body: ClientBody::Empty,
            tunnel_in: Some(body),
            continue_wanted: None,
        };
    }
    if body.is_end_stream() {
        return Opened {
            body: ClientBody::Empty,
            tunnel_in: None,
            continue_wanted: None,
        };
    }
    let holds_back = head.headers.contains_key(EXPECT);
    let continue_wanted = holds_back.then(Rc::<Cell<bool>>::default);
    Opened {
        body: ClientBody::streamed(body, continue_wanted.clone()),
        tunnel_in: None,
        continue_wanted,
    }
}

/// The protocol in an extended CONNECT; only WebSocket is supported.
fn extended_connect_protocol(head: &request::Parts) -> Option<ExtendedConnectProtocol> {
    let protocol = head.extensions.get::<Protocol>()?;
    let known = head.method == Method::CONNECT && protocol.as_str() == "websocket";
    known.then(|| ExtendedConnectProtocol(HeaderValue::from_static("websocket")))
}

#[inline]
fn send_interim(
    session: &Session,
    respond: &mut SendResponse<Bytes>,
    continue_wanted: Option<&Cell<bool>>,
) {
    if let Some(heads) = session.client.take_interim() {
        for head in informational(&heads) {
            // Fails if the client has disconnected, which needs no handling.
            drop(respond.send_informational(head));
        }
    }
    if let Some(continue_wanted) = continue_wanted
        && continue_wanted.take()
    {
        let mut head = Response::new(());
        *head.status_mut() = StatusCode::CONTINUE;
        drop(respond.send_informational(head));
    }
}

/// Adds the header fields that the encoder adds for HTTP/1.1.
fn complete(worker: &Worker, session: &Session, head: &mut response::Parts, body: &Body) {
    // One pass over the names is cheaper than two lookups.
    let (mut has_date, mut has_length) = (false, false);
    for name in head.headers.keys() {
        has_date |= *name == DATE;
        has_length |= *name == CONTENT_LENGTH;
    }
    if session.indexes_names()
        && let Some((name, _)) = body.correlation_field()
        && let Some(id) = head.headers.get_mut(name)
    {
        // The entry is added to the table with its value, so that the next one need not spell out
        // its name.
        id.set_sensitive(false);
    }
    if !has_date {
        head.headers.insert(DATE, worker.date());
    }
    if !has_length && let Some(length @ 1..) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
}

async fn carry(
    switched: SwitchedConnection,
    pair: StreamPair,
    session: &Session,
    deadline: &Deadline,
) {
    switched.carry(pair, &[], &session.clock, deadline).await;
}
