//! The reasons of differences between nginx and proxyd.

use crate::exchange::Request;

/// A reason, by the requests and the differences that it explains.
pub(crate) struct Rule {
    /// Its row on the page of differences.
    pub(crate) row: &'static str,
    /// The site; empty for all.
    site: &'static str,
    /// A part of the request as it is shown.
    request: &'static str,
    /// Beginnings of the differences.
    differences: &'static [&'static str],
}

impl Rule {
    pub(crate) fn holds(&self, site: &str, request: &Request, difference: &str) -> bool {
        let is_of_site = self.site.is_empty() || self.site == site;
        let mut beginnings = self.differences.iter();
        is_of_site
            && request.to_string().contains(self.request)
            && beginnings.any(|it| difference.starts_with(it))
    }
}

const fn rule(
    row: &'static str,
    site: &'static str,
    request: &'static str,
    differences: &'static [&'static str],
) -> Rule {
    Rule {
        row,
        site,
        request,
        differences,
    }
}

pub(crate) const RULES: &[Rule] = &[
    rule(
        "`#` in a request target",
        "locations",
        "#b",
        &["status 200 and 400"],
    ),
    rule(
        "`%2F`, dot segments and `//` in a path that another reading gives to another route",
        "locations",
        "",
        &[
            "status 200 and 400",
            "status 404 and 400",
            "status 403 and 400",
        ],
    ),
    rule(
        "`%2F`, dot segments and `//` in a path that another reading gives to another route",
        "files",
        "",
        &[
            "status 200 and 400",
            "status 404 and 400",
            "status 403 and 400",
        ],
    ),
    rule(
        "`%2F`, dot segments and `//` in a path that another reading gives to another route",
        "access",
        "",
        &[
            "status 200 and 400",
            "status 404 and 400",
            "status 403 and 400",
        ],
    ),
    rule(
        "`location /api`, without a slash at its end, for `/apix`",
        "locations",
        "/plainer",
        &["not sent host", "sent host"],
    ),
    rule(
        "`location /api`, without a slash at its end, for `/apix`",
        "locations",
        "/cuts",
        &["body", "sent GET", "not sent host", "sent host"],
    ),
    rule(
        "escaped slashes in a path that is replaced",
        "",
        "%2F",
        &["body", "sent GET"],
    ),
    rule(
        "a `?` without a query",
        "locations",
        "?",
        &["body", "sent GET /v2/", "sent GET /home"],
    ),
    rule(
        "`$host` in `Host`",
        "locations",
        "SHOP.test",
        &["not sent host", "sent host"],
    ),
    rule(
        "`$host` in `Host`",
        "locations",
        "shop.test:",
        &["not sent host", "sent host"],
    ),
    rule(
        "`$host` in `Host`",
        "locations",
        "shop.test. ",
        &["not sent host", "sent host"],
    ),
    rule(
        "`X-Forwarded-For`, `-Proto`, `-Host` without a directive",
        "",
        "",
        &["sent x-forwarded-"],
    ),
    rule(
        "forwarding fields of clients that are not trusted",
        "headers",
        "orwarded",
        &["not sent x-forwarded-", "not sent forwarded"],
    ),
    rule(
        "forwarding fields of clients that are not trusted",
        "headers",
        "/set/ X-Real-IP",
        &["not sent x-real-ip"],
    ),
    rule(
        "forwarding fields of trusted proxies",
        "real-ip",
        "X-Forwarded-For",
        &["not sent x-forwarded-for"],
    ),
    rule(
        "fields with `_` in their names",
        "headers",
        "X_Under",
        &["sent x_under"],
    ),
    rule("`TE: trailers`", "headers", "TE: trailers", &["sent te"]),
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
        "long and many header fields",
        "headers",
        "X-Long",
        &["status 400 and 429"],
    ),
    rule(
        "long and many header fields",
        "headers",
        "X-0: a",
        &["status 200 and 429"],
    ),
    rule("values of `map`", "real-ip", "", &["not sent x-tenant"]),
    rule(
        "the server's port in `Location`",
        "access",
        "",
        &[
            "lacks location: http://access.test:PORT",
            "has location: http://access.test/",
        ],
    ),
    rule(
        "the server's port in `Location`",
        "locations",
        "",
        &[
            "lacks location: http://shop.test:PORT",
            "has location: http://shop.test/",
        ],
    ),
    rule(
        "the server's port in `Location`",
        "rewrites",
        "",
        &[
            "lacks location: http://pages.test:PORT",
            "has location: http://pages.test/",
        ],
    ),
    rule("`return 444`", "rewrites", "/closed", &["status 0 and 403"]),
    rule(
        "content that is listed as not converted",
        "rewrites",
        "/gone-to/",
        &[
            "status 200 and 501",
            "status 301 and 501",
            "status 302 and 501",
            "status 403 and 501",
            "status 404 and 501",
        ],
    ),
    rule(
        "content that is listed as not converted",
        "rewrites",
        "/blog/",
        &[
            "status 200 and 501",
            "status 301 and 501",
            "status 302 and 501",
            "status 403 and 501",
            "status 404 and 501",
        ],
    ),
    rule(
        "content that is listed as not converted",
        "rewrites",
        "/last/",
        &[
            "status 200 and 501",
            "status 301 and 501",
            "status 302 and 501",
            "status 403 and 501",
            "status 404 and 501",
        ],
    ),
    rule(
        "content that is listed as not converted",
        "files",
        "/alias/",
        &[
            "status 200 and 501",
            "status 301 and 501",
            "status 302 and 501",
            "status 403 and 501",
            "status 404 and 501",
        ],
    ),
    rule(
        "content that is listed as not converted",
        "access",
        "/any/",
        &[
            "status 200 and 501",
            "status 301 and 501",
            "status 302 and 501",
            "status 403 and 501",
            "status 404 and 501",
        ],
    ),
    rule(
        "content that is listed as not converted",
        "access",
        "/read/",
        &[
            "status 200 and 501",
            "status 301 and 501",
            "status 302 and 501",
            "status 403 and 501",
            "status 404 and 501",
        ],
    ),
    rule(
        "`proxy_redirect default` where `proxy_pass` has no path",
        "redirects",
        "portal.test /?",
        &[
            "lacks location: http://portal.test:PORT",
            "has location: http://127.0.0.1",
        ],
    ),
    rule(
        "`proxy_redirect` of another URL",
        "redirects",
        "legacy.test",
        &["lacks location", "has location"],
    ),
    rule(
        "`Location` and cookies of a route with a rewrite",
        "redirects",
        "/app/?",
        &[
            "lacks location",
            "has location",
            "lacks set-cookie",
            "has set-cookie",
        ],
    ),
    rule(
        "`Location` and cookies of a route with a rewrite",
        "redirects",
        "/given/?",
        &[
            "lacks location",
            "has location",
            "lacks set-cookie",
            "has set-cookie",
        ],
    ),
    rule(
        "`proxy_cookie_path`, `proxy_cookie_domain`",
        "redirects",
        "/cookies/",
        &["lacks set-cookie", "has set-cookie"],
    ),
    rule(
        "`Refresh` of responses",
        "redirects",
        "Refresh",
        &["lacks refresh", "has refresh"],
    ),
    rule(
        "`add_header` without `always`",
        "headers",
        "status=",
        &["has x-outer", "has x-own"],
    ),
    rule(
        "`X-Accel-…` of responses",
        "headers",
        "X-Accel-Redirect",
        &["has x-accel-redirect", "requests 2 and 1", "body"],
    ),
    rule(
        "`X-Accel-…` of responses",
        "cache",
        "X-Accel-Expires",
        &["has x-accel-expires"],
    ),
    rule(
        "`proxy_intercept_errors`",
        "errors",
        "/intercept/",
        &[
            "has x-powered-by",
            "body",
            "lacks content-type",
            "has content-type",
        ],
    ),
    rule(
        "`WWW-Authenticate`",
        "access",
        "/wiki/",
        &["lacks www-authenticate", "has www-authenticate"],
    ),
    rule(
        "`limit_req`",
        "limits",
        "",
        &[
            "has x-ratelimit-",
            "has retry-after",
            "status 503 and 429",
            "status 503 and 200",
        ],
    ),
    rule("`Vary` with compression", "gzip", "", &["has vary"]),
    rule(
        "`Vary` with compression",
        "application",
        "/assets/a.css",
        &["has vary"],
    ),
    rule(
        "`gzip` of other statuses",
        "gzip",
        "status=500",
        &["has content-encoding", "body"],
    ),
    rule("`$upstream_cache_status`", "cache", "", &["lacks x-cache"]),
    rule(
        "`Age` and `Accept-Ranges` of stored responses",
        "cache",
        "",
        &["has age", "has accept-ranges"],
    ),
    rule(
        "a range of a stored response",
        "cache",
        "Range",
        &["status 200 and 206"],
    ),
    rule(
        "`proxy_cache_valid` for several statuses",
        "cache",
        "status=404",
        &["requests 0 and 1"],
    ),
    rule(
        "`proxy_cache_bypass`, `proxy_no_cache`",
        "cache",
        "/bypass/",
        &["requests 0 and 1"],
    ),
    rule(
        "requests with `Cookie` or credentials, for a response without a lifetime",
        "cache",
        "/k ",
        &["requests 0 and 1"],
    ),
    rule(
        "`ETag` of files",
        "",
        "",
        &["lacks etag: \"", "has etag: \""],
    ),
    rule(
        "types of files",
        "files",
        "",
        &["lacks content-type", "has content-type"],
    ),
    rule(
        "types of files",
        "application",
        "",
        &["lacks content-type", "has content-type"],
    ),
    rule(
        "the redirect to a folder",
        "files",
        "",
        &["lacks location: http://files.test:PORT/", "has location: /"],
    ),
    rule(
        "a folder without an index",
        "files",
        "/assets/",
        &["status 403 and 404"],
    ),
    rule(
        "`expires`",
        "files",
        "/assets/",
        &["lacks cache-control: max-age=3600", "lacks expires"],
    ),
    rule("`Allow` of a 405", "files", "/assets/a.css", &["has allow"]),
    rule(
        "ranges",
        "files",
        "Range: bytes=",
        &[
            "has accept-ranges",
            "status 416 and 200",
            "status 206 and 200",
        ],
    ),
    rule(
        "`If-Modified-Since` after the time of the file",
        "files",
        "If-Modified-Since",
        &["status 200 and 304"],
    ),
    rule(
        "`try_files … @name`",
        "application",
        "/data.json",
        &[
            "lacks accept-ranges",
            "has x-powered-by",
            "body",
            "requests 0 and 1",
        ],
    ),
];
