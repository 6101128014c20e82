//! Cache of the real program: purges by the admin interface, and sharing between workers.

use crate::support::{Config, admin, target};
use proxy_testkit::{Proxyd, RawClient, Response, Upstream, get};
use serde_json::json;

/// Responds with the path as the body, and these fields.
fn tagged() -> Upstream {
    Upstream::start(|served| {
        while let Some(request) = served.request() {
            let path = request.target;
            let tag = path.trim_start_matches('/').replace('/', ", ");
            served.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nCache-Control: max-age=600\r\n\
                 Cache-Tag: {tag}\r\n\r\n{path}",
                path.len()
            ));
        }
    })
}

fn proxyd(upstream: &Upstream, top: &str) -> Proxyd {
    Config::new()
        .route("all", "upstream \"u\"; cache { cache-status #true }")
        .upstream("u", &target(upstream))
        .top(&format!("admin {{ address \"127.0.0.1:0\" }}\n{top}"))
        .start()
}

fn purge(proxyd: &Proxyd, body: &str) -> Response {
    let mut client = RawClient::connect(proxyd.admin_address());
    client.ask(format!(
        "POST /admin/cache/purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

fn is_hit(client: &mut RawClient, path: &str) -> bool {
    let response = client.ask(get(path, &[]));
    let status = response.fields.get("cache-status").unwrap_or_default();
    status.starts_with("proxyd; hit")
}

#[test]
fn an_operator_purges_by_url_prefix_and_tag() {
    let upstream = tagged();
    let proxyd = proxyd(&upstream, "");
    let mut client = proxyd.connect();
    for path in ["/news/1", "/news/2", "/shop/1"] {
        assert!(!is_hit(&mut client, path));
        assert!(is_hit(&mut client, path));
    }
    let figures = admin(&proxyd, "/admin/cache");
    assert_eq!(figures["objects"], 3, "{figures}");
    assert_eq!(admin(&proxyd, "/admin/stats")["cache"]["objects"], 3);

    let purged = |body: &str| purge(&proxyd, body).json()["purged"].clone();
    assert_eq!(purged(r#"{"tag": "1"}"#), json!(2));
    assert!(!is_hit(&mut client, "/shop/1"));
    assert!(is_hit(&mut client, "/news/2"));
    assert_eq!(purged(r#"{"url": "http://A.test:80/news/2"}"#), json!(1));
    assert!(!is_hit(&mut client, "/news/2"));
    assert_eq!(purged(r#"{"prefix": "http://a.test:80/news/"}"#), json!(1));
    assert_eq!(purged(r#"{"all": true}"#), json!(1));
    assert_eq!(purge(&proxyd, r#"{"path": "/"}"#).status, 400);
}

#[test]
fn a_purge_of_a_url_reaches_routes_that_leave_its_parameters_out() {
    let upstream = tagged();
    let settings = "cache { cache-status #true; ignore-query \"utm\" }";
    let proxyd = Config::new()
        .route("all", &format!("upstream \"u\"; {settings}"))
        .upstream("u", &target(&upstream))
        .top("admin { address \"127.0.0.1:0\" }")
        .start();
    let mut client = proxyd.connect();
    assert!(!is_hit(&mut client, "/a?b=1&utm=mail"));
    assert!(is_hit(&mut client, "/a?b=1"));
    let purged = purge(&proxyd, r#"{"url": "http://a.test/a?b=1&utm=mail"}"#).json();
    assert_eq!(purged["purged"], json!(1));
    assert!(!is_hit(&mut client, "/a?b=1"));
}

#[test]
fn workers_share_stored_responses() {
    let upstream = tagged();
    let proxyd = proxyd(&upstream, "system { worker-threads 2 }");
    let _first = proxyd.connect().ask(get("/a", &[]));
    for _ in 0..20 {
        assert!(is_hit(&mut proxyd.connect(), "/a"));
    }
    assert_eq!(upstream.requests().len(), 1);
}
