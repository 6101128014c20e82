//! A market behind a load balancer: sessions, searches, uploads, stored prices and a shared server of many sites.
#![expect(clippy::disallowed_types, reason = "threads of one upstream share it")]

mod cases;

use super::clients::{Ask, Asked, CLOSE, answer, ask_admin, ask_secure, expect_field};
use super::scene::Scene;
pub(super) use cases::{HARMFUL, HARMLESS};
use proxy_load::clock::{Stopwatch, pause};
use proxy_testkit::{Response, Served, Upstream, get, ok};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const ORIGIN: &str = "https://app.example.com";
/// One search of so many takes [`SLOW_SEARCH`].
const SLOW_ONE_OF: u32 = 16;
const SLOW_SEARCH: Duration = Duration::from_millis(500);
/// Requests of a second above which the small target refuses.
const SMALL_RATE: usize = 8;
/// `page` by gzip, without a time.
const GZIPPED: &[u8] = &[
    0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 0x2b, 0x48, 0x4c, 0x4f, 5, 0, 0x20, 0xb6, 0x0a, 0x14, 4,
    0, 0, 0,
];

pub(super) static MARKET: Scene = Scene {
    name: "market",
    config: CONFIG,
    pure_tests: PURE_TESTS,
    live_tests: LIVE_TESTS,
    upstreams,
    asks: &[
        Ask::new("sign in", |asked| {
            let answer = answer(asked, get("/login", &[CLOSE]), 200, "{\"user\":\"ann\"}")?;
            expect_field(&answer, "content-type", "application/json")?;
            expect_field(&answer, "set-cookie", "sid=1; HttpOnly")
        }),
        Ask::new("search", |asked| {
            let target = format!("/search/{0}?q={0}", asked.number);
            answer(asked, get(&target, &[CLOSE]), 200, &target).map(drop)
        }),
        Ask::new("upload", |asked| {
            let length = 1_000 + asked.number * 7_919 % 9_000;
            answer(asked, upload(length), 200, &length.to_string()).map(drop)
        }),
        Ask::new("prices", |asked| {
            let (language, price) = PRICES[asked.number as usize % 2];
            let request = get("/prices/1", &[CLOSE, ("accept-language", language)]);
            answer(asked, request, 200, price).map(drop)
        }),
        Ask::new("catalog", |asked| {
            answer(asked, get("/catalog", &[CLOSE]), 200, "catalog").map(drop)
        }),
        Ask::new("archive", |asked| {
            let request = get("/archive", &[CLOSE, ("accept-encoding", "gzip")]);
            let answer: Response = answer(asked, request, 200, "")?;
            expect_field(&answer, "content-encoding", "gzip")?;
            let is_whole = answer.body == GZIPPED;
            is_whole
                .then_some(())
                .ok_or_else(|| "another body".to_owned())
        }),
        Ask::new("items", items),
        Ask::new("admin", ask_admin),
        Ask::new("site", |asked| {
            let answer = answer(asked, get("/", &[CLOSE]), 200, "front")?;
            expect_field(&answer, "content-security-policy", "default-src 'self'")
        }),
        Ask::new("secure", ask_secure),
    ],
};

const PRICES: [(&str, &str); 2] = [("de", "1,00"), ("en", "1.00")];

/// Each client behind the balancer has an address of its own.
fn items(asked: &Asked<'_>) -> Result<(), String> {
    let client = format!("10.1.0.{}", asked.number % 100);
    let fields = [CLOSE, ("origin", ORIGIN), ("x-forwarded-for", &client)];
    let answer = answer(asked, get("/api/items", &fields), 200, "items")?;
    expect_field(&answer, "access-control-allow-origin", ORIGIN)
}

fn upload(length: u32) -> Vec<u8> {
    let mut request = format!(
        "POST /files HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    )
    .into_bytes();
    request.resize(request.len() + length as usize, b'x');
    request
}

fn upstreams() -> Vec<(&'static str, Upstream)> {
    let login = "HTTP/1.1 200 OK\r\nset-cookie: sid=1; HttpOnly\r\ncontent-type: application/json\r\n\
        content-length: 14\r\n\r\n{\"user\":\"ann\"}";
    let mut archive = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        GZIPPED.len()
    )
    .into_bytes();
    archive.extend_from_slice(GZIPPED);
    let files = Upstream::start(|served| {
        while let Some(request) = served.request() {
            served.send(ok(request.body.len().to_string()));
        }
    });
    let prices = Upstream::start(|served| {
        while let Some(request) = served.request() {
            let language = request.fields.get("accept-language").unwrap_or("en");
            let found = PRICES.iter().find(|(one, _)| *one == language);
            served.send(ok(found.map_or("", |(_, price)| price)));
        }
    });
    // The other sites of this server are as short.
    let catalog = Upstream::start(|served| {
        while let Some(request) = served.request() {
            let is_ours = request.fields.get("host") == Some("catalog.internal");
            served.send(ok(if is_ours { "catalog" } else { "default" }));
        }
    });
    // A server that has lost its database, and answers its own checks.
    let zombie = Upstream::start(|served| {
        while let Some(request) = served.request() {
            let is_check = request.target == "/ping";
            let broken = b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n".to_vec();
            served.send(if is_check { ok("pong") } else { broken });
        }
    });
    vec![
        ("login", Upstream::answering(login)),
        ("search", Upstream::start(searcher())),
        ("files", files),
        ("prices", prices),
        ("catalog", catalog),
        ("archive", Upstream::answering(archive)),
        ("api", Upstream::saying("items")),
        ("small", Upstream::start(small())),
        ("back", Upstream::saying("back")),
        ("front", Upstream::saying("front")),
        ("front2", Upstream::saying("front")),
        ("zombie", zombie),
    ]
}

/// Answers with the target, a few times late.
fn searcher() -> impl Fn(&mut Served) {
    let number = AtomicU32::new(0);
    move |served| {
        while let Some(request) = served.request() {
            if number
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(SLOW_ONE_OF)
            {
                pause(SLOW_SEARCH);
            }
            served.send(ok(request.target));
        }
    }
}

/// A target for a twentieth of the load.
fn small() -> impl Fn(&mut Served) {
    let since = Stopwatch::start();
    let newest = Mutex::new(VecDeque::new());
    move |served| {
        while served.request().is_some() {
            let now = since.elapsed();
            let mut newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
            newest.push_back(now);
            while newest
                .front()
                .is_some_and(|at| *at + Duration::from_secs(1) < now)
            {
                newest.pop_front();
            }
            let is_busy = SMALL_RATE < newest.len();
            drop(newest);
            let busy = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".to_vec();
            served.send(if is_busy { busy } else { ok("items") });
        }
    }
}

const CONFIG: &str = r#"
listeners {
    listener "main" { address "127.0.0.1:0"; trusted-proxies "127.0.0.0/8" }
    listener "secure" {
        address "127.0.0.1:0"
        protocol "https"
        tls { cert-file "certificates/@cert-good@.pem"; key-file "certificates/@cert-good@.key" }
    }
}
routes {
    route "login" { matches { path-prefix "/login" }; upstream "login" }
    route "search" { matches { path-prefix "/search" }; upstream "search" }
    route "files" {
        matches { path-prefix "/files" }
        upstream "files"
        policies { max-body-size "1MB" }
    }
    route "prices" { matches { path-prefix "/prices" }; upstream "prices" }
    route "catalog" {
        matches { path-prefix "/catalog" }
        upstream "catalog"
        policies { request-headers { set "Host" "catalog.internal" } }
    }
    route "archive" { matches { path-prefix "/archive" }; upstream "archive" }
    route "api" {
        matches { path-prefix "/api" }
        upstream "api"
        policies {
            rate-limit { requests-per-second 2; burst 10 }
            cors { allow-origins "https://app.example.com" }
        }
    }
    route "admin" { matches { path-prefix "/admin" }; upstream "back"; agents "guard" }
    route "site" {
        matches { path-prefix "/" }
        upstream "front"
        policies { response-headers { set "Content-Security-Policy" "default-src 'self'" } }
    }
}
upstreams {
    upstream "login" { target "@login@" }
    upstream "search" { target "@search@" }
    upstream "files" { target "@files@" }
    upstream "prices" { target "@prices@" }
    upstream "catalog" { target "@catalog@" }
    upstream "archive" { target "@archive@" }
    upstream "api" { target "@api@" weight=20; target "@small@" weight=1 }
    upstream "back" { target "@back@" }
    upstream "front" { target "@front@" }
}
agents { agent "guard" { failure-mode "closed" } }
"#;

const PURE_TESTS: &str = r#"
    test "the API" { request "GET" "/api/items"; expect { route "api"; upstream "api" } }
    test "the site" { request "GET" "/"; expect { route "site"; upstream "front" } }
    never "the back office without a login" { upstream "back"; without-agent "guard" }
"#;

/// None is about files, prices, the catalog and the archive.
const LIVE_TESTS: &str = r#"
    test "users sign in" { request "GET" "/login"; live #true; expect { answer-contains "ann" } }
    test "searches find" { request "GET" "/search/7?q=7"; live #true; expect { answer-contains "search" } }
    test "the API answers" { request "GET" "/api/items"; live #true; expect { answer-contains "items" } }
    test "the back office refuses strangers" { request "GET" "/admin/users"; live #true; expect { answer-status 403 } }
    test "the site answers" { request "GET" "/"; live #true; expect { answer-contains "front" } }
    test "the site answers by HTTPS" {
        request "GET" "https://shop.example.com/"
        live #true
        http2 #true
        expect { answer-contains "front"; certificate-days 7 }
    }
"#;
