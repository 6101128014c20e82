//! gRPC: calls abandoned by clients.

use crate::support::{begin, client, head, run};
use agent_protocol::{Decision, HeaderEdit};
use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, Response};
use proxy_agent::{AgentClient, CallContext, CallError};
use proxy_model::AgentProtocol;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A server that answers only after a signal.
struct Server {
    streams: RefCell<Vec<SendResponse<Bytes>>>,
    is_answering: Cell<bool>,
    /// The message of its answers; `None` allows without edits.
    reply: RefCell<Option<Bytes>>,
    connections: Cell<usize>,
    ended: Cell<usize>,
    changed: Notify,
}

impl Server {
    fn start(folder: &TempDir) -> Rc<Self> {
        let listener = UnixListener::bind(folder.path().join("authz.sock")).unwrap();
        let server = Rc::new(Self {
            streams: RefCell::default(),
            is_answering: Cell::new(false),
            reply: RefCell::default(),
            connections: Cell::new(0),
            ended: Cell::new(0),
            changed: Notify::new(),
        });
        let accepting = Rc::clone(&server);
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepting.connections.set(accepting.connections.get() + 1);
                tokio::task::spawn_local(serve(Rc::clone(&accepting), stream));
            }
        });
        server
    }

    async fn wait_for_calls(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            if count <= self.streams.borrow().len() {
                return;
            }
            changed.await;
        }
    }
}

async fn serve(server: Rc<Server>, stream: UnixStream) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        if server.is_answering.get() {
            let reply = server.reply.borrow().clone();
            // An empty status, which allows.
            let empty = Bytes::from_static(&[0, 0, 0, 0, 2, 0x0a, 0]);
            answer(&mut respond, reply.unwrap_or(empty));
        }
        server.streams.borrow_mut().push(respond);
        server.changed.notify_waiters();
    }
    server.ended.set(server.ended.get() + 1);
}

fn answer(respond: &mut SendResponse<Bytes>, message: Bytes) {
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    stream.send_data(message, false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
}

/// `CheckResponse` with an empty status and an `ok_response` that sets `x-user`.
fn setting(value: &[u8]) -> Bytes {
    let field = |tag: u8, value: &[u8]| {
        let length = u8::try_from(value.len()).unwrap();
        [&[tag, length], value].concat()
    };
    let header = [field(0x0a, b"x-user"), field(0x12, value)].concat();
    let option = field(0x0a, &header);
    let ok = field(0x12, &option);
    let message = [field(0x0a, b""), field(0x1a, &ok)].concat();
    let length = u8::try_from(message.len()).unwrap();
    [&[0, 0, 0, 0, length], &message[..]].concat().into()
}

#[test]
fn a_field_that_cannot_be_sent_is_a_bad_reply() {
    for (value, expected) in [
        (&b"ann"[..], Ok(&b"ann"[..])),
        (b" ann\t", Ok(b"ann")),
        (b"", Ok(b"")),
        (b"a\r\nX-Evil: 1", Err(())),
        (b"a\0", Err(())),
    ] {
        run(async {
            let folder = TempDir::new().unwrap();
            let server = Server::start(&folder);
            let reply = setting(value);
            server.reply.replace(Some(reply));
            server.is_answering.set(true);
            let client = client(&folder.path().join("authz.sock"), AgentProtocol::ExtAuthz);

            let answer = begin(&client, false).await;

            let Ok(expected) = expected else {
                assert!(matches!(answer, Err(CallError::BadReply(_))), "{value:?}");
                return;
            };
            let Decision::Allow(allow) = answer.unwrap().decision else {
                panic!("it allows");
            };
            let [HeaderEdit::Set(header)] = &*allow.request_headers else {
                panic!("{allow:?}");
            };
            assert_eq!(header.name(), "x-user");
            assert_eq!(header.value().as_bytes(), expected);
        });
    }
}

/// `CheckResponse` with an empty status and an `ok_response` of this one field.
fn ok_with(number: u8, value: &[u8]) -> Bytes {
    let field = |number: u8, value: &[u8]| {
        let length = u8::try_from(value.len()).unwrap();
        [&[number << 3 | 2, length], value].concat()
    };
    let message = [field(1, b""), field(3, &field(number, value))].concat();
    let length = u8::try_from(message.len()).unwrap();
    [&[0, 0, 0, 0, length], &message[..]].concat().into()
}

/// A `HeaderValueOption` that sets `name`, shorter than 64 bytes.
fn option(name: &str) -> Vec<u8> {
    let field = |tag: u8, value: &[u8]| {
        let length = u8::try_from(value.len()).unwrap();
        [&[tag, length], value].concat()
    };
    field(
        0x0a,
        &[field(0x0a, name.as_bytes()), field(0x12, b"1")].concat(),
    )
}

#[test]
fn a_change_that_the_proxy_does_not_make_is_a_bad_reply() {
    const HEADERS: u8 = 2;
    const HEADERS_TO_REMOVE: u8 = 5;
    const RESPONSE_HEADERS_TO_ADD: u8 = 6;
    const QUERY_PARAMETERS_TO_SET: u8 = 7;
    const QUERY_PARAMETERS_TO_REMOVE: u8 = 8;
    let parameter = [&[0x0a, 1][..], b"a", &[0x12, 1], b"b"].concat();
    for (number, value, is_made) in [
        (HEADERS, option("X-User"), true),
        (HEADERS, option("Host"), false),
        (HEADERS, option("content-length"), false),
        (HEADERS, option("X-Correlation-Id"), false),
        (HEADERS, option(":path"), false),
        (HEADERS, Vec::new(), false),
        (HEADERS_TO_REMOVE, b"X-Secret".to_vec(), true),
        (HEADERS_TO_REMOVE, b"host".to_vec(), false),
        (HEADERS_TO_REMOVE, b":authority".to_vec(), false),
        (RESPONSE_HEADERS_TO_ADD, option("x-checked"), true),
        (RESPONSE_HEADERS_TO_ADD, option("Transfer-Encoding"), false),
        (QUERY_PARAMETERS_TO_SET, parameter, false),
        (QUERY_PARAMETERS_TO_REMOVE, b"access_token".to_vec(), false),
    ] {
        run(async {
            let folder = TempDir::new().unwrap();
            let server = Server::start(&folder);
            server.reply.replace(Some(ok_with(number, &value)));
            server.is_answering.set(true);
            let client = client(&folder.path().join("authz.sock"), AgentProtocol::ExtAuthz);

            let answer = begin(&client, false).await;

            let value = value.escape_ascii();
            match answer {
                Ok(_) => assert!(is_made, "{number} {value}"),
                Err(CallError::BadReply(_)) => assert!(!is_made, "{number} {value}"),
                Err(error) => panic!("{number} {value}: {error}"),
            }
        });
    }
}

#[test]
fn calls_that_clients_give_up_are_reset_and_cost_no_connection() {
    run(async {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&folder);
        let client = client(&folder.path().join("authz.sock"), AgentProtocol::ExtAuthz);
        let mut calls = Vec::new();
        for count in 1..=60 {
            let one = Rc::clone(&client);
            calls.push(tokio::task::spawn_local(async move {
                begin(&one, false).await.map(drop)
            }));
            server.wait_for_calls(count).await;
        }

        for call in calls {
            call.abort();
        }
        server.is_answering.set(true);

        for _ in 0..3 {
            assert!(begin(&client, false).await.is_ok());
        }
        assert_eq!((server.connections.get(), server.ended.get()), (1, 0));
        let mut streams = server.streams.take().into_iter().take(60);
        assert!(streams.all(|mut stream| {
            let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
            stream.poll_reset(cx).is_ready()
        }));
    });
}

/// Sixty calls at once.
fn burst(client: &Rc<AgentClient>) -> Vec<JoinHandle<Result<(), CallError>>> {
    let call = |_| {
        let client = Rc::clone(client);
        tokio::task::spawn_local(async move { begin(&client, false).await.map(drop) })
    };
    (0..60).map(call).collect()
}

#[test]
fn calls_that_clients_give_up_in_a_burst_cost_no_connection() {
    run(async {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&folder);
        let client = client(&folder.path().join("authz.sock"), AgentProtocol::ExtAuthz);
        server.is_answering.set(true);
        assert!(begin(&client, false).await.is_ok());
        server.is_answering.set(false);

        for _ in 0..5 {
            let calls = burst(&client);
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            for call in calls {
                call.abort();
            }
            tokio::task::yield_now().await;
        }
        server.is_answering.set(true);

        for _ in 0..3 {
            assert!(begin(&client, false).await.is_ok());
        }
        assert_eq!((server.connections.get(), server.ended.get()), (1, 0));
    });
}

/// Begins a call that has expired once it is dropped.
fn expired_call(client: &Rc<AgentClient>) -> JoinHandle<()> {
    let client = Rc::clone(client);
    tokio::task::spawn_local(async move {
        let context = CallContext::default();
        context.has_expired.set(true);
        let answer = client.begin(Duration::ZERO, head(false), &context, None);
        assert!(answer.await.is_err(), "the server does not answer");
    })
}

#[test]
fn a_burst_of_calls_opens_one_connection() {
    run(async {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&folder);
        server.is_answering.set(true);
        let client = client(&folder.path().join("authz.sock"), AgentProtocol::ExtAuthz);

        for call in burst(&client) {
            assert!(call.await.unwrap().is_ok());
        }

        assert_eq!(server.connections.get(), 1);
    });
}

#[test]
fn a_call_that_expires_closes_its_own_connection_only() {
    run(async {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&folder);
        let client = client(&folder.path().join("authz.sock"), AgentProtocol::ExtAuthz);
        let [first, second] = [expired_call(&client), expired_call(&client)];
        server.wait_for_calls(2).await;
        first.abort();
        assert!(first.await.is_err());
        server.is_answering.set(true);
        assert!(begin(&client, false).await.is_ok());
        assert_eq!(server.connections.get(), 2, "the first is left");

        second.abort();
        assert!(second.await.is_err());

        assert!(begin(&client, false).await.is_ok());
        assert_eq!(server.connections.get(), 2, "the second is kept");
    });
}
