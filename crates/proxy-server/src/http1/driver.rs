//! One HTTP/1.x connection from its first byte to its last.
//!
//! Requests are served one after the other: see [`exchange`]. Between requests the connection keeps
//! nothing but its socket, so that thousands of idle ones cost little: see [`hibernate`].

use crate::http1::connection::{Connection, ConnectionIo};
use crate::http1::exchange::exchange;
use crate::linger;
use crate::negotiate::Place;
use proxy_clock::Timer;
use proxy_framing::FramingError;
use proxy_http1::{MessageWriter, RequestHead};
use proxy_pipeline::{UnreadRequest, refuse_unread, refused_head_problem, timeout_problem};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// How long a connection may keep what it needs to read a request while none comes.
const HIBERNATE_AFTER: Duration = Duration::from_secs(2);

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
    FramingError(FramingError),
    /// A timer ran out.
    Expired(Timer, Duration),
}

/// Serves HTTP/1.x on a connection until it is over.
///
/// Not an `async fn`: what a connection at rest needs fits into the smallest task there is.
pub(crate) struct Driver {
    conn: Rc<Connection>,
    /// Serves requests; gives whether the connection is to rest. None at rest.
    busy: Option<Pin<Box<dyn Future<Output = bool>>>>,
}

impl Driver {
    pub(crate) fn new(conn: Connection) -> Self {
        Self {
            conn: Rc::new(conn),
            busy: None,
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            if let Some(busy) = &mut this.busy {
                if !ready!(busy.as_mut().poll(cx)) {
                    return Poll::Ready(());
                }
                this.busy = None;
                this.conn.rest();
            }
            if !ready!(poll_awake(&this.conn, cx)) {
                return Poll::Ready(());
            }
            this.busy = Some(Box::pin(busy(Rc::clone(&this.conn))));
        }
    }
}

/// Serves requests until there is nothing to do. Whether the connection goes on.
async fn busy(conn: Rc<Connection>) -> bool {
    let end = talk(&conn).await;
    if matches!(end, End::Quiet) {
        return true;
    }
    Box::pin(finish(&conn, end)).await;
    false
}

/// What is left to do when no further request is read.
async fn finish(conn: &Rc<Connection>, end: End) {
    let mut wire = ConnectionIo(Rc::clone(conn));
    match end {
        End::Over => {
            if let Some(switched) = conn.client.take_switched() {
                let unread = conn.inbox().take_unread();
                let timing = (&*conn.place.worker.clock, &*conn.place.deadline);
                switched.carry(wire, &unread, timing).await;
            } else if !conn.eof.get() {
                linger::close(&mut wire, conn.patience()).await;
            }
        }
        End::Torn => conn.tear(),
        End::FramingError(fault) => {
            let problem = refused_head_problem(fault, conn.inbox().unread());
            refuse(conn, problem).await;
        }
        End::Expired(Timer::RequestHeader, after) => {
            refuse(conn, timeout_problem(Timer::RequestHeader, after)).await;
        }
        End::Quiet | End::Expired(..) => {}
    }
}

/// Serves requests until there is a reason to stop.
async fn talk(conn: &Rc<Connection>) -> End {
    let mut outgoing = MessageWriter::default();
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
fn poll_request(conn: &Connection, cx: &mut Context<'_>) -> Poll<Result<RequestHead, End>> {
    conn.place.deadline.watch(cx.waker());
    if conn.client.terms.is_retired() {
        // What is read from now on is judged by the limits of the settings in force.
        conn.rest();
    }
    loop {
        let head = conn.inbox().take_request();
        if let Some(head) = head {
            conn.place.deadline.stop();
            return Poll::Ready(Ok(head));
        }
        if let Some(fault) = conn.inbox().fault() {
            return Poll::Ready(Err(End::FramingError(fault)));
        }
        match conn.poll_fill(cx) {
            Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(End::Over)),
            Poll::Ready(Ok(_)) => {}
            Poll::Pending => return wait(conn).map(Err),
        }
    }
}

/// Nothing to read: how long yet?
fn wait(conn: &Connection) -> Poll<End> {
    let settings = conn.settings.in_force();
    let resting = conn.inbox().is_between_requests();
    // After the look at the socket: a request that is here already is to be answered.
    if resting && conn.client.is_to_end_idle(&conn.place.worker) {
        return Poll::Ready(End::Over);
    }
    match conn.place.deadline.take_expired() {
        Some((Timer::KeepAlive, _)) if resting => return Poll::Ready(End::Quiet),
        Some((Timer::RequestHeader, after)) if !resting => {
            conn.client
                .timed_out
                .set(Some((Timer::RequestHeader, after)));
            return Poll::Ready(End::Expired(Timer::RequestHeader, after));
        }
        Some(_) | None => {}
    }
    let (timer, time) = if resting {
        (
            Timer::KeepAlive,
            HIBERNATE_AFTER.min(settings.keep_alive_time),
        )
    } else {
        (Timer::RequestHeader, settings.header_time)
    };
    if conn.place.deadline.running() != Some(timer) {
        conn.place
            .deadline
            .start(&conn.place.worker.clock, timer, time);
    }
    Poll::Pending
}

/// Waits, with nothing but the socket, until a request begins. Ready with whether the connection goes
/// on.
fn poll_awake(conn: &Connection, cx: &mut Context<'_>) -> Poll<bool> {
    let Place {
        worker, deadline, ..
    } = &conn.place;
    if !conn.resting.get() {
        if !conn.has_nothing() {
            return Poll::Ready(true);
        }
        let settings = conn.settings.in_force();
        let (timer, time) = match conn.client.requests.get() {
            0 => (Timer::RequestHeader, settings.header_time),
            _ => (Timer::KeepAlive, settings.keep_alive_time),
        };
        deadline.start(&worker.clock, timer, time);
        worker.cells.connections_idle.add(1);
        conn.resting.set(true);
    }
    deadline.watch(cx.waker());
    let over = || deadline.take_expired().is_some() || conn.client.is_to_end_idle(worker);
    let goes_on = match conn.poll_readable(cx) {
        Poll::Ready(ready) => ready.is_ok(),
        Poll::Pending if over() => false,
        Poll::Pending => return Poll::Pending,
    };
    conn.resting.set(false);
    worker.cells.connections_idle.sub(1);
    deadline.stop();
    Poll::Ready(goes_on)
}

/// Answers what is no request, and closes.
async fn refuse(conn: &Rc<Connection>, problem: proxy_errors::Problem) {
    let answer = {
        let inbox = conn.inbox();
        let unread = UnreadRequest {
            correlation_id: inbox.correlation_id(),
            head: inbox.unread(),
        };
        refuse_unread(&conn.place.worker, &conn.client, problem, unread)
    };
    let mut wire = ConnectionIo(Rc::clone(conn));
    linger::answer(
        &mut wire,
        &answer.bytes,
        conn.settings.in_force().write_time,
        conn.patience(),
    )
    .await;
}
