//! Users and passwords of routes.

use crate::support::{Config, Proxy, reason, refusal};
use agent_protocol::{Header, ProxyMessage, Wants};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proxy_testkit::{AgentReply, FakeAgent, Reload, Response, Upstream, get};
use std::fs;
use std::net::IpAddr;

/// `htpasswd -nbB -C 4` of ann with `one` and of bob with `two`.
const ANN: &str = "$2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS";
const BOB: &str = "$2y$04$kDmX349Xwy.sy55t2eYGZ.iZJXCsPwb4p76oEJgLKmC00xVcqsl4.";

fn authorization(user: &str) -> String {
    format!("Basic {}", STANDARD.encode(user))
}

fn ask(proxyd: &Proxy, user: &str) -> Response {
    let value = authorization(user);
    proxyd.connect().ask(get("/", &[("Authorization", &value)]))
}

fn ann(settings: &str) -> String {
    format!("basic-auth {{ user \"ann\" \"{ANN}\"; {settings} }}")
}

#[test]
fn users_of_the_list_and_of_the_file_are_admitted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.htpasswd");
    fs::write(&file, format!("# team\nbob:{BOB}\nann:{BOB}\n")).unwrap();
    let proxyd = Config::new()
        .route(
            "wiki",
            &format!(
                "respond 200 \"in\"; {}",
                ann(&format!("users-file {file:?}"))
            ),
        )
        .start();

    // A user in the configuration overrides the same user in the file.
    for (user, status) in [
        ("ann:one", 200),
        ("bob:two", 200),
        ("ann:two", 401),
        ("ann:", 401),
        ("bob:one", 401),
        ("eve:one", 401),
        ("Ann:one", 401),
    ] {
        let response = ask(&proxyd, user);
        assert_eq!(response.status, status, "{user}");
        if status == 401 {
            refusal(&response, 401, "AUTHENTICATION_FAILED");
            assert_eq!(reason(&proxyd, &response), "credentials_invalid");
        }
    }
}

#[test]
fn a_request_without_credentials_is_challenged() {
    let proxyd = Config::new()
        .route(
            "wiki",
            &format!("respond 200 \"in\"; {}", ann("realm \"The wiki\"")),
        )
        .start();
    let mut client = proxyd.connect();

    let none = client.ask(get("/", &[]));
    let other = client.ask(get("/", &[("Authorization", "Bearer abc")]));
    let twice = authorization("ann:one");
    let twice = client.ask(get(
        "/",
        &[("Authorization", &twice), ("Authorization", &twice)],
    ));

    for (response, expected) in [
        (none, "credentials_missing"),
        (other, "credentials_invalid"),
        (twice, "credentials_invalid"),
    ] {
        refusal(&response, 401, "AUTHENTICATION_FAILED");
        assert_eq!(
            response.fields.all("www-authenticate"),
            ["Basic realm=\"The wiki\", charset=\"UTF-8\""]
        );
        assert_eq!(reason(&proxyd, &response), expected);
    }
}

#[test]
fn the_password_is_forwarded_only_if_the_route_is_configured_to() {
    for (settings, forwarded) in [("", None), ("forward-credentials #true", Some("ann:one"))] {
        let upstream = Upstream::saying("in");
        let auth = ann(settings);
        let edits = "request-headers { set \"X-User\" \"{user}\" }";
        let proxyd = Config::through(&upstream, &format!("{auth}; {edits}")).start();

        for _ in 0..2 {
            assert_eq!(ask(&proxyd, "ann:one").text(), "in");
            let fields = upstream.last_request().fields;
            let expected = forwarded.map(authorization);
            assert_eq!(fields.get("authorization"), expected.as_deref());
            assert_eq!(fields.all("x-user"), ["ann"]);
        }
    }
}

#[test]
fn agents_get_no_password_though_the_upstream_does() {
    let agent = FakeAgent::start(Wants::default(), |_| AgentReply::allow());
    let upstream = Upstream::saying("in");
    let top = format!(
        "agents {{ agent \"waf\" {{ unix-socket {:?}; timeout-ms 30000; failure-mode \"closed\" }} }}",
        agent.path()
    );
    let route = format!("agents \"waf\"; {}", ann("forward-credentials #true"));
    let proxyd = Config::through(&upstream, &route).top(&top).start();

    assert_eq!(ask(&proxyd, "ann:one").text(), "in");

    let fields = upstream.last_request().fields;
    assert_eq!(
        fields.get("authorization"),
        Some(&*authorization("ann:one"))
    );
    let Some(ProxyMessage::RequestHeaders(head)) = agent.events().into_iter().next() else {
        panic!("the agent is asked about the head");
    };
    let mut names = head.headers.iter().map(Header::name);
    assert!(!names.any(|name| name == "authorization"));
}

#[test]
fn guessing_is_limited_for_each_client() {
    let proxyd = Config::new()
        .route(
            "wiki",
            &format!("respond 200 \"in\"; {}", ann("attempts \"3/h\"")),
        )
        .start();
    let ask_from = |ip: &str, user: &str| {
        let ip: IpAddr = ip.parse().unwrap();
        let value = authorization(user);
        let request = get("/", &[("Authorization", &value)]);
        proxyd.connect_from(ip).ask(request)
    };
    assert_eq!(ask_from("192.0.2.1", "ann:one").status, 200);

    for guess in 0..3 {
        let response = ask_from("192.0.2.1", &format!("ann:guess-{guess}"));
        assert_eq!(response.status, 401, "{guess}");
    }
    let limited = ask_from("192.0.2.1", "ann:guess-4");

    refusal(&limited, 429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(reason(&proxyd, &limited), "credential_attempts");
    let wait: u64 = limited.fields.get("retry-after").unwrap().parse().unwrap();
    assert!((1..=1_200).contains(&wait), "{wait}");
    for (name, value) in [("x-ratelimit-limit", "3"), ("x-ratelimit-remaining", "0")] {
        assert_eq!(limited.fields.get(name), Some(value), "{name}");
    }
    assert!(limited.fields.get("x-ratelimit-reset").is_some());
    let record = proxyd.limit_record(&limited.correlation_id());
    assert_eq!(
        (record.number("limit"), record.number("actual")),
        (Some(3.0), Some(4.0))
    );
    assert_eq!(record.text("correlation_id"), limited.correlation_id());
    // Credentials that this client proved a moment ago still pass, and another client has its own
    // attempts.
    assert_eq!(ask_from("192.0.2.1", "ann:one").status, 200);
    assert_eq!(ask_from("192.0.2.2", "ann:guess").status, 401);
}

#[test]
fn a_client_without_attempts_cannot_use_credentials_proved_by_another() {
    let proxyd = Config::new()
        .route(
            "wiki",
            &format!("respond 200 \"in\"; {}", ann("attempts \"3/h\"")),
        )
        .start();
    let ask_from = |ip: &str, user: &str| {
        let ip: IpAddr = ip.parse().unwrap();
        let value = authorization(user);
        let request = get("/", &[("Authorization", &value)]);
        proxyd.connect_from(ip).ask(request)
    };
    for guess in 0..3 {
        let response = ask_from("192.0.2.1", &format!("ann:guess-{guess}"));
        assert_eq!(response.status, 401, "{guess}");
    }
    assert_eq!(ask_from("192.0.2.2", "ann:one").status, 200);

    for user in ["ann:guess", "ann:one", "eve:one"] {
        let response = ask_from("192.0.2.1", user);
        refusal(&response, 429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(reason(&proxyd, &response), "credential_attempts", "{user}");
    }
    assert_eq!(ask_from("192.0.2.2", "ann:one").status, 200);
}

#[test]
fn a_reload_reads_files_of_users_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.htpasswd");
    fs::write(&file, format!("ann:{ANN}\n")).unwrap();
    let auth = format!("respond 200 \"in\"; basic-auth {{ users-file {file:?} }}");
    let config = Config::new().route("wiki", &auth);
    let proxyd = config.start();
    assert_eq!(ask(&proxyd, "ann:one").status, 200);

    fs::write(&file, format!("bob:{BOB}\n")).unwrap();
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);

    assert_eq!(ask(&proxyd, "ann:one").status, 401, "not remembered");
    assert_eq!(ask(&proxyd, "bob:two").status, 200);
    fs::write(&file, "bob:{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n").unwrap();
    let Reload::Refused(error) = proxyd.reload(&config.kdl()) else {
        panic!("a hash of SHA-1 is refused");
    };
    assert!(
        error.contains("line 1") && error.contains("SHA-1") && error.contains("htpasswd -nB"),
        "{error}"
    );
    assert!(!error.contains("2jmj7l5rSw0yVb"), "{error}");
    fs::write(&file, "").unwrap();
    let Reload::Refused(error) = proxyd.reload(&config.kdl()) else {
        panic!("a file that has lost its users is refused");
    };
    assert!(error.contains("has no users"), "{error}");
    assert_eq!(ask(&proxyd, "bob:two").status, 200);
}

#[test]
fn preflight_requests_need_no_password() {
    let upstream = Upstream::saying("in");
    let cors = "cors { allow-origins \"https://a.test\"; allow-methods \"PUT\" }";
    let proxyd = Config::through(&upstream, &format!("{}; {cors}", ann(""))).start();
    let mut client = proxyd.connect();
    let preflight = "OPTIONS / HTTP/1.1\r\nHost: a.test\r\nOrigin: https://a.test\r\n\
                     Access-Control-Request-Method: PUT\r\n";
    let with_credentials = format!(
        "{preflight}Authorization: {}\r\n\r\n",
        authorization("ann:wrong")
    );

    assert_eq!(client.ask(format!("{preflight}\r\n")).status, 204);
    assert_eq!(client.ask(with_credentials).status, 204);
    assert_eq!(
        client
            .ask("OPTIONS / HTTP/1.1\r\nHost: a.test\r\n\r\n")
            .status,
        401
    );
    assert!(upstream.requests().is_empty());
}
