//! The `policies` block of a route. Its settings may also be written in the route itself.

pub mod access;
pub mod basic_auth;
pub mod cache;
pub mod cors;
pub mod error_pages;
pub mod jwt;
pub mod rewrite;

use super::kind::{Block, Pair};
use super::listeners::PATH_POLICIES;
use super::number::{Decimal, Integer, Size, Time};
use super::spec::{DefaultValue, MachinePart, Repeatable, Required, Unset};
use super::table::{
    block, choice, decimal, flag, integer, pair, settings, size, text, time, word, words, written,
};
use super::text::{Text, Written};
use super::word::{Choice, ChoiceWord, Flag};
use crate::compression::MediaRange;
use crate::listener::PathPolicy;
use crate::policies::{HeaderPreset, RateKey, RequestRate, RetryCause};
use crate::store_url::StoreUrl;
use proxy_coding::Coding;
use std::time::Duration;

const ROUTE: &[&str] = &["routes.route"];
const DAY: Duration = Duration::from_hours(24);
const WEEK: Duration = Duration::from_hours(24 * 7);

const CAUSES: &[ChoiceWord<RetryCause>] = &[
    word(
        "connect-failure",
        RetryCause::ConnectFailure,
        "the connection failed; nothing was sent",
    ),
    word(
        "reset",
        RetryCause::Reset,
        "the connection ended, or the target reset the stream of HTTP/2, before the response began",
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

const PRESETS: &[ChoiceWord<HeaderPreset>] = &[
    word(
        "basic",
        HeaderPreset::Basic,
        "`X-Content-Type-Options: nosniff`, `X-Frame-Options: SAMEORIGIN`, `Referrer-Policy: \
         strict-origin-when-cross-origin`",
    ),
    word(
        "strict",
        HeaderPreset::Strict,
        "`nosniff`, `X-Frame-Options: DENY`, `Referrer-Policy: no-referrer`, `Strict-Transport-Security: \
         max-age=31536000`, `Cross-Origin-Opener-Policy` and `-Resource-Policy: same-origin`",
    ),
];

const CODINGS: &[ChoiceWord<Coding>] = &[
    word("zstd", Coding::Zstd, "Zstandard, RFC 8878"),
    word("br", Coding::Brotli, "Brotli, RFC 7932"),
    word("gzip", Coding::Gzip, "gzip, RFC 1952"),
];

settings! {
    /// Policies for the route's requests and responses.
    POLICIES: Block, Unset = block("routes.route.policies")
        .optional("no policy")
        .enforced("proxy-config", "every_block_is_decoded");
    /// Short for `timeouts { request-secs }`.
    TIMEOUT: Time, Unset = time("routes.route.policies.timeout-secs", DAY)
        .optional("no limit on the whole")
        .also(ROUTE)
        .enforced("proxy-pipeline", "the_short_timeouts_of_routes_and_upstreams_are_kept");
    /// Timeouts that override the upstream's.
    TIMEOUTS: Block, Unset = block("routes.route.policies.timeouts")
        .optional("the upstream's timeouts")
        .also(ROUTE)
        .enforced("proxy-config", "every_block_is_decoded");
    /// From the request's head to the last byte of the response, whether or not bytes move. Then
    /// 504, or the end of the connection if the response has begun.
    REQUEST: Time, Unset = time("routes.route.policies.timeouts.request-secs", DAY)
        .optional("no limit on the whole; the upstream's `request-secs` until the response begins")
        .enforced("proxy-pipeline", "a_route_timeout_cuts_the_whole_exchange");
    /// Maximum time to connect to a target.
    CONNECT: Time, Unset =
        time("routes.route.policies.timeouts.connect-secs", Duration::from_hours(1))
            .optional("the upstream's `connect-secs`")
            .enforced("proxy-pipeline", "a_route_has_its_own_connect_time");
    /// Maximum time between two reads of a response.
    READ: Time, Unset = time("routes.route.policies.timeouts.read-secs", DAY)
        .optional("the upstream's `read-secs`")
        .enforced("proxy-pipeline", "a_route_has_its_own_read_and_connect_times");
    /// Maximum time without a byte in either direction on an upgraded connection.
    IDLE: Time, Unset = time("routes.route.policies.timeouts.idle-secs", WEEK)
        .optional("the upstream's `idle-secs`")
        .enforced("proxy-pipeline", "an_idle_upgraded_connection_is_closed");
    /// Maximum size of a request body. Overrides `limits { max-body-size-bytes }` for this route,
    /// up or down. 0 refuses every body.
    MAX_BODY_SIZE: Size, Unset = size("routes.route.policies.max-body-size", 0, 1 << 40)
        .optional("`limits { max-body-size-bytes }`")
        .also(ROUTE)
        .enforced("proxy-pipeline", "a_route_has_its_own_body_limit");
    /// Maximum rate of requests. Above it, they are answered 429 `RATE_LIMIT_EXCEEDED`. Every
    /// response of the route reports the limit in `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    RATE_LIMIT: Block, Unset = block("routes.route.policies.rate-limit")
        .optional("no limit")
        .also(ROUTE)
        .enforced(
            "proxy-pipeline",
            "a_route_with_a_rate_limit_admits_its_burst_and_then_its_rate",
        );
    /// Requests a second, refilled continuously. Either this or `rate` is needed.
    REQUESTS_PER_SECOND: Integer<u32>, Unset = integer(
        "routes.route.policies.rate-limit.requests-per-second",
        1,
        1_000_000,
        "requests a second",
    )
    .aliases(&["requests_per_second"])
    .optional("the value of `rate`")
    .enforced("proxy-pipeline", "a_route_with_a_rate_limit_admits_its_burst_and_then_its_rate");
    /// Requests in a period, refilled continuously: `5/min` is one in twelve seconds. Periods are `s`, `min`,
    /// `h` and `day`. `X-RateLimit-Limit` has the burst: the number, unless `burst` is set. Below one a second it does not go with a `store`.
    RATE: Text<RequestRate>, Unset = text(
        "routes.route.policies.rate-limit.rate",
        "a rate",
        "5/min",
        |text| text.parse::<RequestRate>().map_err(str::to_owned),
    )
    .optional("the value of `requests-per-second`")
    .enforced("proxy-server", "a_rate_may_be_below_one_a_second");
    /// Maximum burst of requests after an idle time.
    BURST: Integer<u32>, Unset =
        integer("routes.route.policies.rate-limit.burst", 1, 100_000_000, "requests")
            .optional("10 times `requests-per-second`; the number of a `rate` of a longer period")
            .enforced(
                "proxy-pipeline",
                "a_route_with_a_rate_limit_admits_its_burst_and_then_its_rate",
            );
    /// Key with a rate of its own: `client_ip`, `header:<name>`, `path` or `route`. A limit by a header is
    /// applied after the agents of the route, which may set it, and one by a field of `claim-header`
    /// after the token is verified; `request-headers` come later.
    KEY: Text<RateKey>, DefaultValue<Written<RateKey>> =
        text("routes.route.policies.rate-limit.key", "a rate key", "client_ip", |text| {
            text.parse::<RateKey>().map_err(|fault| fault.to_string())
        })
        .or(written("client_ip", || RateKey::ClientIp))
        .enforced("proxy-pipeline", "each_rate_key_has_a_bucket_for_each_of_its_values");
    /// Counts and logs requests over the limit, but serves them.
    OBSERVE_ONLY: Flag, DefaultValue<bool> = flag("routes.route.policies.rate-limit.observe-only")
        .or(false)
        .enforced("proxy-pipeline", "a_limit_that_only_observes_serves_and_logs");
    /// A Redis or Valkey with buckets shared by all proxies with this route, limit and store:
    /// together they admit at most burst + rate × time, by its clock. The URL may have a password
    /// and a database: `redis://:secret@host:6379/1`. Without an answer in time, the proxy's own
    /// bucket decides, in which all its requests are counted, and the store is not queried for a
    /// second.
    STORE: Text<StoreUrl>, Unset = text(
        "routes.route.policies.rate-limit.store",
        "the URL of a Redis",
        "redis://127.0.0.1:6379",
        |text| text.parse::<StoreUrl>().map_err(|error| error.to_string()),
    )
    .optional("buckets of this process")
    .names(MachinePart::PeerAddress)
    .enforced("proxy-pipeline", "two_proxies_share_the_limit_of_a_store");
    /// Longest time that a request waits for the store.
    STORE_TIMEOUT: Time, DefaultValue<Duration> = time(
        "routes.route.policies.rate-limit.store-timeout-ms",
        Duration::from_secs(10),
    )
    .or(Duration::from_millis(50))
    .enforced("proxy-pipeline", "a_store_that_hangs_delays_a_request_by_its_time_at_most");
    /// Edits of the request headers sent upstream.
    REQUEST_HEADERS: Block, Unset = block("routes.route.policies.request-headers")
        .optional("only the proxy's own changes")
        .also(ROUTE)
        .enforced("proxy-config", "every_block_is_decoded");
    /// Replaces all fields of a name: `set "X-Env" "beta"` or `set { "X-Env" "beta" }`. Values of
    /// the request in a value: `{client_ip}`, `{host}`, `{scheme}`, `{method}`, `{path}`,
    /// `{query}`, `{uri}` (path and query), `{route}`, `{listener}`, `{correlation_id}`,
    /// `{protocol}`, `{tls_version}`, `{tls_server_name}`, `{tls_client_subject}`,
    /// `{tls_client_fingerprint}`, `{time}`, `{user}`. A field with an empty value is not sent. A
    /// raw text, `#"{host}"#`, is sent unchanged.
    SET_REQUEST: Pair, Repeatable = pair(
        "routes.route.policies.request-headers.set",
        "a header name and a value",
        "\"X-Env\" \"beta\"",
    )
    .many()
    .enforced("proxy-pipeline", "request_headers_are_set_added_and_removed");
    /// Appends a field to existing fields of its name; values as with `set`.
    ADD_REQUEST: Pair, Repeatable = pair(
        "routes.route.policies.request-headers.add",
        "a header name and a value",
        "\"X-Env\" \"beta\"",
    )
    .many()
    .enforced("proxy-pipeline", "request_headers_are_set_added_and_removed");
    /// Removes fields. Edits run in the order remove, set, add.
    REMOVE_REQUEST: Text<String>, Repeatable =
        words("routes.route.policies.request-headers.remove", "a header name", "X-Debug")
            .many()
            .enforced("proxy-pipeline", "request_headers_are_set_added_and_removed");
    /// Edits of the response headers sent to the client, also on the proxy's own errors of this
    /// route and on answers of agents that refuse. Interim responses and trailers lack the fields that are
    /// removed or set.
    RESPONSE_HEADERS: Block, Unset = block("routes.route.policies.response-headers")
        .optional("only the proxy's own changes")
        .also(ROUTE)
        .enforced("proxy-config", "every_block_is_decoded");
    /// Sets security header fields that the route does not edit itself. They count as `set`, in `explain` and in
    /// `diff` too.
    RESPONSE_PRESET: Choice<HeaderPreset>, Unset =
        choice("routes.route.policies.response-headers.preset", PRESETS)
            .optional("only the configured fields")
            .enforced("proxy-server", "a_preset_sets_security_headers");
    /// Replaces all fields of a name. Values of the request as in `request-headers`.
    SET_RESPONSE: Pair, Repeatable = pair(
        "routes.route.policies.response-headers.set",
        "a header name and a value",
        "\"X-Frame-Options\" \"DENY\"",
    )
    .many()
    .enforced("proxy-pipeline", "response_headers_are_set_added_and_removed");
    /// Appends a field to existing fields of its name; values as with `set`.
    ADD_RESPONSE: Pair, Repeatable = pair(
        "routes.route.policies.response-headers.add",
        "a header name and a value",
        "\"Vary\" \"Accept\"",
    )
    .many()
    .enforced("proxy-pipeline", "response_headers_are_set_added_and_removed");
    /// Removes fields. Edits run in the order remove, set, add.
    REMOVE_RESPONSE: Text<String>, Repeatable =
        words("routes.route.policies.response-headers.remove", "a header name", "Server")
            .many()
            .enforced("proxy-pipeline", "response_headers_are_set_added_and_removed");
    /// Treatment of paths that an upstream could read differently, for requests with a path that
    /// matches this route as sent; values as `path-policy` of a listener.
    PATH_POLICY: Choice<PathPolicy>, Unset =
        choice("routes.route.policies.path-policy", PATH_POLICIES)
            .optional("the listener's policy")
            .also(ROUTE)
            .enforced("proxy-plan", "a_route_selects_the_reading_of_its_paths");
    /// Reads the whole request body before connecting to the upstream. A body larger than `limits {
    /// max-body-buffer-bytes }` is answered 413 `LIMIT_EXCEEDED`.
    BUFFER_REQUESTS: Flag, DefaultValue<bool> = flag("routes.route.policies.buffer-requests")
        .or(false)
        .also(ROUTE)
        .enforced("proxy-pipeline", "a_buffered_request_reaches_its_target_whole");
    /// Reads the whole response body before sending the first byte to the client. A larger one than
    /// `limits { max-body-buffer-bytes }` is sent once so much of it is buffered. Event streams and
    /// gRPC are never held back.
    BUFFER_RESPONSES: Flag, DefaultValue<bool> = flag("routes.route.policies.buffer-responses")
        .or(false)
        .also(ROUTE)
        .enforced("proxy-pipeline", "a_truncated_buffered_response_is_answered_502");
    /// Retry policy. Without the block a request is retried once, if no byte of it was sent or its
    /// method is idempotent, and no byte of a response arrived.
    RETRY: Block, Unset = block("routes.route.policies.retry")
        .optional("one retry, if safe")
        .also(ROUTE)
        .enforced("proxy-pipeline", "with_two_of_three_targets_refusing_no_get_fails");
    /// Maximum number of retries of one request. 0 never retries. A failed connect is not a retry:
    /// every other target is tried until the upstream's `request-secs` has passed.
    ATTEMPTS: Integer<u32>, DefaultValue<u32> =
        integer("routes.route.policies.retry.attempts", 0, 10, "times")
            .or(1)
            .enforced("proxy-pipeline", "a_request_is_tried_up_to_the_configured_number");
    /// Failures after which a request is retried. Without the setting: `connect-failure` and
    /// `reset`. After failures other than `connect-failure`, only requests without a body and with
    /// an idempotent method are retried.
    ON: Choice<RetryCause>, Repeatable = choice("routes.route.policies.retry.on", CAUSES)
        .many()
        .enforced("proxy-pipeline", "a_request_is_retried_only_after_the_configured_failures");
    /// Share of an upstream's requests that may be retries; 3 retries per second are always
    /// allowed. A request
    /// that was not sent because no connection could be made does not count.
    BUDGET_PERCENT: Integer<u32>, DefaultValue<u32> =
        integer("routes.route.policies.retry.budget-percent", 0, 100, "percent")
            .or(20)
            .enforced("proxy-pipeline", "retries_stay_within_their_share_of_the_requests");
    /// Longest time of one attempt to connect, and again until its response begins. Then it counts as
    /// `timeout`, or `connect-failure`.
    PER_TRY_TIMEOUT: Time, Unset =
        time("routes.route.policies.retry.per-try-timeout-secs", Duration::from_hours(1))
            .optional("as long as the upstream's times allow")
            .enforced("proxy-pipeline", "an_attempt_has_a_time_of_its_own");
    /// Compresses responses for clients that accept it, files too. `compression` alone applies
    /// every default. Unchanged: encoded responses, partial responses, event streams, gRPC,
    /// responses or requests with `Cache-Control: no-transform`, and clients of HTTP/1.0. A
    /// compressed response has a weak `ETag` and no `Accept-Ranges`; every response of a type below
    /// has `Vary: Accept-Encoding`. Slow bodies are flushed at once. A response that arrives while it
    /// is sent stays as it is if encoders of its client already take 128 MiB, or if memory is short. Do not compress pages that
    /// contain both secrets and text of the request (BREACH).
    COMPRESSION: Block, Unset = block("routes.route.policies.compression")
        .optional("the upstream's encoding")
        .also(ROUTE)
        .enforced("proxy-pipeline", "a_response_is_compressed_as_the_client_prefers");
    /// Codings in order of preference. The client's own weights have precedence. Without the
    /// setting: `zstd`, `br`, `gzip`.
    COMPRESSION_CODINGS: Choice<Coding>, Repeatable = choice("routes.route.policies.compression.codings", CODINGS)
        .many()
        .enforced("proxy-pipeline", "a_route_orders_its_codings");
    /// Types of the bodies to compress. Without the setting: text, JSON, JavaScript, XML, SVG,
    /// WebAssembly and uncompressed fonts.
    COMPRESSION_TYPES: Text<MediaRange>, Repeatable = text(
        "routes.route.policies.compression.types",
        "a media type",
        "text/*",
        |text| text.parse::<MediaRange>().map_err(|error| error.to_string()),
    )
    .many()
    .enforced("proxy-pipeline", "a_route_selects_the_compressed_media_types");
    /// Bodies with a shorter `Content-Length` are not compressed.
    COMPRESSION_MIN_SIZE: Size, DefaultValue<u64> = size("routes.route.policies.compression.min-size", 0, 1 << 30)
        .or(1_024)
        .enforced("proxy-pipeline", "a_body_below_the_minimum_size_is_not_compressed");
    /// Level of gzip: more takes more CPU time for fewer bytes.
    GZIP_LEVEL: Integer<u8>, DefaultValue<u8> =
        integer("routes.route.policies.compression.gzip-level", 1, 9, "")
            .or(5)
            .enforced("proxy-pipeline", "a_higher_level_makes_fewer_bytes");
    /// Level of Brotli. Higher ones would take up to 32 MiB for each response.
    BROTLI_LEVEL: Integer<u8>, DefaultValue<u8> =
        integer("routes.route.policies.compression.br-level", 0, 6, "")
            .or(4)
            .enforced("proxy-pipeline", "a_higher_level_makes_fewer_bytes");
    /// Level of Zstandard.
    ZSTD_LEVEL: Integer<u8>, DefaultValue<u8> =
        integer("routes.route.policies.compression.zstd-level", 1, 9, "")
            .or(3)
            .enforced("proxy-pipeline", "a_higher_level_makes_fewer_bytes");
    /// Sends copies of requests to a second upstream and drops its responses. A copy never delays
    /// its request: it is sent after the request's body was read, and omitted if 64 copies of the
    /// worker are active or the body is larger than `limits { max-body-buffer-bytes }`. As with
    /// Envoy, `-shadow` is appended to the host's name. Upgrades are not copied.
    SHADOW: Block, Unset = block("routes.route.policies.shadow")
        .optional("no copies")
        .also(ROUTE)
        .enforced("proxy-pipeline", "a_shadow_gets_a_copy_of_each_request");
    /// The upstream that gets the copies.
    SHADOW_UPSTREAM: Text<String>, Required =
        words("routes.route.policies.shadow.upstream", "an upstream's name", "other")
            .enforced("proxy-pipeline", "a_shadow_gets_a_copy_of_each_request");
    /// Share of the requests that are copied.
    SHADOW_PERCENT: Decimal, DefaultValue<f64> =
        decimal("routes.route.policies.shadow.percent", 0.0, 100.0, "percent")
            .or(100.0)
            .enforced("proxy-pipeline", "a_shadow_gets_its_share_of_the_requests");
}
