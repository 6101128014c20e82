//! Request heads that agents receive, and the effects of their edits.

use crate::support::{Setup, allow_with, field, head, head_agent};
use agent_protocol::{Allow, Decision, Metadata};
use proxy_testkit::{AgentReply, FakeAgent, Proxyd, Reload, Upstream, get, ok};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

const CLOSED: &str = "failure-mode \"closed\"";

#[test]
fn an_agent_sees_the_head_and_the_request_continues() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::allow());
    let proxyd = Setup::to(&upstream).agent("auth", &agent, CLOSED).start();
    let mut client = proxyd.connect();

    let response = client.ask(get("/a%20b?c=d", &[("X-Own", "1")]));

    assert_eq!((response.status, response.text().as_str()), (200, "served"));
    let event = head(&agent, 0);
    assert_eq!(event.method, "GET");
    assert_eq!(event.target.to_str(), Some("/a%20b?c=d"));
    assert_eq!(event.route, "all");
    assert_eq!(event.client_ip, "127.0.0.1");
    assert_eq!(event.scheme, "http");
    assert_eq!(event.http_version, "HTTP/1.1");
    assert_eq!(event.correlation_id, response.correlation_id());
    assert_eq!(event.timeout_ms, 1_000);
    assert_eq!(field(&event, "x-own"), Some("1"));
    assert!(!event.has_body);
    let record = proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("agent"), "auth");
    assert_eq!(record.text("agent_decision"), "allow");
    assert!(record.has("agent_ms"));
}

/// Listener settings behind a balancer that sends the client's address by the PROXY protocol.
const BALANCED: &str = "proxy-protocol #true; trusted-proxies \"127.0.0.0/8\" \"192.0.2.7\"";

#[test]
fn an_agent_sees_the_port_of_the_client_that_the_proxy_protocol_names() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::allow());
    let setup = Setup::to(&upstream).agent("auth", &agent, CLOSED);
    let proxyd = setup.listener(BALANCED).start();
    let mut client = proxyd.connect();
    client.send(b"PROXY TCP4 192.0.2.7 192.0.2.9 40000 443\r\n");

    assert_eq!(client.ask(get("/", &[])).status, 200);
    let claim = [("X-Forwarded-For", "198.51.100.1")];
    assert_eq!(client.ask(get("/", &claim)).status, 200);

    let event = head(&agent, 0);
    assert_eq!(event.client_ip, "192.0.2.7");
    assert_eq!(event.client_port, Some(40_000));
    let behind_a_proxy = head(&agent, 1);
    assert_eq!(behind_a_proxy.client_ip, "198.51.100.1");
    assert_eq!(behind_a_proxy.client_port, None, "it is the proxy's port");
}

#[test]
fn an_agent_sees_the_port_of_a_client_that_connects_by_itself() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::allow());
    let proxyd = Setup::to(&upstream).agent("auth", &agent, CLOSED).start();
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/", &[])).status, 200);
    let event = head(&agent, 0);

    assert_eq!(event.client_port, Some(client.local().port()));
}

#[test]
fn many_requests_share_one_connection() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::allow());
    let proxyd = Setup::to(&upstream).agent("auth", &agent, CLOSED).start();

    for _ in 0..3 {
        let mut client = proxyd.connect();
        for _ in 0..5 {
            assert_eq!(client.ask(get("/", &[])).status, 200);
        }
    }

    assert_eq!(agent.wait_for_events(15).len(), 15);
    assert_eq!(agent.connections(), 1);
}

#[test]
fn edits_of_agents_reach_the_next_agent_and_the_target_in_order() {
    let upstream = upstream();
    let first = head_agent(|_| {
        let mut metadata = Metadata::default();
        assert!(metadata.insert("user", "ann"));
        let AgentReply::Decide(Decision::Allow(allow)) =
            allow_with(&[("x-user", "ann"), ("x-step", "1")])
        else {
            panic!("it allows");
        };
        AgentReply::Decide(Decision::Allow(Allow { metadata, ..allow }))
    });
    let second = head_agent(|head| {
        assert_eq!(field(head, "x-user"), Some("ann"));
        allow_with(&[("x-step", "2"), ("x-forwarded-user", "ann")])
    });
    let proxyd = Setup::to(&upstream)
        .agent("one", &first, CLOSED)
        .agent("two", &second, CLOSED)
        .start();

    let fields = [("X-User", "mallory"), ("X-Forwarded-User", "mallory")];
    let response = proxyd.connect().ask(get("/", &fields));

    assert_eq!(response.status, 200);
    let request = upstream.last_request();
    assert_eq!(request.fields.all("x-user"), ["ann"]);
    assert_eq!(request.fields.all("x-step"), ["2"]);
    assert_eq!(request.fields.all("x-forwarded-user"), ["ann"]);
    assert_eq!(request.fields.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(head(&second, 0).metadata["one"].get("user"), Some("ann"));
    let event = head(&first, 0);
    assert_eq!(
        field(&event, "x-forwarded-user"),
        None,
        "a stranger's claim"
    );
}

#[test]
fn a_client_cannot_have_an_agents_field_removed() {
    let upstream = upstream();
    let agent = head_agent(|_| allow_with(&[("x-user", "ann")]));
    let proxyd = Setup::to(&upstream).agent("auth", &agent, CLOSED).start();

    let fields = [("Connection", "keep-alive, X-User"), ("X-User", "mallory")];
    let response = proxyd.connect().ask(get("/", &fields));

    assert_eq!(response.status, 200);
    assert_eq!(upstream.last_request().fields.all("x-user"), ["ann"]);
    assert_eq!(field(&head(&agent, 0), "x-user"), None);
}

#[test]
fn a_retried_request_keeps_the_edits_and_is_decided_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                return;
            }
            served.send(ok("served"));
        }
    });
    let agent = head_agent(|_| allow_with(&[("x-user", "ann")]));
    let proxyd = Setup::to(&upstream).agent("auth", &agent, CLOSED).start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);

    let requests = upstream.wait_for_requests(2);
    for request in &requests {
        assert_eq!(request.fields.all("x-user"), ["ann"]);
    }
    assert_eq!(agent.events().len(), 1);
}

#[test]
fn a_builtin_handler_has_agents_too() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::block());
    let proxyd = Setup::to(&upstream)
        .route("service-type \"builtin\"; builtin-handler \"status\"")
        .agent("auth", &agent, CLOSED)
        .start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 403);
}

#[test]
fn a_reload_keeps_the_connections_of_an_agent_with_the_same_settings() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::allow());
    let setup = Setup::to(&upstream).agent("auth", &agent, CLOSED);
    let proxyd = setup.start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).status, 200);

    assert_eq!(proxyd.reload(&setup.kdl()), Reload::Applied);
    assert_eq!(client.ask(get("/", &[])).status, 200);
    assert_eq!(agent.connections(), 1);

    let other = "failure-mode \"closed\"; encoding \"message-pack\"";
    let changed = Setup::to(&upstream).agent("auth", &agent, other);
    assert_eq!(proxyd.reload(&changed.kdl()), Reload::Applied);
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    assert_eq!(agent.connections(), 2);
    assert_eq!(agent.events().len(), 3);
}

#[test]
fn an_agent_that_restarts_is_used_again_at_once() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::allow());
    let proxyd = Setup::to(&upstream).agent("auth", &agent, CLOSED).start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/", &[])).status, 200);

    agent.hang_up();
    assert_eq!(client.ask(get("/", &[])).status, 200);
    assert_eq!(agent.connections(), 2);
    drop::<FakeAgent>(agent);
    assert_eq!(client.ask(get("/", &[])).status, 503);
}

#[test]
fn a_transport_is_another_spelling_of_the_socket() {
    let upstream = upstream();
    let agent = head_agent(|_| AgentReply::allow());
    let socket = agent.path().to_str().unwrap();
    let direct = format!("unix-socket \"{socket}\"");
    let spelled = format!("transport \"unix_socket\" {{ path \"{socket}\" }}");
    let kdl = Setup::to(&upstream).agent("auth", &agent, CLOSED).kdl();
    let proxyd = Proxyd::start(
        env!("CARGO_BIN_EXE_proxyd"),
        &kdl.replace(&direct, &spelled),
    );

    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    assert_eq!(agent.events().len(), 1);
}
