//! The requests for each site of nginx.

use crate::exchange::{ANN, METHODS, OTHER, Request};
use crate::servers::Servers;

pub(super) fn site_requests(site: &str, servers: &Servers) -> Vec<Request> {
    match site {
        "access" => access(),
        "application" => application(),
        "cache" => cache(),
        "errors" => errors(),
        "files" => files(),
        "gzip" => gzip(),
        "headers" => headers(),
        "limits" => limits(),
        "locations" => locations(),
        "real-ip" => real_ip(),
        "redirects" => redirects(servers),
        "rewrites" => rewrites(),
        "upstreams" => upstreams(),
        _ => Vec::new(),
    }
}

#[expect(clippy::too_many_lines, reason = "a table of requests")]
fn locations() -> Vec<Request> {
    const HOST: &str = "shop.test";
    let targets = [
        "/",
        "/exact",
        "/exact/",
        "/exact?a=b",
        "/EXACT",
        "/x",
        "/api",
        "/api/",
        "/api/users",
        "/api/users?x=1&y=2",
        "/apix",
        "/api%2Fusers",
        "/api//users",
        "/api/../x",
        "/api/./users",
        "/plain",
        "/plain/",
        "/plainer",
        "/plain/a%20b",
        "/cut",
        "/cut/",
        "/cut/a",
        "/cuts",
        "/static",
        "/static/",
        "/static/a",
        "/static/a.php",
        "/static/deep/",
        "/static/deep/a",
        "/static/deep/a.php",
        "/static/open/a",
        "/static/open/a.php",
        "/static/open/a.png",
        "/static/deep/x/y.jpeg",
        "/a.php",
        "/A.PHP",
        "/a.png",
        "/a.PNG",
        "/a.jpeg",
        "/a.php/b",
        "/nested",
        "/nested/a",
        "/nested/a.inc",
        "/nested/b/a.inc",
        "/nested/a.php",
        "/a.inc",
        "/other/a.inc",
        "/a%2ephp",
        "/%61pi/users",
        "/st%61tic/a",
        "//static/a",
        "/static//a",
        "/a;b=c",
        "/a%3Bb",
        "/api/a%2Fb",
        "/api/%C3%A9",
        "/api/?",
        "/?",
        "/api?x",
        "/api/%zz",
        "/a%00b",
        "/..",
        "/../x",
        "/a/../../x",
        "/a/..%2f..",
        "/a%5Cb",
        "/a+b",
        "/a%2Bb",
        "/a%25",
        "/*",
        "/~user",
        "/a#b",
        "/a?b#c",
        "/a??b",
        "/a?b=%00",
        "/'",
        "/%7Ea",
        "/a%09b",
        "/a%20",
        "/api/a.php",
        "/plain.php",
        "/x/y/z.php?q=.png",
        "/x.png?y.php",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for method in METHODS {
        for target in [
            "/",
            "/exact",
            "/api",
            "/api/x?y=1",
            "/plain/x",
            "/static/a.php",
            "/a.php",
        ] {
            all.push(Request::get(HOST, target).method(method));
        }
    }
    for host in [
        "SHOP.test",
        "shop.test:@PORT",
        "shop.test.",
        "other.test",
        "shop.test:1",
        "127.0.0.1",
    ] {
        for target in ["/x", "/api/x", "/plain"] {
            all.push(Request::get(host, target));
        }
    }
    all
}

#[expect(clippy::too_many_lines, reason = "a table of requests")]
fn rewrites() -> Vec<Request> {
    const HOST: &str = "pages.test";
    let targets = [
        "/",
        "/old-page",
        "/old-page?a=b",
        "/old-pages",
        "/old-page/",
        "/moved/a/b",
        "/moved/a?q=1",
        "/moved",
        "/moved/",
        "/gone-to/x",
        "/gone-to/x?y",
        "/blog/12/name",
        "/blog/x/name",
        "/break/a",
        "/break/a?b=c",
        "/break/",
        "/last/a",
        "/landed/x",
        "/landed/x?y",
        "/landed",
        "/redirect/a",
        "/redirect/a?b=c",
        "/redirect/",
        "/permanent/a?b",
        "/permanent/a/b/c",
        "/teapot",
        "/text",
        "/text?a",
        "/json",
        "/nothing",
        "/there",
        "/there?a=b",
        "/away",
        "/away?a=b",
        "/away-host",
        "/away-host?x=y",
        "/all/",
        "/all/x?y",
        "/all/x/y",
        "/allx",
        "/post",
        "/post?a=b",
        "/closed",
        "/slash",
        "/slash/x",
        "/slash?x",
        "/moved/a%20b",
        "/redirect/a%20b",
        "/redirect/%C3%A9",
        "/permanent//a",
        "/break/a%2Fb",
        "/break/a%20b",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for method in ["HEAD", "POST", "PUT", "DELETE"] {
        for target in [
            "/there",
            "/post",
            "/away",
            "/json",
            "/nothing",
            "/old-page",
            "/break/a",
        ] {
            all.push(Request::get(HOST, target).method(method));
        }
    }
    let others = [
        "/",
        "/a/b?c=d",
        "/a%20b",
        "/a//b",
        "/a?",
        "/old-page",
        "/text",
    ];
    all.extend(Request::get_all("www.pages.test", &others));
    all
}

fn files() -> Vec<Request> {
    const HOST: &str = "files.test";
    const FILE: &str = "/assets/b.js";
    let targets = [
        "/",
        "/index.html",
        "/dir",
        "/dir/",
        "/dir/index.html",
        "/none",
        "/none/",
        "/assets",
        "/assets/",
        "/assets/a.css",
        "/assets/a.css?v=1",
        "/assets/b.js",
        "/spa/",
        "/spa",
        "/spa/x/y",
        "/spa/index.html",
        "/alias/a.css",
        "/alias/",
        "/alias",
        "/alias/none",
        "/shared/a.css",
        "/shared/none",
        "/favicon.ico",
        "/.secret",
        "/.well-known/x",
        "/dir/.x",
        "/never/x",
        "/a%20b.txt",
        "/data.json",
        "/%2e/x",
        "/assets/%2e%2e/index.html",
        "/assets/../index.html",
        "/index.html/",
        "/assets/a.css/",
        "/404.html",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for method in METHODS {
        all.push(Request::get(HOST, "/assets/a.css").method(method));
    }
    for range in [
        "0-9", "-5", "2990-", "3000-", "5-2", "0-0,5-6", "x", "0-", "-0",
    ] {
        let range = format!("bytes={range}");
        all.push(Request::get(HOST, FILE).field("Range", &range));
    }
    for (name, value) in [
        ("If-Modified-Since", "Sun, 01 Jan 2040 00:00:00 GMT"),
        ("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),
        ("If-Modified-Since", "x"),
        ("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),
        ("If-None-Match", "*"),
        ("If-None-Match", "\"x\""),
        ("If-Match", "\"x\""),
        ("If-Match", "*"),
        ("If-Range", "\"x\""),
        ("Accept-Encoding", "gzip"),
        ("Accept", "text/html"),
    ] {
        all.push(Request::get(HOST, FILE).field(name, value));
    }
    all
}

fn headers() -> Vec<Request> {
    const HOST: &str = "headers.test";
    let targets = [
        "/",
        "/?status=201",
        "/?status=204",
        "/?status=301&field=Location:/x",
        "/?status=403",
        "/?status=404",
        "/?status=500",
        "/?status=503",
        "/own/",
        "/own/?status=404",
        "/set/",
        "/only-real/",
        "/?field=X-Powered-By:x",
        "/?field=Server:x",
        "/?field=X-Accel-Redirect:/y",
        "/?field=Set-Cookie:a%3Db&field=Set-Cookie:c%3Dd",
        "/?field=X-Outer:upstream",
        "/?field=Via:1.1%20x",
        "/?field=Age:5",
    ];
    let mut all = Request::get_all(HOST, &targets);
    let long = [3_000, 5_000, 7_000, 9_000].map(|length| "a".repeat(length));
    for (name, value) in [
        ("Cookie", "a=b"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Real-IP", "192.0.2.1"),
        ("Forwarded", "for=192.0.2.1"),
        ("X_Under", "1"),
        ("X-Empty", ""),
        ("Accept-Encoding", "gzip"),
        ("TE", "trailers"),
        ("Proxy", "http://evil.test"),
        ("Referer", "http://a.test/"),
        ("User-Agent", "test"),
        ("Via", "1.1 x"),
        ("Authorization", OTHER),
        ("If-None-Match", "\"a\""),
        ("Range", "bytes=0-1"),
        ("Accept", "text/html"),
        ("Origin", "http://a.test"),
        ("Content-Type", "text/plain"),
    ] {
        for target in ["/", "/set/"] {
            all.push(Request::get(HOST, target).field(name, value));
        }
    }
    for value in &long {
        all.push(Request::get(HOST, "/").field("X-Long", value));
    }
    for count in [50, 90, 120] {
        let request = Request::get(HOST, "/");
        let request = (0..count).fold(request, |it, at| it.field(&format!("X-{at}"), "a"));
        all.push(request);
    }
    let twice = Request::get(HOST, "/").field("X-Twice", "1");
    all.push(twice.field("X-Twice", "2"));
    for method in METHODS {
        all.push(Request::get(HOST, "/own/").method(method));
    }
    all
}

fn redirects(servers: &Servers) -> Vec<Request> {
    const HOST: &str = "portal.test";
    let target = servers.target();
    let locations = [
        "/x".to_owned(),
        "/inner/y".to_owned(),
        "inner/relative".to_owned(),
        format!("http://{target}/inner/z"),
        format!("http://{target}/q"),
        format!("//{target}/inner/p"),
        format!("http://{}/", servers.closed()),
        "http://portal.test/inner/w".to_owned(),
        "http://legacy.test/a".to_owned(),
        "https://other.test/".to_owned(),
    ];
    let mut all = Vec::new();
    for path in ["/", "/app/", "/off/", "/given/"] {
        for location in &locations {
            let target = format!("{path}?status=302&field=Location:{location}");
            all.push(Request::get(HOST, &target));
        }
    }
    for cookie in [
        "a=b; Path=/",
        "a=b; Path=/sub",
        "a=b; Domain=app.test; Path=/",
        "a=b",
        "a=b; Domain=.app.test",
        "a=b; Domain=127.0.0.1",
        "a=b; Path=/inner/",
    ] {
        let cookie = cookie.replace(' ', "%20").replace('=', "%3D");
        for path in ["/cookies/", "/app/", "/"] {
            let target = format!("{path}?field=Set-Cookie:{cookie}");
            all.push(Request::get(HOST, &target));
        }
    }
    let refresh = format!("/app/?field=Refresh:5;%20url%3Dhttp://{target}/inner/");
    all.push(Request::get(HOST, &refresh));
    all.push(Request::get(
        HOST,
        "/app/?status=201&field=Location:/inner/made",
    ));
    all
}

fn access() -> Vec<Request> {
    const HOST: &str = "access.test";
    let targets = [
        "/",
        "/office/",
        "/office",
        "/officex",
        "/here/",
        "/here/x",
        "/not-here/",
        "/wiki/",
        "/any/",
        "/read/",
        "/office/../here/",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for credentials in [ANN, OTHER, "Basic", "Bearer x"] {
        for target in ["/wiki/", "/wiki/a", "/"] {
            all.push(Request::get(HOST, target).field("Authorization", credentials));
        }
    }
    all.push(Request::get(HOST, "/office/").field("X-Forwarded-For", "10.1.1.1"));
    for method in ["HEAD", "POST"] {
        all.push(Request::get(HOST, "/read/").method(method));
    }
    all
}

fn limits() -> Vec<Request> {
    const HOST: &str = "limits.test";
    let mut all = Vec::new();
    for (target, bytes) in [
        ("/", 1_024),
        ("/", 1_025),
        ("/big/", 10_240),
        ("/big/", 10_241),
        ("/open/", 70_000),
    ] {
        all.push(Request::get(HOST, target).body(bytes));
    }
    let targets = [
        "/slow/",
        "/slow/",
        "/burst/",
        "/burst/",
        "/burst/",
        "/burst/",
        "/connections/",
    ];
    all.extend(Request::get_all(HOST, &targets));
    all
}

fn cache() -> Vec<Request> {
    const HOST: &str = "cache.test";
    let twice = [
        "/a",
        "/a?x",
        "/c?field=Cache-Control:max-age%3D60",
        "/c2?field=Cache-Control:no-store",
        "/c3?field=Set-Cookie:a%3Db",
        "/n?status=404",
        "/r?status=302&field=Location:/x",
        "/e?status=500",
        "/p?field=Cache-Control:private",
        "/ex?field=X-Accel-Expires:60",
        "/bypass/a",
        "/off/a",
        "/stale/a",
        "/z?field=Cache-Control:max-age%3D0",
        "/s?field=Cache-Control:s-maxage%3D60",
    ];
    let mut all = Vec::new();
    for target in twice {
        all.extend(Request::get_all(HOST, &[target, target]));
    }
    for method in ["HEAD", "POST"] {
        all.push(Request::get(HOST, "/a").method(method));
    }
    for language in ["a", "b", "a"] {
        let target = "/v?field=Vary:X-Lang&field=Cache-Control:max-age%3D60";
        all.push(Request::get(HOST, target).field("X-Lang", language));
    }
    for (name, value) in [
        ("Cookie", "a=b"),
        ("Authorization", ANN),
        ("Cache-Control", "no-cache"),
        ("Pragma", "no-cache"),
        ("Range", "bytes=0-3"),
    ] {
        for target in ["/k", "/k", "/c?field=Cache-Control:max-age%3D60"] {
            all.push(Request::get(HOST, target).field(name, value));
        }
    }
    all.push(Request::get(HOST, "/bypass/a").field("Cookie", "session=1"));
    let tagged = "/t?field=ETag:%22x%22&field=Cache-Control:max-age%3D60";
    all.push(Request::get(HOST, tagged));
    all.push(Request::get(HOST, tagged).field("If-None-Match", "\"x\""));
    all
}

fn gzip() -> Vec<Request> {
    const HOST: &str = "gzip.test";
    let mut all = Vec::new();
    for target in [
        "/?size=500",
        "/?size=50",
        "/?size=500&type=text/html",
        "/?size=500&type=image/png",
        "/?size=500&type=application/json",
        "/?size=500&field=Content-Encoding:br",
        "/none/?size=500",
        "/?size=500&field=ETag:%22a%22",
        "/?size=500&status=404",
        "/?size=500&status=500",
        "/?size=500&type=text/plain;charset%3Dutf-8",
        "/?size=5000",
    ] {
        for coding in ["gzip", "br, gzip", "gzip;q=0", "identity"] {
            all.push(Request::get(HOST, target).field("Accept-Encoding", coding));
        }
        all.push(Request::get(HOST, target));
    }
    let head = Request::get(HOST, "/?size=500").method("HEAD");
    all.push(head.field("Accept-Encoding", "gzip"));
    all
}

fn upstreams() -> Vec<Request> {
    let mut all = Request::get_all(
        "app.test",
        &["/", "/failing/a", "/failing/b", "/dead/a", "/named/a"],
    );
    for host in [
        "a.app.test",
        "a.b.app.test",
        "xapp.test",
        "app.test:@PORT",
        "APP.test",
    ] {
        all.push(Request::get(host, "/"));
    }
    all.push(Request::get("app.test", "/failing/b").body(10));
    let upgrade = Request::get("app.test", "/ws").field("Upgrade", "websocket");
    let upgrade = upgrade
        .field("Connection", "Upgrade")
        .field("Sec-WebSocket-Version", "13");
    all.push(upgrade.field("Sec-WebSocket-Key", "eA=="));
    all
}

fn errors() -> Vec<Request> {
    const HOST: &str = "errors.test";
    let targets = [
        "/",
        "/dead/",
        "/?status=404",
        "/?status=502",
        "/intercept/?status=404",
        "/intercept/",
        "/50x.html",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for accept in ["text/html", "application/json"] {
        all.push(Request::get(HOST, "/dead/").field("Accept", accept));
    }
    all
}

fn real_ip() -> Vec<Request> {
    const HOST: &str = "real.test";
    let mut all = Request::get_all(HOST, &["/", "/office/"]);
    for forwarded in [
        "10.1.1.1",
        "192.0.2.9, 10.1.1.1",
        "10.1.1.1, 192.0.2.9",
        "x",
    ] {
        for target in ["/", "/office/"] {
            all.push(Request::get(HOST, target).field("X-Forwarded-For", forwarded));
        }
    }
    for tenant in ["a", "b"] {
        all.push(Request::get(HOST, "/").field("X-Tenant", tenant));
    }
    all
}

fn application() -> Vec<Request> {
    const HOST: &str = "rails.test";
    let targets = [
        "/",
        "/users/1?x",
        "/assets/a.css",
        "/data.json",
        "/none.html",
        "/?status=500",
        "/r?status=302&field=Location:/x",
        "/assets/none.css",
    ];
    let mut all = Request::get_all(HOST, &targets);
    for method in METHODS {
        all.push(Request::get(HOST, "/users").method(method));
    }
    all
}
