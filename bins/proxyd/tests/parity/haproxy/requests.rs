//! The requests for each site of `HAProxy`.

use crate::exchange::{METHODS, Request};
use crate::servers::Servers;

pub(super) fn site_requests(site: &str, _: &Servers) -> Vec<Request> {
    match site {
        "access" => access("access.test"),
        "compression" => compression(),
        "errors" => errors(),
        "headers" => headers(),
        "hosts" => hosts(),
        "office" => access("office.test"),
        "paths" => paths(),
        "redirects" => redirects(),
        "rewrites" => rewrites(),
        "servers" => servers(),
        _ => Vec::new(),
    }
}

fn hosts() -> Vec<Request> {
    let mut all = Vec::new();
    for host in [
        "shop.test",
        "SHOP.test",
        "www.shop.test",
        "a.shop.test",
        "shop.test:@PORT",
        "shop.test.",
        "inner.test",
        "a.inner.test",
        "a.b.INNER.test",
        "xinner.test",
        "wiki.test",
        "WIKI.test",
        "other.test",
        "127.0.0.1",
    ] {
        for target in ["/", "/pages/a?b=c", "/pages", "/x%20y"] {
            all.push(Request::get(host, target));
        }
    }
    all
}

fn paths() -> Vec<Request> {
    const HOST: &str = "paths.test";
    let targets = [
        "/",
        "/exact",
        "/exact/",
        "/exact?a=b",
        "/EXACT",
        "/other",
        "/api",
        "/api/",
        "/api/users",
        "/API/users",
        "/api/users?x=1&y=2",
        "/apix",
        "/open",
        "/open/",
        "/openly",
        "/openly/a",
        "/a.php",
        "/A.PHP",
        "/dir/a.php?x=y",
        "/a.php/b",
        "/a.png",
        "/a.PNG",
        "/dir/b.jpg",
        "/b.jpeg",
        "/items/1",
        "/items/12345",
        "/items/",
        "/items/a",
        "/items/1/a",
        "/secret",
        "/a/secrets/b",
        "/a?secret",
        "/forms/a",
        "/api/a.php",
        "/open/a.png",
        "/items/1.php",
        "/api%2Fusers",
        "/%61pi/users",
        "/api//users",
        "//api/users",
        "/api/../x",
        "/x/../api/a",
        "/./api/a",
        "/a%2ephp",
        "/a;b=c.php",
        "/a%20b",
        "/a+b",
        "/a%25",
        "/a?b?c",
        "/?",
        "/a%zz",
        "/a%00b",
        "/a\\b",
        "/a#b",
        "/~a",
        "/*",
        "/'",
        "/a%C3%A9",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for method in METHODS {
        for target in ["/", "/exact", "/api/x?y=1", "/forms/a", "/items/7"] {
            all.push(Request::get(HOST, target).method(method));
        }
    }
    all.push(Request::get(HOST, "/forms/a").body(10));
    all.push(Request::get(HOST, "/api/a").body(20_000));
    all
}

fn headers() -> Vec<Request> {
    const HOST: &str = "headers.test";
    let mut all = Vec::new();
    for target in ["/", "/own/", "/own/a?b=c"] {
        all.push(Request::get(HOST, target));
        for (name, value) in [
            ("X-Real-IP", "10.0.0.1"),
            ("X-Method", "forged"),
            ("X-Path", "forged"),
            ("X-Host", "forged"),
            ("X-Set", "forged"),
            ("X-Added", "mine"),
            ("X-Debug", "1"),
            ("X-Rand", "1"),
            ("X-Own", "mine"),
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
            ("Referer", "http://headers.test/x"),
            ("X-Empty", ""),
            ("X-Long", &"a".repeat(5_000)),
        ] {
            all.push(Request::get(HOST, target).field(name, value));
        }
    }
    for target in [
        "/?field=X-Frame-Options:SAMEORIGIN",
        "/?field=X-More:theirs",
        "/?field=Server:app",
        "/?field=Via:1.1%20app",
        "/?status=404",
        "/?status=500",
        "/own/?status=503",
        "/?field=Set-Cookie:a%3Db",
    ] {
        all.push(Request::get(HOST, target));
    }
    all
}

fn redirects() -> Vec<Request> {
    const HOST: &str = "redirects.test";
    let targets = [
        "/",
        "/away",
        "/away?x=y",
        "/there",
        "/there?x=y",
        "/old/",
        "/old/a?b=c",
        "/secure/",
        "/secure/a?b=c",
        "/login",
        "/login?next=/",
        "/found/",
        "/found/a?b=c",
        "/query",
        "/query?a=b",
        "/text",
        "/text?x",
        "/nothing",
        "/missing",
        "/gone/",
        "/gone/a",
    ];
    let mut all = Request::get_all(HOST, &targets);
    all.extend(Request::get_all(
        "apex.test",
        &["/", "/a?b=c", "/old/a", "/away", "/text", "/login"],
    ));
    for method in ["HEAD", "POST"] {
        for target in ["/away", "/old/a", "/login", "/text", "/gone/a"] {
            all.push(Request::get(HOST, target).method(method));
        }
    }
    all.push(Request::get("redirects.test:@PORT", "/secure/a"));
    all
}

fn rewrites() -> Vec<Request> {
    const HOST: &str = "rewrites.test";
    let targets = [
        "/",
        "/fixed/",
        "/fixed/a?b=c",
        "/cut/",
        "/cut/a",
        "/cut/a/b?c=d",
        "/cut/%20",
        "/moved/",
        "/moved/a?b=c",
        "/named/",
        "/named/a?b=c",
        "/a?b=c",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for target in [
        "/named/?status=302&field=Location:http://inner.test/x",
        "/moved/?status=302&field=Location:/new/x",
        "/?status=302&field=Location:/x",
    ] {
        all.push(Request::get(HOST, target));
    }
    all
}

fn access(host: &'static str) -> Vec<Request> {
    let targets = [
        "/",
        "/admin/",
        "/admin/users?x",
        "/admin",
        "/ADMIN/",
        "/here/",
        "/here/a",
        "/hidden/",
        "/hidden/a",
        "/.env",
        "/.env/a",
        "/admin/../x",
        "/x/../admin/",
        "/%61dmin/",
        "//admin/",
    ];
    let mut all = Request::get_all(host, &targets);
    all.push(Request::get(host, "/").method("TRACE"));
    for method in METHODS {
        for target in ["/", "/admin/a", "/hidden/a"] {
            all.push(Request::get(host, target).method(method));
        }
    }
    let forged = Request::get(host, "/admin/").field("X-Forwarded-For", "10.0.0.1");
    all.push(forged);
    all
}

fn servers() -> Vec<Request> {
    const HOST: &str = "servers.test";
    let mut all = Vec::new();
    for target in [
        "/", "/two/", "/two/b", "/spare/", "/spare/b", "/dead/", "/none/", "/sticky/",
    ] {
        all.push(Request::get(HOST, target));
        all.push(Request::get(HOST, target).method("HEAD"));
    }
    all.push(Request::get(HOST, "/two/").body(10));
    all.push(Request::get(HOST, "/sticky/").field("Cookie", "SRV=one"));
    let upgrade = Request::get(HOST, "/ws").field("Upgrade", "websocket");
    let upgrade = upgrade
        .field("Connection", "Upgrade")
        .field("Sec-WebSocket-Version", "13");
    all.push(upgrade.field("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="));
    all
}

fn errors() -> Vec<Request> {
    const HOST: &str = "errors.test";
    let mut all = Request::get_all(HOST, &["/", "/dead/", "/?status=503", "/?status=404"]);
    for accept in ["text/html", "application/json", "*/*"] {
        all.push(Request::get(HOST, "/dead/").field("Accept", accept));
    }
    all
}

fn compression() -> Vec<Request> {
    const HOST: &str = "compression.test";
    let mut all = Vec::new();
    for target in [
        "/?size=500",
        "/?size=10",
        "/?size=500&type=text/html",
        "/?size=500&type=application/json",
        "/?size=500&field=Content-Encoding:br",
        "/?size=500&field=ETag:%22a%22",
        "/?size=500&status=404",
        "/?size=500&status=500",
        "/?size=500&field=Cache-Control:no-transform",
        "/?size=5000",
    ] {
        for coding in ["gzip", "br, gzip", "gzip;q=0", "identity"] {
            all.push(Request::get(HOST, target).field("Accept-Encoding", coding));
        }
        all.push(Request::get(HOST, target));
    }
    all
}
