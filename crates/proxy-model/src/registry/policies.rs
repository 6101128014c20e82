//! The `policies` block of a route. Its settings may stand in the route itself as well.

use super::kind::{Block, Pair};
use super::listeners::PATH_POLICIES;
use super::number::{Integer, Size, Time};
use super::spec::{Given, Many, Required, Unset};
use super::table::{
    block, choice, flag, integer, pair, settings, size, text, time, word, words, written,
};
use super::text::{Text, Written};
use super::word::{Choice, Flag, Meaning};
use crate::listener::PathPolicy;
use crate::policies::{RateKey, RetryCause};
use std::time::Duration;

const ROUTE: &[&str] = &["routes.route"];
const DAY: Duration = Duration::from_hours(24);
const WEEK: Duration = Duration::from_hours(24 * 7);

const CAUSES: &[Meaning<RetryCause>] = &[
    word(
        "connect-failure",
        RetryCause::ConnectFailure,
        "no connection came about; nothing was sent",
    ),
    word(
        "reset",
        RetryCause::Reset,
        "the connection ended before the response began",
    ),
    word(
        "timeout",
        RetryCause::Timeout,
        "the response did not begin in time",
    ),
    word("502", RetryCause::BadGateway, "the target answered 502"),
    word(
        "503",
        RetryCause::ServiceUnavailable,
        "the target answered 503",
    ),
    word("504", RetryCause::GatewayTimeout, "the target answered 504"),
];

settings! {
    /// What is done with requests and responses on the way.
    POLICIES: Block, Unset = block("routes.route.policies")
        .optional("no policy")
        .enforced("proxy-config", "every_block_is_decoded");
    /// Short for `timeouts { request-secs }`.
    TIMEOUT: Time, Unset = time("routes.route.policies.timeout-secs", DAY)
        .optional("no limit on the whole")
        .also(ROUTE)
        .enforced("proxy-pipeline", "the_short_timeouts_of_routes_and_upstreams_are_kept");
    /// The route's own times.
    TIMEOUTS: Block, Unset = block("routes.route.policies.timeouts")
        .optional("as the upstream says")
        .also(ROUTE)
        .enforced("proxy-config", "every_block_is_decoded");
    /// From the request's head to the last byte of the response, even while bytes move. Then 504,
    /// or a cut when the response has begun.
    REQUEST: Time, Unset = time("routes.route.policies.timeouts.request-secs", DAY)
        .optional("no limit on the whole; the upstream's `request-secs` until the response begins")
        .enforced("proxy-pipeline", "a_route_timeout_cuts_the_whole_exchange");
    /// To connect to a target.
    CONNECT: Time, Unset =
        time("routes.route.policies.timeouts.connect-secs", Duration::from_hours(1))
            .optional("the upstream's `connect-secs`")
            .enforced("proxy-pipeline", "a_route_has_its_own_connect_time");
    /// Between two reads of a response.
    READ: Time, Unset = time("routes.route.policies.timeouts.read-secs", DAY)
        .optional("the upstream's `read-secs`")
        .enforced("proxy-pipeline", "a_route_has_its_own_read_and_connect_times");
    /// Without a byte either way once a connection is upgraded.
    IDLE: Time, Unset = time("routes.route.policies.timeouts.idle-secs", WEEK)
        .optional("the upstream's `idle-secs`")
        .enforced("proxy-pipeline", "an_upgraded_connection_that_rests_is_closed");
    /// Largest request body. Overrides `limits { max-body-size-bytes }` for this route, up or
    /// down. 0 refuses every body.
    MAX_BODY_SIZE: Size, Unset = size("routes.route.policies.max-body-size", 0, 1 << 40)
        .optional("`limits { max-body-size-bytes }`")
        .also(ROUTE)
        .enforced("proxy-pipeline", "a_route_has_its_own_body_limit");
    /// How fast requests may come. Over it, they are answered 429 `RATE_LIMIT_EXCEEDED`.
    RATE_LIMIT: Block, Unset = block("routes.route.policies.rate-limit")
        .optional("as fast as they like")
        .also(ROUTE)
        .not_yet("limits");
    /// Requests a second, refilled continuously.
    REQUESTS_PER_SECOND: Integer<u32>, Required = integer(
        "routes.route.policies.rate-limit.requests-per-second",
        1,
        1_000_000,
        "requests a second",
    )
    .aliases(&["requests_per_second"])
    .not_yet("limits");
    /// Most requests at once after a rest.
    BURST: Integer<u32>, Unset =
        integer("routes.route.policies.rate-limit.burst", 1, 100_000_000, "requests")
            .optional("10 times `requests-per-second`")
            .not_yet("limits");
    /// What has a rate of its own: `client_ip`, `header:<name>`, `path` or `route`.
    KEY: Text<RateKey>, Given<Written<RateKey>> =
        text("routes.route.policies.rate-limit.key", "a rate key", "client_ip", |text| {
            text.parse::<RateKey>().map_err(|fault| fault.to_string())
        })
        .or(written("client_ip", || RateKey::ClientIp))
        .not_yet("limits");
    /// Changes to the headers that go upstream.
    REQUEST_HEADERS: Block, Unset = block("routes.route.policies.request-headers")
        .optional("no change but the proxy's own")
        .also(ROUTE)
        .enforced("proxy-config", "every_block_is_decoded");
    /// Puts a field in place of all of that name: `set "X-Env" "beta"` or `set { "X-Env" "beta" }`.
    SET_REQUEST: Pair, Many = pair(
        "routes.route.policies.request-headers.set",
        "a header name and a value",
        "\"X-Env\" \"beta\"",
    )
    .many()
    .enforced("proxy-pipeline", "request_headers_are_set_added_and_removed");
    /// Puts a field beside those of that name.
    ADD_REQUEST: Pair, Many = pair(
        "routes.route.policies.request-headers.add",
        "a header name and a value",
        "\"X-Env\" \"beta\"",
    )
    .many()
    .enforced("proxy-pipeline", "request_headers_are_set_added_and_removed");
    /// Takes fields away. Removing comes before setting, setting before adding.
    REMOVE_REQUEST: Text<String>, Many =
        words("routes.route.policies.request-headers.remove", "a header name", "X-Debug")
            .many()
            .enforced("proxy-pipeline", "request_headers_are_set_added_and_removed");
    /// Changes to the headers that go to the client, those of the proxy's own errors on the route too.
    RESPONSE_HEADERS: Block, Unset = block("routes.route.policies.response-headers")
        .optional("no change but the proxy's own")
        .also(ROUTE)
        .enforced("proxy-config", "every_block_is_decoded");
    /// Puts a field in place of all of that name.
    SET_RESPONSE: Pair, Many = pair(
        "routes.route.policies.response-headers.set",
        "a header name and a value",
        "\"X-Frame-Options\" \"DENY\"",
    )
    .many()
    .enforced("proxy-pipeline", "response_headers_are_set_added_and_removed");
    /// Puts a field beside those of that name.
    ADD_RESPONSE: Pair, Many = pair(
        "routes.route.policies.response-headers.add",
        "a header name and a value",
        "\"Vary\" \"Accept\"",
    )
    .many()
    .enforced("proxy-pipeline", "response_headers_are_set_added_and_removed");
    /// Takes fields away. Removing comes before setting, setting before adding.
    REMOVE_RESPONSE: Text<String>, Many =
        words("routes.route.policies.response-headers.remove", "a header name", "Server")
            .many()
            .enforced("proxy-pipeline", "response_headers_are_set_added_and_removed");
    /// What happens to paths that an upstream could read differently, on requests whose path as sent
    /// leads to this route; as `path-policy` of a listener.
    PATH_POLICY: Choice<PathPolicy>, Unset =
        choice("routes.route.policies.path-policy", PATH_POLICIES)
            .optional("as the listener says")
            .also(ROUTE)
            .enforced("proxy-plan", "a_route_says_how_its_paths_are_read");
    /// Whether the whole request body is read before the upstream is asked.
    BUFFER_REQUESTS: Flag, Given<bool> = flag("routes.route.policies.buffer-requests")
        .or(false)
        .also(ROUTE)
        .not_yet("limits");
    /// Whether the whole response body is read before the client gets its first byte.
    BUFFER_RESPONSES: Flag, Given<bool> = flag("routes.route.policies.buffer-responses")
        .or(false)
        .also(ROUTE)
        .not_yet("limits");
    /// Whether and when a request is sent again. Without the block it is sent again once, when
    /// nothing of it was sent or its method is idempotent, and no byte of a response came.
    RETRY: Block, Unset = block("routes.route.policies.retry")
        .optional("once, when that is safe")
        .also(ROUTE)
        .not_yet("resilience");
    /// Most times one request is sent again. 0 never sends again.
    ATTEMPTS: Integer<u32>, Given<u32> =
        integer("routes.route.policies.retry.attempts", 0, 10, "times")
            .or(1)
            .not_yet("resilience");
    /// After what. None written means `connect-failure` and `reset`.
    ON: Choice<RetryCause>, Many = choice("routes.route.policies.retry.on", CAUSES)
        .many()
        .not_yet("resilience");
    /// Share of an upstream's requests that may be sent again; at least 3 a second always may.
    BUDGET_PERCENT: Integer<u32>, Given<u32> =
        integer("routes.route.policies.retry.budget-percent", 0, 100, "percent")
            .or(20)
            .not_yet("resilience");
}
