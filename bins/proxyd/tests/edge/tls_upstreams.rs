//! TLS to targets: with SNI, verified, and never replaced by plaintext.

use crate::support::{Authority, BINARY, Identity, TlsUpstream, server_config};
use proxy_testkit::{Launch, Proxyd, RawClient, Reload, Response, Upstream, get};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// One route to a target at `address`, with this `tls` block.
fn kdl(address: SocketAddr, tls: &str) -> String {
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{ targets {{ target "{address}" }}; tls {{ {tls} }} }} }}
        system {{ worker-threads 1 }}
        "#
    )
}

fn running(address: SocketAddr, tls: &str, root: &Authority) -> Proxyd {
    let launch = Launch::new(BINARY, &kdl(address, tls));
    root.write(launch.folder(), "root.pem");
    launch.start()
}

fn get_root(proxyd: &Proxyd) -> Response {
    proxyd.connect().ask(get("/", &[]))
}

const NAMED: &str = r#"sni "up.test"; ca-file "root.pem""#;

#[test]
fn the_name_written_is_asked_for_and_verified() {
    let root = Authority::new("root");
    let target = TlsUpstream::start(server_config(
        &root.issue(&["up.test"]),
        None,
        &["http/1.1"],
    ));
    let proxyd = running(target.address, NAMED, &root);

    assert_eq!(get_root(&proxyd).text(), "hello");
    let seen = target.next_handshake();
    assert_eq!(seen.server_name.as_deref(), Some("up.test"));
    assert_eq!(seen.protocol.as_deref(), Some(&b"http/1.1"[..]));
    assert!(!seen.has_certificate);
}

#[test]
fn a_target_gets_close_notify() {
    let root = Authority::new("root");
    let target = TlsUpstream::start(server_config(&root.issue(&["up.test"]), None, &[]));
    let launch = Launch::new(
        BINARY,
        &kdl(target.address, NAMED)
            .replace("tls {", "connection-pool { idle-timeout-secs 1 }; tls {"),
    );
    root.write(launch.folder(), "root.pem");
    let proxyd = launch.start();

    assert_eq!(get_root(&proxyd).text(), "hello");
    assert!(target.was_closed_by_notify());
}

#[test]
fn a_target_is_verified_by_its_own_host_when_no_name_is_written() {
    let root = Authority::new("root");
    for (names, status) in [(&["127.0.0.1"], 200), (&["127.0.0.2"], 502)] {
        let target = TlsUpstream::start(server_config(&root.issue(names), None, &[]));
        let proxyd = running(target.address, r#"ca-file "root.pem""#, &root);
        assert_eq!(get_root(&proxyd).status, status, "{names:?}");
    }
}

/// The log has the reason, and the client gets only a bad gateway.
fn is_not_trusted(proxyd: &Proxyd, why: &str) {
    let response = get_root(proxyd);
    assert_eq!(response.status, 502);
    assert_eq!(response.error_code(), "UPSTREAM_ERROR");
    assert!(
        !response.text().contains("certificate"),
        "{}",
        response.text()
    );
    let record = proxyd.error_record(&response.correlation_id());
    assert_eq!(record.text("reason"), "tls_verify_failed");
    assert!(record.text("message").contains(why), "{record:?}");
}

#[test]
fn a_target_of_another_name_is_not_trusted() {
    let root = Authority::new("root");
    let target = TlsUpstream::start(server_config(&root.issue(&["other.test"]), None, &[]));
    let proxyd = running(target.address, NAMED, &root);
    is_not_trusted(&proxyd, "not valid for name");
}

#[test]
fn a_target_of_an_unknown_authority_is_not_trusted() {
    let (root, strange) = (Authority::new("root"), Authority::new("strange"));
    let target = TlsUpstream::start(server_config(&strange.issue(&["up.test"]), None, &[]));
    let proxyd = running(target.address, NAMED, &root);
    is_not_trusted(&proxyd, "UnknownIssuer");
    // It is not trusted by the platform's roots either, which do not include this one.
    let proxyd = running(target.address, r#"sni "up.test""#, &root);
    is_not_trusted(&proxyd, "UnknownIssuer");
}

#[test]
fn a_target_with_an_expired_certificate_is_not_trusted() {
    let root = Authority::new("root");
    let target = TlsUpstream::start(server_config(
        &root.issue_until(&["up.test"], 2001),
        None,
        &[],
    ));
    let proxyd = running(target.address, NAMED, &root);
    is_not_trusted(&proxyd, "expired");
}

#[test]
fn a_self_signed_certificate_is_trusted_where_it_is_listed() {
    for (names, year, refused_for) in [
        (&["up.test"], 2100, None),
        (&["other.test"], 2100, Some("not valid for name")),
        (&["up.test"], 2001, Some("xpired")),
    ] {
        let (identity, listed) = Authority::self_signed(names, year);
        let target = TlsUpstream::start(server_config(&identity, None, &[]));
        let proxyd = running(target.address, NAMED, &listed);
        match refused_for {
            None => assert_eq!(get_root(&proxyd).text(), "hello"),
            Some(why) => is_not_trusted(&proxyd, why),
        }
    }
}

#[test]
fn a_self_signed_certificate_that_is_not_listed_is_called_so() {
    let (identity, _) = Authority::self_signed(&["up.test"], 2100);
    let target = TlsUpstream::start(server_config(&identity, None, &[]));
    for root in [
        Authority::new("root"),
        Authority::self_signed(&["up.test"], 2100).1,
    ] {
        let proxyd = running(target.address, NAMED, &root);
        is_not_trusted(&proxyd, "it is self-signed, and `ca-file` does not name it");
    }
}

#[test]
fn an_upstream_with_tls_is_never_spoken_to_in_plaintext() {
    let root = Authority::new("root");
    let plain = Upstream::start(|served| {
        let first = served.exactly(1).unwrap();
        // A handshake, not a request.
        assert_eq!(first, [0x16]);
        served.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let proxyd = running(plain.address(), NAMED, &root);

    let response = get_root(&proxyd);
    assert_eq!(response.status, 502);
    let record = proxyd.error_record(&response.correlation_id());
    assert_eq!(record.text("reason"), "tls_handshake_failed");
}

#[test]
fn a_target_that_asks_for_a_certificate_is_shown_ours() {
    let (root, members) = (Authority::new("root"), Authority::new("members"));
    let config = server_config(&root.issue(&["up.test"]), Some(&members), &[]);
    let target = TlsUpstream::start(config);
    let ours: Identity = members.issue_to_client("proxy");
    let launch = Launch::new(
        BINARY,
        &kdl(
            target.address,
            &format!(r#"{NAMED}; cert-file "ours.crt"; key-file "ours.key""#),
        ),
    );
    root.write(launch.folder(), "root.pem");
    ours.write(launch.folder(), "ours");
    let proxyd = launch.start();

    assert_eq!(get_root(&proxyd).status, 200);
    assert!(target.next_handshake().has_certificate);
    // Without one the target refuses, with any error.
    let stranger = running(target.address, NAMED, &root);
    assert_eq!(get_root(&stranger).status, 502);
}

#[test]
fn other_settings_make_other_connections() {
    let root = Authority::new("root");
    let identity = root.issue(&["up.test", "other.test"]);
    let target = TlsUpstream::start(server_config(&identity, None, &[]));
    let proxyd = running(target.address, NAMED, &root);

    let mut client = proxyd.connect();
    for _ in 0..3 {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }
    assert_eq!(
        target.next_handshake().server_name.as_deref(),
        Some("up.test")
    );
    // The same settings keep the connection; changed ones do not.
    assert_eq!(proxyd.reload(&kdl(target.address, NAMED)), Reload::Applied);
    assert_eq!(client.ask(get("/", &[])).status, 200);
    let other = NAMED.replace("up.test", "other.test");
    assert_eq!(proxyd.reload(&kdl(target.address, &other)), Reload::Applied);
    assert_eq!(client.ask(get("/", &[])).status, 200);
    let second = target.next_handshake();
    assert_eq!(second.server_name.as_deref(), Some("other.test"));
    assert!(!second.resumed);
}

#[test]
fn new_roots_are_taken_without_a_reload() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let target = TlsUpstream::start(server_config(&new.issue(&["up.test"]), None, &[]));
    let proxyd = running(target.address, NAMED, &old);
    assert_eq!(get_root(&proxyd).status, 502);

    new.write(proxyd.folder(), "root.pem");
    let printed = proxyd.stderr().find(0, |record| {
        record.text("message") == "a new certificate is in use"
    });
    assert!(printed.text("file").ends_with("root.pem"), "{printed:?}");
    // The proxy connects by itself, as a request would.
    let back = "a target accepts connections again";
    drop(
        proxyd
            .stderr()
            .find(0, |record| record.text("message") == back),
    );
    assert_eq!(get_root(&proxyd).status, 200);
}

#[test]
fn a_target_that_fails_in_tls_stays_unhealthy_with_its_reason() {
    let root = Authority::new("root");
    // Each connection, whatever it is for, begins with a PROXY protocol header and a handshake.
    let plain = Upstream::start(|served| {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n") {
            header.extend(served.exactly(1).expect("a header"));
        }
        let expected: &[u8] = match served.number() {
            0 => b"PROXY TCP4 127.0.0.1 127.0.0.1 ",
            _ => b"PROXY UNKNOWN\r\n",
        };
        assert!(header.starts_with(expected), "{header:?}");
        assert_eq!(served.exactly(1).expect("a handshake"), [0x16]);
        served.send("no TLS\r\n");
    });
    let settings = kdl(plain.address(), NAMED).replace("tls {", "send-proxy \"v1\"; tls {");
    let launch = Launch::new(BINARY, &settings);
    root.write(launch.folder(), "root.pem");
    let proxyd = launch.start();
    assert_eq!(get_root(&proxyd).status, 502);

    // The request's, and two of the proxy itself, one after the other.
    plain.wait_for_connections(4);
    let mut client = RawClient::connect(proxyd.admin_address());
    let shown = client.ask("GET /admin/upstreams HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let shown = &shown.json()["upstreams"]["u"]["targets"][0];
    assert_eq!(shown["healthy"], false, "{shown}");
    assert_eq!(shown["causes"][0], "connect");
    let last_error = shown["last_error"].as_str().unwrap();
    assert!(
        last_error.starts_with("connect: tls handshake"),
        "{last_error}"
    );
    let back = "a target accepts connections again";
    let records = proxyd.stderr().records();
    assert!(records.iter().all(|record| record.text("message") != back));
    assert_eq!(plain.faults(), Vec::<String>::new());
}

/// The pin of a certificate's key, by the command of docs/operate/upstreams.md.
fn pin(folder: &Path, identity: &Identity) -> String {
    identity.write(folder, "pinned");
    let command = "openssl x509 -in pinned.crt -pubkey -noout | openssl pkey -pubin -outform der \
                   | openssl dgst -sha256 -binary | openssl base64";
    let run = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_target_is_pinned_by_the_key_that_openssl_shows() {
    let root = Authority::new("root");
    let [own, next] = [(); 2].map(|()| root.issue(&["up.test"]));
    let target = TlsUpstream::start(server_config(&own, None, &[]));
    let folder = tempfile::tempdir().unwrap();
    let [own_pin, next_pin] = [&own, &next].map(|one| pin(folder.path(), one));
    let pinned = |pins: &str| format!("{NAMED}; pin-sha256 {pins}");
    let both = pinned(&format!("\"{next_pin}\" \"{own_pin}\""));
    let proxyd = running(target.address, &both, &root);
    assert_eq!(get_root(&proxyd).text(), "hello");

    // A connection under the pins of before serves no further request.
    let other = pinned(&format!("\"{next_pin}\""));
    assert_eq!(proxyd.reload(&kdl(target.address, &other)), Reload::Applied);
    let response = get_root(&proxyd);
    assert_eq!(response.status, 502);
    assert!(
        response.text().contains("Bad gateway"),
        "{}",
        response.text()
    );
    let record = proxyd.error_record(&response.correlation_id());
    assert_eq!(record.text("reason"), "tls_pin_mismatch");
    assert!(
        record
            .text("message")
            .contains("its public key is not pinned"),
        "{record:?}"
    );
}

#[test]
fn a_pin_alone_accepts_an_unverified_certificate() {
    let (identity, _) = Authority::self_signed(&["device.test"], 2001);
    let target = TlsUpstream::start(server_config(&identity, None, &[]));
    let folder = tempfile::tempdir().unwrap();
    let own = pin(folder.path(), &identity);
    let unverified = format!("verify #false; pin-sha256 \"{own}\"");
    let proxyd = running(target.address, &unverified, &Authority::new("root"));
    assert_eq!(get_root(&proxyd).text(), "hello");

    let checked = Command::new(BINARY)
        .args(["config", "check"])
        .arg(proxyd.config())
        .output()
        .unwrap();
    let printed =
        String::from_utf8(checked.stderr).unwrap() + &String::from_utf8(checked.stdout).unwrap();
    assert!(printed.contains("unverified-targets"), "{printed}");
    let explained = Command::new(BINARY)
        .args(["explain", "--config"])
        .arg(proxyd.config())
        .args(["GET", "http://a.test/"])
        .output()
        .unwrap();
    let page = String::from_utf8(explained.stdout).unwrap();
    assert!(page.contains(&own) && page.contains("verify"), "{page}");

    let Reload::Refused(faults) = proxyd.reload(&kdl(target.address, "verify #false")) else {
        panic!("a target without any check was taken");
    };
    assert!(faults.contains("without `verify` any server"), "{faults}");
}

#[test]
fn a_name_that_is_none_is_a_fault_at_its_place() {
    let root = Authority::new("root");
    let target = TlsUpstream::start(server_config(&root.issue(&["up.test"]), None, &[]));
    let proxyd = running(target.address, NAMED, &root);

    let faulty = NAMED.replace("up.test", "up test");
    let Reload::Refused(faults) = proxyd.reload(&kdl(target.address, &faulty)) else {
        panic!("a name with a space was taken");
    };
    assert!(faults.contains("proxyd.kdl:4:84: bad-value"), "{faults}");
    assert!(
        faults.contains("\"up test\" is neither a host name"),
        "{faults}"
    );
}
