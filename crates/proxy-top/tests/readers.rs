//! Pages that are read from interfaces of other programs, and from a hostile one.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_top::{AdminAddress, AdminClient, TopError, page};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

/// A client of an interface that answers each connection with the next response.
fn client(responses: Vec<String>) -> AdminClient {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for response in responses {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                head.extend(byte);
            }
            drop(stream.write_all(response.as_bytes()));
        }
    });
    AdminClient::new(AdminAddress::Tcp(address), None).unwrap()
}

fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")
}

#[test]
fn a_page_has_no_commands_of_a_terminal() {
    let metrics = "proxy_requests_total{route=\"a\u{1b}[2J\u{202e}\",status=\"200\"} 5\n\
                   proxy_uptime_seconds 10.000000000\n";
    let upstreams = r#"{"upstreams":{"app":{"targets":[{"address":"10.0.0.1:80","healthy":false,
        "last_error":"\u001b]0;title\u0007","causes":["connect"]}]}}}"#;
    let shown = page(&client(vec![ok(metrics), ok(upstreams)])).unwrap();
    for part in [
        "\\u{1b}[2J\\u{202e}",
        "\\u{1b}]0;title\\u{7}",
        "0.50 req/s",
        "10.0.0.1:80",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(
        !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{shown:?}"
    );
}

#[test]
fn an_answer_that_is_cut_or_of_another_program_is_an_error() {
    let failure = |responses: Vec<String>| page(&client(responses)).unwrap_err();
    let cut = ok("proxy_uptime_seconds 1.0\n").replace("seconds 1.0\n", "");
    assert!(matches!(failure(vec![cut]), TopError::Response { .. }));
    assert!(matches!(
        failure(vec!["SSH-2.0-x\r\n".to_owned()]),
        TopError::Response { .. }
    ));
    assert!(matches!(
        failure(vec![ok(""), ok("[]")]),
        TopError::Response { .. }
    ));
    let unauthorized = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_owned();
    assert!(matches!(
        failure(vec![unauthorized]),
        TopError::Unauthorized(_)
    ));
    let other = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned();
    assert!(matches!(
        failure(vec![other]),
        TopError::Status { status: 404, .. }
    ));
}
