//! Methods, header fields and errors that all paths have in common.

use crate::support::{Admin, Answer};
use tokio::io::AsyncWriteExt;

const PATHS: [&str; 10] = [
    "/health",
    "/ready",
    "/status",
    "/metrics",
    "/admin/upstreams",
    "/admin/agents",
    "/admin/stats",
    "/admin/version",
    "/admin/routes",
    "/admin/config",
];

#[tokio::test]
async fn the_admin_interface_answers_at_its_address() {
    let admin = Admin::open();
    admin.sources.lifecycle.serves(1);

    for path in PATHS {
        let answer = admin.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.field("cache-control"), Some("no-store"), "{path}");
        assert_eq!(
            answer.field("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        let id = answer.field("x-correlation-id").unwrap();
        assert!(id.len() == 36 && id.as_bytes()[14] == b'7', "{path}: {id}");
        if path != "/metrics" {
            assert_eq!(
                answer.field("content-type"),
                Some("application/json"),
                "{path}"
            );
            answer.json();
        }
    }
}

#[tokio::test]
async fn head_is_answered_as_get_without_the_body() {
    let admin = Admin::open();
    for path in ["/health", "/admin/routes", "/metrics", "/nowhere"] {
        let (get, head) = (admin.get(path).await, admin.ask("HEAD", path, "").await);
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(head.body, "", "{path}");
        assert_eq!(
            head.field("content-type"),
            get.field("content-type"),
            "{path}"
        );
        let length: usize = head.field("content-length").unwrap().parse().unwrap();
        assert!(length > 0, "{path}");
    }
}

#[tokio::test]
async fn other_methods_get_an_allow_field() {
    let admin = Admin::open();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"] {
        let answer = admin.ask(method, "/status", "").await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.field("allow"), Some("GET,HEAD"), "{method}");
        assert_eq!(answer.error_code(), "REQUEST_VALIDATION");
    }
    let connect = "CONNECT a.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    assert_eq!(admin.send(connect).await.error_code(), "REQUEST_VALIDATION");
}

#[tokio::test]
async fn a_browser_is_shown_a_page_without_a_script() {
    let admin = Admin::open();
    let answer = admin.get("/").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.field("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = answer.field("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    for part in ["<h1>", "Upstream ", "max-header-count", "1.2.3 (abc1234)"] {
        assert!(answer.body.contains(part), "{part}: {}", answer.body);
    }
    for forbidden in ["<script", "style=\"", "<form", "http-equiv"] {
        assert!(!answer.body.contains(forbidden), "{forbidden}");
    }
    let reloads = admin.get("/?reload").await;
    assert!(
        reloads
            .body
            .contains("http-equiv=\"refresh\" content=\"30\"")
    );
    assert!(answer.body.len() < 100_000);
    assert_eq!(admin.ask("POST", "/", "").await.status, 405);
}

#[tokio::test]
async fn a_browser_shows_the_route_of_a_request() {
    let admin = Admin::open();
    let asks = admin.get("/?explain").await;
    assert_eq!(asks.status, 200);
    let policy = asks.field("content-security-policy").unwrap();
    assert!(policy.contains("form-action 'self'"), "{policy}");
    assert!(asks.body.contains("<h1>Which route takes a request?</h1>"));
    for forbidden in ["<script", "style=\"", "http-equiv"] {
        assert!(!asks.body.contains(forbidden), "{forbidden}");
    }
    let url = "/?method=GET&url=http%3A%2F%2Finternal.example%2Fhealth&client_ip=&listener=";
    let reported = admin.get(url).await;
    assert_eq!(reported.status, 200);
    let heading = "<h1>Route health takes GET internal.example/health.</h1>";
    assert!(reported.body.contains(heading), "{}", reported.body);
    assert!(reported.body.contains("edge.kdl:"), "{}", reported.body);
    for (query, fault) in [
        ("url=/&listener=nobody", "there is no listener `nobody`"),
        ("url=/&client_ip=here", "`here` is not an address"),
        ("url=%3Cb%3E", "`&#60;b&#62;` is neither a path"),
    ] {
        let refused = admin.get(&format!("/?{query}")).await;
        assert_eq!(refused.status, 200, "{query}");
        assert!(refused.body.contains("No explanation: "), "{query}");
        assert!(refused.body.contains(fault), "{query}: {}", refused.body);
    }
    assert_eq!(admin.get("/?url=/&url=/").await.status, 400);
}

#[tokio::test]
async fn a_browser_is_asked_for_the_token_of_the_page() {
    let admin = Admin::with_token();
    let refused = admin.get("/").await;
    assert_eq!(refused.status, 401);
    assert!(refused.head.contains("Basic realm="), "{}", refused.head);
    assert!(!admin.get("/status").await.head.contains("Basic"));
    // `:0123456789abcdef`
    let basic = "Authorization: Basic OjAxMjM0NTY3ODlhYmNkZWY=\r\n";
    assert_eq!(admin.ask("GET", "/", basic).await.status, 200);
    assert_eq!(admin.ask("GET", "/?explain", basic).await.status, 200);
    assert_eq!(admin.get("/?explain").await.status, 401);
    assert_eq!(admin.ask("GET", "/status", basic).await.status, 401);
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let admin = Admin::open();
    for path in [
        "/admin",
        "/health/",
        "//status",
        "/STATUS",
        "/admin/../status",
        "/%73tatus",
    ] {
        let answer = admin.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.error_code(), "ROUTE_NOT_FOUND", "{path}");
    }
    assert_eq!(admin.get("/health?verbose=1").await.status, 200);
}

#[tokio::test]
async fn a_purge_or_recording_that_is_not_configured_names_the_missing_setting() {
    let admin = Admin::open();
    let body = r#"{"all": true}"#;
    let fields = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let purge = admin.ask("POST", "/admin/cache/purge", &fields).await;
    let recording = admin.get("/admin/recording").await;
    for (answer, setting) in [(purge, "add `cache`"), (recording, "add `recording`")] {
        assert_eq!(answer.status, 404, "{}", answer.body);
        assert_eq!(answer.error_code(), "ROUTE_NOT_FOUND");
        assert!(answer.body.contains(setting), "{}", answer.body);
    }
}

#[tokio::test]
async fn an_acceptable_correlation_id_is_kept_and_any_other_replaced() {
    let admin = Admin::open();
    let answer = admin
        .ask("GET", "/health", "X-Correlation-Id: a.B_c-1\r\n")
        .await;
    assert_eq!(answer.field("x-correlation-id"), Some("a.B_c-1"));

    let answer = admin
        .ask("GET", "/nowhere", "X-Correlation-Id: a b\r\n")
        .await;
    assert_eq!(answer.field("x-correlation-id").unwrap().len(), 36);
    answer.error_code();
}

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let admin = Admin::open();
    let mut stream = admin.connect().await;
    for _ in 0..3 {
        let request = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = Answer::read_one(&mut stream).await;
        assert_eq!(answer.body, r#"{"status":"healthy"}"#);
    }
}
