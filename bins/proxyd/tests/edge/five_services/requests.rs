//! Requests to the site.

/// A request with its outcome.
pub(crate) struct Case {
    pub(crate) title: &'static str,
    pub(crate) url: &'static str,
    /// `TOKEN` is a valid token.
    pub(crate) fields: &'static [&'static str],
    /// The status; then `Location`, or the body of a 200 with `X-Frame-Options` and `Cache-Control`.
    pub(crate) outcome: &'static str,
}

const OUTSIDE: &str = "X-Forwarded-For: 198.51.100.7";
const INSIDE: &str = "X-Forwarded-For: 10.0.0.5";
const ANN: &str = "Authorization: Basic YW5uOm9uZQ==";

const fn case(
    title: &'static str,
    url: &'static str,
    fields: &'static [&'static str],
    outcome: &'static str,
) -> Case {
    Case {
        title,
        url,
        fields,
        outcome,
    }
}

pub(crate) const CASES: &[Case] = &[
    case(
        "plain HTTP",
        "http://shop.example.com/cart?item=1",
        &[],
        "308 https://shop.example.com/cart?item=1",
    ),
    case(
        "apex",
        "https://example.com/about?x=1",
        &[],
        "308 https://www.example.com/about?x=1",
    ),
    case(
        "file",
        "https://www.example.com/",
        &[],
        "200 www / max-age=300",
    ),
    case("no file", "https://www.example.com/none", &[], "404"),
    case(
        "fixed answer",
        "https://www.example.com/health",
        &[],
        "200 ok",
    ),
    case("gone", "https://www.example.com/2019/a", &[], "410"),
    case(
        "shop",
        "https://shop.example.com/cart?item=1",
        &[OUTSIDE, "X-Real-IP: 10.0.0.1"],
        "200 shop /cart?item=1 x-real-ip=198.51.100.7 DENY",
    ),
    case(
        "API without a token",
        "https://shop.example.com/api/orders?page=2",
        &[],
        "401",
    ),
    case(
        "API with a token",
        "https://shop.example.com/api/orders?page=2",
        &["Authorization: Bearer TOKEN"],
        "200 api /orders?page=2 x-user=ann DENY",
    ),
    case(
        "wiki without a session",
        "https://wiki.example.com/page",
        &["Remote-User: mallory"],
        "302 https://auth.example.com/?rd=wiki.example.com/page",
    ),
    case(
        "wiki with a session",
        "https://wiki.example.com/page",
        &["Remote-User: mallory", "Cookie: session=ann"],
        "200 wiki /page remote-user=ann",
    ),
    case(
        "login server",
        "https://auth.example.com/?rd=x",
        &[],
        "200 auth /?rd=x",
    ),
    case(
        "tools from elsewhere",
        "https://tools.example.com/",
        &[OUTSIDE, ANN],
        "403",
    ),
    case(
        "tools without a password",
        "https://tools.example.com/",
        &[INSIDE],
        "401",
    ),
    case(
        "tools with a password",
        "https://tools.example.com/",
        &[INSIDE, ANN],
        "200 tools / x-user=ann",
    ),
    case(
        "documents",
        "https://docs.example.com/v2/install?print",
        &[],
        "200 docs /handbook/v2/install?print host=handbook.internal x-original-url=https://docs.example.com/v2/install?print",
    ),
    case(
        "documents that moved",
        "https://docs.example.com/v1/install?print",
        &[],
        "301 https://docs.example.com/v2/install?print",
    ),
];
