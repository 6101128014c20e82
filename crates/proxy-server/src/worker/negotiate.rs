//! Negotiation of the protocol of a new connection.

use crate::connection::client_permit::ClientPermit;
use crate::connection::client_socket::ClientSocket;
use crate::connection::client_stream::ClientStream;
use crate::connection::handshake::{self, HandshakeError};
use crate::connection::http1::connection::Connection;
use crate::connection::http1::driver::Driver;
use crate::connection::negotiated::{HttpVersion, Negotiated};
use crate::connection::ready_connection::{ConnectionGuard, ReadyConnection};
use crate::connection::settings::ConnectionSettings;
use crate::connection::timeout::ConnectionDeadline;
use crate::connection::{http2, preface, proxy_protocol};
use proxy_clock::{Deadline, Tick, Timer};
use proxy_pipeline::{ConnectionInfo, Peer, Worker};
use std::cell::Cell;
use std::rc::Rc;

/// An accepted connection: its peer and its listener.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) worker: Rc<Worker>,
    pub(crate) settings: Rc<ConnectionSettings>,
    pub(crate) listener: Rc<Cell<usize>>,
    pub(crate) peer: Peer,
    pub(crate) guard: ConnectionGuard,
    /// Tick at which the connection reaches its maximum age.
    pub(crate) ends_at: Tick,
}

/// Starts serving an accepted connection.
///
/// Negotiation is a task of its own, so that the task that lives as long as the connection is
/// small.
pub(crate) fn start(accepted: Accepted, stream: ClientSocket) {
    if accepted.settings.needs_negotiation() {
        tokio::task::spawn_local(negotiate(accepted, stream));
        return;
    }
    serve_http1(accepted.into_ready(Negotiated::plain_http1(stream)));
}

/// Starts serving a connection of HTTP/1.x.
fn serve_http1(ready: ReadyConnection) {
    tokio::task::spawn_local(Driver::new(Connection::new(ready)));
}

impl Accepted {
    fn into_ready(self, negotiated: Negotiated) -> ReadyConnection {
        let Negotiated {
            version,
            session,
            transport,
            early,
        } = negotiated;
        let terms = Rc::clone(&self.settings.terms);
        let exclusive = version == HttpVersion::Http1;
        let mut client = ConnectionInfo::new(self.listener, self.peer, exclusive, terms);
        client.ends_at = self.ends_at;
        ReadyConnection {
            settings: self.settings,
            client: Rc::new(client.with_tls(session)),
            guard: self.guard,
            transport,
            early,
        }
    }
}

async fn negotiate(mut accepted: Accepted, mut stream: ClientSocket) {
    let deadline = Rc::clone(&accepted.guard.deadline);
    let (worker, settings) = (Rc::clone(&accepted.worker), Rc::clone(&accepted.settings));
    let read = read_proxy_header(&mut accepted, &mut stream).await;
    let negotiated = match read {
        Ok(()) => establish(&worker, &settings, stream, &deadline).await,
        Err(HandshakeError::TooManyOfClient(full, _)) if settings.tls.is_none() => {
            Err(HandshakeError::TooManyOfClient(full, Some(stream)))
        }
        Err(error) => Err(error),
    };
    match negotiated {
        Ok(negotiated) if negotiated.version == HttpVersion::Http1 => {
            serve_http1(accepted.into_ready(negotiated));
        }
        Ok(negotiated) => http2::serve(accepted.into_ready(negotiated)).await,
        Err(error) => {
            let terms = Rc::clone(&settings.terms);
            let client = Rc::new(ConnectionInfo::new(
                accepted.listener,
                accepted.peer,
                true,
                terms,
            ));
            let timeout = ConnectionDeadline {
                clock: &worker.clock,
                deadline: &deadline,
            };
            error.report(&worker, &client, &settings, timeout).await;
            drop(accepted.guard);
        }
    }
}

/// Reads the PROXY protocol header, if the listener requires one.
async fn read_proxy_header(
    accepted: &mut Accepted,
    stream: &mut ClientSocket,
) -> Result<(), HandshakeError> {
    let settings = &accepted.settings;
    if !settings.proxy_protocol {
        return Ok(());
    }
    let active = accepted.worker.active();
    let listener = active.plan.listeners().get(accepted.listener.get());
    let trusted = listener.map_or(&[][..], |listener| &listener.trusted_proxies);
    if !accepted.peer.trusted.get() {
        return Err(HandshakeError::BadProxyHeader(
            "the peer is not among trusted-proxies",
        ));
    }
    let timeout = ConnectionDeadline {
        clock: &accepted.worker.clock,
        deadline: &accepted.guard.deadline,
    };
    let time = settings.handshake_time;
    let read = timeout.within(Timer::Handshake, time, proxy_protocol::read(stream));
    let named = read.await.unwrap_or(Err(HandshakeError::TimedOut(time)))?;
    accepted.peer = match named {
        Some(client) => Peer::new(client.ip(), accepted.peer.tls, trusted).with_port(client.port()),
        // The address remains the balancer's, without its trust, which is for the clients that it
        // names.
        None => accepted.peer.clone().without_trust(),
    };
    if let Some(client) = named {
        let permit = ClientPermit::take(&accepted.worker.shared, client.ip());
        let permit = permit.map_err(|full| HandshakeError::TooManyOfClient(full, None))?;
        accepted.guard.set_client(permit);
    }
    Ok(())
}

async fn establish(
    worker: &Worker,
    settings: &ConnectionSettings,
    stream: ClientSocket,
    deadline: &Deadline,
) -> Result<Negotiated, HandshakeError> {
    let timeout = ConnectionDeadline {
        clock: &worker.clock,
        deadline,
    };
    match &settings.tls {
        Some(tls) => {
            let time = settings.handshake_time;
            handshake::accept_tls(worker, tls, stream, time, timeout).await
        }
        None if settings.h2c => read_preface(settings, stream, timeout).await,
        None => Ok(Negotiated::plain_http1(stream)),
    }
}

async fn read_preface(
    settings: &ConnectionSettings,
    mut stream: ClientSocket,
    timeout: ConnectionDeadline<'_>,
) -> Result<Negotiated, HandshakeError> {
    let time = settings.header_time;
    let read = timeout.within(Timer::RequestHeader, time, preface::read(&mut stream));
    let Some(Ok((version, early))) = read.await else {
        return Err(HandshakeError::NothingSent);
    };
    Ok(Negotiated {
        version,
        session: None,
        transport: ClientStream::Plain(stream),
        early,
    })
}
