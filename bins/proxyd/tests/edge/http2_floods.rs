//! Floods over HTTP/2.

use crate::support::{
    CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frames, GET, GOAWAY,
    HEADERS, Http2, Http2Upstream, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, block_on,
    frame, start, to, to_http2,
};
use proxy_testkit::{Proxyd, Upstream, get};

fn running() -> (Upstream, Proxyd) {
    let upstream = Upstream::saying("hello");
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);
    (upstream, proxyd)
}

/// Sends `frames` repeatedly until the proxy ends the connection, and returns its error.
async fn flood(client: &mut Frames, mut frames: impl FnMut(u32) -> Vec<u8>) -> u32 {
    for round in 0..20_000 {
        if client.send_raw(&frames(round)).await.is_err() {
            break;
        }
    }
    client.next_of(GOAWAY).await.code()
}

fn wait_for_goaway(proxyd: &Proxyd) {
    let printed = proxyd.stdout().find(0, |record| record.has("http_status"));
    assert_eq!(printed.text("reason"), "http2_flood");
    assert_eq!(printed.text("error_type"), "LimitExceeded");
}

#[test]
fn each_kind_of_flood_ends_its_connection() {
    let cases = [
        ("settings", frame(SETTINGS, 0, 0, &[])),
        ("ping", frame(PING, 0, 0, &[0; 8])),
        ("window update", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("priority", frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 5])),
        ("grease", frame(0xfa, 0, 0, b"grease")),
    ];
    for (name, frame) in cases {
        let (_upstream, proxyd) = running();
        block_on(async {
            let mut client = Frames::connect(proxyd.address(), &[]).await;
            let code = flood(&mut client, |_| frame.clone()).await;
            assert_eq!(code, ENHANCE_YOUR_CALM, "{name}");
            // Other clients are not affected.
            let mut other = Http2::prior_knowledge(proxyd.address()).await;
            assert_eq!(other.get("/").await.status, 200);
        });
        wait_for_goaway(&proxyd);
    }
}

#[test]
fn a_flood_is_counted_by_its_reason_and_not_as_a_rate_limit() {
    const METRICS: &str = r#"routes { route "metrics" {
        priority 100
        matches { path "/metrics" }
        service-type "builtin"
        builtin-handler "metrics"
    };"#;
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, "h2c #true").replacen("routes {", METRICS, 1);
    let proxyd = start(&kdl, &[]);
    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        let ping = frame(PING, 0, 0, &[0; 8]);
        let code = flood(&mut client, |_| ping.clone()).await;
        assert_eq!(code, ENHANCE_YOUR_CALM);
    });
    wait_for_goaway(&proxyd);

    let page = proxyd.connect().ask(get("/metrics", &[])).text();
    let counted = |name: &str| page.lines().any(|line| line == name);
    assert!(
        counted("proxy_errors_total{reason=\"http2_flood\"} 1"),
        "{page}"
    );
    assert!(counted("proxy_rate_limit_exceeded_total 0"), "{page}");
    assert!(
        counted("proxy_limit_exceeded_total{limit=\"request_rate\"} 0"),
        "{page}"
    );
}

#[test]
fn rapid_stream_resets_end_their_connection() {
    let (_upstream, proxyd) = running();
    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        let code = flood(&mut client, |round| {
            let stream = round * 2 + 1;
            let begun = frame(HEADERS, END_STREAM | END_HEADERS, stream, GET);
            [begun, frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
        });
        assert_eq!(code.await, ENHANCE_YOUR_CALM);
    });
    wait_for_goaway(&proxyd);
}

/// Number of concurrent streams in a batch.
const BATCH: u32 = 100;

/// Opens a batch of streams and resets them when `forwarded` reports them at the upstream.
async fn give_a_batch_up(client: &mut Frames, batch: u32, forwarded: impl Fn(u32)) {
    let streams = (batch * BATCH..(batch + 1) * BATCH).map(|number| number * 2 + 1);
    let ends = END_STREAM | END_HEADERS;
    let heads = streams
        .clone()
        .map(|stream| frame(HEADERS, ends, stream, GET));
    client
        .send_raw(&heads.collect::<Vec<_>>().concat())
        .await
        .unwrap();
    tokio::task::block_in_place(|| forwarded((batch + 1) * BATCH));
    let resets = streams.map(|stream| frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
    client
        .send_raw(&resets.collect::<Vec<_>>().concat())
        .await
        .unwrap();
}

#[test]
fn expired_deadlines_at_a_stalled_upstream_are_not_a_flood() {
    let upstream = Http2Upstream::start(|request| async move {
        // Held until the client resets it.
        let mut respond = request.respond;
        drop(std::future::poll_fn(|cx| respond.poll_reset(cx)).await);
    });
    let address = upstream.address;
    let proxyd = start(&to_http2(address, ""), &[]);

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        for batch in 0..6 {
            give_a_batch_up(&mut client, batch, |count| {
                upstream.requests.wait_for(usize::try_from(count).unwrap());
            })
            .await;
        }
        client.send(PING, 0, 0, b"go on...").await;
        loop {
            let frame = client.next().await.unwrap();
            assert_ne!(frame.kind, GOAWAY, "{frame:?}");
            if frame.kind == PING {
                break;
            }
        }
    });
}

#[test]
fn expired_deadlines_at_a_stalled_http1_upstream_are_not_a_flood() {
    let upstream = Upstream::start(|served| {
        served.head();
        served.end();
    });
    let proxyd = start(&to(&upstream, "h2c #true"), &[]);

    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        for batch in 0..4 {
            give_a_batch_up(&mut client, batch, |count| {
                upstream.wait_for_requests(usize::try_from(count).unwrap());
            })
            .await;
        }
        client.send(PING, 0, 0, b"go on...").await;
        loop {
            let frame = client.next().await.unwrap();
            assert_ne!(frame.kind, GOAWAY, "{frame:?}");
            if frame.kind == PING {
                break;
            }
        }
    });
}

#[test]
fn a_listener_limits_cancelled_streams() {
    for (allowed, sent, flood) in [(16, 17, true), (500, 400, false)] {
        let upstream = Upstream::saying("hello");
        let listener = format!("h2c #true; max-stream-resets {allowed}");
        let proxyd = start(&to(&upstream, &listener), &[]);
        block_on(async {
            let mut client = Frames::connect(proxyd.address(), &[]).await;
            // Reset before it was processed: one read returns both frames.
            let pairs = (0..sent).map(|number| {
                let stream = number * 2 + 1;
                let begun = frame(HEADERS, END_STREAM | END_HEADERS, stream, GET);
                [begun, frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())].concat()
            });
            let mut pairs: Vec<Vec<u8>> = pairs.collect();
            pairs.push(frame(PING, 0, 0, b"all sent"));
            for piece in pairs.chunks(20) {
                client.send_raw(&piece.concat()).await.ok();
            }
            let reported = loop {
                match client.next().await {
                    Some(frame) if [PING, GOAWAY].contains(&frame.kind) => break frame,
                    Some(_) => {}
                    None => panic!("not a word"),
                }
            };
            assert_eq!(reported.kind == GOAWAY, flood, "{allowed} {reported:?}");
        });
    }
}

#[test]
fn data_frames_without_data_end_their_connection() {
    let (_upstream, proxyd) = running();
    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        client.send(HEADERS, END_HEADERS, 1, GET).await;
        let code = flood(&mut client, |_| frame(DATA, 0, 1, &[])).await;
        assert_eq!(code, ENHANCE_YOUR_CALM);
    });
    wait_for_goaway(&proxyd);
}

#[test]
fn a_head_of_endless_continuations_ends_its_connection() {
    let (_upstream, proxyd) = running();
    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        client.send(HEADERS, END_STREAM, 1, GET).await;
        let code = flood(&mut client, |_| frame(CONTINUATION, 0, 1, &[])).await;
        assert_eq!(code, ENHANCE_YOUR_CALM);
    });
    wait_for_goaway(&proxyd);
}

#[test]
fn a_header_section_that_unfolds_beyond_measure_is_refused() {
    let (upstream, proxyd) = running();
    block_on(async {
        let mut client = Frames::connect(proxyd.address(), &[]).await;
        // One field of 4000 bytes is indexed, then referenced a thousand times for one byte each.
        let mut head = GET.to_vec();
        head.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
        head.extend(std::iter::repeat_n(b'a', 4000));
        head.extend(std::iter::repeat_n(0xbe, 1000));
        client
            .send(HEADERS, END_STREAM | END_HEADERS, 1, &head)
            .await;
        while let Some(frame) = client.next().await {
            if [RST_STREAM, GOAWAY].contains(&frame.kind) {
                break;
            }
            // h2 itself answers 431 when it stops early.
            assert!(frame.kind != DATA);
            if frame.kind == HEADERS {
                break;
            }
        }
        let mut other = Http2::prior_knowledge(proxyd.address()).await;
        assert_eq!(other.get("/").await.status, 200);
    });
    assert_eq!(upstream.requests().len(), 1);
}
