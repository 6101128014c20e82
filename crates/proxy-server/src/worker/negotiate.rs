//! Negotiation of the protocol of a new connection.

use crate::connection::client_socket::ClientSocket;
use crate::connection::client_stream::ClientStream;
use crate::connection::handshake::{self, HandshakeError};
use crate::connection::http1::connection::Connection;
use crate::connection::http1::driver::Driver;
use crate::connection::negotiated::{HttpVersion, Negotiated};
use crate::connection::ready_connection::{ConnectionGuard, ReadyConnection};
use crate::connection::settings::ConnectionSettings;
use crate::connection::timeout::ConnectionDeadline;
use crate::connection::{http2, preface, proxy_protocol, relay};
use ipnet::IpNet;
use proxy_clock::{Deadline, Tick, Timer};
use proxy_limits::ClientKey;
use proxy_model::ListenerProtocol;
use proxy_pipeline::{ActivePlan, ConnectionInfo, Peer, Worker, must_close_idle};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

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
/// Negotiation is a separate task, so that the task that lives as long as the connection is small.
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
            server_name: _,
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
    let worker = Rc::clone(&accepted.worker);
    let read = read_proxy_header(&mut accepted, &mut stream).await;
    let negotiated = match read {
        Ok(()) => establish(&mut accepted, stream, &deadline).await,
        Err(HandshakeError::TooManyOfClient(full, _)) if accepted.settings.tls.is_none() => {
            Err(HandshakeError::TooManyOfClient(full, Some(stream)))
        }
        Err(error) => {
            let is_refused = !matches!(error, HandshakeError::NothingSent);
            if is_refused && accepted.settings.protocol.is_relayed() {
                // If the socket refuses the option, drop closes it in order.
                stream.abort().unwrap_or_default();
            }
            Err(error)
        }
    };
    match negotiated {
        Ok(mut negotiated) if accepted.settings.protocol.is_relayed() => {
            let server_name = negotiated.server_name.take();
            relay::serve(accepted.into_ready(negotiated), server_name);
        }
        Ok(negotiated) if negotiated.version == HttpVersion::Http1 => {
            serve_http1(accepted.into_ready(negotiated));
        }
        Ok(negotiated) => http2::serve(accepted.into_ready(negotiated)).await,
        Err(error) => {
            let settings = accepted.settings;
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

/// Waits for the client's first byte, which stays unread, then applies the active settings to the
/// connection: the settings at its accept may be outdated.
///
/// # Errors
/// The client closed the connection, or it must close as idle, before the byte arrived.
async fn await_first_byte(
    accepted: &mut Accepted,
    stream: &ClientSocket,
) -> Result<u8, HandshakeError> {
    let mut first = [0];
    let count = {
        let mut peek = pin!(stream.peek(&mut first));
        // The deadline of the connection wakes the task when the worker drains or a listener is
        // removed.
        poll_fn(|cx| match peek.as_mut().poll(cx) {
            Poll::Ready(count) => Poll::Ready(count.map_err(HandshakeError::Io)),
            Poll::Pending if must_close_idle(&accepted.worker, accepted.listener.get()) => {
                Poll::Ready(Err(HandshakeError::NothingSent))
            }
            Poll::Pending => Poll::Pending,
        })
        .await?
    };
    if count == 0 {
        return Err(HandshakeError::NothingSent);
    }
    accepted.settings = Rc::clone(accepted.settings.in_force());
    let [first] = first;
    Ok(first)
}

/// Reads the PROXY protocol header, if the listener requires one. The peer must be trusted when the
/// header is complete, by the plan that is active then.
async fn read_proxy_header(
    accepted: &mut Accepted,
    stream: &mut ClientSocket,
) -> Result<(), HandshakeError> {
    if !accepted.settings.proxy_protocol {
        return Ok(());
    }
    check_trust(accepted)?;
    let worker = Rc::clone(&accepted.worker);
    let deadline = Rc::clone(&accepted.guard.deadline);
    let timeout = ConnectionDeadline {
        clock: &worker.clock,
        deadline: &deadline,
    };
    let time = accepted.settings.handshake_timeout;
    let read = timeout.within(Timer::Handshake, time, async {
        await_first_byte(accepted, stream).await?;
        proxy_protocol::read(stream).await
    });
    let proxied = read.await.unwrap_or(Err(HandshakeError::TimedOut(time)))?;
    check_trust(accepted)?;
    accepted.peer = match proxied {
        Some(proxied) => {
            let active = worker.active();
            let trusted = trusted_proxies(&active, accepted);
            Peer::named_by_proxy(proxied, accepted.peer.tls, trusted)
        }
        // The address remains the balancer's, without its trust, which applies to the clients it
        // names.
        None => accepted.peer.clone().without_trust(),
    };
    if let Some(proxied) = proxied {
        let client = ClientKey::from(proxied.source.ip());
        let permit = worker.shared.clients.acquire(client);
        let permit = permit.map_err(|full| HandshakeError::TooManyOfClient(full, None))?;
        accepted.guard.set_client(permit);
    }
    Ok(())
}

fn check_trust(accepted: &Accepted) -> Result<(), HandshakeError> {
    let active = accepted.worker.active();
    accepted
        .peer
        .update_trust(trusted_proxies(&active, accepted));
    if accepted.peer.trusted.get() {
        return Ok(());
    }
    Err(HandshakeError::BadProxyHeader(
        "the peer is not among trusted-proxies",
    ))
}

/// Networks of the trusted peers of the connection's listener; empty if the active plan lacks it.
fn trusted_proxies<'p>(active: &'p ActivePlan, accepted: &Accepted) -> &'p [IpNet] {
    let listener = active.plan.listeners().get(accepted.listener.get());
    listener.map_or(&[][..], |listener| &listener.trusted_proxies)
}

async fn establish(
    accepted: &mut Accepted,
    stream: ClientSocket,
    deadline: &Deadline,
) -> Result<Negotiated, HandshakeError> {
    let worker = Rc::clone(&accepted.worker);
    let timeout = ConnectionDeadline {
        clock: &worker.clock,
        deadline,
    };
    let settings = &accepted.settings;
    let (timer, time) = match settings.tls {
        Some(_) => (Timer::Handshake, settings.handshake_timeout),
        None if settings.protocol == ListenerProtocol::TlsPassthrough => {
            (Timer::Handshake, settings.handshake_timeout)
        }
        None if settings.h2c => (Timer::RequestHeader, settings.header_timeout),
        None => return Ok(Negotiated::plain_http1(stream)),
    };
    let negotiated = timeout.within(timer, time, async {
        let first = await_first_byte(accepted, &stream).await?;
        match &accepted.settings.tls {
            Some(tls) => handshake::accept_tls(&worker, tls, stream, first).await,
            None if accepted.settings.protocol == ListenerProtocol::TlsPassthrough => {
                relay::read_hello(stream).await
            }
            None if accepted.settings.h2c => read_preface(stream).await,
            None => Ok(Negotiated::plain_http1(stream)),
        }
    });
    let too_late = if timer == Timer::Handshake {
        HandshakeError::TimedOut(time)
    } else {
        HandshakeError::NothingSent
    };
    negotiated.await.unwrap_or(Err(too_late))
}

async fn read_preface(mut stream: ClientSocket) -> Result<Negotiated, HandshakeError> {
    let read = preface::read(&mut stream).await;
    let (version, early) = read.map_err(|_| HandshakeError::NothingSent)?;
    Ok(Negotiated {
        version,
        session: None,
        server_name: None,
        transport: ClientStream::Plain(stream),
        early,
    })
}
