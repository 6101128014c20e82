//! The life of HTTP/3 connections: certificates, reloads, drains, migration.

use crate::support::{
    Authority, BINARY, Http3Answer, Http3Client, Site, head_of, live, over_tls, start, to,
};
use proxy_testkit::{Gate, Launch, Reload, Upgrade, Upstream};
use std::net::UdpSocket;

const GOAWAY: u64 = 0x7;

#[test]
fn a_renewed_certificate_is_shown_to_new_connections() {
    let authority = Authority::new("root");
    let [first, second] = [(); 2].map(|()| authority.issue(&["a.test"]));
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &format!("{}; http3 #true", over_tls("")));
    let proxyd = start(&kdl, &[("site", &first)]);
    let shown = || {
        live(async {
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
        live(async {
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
    live(async {
        let client = site.connect().await;
        let (mut send, receive) = client.open().await;
        send.write_all(&head_of("GET", "/", &[])).await.unwrap();
        send.finish().unwrap();
        upstream.wait_for_requests(1);
        site.proxyd.terminate();
        client.control_until(GOAWAY).await;
        gate.open();
        assert_eq!(Http3Answer::read(receive).await.unwrap().text(), "late");
        assert_eq!(client.closed().await, 0x100);
    });
    assert!(site.proxyd.wait().success());
}

#[test]
fn other_settings_retire_connections_with_goaway() {
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    live(async {
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
fn http3_comes_and_goes_with_reloads() {
    let upstream = Upstream::saying("hello");
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let without = to(&upstream, &over_tls(""));
    let with = to(&upstream, &format!("{}; http3 #true", over_tls("")));
    let proxyd = start(&without, &[("site", &site)]);
    for _ in 0..2 {
        assert_eq!(proxyd.reload(&with), Reload::Applied);
        live(async {
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
    let without = to(&upstream, &over_tls(""));
    let proxyd = start(&without, &[("site", &site)]);
    let taken = UdpSocket::bind(proxyd.address()).unwrap();
    let with = to(&upstream, &format!("{}; http3 #true", over_tls("")));
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
    live(async {
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
    live(async {
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
    live(async {
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
fn many_handshakes_at_once_have_to_prove_their_address() {
    /// The type of a Retry packet, with the bits that are fixed. [RFC 9000 §17.2.5]
    const RETRY: u8 = 0xf0;
    let upstream = Upstream::saying("hello");
    let site = Site::to(&upstream, "");
    // Clients behind it get no answer, so that their handshakes stay open.
    let (front, back) = (
        UdpSocket::bind("127.0.0.1:0"),
        UdpSocket::bind("127.0.0.1:0"),
    );
    let (front, back) = (front.unwrap(), back.unwrap());
    back.connect(site.proxyd.address()).unwrap();
    let (address, to_server) = (front.local_addr().unwrap(), back.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut datagram = [0; 1500];
        while let Ok(len) = front.recv(&mut datagram) {
            drop(to_server.send(&datagram[..len]));
        }
    });
    live(async {
        let mut open = Vec::new();
        for _ in 0..40 {
            let client = Http3Client::trusting(&site.authority, None);
            let connecting = client.endpoint.connect(address, "a.test").unwrap();
            open.push((client, connecting));
        }
        let asked = tokio::task::spawn_blocking(move || {
            let mut datagram = [0; 1500];
            loop {
                let len = back.recv(&mut datagram).unwrap();
                if len > 0 && datagram[0] & RETRY == RETRY {
                    return;
                }
            }
        });
        asked.await.unwrap();
        // A client that proves its address is served.
        assert_eq!(site.connect().await.get("/").await.status, 200);
    });
}
