//! Fields set by agents, and the same fields sent by clients.

use crate::support::{Config, Proxy};
use agent_protocol::{Allow, Block, Decision, Header, HeaderEdit, Redirect, Wants};
use proxy_testkit::{AgentReply, FakeAgent, Upstream, get, ok};

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

/// An agent that makes these edits of every request.
fn editing(edits: &'static [fn() -> HeaderEdit]) -> FakeAgent {
    FakeAgent::start(Wants::default(), move |_| {
        AgentReply::Decide(Decision::Allow(Allow {
            request_headers: edits.iter().map(|edit| edit()).collect(),
            ..Allow::default()
        }))
    })
}

fn start(upstream: &Upstream, socket: &str, route: &str, agent: &str) -> Proxy {
    let agents = format!(
        "agents {{ agent \"auth\" {{ unix-socket \"{socket}\"; timeout-ms 30000; {agent} }} }}"
    );
    Config::through(upstream, &format!("agents \"auth\"; {route}"))
        .top(&agents)
        .start()
}

const SPELLINGS: [(&str, &str); 5] = [
    ("X-User", "mallory"),
    ("X_User", "mallory"),
    ("x_USER", "mallory"),
    ("X.User", "mallory"),
    ("X-Users", "kept"),
];

/// Edits of an agent, and the values of `x-user` and of `x_user` that the target gets.
type Case = (
    &'static [fn() -> HeaderEdit],
    &'static [&'static str],
    &'static [&'static str],
);

#[test]
fn other_spellings_of_a_field_that_an_agent_edits_are_removed() {
    let cases: [Case; 4] = [
        (
            &[|| HeaderEdit::set("x-user", "ann").unwrap()],
            &["ann"],
            &[],
        ),
        (
            &[
                || HeaderEdit::remove("x-user").unwrap(),
                || HeaderEdit::add("x-user", "ann").unwrap(),
            ],
            &["ann"],
            &[],
        ),
        (&[|| HeaderEdit::remove("x-user").unwrap()], &[], &[]),
        (
            &[|| HeaderEdit::set("x_user", "ann").unwrap()],
            &[],
            &["ann"],
        ),
    ];
    for (edits, plain, other) in cases {
        let (upstream, agent) = (upstream(), editing(edits));
        let socket = agent.path().to_str().unwrap();
        let proxy = start(&upstream, socket, "", "failure-mode \"closed\"");

        assert_eq!(proxy.connect().ask(get("/", &SPELLINGS)).status, 200);

        let fields = upstream.last_request().fields;
        assert_eq!(fields.all("x-user"), plain);
        assert_eq!(fields.all("x_user"), other);
        assert!(!fields.has("x.user"));
        assert_eq!(fields.all("x-users"), ["kept"]);
    }
}

#[test]
fn no_spelling_of_a_copied_field_passes_an_unreachable_agent_that_fails_open() {
    let upstream = upstream();
    let agent = "failure-mode \"open\"; protocol \"forward-auth\"; copy-headers \"x-user\"";
    let proxy = start(&upstream, "/nonexistent/agent.sock", "", agent);

    assert_eq!(proxy.connect().ask(get("/", &SPELLINGS)).status, 200);

    let fields = upstream.last_request().fields;
    for name in ["x-user", "x_user", "x.user"] {
        assert!(!fields.has(name), "{name}");
    }
}

#[test]
fn an_agent_cannot_set_a_field_that_is_read_like_one_of_the_proxy() {
    let upstream = upstream();
    let agent = editing(&[|| HeaderEdit::set("x_forwarded_for", "192.0.2.1").unwrap()]);
    let socket = agent.path().to_str().unwrap();
    let proxy = start(&upstream, socket, "", "failure-mode \"closed\"");

    assert_eq!(proxy.connect().ask(get("/", &[])).status, 500);
}

#[test]
fn other_spellings_of_a_field_that_a_route_sets_or_removes_are_removed() {
    let upstream = upstream();
    let edits =
        "request-headers { set \"X-User\" \"ann\"; remove \"X-Secret\" \"X_Forwarded_For\" }";
    let proxy = Config::through(&upstream, &format!("policies {{ {edits} }}")).start();
    let fields = [("X_User", "mallory"), ("X_Secret", "1"), ("X_Other", "1")];

    assert_eq!(proxy.connect().ask(get("/", &fields)).status, 200);

    let fields = upstream.last_request().fields;
    assert_eq!(fields.all("x-user"), ["ann"]);
    for name in ["x_user", "x_secret"] {
        assert!(!fields.has(name), "{name}");
    }
    assert!(fields.has("x_other"));
    assert!(fields.has("x-forwarded-for"), "the proxy's own stays");
}

#[test]
fn a_rate_limit_by_a_field_that_an_agent_sets_counts_the_agents_value() {
    let (upstream, agent) = (
        upstream(),
        editing(&[|| HeaderEdit::set("x-user", "ann").unwrap()]),
    );
    let socket = agent.path().to_str().unwrap();
    let limit = "rate-limit { requests-per-second 1; burst 2; key \"header:X-User\" }";
    let proxy = start(&upstream, socket, limit, "failure-mode \"closed\"");
    let mut client = proxy.connect();

    let mut statuses = (0..100).map(|index| {
        let user = format!("mallory-{index}");
        let response = client.ask(get("/", &[("X-User", &user)]));
        assert!(response.fields.has("x-ratelimit-remaining"));
        response.status
    });

    assert!(
        statuses.any(|status| status == 429),
        "one user has one bucket"
    );
}

#[test]
fn the_lines_of_a_field_are_one_key_of_a_rate_limit() {
    let upstream = upstream();
    let limit = "rate-limit { requests-per-second 1; burst 1000; key \"header:X-Key\" }";
    let proxy = Config::through(&upstream, limit).start();
    let mut client = proxy.connect();
    let mut remaining = |fields: &[(&str, &str)]| {
        let response = client.ask(get("/", fields));
        response
            .fields
            .get("x-ratelimit-remaining")
            .unwrap()
            .to_owned()
    };

    assert_eq!(remaining(&[("X-Key", "a"), ("X-Key", "b")]), "999");
    assert_eq!(remaining(&[("X-Key", "a")]), "999", "another key");
    assert_eq!(
        remaining(&[("X-Key", "c"), ("X-Key", "b")]),
        "999",
        "another key"
    );
    assert_eq!(remaining(&[("X-Key", "a, b")]), "998", "the same key");
}

/// A route with edits of its responses, and a limit by a field that an agent may set.
const EDITED: &str = r#"response-headers { set "X-Frame-Options" "DENY"; remove "X-Internal" "Server" }
    cors { allow-origins "https://app.test" }
    rate-limit { requests-per-second 50; key "header:X-User" }"#;

fn answered() -> Vec<Header<'static>> {
    [
        ("x-frame-options", "ALLOWALL"),
        ("x-internal", "secret"),
        ("server", "inner"),
        ("access-control-allow-origin", "*"),
        ("access-control-allow-credentials", "true"),
        ("x-kept", "1"),
    ]
    .map(|(name, value)| Header::new(name, value).unwrap())
    .to_vec()
}

#[test]
fn a_route_edits_the_answer_of_an_agent_that_refuses() {
    let refusals: [(u16, fn() -> Decision); 2] = [
        (451, || {
            Decision::Block(Block {
                status: Some(451),
                headers: answered(),
                ..Block::default()
            })
        }),
        (302, || {
            Decision::Redirect(Redirect {
                status: 302,
                location: "/login".into(),
                headers: answered(),
                body: None,
            })
        }),
    ];
    for (status, decide) in refusals {
        let upstream = upstream();
        let agent = FakeAgent::start(Wants::default(), move |_| AgentReply::Decide(decide()));
        let socket = agent.path().to_str().unwrap();
        let proxy = start(&upstream, socket, EDITED, "failure-mode \"closed\"");

        let origin = [("Origin", "https://evil.test")];
        let response = proxy.connect().ask(get("/", &origin));

        assert_eq!(response.status, status);
        let fields = &response.fields;
        assert_eq!(fields.all("x-frame-options"), ["DENY"]);
        assert_eq!(fields.all("vary"), ["Origin"]);
        assert_eq!(fields.get("x-kept"), Some("1"));
        for name in [
            "x-internal",
            "server",
            "access-control-allow-origin",
            "access-control-allow-credentials",
        ] {
            assert!(!fields.has(name), "{name}");
        }
        // No token is taken.
        assert_eq!(fields.get("x-ratelimit-limit"), Some("500"));
        assert_eq!(fields.get("x-ratelimit-remaining"), Some("500"));
    }
}

#[test]
fn what_an_agent_removes_from_a_response_is_in_no_interim_response_and_no_trailer() {
    let fields = "X-Internal: secret\r\n";
    let upstream = Upstream::answering(format!(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n{fields}\r\nHTTP/1.1 200 OK\r\n\
         Transfer-Encoding: chunked\r\n{fields}\r\n2\r\nhi\r\n0\r\n{fields}X-Sum: 1\r\n\r\n"
    ));
    let agent = FakeAgent::start(Wants::default(), |_| {
        AgentReply::Decide(Decision::Allow(Allow {
            response_headers: vec![HeaderEdit::remove("x-internal").unwrap()],
            ..Allow::default()
        }))
    });
    let socket = agent.path().to_str().unwrap();
    let proxy = start(&upstream, socket, "", "failure-mode \"closed\"");
    let mut client = proxy.connect();

    client.send(get("/", &[("TE", "trailers"), ("Connection", "TE")]));
    let hint = client.response();
    let response = client.response();

    assert_eq!(hint.fields.names(), ["link"]);
    assert_eq!(response.text(), "hi");
    assert!(!response.fields.has("x-internal"));
    assert_eq!(response.trailers.names(), ["x-sum"]);
}
