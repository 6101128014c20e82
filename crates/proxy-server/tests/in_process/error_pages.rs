//! HTML pages of routes and listeners for errors.

use crate::support::{Config, refusal};
use proxy_testkit::{Reload, Response, Upstream, get};
use std::fs;

const HTML: (&str, &str) = ("Accept", "text/html");

fn is_page(response: &Response, status: u16, text: &str) {
    assert_eq!(response.status, status);
    assert_eq!(
        response.fields.get("content-type"),
        Some("text/html; charset=utf-8")
    );
    let page = response.text();
    assert!(page.contains(text), "{page}");
    assert!(page.contains(&response.correlation_id()), "{page}");
}

#[test]
fn a_route_has_pages_for_its_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gone.html");
    fs::write(
        &file,
        "<style>p{color:red}</style><BODY>{status} {status_text}: {message}; {request_id}</BODY>",
    )
    .unwrap();
    let pages = format!(
        r#"error-pages {{ page 410 file={file:?}; page "4xx" html="<body>ours</body>"; page 503 html="wait {{retry_after}}" }}"#
    );
    let config = Config::new()
        .listener(&pages)
        .route(
            "gone",
            &format!("matches {{ path \"/gone\" }}; respond 410; {pages}"),
        )
        .route(
            "api",
            "matches { path \"/api\" }; service-type \"api\"; respond 410",
        )
        .route(
            "teapot",
            &format!("matches {{ path \"/teapot\" }}; respond 418; {pages}"),
        )
        .route(
            "own",
            &format!("matches {{ path \"/own\" }}; respond 410 \"text\"; {pages}"),
        )
        .route(
            "down",
            &format!("matches {{ path \"/down\" }}; respond 503; {pages}"),
        );
    let proxyd = config.start();
    let mut client = proxyd.connect();

    let gone = client.ask(get("/gone", &[HTML]));
    is_page(&gone, 410, "410 Gone: ");
    assert!(
        gone.text()
            .starts_with("<style>p{color:red}</style><BODY>410")
    );
    is_page(
        &client.ask(get("/teapot", &[HTML])),
        418,
        "<body>ours<p>Request ID: ",
    );
    let down = client.ask(get("/down", &[HTML]));
    let seconds = down.fields.get("retry-after").unwrap().to_owned();
    is_page(&down, 503, &format!("wait {seconds}<p>"));
    // JSON stays for clients that accept it, and for routes that require it.
    for path in ["/gone", "/api"] {
        let accept: &[(&str, &str)] = if path == "/api" { &[HTML] } else { &[] };
        let json = client.ask(get(path, accept));
        refusal(&json, 410, "REQUEST_VALIDATION");
    }
    assert_eq!(client.ask(get("/own", &[HTML])).text(), "text");

    fs::write(&file, "<p>other {request_id}</p>").unwrap();
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
    is_page(&client.ask(get("/gone", &[HTML])), 410, "<p>other ");
}

#[test]
fn a_listener_has_pages_for_requests_without_a_route() {
    let pages =
        r#"error-pages { page 404 html="<p>nothing here</p>"; page "5xx" html="<p>broken</p>" }"#;
    let proxyd = Config::new()
        .listener(pages)
        .route("gone", "matches { path \"/gone\" }; respond 500")
        .start();
    let mut client = proxyd.connect();

    is_page(&client.ask(get("/", &[HTML])), 404, "nothing here");
    is_page(&client.ask(get("/gone", &[HTML])), 500, "broken");
    refusal(&client.ask(get("/", &[])), 404, "ROUTE_NOT_FOUND");
}

#[test]
fn a_listener_has_pages_for_heads_above_its_limits() {
    let pages = r#"error-pages { page "4xx" html="<p>ours</p>" }"#;
    let proxyd = Config::new()
        .listener(pages)
        .top("limits { max-header-value-bytes 100 }")
        .start();
    let long = "x".repeat(200);

    let response = proxyd.connect().ask(get("/", &[HTML, ("X-Long", &long)]));
    is_page(&response, 429, "ours");

    // A request that cannot be parsed.
    let malformed = "GET / HTTP/1.1\r\nHost: a.test\r\nAccept: text/html\r\nX : 1\r\n\r\n";
    let response = proxyd.connect().ask(malformed);
    assert_eq!(response.status, 400);
    assert!(!response.text().contains("ours"), "{}", response.text());
}

#[test]
fn nothing_of_a_client_is_html_in_a_page() {
    let pages = r#"error-pages { page "4xx" html="<body>{message} {request_id}</body>" }"#;
    let proxyd = Config::new().listener(pages).start();
    let fields = [HTML, ("X-Correlation-Id", "<script>alert(1)</script>")];

    let response = proxyd
        .connect()
        .ask(get("/<script>alert(1)</script>", &fields));

    assert!(!response.text().contains("<script>"), "{}", response.text());
}

#[test]
fn pages_of_an_upstream_are_passed_on() {
    let upstream = Upstream::answering(
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\ntheir",
    );
    let pages = r#"error-pages { page "4xx" html="<p>ours</p>" }"#;
    let proxyd = Config::through(&upstream, pages).start();

    assert_eq!(proxyd.connect().ask(get("/", &[HTML])).text(), "their");
}
