//! Login servers behind an upstream, configured as they document it for other proxies.

use crate::stage::wait_for_metric;
use crate::support::{Setup, reason};
use proxy_testkit::{Request, Upstream, closed_port, get, ok};

const AMPLE: &str = "failure-mode \"closed\"; timeout-ms 30000";

fn application() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

/// Starts a server that computes its responses with `answer`.
fn server(answer: impl Fn(&Request) -> String + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |served| {
        while let Some(request) = served.request() {
            served.send(answer(&request));
        }
    })
}

fn target(server: &Upstream) -> String {
    format!("target \"{}\"", server.address())
}

fn has_cookie(request: &Request, cookie: &str) -> bool {
    let cookies = request.fields.get("cookie").unwrap_or_default();
    cookies.split("; ").any(|one| one == cookie)
}

/// Authelia 4.38 at `/api/authz/forward-auth`, as documented for Traefik, Caddy and `HAProxy`.
fn authelia(request: &Request) -> String {
    let needed = ["method", "proto", "host", "uri"].map(|name| {
        let field = request.fields.get(&format!("x-forwarded-{name}"));
        field.map(str::to_owned)
    });
    let [Some(method), Some(proto), Some(host), Some(uri)] = needed else {
        return "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_owned();
    };
    if request.target != "/api/authz/forward-auth" || proto != "https" {
        return "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned();
    }
    if has_cookie(request, "authelia_session=ann") {
        return "HTTP/1.1 200 OK\r\nRemote-User: ann\r\nRemote-Groups: staff,admins\r\n\
                Remote-Email: ann@example.com\r\nContent-Length: 6\r\n\r\n200 OK"
            .to_owned();
    }
    let is_page = request
        .fields
        .get("accept")
        .is_some_and(|accept| accept.contains("text/html"));
    let status = match (is_page, method.as_str()) {
        (false, _) => "401 Unauthorized",
        (true, "GET" | "HEAD" | "OPTIONS") => "302 Found",
        (true, _) => "303 See Other",
    };
    format!(
        "HTTP/1.1 {status}\r\n\
         Location: https://auth.example.com/?rd={proto}%3A%2F%2F{host}{uri}&rm={method}\r\n\
         Set-Cookie: authelia_session=new; Domain=example.com; HttpOnly; Secure; SameSite=Lax\r\n\
         Content-Length: 3\r\n\r\n302"
    )
}

const AUTHELIA: &str = "protocol \"forward-auth\"; request-path \"/api/authz/forward-auth\"; \
    copy-headers \"Remote-User\" \"Remote-Groups\" \"Remote-Email\" \"Remote-Name\"";

#[test]
fn authelia_admits_users_and_redirects_the_rest_to_its_portal() {
    let application = application();
    let authelia = server(authelia);
    let proxyd = Setup::to(&application)
        .listener("trusted-proxies \"127.0.0.0/8\"")
        .agent_behind(
            "authelia",
            &target(&authelia),
            &format!("{AMPLE}; {AUTHELIA}"),
        )
        .start();
    let mut client = proxyd.connect();
    let page = [
        ("X-Forwarded-Proto", "https"),
        ("Accept", "text/html,*/*"),
        ("Remote-User", "mallory"),
        ("Remote-Name", "Mallory"),
    ];

    let sent_away = client.ask(get("/a?b=c", &page));
    let program = client.ask(get("/a", &page[..1]));
    let known: Vec<_> = page
        .into_iter()
        .chain([("Cookie", "x=1; authelia_session=ann")])
        .collect();
    let let_in = client.ask(get("/a", &known));

    assert_eq!(sent_away.status, 302);
    let location = sent_away.fields.get("location").unwrap();
    assert!(
        location.starts_with("https://auth.example.com/?rd=https%3A%2F%2F"),
        "{location}"
    );
    assert!(location.ends_with("/a?b=c&rm=GET"), "{location}");
    let cookie = sent_away.fields.get("set-cookie").unwrap();
    assert!(cookie.starts_with("authelia_session=new"), "{cookie}");
    assert_eq!(program.status, 401);
    assert_eq!(let_in.text(), "served");
    let [request] = &application.requests()[..] else {
        panic!("{:?}", application.requests());
    };
    assert_eq!(request.fields.all("remote-user"), ["ann"]);
    assert_eq!(request.fields.all("remote-groups"), ["staff,admins"]);
    assert!(!request.fields.has("remote-name"), "the client's own");
    assert_eq!(authelia.connections(), 1, "connections are kept");
}

/// oauth2-proxy with `--upstream static://202` and `--reverse-proxy`, as documented for Traefik.
fn oauth2_proxy(request: &Request) -> String {
    if has_cookie(request, "_oauth2_proxy=ann") {
        return "HTTP/1.1 202 Accepted\r\nX-Auth-Request-User: ann\r\n\
                X-Auth-Request-Email: ann@example.com\r\nAuthorization: Bearer id-token\r\n\
                Set-Cookie: _oauth2_proxy=renewed; Path=/; HttpOnly; Secure\r\n\
                Set-Cookie: _oauth2_proxy_1=part; Path=/; HttpOnly; Secure\r\n\
                Content-Length: 13\r\n\r\nAuthenticated"
            .to_owned();
    }
    let uri = request.fields.get("x-forwarded-uri").unwrap_or_default();
    format!(
        "HTTP/1.1 302 Found\r\nLocation: https://idp.example.com/authorize?state=x%3A{uri}\r\n\
         Set-Cookie: _oauth2_proxy_csrf=1; Path=/; HttpOnly; Secure\r\nContent-Length: 0\r\n\r\n"
    )
}

const OAUTH2_PROXY: &str = "protocol \"forward-auth\"; \
    copy-headers \"X-Auth-Request-User\" \"X-Auth-Request-Email\" \"Authorization\"; \
    copy-response-headers \"Set-Cookie\"";

#[test]
fn a_renewed_session_cookie_reaches_the_client() {
    let application = application();
    let oauth2 = server(oauth2_proxy);
    let proxyd = Setup::to(&application)
        .agent_behind(
            "oauth2",
            &target(&oauth2),
            &format!("{AMPLE}; {OAUTH2_PROXY}"),
        )
        .start();
    let mut client = proxyd.connect();

    let sent_away = client.ask(get("/private", &[]));
    let let_in = client.ask(get("/private", &[("Cookie", "_oauth2_proxy=ann")]));

    assert_eq!(sent_away.status, 302);
    assert_eq!(
        sent_away.fields.get("location"),
        Some("https://idp.example.com/authorize?state=x%3A/private")
    );
    assert_eq!(sent_away.fields.all("set-cookie").len(), 1);
    assert_eq!(let_in.text(), "served");
    assert_eq!(
        let_in.fields.all("set-cookie"),
        [
            "_oauth2_proxy=renewed; Path=/; HttpOnly; Secure",
            "_oauth2_proxy_1=part; Path=/; HttpOnly; Secure",
        ]
    );
    let request = application.last_request();
    assert_eq!(request.fields.all("x-auth-request-user"), ["ann"]);
    assert_eq!(request.fields.all("authorization"), ["Bearer id-token"]);
    assert!(!let_in.fields.has("x-auth-request-user"));
}

#[test]
fn an_agent_gets_the_host_that_is_written() {
    let application = application();
    let auth = server(|_| "HTTP/1.1 204 No Content\r\n\r\n".to_owned());
    let settings = format!("{AMPLE}; protocol \"forward-auth\"; request-host \"auth.example.com\"");
    let proxyd = Setup::to(&application)
        .agent_behind("auth", &target(&auth), &settings)
        .start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);

    let asked = auth.last_request();
    assert_eq!(asked.fields.all("host"), ["auth.example.com"]);
    assert_ne!(
        asked.fields.get("x-forwarded-host"),
        Some("auth.example.com")
    );
}

#[test]
fn an_agent_behind_an_upstream_is_called_over_tcp() {
    let application = application();
    let auth = server(|_| "HTTP/1.1 204 No Content\r\n\r\n".to_owned());
    // The first target refuses connections, so the second one is tried.
    let targets = format!("target \"{}\"; {}", closed_port(), target(&auth));
    let settings = format!("{AMPLE}; protocol \"forward-auth\"");
    let proxyd = Setup::to(&application)
        .agent_behind("auth", &targets, &settings)
        .start();
    let mut client = proxyd.connect();

    for _ in 0..3 {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }

    assert_eq!(auth.requests().len(), 3);
    assert_eq!(auth.connections(), 1);
    let decided =
        "proxy_agent_requests_total{agent=\"auth\",event=\"request_headers\",decision=\"allow\"}";
    wait_for_metric(&mut client, decided, 3.0);
}

#[test]
fn an_agent_whose_targets_all_refuse_is_unreachable() {
    let application = application();
    let targets = format!("target \"{}\"", closed_port());
    let settings = format!("{AMPLE}; protocol \"forward-auth\"");
    let proxyd = Setup::to(&application)
        .agent_behind("auth", &targets, &settings)
        .start();

    let response = proxyd.connect().ask(get("/", &[]));

    assert_eq!(response.status, 503);
    assert_eq!(reason(&proxyd, &response), "agent_unreachable");
    assert!(application.requests().is_empty());
}
