//! Rewriting of the path for the upstream.

use crate::policies::{CaptureTemplate, PrefixReplacement};
use crate::registry::kind::{Block, Pair};
use crate::registry::spec::{DefaultValue, Unset};
use crate::registry::table::{block, flag, pair, settings, text};
use crate::registry::text::Text;
use crate::registry::word::Flag;

const BY: &str = "proxy-server";

settings! {
    /// The path sent to the upstream. The route is matched by the client's path, and the new one is
    /// never matched again; agents and logs use the client's. The query is unchanged. A path with
    /// several readings is rewritten in the form used for matching. The host is replaced by
    /// `request-headers { set "Host" "name" }`.
    REWRITE: Block, Unset = block("routes.route.policies.rewrite")
        .optional("the path as the client sent it")
        .also(&["routes.route"])
        .enforced(BY, "an_upstream_gets_the_rewritten_path");
    /// Removes the beginning of the path, by whole segments as with `path-prefix`.
    REWRITE_STRIP_PREFIX: Text<PrefixReplacement>, Unset = text(
        "routes.route.policies.rewrite.strip-prefix",
        "a path",
        "/api",
        |text| PrefixReplacement::new(text, "/"),
    )
    .optional("nothing is removed")
    .enforced(BY, "an_upstream_gets_the_rewritten_path");
    /// Replaces the beginning of the path, by whole segments as with `path-prefix`.
    REWRITE_REPLACE_PREFIX: Pair, Unset = pair(
        "routes.route.policies.rewrite.replace-prefix",
        "a beginning of paths and its replacement",
        "\"/old\" \"/new\"",
    )
    .optional("nothing is replaced")
    .enforced(BY, "an_upstream_gets_the_rewritten_path");
    /// The path for every request.
    REWRITE_PATH: Text<String>, Unset = text(
        "routes.route.policies.rewrite.path",
        "a path",
        "/index.php",
        |text| PrefixReplacement::new("/", text).map(|whole| whole.to),
    )
    .optional("the path is not replaced as a whole")
    .enforced(BY, "an_upstream_gets_the_rewritten_path");
    /// The path, made of captures of the route's `path-regex`, which must be its only condition on
    /// paths: `$1` or `${name}` is a group, and empty if it did not participate in the match; `$$`
    /// is a `$`. The result begins with exactly one slash; one that leaves its root is refused with
    /// 400.
    REWRITE_CAPTURES: Text<CaptureTemplate>, Unset = text(
        "routes.route.policies.rewrite.path-from-regex",
        "a path",
        "/v2/$1",
        CaptureTemplate::parse,
    )
    .optional("nothing is captured")
    .enforced(BY, "a_path_is_made_of_captures_of_the_regex");
    /// Rewrites `Location` and `Content-Location` of responses: the replaced path prefix, and the
    /// upstream's origin (its target, or the configured `Host`) to the client's.
    REWRITE_LOCATION: Flag, DefaultValue<bool> = flag("routes.route.policies.rewrite.location")
        .or(true)
        .enforced(BY, "locations_and_cookies_are_written_back");
    /// Rewrites `Path` of `Set-Cookie`, and removes a `Domain` of the upstream, so that the cookie
    /// belongs to the client's host.
    REWRITE_COOKIES: Flag, DefaultValue<bool> = flag("routes.route.policies.rewrite.cookies")
        .or(true)
        .enforced(BY, "locations_and_cookies_are_written_back");
}
