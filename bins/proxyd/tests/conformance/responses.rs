//! Invalid responses of an upstream: never delivered as complete. [RFC 9112 §4, §6, §7]

use crate::proxy_listeners;
use proxy_testkit::{Broken, RawClient, Upstream, get, ok};
use std::time::Duration;

const ROW_TIMEOUT: Duration = Duration::from_secs(3);

/// Invalid responses.
pub(crate) fn rows() -> Vec<Vec<u8>> {
    let lines = [
        "",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 abc OK",
        "HTTP/2.0 200 OK",
        "http/1.1 200 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1 099 OK",
        "ICY 200 OK",
        "garbage",
    ];
    let lengths = [
        "+2",
        "-2",
        "0x2",
        "2,3",
        "2 2",
        "two",
        "2\r\nContent-Length: 3",
        "99999999999999999999",
        "3",
    ];
    let chunks = [
        "",
        "2",
        "2\r\n",
        "2\r\nok",
        "2\r\nok\r\n",
        "2\r\nok\r\n0",
        "2\r\nok\r\n0\r\n",
        "-2\r\nok\r\n0\r\n\r\n",
        "0x2\r\nok\r\n0\r\n\r\n",
        "g\r\nok\r\n0\r\n\r\n",
        "2\nok\r\n0\r\n\r\n",
        "1\r\nok\r\n0\r\n\r\n",
        "10000000000000002\r\nok\r\n0\r\n\r\n",
    ];
    let controls = (0..=0x1f_u8)
        .chain([0x7f])
        .filter(|byte| !b"\t\r\n".contains(byte));
    let lines = lines.map(|line| format!("{line}\r\nContent-Length: 2\r\n\r\nok"));
    let lengths =
        lengths.map(|value| format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\nok"));
    let chunks =
        chunks.map(|body| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"));
    let values = controls.map(|byte| {
        format!(
            "HTTP/1.1 200 OK\r\nX: a{}\r\nContent-Length: 2\r\n\r\nok",
            char::from(byte)
        )
    });
    let texts = lines.into_iter().chain(lengths).chain(chunks).chain(values);
    texts.map(String::into_bytes).collect()
}

/// Answers each request with the row of its target's number, and closes.
pub(crate) fn faulty() -> Upstream {
    let rows = rows();
    Upstream::start(move |served| {
        let Some(request) = served.request() else {
            return;
        };
        if request.target == "/good" {
            served.send(ok("ok"));
            return;
        }
        let number: usize = request
            .target
            .trim_start_matches('/')
            .parse()
            .unwrap_or_default();
        served.send(rows.get(number).map_or(&[][..], Vec::as_slice));
    })
}

#[test]
fn a_faulty_response_is_never_delivered_as_complete() {
    let rows = rows();
    println!("{} rows of responses", rows.len());
    assert!(60 <= rows.len(), "only {} rows", rows.len());
    let upstream = faulty();
    let listeners = proxy_listeners::open(upstream.address(), "");
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let mut client = RawClient::connect(listeners.plain);
        client.set_response_timeout(ROW_TIMEOUT);
        client.send(get(&format!("/{number}"), &[]));
        let outcome = match client.try_response() {
            Ok(answer) if answer.status == 502 => continue,
            Ok(answer) => format!("answered {}", answer.status),
            Err(Broken::Silent) => "silence".to_owned(),
            Err(_) => continue,
        };
        wrong.push(format!("{:?}: {outcome}", String::from_utf8_lossy(row)));
    }
    // Otherwise the test would prove nothing.
    let good = RawClient::connect(listeners.plain).ask(get("/good", &[]));
    assert_eq!(good.status, 200);
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
