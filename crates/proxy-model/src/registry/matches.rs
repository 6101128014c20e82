//! The `matches` block of a route.

use super::kind::{Block, Pair};
use super::spec::{Repeatable, Unset};
use super::table::{block, pair, settings, text};
use super::text::Text;
use http::Method;
use proxy_routing::{HostPattern, PathPattern};

fn method(text: &str) -> Result<Method, String> {
    let upper = text.to_ascii_uppercase();
    let known = Method::from_bytes(text.as_bytes()).map_err(|fault| fault.to_string())?;
    if known.as_str() != upper && Method::from_bytes(upper.as_bytes()).is_ok() {
        return Err(format!("methods are written in capitals: `{upper}`"));
    }
    Ok(known)
}

settings! {
    /// Conditions that a request must meet. Several of one kind are alternatives; different kinds
    /// must all be met; a route without conditions matches every request.
    MATCHES: Block, Unset = block("routes.route.matches")
        .optional("every request")
        .enforced("proxy-config", "every_block_is_decoded");
    /// A host without a port, in any case. `*.example.com` matches one or more labels before
    /// `.example.com`.
    HOST: Text<HostPattern>, Repeatable =
        text("routes.route.matches.host", "a host or a wildcard", "*.example.com", |text| {
            HostPattern::parse(text).map_err(|fault| fault.to_string())
        })
        .many()
        .enforced("proxy-routing", "hosts_compare_without_case_and_port");
    /// The whole path. Paths are compared after unreserved characters are decoded and dot segments
    /// removed.
    PATH: Text<PathPattern>, Repeatable =
        text("routes.route.matches.path", "a path", "/favicon.ico", |text| {
            PathPattern::exact(text).map_err(|fault| fault.to_string())
        })
        .many()
        .enforced("proxy-routing", "an_exact_path_matches_only_itself");
    /// The beginning of the path: `/api` matches `/api` and `/api/…`, not `/apix`. A prefix that
    /// ends in `/` matches every path that begins with it.
    PATH_PREFIX: Text<PathPattern>, Repeatable =
        text("routes.route.matches.path-prefix", "a path", "/api", |text| {
            PathPattern::prefix(text).map_err(|fault| fault.to_string())
        })
        .many()
        .enforced("proxy-routing", "a_prefix_ends_at_a_segment_unless_it_ends_in_a_slash");
    /// A regular expression that matches anywhere in the path; `^` and `$` anchor it. All of a configuration
    /// together take at most 72 MiB, about 4 400 plain ones.
    PATH_REGEX: Text<PathPattern>, Repeatable =
        text("routes.route.matches.path-regex", "a regular expression", "^/users/[0-9]+$", |text| {
            PathPattern::regex(text).map_err(|fault| fault.to_string())
        })
        .many()
        .enforced("proxy-routing", "a_regex_is_found_in_the_path");
    /// A request header that must be present, or have this value: `header "X-Env" "beta"`.
    HEADER: Pair, Repeatable = pair(
        "routes.route.matches.header",
        "a header name, and a value if it matters",
        "\"X-Env\" \"beta\"",
    )
    .many()
    .enforced("proxy-routing", "headers_methods_and_query_parameters_are_compared");
    /// A method, in capitals.
    METHOD: Text<Method>, Repeatable = text("routes.route.matches.method", "a method", "GET", method)
        .many()
        .enforced("proxy-routing", "headers_methods_and_query_parameters_are_compared");
    /// A query parameter that must be present, or have this value: `query-param "v" "2"`.
    QUERY_PARAM: Pair, Repeatable = pair(
        "routes.route.matches.query-param",
        "a parameter, and a value if it matters",
        "\"v\" \"2\"",
    )
    .many()
    .enforced("proxy-routing", "headers_methods_and_query_parameters_are_compared");
}
