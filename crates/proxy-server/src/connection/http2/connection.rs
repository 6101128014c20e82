//! An HTTP/2 connection, from its preface to its last frame.

use super::io::SessionIo;
use super::refused_streams::malformed;
use super::session::Session;
use super::stream::StreamTask;
use super::target;
use crate::connection::ready_connection::ReadyConnection;
use crate::connection::settings::ConnectionSettings;
use crate::connection::timeout::ConnectionDeadline;
use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason as Code, RecvStream};
use http::Request;
use proxy_clock::{Deadline, Timer, TimerGuard};
use proxy_errors::{Detail, Problem, Reason};
use proxy_framing::h2::FrameMeter;
use proxy_pipeline::{Worker, log_connection_problem, timeout_problem};
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

type Http = Connection<SessionIo, Bytes>;

/// Serves the connection until it ends.
pub(crate) async fn serve(ready: ReadyConnection) {
    let ReadyConnection {
        settings,
        client,
        guard,
        transport,
        early,
    } = ready;
    let worker = &guard.worker;
    let clock = Rc::clone(&worker.clock);
    let deadline = Rc::clone(&guard.deadline);
    let meter = FrameMeter::new(settings.max_stream_resets, settings.max_section_bytes);
    let session = Session::new(client, deadline, clock, meter, settings.write_timeout);
    let session = Rc::new(session);
    let io = SessionIo::new(transport, Rc::clone(&session), early);
    let timeout = ConnectionDeadline {
        clock: &worker.clock,
        deadline: &session.deadline,
    };
    let handshake = settings.http2.handshake(io);
    let handshake = timeout.within(Timer::RequestHeader, settings.header_timeout, handshake);
    let mut http = match handshake.await {
        Some(Ok(http)) => http,
        Some(Err(error)) => return log_error(worker, &session, &error),
        None => return,
    };
    let mut driver = ConnectionDriver {
        worker,
        settings: &settings,
        session: &session,
        http: &mut http,
        notice: None,
    };
    poll_fn(|cx| driver.poll(cx)).await;
}

/// A connection being served.
struct ConnectionDriver<'c> {
    worker: &'c Rc<Worker>,
    settings: &'c Rc<ConnectionSettings>,
    session: &'c Rc<Session>,
    http: &'c mut Http,
    /// Deadline of the GOAWAY notice.
    notice: Option<GoawayNotice>,
}

/// The time between the notice and the final GOAWAY.
struct GoawayNotice {
    deadline: Rc<Deadline>,
    _entry: TimerGuard,
}

/// Time for which a client may open streams after the notice: longer than any round trip.
const GOAWAY_NOTICE_TIME: Duration = Duration::from_secs(1);

/// Maximum number of streams that one connection starts before other tasks of the worker are polled: a
/// client that opens a hundred streams at once delays no other client by all of them.
const MAX_STARTS: usize = 4;

impl ConnectionDriver<'_> {
    /// Ready when the connection has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.session.deadline.watch(cx.waker());
        self.session.begin_turn();
        let client = &self.session.client;
        if client.must_close_now(self.worker)
            || client.should_close(self.worker) && self.is_notice_over(cx)
            || self.session.is_idle() && client.should_free_descriptor(self.worker)
        {
            self.shut_down();
        }
        loop {
            let is_over = self.take_requests(cx).is_ready();
            for problem in self.session.refused_streams.take() {
                log_connection_problem(self.worker, &self.session.client, &problem);
            }
            if is_over {
                return Poll::Ready(());
            }
            if let Some(flood) = self.session.flood.get()
                && !self.session.ending.replace(true)
            {
                let detail = Detail::text(flood.to_string());
                self.abort(
                    &Problem::new(Reason::Http2Flood, detail),
                    Code::ENHANCE_YOUR_CALM,
                );
                continue;
            }
            match self.session.deadline.take_expired() {
                None => {}
                Some((timer, after)) => match self.expire(timer, after) {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(()) => return Poll::Ready(()),
                },
            }
            let settings = self.settings.in_force();
            self.session
                .arm(settings.header_timeout, settings.keep_alive_timeout);
            return Poll::Pending;
        }
    }

    /// Starts streams that the client has opened, at most [`MAX_STARTS`] a turn. Ready when the client can
    /// open no more.
    fn take_requests(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..MAX_STARTS {
            match ready!(self.http.poll_accept(cx)) {
                None => return Poll::Ready(()),
                // Requests that were read before a flood was found are not served.
                Some(Ok(_)) if self.session.ending.get() => {}
                Some(Ok((request, respond))) => self.start(request, respond),
                Some(Err(error)) => {
                    log_error(self.worker, self.session, &error);
                    return Poll::Ready(());
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn start(&self, mut request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let stream = u32::from(respond.stream_id());
        let slot = self.session.open_stream(stream);
        if target::restore(self.session, stream, &mut request).is_err() {
            return self.refuse(stream, &mut respond);
        }
        let stream_task = StreamTask {
            slot,
            request,
            respond,
        };
        self.settings.task_pool.begin(self.worker, stream_task);
    }

    /// Resets a stream with a target that does not fit into a URI.
    #[cold]
    fn refuse(&self, stream: u32, respond: &mut SendResponse<Bytes>) {
        log_connection_problem(self.worker, &self.session.client, &malformed(stream));
        respond.send_reset(Code::PROTOCOL_ERROR);
    }

    /// Handles an expired `timer`. Breaks if the connection must end.
    fn expire(&mut self, timer: Timer, after: Duration) -> ControlFlow<()> {
        if timer == Timer::RequestHeader && self.session.meter.borrow().in_head() {
            self.session.ending.set(true);
            self.abort(&timeout_problem(timer, after), Code::PROTOCOL_ERROR);
            return ControlFlow::Continue(());
        }
        let is_idle_timer = matches!(timer, Timer::KeepAlive | Timer::RequestHeader);
        if is_idle_timer && (self.shut_down() || !self.session.is_idle()) {
            return ControlFlow::Continue(());
        }
        self.session.client.timed_out.set(Some((timer, after)));
        ControlFlow::Break(())
    }

    /// Sends the notice once. Returns true if the client has had time to receive it.
    ///
    /// A client may have opened a stream before it receives the notice. If the PING came with the
    /// first GOAWAY, a client that answers it before sending its own frames would have such a
    /// stream refused.
    fn is_notice_over(&mut self, cx: &mut Context<'_>) -> bool {
        let (worker, session) = (self.worker, self.session);
        let notice = self.notice.get_or_insert_with(|| {
            session.notice.set(true);
            let deadline = Rc::<Deadline>::default();
            deadline.start(&worker.clock, Timer::Linger, GOAWAY_NOTICE_TIME);
            GoawayNotice {
                _entry: worker.timers.register(Rc::clone(&deadline)),
                deadline,
            }
        });
        notice.deadline.watch(cx.waker());
        notice.deadline.take_expired().is_some()
    }

    /// Sends GOAWAY: no further streams. False if it was sent before.
    fn shut_down(&mut self) -> bool {
        let first = !self.session.leaving.replace(true);
        if first {
            self.http.graceful_shutdown();
        }
        first
    }

    /// Sends GOAWAY with an error.
    fn abort(&mut self, problem: &Problem, code: Code) {
        log_connection_problem(self.worker, &self.session.client, problem);
        self.http.abrupt_shutdown(code);
    }
}

/// Logs the client's protocol error; a disconnect is not an error.
fn log_error(worker: &Worker, session: &Session, error: &h2::Error) {
    if !error.is_library() {
        return;
    }
    let reason = match error.reason() {
        Some(Code::NO_ERROR) | None => return,
        Some(Code::ENHANCE_YOUR_CALM) => Reason::Http2Flood,
        Some(_) => Reason::Http2ProtocolError,
    };
    let problem = Problem::new(reason, Detail::text(error.to_string()));
    log_connection_problem(worker, &session.client, &problem);
}
