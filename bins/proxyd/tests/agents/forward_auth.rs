//! Agents over HTTP: `protocol "forward-auth"`.

use crate::stage::wait_for_metric;
use crate::support::{Setup, reason, refusal};
use proxy_testkit::{Upstream, get, ok};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use tempfile::TempDir;

const SETTINGS: &str = "failure-mode \"closed\"; protocol \"forward-auth\"; \
    request-path \"/verify?x=1\"; copy-headers \"x-user\" \"x-groups\"; timeout-ms 30000";

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

/// Authentication server over HTTP/1.1.
struct AuthServer {
    path: PathBuf,
    requests: Receiver<String>,
    _folder: TempDir,
}

impl AuthServer {
    /// Starts a server that always sends this response.
    fn start(answer: &'static str) -> Self {
        Self::start_with([answer, answer])
    }

    /// Starts a server that sends the first response first on each connection, and the second one
    /// after that.
    fn start_with(answers: [&'static str; 2]) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("auth.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let (requests_tx, requests) = channel();
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let requests = requests_tx.clone();
                thread::spawn(move || serve(stream, &requests, answers));
            }
        });
        Self {
            path,
            requests,
            _folder: folder,
        }
    }

    fn setup(&self, upstream: &Upstream) -> Setup {
        Setup::to(upstream).agent_at("auth", self.path.to_str().unwrap(), SETTINGS)
    }
}

fn serve(mut stream: UnixStream, requests: &Sender<String>, [first, later]: [&str; 2]) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for answer in std::iter::once(first).chain(std::iter::repeat(later)) {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        requests.send(head).unwrap_or_default();
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_2xx_allows_and_its_named_headers_replace_the_clients() {
    let upstream = upstream();
    let server = AuthServer::start("HTTP/1.1 204 No Content\r\nX-User: ann\r\nX-Other: no\r\n\r\n");
    let proxyd = server.setup(&upstream).start();
    let mut client = proxyd.connect();
    let fields = [
        ("X-User", "mallory"),
        ("X-Groups", "wheel"),
        ("Cookie", "s=1"),
    ];

    for _ in 0..2 {
        assert_eq!(client.ask(get("/a?b=c", &fields)).status, 200);
    }

    let request = upstream.last_request();
    assert_eq!(request.fields.all("x-user"), ["ann"]);
    assert!(
        !request.fields.has("x-groups"),
        "a client's own is not an agent's"
    );
    assert!(!request.fields.has("x-other"));
    let asked = server.requests.recv().unwrap();
    assert!(asked.starts_with("GET /verify?x=1 HTTP/1.1\r\n"), "{asked}");
    for line in [
        "cookie: s=1",
        "x-forwarded-method: GET",
        "x-forwarded-uri: /a?b=c",
        "x-forwarded-proto: http",
        "x-forwarded-for: 127.0.0.1",
        "x-original-uri: /a?b=c",
    ] {
        assert!(
            asked.contains(&format!("\r\n{line}\r\n")),
            "{line} in {asked}"
        );
    }
}

#[test]
fn any_other_answer_is_the_clients() {
    for (answer, status) in [
        (
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 5\r\n\r\nlogin",
            401,
        ),
        (
            "HTTP/1.1 403 Forbidden\r\nX-Why: no\r\nContent-Length: 4\r\n\r\nstop",
            403,
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n",
            302,
        ),
        (
            "HTTP/1.1 303 See Other\r\nLocation: /login\r\nContent-Length: 5\r\n\r\nmoved",
            303,
        ),
    ] {
        let upstream = upstream();
        let server = AuthServer::start(answer);
        let proxyd = server.setup(&upstream).start();

        let response = proxyd.connect().ask(get("/", &[]));

        assert_eq!(response.status, status);
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        assert_eq!(response.text(), body);
        for (field, value) in [
            ("www-authenticate", "Basic"),
            ("x-why", "no"),
            ("location", "/login"),
        ] {
            let sent = answer.to_lowercase().contains(&format!("\r\n{field}:"));
            assert_eq!(
                response.fields.get(field),
                sent.then_some(value),
                "{status}"
            );
        }
        assert!(upstream.requests().is_empty());
    }
}

#[test]
fn a_malformed_or_too_large_answer_is_a_bad_reply() {
    let large: &'static str = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n{}",
        "x".repeat(20_000)
    )
    .leak();
    for answer in ["nonsense\r\n\r\n", large] {
        let upstream = upstream();
        let server = AuthServer::start(answer);
        let proxyd = server.setup(&upstream).start();

        let response = proxyd.connect().ask(get("/", &[]));

        refusal(&response, 500, "AGENT");
        assert_eq!(reason(&proxyd, &response), "agent_bad_reply");
    }
}

#[test]
fn a_denial_without_its_body_is_the_proxys_own_page_with_the_agents_other_fields() {
    let answer = "HTTP/1.1 403 No\r\nX-Why: no\r\nContent-Type: text/plain\r\nETag: \"1\"\r\n\
        Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n4\nstop\r\n0\r\n\r\n";
    let upstream = upstream();
    let server = AuthServer::start(answer);
    let proxyd = server.setup(&upstream).start();

    let response = proxyd.connect().ask(get("/", &[]));

    refusal(&response, 403, "WAF_BLOCKED");
    assert_eq!(reason(&proxyd, &response), "agent_blocked");
    assert_eq!(response.fields.get("x-why"), Some("no"));
    assert_eq!(
        response.fields.get("content-type"),
        Some("application/json")
    );
    for field in ["etag", "content-encoding"] {
        assert!(!response.fields.has(field), "{field}");
    }
}

/// Responses that two parsers could understand differently.
const AMBIGUOUS: [&str; 8] = [
    "HTTP/1.1 204 No Content\nX-User: ann\n\n",
    "HTTP/1.1 204 No Content\r\nX-User: ann\n\r\n",
    "HTTP/1.1 204 No Content\r\nX-User: ann\r\n mallory\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nX-User : ann\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: +0\r\n\r\n",
];

#[test]
fn an_answer_that_can_be_read_in_two_ways_is_a_bad_reply() {
    for answer in AMBIGUOUS {
        let upstream = upstream();
        let server = AuthServer::start(answer);
        let proxyd = server.setup(&upstream).start();

        let response = proxyd.connect().ask(get("/", &[]));

        refusal(&response, 500, "AGENT");
        assert_eq!(reason(&proxyd, &response), "agent_bad_reply", "{answer:?}");
        assert!(upstream.requests().is_empty(), "{answer:?}");
    }
}

#[test]
fn a_bad_answer_on_a_kept_connection_is_not_asked_for_again() {
    let upstream = upstream();
    let fine = "HTTP/1.1 204 No Content\r\n\r\n";
    let server = AuthServer::start_with([fine, AMBIGUOUS[0]]);
    let proxyd = server.setup(&upstream).start();
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/", &[])).status, 200);
    let response = client.ask(get("/", &[]));

    refusal(&response, 500, "AGENT");
    assert_eq!(reason(&proxyd, &response), "agent_bad_reply");
    assert_eq!(server.requests.try_iter().count(), 2);
}

#[test]
fn a_server_error_is_a_failure_of_the_agent_and_its_answer_the_clients_if_it_is_closed() {
    let answer = "HTTP/1.1 503 Busy\r\nX-Why: load\r\nContent-Length: 4\r\n\r\nbusy";
    for (mode, status, body) in [("closed", 503, "busy"), ("open", 200, "served")] {
        let upstream = upstream();
        let server = AuthServer::start(answer);
        let settings = SETTINGS.replace("closed", mode);
        let settings = format!("{settings}; circuit-breaker {{ failure-threshold 1 }}");
        let proxyd = Setup::to(&upstream)
            .agent_at("auth", server.path.to_str().unwrap(), &settings)
            .start();
        let mut client = proxyd.connect();

        let response = client.ask(get("/", &[("X-User", "mallory")]));

        assert_eq!((response.status, response.text().as_str()), (status, body));
        if mode == "open" {
            let request = upstream.last_request();
            assert!(
                !request.fields.has("x-user"),
                "a client's own is not an agent's, though none was asked"
            );
        }
        let why = response.fields.get("x-why");
        assert_eq!(why, (mode == "closed").then_some("load"));
        assert_eq!(upstream.requests().len(), usize::from(mode == "open"));
        if mode == "closed" {
            assert_eq!(reason(&proxyd, &response), "agent_bad_reply");
            // The breaker is open, so the next response is the proxy's own.
            refusal(&client.ask(get("/", &[])), 503, "AGENT");
        }
        let failed = "proxy_agent_failures_total{agent=\"auth\",reason=\"agent_bad_reply\"}";
        wait_for_metric(&mut client, failed, 1.0);
    }
}

#[test]
fn trailers_do_not_bring_the_fields_that_the_agent_sets() {
    let upstream = Upstream::echo();
    let server = AuthServer::start("HTTP/1.1 204 No Content\r\nX-User: ann\r\n\r\n");
    let proxyd = server.setup(&upstream).start();
    let request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\
                   X-User: mallory\r\nX_User: mallory\r\nX-Groups: wheel\r\nX-Sum: 7\r\n\r\n";

    assert_eq!(proxyd.connect().ask(request).text(), "one");

    let request = upstream.last_request();
    assert_eq!(request.fields.all("x-user"), ["ann"]);
    for name in ["x-user", "x_user", "x-groups"] {
        assert!(!request.trailers.has(name), "{name}");
    }
    assert_eq!(request.trailers.get("x-sum"), Some("7"));
}
