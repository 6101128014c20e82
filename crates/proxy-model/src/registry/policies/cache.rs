//! Caching of responses: the `cache` blocks of routes and of the top level.

use crate::registry::kind::Block;
use crate::registry::number::{Integer, Size, Time};
use crate::registry::spec::{DefaultValue, Repeatable, Unset};
use crate::registry::table::{block, flag, integer, settings, size, text, time, time_from};
use crate::registry::text::Text;
use crate::registry::word::Flag;
use http::HeaderName;
use std::time::Duration;

const BY: &str = "proxy-server";
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const YEAR: Duration = Duration::from_hours(365 * 24);
const WEEK: Duration = Duration::from_hours(7 * 24);

fn header_name(text: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(text.as_bytes()).map_err(|error| error.to_string())
}

/// A name as it is in a query. Parameters with another sign in their name are always part of the key.
fn parameter_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    match text.find(['=', '&', ';', '?', '#']) {
        None => Ok(text.to_owned()),
        Some(_) => Err("a name has none of `=`, `&`, `;`, `?` and `#`".to_owned()),
    }
}

settings! {
    /// Bounds of the memory for stored responses, which all routes with `cache` share. Without such a route nothing is
    /// stored.
    CACHE: Block, Unset = block("cache")
        .optional("each setting has its default")
        .enforced(BY, "the_cache_stays_within_its_bytes");
    /// Memory for stored responses, their heads and keys, and for responses that are being read: an eighth of it is for
    /// those. Where `max-memory-bytes` is set, at most half of it.
    MAX_BYTES: Size, DefaultValue<u64> = size("cache.max-bytes", 64 * KIB, 64 * GIB)
        .or(64 * MIB)
        .enforced(BY, "the_cache_stays_within_its_bytes");
    /// Largest body that is stored; at most an eighth of `max-bytes`. Larger ones pass.
    MAX_OBJECT_BYTES: Size, DefaultValue<u64> = size("cache.max-object-bytes", KIB, 8 * GIB)
        .or(MIB)
        .enforced(BY, "a_response_that_is_too_large_passes_whole");
    /// Stores responses in memory and answers later requests from there, by RFC 9111. Stored are responses to GET that
    /// say how long they are fresh (`Cache-Control: max-age`, `s-maxage`, `Expires`), or that can be validated. Never
    /// stored: `private`, `no-store`, `Set-Cookie`, `Vary: *`, and responses to requests with credentials, of a route
    /// that requires them, or with values of the client in `request-headers`, unless they say `public`, `s-maxage` or
    /// `must-revalidate`. Credentials, networks and rates are checked before. `cache` alone takes every default.
    /// Does not go with `agents` and with `buffer-responses`.
    ROUTE_CACHE: Block, Unset = block("routes.route.policies.cache")
        .optional("every request is forwarded")
        .also(&["routes.route"])
        .enforced(BY, "a_fresh_response_is_served_from_the_store");
    /// Lifetime of responses that state none, if their request has neither credentials nor `Cookie`.
    TTL: Time, Unset = time("routes.route.policies.cache.ttl-secs", YEAR)
        .optional("such responses are not stored")
        .enforced(BY, "a_lifetime_of_the_route_is_for_responses_without_one");
    /// Heuristic lifetime (RFC 9111 §4.2.2): a response with `Last-Modified` and without a lifetime of its own is fresh for
    /// this share of the time since then, at most a day, if its status is 200, 203, 204, 300, 301, 308, 404, 405, 410,
    /// 414 or 501, or it says `public`, and its request has neither credentials nor `Cookie`. Others use 10. It has
    /// precedence over `ttl-secs`.
    HEURISTIC: Integer<u32>, Unset =
        integer("routes.route.policies.cache.heuristic-percent", 1, 100, "percent")
            .optional("`Last-Modified` states no lifetime")
            .enforced(BY, "a_heuristic_lifetime_is_a_share_of_the_time_since_the_last_change");
    /// Statuses of responses that may be stored. Without the setting: 200, 203, 204, 301, 308, 404 and 410. 206 and
    /// 304 are parts of other responses.
    STATUSES: Integer<u16>, Repeatable =
        integer("routes.route.policies.cache.statuses", 200, 599, "")
            .many()
            .enforced(BY, "only_listed_statuses_are_stored");
    /// Request fields that are part of the key, in addition to those that a response names in `Vary`.
    KEY_HEADERS: Text<HeaderName>, Repeatable = text(
        "routes.route.policies.cache.key-headers",
        "a header name",
        "x-device",
        header_name,
    )
    .many()
    .enforced(BY, "fields_and_parameters_of_the_key_are_those_of_the_route");
    /// Query parameters that are not part of the key, by their exact names. The upstream still gets them, and must not
    /// answer differently for them.
    IGNORE_QUERY: Text<String>, Repeatable = text(
        "routes.route.policies.cache.ignore-query",
        "a parameter's name",
        "utm_source",
        parameter_name,
    )
    .many()
    .enforced(BY, "fields_and_parameters_of_the_key_are_those_of_the_route");
    /// Time for which a stale response is served while a new one is fetched, if the response does not state another
    /// one. 0 waits for the new one.
    STALE_WHILE_REVALIDATE: Time, DefaultValue<Duration> = time_from(
        "routes.route.policies.cache.stale-while-revalidate-secs",
        Duration::ZERO,
        WEEK,
    )
    .or(Duration::ZERO)
    .enforced(BY, "a_stale_response_is_served_while_a_new_one_is_fetched");
    /// Time for which a stale response is served where the upstream fails or answers 500, 502, 503 or 504, if the
    /// response does not state another one.
    STALE_IF_ERROR: Time, DefaultValue<Duration> = time_from(
        "routes.route.policies.cache.stale-if-error-secs",
        Duration::ZERO,
        WEEK,
    )
    .or(Duration::ZERO)
    .enforced(BY, "a_stale_response_is_served_in_place_of_an_error");
    /// Longest wait for the response to another request of the same key. Then the request is forwarded too, as it is at
    /// once where that response turns out not to be stored. 0 forwards every request that finds nothing.
    COLLAPSE: Time, DefaultValue<Duration> = time_from(
        "routes.route.policies.cache.collapse-secs",
        Duration::ZERO,
        Duration::from_mins(1),
    )
    .or(Duration::from_secs(5))
    .enforced(BY, "one_request_is_forwarded_for_many_of_the_same_key");
    /// Whether `no-cache`, `max-age`, `min-fresh`, `max-stale` and `only-if-cached` of clients count, so that every
    /// client can have a response fetched again. `no-store` always counts.
    CLIENT_DIRECTIVES: Flag, DefaultValue<bool> = flag("routes.route.policies.cache.client-directives")
        .or(false)
        .enforced(BY, "request_cache_directives_apply_if_the_route_enables_them");
    /// Whether responses carry `Cache-Status` (RFC 9211): whether they are stored ones, and why not.
    CACHE_STATUS: Flag, DefaultValue<bool> = flag("routes.route.policies.cache.cache-status")
        .or(false)
        .enforced(BY, "a_fresh_response_is_served_from_the_store");
}
