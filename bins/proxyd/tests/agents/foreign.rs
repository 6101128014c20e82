//! Authorization servers of other projects: grpcio with Envoy's messages, and waitress.

use crate::support::{Setup, reason, refusal};
use proxy_testkit::{AgentProcess, Proxyd, Upstream, get, ok};

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

fn start(agent: &AgentProcess, upstream: &Upstream, settings: &str) -> Proxyd {
    let settings = format!("timeout-ms 30000; {settings}");
    Setup::to(upstream)
        .agent_at("auth", agent.socket().to_str().unwrap(), &settings)
        .start()
}

const EXT_AUTHZ: &str = "failure-mode \"closed\"; protocol \"ext-authz\"";

#[test]
fn edits_of_a_grpcio_server_are_applied() {
    let Some(agent) = AgentProcess::foreign("ext_authz.py") else {
        return;
    };
    let upstream = upstream();
    let proxyd = start(&agent, &upstream, EXT_AUTHZ);
    let fields = [
        ("X-Token", "secret"),
        ("X-List", "of the client"),
        ("X-Secret", "1"),
        ("X-User", "mallory"),
    ];
    let mut client = proxyd.connect();

    for _ in 0..3 {
        let response = client.ask(get("/a?b=c", &fields));

        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.fields.all("set-cookie"), ["c=3", "d=4"]);
        let request = upstream.last_request();
        let expected: [(&str, &[&str]); 7] = [
            ("x-told", &["GET a.test /a?b=c HTTP/1.1 127.0.0.1"]),
            ("x-list", &["of the agent"]),
            ("x-absent", &["1"]),
            ("x-token", &["secret"]),
            ("x-missing", &[]),
            ("x-user", &["ann"]),
            ("x-secret", &[]),
        ];
        for (name, values) in expected {
            assert_eq!(request.fields.all(name), values, "{name}");
        }
    }
}

#[test]
fn refusals_and_failures_of_a_grpcio_server_are_passed_on() {
    let Some(agent) = AgentProcess::foreign("ext_authz.py") else {
        return;
    };
    let upstream = upstream();
    let proxyd = start(&agent, &upstream, EXT_AUTHZ);
    let mut client = proxyd.connect();

    refusal(&client.ask(get("/", &[])), 403, "WAF_BLOCKED");
    let quota = client.ask(get("/quota", &[]));
    assert_eq!((quota.status, quota.text().as_str()), (429, "too many"));
    assert_eq!(quota.fields.get("x-why"), Some("quota"));
    assert_eq!(quota.fields.all("set-cookie"), ["a=1", "b=2"]);
    for (target, status, expected) in [
        ("/aborted", 500, "agent_bad_reply"),
        ("/busy", 503, "agent_queue_full"),
    ] {
        let response = client.ask(get(target, &[]));
        refusal(&response, status, "AGENT");
        assert_eq!(reason(&proxyd, &response), expected, "{target}");
    }
    assert!(upstream.requests().is_empty());
}

const FORWARD_AUTH: &str = "protocol \"forward-auth\"; request-path \"/verify\"; \
    copy-headers \"x-user\" \"x-groups\"";

#[test]
fn a_waitress_server_admits_its_users_and_answers_other_clients() {
    let Some(agent) = AgentProcess::foreign("forward_auth.py") else {
        return;
    };
    let upstream = upstream();
    let settings = format!("failure-mode \"closed\"; {FORWARD_AUTH}");
    let proxyd = start(&agent, &upstream, &settings);
    let mut client = proxyd.connect();
    let ann = [("Cookie", "session=ann"), ("X-User", "mallory")];

    for _ in 0..3 {
        assert_eq!(client.ask(get("/shop?page=2", &ann)).status, 200);
        let request = upstream.last_request();
        assert_eq!(request.fields.all("x-user"), ["ann"]);
        assert_eq!(request.fields.all("x-groups"), ["GET /shop?page=2"]);
    }
    let stranger = client.ask(get("/shop", &[]));
    assert_eq!(
        (stranger.status, stranger.text().as_str()),
        (401, "sign in")
    );
    let challenge = stranger.fields.get("www-authenticate");
    assert_eq!(challenge, Some("Cookie realm=\"a\""));
    let login = client.ask(get("/login", &[]));
    assert_eq!(login.status, 303);
    assert_eq!(login.fields.get("location"), Some("/sign-in"));
    let broken = client.ask(get("/broken", &ann));
    assert_eq!((broken.status, broken.text().as_str()), (503, "down"));
    assert_eq!(upstream.requests().len(), 3);
}

#[test]
fn a_failing_waitress_server_is_skipped_with_failure_mode_open() {
    let Some(agent) = AgentProcess::foreign("forward_auth.py") else {
        return;
    };
    let upstream = upstream();
    let settings = format!("failure-mode \"open\"; {FORWARD_AUTH}");
    let proxyd = start(&agent, &upstream, &settings);
    let mut client = proxyd.connect();

    let response = client.ask(get("/broken", &[("X-User", "mallory")]));

    assert_eq!((response.status, response.text().as_str()), (200, "served"));
    assert_eq!(client.ask(get("/shop", &[])).status, 401);
}
