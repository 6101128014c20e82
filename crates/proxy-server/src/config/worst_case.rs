//! Maximum memory that a configuration can use, term by term.

use crate::http3::{MAX_PIECE_BYTES, RECEIVE_WINDOW, SEND_WINDOW, held_section_bytes};
use crate::observe::otlp::BATCH_SPANS;
use proxy_coding::{Coding, Encoder};
use proxy_limits::{DEFAULT_KEY_CAPACITY, KeyedBuckets};
use proxy_model::{AgentEventKind, Alpn, Limits, Listener, Model, RateKey, Service};
use proxy_pipeline::{HashGate, MAX_COPIES, PASSWORD_THREADS};
use std::fmt;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Memory of the program before it serves: code, plan, metrics, control thread.
const PROGRAM_BYTES: u64 = 32 * MIB;

/// Memory of one worker: stack, idle pipes and buffers, and the budget that all its large reads
/// share.
const WORKER_BYTES: u64 = 36 * MIB;

/// The state of one client connection, without its buffers.
const CONNECTION_BYTES: u64 = 2 * KIB;

/// Minimum read and write buffer of a connection, and the longest request target.
const BUFFER_BYTES: u64 = 16 * KIB;

/// Records of TLS in both directions, and the state of the session.
const TLS_BYTES: u64 = 48 * KIB;

/// Windows for bodies, responses that wait for the socket, and header sections of several frames.
const HTTP2_BYTES: u64 = MIB + 256 * KIB + 256 * KIB;

/// Windows for bodies, responses that are not acknowledged, and the state of QUIC.
const HTTP3_BYTES: u64 = RECEIVE_WINDOW as u64 + SEND_WINDOW as u64 + 64 * KIB;

/// Room for received datagrams of one worker and listener.
const DATAGRAM_BYTES: u64 = 512 * KIB;

/// The state of one request, without its buffers.
const REQUEST_BYTES: u64 = 4 * KIB;

/// The head of a response, and one buffer for each direction.
const UPSTREAM_BYTES: u64 = 64 * KIB + 2 * BUFFER_BYTES;

/// A relayed or upgraded connection: bytes read and not yet written, in both directions.
const TUNNEL_BYTES: u64 = 2 * 64 * KIB;

/// Pieces of a file that are read ahead for one response.
const FILE_BYTES: u64 = 2 * 64 * KIB;

/// A response by the proxy itself on an HTTP/2 or HTTP/3 stream: its head, and the stream's state.
const OWN_RESPONSE_BYTES: u64 = 16 * KIB;

/// A request in the queue, in addition to its state as a request.
const QUEUED_BYTES: u64 = KIB;

/// The encoder of a compressed response, for the coding that needs the most memory.
const ENCODER_BYTES: u64 = Encoder::max_bytes(Coding::Brotli);

/// Memory of one log with a blocked writer: the batches in its queue, and one worker's.
const LOG_BYTES: u64 = 32 * BATCH_BYTES;
const BATCH_BYTES: u64 = 512 * KIB;
const WORKER_BATCHES: u64 = 4;

/// A span with all texts at their maximum length.
const SPAN_BYTES: u64 = 4 * KIB;
const SPANS_OF_BATCH: u64 = BATCH_SPANS as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
    what: &'static str,
    count: u64,
    bytes_each: u64,
}

/// Maximum memory of a configuration: the sum of its limits on state that peers can create. Socket
/// buffers of the kernel are not included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstCase {
    terms: Vec<Term>,
    limit_bytes: Option<u64>,
}

impl WorstCase {
    /// The maximum for `model` and this number of workers, on a machine or in a control group of
    /// `total_bytes`.
    #[must_use]
    pub(crate) fn estimate(model: &Model, workers: u64, total_bytes: u64) -> Self {
        let limits = &model.limits;
        let connections = u64::from(*limits.max_total_connections);
        let per_worker = u64::from(*limits.max_in_flight_requests_per_worker);
        let in_flight = u64::from(*limits.max_in_flight_requests).min(per_worker * workers);
        let queued = u64::from(*limits.max_queued_requests);
        let head = limits.max_header_size_bytes.saturating_add(BUFFER_BYTES);
        let tls = model
            .listeners
            .iter()
            .any(|listener| listener.tls.is_some());
        let http2 = model.listeners.iter().any(speaks_http2);
        let http3 = model.listeners.iter().filter(|it| *it.http3).count() as u64;
        let when = |holds: bool| if holds { connections } else { 0 };
        let limit_bytes = crate::observe::memory_watch::settings(limits).max_bytes_of(total_bytes);
        let terms = vec![
            row("program", 1, PROGRAM_BYTES),
            row("workers", workers, WORKER_BYTES),
            row(
                "connections",
                connections,
                CONNECTION_BYTES + head + BUFFER_BYTES,
            ),
            row("TLS sessions", when(tls), TLS_BYTES),
            row("HTTP/2 windows", when(http2), HTTP2_BYTES),
            row("HTTP/3 windows", when(http3 > 0), http3_bytes(model)),
            row("HTTP/3 sockets", http3 * workers, DATAGRAM_BYTES),
            row("requests in flight", in_flight + queued, REQUEST_BYTES),
            row("own responses", own_responses(model), OWN_RESPONSE_BYTES),
            row("connections to targets", in_flight, UPSTREAM_BYTES),
            row("relays and tunnels", tunnels(model), TUNNEL_BYTES),
            pieces_of_files(model, in_flight),
            row(
                "bodies held whole",
                held_bodies(model) * in_flight,
                body_bytes(limits),
            ),
            row(
                "bodies shown to agents",
                inspected_bodies(model) * in_flight,
                agent_body_bytes(limits) * AGENT_BODY_FORMS,
            ),
            compressed_responses(model, in_flight, limit_bytes),
            password_hashes(model, workers, limit_bytes),
            row(
                "copies of requests",
                copies(model) * workers,
                UPSTREAM_BYTES + REQUEST_BYTES + head + body_bytes(limits),
            ),
            row("queued requests", queued, QUEUED_BYTES),
            row(
                "rate-limit keys",
                keyed_limits(model) * KEYS,
                KeyedBuckets::BYTES_PER_KEY as u64,
            ),
            row("stored responses", 1, stored_bytes(model)),
            row("recording", 1, recorded_bytes(model)),
            row("exported spans", exported_spans(model), SPAN_BYTES),
            row(
                "logs",
                2,
                LOG_BYTES + workers * WORKER_BATCHES * BATCH_BYTES,
            ),
        ];
        Self { terms, limit_bytes }
    }

    /// The sum in bytes.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let terms = self.terms.iter();
        terms.fold(0, |sum: u64, term| sum.saturating_add(term.bytes()))
    }

    /// The limit on memory in bytes, if there is one and it is less than the sum.
    #[must_use]
    pub fn exceeded_limit(&self) -> Option<u64> {
        self.limit_bytes.filter(|limit| *limit < self.total_bytes())
    }
}

const COPIES_OF_WORKER: u64 = MAX_COPIES as u64;
const THREADS_OF_WORKER: u64 = PASSWORD_THREADS as u64;
const KEYS: u64 = DEFAULT_KEY_CAPACITY as u64;

fn row(what: &'static str, count: u64, bytes_each: u64) -> Term {
    Term {
        what,
        count,
        bytes_each,
    }
}

impl Term {
    fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.bytes_each)
    }
}

/// One HTTP/3 connection: windows, incomplete header sections, and one body piece per stream.
fn http3_bytes(model: &Model) -> u64 {
    let listeners = model.listeners.iter().filter(|it| *it.http3);
    let streams = listeners
        .map(|it| u64::from(*it.max_concurrent_streams))
        .max();
    let pieces = streams.unwrap_or(0) * MAX_PIECE_BYTES as u64;
    HTTP3_BYTES + held_section_bytes(&model.limits) as u64 + pieces
}

fn speaks_http2(listener: &Listener) -> bool {
    let by_tls = listener.tls.as_ref().is_some_and(|tls| {
        let mut protocols = tls.alpn.iter();
        protocols.any(|protocol| protocol.value == Alpn::H2)
    });
    by_tls || *listener.h2c
}

fn body_bytes(limits: &Limits) -> u64 {
    *limits.max_body_buffer_bytes
}

/// Number of bodies that one exchange may buffer whole: request, response.
fn held_bodies(model: &Model) -> u64 {
    let policies = || model.routes.iter().map(|route| &route.policies);
    let requests = policies().any(|policies| *policies.buffer_requests);
    let responses = policies().any(|policies| *policies.buffer_responses);
    u64::from(requests) + u64::from(responses)
}

/// Copies of an inspected body in memory: as sent, as content, as text in an event, and in the
/// event's frame; the last two are a third larger.
const AGENT_BODY_FORMS: u64 = 5;

fn agent_body_bytes(limits: &Limits) -> u64 {
    (*limits.max_body_inspection_bytes).min(*limits.max_agent_body_bytes)
}

/// Number of bodies of one exchange that agents may inspect: request, response.
fn inspected_bodies(model: &Model) -> u64 {
    let sees = |event| {
        let mut events = model.agents.iter().flat_map(|agent| &agent.events);
        events.any(|kind| kind.value == event)
    };
    u64::from(sees(AgentEventKind::RequestBody)) + u64::from(sees(AgentEventKind::ResponseBody))
}

/// Maximum number of HTTP/2 and HTTP/3 streams, by the listener that allows most per connection.
/// Responses by the proxy itself do not count as requests in flight.
fn own_responses(model: &Model) -> u64 {
    let http2 = model.listeners.iter();
    let http2 = http2.filter(|it| speaks_http2(it) || *it.http3);
    let streams = http2.map(|it| u64::from(*it.max_concurrent_streams)).max();
    u64::from(*model.limits.max_total_connections).saturating_mul(streams.unwrap_or(0))
}

/// Maximum number of relayed and upgraded connections, which do not count as requests in flight.
fn tunnels(model: &Model) -> u64 {
    let services = model.routes.iter().map(|route| &route.service);
    let forwarding = services.filter(|service| matches!(service, Service::Upstream(_)));
    let limits = &model.limits;
    let by_routes = u64::from(*limits.max_connections_per_route) * forwarding.count() as u64;
    by_routes.min(u64::from(*limits.max_total_connections))
}

fn pieces_of_files(model: &Model, in_flight: u64) -> Term {
    let mut services = model.routes.iter().map(|route| &route.service);
    let serves_files = services.any(|service| matches!(service, Service::Static(_)));
    let count = if serves_files { in_flight } else { 0 };
    row("pieces of files", count, FILE_BYTES)
}

fn stored_bytes(model: &Model) -> u64 {
    let mut routes = model.routes.iter();
    let stores = routes.any(|route| route.policies.cache.is_some());
    if stores { *model.cache.max_bytes } else { 0 }
}

fn recorded_bytes(model: &Model) -> u64 {
    let recording = model.observability.recording.as_ref();
    recording.map_or(0, |recording| *recording.keep_bytes)
}

/// Spans in the exporter's queue, and two batches: one before and one after its encoding.
fn exported_spans(model: &Model) -> u64 {
    let otlp = model.observability.otlp.as_ref();
    let traces = otlp.filter(|otlp| *otlp.traces);
    traces.map_or(0, |otlp| u64::from(*otlp.queue_spans) + 2 * SPANS_OF_BATCH)
}

/// Number of copies that one worker sends at once.
fn copies(model: &Model) -> u64 {
    let mut routes = model.routes.iter();
    let copies = routes.any(|route| route.policies.shadow.is_some());
    if copies { COPIES_OF_WORKER } else { 0 }
}

/// Memory of the most costly hash of a password, in bytes; 0 without Argon2.
fn largest_hash(model: &Model) -> u64 {
    let auths = model
        .routes
        .iter()
        .filter_map(|route| route.policies.basic_auth.as_ref());
    let bytes = auths.flat_map(|auth| {
        let written = auth.users.iter().map(|user| &user.value);
        let in_files = auth.users_files.iter().flat_map(|file| &file.value.users);
        written.chain(in_files).map(|user| user.hash.memory_bytes())
    });
    bytes.max().unwrap_or(0)
}

/// Encoders of compressed responses; with a memory limit, they use half of it at most.
fn compressed_responses(model: &Model, in_flight: u64, limit_bytes: Option<u64>) -> Term {
    let most = limit_bytes.map_or(u64::MAX, |limit| limit / 2 / ENCODER_BYTES);
    let count = if compresses(model) {
        in_flight.min(most)
    } else {
        0
    };
    row("compressed responses", count, ENCODER_BYTES)
}

/// Argon2 hashes that run at once.
fn password_hashes(model: &Model, workers: u64, limit_bytes: Option<u64>) -> Term {
    let bytes_each = largest_hash(model);
    let count = HashGate::max_bytes(limit_bytes).checked_div(bytes_each);
    let count = count.map_or(0, |count| count.clamp(1, workers * THREADS_OF_WORKER));
    row("password hashes", count, bytes_each)
}

fn compresses(model: &Model) -> bool {
    let mut routes = model.routes.iter();
    routes.any(|route| route.policies.compression.is_some())
}

/// Number of rate limits with a bucket per key.
fn keyed_limits(model: &Model) -> u64 {
    let per_client = model.limits.max_requests_per_second_per_client.is_some();
    let policies = model
        .routes
        .iter()
        .filter_map(|route| route.policies.rate_limit.as_ref());
    let keyed = policies.filter(|limit| limit.key.value != RateKey::Route);
    u64::from(per_client) + keyed.count() as u64
}

impl fmt::Display for WorstCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "memory, at the worst")?;
        for term in self.terms.iter().filter(|term| term.bytes() > 0) {
            let Term {
                what,
                count,
                bytes_each,
            } = term;
            let bytes = term.bytes();
            writeln!(
                f,
                "  {what:<24}{count:>10} x {bytes_each:>9} = {bytes:>16} bytes"
            )?;
        }
        let (total, label) = (self.total_bytes(), "together");
        write!(f, "  {label:<24}{total:>40} bytes")?;
        match self.limit_bytes {
            Some(limit) => {
                let label = "limit";
                write!(f, "\n  {label:<24}{limit:>40} bytes")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "listeners { listener \"l\" { address \"127.0.0.1:0\" } }\n\
        upstreams { upstream \"u\" { target \"127.0.0.1:1\" } }\n";

    fn worst(text: &str) -> WorstCase {
        let loaded = proxy_config::parse(&format!("{BASE}{text}"), "test.kdl").unwrap();
        WorstCase::estimate(&loaded.model, 2, 1 << 40)
    }

    fn bytes(worst: &WorstCase, what: &str) -> u64 {
        let term = worst.terms.iter().find(|term| term.what == what);
        term.unwrap().bytes()
    }

    /// A listener with HTTP/3.
    const HTTP3: &str = "listeners { listener \"h3\" { address \"127.0.0.1:1\"; protocol \"https\"; \
         http3 #true; tls { cert-file \"a\"; key-file \"a\" } } }";

    /// A setting, and the term of the estimate that it raises.
    const TERMS: &[(&str, &str)] = &[
        ("limits { max-total-connections 1000 }", "connections"),
        ("limits { max-header-size-bytes \"1MiB\" }", "connections"),
        (
            "limits { max-in-flight-requests 500 }",
            "connections to targets",
        ),
        ("limits { max-queued-requests 5000 }", "queued requests"),
        (
            "limits { max-requests-per-second-per-client 1 }",
            "rate-limit keys",
        ),
        (
            "routes { route \"r\" { upstream \"u\"; rate-limit { requests-per-second 1 } } }",
            "rate-limit keys",
        ),
        (
            "routes { route \"r\" { upstream \"u\"; shadow { upstream \"u\" } } }",
            "copies of requests",
        ),
        (
            "routes { route \"r\" { upstream \"u\"; compression } }",
            "compressed responses",
        ),
        (
            "routes { route \"r\" { upstream \"u\"; basic-auth { user \"ann\" \
             \"$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$\
             AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\" } } }",
            "password hashes",
        ),
        (
            "routes { route \"r\" { upstream \"u\"; buffer-responses #true } }",
            "bodies held whole",
        ),
        (
            "agents { agent \"a\" { unix-socket \"/tmp/a\"; failure-mode \"open\"; \
             events \"request-body\" } }\n\
             routes { route \"r\" { upstream \"u\"; agents \"a\" } }",
            "bodies shown to agents",
        ),
        (
            "listeners { listener \"h2\" { address \"127.0.0.1:1\"; h2c #true } }",
            "HTTP/2 windows",
        ),
        (
            "listeners { listener \"h2\" { address \"127.0.0.1:1\"; h2c #true } }",
            "own responses",
        ),
        (HTTP3, "HTTP/3 windows"),
        (HTTP3, "HTTP/3 sockets"),
        (
            "routes { route \"r\" { upstream \"u\" } }",
            "relays and tunnels",
        ),
        (
            "routes { route \"r\" { static-files { root \"/\" } } }",
            "pieces of files",
        ),
        (
            "routes { route \"r\" { upstream \"u\"; cache } }",
            "stored responses",
        ),
        (
            "observability { recording { sample-percent 1.0; keep \"64MiB\" } }",
            "recording",
        ),
        (
            "observability { otlp { endpoint \"http://127.0.0.1:4318\" } }",
            "exported spans",
        ),
    ];

    #[test]
    fn every_limit_that_holds_memory_moves_its_term() {
        let few = worst("limits { max-total-connections 10; max-in-flight-requests 5 }");
        for &(more, term) in TERMS {
            let more = worst(more);
            assert!(bytes(&few, term) < bytes(&more, term), "{term}");
        }
    }

    #[test]
    fn the_sum_is_compared_with_the_limit() {
        let total = worst("").total_bytes();

        assert_eq!(worst("").exceeded_limit(), None);
        let limit = |bytes| worst(&format!("limits {{ max-memory-bytes {bytes} }}"));
        assert_eq!(limit(total).exceeded_limit(), None);
        assert_eq!(limit(total - 1).exceeded_limit(), Some(total - 1));
        assert!(limit(total).to_string().contains("together"));
    }
}
