//! HTTP/1.1 responses of upstreams, as HTTP/2 clients receive them. [RFC 9113 §8.1]

use crate::frames::{DATA, END_HEADERS, FrameEvent, Frames, HEADERS, RST_STREAM, WHOLE, frame};
use crate::hpack::{request_head, status};
use crate::proxy_listeners;
use crate::responses;
use proxy_testkit::Upstream;
use std::net::SocketAddr;

/// Frames received on one stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    /// Status of each head; 0 for trailers.
    heads: Vec<u16>,
    body: Vec<u8>,
    ended: bool,
    reset: bool,
}

/// Requests `target` on a new connection.
fn ask(proxy: SocketAddr, method: &str, target: &str) -> Answer {
    let mut client = Frames::begin(proxy, &[]);
    let head = request_head(method, "http", "a.test", target);
    client.send(&frame(HEADERS, WHOLE, 1, &head));
    let mut answer = Answer::default();
    while !answer.ended && !answer.reset {
        let frame = match client.next() {
            FrameEvent::Frame(frame) if frame.stream == 1 => frame,
            FrameEvent::Frame(_) => continue,
            end @ (FrameEvent::End | FrameEvent::Silence) => panic!("{end:?} after {answer:?}"),
        };
        match frame.kind {
            HEADERS => {
                assert_eq!(frame.flags & END_HEADERS, END_HEADERS, "{frame:?}");
                answer.heads.push(status(&frame.payload));
            }
            DATA => answer.body.extend_from_slice(&frame.payload),
            RST_STREAM => answer.reset = true,
            _ => {}
        }
        answer.ended |= frame.ends_stream();
    }
    answer
}

/// Starts an upstream that responds to `/204` and similar paths.
fn script() -> Upstream {
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
    Upstream::start(|served| {
        while let Some(request) = served.request() {
            let text = match request.target.as_str() {
                "/204" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
                "/204-length" => "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n".to_owned(),
                "/304" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n".to_owned(),
                "/hints" => "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                    HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
                    .to_owned(),
                "/processing" => "HTTP/1.1 102 Processing\r\n\r\n\
                    HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                    .to_owned(),
                "/chunks" => [CHUNKED, "\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"].concat(),
                "/trailers" => [CHUNKED, "\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"].concat(),
                "/no-chunks" => [CHUNKED, "\r\n0\r\n\r\n"].concat(),
                "/more" => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more".to_owned(),
                "/close" => {
                    served.send("HTTP/1.1 200 OK\r\n\r\nhello");
                    return;
                }
                "/cut" => {
                    served.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
                    return;
                }
                "/cut-chunks" => {
                    served.send([CHUNKED, "\r\n5\r\nhello\r\n"].concat());
                    return;
                }
                "/switch" => "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                    Upgrade: websocket\r\n\r\n"
                    .to_owned(),
                "/odd" => "HTTP/1.1 299 Whatever that means\r\nConnection: x\r\nX: y\r\n\
                    Keep-Alive: timeout=5\r\nContent-Length: 5\r\n\r\nhello"
                    .to_owned(),
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
            };
            let bodiless = request.method == "HEAD" && text.ends_with("hello");
            served.send(
                text.strip_suffix("hello")
                    .filter(|_| bodiless)
                    .unwrap_or(&text),
            );
        }
    })
}

#[test]
fn each_kind_of_answer_is_translated() {
    let upstream = script();
    let listeners = proxy_listeners::open(upstream.address(), "");
    let rows: [(&str, &str, &[u16], &str); 14] = [
        ("GET", "/", &[200], "hello"),
        ("HEAD", "/", &[200], ""),
        ("HEAD", "/204", &[204], ""),
        ("GET", "/204", &[204], ""),
        ("GET", "/204-length", &[204], ""),
        ("GET", "/304", &[304], ""),
        ("GET", "/hints", &[103, 200], "hello"),
        ("GET", "/processing", &[102, 404], ""),
        ("GET", "/chunks", &[200], "hello"),
        ("GET", "/trailers", &[200, 0], "hello"),
        ("GET", "/no-chunks", &[200], ""),
        ("GET", "/more", &[200], "hello"),
        ("GET", "/close", &[200], "hello"),
        ("GET", "/odd", &[299], "hello"),
    ];
    for proxy in [listeners.plain, listeners.tls_h2] {
        for (method, target, heads, body) in rows {
            let answer = ask(proxy, method, target);
            let wanted = Answer {
                heads: heads.to_vec(),
                body: body.as_bytes().to_vec(),
                ended: true,
                reset: false,
            };
            assert_eq!(answer, wanted, "{method} {target}");
        }
        assert_eq!(ask(proxy, "GET", "/switch").heads, [502]);
        for target in ["/cut", "/cut-chunks"] {
            let answer = ask(proxy, "GET", target);
            assert!(answer.reset && !answer.ended, "{target}: {answer:?}");
        }
    }
}

#[test]
fn a_faulty_response_is_never_delivered_as_complete_by_http2() {
    let upstream = responses::faulty();
    let listeners = proxy_listeners::open(upstream.address(), "");
    for proxy in [listeners.plain, listeners.tls_h2] {
        for (number, row) in responses::rows().iter().enumerate() {
            let answer = ask(proxy, "GET", &format!("/{number}"));
            let is_502 = answer.heads == [502] && answer.ended;
            let row = String::from_utf8_lossy(row);
            assert!(is_502 || answer.reset, "{row:?}: {answer:?}");
        }
        let good = ask(proxy, "GET", "/good");
        assert_eq!((good.heads, good.ended), (vec![200], true));
    }
}
