//! The requests for each site of Caddy.

use crate::exchange::{ANN, METHODS, OTHER, Request};
use crate::servers::Servers;

pub(super) fn site_requests(site: &str, _: &Servers) -> Vec<Request> {
    match site {
        "access" => access(),
        "encode" => encode(),
        "errors" => errors(),
        "files" => files(),
        "headers" => headers(),
        "matchers" => matchers(),
        "paths" => paths(),
        "proxies" => proxies(),
        "redirects" => redirects(),
        "rewrites" => rewrites(),
        _ => Vec::new(),
    }
}

fn paths() -> Vec<Request> {
    const HOST: &str = "paths.test";
    let targets = [
        "/",
        "/exact",
        "/exact/",
        "/exact?a=b",
        "/EXACT",
        "/api",
        "/api/",
        "/api/users?x=1&y=2",
        "/API/users",
        "/apix",
        "/open",
        "/open/a",
        "/openly",
        "/OPEN",
        "/cut",
        "/cut/",
        "/cut/a?b=c",
        "/cut/a%20b",
        "/CUT/a",
        "/cuts",
        "/away/",
        "/away/a?b=c",
        "/away",
        "/x",
        "/api%2Fusers",
        "/%61pi/users",
        "/api//users",
        "//api/users",
        "/api/../x",
        "/x/../api/a",
        "/api/./a",
        "/a%2Fb",
        "/a;b=c",
        "/a+b",
        "/a%25",
        "/a?b?c",
        "/?",
        "/a%zz",
        "/a%00b",
        "/a#b",
        "/~a",
        "/*",
        "/'",
        "/a%C3%A9",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for method in METHODS {
        for target in ["/", "/exact", "/api/x?y=1", "/cut/a"] {
            all.push(Request::get(HOST, target).method(method));
        }
    }
    for host in ["PATHS.test", "paths.test:@PORT", "none.test"] {
        all.push(Request::get(host, "/api/a"));
    }
    all.push(Request::get(HOST, "/api/a").body(20_000));
    all
}

fn matchers() -> Vec<Request> {
    const HOST: &str = "matchers.test";
    let targets = [
        "/",
        "/?mode=a",
        "/?mode=b",
        "/?mode=a&mode=b",
        "/?x=1&mode=a",
        "/items/1",
        "/items/123",
        "/items/a",
        "/both/a",
        "/both/",
        "/both",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for method in METHODS {
        for target in ["/", "/both/a", "/items/1"] {
            all.push(Request::get(HOST, target).method(method));
        }
    }
    for (name, value) in [
        ("X-Beta", "yes"),
        ("X-Beta", "YES"),
        ("X-Beta", "no"),
        ("X-Tag", "a"),
        ("X-Tag", ""),
    ] {
        for target in ["/", "/both/a"] {
            all.push(Request::get(HOST, target).field(name, value));
        }
    }
    for host in [
        "other.test",
        "OTHER.test",
        "hosts.test",
        "a.hosts.test",
        "a.b.hosts.test",
        "xhosts.test",
        "127.0.0.1",
    ] {
        all.extend(Request::get_all(host, &["/", "/a?b=c"]));
    }
    all
}

fn headers() -> Vec<Request> {
    const HOST: &str = "headers.test";
    let mut all = Request::get_all(HOST, &["/", "/a/b?c=d", "/a%20b"]);
    for (name, value) in [
        ("X-Set", "forged"),
        ("X-Debug", "1"),
        ("X-Real-IP", "10.0.0.1"),
        ("X-Method", "forged"),
        ("X-Removed", "1"),
        ("X-Added", "mine"),
        ("X-Unknown", "forged"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "forged.test"),
        ("Forwarded", "for=192.0.2.1"),
        ("X_Under", "score"),
        ("TE", "trailers"),
        ("Via", "1.1 x"),
        ("Proxy", "http"),
        ("Cookie", "a=b; c=d"),
        ("Accept-Encoding", "gzip"),
        ("User-Agent", "curl/8"),
        ("X-Empty", ""),
        ("X-Long", &"a".repeat(5_000)),
    ] {
        all.push(Request::get(HOST, "/").field(name, value));
    }
    all.extend(Request::get_all(
        HOST,
        &[
            "/?field=X-Frame-Options:SAMEORIGIN",
            "/?field=X-More:theirs",
            "/?field=X-Down:theirs",
            "/?field=Server:app",
            "/?field=Via:1.1%20app",
            "/?status=404",
            "/?status=500",
            "/?field=Set-Cookie:a%3Db",
        ],
    ));
    all
}

fn redirects() -> Vec<Request> {
    const HOST: &str = "redirects.test";
    let targets = [
        "/",
        "/old",
        "/old?a=b",
        "/old/",
        "/OLD",
        "/old-permanent",
        "/away",
        "/away?x",
        "/see",
        "/html",
        "/docs/",
        "/docs/a?b=c",
        "/docs",
        "/text",
        "/text?x",
        "/gone",
        "/GONE",
        "/teapot",
        "/nothing",
        "/error",
        "/abort",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for host in [
        "www.redirects.test",
        "secure.test",
        "fixed.test",
        "secure.test:@PORT",
    ] {
        all.extend(Request::get_all(host, &["/", "/a?b=c", "/a%20b"]));
    }
    for method in ["HEAD", "POST"] {
        for target in ["/old", "/docs/a", "/text", "/gone"] {
            all.push(Request::get(HOST, target).method(method));
        }
    }
    all
}

fn rewrites() -> Vec<Request> {
    let mut all = Vec::new();
    for host in [
        "all.test",
        "added.test",
        "strip.test",
        "some.test",
        "nested.test",
    ] {
        all.extend(Request::get_all(
            host,
            &[
                "/",
                "/a/b?c=d",
                "/app",
                "/app/",
                "/app/a?b=c",
                "/apple",
                "/old",
                "/old?x=y",
                "/v1/",
                "/v1/a?b=c",
                "/v1",
                "/a%20b",
                "/?status=302&field=Location:/inner/x",
                "/?field=Set-Cookie:a%3Db;Path%3D/inner",
            ],
        ));
    }
    all
}

fn access() -> Vec<Request> {
    let mut all = Vec::new();
    for host in [
        "tools.test",
        "office.test",
        "here.test",
        "not-here.test",
        "part.test",
        "login.test",
    ] {
        for target in ["/", "/admin/a", "/health", "/a?b=c"] {
            all.push(Request::get(host, target));
            for credentials in [ANN, OTHER, "Bearer x"] {
                all.push(Request::get(host, target).field("Authorization", credentials));
            }
        }
        all.push(Request::get(host, "/").field("X-Forwarded-For", "10.0.0.1"));
        all.push(Request::get(host, "/").field("X-User", "forged"));
        all.push(Request::get(host, "/").field("X-Powered-By", "forged"));
    }
    all
}

fn files() -> Vec<Request> {
    let mut all = Vec::new();
    for host in ["files.test", "spa.test", "mixed.test"] {
        all.extend(Request::get_all(
            host,
            &[
                "/",
                "/index.html",
                "/assets/a.css",
                "/assets/b.js",
                "/assets/",
                "/assets",
                "/dir",
                "/dir/",
                "/spa/",
                "/a%20b.txt",
                "/data.json",
                "/favicon.ico",
                "/.secret",
                "/none",
                "/none.html",
                "/assets/none.css",
                "/api/a",
                "/assets/../data.json",
                "/assets//a.css",
                "/data.json?x",
                "/data.json/",
            ],
        ));
    }
    for (name, value) in [
        ("Range", "bytes=0-9"),
        ("Range", "bytes=5-"),
        ("Range", "bytes=99999-"),
        ("If-Modified-Since", "Fri, 31 Dec 2100 00:00:00 GMT"),
        ("If-None-Match", "\"x\""),
        ("Accept-Encoding", "gzip"),
    ] {
        all.push(Request::get("files.test", "/assets/b.js").field(name, value));
    }
    for method in METHODS {
        all.push(Request::get("files.test", "/data.json").method(method));
    }
    all
}

fn encode() -> Vec<Request> {
    const HOST: &str = "encode.test";
    let mut all = Vec::new();
    for target in [
        "/?size=5000",
        "/?size=500",
        "/?size=5000&type=text/html",
        "/?size=5000&type=image/png",
        "/?size=5000&type=application/json",
        "/?size=5000&field=Content-Encoding:br",
        "/?size=5000&field=ETag:%22a%22",
        "/?size=5000&status=404",
        "/?size=5000&status=500",
    ] {
        for coding in ["gzip", "br, gzip", "gzip;q=0", "identity"] {
            all.push(Request::get(HOST, target).field("Accept-Encoding", coding));
        }
        all.push(Request::get(HOST, target));
    }
    all
}

fn errors() -> Vec<Request> {
    let mut all = Vec::new();
    for host in ["errors.test", "text.test"] {
        for target in ["/", "/dead/", "/?status=404", "/?status=502"] {
            all.push(Request::get(host, target));
            all.push(Request::get(host, target).field("Accept", "text/html"));
        }
    }
    all
}

fn proxies() -> Vec<Request> {
    let mut all = Request::get_all(
        "proxies.test",
        &[
            "/",
            "/two/",
            "/two/a",
            "/two/b",
            "/dead/",
            "/named/a",
            "/inner/a?b=c",
        ],
    );
    all.push(Request::get(
        "proxies.test",
        "/inner/?status=302&field=Location:http://inner.test/x",
    ));
    for size in [10, 999, 1_000, 1_001, 1_024, 1_025, 20_000] {
        all.push(Request::get("bodies.test", "/").body(size));
    }
    let upgrade = Request::get("proxies.test", "/ws").field("Upgrade", "websocket");
    let upgrade = upgrade
        .field("Connection", "Upgrade")
        .field("Sec-WebSocket-Version", "13");
    all.push(upgrade.field("Sec-WebSocket-Key", "eA=="));
    all
}
