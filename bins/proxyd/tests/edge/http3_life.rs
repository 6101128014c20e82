//! The life of HTTP/3 connections: certificates, reloads, drains, migration.

use crate::support::{
    Authority, BINARY, HeldHandshakes, Http3Answer, Http3Client, Site, block_on, frame_of, head_of,
    over_tls, start, to,
};
use proxy_testkit::{Gate, Launch, Proxyd, Reload, Upgrade, Upstream, free_port};
use std::net::UdpSocket;

const GOAWAY: u64 = 0x7;
const NO_ERROR: u64 = 0x100;

/// An address at which no other test opens a TCP or UDP socket, even while a reload has closed this one's.
/// [`free_port`] claims its ports at 127.0.0.1.
fn own_address() -> String {
    format!("127.0.0.2:{}", free_port())
}

#[test]
fn a_renewed_certificate_is_shown_to_new_connections() {
    let authority = Authority::new("root");
    let [first, second] = [(); 2].map(|()| authority.issue(&["a.test"]));
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls("")));
    let proxyd = start(&kdl, &[("site", &first)]);
    let shown = || {
        block_on(async {
            let client = Http3Client::trusting(&authority, None);
            let client = client.connect(proxyd.address()).await.unwrap();
            let chain = client.connection.peer_identity().unwrap();
            let chain =
                chain.downcast::<Vec<tokio_rustls::rustls::pki_types::CertificateDer<'static>>>();
            chain.unwrap()[0].clone()
        })
    };
    assert_eq!(shown(), first.der());
    second.write(proxyd.folder(), "site");
    assert_eq!(proxyd.reload(&kdl), Reload::Applied);
    assert_eq!(shown(), second.der());
}

#[test]
fn client_certificates_are_verified_over_http3() {
    let (members, servers) = (Authority::new("members"), Authority::new("servers"));
    let upstream = Upstream::saying("hello");
    let auth = r#"client-auth { ca-file "members.pem"; mode "required" }"#;
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls(auth)));
    let launch = Launch::new(BINARY, &kdl);
    members.write(launch.folder(), "members.pem");
    servers.issue(&["a.test"]).write(launch.folder(), "site");
    let proxyd = launch.start();
    let member = members.issue_to_client("member");
    let stranger = servers.issue_to_client("stranger");
    for (identity, status) in [(None, 495), (Some(&stranger), 495), (Some(&member), 200)] {
        block_on(async {
            let client = Http3Client::trusting(&servers, identity);
            let client = client.connect(proxyd.address()).await.unwrap();
            assert_eq!(client.get("/").await.status, status);
        });
    }
}

#[test]
fn a_drain_lets_requests_end() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let mut site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        let (mut send, receive) = client.open().await;
        send.write_all(&head_of("GET", "/", &[])).await.unwrap();
        send.finish().unwrap();
        upstream.wait_for_requests(1);
        site.proxyd.terminate();
        client.control_until(GOAWAY).await;
        gate.open();
        assert_eq!(Http3Answer::read(receive).await.unwrap().text(), "late");
        assert_eq!(client.closed().await, NO_ERROR);
    });
    assert!(site.proxyd.wait().success());
}

#[test]
fn other_settings_retire_connections_with_goaway() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = site.connect().await;
        assert_eq!(client.get("/").await.status, 200);
        let settings = format!("{}; http3 #true; max-stream-resets 300", over_tls(""));
        assert_eq!(
            site.proxyd.reload(&to(&upstream, &settings)),
            Reload::Applied
        );
        client.control_until(GOAWAY).await;
        assert_eq!(site.connect().await.get("/").await.status, 200);
    });
}

#[test]
fn reloads_enable_and_disable_http3() {
    let upstream = Upstream::saying("hello");
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let address = own_address();
    let at = |settings: &str| to(&upstream, settings).replacen("127.0.0.1:0", &address, 1);
    let (without, with) = (
        at(&over_tls("")),
        at(&format!("{}; http3 #true", over_tls(""))),
    );
    let proxyd = start(&without, &[("site", &site)]);
    for _ in 0..2 {
        assert_eq!(proxyd.reload(&with), Reload::Applied);
        block_on(async {
            let client = Http3Client::trusting(&authority, None);
            let client = client.connect(proxyd.address()).await.unwrap();
            assert_eq!(client.get("/").await.status, 200);
            assert_eq!(proxyd.reload(&without), Reload::Applied);
            client.control_until(GOAWAY).await;
            client.connection.closed().await;
        });
    }
}

#[test]
fn a_taken_udp_port_is_reported() {
    let upstream = Upstream::saying("hello");
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let address = own_address();
    let at = |settings: &str| to(&upstream, settings).replacen("127.0.0.1:0", &address, 1);
    let without = at(&over_tls(""));
    let proxyd = start(&without, &[("site", &site)]);
    let taken = UdpSocket::bind(proxyd.address()).unwrap();
    let with = at(&format!("{}; http3 #true", over_tls("")));
    let refused = proxyd.reload(&with);
    assert!(
        matches!(&refused, Reload::Refused(why) if why.contains("ss -lunp")),
        "{refused:?}"
    );
    drop(taken);
    assert_eq!(proxyd.reload(&with), Reload::Applied);
}

#[test]
fn a_connection_survives_a_new_port_with_any_number_of_workers() {
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls("")));
    let site = Site::with(&kdl.replace("worker-threads 1", "worker-threads 4"));
    block_on(async {
        let client = Http3Client::trusting(&site.authority, None);
        let connection = client.connect(site.proxyd.address()).await.unwrap();
        for _ in 0..12 {
            assert_eq!(connection.get("/").await.status, 200);
            // The kernel hashes the new port to another socket, three times of four.
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.endpoint.rebind(socket).unwrap();
        }
    });
}

#[test]
fn a_new_address_gets_further_requests_on_another_connection() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let site = Site::to(&upstream, "");
    block_on(async {
        let client = Http3Client::trusting(&site.authority, None);
        let connection = client.connect(site.proxyd.address()).await.unwrap();
        let (mut send, receive) = connection.open().await;
        send.write_all(&head_of("GET", "/", &[])).await.unwrap();
        send.finish().unwrap();
        upstream.wait_for_requests(1);
        let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
        client.endpoint.rebind(socket).unwrap();
        // The request of the old address ends; one of the new address is rejected.
        let (mut other, refused) = connection.open().await;
        drop(other.write_all(&head_of("GET", "/", &[])).await);
        let error = Http3Answer::read(refused).await.unwrap_err();
        assert!(error.contains("267"), "{error}");
        connection.control_until(GOAWAY).await;
        gate.open();
        assert_eq!(Http3Answer::read(receive).await.unwrap().text(), "late");
    });
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn an_upgrade_keeps_connections_of_http3() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls("")));
    let mut site = Site::with(&kdl.replace("worker-threads 1", "worker-threads 2"));
    block_on(async {
        let client = Http3Client::trusting(&site.authority, None);
        let old = client.connect(site.proxyd.address()).await.unwrap();
        let (mut send, receive) = old.open().await;
        send.write_all(&head_of("GET", "/", &[])).await.unwrap();
        send.finish().unwrap();
        upstream.wait_for_requests(1);
        assert_eq!(site.proxyd.upgrade(), Upgrade::Done);
        // The old process says farewell and answers, through the sockets of the new one.
        old.control_until(GOAWAY).await;
        gate.open();
        assert_eq!(Http3Answer::read(receive).await.unwrap().text(), "late");
        assert_eq!(site.connect().await.get("/").await.status, 200);
    });
    site.proxyd.wait_for_former();
}

#[test]
fn a_second_upgrade_keeps_connections_of_the_process_before_the_last() {
    for is_second_busy in [true, false] {
        let upstream = Upstream::echo();
        let kdl = to(&upstream, &format!("{}; http3 #true", over_tls("")));
        let mut site = Site::with(&kdl);
        block_on(async {
            let mut open = Vec::new();
            for number in 1..=2 {
                if number == 1 || is_second_busy {
                    let client = site.connect().await;
                    let (mut send, receive) = client.open().await;
                    let head = head_of("POST", "/", &[("content-length", "4")]);
                    send.write_all(&head).await.unwrap();
                    send.write_all(&frame_of(0x0, b"la")).await.unwrap();
                    upstream.wait_for_connections(number);
                    open.push((client, send, receive));
                }
                assert_eq!(site.proxyd.upgrade(), Upgrade::Done);
            }
            // The newest process receives the datagrams of all connections.
            for (client, send, _) in &mut open {
                client.control_until(GOAWAY).await;
                send.write_all(&frame_of(0x0, b"te")).await.unwrap();
                send.finish().unwrap();
            }
            for (_client, _send, receive) in open {
                assert_eq!(Http3Answer::read(receive).await.unwrap().text(), "late");
            }
            assert_eq!(site.connect().await.get("/").await.status, 200);
        });
        site.proxyd.wait_for_former();
    }
}

#[test]
fn many_handshakes_at_once_have_to_prove_their_address() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    let held = HeldHandshakes::open(&site);
    block_on(async {
        // A client that proves its address is served.
        assert_eq!(site.connect().await.get("/").await.status, 200);
    });
    drop(held);
}

#[test]
fn the_end_of_the_drain_time_closes_connections() {
    let upstream = Upstream::gated(&Gate::new(), "never");
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls("")));
    let mut site = Site::with(&format!(
        "{kdl} system {{ graceful-shutdown-timeout-ms 300 }}"
    ));
    block_on(async {
        let client = site.connect().await;
        let (mut send, _receive) = client.open().await;
        send.write_all(&head_of("GET", "/", &[])).await.unwrap();
        send.finish().unwrap();
        upstream.wait_for_requests(1);
        site.proxyd.terminate();
        client.control_until(GOAWAY).await;
        assert_eq!(client.closed().await, NO_ERROR);
    });
    site.proxyd.wait();
}

#[test]
fn an_immediate_stop_closes_connections() {
    let upstream = Upstream::saying("hello");
    let mut site = Site::to(&upstream, "");
    block_on(async {
        let clients = [site.connect().await, site.connect().await];
        // Answers confirm the handshakes: before, QUIC hides the code of a close. [RFC 9000 §10.2.3]
        for client in &clients {
            assert_eq!(client.get("/").await.status, 200);
        }
        site.proxyd.quit();
        for client in &clients {
            assert_eq!(client.closed().await, NO_ERROR);
        }
    });
    site.proxyd.wait();
}

#[test]
fn connections_survive_fewer_and_more_workers() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls("")));
    let with = |workers| kdl.replace("worker-threads 1", &format!("worker-threads {workers}"));
    let site = Site::with(&with(4));
    block_on(async {
        let mut open = Vec::new();
        // One at least of each worker, most likely: the kernel spreads them by their ports.
        for number in 1..=16 {
            let client = Http3Client::trusting(&site.authority, None);
            let connection = client.connect(site.proxyd.address()).await.unwrap();
            let (mut send, receive) = connection.open().await;
            send.write_all(&head_of("GET", "/", &[])).await.unwrap();
            send.finish().unwrap();
            upstream.wait_for_requests(number);
            open.push((client, connection, receive));
        }
        for workers in [1, 3] {
            assert_eq!(site.proxyd.reload(&with(workers)), Reload::Applied);
            for (client, ..) in &open {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                client.endpoint.rebind(socket).unwrap();
            }
            // New clients reach a worker that accepts.
            for _ in 0..8 {
                site.connect().await;
            }
        }
        gate.open();
        for (_client, _connection, receive) in open {
            assert_eq!(Http3Answer::read(receive).await.unwrap().text(), "late");
        }
        assert_eq!(site.connect().await.get("/").await.status, 200);
    });
}

#[test]
fn new_clients_are_served_while_a_former_endpoint_has_connections() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "late");
    let address = own_address();
    let at = |settings: &str| to(&upstream, settings).replacen("127.0.0.1:0", &address, 1);
    let (without, with) = (
        at(&over_tls("")),
        at(&format!("{}; http3 #true", over_tls(""))),
    );
    let site = Site::with(&with);
    block_on(async {
        let old = site.connect().await;
        let (mut send, receive) = old.open().await;
        send.write_all(&head_of("GET", "/", &[])).await.unwrap();
        send.finish().unwrap();
        upstream.wait_for_requests(1);
        assert_eq!(site.proxyd.reload(&without), Reload::Applied);
        assert_eq!(site.proxyd.reload(&with), Reload::Applied);
        // The kernel spreads new clients over all sockets of the address.
        for _ in 0..12 {
            site.connect().await;
        }
        gate.open();
        assert_eq!(Http3Answer::read(receive).await.unwrap().text(), "late");
    });
}

#[test]
fn a_service_manager_passes_the_socket() {
    let upstream = Upstream::saying("hello");
    let address = own_address();
    let passed = UdpSocket::bind(&address).unwrap();
    let at = |settings: &str| to(&upstream, settings).replacen("127.0.0.1:0", &address, 1);
    let (with, without) = (
        at(&format!("{}; http3 #true", over_tls(""))),
        at(&over_tls("")),
    );
    let authority = Authority::new("root");
    let identity = authority.issue(&["a.test"]);
    // The service manager keeps a duplicate.
    let launch = Launch::new(BINARY, &with).socket(passed.try_clone().unwrap());
    identity.write(launch.folder(), "site");
    let mut proxyd = launch.start();
    let is_served = |proxyd: &Proxyd| {
        block_on(async {
            let client = Http3Client::trusting(&authority, None);
            let client = client.connect(proxyd.address()).await.unwrap();
            assert_eq!(client.get("/").await.status, 200);
        });
    };
    is_served(&proxyd);
    assert_eq!(proxyd.reload(&without), Reload::Applied);
    assert_eq!(proxyd.reload(&with), Reload::Applied);
    is_served(&proxyd);
    assert_eq!(proxyd.upgrade(), Upgrade::Done);
    is_served(&proxyd);
    assert_eq!(proxyd.reload(&without), Reload::Applied);
    assert_eq!(proxyd.reload(&with), Reload::Applied);
    is_served(&proxyd);
}
