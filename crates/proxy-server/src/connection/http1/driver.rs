//! The driver of an HTTP/1.x connection, from its first byte to its last.
//!
//! Requests are served in sequence: see [`exchange`]. An idle connection holds only its socket, so
//! that thousands of them cost little: see [`poll_hibernating`].

use crate::connection::http1::connection::{Connection, ConnectionIo};
use crate::connection::http1::end::ConnectionEnd;
use crate::connection::http1::exchange::exchange;
use crate::connection::linger;
use crate::connection::ready_connection::ConnectionGuard;
use proxy_clock::Timer;
use proxy_http1::MessageWriter;
use proxy_pipeline::{UnreadRequest, refuse_unread, refused_head_problem, timeout_problem};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Idle time after which a connection hibernates.
const HIBERNATE_AFTER: Duration = Duration::from_secs(2);

/// Maximum time for reading the rest of a head that is refused for its size, to report the size.
const MEASURE_TIME: Duration = Duration::from_secs(1);

/// Serves an HTTP/1.x connection until it ends.
///
/// Not an `async fn`, so that the task of a hibernating connection is as small as possible.
pub(crate) struct Driver {
    conn: Rc<Connection>,
    /// Serves requests, then closes the connection, which has no reason to end left then. `None` while it hibernates.
    active: Option<Pin<Box<dyn Future<Output = Option<ConnectionEnd>>>>>,
}

impl Driver {
    pub(crate) fn new(conn: Connection) -> Self {
        Self {
            conn: Rc::new(conn),
            active: None,
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            if let Some(active) = &mut this.active {
                match ready!(active.as_mut().poll(cx)) {
                    None => return Poll::Ready(()),
                    Some(ConnectionEnd::Idle) => {
                        this.active = None;
                        this.conn.release_reader();
                    }
                    Some(end) => {
                        // Replaces the request's memory while the connection lingers.
                        this.active = Some(Box::pin(finish(Rc::clone(&this.conn), end)));
                        continue;
                    }
                }
            }
            if !ready!(poll_hibernating(&this.conn, cx)) {
                return Poll::Ready(());
            }
            this.active = Some(Box::pin(serve_requests(Rc::clone(&this.conn))));
        }
    }
}

/// Closes the connection for the reason in `end`.
async fn finish(conn: Rc<Connection>, end: ConnectionEnd) -> Option<ConnectionEnd> {
    let mut wire = ConnectionIo(Rc::clone(&conn));
    match end {
        ConnectionEnd::Closed if conn.eof.get() => {}
        ConnectionEnd::Closed => {
            conn.discard_reader();
            linger::close(&mut wire, conn.timeout()).await;
        }
        ConnectionEnd::SwitchedConnection(switched) => {
            let unread = conn.reader().take_unread();
            let (clock, deadline) = (&conn.guard.worker.clock, &conn.guard.deadline);
            switched.carry(wire, &unread, clock, deadline).await;
        }
        ConnectionEnd::Truncated => conn.abort(),
        ConnectionEnd::Malformed(fault) => {
            let problem = {
                let reader = conn.reader();
                let problem = refused_head_problem(fault, reader.unread());
                if reader.is_size_open() {
                    problem.at_least()
                } else {
                    problem
                }
            };
            refuse(&conn, problem).await;
        }
        ConnectionEnd::TimedOut(Timer::RequestHeader, after) => {
            refuse(&conn, timeout_problem(Timer::RequestHeader, after)).await;
        }
        ConnectionEnd::Idle | ConnectionEnd::TimedOut(..) => {}
    }
    None
}

/// Serves requests until there is a reason to stop.
async fn serve_requests(conn: Rc<Connection>) -> Option<ConnectionEnd> {
    let mut writer = MessageWriter::default();
    loop {
        if let Err(end) = poll_fn(|cx| poll_request(&conn, cx)).await {
            return Some(end);
        }
        if let Some(end) = exchange(&conn, &mut writer).await {
            return Some(end);
        }
        // A connection hibernates right after its first request, because thousands may stay idle; a
        // reused one keeps its buffers for a while.
        if conn.client.requests.get() == 1 && conn.has_no_input() {
            return Some(ConnectionEnd::Idle);
        }
    }
}

/// Ready when the next request's head is complete, or with the reason of the connection's end.
fn poll_request(conn: &Connection, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
    conn.guard.deadline.watch(cx.waker());
    if conn.client.terms.is_retired() {
        // Further input is validated by the limits of the current settings.
        conn.release_reader();
    }
    loop {
        let (has_request, fault) = {
            let reader = conn.reader();
            (reader.has_request(), reader.fault())
        };
        if has_request {
            conn.guard.deadline.stop();
            return Poll::Ready(Ok(()));
        }
        if let Some(fault) = fault {
            return Poll::Ready(Err(ConnectionEnd::Malformed(fault)));
        }
        match conn.poll_fill(cx) {
            Poll::Ready(Ok(0) | Err(_)) if conn.reader().is_measuring() => {
                conn.reader().end_measuring();
            }
            Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(ConnectionEnd::Closed)),
            Poll::Ready(Ok(_)) => {}
            Poll::Pending if conn.reader().is_measuring() => {
                ready!(poll_measured(conn));
            }
            Poll::Pending => return poll_timers(conn).map(Err),
        }
    }
}

/// Ready when a head that is refused for its size is not to be read any further.
fn poll_measured(conn: &Connection) -> Poll<()> {
    let deadline = &conn.guard.deadline;
    if let Some((Timer::Linger, _)) = deadline.take_expired() {
        conn.reader().end_measuring();
        return Poll::Ready(());
    }
    if deadline.running() != Some(Timer::Linger) {
        deadline.start(&conn.guard.worker.clock, Timer::Linger, MEASURE_TIME);
    }
    Poll::Pending
}

/// Waits, hibernates or ends a connection without input.
fn poll_timers(conn: &Connection) -> Poll<ConnectionEnd> {
    let settings = conn.settings.in_force();
    let between_requests = conn.reader().is_between_requests();
    // Tested after the socket, because a request that has arrived must be answered.
    let worker = &conn.guard.worker;
    if between_requests
        && (conn.client.should_close_idle(worker) || conn.client.should_free_descriptor(worker))
    {
        return Poll::Ready(ConnectionEnd::Closed);
    }
    match conn.guard.deadline.take_expired() {
        Some((Timer::KeepAlive, _)) if between_requests => return Poll::Ready(ConnectionEnd::Idle),
        Some((Timer::RequestHeader, after)) if !between_requests => {
            conn.client
                .timed_out
                .set(Some((Timer::RequestHeader, after)));
            return Poll::Ready(ConnectionEnd::TimedOut(Timer::RequestHeader, after));
        }
        Some(_) | None => {}
    }
    let (timer, time) = if between_requests {
        (
            Timer::KeepAlive,
            HIBERNATE_AFTER.min(settings.keep_alive_timeout),
        )
    } else {
        (Timer::RequestHeader, settings.header_timeout)
    };
    if conn.guard.deadline.running() != Some(timer) {
        conn.guard
            .deadline
            .start(&conn.guard.worker.clock, timer, time);
    }
    Poll::Pending
}

/// Hibernates until a request begins. Ready with whether the connection stays open.
fn poll_hibernating(conn: &Connection, cx: &mut Context<'_>) -> Poll<bool> {
    let ConnectionGuard {
        worker, deadline, ..
    } = &conn.guard;
    if !conn.hibernating.get() {
        if !conn.has_no_input() {
            return Poll::Ready(true);
        }
        let settings = conn.settings.in_force();
        let (timer, time) = match conn.client.requests.get() {
            0 => (Timer::RequestHeader, settings.header_timeout),
            _ => (Timer::KeepAlive, settings.keep_alive_timeout),
        };
        deadline.start(&worker.clock, timer, time);
        worker.metrics.connections_idle.add(1);
        worker.metrics.connections_active.sub(1);
        conn.hibernating.set(true);
    }
    deadline.watch(cx.waker());
    let over = || {
        deadline.take_expired().is_some()
            || conn.client.should_close_idle(worker)
            || conn.client.should_free_descriptor(worker)
    };
    let goes_on = match conn.poll_readable(cx) {
        Poll::Ready(ready) => ready.is_ok(),
        Poll::Pending if over() => false,
        Poll::Pending => return Poll::Pending,
    };
    conn.hibernating.set(false);
    worker.metrics.connections_idle.sub(1);
    worker.metrics.connections_active.add(1);
    deadline.stop();
    Poll::Ready(goes_on)
}

/// Answers a malformed request, and closes.
async fn refuse(conn: &Rc<Connection>, problem: proxy_errors::Problem) {
    let answer = {
        let reader = conn.reader();
        let unread = UnreadRequest {
            correlation_id: reader.correlation_id(),
            head: reader.unread(),
        };
        refuse_unread(&conn.guard.worker, &conn.client, problem, unread)
    };
    conn.discard_reader();
    let mut wire = ConnectionIo(Rc::clone(conn));
    linger::answer(
        &mut wire,
        &answer.bytes,
        conn.settings.in_force().write_timeout,
        conn.timeout(),
    )
    .await;
}
