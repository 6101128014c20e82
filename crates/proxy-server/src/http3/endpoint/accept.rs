//! Decisions on new connections: limits, address validation, TLS.

use crate::connection::limit_problem::limit_problem;
use crate::connection::ready_connection::ConnectionGuard;
use crate::connection::settings::ConnectionSettings;
use crate::http3::clock::QuicClock;
use crate::http3::connection::{Connection, ReadyQueue};
use crate::http3::driver::{Accepted, client_permit, serve};
use crate::http3::handshake_load::{Admission, HandshakeLoad};
use crate::http3::settings::Http3Settings;
use crate::http3::socket::DatagramSocket;
use crate::http3::steering::Http3Secrets;
use proxy_clock::Tick;
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::{ClientPermit, Permit};
use proxy_pipeline::{ConnectionInfo, Peer, Worker, log_connection_problem};
use proxy_tls::ServerTls;
use quinn_proto::crypto::HandshakeTokenKey;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{Endpoint, Incoming, ServerConfig, Transmit, TransportConfig};
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio_rustls::rustls;

/// Maximum number of undecided new connections, and of bytes held for each: decisions are
/// immediate.
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

    /// Sets the configuration of `proto` to the active one.
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

/// An encoded message for the client, if there is one.
type Message = Option<(Transmit, Vec<u8>)>;

/// The state on which decisions about new connections depend.
pub(super) struct Listening {
    pub(super) worker: Rc<Worker>,
    /// Index of the listener in the active plan.
    pub(super) index: Rc<Cell<usize>>,
    pub(super) settings: Rc<ConnectionSettings>,
    pub(super) http3: Rc<Http3Settings>,
    pub(super) socket: Option<Rc<DatagramSocket>>,
    /// No further connection is accepted.
    pub(super) is_closed: bool,
    pub(super) queue: Rc<ReadyQueue>,
    pub(super) clock: Rc<QuicClock>,
}

/// Decides on a new connection. Returns a message for the client, if there is one, and the accepted
/// connection.
pub(super) fn accept(
    proto: &mut Endpoint,
    load: &mut HandshakeLoad,
    task: &Listening,
    incoming: Incoming,
    now: Instant,
) -> (Message, Option<Rc<Connection>>) {
    let mut bytes = Vec::new();
    let worker = Rc::clone(&task.worker);
    let is_proven = incoming.remote_address_validated();
    match load.admit(is_proven, now) {
        Admission::Accept => {}
        Admission::Ignore { limit } => {
            if is_proven {
                let peer = peer(task, incoming.remote_address(), incoming.local_ip());
                let detail = Detail::Limit {
                    current: limit,
                    limit,
                };
                log(task, peer, &Problem::new(Reason::ConnectionLimit, detail));
            }
            proto.ignore(incoming);
            return (None, None);
        }
        Admission::Retry => {
            return match proto.retry(incoming, &mut bytes) {
                Ok(transmit) => (Some((transmit, bytes)), None),
                Err(error) => {
                    proto.ignore(error.into_incoming());
                    (None, None)
                }
            };
        }
    }
    if task.is_closed || worker.is_draining() {
        let transmit = proto.refuse(incoming, &mut bytes);
        return (Some((transmit, bytes)), None);
    }
    worker.metrics.connections_accepted.add(1);
    let settings = Rc::clone(&task.settings);
    let peer = peer(task, incoming.remote_address(), incoming.local_ip());
    let (permit, client) = match permits(&worker, &peer, is_proven) {
        Ok(permits) => permits,
        Err(problem) => {
            load.fail(now);
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
            load.fail(now);
            worker.metrics.handshakes_failed.add(1);
            let text = Detail::text(error.cause.to_string());
            log(task, peer, &Problem::new(Reason::ClientTlsFailed, text));
            return (error.response.map(|transmit| (transmit, bytes)), None);
        }
    };
    let max_age = settings.terms.max_age;
    let ends_at = max_age.map_or(Tick::MAX, |age| worker.clock.after(age));
    let guard = ConnectionGuard::new(&worker, permit, client, ends_at);
    let counted = (guard, load.begin());
    let connection = Connection::new(handle, quic, &task.queue, &task.clock, counted);
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
    };
    tokio::task::spawn_local(serve(accepted));
}

/// Takes a permit for the connection, and one for its client if the client's address `is_proven`.
/// Otherwise the client's follows after the handshake, which proves the address.
fn permits(
    worker: &Worker,
    peer: &Peer,
    is_proven: bool,
) -> Result<(Permit, Option<ClientPermit>), Problem> {
    if !worker.shared.memory.admit_connection() {
        return Err(Problem::new(Reason::MemoryPressure, Detail::None));
    }
    let permit = worker.shared.connections.acquire();
    let permit = permit.map_err(|full| limit_problem(Reason::ConnectionLimit, full))?;
    let client = if is_proven {
        client_permit(worker, peer)?
    } else {
        None
    };
    Ok((permit, client))
}

/// The client at `remote`, which sent to the address `local` of this host.
pub(super) fn peer(task: &Listening, remote: SocketAddr, local: Option<IpAddr>) -> Peer {
    let active = task.worker.active();
    let plan = active.plan.listeners().get(task.index.get());
    let trusted = plan.map_or(&[][..], |plan| &plan.trusted_proxies);
    let socket = task.socket.as_ref();
    Peer::new(remote.ip(), true, trusted)
        .with_port(remote.port())
        .with_local(socket.and_then(|socket| socket.local(local)))
}

pub(super) fn log(task: &Listening, peer: Peer, problem: &Problem) {
    let terms = Rc::clone(&task.settings.terms);
    let client = ConnectionInfo::new(Rc::clone(&task.index), peer, false, terms);
    log_connection_problem(&task.worker, &client, problem);
}
