//! A shop with an API, personal pages, streams and reports.

mod cases;

use super::clients::{Ask, Asked, CLOSE, answer, ask_admin, ask_secure, expect_field};
use super::scene::Scene;
pub(super) use cases::{HARMFUL, HARMLESS};
use proxy_load::clock::pause;
use proxy_testkit::{Response, Upstream, get, ok};
use std::time::Duration;

/// A slow upstream answers after it, and no other one on a machine that is not overloaded.
const SLOW: Duration = Duration::from_secs(2);

pub(super) static SHOP: Scene = Scene {
    name: "shop",
    config: CONFIG,
    pure_tests: PURE_TESTS,
    live_tests: LIVE_TESTS,
    upstreams,
    asks: &[
        Ask::new("items", |asked| api(asked, get("/api/items", &[CLOSE]))),
        Ask::new("upload", |asked| api(asked, upload())),
        Ask::new("admin", ask_admin),
        Ask::new("me", |asked| {
            let answer = answer(asked, get("/me", &[CLOSE]), 200, "me")?;
            expect_field(&answer, "cache-control", "private")
        }),
        Ask::new("stream", |asked| {
            answer(asked, get("/stream", &[CLOSE]), 200, "stream").map(drop)
        }),
        Ask::new("reports", |asked| {
            answer(asked, get("/reports/today", &[CLOSE]), 200, "reports").map(drop)
        }),
        Ask::new("site", |asked| {
            let answer = answer(asked, get("/", &[CLOSE]), 200, "front")?;
            expect_field(&answer, "x-frame-options", "DENY")
        }),
        Ask::new("secure", ask_secure),
    ],
};

fn api(asked: &Asked<'_>, request: Vec<u8>) -> Result<(), String> {
    let answer: Response = answer(asked, request, 200, "api")?;
    expect_field(&answer, "x-frame-options", "DENY")?;
    expect_field(&answer, "x-internal", "")
}

fn upload() -> Vec<u8> {
    let mut request = b"POST /api/items HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
        content-length: 4000\r\n\r\n"
        .to_vec();
    request.extend([b'x'; 4_000]);
    request
}

fn upstreams() -> Vec<(&'static str, Upstream)> {
    let api = || {
        Upstream::answering(
            "HTTP/1.1 200 OK\r\nx-internal: 10.0.0.7\r\ncontent-length: 3\r\n\r\napi",
        )
    };
    let me = "HTTP/1.1 200 OK\r\ncache-control: private\r\ncontent-length: 2\r\n\r\nme";
    let uncached = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nme";
    let slow = |text: &'static str| {
        Upstream::start(move |served| {
            while served.request().is_some() {
                pause(SLOW);
                served.send(ok(text));
            }
        })
    };
    let status =
        |line: &str| Upstream::answering(format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n"));
    let flaky = Upstream::start(|served| {
        let bad = served.number() % 2 == 0;
        while served.request().is_some() {
            let answer = "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n";
            served.send(if bad {
                answer.as_bytes().to_vec()
            } else {
                ok("reports")
            });
            if served.number() > 0 {
                return;
            }
        }
    });
    vec![
        ("api", api()),
        ("api2", api()),
        ("back", Upstream::saying("back")),
        ("me", Upstream::answering(me)),
        ("uncached", Upstream::answering(uncached)),
        ("stream", Upstream::start(streaming)),
        ("reports", Upstream::saying("reports")),
        ("reports2", Upstream::saying("reports")),
        ("front", Upstream::saying("front")),
        ("front2", Upstream::saying("front")),
        ("slow-api", slow("api")),
        ("slow-reports", slow("reports")),
        ("slow-stream", slow("stream")),
        ("broken", status("500 Broken")),
        ("missing", status("404 Not Found")),
        ("moved", status("302 Found\r\nlocation: /login")),
        ("empty", status("200 OK")),
        ("gone", Upstream::start(|served| drop(served.request()))),
        ("flaky", flaky),
    ]
}

fn streaming(served: &mut proxy_testkit::Served) {
    while served.request().is_some() {
        served.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nstream\r\n");
        pause(Duration::from_millis(60));
        served.send("4\r\nends\r\n0\r\n\r\n");
    }
}

const CONFIG: &str = r#"
listeners {
    listener "main" { address "127.0.0.1:0" }
    listener "secure" {
        address "127.0.0.1:0"
        protocol "https"
        tls { cert-file "certificates/@cert-good@.pem"; key-file "certificates/@cert-good@.key" }
    }
}
routes {
    route "api" {
        matches { path-prefix "/api" }
        upstream "api"
        policies {
            max-body-size "1MB"
            rate-limit { requests-per-second 1000 }
            response-headers { set "X-Frame-Options" "DENY"; remove "X-Internal" }
        }
    }
    route "admin" { matches { path-prefix "/admin" }; upstream "back"; agents "guard" }
    route "me" { matches { path-prefix "/me" }; upstream "me" }
    route "stream" { matches { path-prefix "/stream" }; upstream "stream" }
    route "reports" { matches { path-prefix "/reports" }; upstream "reports" }
    route "site" {
        matches { path-prefix "/" }
        upstream "front"
        policies { response-headers { set "X-Frame-Options" "DENY" } }
    }
}
upstreams {
    upstream "api" { target "@api@"; target "@api2@" }
    upstream "back" { target "@back@" }
    upstream "me" { target "@me@" }
    upstream "stream" { target "@stream@" }
    upstream "reports" { target "@reports@" }
    upstream "front" { target "@front@" }
}
agents { agent "guard" { failure-mode "closed" } }
"#;

/// None is about `reports`.
const PURE_TESTS: &str = r#"
    test "the API" {
        request "GET" "/api/items"
        expect { route "api"; upstream "api"; response-header "X-Frame-Options" "DENY"; no-response-header "X-Internal" }
    }
    test "the back office is guarded" { request "GET" "/admin/users"; expect { route "admin"; agents "guard" } }
    test "the site" { request "GET" "/"; expect { route "site"; upstream "front"; response-header "X-Frame-Options" "DENY" } }
    never "the back office without a login" { upstream "back"; without-agent "guard" }
"#;

const LIVE_TESTS: &str = r#"
    test "the API answers" {
        request "GET" "/api/items"
        live #true
        expect {
            answer-contains "api"
            answer-header "X-Frame-Options" "DENY"
            no-answer-header "X-Internal"
            first-byte-ms 1900
        }
    }
    test "uploads arrive" { request "POST" "/api/items"; live #true; live-unsafe #true; upload-bytes 2000; expect { answer-contains "api" } }
    test "the back office refuses strangers" { request "GET" "/admin/users"; live #true; expect { answer-status 403 } }
    test "my page is private" {
        request "GET" "/me"
        live #true
        expect { answer-contains "me"; answer-header "Cache-Control" "private" }
    }
    test "streams flow" { request "GET" "/stream"; live #true; expect { answer-contains "stream"; first-byte-ms 1900 } }
    test "the site answers" {
        request "GET" "/"
        live #true
        expect { answer-contains "front"; answer-header "X-Frame-Options" "DENY" }
    }
    test "the site answers by HTTPS" {
        request "GET" "https://shop.example.com/"
        live #true
        http2 #true
        expect { answer-contains "front"; certificate-days 7 }
    }
"#;
