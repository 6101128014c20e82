//! Authorization of requests to the admin interface.

use crate::support::{Admin, Answer, EDGE, TOKEN, plan};
use proxy_admin::{Access, AdminState, Listener, Token, serve};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

#[tokio::test]
async fn the_admin_interface_asks_for_its_token() {
    let admin = Admin::with_token();
    for path in ["/status", "/metrics", "/admin/config", "/nowhere"] {
        let without = admin.get(path).await;
        assert_eq!(without.status, 401, "{path}");
        assert_eq!(without.field("www-authenticate"), Some("Bearer"), "{path}");
        assert_eq!(without.error_code(), "AUTHENTICATION_FAILED", "{path}");
        assert!(!without.body.contains(TOKEN));

        let wrong = admin
            .ask("GET", path, "Authorization: Bearer 0123456789abcdeX\r\n")
            .await;
        assert_eq!(wrong.status, 401, "{path}");
        assert!(
            wrong.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("invalid")
        );
    }
    let field = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(admin.ask("GET", "/status", &field).await.status, 200);
    assert_eq!(admin.ask("GET", "/nowhere", &field).await.status, 404);
}

#[tokio::test]
async fn probes_are_answered_without_a_token() {
    let admin = Admin::with_token();

    assert_eq!(admin.get("/health").await.status, 200);
    assert_eq!(admin.get("/ready").await.status, 503);
    assert_eq!(admin.ask("POST", "/health", "").await.status, 405);
}

#[tokio::test]
async fn a_new_token_counts_from_the_next_request_on() {
    let admin = Admin::with_token();
    let (old, new) = (TOKEN, "fedcba9876543210");
    let field = |token: &str| format!("Authorization: Bearer {token}\r\n");
    admin.access.change_token(Some(Token::new(new).unwrap()));

    assert_eq!(admin.ask("GET", "/status", &field(old)).await.status, 401);
    assert_eq!(admin.ask("GET", "/status", &field(new)).await.status, 200);
}

#[tokio::test]
async fn a_request_after_dns_rebinding_is_refused() {
    let admin = Admin::open();
    let rebound =
        "GET /admin/config HTTP/1.1\r\nHost: evil.example:9090\r\nConnection: close\r\n\r\n";
    let answer = admin.send(rebound).await;

    assert_eq!(answer.status, 421);
    assert_eq!(answer.error_code(), "REQUEST_VALIDATION");
    let probe = "GET /health HTTP/1.1\r\nHost: node-7.example\r\nConnection: close\r\n\r\n";
    assert_eq!(admin.send(probe).await.status, 200);
    let old = admin.send("GET /status HTTP/1.0\r\n\r\n").await;
    assert_eq!(old.status, 200);
}

#[tokio::test]
async fn the_admin_interface_answers_at_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    let listener = StdUnixListener::bind(&path).unwrap();
    let sources = Admin::open().sources;
    let state = Arc::new(AdminState::new(sources, plan(1, EDGE)));
    let access = Arc::new(Access::unix());
    tokio::spawn(serve(
        Listener::Unix(listener),
        state,
        access,
        std::future::pending(),
    ));

    let mut stream = UnixStream::connect(&path).await.unwrap();
    let request = "GET /admin/version HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = Answer::read_all(&mut stream).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["name"], "proxyd");
}
