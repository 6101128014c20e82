//! One HTTP/1.x connection from its first byte to its last.
//!
//! While requests come, hyper owns the stream. Between requests the connection is taken apart so that
//! thousands of idle ones cost little: see [`Conn::is_idle`] and [`hibernate`].

use crate::attend::Line;
use crate::client_io::ClientIo;
use crate::conn::{Conn, RESTLESS};
use crate::linger;
use crate::settings::ConnectionSettings;
use crate::transport::Transport;
use bytes::Bytes;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proxy_clock::Timer;
use proxy_framing::Fault;
use proxy_pipeline::{Stream, Worker, framing_problem, handle, refuse_unread, timeout_problem};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What hyper's part of a connection ended with.
#[derive(Debug)]
enum End {
    /// One side closed it, or it broke.
    Over,
    /// Nothing has happened for a while.
    Quiet,
    /// The client sent what is no request.
    Fault(Fault),
    /// A timer ran out.
    Expired(Timer, Duration),
}

/// Serves `line` until it ends.
pub(crate) async fn serve(worker: Rc<Worker>, settings: Rc<ConnectionSettings>, line: Line) {
    let Line {
        client,
        deadline,
        mut transport,
        early,
    } = line;
    let conn = Conn::new(client, Rc::clone(&worker.clock), deadline, &settings);
    conn.held.replace(early);
    let conn = Rc::new(conn);
    while hibernate(&worker, &settings, &conn, &transport).await {
        let (end, mut rest, unread) = talk(&worker, &settings, &conn, transport).await;
        match end {
            // Between two messages there is nothing unread, or empty lines.
            End::Quiet => transport = rest,
            End::Over => {
                if let Some(switched) = conn.client.take_switched() {
                    let unread = [&*unread, &*conn.held.borrow()].concat();
                    switched
                        .carry(rest, &unread, (&conn.clock, &conn.deadline))
                        .await;
                } else if !conn.eof.get() {
                    linger::close(&mut rest, conn.patience()).await;
                }
                break;
            }
            End::Fault(fault) => {
                refuse(&worker, &conn, &mut rest, framing_problem(fault)).await;
                break;
            }
            End::Expired(Timer::RequestHeader, after) => {
                let problem = timeout_problem(Timer::RequestHeader, after);
                refuse(&worker, &conn, &mut rest, problem).await;
                break;
            }
            End::Expired(..) => break,
        }
    }
}

/// Lets hyper talk until there is a reason to stop. Gives the stream back, and what was read of it and
/// not understood yet.
async fn talk(
    worker: &Rc<Worker>,
    settings: &ConnectionSettings,
    conn: &Rc<Conn>,
    transport: Transport,
) -> (End, Transport, Bytes) {
    let service = service_fn(|request: Request<Incoming>| {
        let stream = Stream {
            client: Rc::clone(&conn.client),
            deadline: Rc::clone(&conn.deadline),
        };
        handle(Rc::clone(worker), stream, request)
    });
    let io = TokioIo::new(ClientIo::new(transport, Rc::clone(conn)));
    let mut http = Box::new(settings.http1.serve_connection(io, service));
    let mut drains = false;
    let end = poll_fn(|cx| {
        conn.deadline.watch(cx.waker());
        loop {
            let before = conn.progress();
            if Pin::new(&mut *http).poll(cx).is_ready() {
                return Poll::Ready(End::Over);
            }
            // After the first poll: a request that is here already is to be answered.
            if conn.client.is_to_leave(worker) && !drains {
                drains = true;
                Pin::new(&mut *http).graceful_shutdown();
                continue;
            }
            // hyper takes a rest after some pipelined requests, with others in its buffer.
            if conn.has_to_decide() && conn.progress() != before {
                continue;
            }
            if conn.undecided.get() && conn.client.in_flight.get() == 0 {
                // The answer was not 101: what follows is HTTP after all.
                conn.guard.borrow_mut().resume_http();
                conn.undecided.set(false);
                continue;
            }
            return turn(worker, settings, conn);
        }
    })
    .await;
    let http1::Parts { io, read_buf, .. } = http.into_parts();
    (end, io.into_inner().into_transport(), read_buf)
}

/// What is to be done after hyper has done all it could.
fn turn(worker: &Worker, settings: &ConnectionSettings, conn: &Conn) -> Poll<End> {
    let busy = conn.client.in_flight.get() > 0;
    if let Some(fault) = conn.client.fault.get()
        && !busy
    {
        return Poll::Ready(End::Fault(fault));
    }
    if let Some((timer, after)) = conn.deadline.take_expired() {
        let waited = matches!(timer, Timer::KeepAlive | Timer::RequestHeader);
        if timer == Timer::KeepAlive && conn.is_idle() && !conn.has_moved() {
            return Poll::Ready(End::Quiet);
        }
        if !(waited && conn.has_moved()) {
            conn.client.fate.set(Some((timer, after)));
            return Poll::Ready(End::Expired(timer, after));
        }
    }
    let quiet_after = if conn.client.is_to_leave(worker) {
        Duration::ZERO
    } else {
        RESTLESS.min(settings.keep_alive_time)
    };
    conn.arm(settings.header_time, quiet_after);
    Poll::Pending
}

/// Waits, with no buffer held, until the client sends something. False when the connection is over.
async fn hibernate(
    worker: &Worker,
    settings: &ConnectionSettings,
    conn: &Conn,
    transport: &Transport,
) -> bool {
    if !conn.held.borrow().is_empty() {
        return true;
    }
    let first = conn.client.requests.get() == 0;
    let (timer, time) = if first {
        (Timer::RequestHeader, settings.header_time)
    } else {
        let left = settings.keep_alive_time.saturating_sub(RESTLESS);
        (Timer::KeepAlive, left)
    };
    conn.deadline.start(&conn.clock, timer, time);
    worker.cells.connections_idle.add(1);
    let mut readable = pin!(transport.readable());
    let awake = poll_fn(|cx: &mut Context<'_>| {
        conn.deadline.watch(cx.waker());
        if let Poll::Ready(ready) = readable.as_mut().poll(cx) {
            return Poll::Ready(ready.is_ok());
        }
        let over = conn.deadline.take_expired().is_some() || conn.client.is_to_leave(worker);
        if over {
            Poll::Ready(false)
        } else {
            Poll::Pending
        }
    })
    .await;
    worker.cells.connections_idle.sub(1);
    conn.deadline.stop();
    awake
}

/// Answers what is no request, and closes.
async fn refuse(
    worker: &Rc<Worker>,
    conn: &Conn,
    transport: &mut Transport,
    problem: proxy_errors::Problem,
) {
    let named = conn.guard.borrow().correlation_id().map(<[u8]>::to_vec);
    let answer = refuse_unread(worker, &conn.client, problem, named.as_deref());
    linger::answer(transport, &answer.bytes, conn.write_time, conn.patience()).await;
}
