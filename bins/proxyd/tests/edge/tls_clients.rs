//! Mandatory and optional client certificates.

use crate::support::{Authority, Identity, TlsClient, block_on, over_tls, to};
use proxy_testkit::{Proxyd, Upstream};
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
        let launch =
            proxy_testkit::Launch::new(crate::support::BINARY, &to(&upstream, &over_tls(&auth)));
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
