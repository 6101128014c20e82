//! TLS facts in events for agents.

use crate::support::{
    Authority, BINARY, Http2Upstream, Identity, TlsClient, TlsUpstream, UpstreamOptions, block_on,
    over_tls, server_config,
};
use agent_protocol::{ProxyMessage, TlsClient as TlsFacts, Wants};
use aws_lc_rs::digest::{SHA256, digest};
use proxy_testkit::{AgentReply, FakeAgent, Launch, Upstream, get};
use std::fmt::Write;
use tokio_rustls::rustls::version::{TLS12, TLS13};

/// TLS facts about the client's connection in the agent's event.
fn tls_facts(client: impl FnOnce(&Authority, &Authority) -> TlsClient) -> TlsFacts<'static> {
    let (members, servers) = (Authority::new("members"), Authority::new("servers"));
    let upstream = Upstream::saying("hello");
    let agent = FakeAgent::start(Wants::default(), |_| AgentReply::allow());
    let auth = r#"client-auth { ca-file "members.pem"; mode "optional" }"#;
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; {} }} }}
        routes {{ route "all" {{ upstream "u"; agents "auth" }} }}
        agents {{
            agent "auth" {{
                unix-socket "{}"
                failure-mode "closed"
                timeout-ms 30000
            }}
        }}
        upstreams {{ upstream "u" {{ targets {{ target "{}" }} }} }}
        "#,
        over_tls(auth),
        agent.path().display(),
        upstream.address(),
    );
    let launch = Launch::new(BINARY, &kdl);
    members.write(launch.folder(), "members.pem");
    servers.issue(&["a.test"]).write(launch.folder(), "site");
    let proxyd = launch.start();
    let client = client(&servers, &members);
    block_on(async {
        let mut client = client.connect(proxyd.address(), "a.test").await;
        assert_eq!(client.get("a.test", "/").await.0, 200);
    });
    let events = agent.wait_for_events(1);
    let ProxyMessage::RequestHeaders(head) = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(head.scheme, "https");
    head.tls.clone().unwrap()
}

#[test]
fn an_agent_gets_the_version_and_the_name_of_tls() {
    for (version, name) in [(&TLS12, "1.2"), (&TLS13, "1.3")] {
        let tls_facts = tls_facts(|servers, _| TlsClient::with_versions(servers, &[version]));

        assert_eq!(tls_facts.version.as_deref(), Some(name));
        assert_eq!(tls_facts.server_name.as_deref(), Some("a.test"));
        assert_eq!(tls_facts.certificate_sha256, None);
    }
}

#[test]
fn an_agent_gets_the_certificate_of_the_client() {
    let mut shown: Option<Identity> = None;
    let tls_facts = tls_facts(|servers, members| {
        let member = members.issue_to_client("member");
        let client = TlsClient::showing(servers, &member);
        shown = Some(member);
        client
    });

    let der = shown.unwrap().der();
    let mut expected = String::new();
    for byte in digest(&SHA256, &der).as_ref() {
        write!(expected, "{byte:02x}").unwrap();
    }
    assert_eq!(
        tls_facts.certificate_sha256.as_deref(),
        Some(expected.as_str())
    );
}

#[test]
fn a_login_server_over_tls_is_verified() {
    let root = Authority::new("root");
    for (names, status) in [(&["auth.test"], 200), (&["other.test"], 503)] {
        let application = Upstream::saying("served");
        let server = TlsUpstream::start(server_config(&root.issue(names), None, &["http/1.1"]));
        let kdl = format!(
            r#"
            listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
            routes {{ route "all" {{ upstream "u"; agents "auth" }} }}
            agents {{
                agent "auth" {{
                    upstream "auth"
                    protocol "forward-auth"
                    failure-mode "closed"
                    timeout-ms 30000
                }}
            }}
            upstreams {{
                upstream "u" {{ target "{}" }}
                upstream "auth" {{
                    target "{}"
                    tls {{ sni "auth.test"; ca-file "root.pem" }}
                }}
            }}
            "#,
            application.address(),
            server.address,
        );
        let launch = Launch::new(BINARY, &kdl);
        root.write(launch.folder(), "root.pem");
        let proxyd = launch.start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, status, "{names:?}");
        assert_eq!(application.requests().len(), usize::from(status == 200));
    }
}

/// A gRPC message: no compression, its length, and a `CheckResponse` with the status 0.
const ALLOWING: &[u8] = &[0, 0, 0, 0, 2, 0x0a, 0];

/// Starts an ext-authz server over TLS that allows every request.
fn authz_server(identity: &Identity) -> Http2Upstream {
    let options = UpstreamOptions {
        tls: Some(server_config(identity, None, &["h2"])),
        ..UpstreamOptions::default()
    };
    Http2Upstream::with_options(options, |mut request| async move {
        if request.read().await.is_some() {
            let fields = [("content-type", "application/grpc")];
            request.reply_with(&fields, ALLOWING, &[("grpc-status", "0")]);
        }
    })
}

#[test]
fn an_ext_authz_server_over_tls_is_verified() {
    let root = Authority::new("root");
    for (names, status) in [(&["auth.test"], 200), (&["other.test"], 503)] {
        let application = Upstream::saying("served");
        let server = authz_server(&root.issue(names));
        let kdl = format!(
            r#"
            listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
            routes {{ route "all" {{ upstream "u"; agents "auth" }} }}
            agents {{
                agent "auth" {{
                    upstream "auth"
                    protocol "ext-authz"
                    failure-mode "closed"
                    timeout-ms 30000
                }}
            }}
            upstreams {{
                upstream "u" {{ target "{}" }}
                upstream "auth" {{
                    target "{}"
                    protocol "h2"
                    tls {{ sni "auth.test"; ca-file "root.pem" }}
                }}
            }}
            "#,
            application.address(),
            server.address,
        );
        let launch = Launch::new(BINARY, &kdl);
        root.write(launch.folder(), "root.pem");
        let proxyd = launch.start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, status, "{names:?}");
        let is_verified = usize::from(status == 200);
        assert_eq!(application.requests().len(), is_verified);
        assert_eq!(server.requests.len(), is_verified);
        if status == 200 {
            let call = server.requests.wait_for(1);
            let method = "/envoy.service.auth.v3.Authorization/Check";
            assert_eq!(call[0].uri.path(), method);
        }
    }
}
