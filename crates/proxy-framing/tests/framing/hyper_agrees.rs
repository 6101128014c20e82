//! hyper interprets accepted bytes as the validators do, and never answers them with an error.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::service::service_fn;
use proptest::proptest;
use proxy_framing::{RequestKind, RequestValidator};

use crate::cases::{self, LIMITS};
use crate::decoding::{self, Message};
use crate::drive::{Guard, expecting};
use crate::tables;

/// A connection to a peer that sends fixed bytes.
struct Wire {
    sent: Vec<u8>,
    read: usize,
    /// The peer is an upstream: it waits for a request and closes after its bytes.
    upstream: bool,
    answers: Rc<RefCell<Vec<u8>>>,
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // Pieces of odd size, so that hyper gets divided heads, too.
        let len = buf.remaining().min(61).min(self.sent.len() - self.read);
        let asked = !self.answers.borrow().is_empty();
        let waits = if self.upstream { !asked } else { len == 0 };
        if waits {
            return Poll::Pending;
        }
        let end = self.read + len;
        buf.put_slice(self.sent.get(self.read..end).unwrap());
        self.read = end;
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.answers.borrow_mut().extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The bytes that a validator accepts, in one piece.
fn accepted<'a>(guard: &mut impl Guard, bytes: &'a [u8]) -> &'a [u8] {
    bytes.get(..guard.scan(bytes).accepted).unwrap()
}

async fn read(title: String, fields: usize, body: Incoming) -> Option<Message> {
    let body = body.collect().await.ok()?;
    let trailers = body.trailers().map_or(0, http::HeaderMap::len);
    let body = body.to_bytes().to_vec();
    Some(Message {
        title,
        fields,
        body,
        trailers,
        end: 0,
        last: false,
    })
}

/// The requests that hyper reads from `bytes`; all are answered 404.
fn served(bytes: &[u8]) -> Vec<Message> {
    let answers = Rc::new(RefCell::new(Vec::new()));
    let messages = Rc::new(RefCell::new(Vec::new()));
    let wire = Wire {
        sent: bytes.to_vec(),
        read: 0,
        upstream: false,
        answers: Rc::clone(&answers),
    };
    let service = service_fn(|request: http::Request<Incoming>| {
        let messages = Rc::clone(&messages);
        async move {
            let title = format!("{} {}", request.method(), request.uri());
            let fields = request.headers().len();
            let message = read(title, fields, request.into_body()).await;
            messages.borrow_mut().extend(message);
            let mut response = http::Response::new(Empty::<Bytes>::new());
            *response.status_mut() = http::StatusCode::NOT_FOUND;
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(
        hyper::server::conn::http1::Builder::new()
            .max_headers(128)
            .serve_connection(wire, service)
    );
    for _ in 0..bytes.len() + 8 {
        match connection
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => break,
            Poll::Ready(Err(error)) => panic!("hyper: {error:?} at {}", bytes.escape_ascii()),
        }
    }
    let answers = String::from_utf8(answers.borrow().clone()).unwrap();
    let own = answers.matches("HTTP/1.1 4").count() - answers.matches("HTTP/1.1 404").count();
    assert_eq!(
        own,
        0,
        "hyper answered by itself: {answers} to {}",
        bytes.escape_ascii()
    );
    messages.take()
}

/// The response that hyper reads from `bytes`, followed by the upstream's close.
fn answered(bytes: &[u8], kind: RequestKind) -> Option<Message> {
    let wire = Wire {
        sent: bytes.to_vec(),
        read: 0,
        upstream: true,
        answers: Rc::default(),
    };
    let mut context = Context::from_waker(Waker::noop());
    let mut client = hyper::client::conn::http1::Builder::new();
    let Poll::Ready(Ok((mut sender, connection))) =
        pin!(client.max_headers(128).handshake(wire)).poll(&mut context)
    else {
        panic!("no handshake");
    };
    let request = http::Request::builder();
    let request = match kind {
        RequestKind::Head => request.method("HEAD").uri("/"),
        RequestKind::Connect => request.method("CONNECT").uri("a:1"),
        RequestKind::Upgrade => request
            .header("connection", "upgrade")
            .header("upgrade", "x"),
        RequestKind::Other => request.uri("/"),
    };
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let mut response = pin!(async {
        let response = sender.send_request(request).await.ok()?;
        let title = response.status().as_u16().to_string();
        let fields = response.headers().len();
        read(title, fields, response.into_body()).await
    });
    let mut connection = pin!(connection);
    for _ in 0..bytes.len() + 8 {
        if let Poll::Ready(message) = response.as_mut().poll(&mut context) {
            return message;
        }
        // An error of the connection reaches the response too.
        drop(connection.as_mut().poll(&mut context));
    }
    None
}

fn check_requests(bytes: &[u8]) {
    let bytes = accepted(&mut RequestValidator::new(LIMITS), bytes);
    let mut expected = Vec::new();
    for message in decoding::requests(bytes) {
        let last = message.last;
        expected.push(Message {
            end: 0,
            last: false,
            ..message
        });
        if last {
            break;
        }
    }
    // `http::Uri` cannot hold some bytes that clients send unescaped; hyper refuses such a target.
    let held = |message: &Message| {
        let target = message.title.split(' ').nth(1);
        target.is_some_and(|target| target.parse::<http::Uri>().is_ok())
    };
    if !expected.iter().all(held) {
        return;
    }
    let mut seen = served(bytes);
    // `http://a?b` is reported as `http://a/?b`, and an absolute target without a path with one.
    seen.iter_mut().chain(&mut expected).for_each(|message| {
        message.title = message.title.replace('/', "").to_ascii_lowercase();
    });
    assert_eq!(seen, expected, "{}", bytes.escape_ascii());
}

fn check_response(bytes: &[u8], kind: RequestKind) {
    let bytes = accepted(&mut expecting(kind, LIMITS), bytes);
    let expected = decoding::response(bytes, kind);
    let expected = expected.map(|message| Message {
        end: 0,
        last: false,
        ..message
    });
    assert_eq!(answered(bytes, kind), expected, "{}", bytes.escape_ascii());
}

#[test]
fn hyper_agrees_on_the_requests_of_the_tables() {
    for (_, _, bytes) in tables::requests() {
        check_requests(&bytes);
    }
}

#[test]
fn hyper_agrees_on_the_responses_of_the_tables() {
    for (_, kind, _, bytes) in tables::responses() {
        check_response(bytes, kind);
    }
}

#[test]
fn hyper_agrees_on_every_byte_at_every_position() {
    let stream = b"POST http://a:1/b?c HTTP/1.1\r\nHost: a:1\r\nTransfer-Encoding: chunked\r\n\r\n\
        3;x=y\r\nabc\r\n0\r\nX-y: z\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";
    for place in 0..stream.len() {
        for byte in (0..=0x7f).chain([0x80, 0xff]) {
            let mut changed = stream.to_vec();
            if let Some(slot) = changed.get_mut(place) {
                *slot = byte;
            }
            check_requests(&changed);
        }
    }
}

proptest! {
    #![proptest_config(cases::tries(256))]

    #[test]
    fn hyper_agrees_on_legal_requests(bytes in decoding::legal_requests()) {
        check_requests(&bytes);
    }

    #[test]
    fn hyper_agrees_on_legal_responses(bytes in decoding::legal_response()) {
        check_response(&bytes, RequestKind::Other);
    }
}
