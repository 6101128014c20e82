//! Floods over HTTP/3.

use crate::support::{Http3Client, Site, block_on, frame_of, head_of};
use proxy_testkit::{Gate, Upstream};
use quinn::VarInt;

const EXCESSIVE_LOAD: u64 = 0x107;
const REQUEST_CANCELLED: VarInt = VarInt::from_u32(0x10c);

fn wait_for_flood(site: &Site) {
    let record = site
        .proxyd
        .stdout()
        .find(0, |record| record.has("http_status"));
    assert_eq!(record.text("reason"), "http3_flood");
    assert_eq!(record.text("error_type"), "LimitExceeded");
}

#[test]
fn rapid_stream_resets_end_their_connection_over_http3() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let site = Site::to(&upstream, "max-stream-resets 16");
    block_on(async {
        let client = site.connect().await;
        let flood = async {
            loop {
                let Ok((mut send, mut receive)) = client.connection.open_bi().await else {
                    return;
                };
                drop(send.write_all(&head_of("GET", "/", &[])[..10]).await);
                drop(send.reset(REQUEST_CANCELLED));
                drop(receive.stop(REQUEST_CANCELLED));
            }
        };
        tokio::join!(flood, async {
            assert_eq!(client.closed().await, EXCESSIVE_LOAD);
        });
        // Other clients are not affected.
        gate.open();
        assert_eq!(site.connect().await.get("/").await.status, 200);
    });
    wait_for_flood(&site);
}

#[test]
fn floods_of_control_frames_end_their_connection() {
    let upstream = Upstream::saying("hello");
    let grease = frame_of(0x21, b"");
    let max_push_id = frame_of(0xd, &[1]);
    let cancellation = vec![0x44];
    for (beginning, frame) in [
        (&[0x0, 0x4, 0x0][..], &grease),
        (&[0x0, 0x4, 0x0], &max_push_id),
        (&[0x3], &cancellation),
    ] {
        let site = Site::to(&upstream, "");
        block_on(async {
            let client = Http3Client::trusting(&site.authority, None);
            let connecting = client
                .endpoint
                .connect(site.proxyd.address(), "a.test")
                .unwrap();
            let connection = connecting.await.unwrap();
            let mut stream = connection.open_uni().await.unwrap();
            stream.write_all(beginning).await.unwrap();
            let many = frame.repeat(1000);
            while stream.write_all(&many).await.is_ok() {}
            let closed = connection.closed().await.to_string();
            assert!(closed.contains("too many"), "{closed}");
        });
        wait_for_flood(&site);
    }
}

#[test]
fn a_priority_for_each_request_is_not_a_flood() {
    const PRIORITY_UPDATE: u64 = 0xf_0700;
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let mut client = site.connect().await;
        for stream in 0_u16..500 {
            // The stream's number in two bytes, and its priority.
            let [high, low] = (4 * stream).to_be_bytes();
            let update = frame_of(
                PRIORITY_UPDATE,
                &[&[0x40 | high, low], &b"u=3"[..]].concat(),
            );
            client.control.write_all(&update).await.unwrap();
            client
                .control
                .write_all(&frame_of(0x21, b""))
                .await
                .unwrap();
            assert_eq!(client.get("/").await.status, 200);
        }
    });
}

#[test]
fn frames_without_data_on_a_request_stream_end_their_connection() {
    let upstream = Upstream::echo();
    for frame in [frame_of(0x0, b""), frame_of(0x21, b"")] {
        let site = Site::to(&upstream, "");
        block_on(async {
            let client = site.connect().await;
            let (mut send, _receive) = client.open().await;
            send.write_all(&head_of("POST", "/", &[])).await.unwrap();
            let many = frame.repeat(1000);
            while send.write_all(&many).await.is_ok() {}
            assert_eq!(client.closed().await, EXCESSIVE_LOAD);
        });
        wait_for_flood(&site);
    }
}

#[test]
fn streams_of_unknown_types_are_bounded() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        while let Ok(mut stream) = client.connection.open_uni().await {
            drop(stream.write_all(&[0x21, 0x0]).await);
            drop(stream.finish());
        }
        assert_eq!(client.closed().await, EXCESSIVE_LOAD);
    });
    wait_for_flood(&site);
}

#[test]
fn incomplete_heads_of_many_streams_are_bounded() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        let mut held = Vec::new();
        // The section is 60 KiB long, and its last byte never arrives.
        let mut head = frame_of(0x1, &vec![0; 60_000]);
        head.pop();
        for _ in 0..8 {
            let (mut send, receive) = client.open().await;
            drop(send.write_all(&head).await);
            held.push((send, receive));
        }
        let mut refused = 0;
        for (send, _) in &mut held {
            let stopped =
                tokio::time::timeout(std::time::Duration::from_millis(300), send.stopped());
            refused += usize::from(stopped.await.is_ok());
        }
        assert!((3..8).contains(&refused), "{refused}");
        assert_eq!(client.get("/").await.status, 200);
    });
}
