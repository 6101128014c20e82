//! The reasons of differences between `HAProxy` and proxyd.

use crate::rule::{Rule, rule};

pub(super) const RULES: &[Rule] = &[
    rule(
        "`%2F`, dot segments and `//` in a path that another reading gives to another route",
        "paths",
        "",
        &["status 200 and 400"],
    ),
    rule(
        "escaped letters of a path",
        "paths",
        "%",
        &["sent x-part: api", "sent x-part: php"],
    ),
    rule(
        "`hdr(host)` for a `Host` with a port or a dot at its end",
        "hosts",
        "shop.test",
        &["sent x-part: shop"],
    ),
    rule(
        "`hdr(host)` without `-i`",
        "hosts",
        "WIKI.test",
        &["sent x-part: wiki"],
    ),
    rule(
        "`X-Forwarded-For`, `-Proto`, `-Host` without `option forwardfor`",
        "",
        "",
        &["sent x-forwarded-"],
    ),
    rule(
        "forwarding fields of clients that are not trusted",
        "",
        "orwarded",
        &["not sent x-forwarded-", "not sent forwarded"],
    ),
    rule(
        "`Via` of clients",
        "headers",
        "Via: 1.1 x",
        &["not sent via"],
    ),
    rule(
        "`Proxy` of clients",
        "headers",
        "Proxy: http",
        &["not sent proxy"],
    ),
    rule(
        "samples without a value here",
        "headers",
        "",
        &["not sent x-rand"],
    ),
    rule(
        "`redirect location` with a path",
        "redirects",
        "",
        &["lacks location: /", "has location: http://redirects.test/"],
    ),
    rule(
        "the port of `Host` in `redirect scheme`",
        "redirects",
        "redirects.test:",
        &[
            "lacks location: https://redirects.test:PORT",
            "has location: https://redirects.test/",
        ],
    ),
    rule(
        "a server that refuses connections",
        "",
        "/dead/",
        &["status 503 and 502"],
    ),
    rule(
        "a switch to WebSocket without `Sec-WebSocket-Accept`",
        "servers",
        "/ws ",
        &["status 502 and 101"],
    ),
    rule("`backup`", "servers", "/spare/", &["status 503 and 200"]),
    rule(
        "a backend without a server",
        "servers",
        "/none/",
        &["status 503 and 501"],
    ),
    rule(
        "`cookie` of a backend",
        "servers",
        "/sticky/",
        &["lacks set-cookie", "has set-cookie", "sent cookie"],
    ),
    rule("`Vary` with compression", "compression", "", &["has vary"]),
    rule(
        "compression of errors",
        "compression",
        "status=",
        &["has content-encoding", "body"],
    ),
    rule(
        "`Location` of a route with a rewrite",
        "rewrites",
        "/moved/",
        &["lacks location", "has location"],
    ),
    rule(
        "`deny` with a path and other networks",
        "office",
        "",
        &["status 200 and 501", "status 403 and 501"],
    ),
];
