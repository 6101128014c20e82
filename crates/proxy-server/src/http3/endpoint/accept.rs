//! Decisions on new connections: limits, address validation, TLS.

use crate::connection::limit_problem::limit_problem;
use crate::connection::ready_connection::ConnectionGuard;
use crate::connection::settings::ConnectionSettings;
use crate::http3::clock::QuicClock;
use crate::http3::connection::{Connection, ReadyQueue};
use crate::http3::driver::{Accepted, HandshakeSlot, serve};
use crate::http3::secrets::Http3Secrets;
use crate::http3::settings::Http3Settings;
use crate::http3::socket::DatagramSocket;
use proxy_clock::Tick;
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::Permit;
use proxy_pipeline::{ConnectionInfo, Peer, Worker, log_connection_problem};
use proxy_tls::ServerTls;
use quinn_proto::crypto::HandshakeTokenKey;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{Endpoint, Incoming, ServerConfig, Transmit, TransportConfig};
use std::cell::Cell;
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
    transport: Arc<TransportConfig>,
}

impl ServerConfigs {
    pub(super) fn new(secrets: &Http3Secrets) -> Self {
        Self {
            token_key: secrets.token_key(),
            built: None,
        }
    }

    /// Sets the configuration of `proto` to the one in force.
    pub(super) fn refresh(
        &mut self,
        proto: &mut Endpoint,
        tls: &ServerTls,
        transport: &Arc<TransportConfig>,
    ) {
        let tls = tls.http3_config();
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

/// The state by which a new connection is decided on.
pub(super) struct Listening {
    pub(super) worker: Rc<Worker>,
    /// Index of the listener in the active plan.
    pub(super) index: Rc<Cell<usize>>,
    pub(super) settings: Rc<ConnectionSettings>,
    pub(super) http3: Rc<Http3Settings>,
    pub(super) socket: Option<Rc<DatagramSocket>>,
    /// No further connection is accepted.
    pub(super) is_closed: bool,
    /// Number of connections in their handshake.
    pub(super) handshakes: Rc<Cell<usize>>,
    pub(super) queue: Rc<ReadyQueue>,
    pub(super) clock: Rc<QuicClock>,
}

/// Accepts a connection, or answers it otherwise. Returns a message for the client, and the connection.
pub(super) fn accept(
    proto: &mut Endpoint,
    task: &Listening,
    incoming: Incoming,
    now: Instant,
) -> (Message, Option<Rc<Connection>>) {
    let mut bytes = Vec::new();
    let worker = Rc::clone(&task.worker);
    let handshakes = task.handshakes.get();
    if handshakes >= MAX_HANDSHAKES {
        proto.ignore(incoming);
        return (None, None);
    }
    if handshakes >= RETRY_HANDSHAKES
        && !incoming.remote_address_validated()
        && incoming.may_retry()
    {
        return match proto.retry(incoming, &mut bytes) {
            Ok(transmit) => (Some((transmit, bytes)), None),
            Err(error) => {
                proto.ignore(error.into_incoming());
                (None, None)
            }
        };
    }
    if task.is_closed || worker.is_draining() {
        let transmit = proto.refuse(incoming, &mut bytes);
        return (Some((transmit, bytes)), None);
    }
    worker.metrics.connections_accepted.add(1);
    let settings = Rc::clone(&task.settings);
    let peer = peer(task, &incoming);
    let permit = match permit(&worker) {
        Ok(permit) => permit,
        Err(problem) => {
            log(task, peer, &problem);
            let transmit = proto.refuse(incoming, &mut bytes);
            return (Some((transmit, bytes)), None);
        }
    };
    let Some(tls) = settings.tls.clone() else {
        proto.ignore(incoming);
        return (None, None);
    };
    let accepted = proto.accept(incoming, now, &mut bytes, None);
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
    let connection = Connection::new(handle, quic, &task.queue, &task.clock, guard);
    start(task, &connection, tls, peer, ends_at);
    (None, Some(connection))
}

fn start(
    task: &Listening,
    connection: &Rc<Connection>,
    tls: Arc<ServerTls>,
    peer: Peer,
    ends_at: Tick,
) {
    let accepted = Accepted {
        worker: Rc::clone(&task.worker),
        connection: Rc::clone(connection),
        settings: Rc::clone(&task.settings),
        http3: Rc::clone(&task.http3),
        listener: Rc::clone(&task.index),
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

fn peer(task: &Listening, incoming: &Incoming) -> Peer {
    let active = task.worker.active();
    let plan = active.plan.listeners().get(task.index.get());
    let trusted = plan.map_or(&[][..], |plan| &plan.trusted_proxies);
    let remote = incoming.remote_address();
    let local = task
        .socket()
        .and_then(|socket| socket.local(incoming.local_ip()));
    Peer::new(remote.ip(), true, trusted)
        .with_port(remote.port())
        .with_local(local)
}

fn log(task: &Listening, peer: Peer, problem: &Problem) {
    let terms = Rc::clone(&task.settings.terms);
    let client = ConnectionInfo::new(Rc::clone(&task.index), peer, false, terms);
    log_connection_problem(&task.worker, &client, problem);
}
