//! Mandatory and optional client certificates.

use crate::support::{Authority, BINARY, Identity, TlsClient, block_on, over_tls, to};
use aws_lc_rs::digest::{SHA256, digest};
use jiff::{SignedDuration, Timestamp};
use proxy_testkit::{Launch, Proxyd, Upstream};
use std::fmt::Write;
use std::time::Duration;

struct Fixture {
    members: Authority,
    servers: Authority,
    upstream: Upstream,
    proxyd: Proxyd,
}

impl Fixture {
    fn new(mode: &str) -> Self {
        let (members, servers) = (Authority::new("members"), Authority::new("servers"));
        let upstream = Upstream::saying("hello");
        let auth = format!(r#"client-auth {{ ca-file "members.pem"; mode "{mode}" }}"#);
        let site = servers.issue(&["a.test"]);
        let launch = Launch::new(BINARY, &to(&upstream, &over_tls(&auth)));
        members.write(launch.folder(), "members.pem");
        site.write(launch.folder(), "site");
        let proxyd = launch.start();
        Self {
            members,
            servers,
            upstream,
            proxyd,
        }
    }

    fn answer(&self, identity: Option<&Identity>) -> (u16, String) {
        let client = match identity {
            None => TlsClient::trusting(&self.servers),
            Some(identity) => TlsClient::showing(&self.servers, identity),
        };
        block_on(async {
            let mut client = client.connect(self.proxyd.address(), "a.test").await;
            // The verdict holds for every request of the connection.
            client.get("a.test", "/").await;
            client.get("a.test", "/").await
        })
    }
}

#[test]
fn a_client_without_its_certificate_is_answered_495() {
    let fixture = Fixture::new("required");

    let (status, body) = fixture.answer(None);
    assert_eq!(status, 495);
    assert!(body.contains("client certificate required"), "{body}");
    assert_eq!(fixture.upstream.requests().len(), 0);
    let member = fixture.members.issue_to_client("member");
    assert_eq!(fixture.answer(Some(&member)).0, 200);
}

#[test]
fn a_client_certificate_of_another_authority_is_answered_495() {
    let stranger = Authority::new("others").issue_to_client("stranger");
    for mode in ["required", "optional"] {
        let fixture = Fixture::new(mode);
        let (status, body) = fixture.answer(Some(&stranger));
        assert_eq!(status, 495);
        assert!(body.contains("client certificate not accepted"), "{body}");
        let printed = fixture.proxyd.stdout().find(0, |record| {
            record.text("reason") == "client_certificate_invalid" && record.has("http_status")
        });
        assert!(
            printed.text("message").contains("unknown issuer"),
            "{printed:?}"
        );
    }
}

/// Its signature in the handshake cannot be verified, so the verdict alone refuses it.
#[test]
fn a_client_with_an_unreadable_certificate_is_answered_495() {
    for mode in ["required", "optional"] {
        let fixture = Fixture::new(mode);
        let unreadable = fixture.members.issue_to_client_with_unknown_extension();
        let (status, body) = fixture.answer(Some(&unreadable));
        assert_eq!(status, 495);
        assert!(body.contains("client certificate not accepted"), "{body}");
        assert_eq!(fixture.upstream.requests().len(), 0);
    }
}

#[test]
fn a_certificate_that_expires_on_an_open_connection_is_refused() {
    let fixture = Fixture::new("required");
    let member = fixture
        .members
        .issue_to_client_for("member", Duration::from_secs(4));
    let client = TlsClient::showing(&fixture.servers, &member);

    block_on(async {
        let mut client = client.connect(fixture.proxyd.address(), "a.test").await;
        assert_eq!(client.get("a.test", "/").await.0, 200);
        let (status, body) = loop {
            let answer = client.get("a.test", "/").await;
            if answer.0 != 200 {
                break answer;
            }
        };
        assert_eq!(status, 495);
        assert!(body.contains("client certificate not accepted"), "{body}");
    });
}

#[test]
fn a_client_may_leave_out_an_optional_certificate() {
    let fixture = Fixture::new("optional");

    assert_eq!(fixture.answer(None).0, 200);
    let member = fixture.members.issue_to_client("member");
    assert_eq!(fixture.answer(Some(&member)).0, 200);
}

/// A request with the fields that the proxy sets.
const FORGED: &str = "GET / HTTP/1.1\r\nHost: a.test\r\nX-Version: 9\r\nX-Subject: CN=forged\r\n\
                      X-Fingerprint: 00\r\nX-Time: never\r\n\r\n";

/// Starts a process that sends the values of TLS and the time to `upstream`.
fn values_to(upstream: &Upstream, members: &Authority, servers: &Authority) -> Proxyd {
    let auth = r#"client-auth { ca-file "members.pem"; mode "optional" }"#;
    let route = r#"route "all" { upstream "u""#;
    let edits = r#"request-headers {
        set "X-Version" "{tls_version}"
        set "X-Server-Name" "{tls_server_name}"
        set "X-Subject" "{tls_client_subject}"
        set "X-Fingerprint" "{tls_client_fingerprint}"
        set "X-Time" "{time}"
    }"#;
    let kdl = to(upstream, &over_tls(auth));
    assert!(kdl.contains(route), "{kdl}");
    let launch = Launch::new(BINARY, &kdl.replace(route, &format!("{route}; {edits}")));
    members.write(launch.folder(), "members.pem");
    servers.issue(&["a.test"]).write(launch.folder(), "site");
    launch.start()
}

#[test]
fn an_upstream_gets_the_values_of_the_client_s_connection() {
    let (members, servers) = (Authority::new("members"), Authority::new("servers"));
    let member = members.issue_to_client("member");
    let upstream = Upstream::saying("hello");
    let proxyd = values_to(&upstream, &members, &servers);
    let mut fingerprint = String::new();
    for byte in digest(&SHA256, &member.der()).as_ref() {
        write!(fingerprint, "{byte:02x}").unwrap();
    }
    let shown = (Some("CN=member"), Some(fingerprint.as_str()));
    for (client, expected) in [
        (TlsClient::showing(&servers, &member), shown),
        (TlsClient::trusting(&servers), (None, None)),
    ] {
        let status = block_on(async {
            let mut client = client.connect(proxyd.address(), "a.test").await;
            client.get_rest(FORGED).await
        });
        assert_eq!(status, 200);

        let fields = upstream.last_request().fields;
        assert_eq!(fields.get("x-version"), Some("1.3"));
        assert_eq!(fields.get("x-server-name"), Some("a.test"));
        let sent = (fields.get("x-subject"), fields.get("x-fingerprint"));
        assert_eq!(sent, expected);
        let time = fields.get("x-time").unwrap();
        let age = Timestamp::now().duration_since(time.parse().unwrap());
        assert!(age.abs() < SignedDuration::from_mins(1), "{time}");
    }
}
