//! Decisions on new connections: limits, address validation, TLS.

use super::{Endpoint, EndpointTask};
use crate::connection::limit_problem::limit_problem;
use crate::connection::ready_connection::ConnectionGuard;
use crate::http3::connection::Connection;
use crate::http3::driver::{Accepted, HandshakeSlot, serve};
use crate::http3::secrets::Http3Secrets;
use proxy_clock::Tick;
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::Permit;
use proxy_pipeline::{ConnectionInfo, Peer, Worker, log_connection_problem};
use proxy_tls::ServerTls;
use quinn_proto::crypto::HandshakeTokenKey;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{Incoming, ServerConfig, Transmit};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio_rustls::rustls;

/// Connections of an endpoint in their handshake, above which clients must prove their address first.
const RETRY_HANDSHAKES: usize = 32;

/// Connections of an endpoint in their handshake at most; further ones are not answered.
const MAX_HANDSHAKES: usize = 1024;

/// New connections that are not decided on yet, and bytes of each: decisions are taken at once.
const MAX_INCOMING: usize = 16;
const INCOMING_BYTES: u64 = 16 * 1024;

/// The configurations of new connections, built again when TLS or limits change.
pub(super) struct ServerConfigs {
    token_key: Arc<dyn HandshakeTokenKey>,
    built: Option<BuiltConfig>,
}

struct BuiltConfig {
    tls: Arc<rustls::ServerConfig>,
    transport: Arc<quinn_proto::TransportConfig>,
}

impl ServerConfigs {
    pub(super) fn new(secrets: &Http3Secrets) -> Self {
        Self {
            token_key: secrets.token_key(),
            built: None,
        }
    }

    /// Sets the configuration of `proto` to the one in force.
    pub(super) fn refresh(&mut self, proto: &mut quinn_proto::Endpoint, endpoint: &Endpoint) {
        let settings = endpoint.settings.borrow();
        let Some(tls) = &settings.tls else { return };
        let tls = tls.http3_config();
        let transport = &endpoint.http3.borrow().transport;
        let is_current = self.built.as_ref().is_some_and(|built| {
            Arc::ptr_eq(&built.tls, &tls) && Arc::ptr_eq(&built.transport, transport)
        });
        if is_current {
            return;
        }
        let crypto = match QuicServerConfig::try_from(Arc::clone(&tls)) {
            Ok(crypto) => Arc::new(crypto),
            Err(error) => {
                tracing::error!(%error, "HTTP/3 has no cipher suite");
                return;
            }
        };
        let mut config = ServerConfig::new(crypto, Arc::clone(&self.token_key));
        config
            .transport_config(Arc::clone(transport))
            .max_incoming(MAX_INCOMING)
            .incoming_buffer_size(INCOMING_BYTES)
            .incoming_buffer_size_total(INCOMING_BYTES * MAX_INCOMING as u64);
        proto.set_server_config(Some(Arc::new(config)));
        self.built = Some(BuiltConfig {
            tls,
            transport: Arc::clone(transport),
        });
    }
}

/// A message for the client.
type Message = Option<(Transmit, Vec<u8>)>;

/// Accepts a connection, or answers it otherwise. Returns a message for the client, and the connection.
pub(super) fn accept(
    task: &mut EndpointTask,
    incoming: Incoming,
    now: Instant,
) -> (Message, Option<Rc<Connection>>) {
    let mut bytes = Vec::new();
    let worker = Rc::clone(&task.worker);
    let endpoint = Rc::clone(&task.endpoint);
    let handshakes = task.handshakes.get();
    if handshakes >= MAX_HANDSHAKES {
        task.proto.ignore(incoming);
        return (None, None);
    }
    if handshakes >= RETRY_HANDSHAKES
        && !incoming.remote_address_validated()
        && incoming.may_retry()
    {
        return match task.proto.retry(incoming, &mut bytes) {
            Ok(transmit) => (Some((transmit, bytes)), None),
            Err(error) => {
                task.proto.ignore(error.into_incoming());
                (None, None)
            }
        };
    }
    if endpoint.is_closed.get() || worker.is_draining() {
        let transmit = task.proto.refuse(incoming, &mut bytes);
        return (Some((transmit, bytes)), None);
    }
    worker.metrics.connections_accepted.add(1);
    let settings = Rc::clone(&endpoint.settings.borrow());
    let peer = peer(task, &incoming);
    let permit = match permit(&worker) {
        Ok(permit) => permit,
        Err(problem) => {
            log(task, peer, &problem);
            let transmit = task.proto.refuse(incoming, &mut bytes);
            return (Some((transmit, bytes)), None);
        }
    };
    let Some(tls) = settings.tls.clone() else {
        task.proto.ignore(incoming);
        return (None, None);
    };
    let accepted = task.proto.accept(incoming, now, &mut bytes, None);
    let (handle, quic) = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            worker.metrics.handshakes_failed.add(1);
            let text = Detail::text(error.cause.to_string());
            log(task, peer, &Problem::new(Reason::ClientTlsFailed, text));
            return (error.response.map(|transmit| (transmit, bytes)), None);
        }
    };
    let max_age = settings.terms.max_age;
    let ends_at = max_age.map_or(Tick::MAX, |age| worker.clock.after(age));
    let guard = ConnectionGuard::new(&worker, permit, None, ends_at);
    let connection = Connection::new(handle, quic, &endpoint.queue, &task.clock, guard);
    start(task, &connection, tls, peer, ends_at);
    (None, Some(connection))
}

fn start(
    task: &EndpointTask,
    connection: &Rc<Connection>,
    tls: Arc<ServerTls>,
    peer: Peer,
    ends_at: Tick,
) {
    let accepted = Accepted {
        worker: Rc::clone(&task.worker),
        connection: Rc::clone(connection),
        settings: Rc::clone(&task.endpoint.settings.borrow()),
        http3: Rc::clone(&task.endpoint.http3.borrow()),
        listener: Rc::clone(&task.endpoint.index),
        tls,
        peer,
        ends_at,
        handshake: HandshakeSlot::take(&task.handshakes),
    };
    tokio::task::spawn_local(serve(accepted));
}

/// Takes the permit of a connection. The one of its client follows after the handshake, which proves the address.
fn permit(worker: &Worker) -> Result<Permit, Problem> {
    if !worker.shared.memory.admit_connection() {
        return Err(Problem::new(Reason::MemoryPressure, Detail::None));
    }
    let permit = worker.shared.connections.acquire();
    permit.map_err(|full| limit_problem(Reason::ConnectionLimit, full))
}

fn peer(task: &EndpointTask, incoming: &Incoming) -> Peer {
    let active = task.worker.active();
    let plan = active.plan.listeners().get(task.endpoint.index.get());
    let trusted = plan.map_or(&[][..], |plan| &plan.trusted_proxies);
    let remote = incoming.remote_address();
    let local = task
        .socket()
        .and_then(|socket| socket.local(incoming.local_ip()));
    Peer::new(remote.ip(), true, trusted)
        .with_port(remote.port())
        .with_local(local)
}

fn log(task: &EndpointTask, peer: Peer, problem: &Problem) {
    let endpoint = &task.endpoint;
    let terms = Rc::clone(&endpoint.settings.borrow().terms);
    let client = ConnectionInfo::new(Rc::clone(&endpoint.index), peer, false, terms);
    log_connection_problem(&task.worker, &client, problem);
}
