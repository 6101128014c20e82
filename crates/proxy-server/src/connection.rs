//! One HTTP/1.x connection from its first byte to its last.
//!
//! Requests are served one after the other: see [`exchange`]. Between requests the connection keeps
//! nothing but its socket, so that thousands of idle ones cost little: see [`hibernate`].

use crate::conn::{Conn, Wire};
use crate::exchange::exchange;
use crate::linger;
use proxy_clock::Timer;
use proxy_framing::Fault;
use proxy_http1::{Outgoing, RequestHead};
use proxy_pipeline::{framing_problem, refuse_unread, timeout_problem};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a connection may keep what it needs to read a request while none comes.
const RESTLESS: Duration = Duration::from_secs(2);

/// Why no further request is read.
#[derive(Debug)]
pub(crate) enum End {
    /// One side closed it, or it broke.
    Over,
    /// It ended within a response that has no other end than its own: it must not look whole.
    Torn,
    /// There is nothing to do.
    Quiet,
    /// The client sent what is no request.
    Fault(Fault),
    /// A timer ran out.
    Expired(Timer, Duration),
}

/// Serves the connection until it ends.
pub(crate) async fn serve(conn: Rc<Conn>) {
    while hibernate(&conn).await {
        // Boxed, as all that follows: most connections are idle.
        let end = Box::pin(talk(&conn)).await;
        if !matches!(end, End::Quiet) {
            return Box::pin(finish(&conn, end)).await;
        }
        conn.rest();
    }
}

/// What is left to do when no further request is read.
async fn finish(conn: &Rc<Conn>, end: End) {
    let mut wire = Wire(Rc::clone(conn));
    match end {
        End::Over => {
            if let Some(switched) = conn.client.take_switched() {
                let unread = conn.inbox().take_unread();
                let timing = (&*conn.worker.clock, &*conn.deadline);
                switched.carry(wire, &unread, timing).await;
            } else if !conn.eof.get() {
                linger::close(&mut wire, conn.patience()).await;
            }
        }
        End::Torn => conn.tear(),
        End::Fault(fault) => refuse(conn, framing_problem(fault)).await,
        End::Expired(Timer::RequestHeader, after) => {
            refuse(conn, timeout_problem(Timer::RequestHeader, after)).await;
        }
        End::Quiet | End::Expired(..) => {}
    }
}

/// Serves requests until there is a reason to stop.
async fn talk(conn: &Rc<Conn>) -> End {
    let mut outgoing = Outgoing::default();
    loop {
        let head = poll_fn(|cx| poll_request(conn, cx)).await;
        let head = match head {
            Ok(head) => head,
            Err(end) => return end,
        };
        if let Some(end) = exchange(conn, &mut outgoing, head).await {
            return end;
        }
        // Who has asked but once may be one of thousands that ask nothing more for long; who asked
        // again is worth waiting for with everything at hand.
        if conn.client.requests.get() == 1 && conn.has_nothing() {
            return End::Quiet;
        }
    }
}

/// The next request's head, or why there is none.
fn poll_request(conn: &Conn, cx: &mut Context<'_>) -> Poll<Result<RequestHead, End>> {
    conn.deadline.watch(cx.waker());
    loop {
        let head = conn.inbox().take_request();
        if let Some(head) = head {
            conn.deadline.stop();
            return Poll::Ready(Ok(head));
        }
        if let Some(fault) = conn.inbox().fault() {
            return Poll::Ready(Err(End::Fault(fault)));
        }
        match conn.poll_fill(cx) {
            Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(End::Over)),
            Poll::Ready(Ok(_)) => {}
            Poll::Pending => return wait(conn).map(Err),
        }
    }
}

/// Nothing to read: how long yet?
fn wait(conn: &Conn) -> Poll<End> {
    let settings = &conn.settings;
    let resting = conn.inbox().is_between_requests();
    // After the look at the socket: a request that is here already is to be answered.
    if resting && conn.client.is_to_hang_up(&conn.worker) {
        return Poll::Ready(End::Over);
    }
    match conn.deadline.take_expired() {
        Some((Timer::KeepAlive, _)) if resting => return Poll::Ready(End::Quiet),
        Some((Timer::RequestHeader, after)) if !resting => {
            conn.client.fate.set(Some((Timer::RequestHeader, after)));
            return Poll::Ready(End::Expired(Timer::RequestHeader, after));
        }
        Some(_) | None => {}
    }
    let (timer, time) = if resting {
        (Timer::KeepAlive, RESTLESS.min(settings.keep_alive_time))
    } else {
        (Timer::RequestHeader, settings.header_time)
    };
    if conn.deadline.running() != Some(timer) {
        conn.deadline.start(&conn.worker.clock, timer, time);
    }
    Poll::Pending
}

/// Waits, with no buffer held, until the client sends something. False when the connection is over.
async fn hibernate(conn: &Conn) -> bool {
    let settings = &conn.settings;
    if !conn.has_nothing() {
        return true;
    }
    let first = conn.client.requests.get() == 0;
    let (timer, time) = if first {
        (Timer::RequestHeader, settings.header_time)
    } else {
        (Timer::KeepAlive, settings.keep_alive_time)
    };
    conn.deadline.start(&conn.worker.clock, timer, time);
    conn.worker.cells.connections_idle.add(1);
    let awake = poll_fn(|cx: &mut Context<'_>| {
        conn.deadline.watch(cx.waker());
        if let Poll::Ready(ready) = conn.poll_readable(cx) {
            return Poll::Ready(ready.is_ok());
        }
        let over =
            conn.deadline.take_expired().is_some() || conn.client.is_to_hang_up(&conn.worker);
        if over {
            Poll::Ready(false)
        } else {
            Poll::Pending
        }
    })
    .await;
    conn.worker.cells.connections_idle.sub(1);
    conn.deadline.stop();
    awake
}

/// Answers what is no request, and closes.
async fn refuse(conn: &Rc<Conn>, problem: proxy_errors::Problem) {
    let named = conn.inbox().correlation_id().map(<[u8]>::to_vec);
    let answer = refuse_unread(&conn.worker, &conn.client, problem, named.as_deref());
    let mut wire = Wire(Rc::clone(conn));
    linger::answer(
        &mut wire,
        &answer.bytes,
        conn.settings.write_time,
        conn.patience(),
    )
    .await;
}
