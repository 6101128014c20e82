//! A new connection: what it speaks is found out, then it is served.

use crate::client_socket::ClientSocket;
use crate::client_stream::ClientStream;
use crate::handshake::{self, Failure};
use crate::http1::connection::Connection;
use crate::http1::driver::Driver;
use crate::http2;
use crate::preface;
use crate::proxy_protocol;
use crate::settings::ConnectionSettings;
use crate::timeout::ConnectionDeadline;
use bytes::Bytes;
use proxy_clock::{Deadline, Tick, Timer, TimerGuard};
use proxy_limits::Permit;
use proxy_pipeline::{ConnectionInfo, Peer, TlsSession, Worker};
use std::cell::Cell;
use std::rc::Rc;

/// The version of HTTP that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    Http1,
    Http2,
}

/// A connection of which it is known what it speaks.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) spoken: HttpVersion,
    pub(crate) session: Option<TlsSession>,
    pub(crate) transport: ClientStream,
    /// What was read to find out.
    pub(crate) early: Bytes,
}

impl Negotiated {
    /// HTTP/1.x, without TLS.
    fn plainly(stream: ClientSocket) -> Self {
        Self {
            spoken: HttpVersion::Http1,
            session: None,
            transport: ClientStream::Plain(stream),
            early: Bytes::new(),
        }
    }
}

/// Who calls, and by which listener.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) worker: Rc<Worker>,
    pub(crate) settings: Rc<ConnectionSettings>,
    pub(crate) listener: Rc<Cell<usize>>,
    pub(crate) peer: Peer,
    pub(crate) place: Place,
    /// When the connection is too old for further requests.
    pub(crate) ends_at: Tick,
}

/// A connection's place among those that are open: it counts, and its deadline is looked after, until
/// this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) deadline: Rc<Deadline>,
    pub(crate) worker: Rc<Worker>,
    _entry: TimerGuard,
    _permit: Permit,
}

/// A connection ready to be served.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) settings: Rc<ConnectionSettings>,
    pub(crate) client: Rc<ConnectionInfo>,
    pub(crate) place: Place,
    pub(crate) transport: ClientStream,
    /// What was read of it already.
    pub(crate) early: Bytes,
}

impl Place {
    pub(crate) fn new(worker: &Rc<Worker>, permit: Permit, ends_at: Tick) -> Self {
        let deadline = Rc::<Deadline>::default();
        deadline.set_alarm(ends_at);
        worker.cells.connections_active.add(1);
        Self {
            _entry: worker.sweep.register(Rc::clone(&deadline)),
            deadline,
            worker: Rc::clone(worker),
            _permit: permit,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.worker.cells.connections_active.sub(1);
    }
}

/// Starts to serve the connection of `caller`.
///
/// What finds out what a connection speaks is a task of its own, so that the one that lives as long as
/// the connection is small.
pub(crate) fn negotiate(caller: Accepted, stream: ClientSocket) {
    if caller.settings.has_to_find_out() {
        tokio::task::spawn_local(find_out(caller, stream));
        return;
    }
    start(caller.line(Negotiated::plainly(stream)));
}

/// Serves a connection of HTTP/1.x.
fn start(line: Line) {
    tokio::task::spawn_local(Driver::new(Connection::new(line)));
}

impl Accepted {
    fn line(self, agreed: Negotiated) -> Line {
        let Negotiated {
            spoken,
            session,
            transport,
            early,
        } = agreed;
        let terms = Rc::clone(&self.settings.terms);
        let exclusive = spoken == HttpVersion::Http1;
        let mut client = ConnectionInfo::new(self.listener, self.peer, exclusive, terms);
        client.ends_at = self.ends_at;
        Line {
            settings: self.settings,
            client: Rc::new(client.secured(session)),
            place: self.place,
            transport,
            early,
        }
    }
}

async fn find_out(mut caller: Accepted, mut stream: ClientSocket) {
    let deadline = Rc::clone(&caller.place.deadline);
    let (worker, settings) = (Rc::clone(&caller.worker), Rc::clone(&caller.settings));
    let introduced = introduce(&mut caller, &mut stream).await;
    let agreed = match introduced {
        Ok(()) => agree(&worker, &settings, stream, &deadline).await,
        Err(failure) => Err(failure),
    };
    match agreed {
        Ok(agreed) if agreed.spoken == HttpVersion::Http1 => start(caller.line(agreed)),
        Ok(agreed) => http2::serve(caller.line(agreed)).await,
        Err(failure) => {
            let terms = Rc::clone(&settings.terms);
            let client = Rc::new(ConnectionInfo::new(
                caller.listener,
                caller.peer,
                true,
                terms,
            ));
            let patience = ConnectionDeadline {
                clock: &worker.clock,
                deadline: &deadline,
            };
            failure.settle(&worker, &client, &settings, patience).await;
            drop(caller.place);
        }
    }
}

/// Learns from a proxy in front who calls, where that is the rule.
async fn introduce(caller: &mut Accepted, stream: &mut ClientSocket) -> Result<(), Failure> {
    let settings = &caller.settings;
    if !settings.proxy_protocol {
        return Ok(());
    }
    let active = caller.worker.active();
    let listener = active.plan.listeners().get(caller.listener.get());
    let trusted = listener.map_or(&[][..], |listener| &listener.trusted_proxies);
    if !caller.peer.trusted.get() {
        return Err(Failure::Introduction(
            "the peer is not among trusted-proxies",
        ));
    }
    let patience = ConnectionDeadline {
        clock: &caller.worker.clock,
        deadline: &caller.place.deadline,
    };
    let time = settings.handshake_time;
    let heard = patience.within(Timer::Handshake, time, proxy_protocol::read(stream));
    caller.peer = match heard.await.unwrap_or(Err(Failure::Late(time)))? {
        Some(client) => Peer::new(client, caller.peer.tls, trusted),
        // The address stays the balancer's; its trust was for the clients that it names.
        None => caller.peer.clone().doubted(),
    };
    Ok(())
}

async fn agree(
    worker: &Worker,
    settings: &ConnectionSettings,
    stream: ClientSocket,
    deadline: &Deadline,
) -> Result<Negotiated, Failure> {
    let patience = ConnectionDeadline {
        clock: &worker.clock,
        deadline,
    };
    match &settings.tls {
        Some(tls) => {
            let time = settings.handshake_time;
            handshake::shake(worker, tls, stream, time, patience).await
        }
        None if settings.h2c => hear(settings, stream, patience).await,
        None => Ok(Negotiated::plainly(stream)),
    }
}

async fn hear(
    settings: &ConnectionSettings,
    mut stream: ClientSocket,
    patience: ConnectionDeadline<'_>,
) -> Result<Negotiated, Failure> {
    let time = settings.header_time;
    let heard = patience.within(Timer::RequestHeader, time, preface::listen(&mut stream));
    let Some(Ok((spoken, early))) = heard.await else {
        return Err(Failure::Nobody);
    };
    Ok(Negotiated {
        spoken,
        session: None,
        transport: ClientStream::Plain(stream),
        early,
    })
}
