//! Agents over gRPC: `protocol "ext-authz"`.

use crate::support::{Setup, reason, refusal};
use bytes::{BufMut, Bytes};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use proxy_testkit::{Upstream, get, ok};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

const SETTINGS: &str = "failure-mode \"closed\"; protocol \"ext-authz\"; timeout-ms 30000";

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

/// Encodes a length-delimited field.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    assert!(length < 128);
    [&[number << 3 | 2, length], value].concat()
}

fn varint(number: u8, value: u16) -> Vec<u8> {
    let low = u8::try_from(value & 0x7f).unwrap();
    let high = u8::try_from(value >> 7).unwrap();
    if high == 0 {
        return vec![number << 3, low];
    }
    vec![number << 3, low | 0x80, high]
}

fn header(name: &str, value: &str) -> Vec<u8> {
    let pair = [field(1, name.as_bytes()), field(2, value.as_bytes())].concat();
    field(1, &pair)
}

/// Authorization server that sends the same message and status to every call.
struct AuthzServer {
    path: PathBuf,
    calls: Receiver<(String, Vec<u8>)>,
    _folder: TempDir,
}

/// Answers one call with `message` and the gRPC status `status`, and reports the request.
async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    (message, status): (Vec<u8>, &'static str),
    calls: Sender<(String, Vec<u8>)>,
) {
    let path = request.uri().path().to_owned();
    let mut body = request.into_body();
    let mut read = Vec::new();
    while let Some(Ok(piece)) = body.data().await {
        read.extend_from_slice(&piece);
    }
    calls.send((path, read)).unwrap_or_default();
    let response = Response::builder()
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let mut stream = respond.send_response(response, false).unwrap();
    let mut framed = vec![0];
    framed.put_u32(u32::try_from(message.len()).unwrap());
    framed.extend_from_slice(&message);
    stream.send_data(Bytes::from(framed), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    stream.send_trailers(trailers).unwrap();
}

/// Answers all calls of a connection in the same way.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    message: Vec<u8>,
    status: &'static str,
    calls: Sender<(String, Vec<u8>)>,
) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let reply = (message.clone(), status);
        tokio::spawn(answer(request, respond, reply, calls.clone()));
    }
}

impl AuthzServer {
    fn start(message: Vec<u8>, status: &'static str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("authz.sock");
        let (calls_tx, calls) = channel();
        let socket = path.clone();
        let (bound_tx, bound) = channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async move {
                let listener = UnixListener::bind(socket).unwrap();
                bound_tx.send(()).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let (calls, message) = (calls_tx.clone(), message.clone());
                    tokio::spawn(serve(stream, message, status, calls));
                }
            });
        });
        bound.recv().unwrap();
        Self {
            path,
            calls,
            _folder: folder,
        }
    }

    fn setup(&self, upstream: &Upstream) -> Setup {
        Setup::to(upstream).agent_at("authz", self.path.to_str().unwrap(), SETTINGS)
    }
}

#[test]
fn an_allowing_call_edits_the_request_and_the_response() {
    let upstream = upstream();
    let ok = [
        field(2, &header("x-user", "ann")),
        field(5, b"x-secret"),
        field(6, &header("x-checked", "yes")),
    ]
    .concat();
    let server = AuthzServer::start([field(1, &[]), field(3, &ok)].concat(), "0");
    let proxyd = server.setup(&upstream).start();
    let fields = [("X-User", "mallory"), ("X-Secret", "1")];
    let mut client = proxyd.connect();

    for _ in 0..2 {
        let response = client.ask(get("/a?b=c", &fields));
        assert_eq!(response.status, 200);
        assert_eq!(response.fields.get("x-checked"), Some("yes"));
    }

    let request = upstream.last_request();
    assert_eq!(request.fields.all("x-user"), ["ann"]);
    assert!(!request.fields.has("x-secret"));
    let (path, message) = server.calls.recv().unwrap();
    assert_eq!(path, "/envoy.service.auth.v3.Authorization/Check");
    for part in ["GET", "/a?b=c", "127.0.0.1", "x-secret", ":authority"] {
        let is_in = message.windows(part.len()).any(|at| at == part.as_bytes());
        assert!(is_in, "{part}");
    }
}

/// Starts a TCP server that allows every call. Returns its address, and the received paths and
/// bodies.
fn tcp_server() -> (std::net::SocketAddr, Receiver<(String, Vec<u8>)>) {
    let (calls_tx, calls) = channel();
    let (bound_tx, bound) = channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async move {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            bound_tx.send(listener.local_addr().unwrap()).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, field(1, &[]), "0", calls_tx.clone()));
            }
        });
    });
    (bound.recv().unwrap(), calls)
}

#[test]
fn a_server_behind_an_upstream_is_called_over_tcp() {
    let upstream = upstream();
    let (address, calls) = tcp_server();
    let target = format!("protocol \"h2\"; target \"{address}\"");
    let proxyd = Setup::to(&upstream)
        .agent_behind("authz", &target, SETTINGS)
        .start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        assert_eq!(client.ask(get("/a", &[])).status, 200);
    }

    let (path, _) = calls.recv().unwrap();
    assert_eq!(path, "/envoy.service.auth.v3.Authorization/Check");
}

#[test]
fn a_call_names_the_source_with_its_port() {
    let upstream = upstream();
    let server = AuthzServer::start(field(1, &[]), "0");
    let balanced = "proxy-protocol #true; trusted-proxies \"127.0.0.0/8\"";
    let proxyd = server.setup(&upstream).listener(balanced).start();
    let mut client = proxyd.connect();
    client.send(b"PROXY TCP4 192.0.2.7 192.0.2.9 12345 443\r\n");

    assert_eq!(client.ask(get("/", &[])).status, 200);

    let (_, message) = server.calls.recv().unwrap();
    // Message `SocketAddress`: `address` and `port_value`.
    let source = [field(2, b"192.0.2.7"), varint(3, 12_345)].concat();
    let is_in = message.windows(source.len()).any(|at| at == source);
    assert!(is_in, "{}", message.escape_ascii());
}

#[test]
fn a_denying_call_decides_on_the_response() {
    let upstream = upstream();
    let denied = [
        field(1, &varint(1, 429)),
        field(2, &header("x-why", "quota")),
        field(3, b"too many"),
    ]
    .concat();
    let message = [field(1, &varint(1, 8)), field(2, &denied)].concat();
    let server = AuthzServer::start(message, "0");
    let proxyd = server.setup(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(
        (response.status, response.text().as_str()),
        (429, "too many")
    );
    assert_eq!(response.fields.get("x-why"), Some("quota"));
    assert_eq!(reason(&proxyd, &response), "agent_blocked");
    assert!(upstream.requests().is_empty());
}

#[test]
fn a_denial_without_details_is_answered_403() {
    let upstream = upstream();
    let server = AuthzServer::start(field(1, &varint(1, 7)), "0");
    let proxyd = server.setup(&upstream).start();

    refusal(&proxyd.connect().ask(get("/", &[])), 403, "WAF_BLOCKED");
}

#[test]
fn a_failed_call_or_a_malformed_message_does_not_allow() {
    for (message, status, expected) in [
        (field(1, &[]), "13", "agent_bad_reply"),
        (field(1, &[]), "14", "agent_queue_full"),
        (vec![0xff; 9], "0", "agent_bad_reply"),
        (Vec::new(), "0", "agent_bad_reply"),
    ] {
        let upstream = upstream();
        let server = AuthzServer::start(message, status);
        let proxyd = server.setup(&upstream).start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert!(response.status >= 500, "{status}");
        assert_eq!(reason(&proxyd, &response), expected, "{status}");
        assert!(upstream.requests().is_empty());
    }
}
