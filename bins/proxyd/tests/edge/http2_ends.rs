//! The ends of HTTP/2 streams and connections.

use crate::support::{
    Answer, DATA, END_HEADERS, END_STREAM, Frames, GET, GOAWAY, HEADERS, Http2, PING, ask,
    block_on, get, start, to,
};
use proxy_testkit::{Gate, Upgrade, Upstream, ok};

const H2C: &str = "h2c #true";

#[test]
fn a_request_cancelled_by_its_client_is_cancelled_upstream() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            if request.target == "/wait" {
                served.end();
                return;
            }
            served.send(ok("hello"));
        }
    });
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let (response, mut stream) = http.begin(ask("POST", "/")).await;
        stream.send_reset(h2::Reason::CANCEL);
        drop(response);
        let waiting = http.send(get("/wait")).await;
        upstream.wait_for_requests(1);
        drop(waiting);
        assert_eq!(http.get("/").await.status, 200);
    });
    let record = proxyd
        .stdout()
        .find(0, |record| record.text("path") == "/wait");
    assert_eq!(record.text("reason"), "client_aborted");
    assert_eq!(record.number("status"), Some(499.0));
    upstream.wait_for_ends(1);
}

#[test]
fn a_drained_connection_ends_when_its_streams_have() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let mut proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let response = http.send(get("/")).await;
        upstream.wait_for_requests(1);
        proxyd.terminate();
        let printed = proxyd
            .stderr()
            .find(0, |record| record.text("message") == "draining");
        assert_eq!(printed.text("level"), "INFO");
        gate.open();
        let answer = Answer::read(response.await.unwrap()).await.unwrap();
        assert_eq!(answer.text(), "late");
        http.end().await.unwrap();
    });
    assert!(proxyd.wait().success());
}

#[test]
fn a_client_that_reconnects_in_time_is_refused_nothing() {
    let gate = Gate::new();
    let upstream = {
        let gate = gate.clone();
        Upstream::start(move |served| {
            while let Some(request) = served.request() {
                if request.target == "/slow" {
                    gate.wait();
                }
                served.send(ok("fine"));
            }
        })
    };
    let mut proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        let slow = http.send(get("/slow")).await;
        upstream.wait_for_requests(1);
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        frames.send(HEADERS, END_STREAM | END_HEADERS, 1, GET).await;
        assert_eq!(frames.next_of(DATA).await.payload, b"fine");

        assert_eq!(proxyd.upgrade(), Upgrade::Done);

        // First the client gets the notice; streams that it opens before it receives it are served.
        let notice = frames.next_of(GOAWAY).await;
        assert_eq!(notice.payload, b"\x7f\xff\xff\xff\0\0\0\0");
        frames.send(HEADERS, END_STREAM | END_HEADERS, 3, GET).await;
        assert_eq!(frames.next_of(DATA).await.payload, b"fine");
        let ping = frames.next_of(PING).await;
        frames.send(PING, 1, 0, &ping.payload).await;
        let last = frames.next_of(GOAWAY).await;
        assert_eq!(last.payload, b"\0\0\0\x03\0\0\0\0");
        while frames.next().await.is_some() {}

        gate.open();
        let answer = Answer::read(slow.await.unwrap()).await.unwrap();
        assert_eq!(answer.text(), "fine");
        drop(http);
    });
    proxyd.wait_for_former();
}

#[test]
fn an_idle_connection_gets_a_goaway() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(
        &to(&upstream, "h2c #true; timeouts { keep-alive-ms 300 }"),
        &[],
    );

    block_on(async {
        let mut http = Http2::prior_knowledge(proxyd.address()).await;
        assert_eq!(http.get("/").await.status, 200);
        http.end().await.unwrap();

        // A client that does not even reply to a ping is disconnected, too.
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        frames.send(HEADERS, END_STREAM | END_HEADERS, 1, GET).await;
        let goaway = frames.next_of(GOAWAY).await;
        assert_eq!(goaway.code(), 0);
        frames.next_of(PING).await;
        while frames.next().await.is_some() {}
    });
}

#[test]
fn a_connection_without_a_request_is_not_kept() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true; timeouts { header-ms 300 }"), &[]);

    block_on(async {
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        assert_eq!(frames.next_of(GOAWAY).await.code(), 0);
        while frames.next().await.is_some() {}
    });
    let mut silent = proxyd.connect();
    silent.send("PRI * HT");
    assert!(silent.rest().unwrap().0.is_empty());
}

#[test]
fn a_stalled_head_ends_its_connection() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true; timeouts { header-ms 300 }"), &[]);

    block_on(async {
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        frames.send(HEADERS, END_STREAM, 1, GET).await;
        assert_ne!(frames.next_of(GOAWAY).await.code(), 0);
        while frames.next().await.is_some() {}
    });
    let printed = proxyd.stdout().find(0, |record| record.has("http_status"));
    assert_eq!(printed.text("reason"), "request_header_timeout");
}

#[test]
fn a_breach_of_the_protocol_ends_its_connection_and_is_reported() {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, H2C), &[]);

    block_on(async {
        let mut frames = Frames::connect(proxyd.address(), &[]).await;
        // A stream id that only servers may use.
        frames.send(HEADERS, END_STREAM | END_HEADERS, 2, GET).await;
        assert_eq!(frames.next_of(GOAWAY).await.code(), 1);
        while frames.next().await.is_some() {}
    });
    let printed = proxyd.stdout().find(0, |record| record.has("http_status"));
    assert_eq!(printed.text("reason"), "http2_protocol_error");
}
