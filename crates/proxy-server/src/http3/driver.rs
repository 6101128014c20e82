//! The task of a connection, from its handshake to its last response.

use super::connection::{Connection, StreamLost, number};
use super::contain::panic_problem;
use super::session::{Session, protocol_problem};
use super::settings::Http3Settings;
use super::stream;
use crate::connection::limit_problem::limit_problem;
use crate::connection::settings::ConnectionSettings;
use bytes::Bytes;
use futures_util::FutureExt;
use proxy_clock::{Deadline, Tick, Timer, TimerGuard};
use proxy_errors::{Detail, Problem, Reason};
use proxy_http3::{ErrorCode, FloodKind, Http3Error, PeerStreams, UniStream, write_goaway};
use proxy_limits::{ClientKey, ClientPermit};
use proxy_pipeline::{
    ConnectionInfo, Peer, TlsSession, Worker, log_connection_problem, timeout_problem,
};
use proxy_tls::ServerTls;
use quinn_proto::{ConnectionError, Dir, StreamId};
use std::cell::Cell;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Time for which a client may open streams after the notice: longer than any round trip.
const GOAWAY_NOTICE_TIME: Duration = Duration::from_secs(1);

/// Greatest possible ID of a request stream: a GOAWAY with this ID announces a second one. [RFC
/// 9114 §5.2]
const LAST_STREAM: u64 = (1 << 62) - 4;

/// Maximum number of late requests on a leaving connection that are rejected without a charge: the
/// client sent them before it received GOAWAY.
const MAX_REJECTED: u32 = 256;

/// Number of our unidirectional streams that stay open: the control stream.
const OPEN_STREAMS: usize = 1;

pub(super) struct Accepted {
    pub(super) worker: Rc<Worker>,
    pub(super) connection: Rc<Connection>,
    pub(super) settings: Rc<ConnectionSettings>,
    pub(super) http3: Rc<Http3Settings>,
    /// Index of the listener in the active plan.
    pub(super) listener: Rc<Cell<usize>>,
    pub(super) tls: Arc<ServerTls>,
    pub(super) peer: Peer,
    /// Tick at which the connection reaches its maximum age.
    pub(super) ends_at: Tick,
}

/// Serves the connection until it ends.
pub(super) async fn serve(accepted: Accepted) {
    let Accepted {
        worker,
        connection,
        settings,
        http3,
        listener,
        tls,
        peer,
        ends_at,
    } = accepted;
    let terms = Rc::clone(&settings.terms);
    let mut client = ConnectionInfo::new(listener, peer, false, terms);
    client.ends_at = ends_at;
    let handshake = finish_handshake(&worker, &connection, settings.handshake_timeout).await;
    match &handshake {
        Ok(()) => connection.end_handshake(),
        Err(_) => worker.metrics.handshakes_failed.add(1),
    }
    let permitted = handshake.and_then(|()| permit_client(&worker, &connection, &client.peer));
    if let Err(problem) = permitted {
        log_connection_problem(&worker, &client, &problem);
        return connection.close(ErrorCode::EXCESSIVE_LOAD, "");
    }
    worker.metrics.handshakes_completed.add(1);
    let session = tls_session(&worker, &connection, tls);
    let client = Rc::new(client.with_tls(Some(session)));
    let session = Rc::new(Session::new(
        &worker,
        &connection,
        client,
        &settings,
        &http3,
    ));
    let mut driver = Driver {
        session: &session,
        control: None,
        unsent: session.http3.offered.control_stream().into(),
        peer_streams: PeerStreams::default(),
        uni: Vec::new(),
        next_stream: 0,
        notice: None,
        lingered: Duration::ZERO,
        rejected: 0,
    };
    let served = AssertUnwindSafe(poll_fn(|cx| driver.poll(cx)));
    if served.catch_unwind().await.is_err() {
        session.fail(&panic_problem(), ErrorCode::INTERNAL_ERROR, "");
    }
}

async fn finish_handshake(
    worker: &Worker,
    connection: &Connection,
    time: Duration,
) -> Result<(), Problem> {
    let deadline = Rc::clone(&connection.guard().deadline);
    deadline.start(&worker.clock, Timer::Handshake, time);
    let finished = poll_fn(|cx| {
        deadline.watch(cx.waker());
        connection.watch(cx);
        if connection.is_lost() {
            if connection.has_panicked() {
                return Poll::Ready(Err(panic_problem()));
            }
            let error = connection.take_error();
            let text = error.map_or_else(String::new, |error| error.to_string());
            let problem = Problem::new(Reason::ClientTlsFailed, Detail::text(text));
            return Poll::Ready(Err(problem));
        }
        if connection.is_established() {
            return Poll::Ready(Ok(()));
        }
        match deadline.take_expired() {
            Some((timer, after)) => Poll::Ready(Err(timeout_problem(timer, after))),
            None => Poll::Pending,
        }
    })
    .await;
    deadline.stop();
    finished
}

/// Counts the connection against its client after the handshake, which proves the client's address.
/// A Retry proves the address earlier, and the connection is already counted then.
fn permit_client(worker: &Worker, connection: &Connection, peer: &Peer) -> Result<(), Problem> {
    if connection.guard().has_client() {
        return Ok(());
    }
    if let Some(permit) = client_permit(worker, peer)? {
        connection.guard().set_client(permit);
    }
    Ok(())
}

/// Takes a permit of the client's connection limit. `None` for a trusted proxy, which connects for
/// many clients.
pub(super) fn client_permit(worker: &Worker, peer: &Peer) -> Result<Option<ClientPermit>, Problem> {
    if peer.trusted.get() {
        return Ok(None);
    }
    let permit = worker.shared.clients.acquire(ClientKey::from(peer.ip));
    permit
        .map(Some)
        .map_err(|full| limit_problem(Reason::ClientConnectionLimit, full))
}

fn tls_session(worker: &Worker, connection: &Connection, server: Arc<ServerTls>) -> TlsSession {
    let now = worker.time.time_of_day(worker.time.elapsed());
    TlsSession {
        verdict: server.verdict_of_chain(&connection.client_chain(), now),
        version: Some("1.3"),
        server_name: connection.server_name().map(Into::into),
        server,
    }
}

/// A connection being served.
struct Driver<'c> {
    session: &'c Rc<Session>,
    /// Our control stream, as soon as the client allows it.
    control: Option<StreamId>,
    /// Frames for the control stream.
    unsent: Bytes,
    peer_streams: PeerStreams,
    uni: Vec<(StreamId, UniStream)>,
    next_stream: u64,
    /// Deadline of the GOAWAY notice.
    notice: Option<GoawayNotice>,
    /// Time for which a leaving connection has waited for acknowledgements.
    lingered: Duration,
    /// Number of requests that arrived after the connection began to leave.
    rejected: u32,
}

/// The time between the notice and the final GOAWAY.
struct GoawayNotice {
    deadline: Rc<Deadline>,
    _entry: TimerGuard,
}

impl Driver<'_> {
    /// Ready when the connection has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (session, connection) = (self.session, &self.session.connection);
        let (worker, client) = (&session.worker, &session.client);
        session.deadline.watch(cx.waker());
        connection.watch(cx);
        if !connection.is_lost() {
            self.take_requests();
            self.read_peer_streams(cx);
            if client.must_close_now(worker)
                || client.should_close(worker) && self.is_notice_over(cx)
                || self.has_moved()
            {
                self.shut_down();
            }
            self.write_control(cx);
            self.expire();
        }
        if connection.is_lost() {
            self.report_loss();
            return Poll::Ready(());
        }
        session.arm();
        Poll::Pending
    }

    /// Starts every request stream that the client has opened.
    fn take_requests(&mut self) {
        let session = self.session;
        while let Some(id) = session.connection.accept(Dir::Bi) {
            if session.leaving.get() || self.has_moved() {
                // The client may send the request again, on another connection. [RFC 9114 §5.2]
                session.connection.stop(id, ErrorCode::REQUEST_REJECTED);
                session.connection.reset(id, ErrorCode::REQUEST_REJECTED);
                self.rejected += 1;
                if self.rejected > MAX_REJECTED {
                    session.charge(FloodKind::Reset, 1);
                }
                continue;
            }
            self.next_stream = number(id) + 4;
            tokio::task::spawn_local(stream::serve(session.open_stream(), id));
        }
    }

    /// Returns true if the client's IP address differs from the one at the handshake, which
    /// networks, limits and logs refer to. A new port alone does not count.
    fn has_moved(&self) -> bool {
        let now = self.session.connection.remote().ip().to_canonical();
        now != self.session.client.peer.ip
    }

    /// Reads the client's unidirectional streams.
    fn read_peer_streams(&mut self, cx: &Context<'_>) {
        let session = self.session;
        while let Some(id) = session.connection.accept(Dir::Uni) {
            session.charge(FloodKind::UnknownStream, 1);
            self.uni.push((id, UniStream::default()));
        }
        let mut streams = std::mem::take(&mut self.uni);
        streams.retain_mut(|(id, stream)| match self.read_uni(cx, *id, stream) {
            Ok(is_open) => is_open,
            Err(error) => {
                session.fail(&protocol_problem(error), error.code, error.rule);
                false
            }
        });
        self.uni = streams;
    }

    /// Returns true if the stream is to be read further.
    fn read_uni(
        &mut self,
        cx: &Context<'_>,
        id: StreamId,
        stream: &mut UniStream,
    ) -> Result<bool, Http3Error> {
        let session = self.session;
        loop {
            match session.connection.poll_read(cx, id) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Ok(Some(bytes))) => {
                    let read = stream.read(&mut self.peer_streams, bytes);
                    session.charge(FloodKind::Control, stream.take_events());
                    read?;
                    if stream.is_ignored() {
                        session
                            .connection
                            .stop(id, ErrorCode::STREAM_CREATION_ERROR);
                        return Ok(false);
                    }
                }
                Poll::Ready(Ok(None) | Err(StreamLost::Cancelled)) => {
                    stream.finish()?;
                    return Ok(false);
                }
                Poll::Ready(Err(StreamLost::Gone)) => return Ok(false),
            }
        }
    }

    /// Opens our control stream, and sends its frames.
    fn write_control(&mut self, cx: &Context<'_>) {
        let connection = &self.session.connection;
        if self.control.is_none() {
            self.control = connection.open();
        }
        let Some(control) = self.control else { return };
        while !self.unsent.is_empty() {
            let mut chunks = [std::mem::take(&mut self.unsent)];
            let written = connection.poll_write(cx, control, &mut chunks);
            let [rest] = chunks;
            self.unsent = rest;
            match written {
                Poll::Ready(Ok(_)) => {}
                Poll::Pending | Poll::Ready(Err(StreamLost::Gone)) => return,
                Poll::Ready(Err(StreamLost::Cancelled)) => {
                    let rule = "the client stopped the control stream";
                    let error = Http3Error::connection(ErrorCode::CLOSED_CRITICAL_STREAM, rule);
                    let problem = protocol_problem(error);
                    return self.session.fail(&problem, error.code, rule);
                }
            }
        }
    }

    fn send_goaway(&mut self, stream: u64) {
        let mut frames = self.unsent.to_vec();
        write_goaway(stream, &mut frames);
        self.unsent = frames.into();
    }

    /// Sends the notice once. Returns true if the client has had time to receive it: requests that
    /// it sent before are served.
    fn is_notice_over(&mut self, cx: &Context<'_>) -> bool {
        if self.notice.is_none() {
            self.send_goaway(LAST_STREAM);
            let session = self.session;
            let deadline = Rc::<Deadline>::default();
            deadline.start(&session.clock, Timer::Linger, GOAWAY_NOTICE_TIME);
            self.notice = Some(GoawayNotice {
                _entry: session.worker.timers.register(Rc::clone(&deadline)),
                deadline,
            });
        }
        self.notice.as_ref().is_some_and(|notice| {
            notice.deadline.watch(cx.waker());
            notice.deadline.take_expired().is_some()
        })
    }

    /// Sends the final GOAWAY, once: no further requests.
    fn shut_down(&mut self) {
        if !self.session.leaving.replace(true) {
            self.send_goaway(self.next_stream);
        }
    }

    /// Handles the expiry of the connection's timer. A leaving connection closes once the client
    /// has acknowledged everything, so that it reads GOAWAY before the end.
    fn expire(&mut self) {
        let session = self.session;
        let Some((timer, after)) = session.deadline.take_expired() else {
            return;
        };
        if !session.is_idle() {
            return;
        }
        if timer == Timer::Linger && !session.connection.is_flushed(OPEN_STREAMS) {
            self.lingered += after;
            if self.lingered < session.settings.write_timeout {
                return;
            }
        }
        session.client.timed_out.set(Some((timer, after)));
        if session.leaving.get() || !matches!(timer, Timer::KeepAlive | Timer::RequestHeader) {
            return session.connection.close(ErrorCode::NO_ERROR, "");
        }
        self.shut_down();
    }

    /// Logs the client's violation of QUIC; a disconnect is not an error.
    fn report_loss(&self) {
        if self.session.connection.has_panicked() {
            let session = self.session;
            return log_connection_problem(&session.worker, &session.client, &panic_problem());
        }
        let Some(error) = self.session.connection.take_error() else {
            return;
        };
        let ConnectionError::TransportError(error) = error else {
            return;
        };
        let problem = Problem::new(Reason::Http3ProtocolError, Detail::text(error.to_string()));
        log_connection_problem(&self.session.worker, &self.session.client, &problem);
    }
}
