//! The `upstreams` block.

use super::kind::Block;
use super::number::{Integer, Time};
use super::spec::{DefaultValue, MachinePart, Repeatable, Required, Unset};
use super::table::{
    block, choice, file, flag, integer, named, settings, text, time, word, words, written,
};
use super::text::{Text, Written};
use super::word::{Choice, ChoiceWord, Flag};
use crate::address::TargetAddress;
use crate::upstream::{KeyPin, LoadBalancing, StickySecret, UpstreamProtocol};
use http::HeaderName;
use proxy_framing::ProxyVersion;
use std::path::PathBuf;
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const WEEK: Duration = Duration::from_hours(24 * 7);

const BALANCING: &[ChoiceWord<LoadBalancing>] = &[
    word(
        "round_robin",
        LoadBalancing::RoundRobin,
        "one after the other, smoothly by their weights",
    ),
    word(
        "least_connections",
        LoadBalancing::LeastConnections,
        "the one with the fewest requests in hand for its weight",
    ),
    word(
        "weighted",
        LoadBalancing::Weighted,
        "in proportion to their weights",
    ),
    word(
        "ip_hash",
        LoadBalancing::IpHash,
        "by the client's address, so that a client stays with its target",
    ),
    word(
        "random_two",
        LoadBalancing::RandomTwo,
        "of two random ones, the one with fewer requests in hand for its weight",
    ),
    word(
        "peak_ewma",
        LoadBalancing::PeakEwma,
        "of two random ones, the one that should answer sooner by its latency and load",
    ),
    word(
        "sticky",
        LoadBalancing::Sticky,
        "the one that the client's cookie names, else as `weighted`",
    ),
];

const PROTOCOLS: &[ChoiceWord<UpstreamProtocol>] = &[
    word("h1", UpstreamProtocol::H1, "HTTP/1.1"),
    word(
        "h2",
        UpstreamProtocol::H2,
        "HTTP/2, by ALPN over TLS, by prior knowledge without",
    ),
];

const PROXY_VERSIONS: &[ChoiceWord<ProxyVersion>] = &[
    word("v1", ProxyVersion::V1, "a line of text"),
    word("v2", ProxyVersion::V2, "the binary form"),
];

/// A cookie's name is a token, as a field's name is. [RFC 6265 §4.1.1]
fn cookie_name(text: &str) -> Result<String, String> {
    match HeaderName::from_bytes(text.as_bytes()) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("a cookie's name has no spaces and no separators".to_owned()),
    }
}

settings! {
    /// A group of targets that can answer the same requests.
    UPSTREAM: Block, Repeatable = named("upstreams.upstream", "a name")
        .many()
        .enforced("proxy-plan", "routes_and_upstreams_change");
    /// The targets. `target` may also be written in the upstream itself.
    TARGETS: Block, Repeatable = block("upstreams.upstream.targets")
        .many()
        .enforced("proxy-config", "every_block_is_decoded");
    /// A target: `target "10.0.0.1:80"`, or with a block.
    TARGET: Block, Repeatable = named("upstreams.upstream.targets.target", "its address")
        .many()
        .also(&["upstreams.upstream"])
        .enforced("proxy-upstream", "round_robin_shares_requests_out_evenly");
    /// The target's host and port. Each address of a name is a target of its own, with the weight
    /// written here; a name is resolved again when its records expire. A name of SRV records is
    /// written without a port, as `_http._tcp.example.com`: its records have the ports and weights.
    ADDRESS: Text<TargetAddress>, Required = text(
        "upstreams.upstream.targets.target.address",
        "a host and a port",
        "10.0.0.1:8080",
        |text| text.parse::<TargetAddress>().map_err(|fault| fault.to_string()),
    )
    .names(MachinePart::PeerAddress)
    .enforced("proxy-pipeline", "the_request_target_is_forwarded_unchanged");
    /// The target's share relative to the other targets, under every kind of load balancing. With 0
    /// it receives no new requests, except in sessions bound to it by a `sticky` cookie.
    WEIGHT: Integer<u32>, DefaultValue<u32> =
        integer("upstreams.upstream.targets.target.weight", 0, 10_000, "")
            .or(1)
            .enforced("proxy-upstream", "each_word_of_load_balancing_has_its_own_distribution");
    /// Whether the target gets requests only while no other target of the upstream is healthy. Several backup targets share
    /// the requests. Sessions that a `sticky` cookie binds to it stay with it.
    BACKUP: Flag, DefaultValue<bool> = flag("upstreams.upstream.targets.target.backup")
        .or(false)
        .enforced("proxy-server", "a_backup_target_serves_only_while_no_other_is_healthy");
    /// The load-balancing policy.
    LOAD_BALANCING: Choice<LoadBalancing>, DefaultValue<LoadBalancing> =
        choice("upstreams.upstream.load-balancing", BALANCING)
            .or(LoadBalancing::RoundRobin)
            .aliases(&["load_balancing"])
            .enforced("proxy-upstream", "each_word_of_load_balancing_has_its_own_distribution");
    /// Time in which the share of a new or recovered target grows from a tenth to its full value.
    /// Ignored by `ip_hash`.
    SLOW_START: Time, Unset = time("upstreams.upstream.slow-start-secs", HOUR)
        .optional("the whole share at once")
        .enforced("proxy-upstream", "a_recovered_target_starts_slowly");
    /// Binding of clients to targets by `load-balancing "sticky"`. The cookie is `Secure` for clients of
    /// HTTPS; behind a trusted proxy the scheme is `X-Forwarded-Proto`'s.
    STICKY: Block, Unset = block("upstreams.upstream.sticky")
        .optional("each setting has its default")
        .enforced("proxy-pipeline", "a_sticky_cookie_has_the_name_and_secret_that_are_written");
    /// Name of the cookie.
    STICKY_COOKIE: Text<String>, DefaultValue<Written<String>> =
        text("upstreams.upstream.sticky.cookie", "a cookie's name", "proxy-target", cookie_name)
            .or(written("proxy-target", || "proxy-target".to_owned()))
        .enforced("proxy-pipeline", "a_sticky_cookie_has_the_name_and_secret_that_are_written");
    /// Secret that the cookie's value is derived from, the same on all proxies that share the upstream.
    /// Without it clients are redistributed after a restart.
    STICKY_SECRET: Text<StickySecret>, Unset =
        text("upstreams.upstream.sticky.secret", "at least 16 characters", "the same on all proxies", |text| {
            if text.len() < 16 {
                return Err("a secret has at least 16 characters".to_owned());
            }
            Ok(StickySecret(text.to_owned()))
        })
        .optional("a random one of this process")
        .enforced("proxy-pipeline", "a_sticky_cookie_has_the_name_and_secret_that_are_written");
    /// Protocol of connections to the targets.
    PROTOCOL: Choice<UpstreamProtocol>, DefaultValue<UpstreamProtocol> =
        choice("upstreams.upstream.protocol", PROTOCOLS)
            .or(UpstreamProtocol::H1)
            .enforced("proxy-pipeline", "one_connection_is_enough_for_one_request_at_a_time");
    /// Whether connections to the targets begin with a PROXY protocol header, which has the client's address and port
    /// and the address that the client connected to; TLS follows it. A connection is used by one client connection
    /// alone, or by one client that a trusted proxy names. Health checks and other requests of the proxy itself send `LOCAL`, in version 1 `UNKNOWN`. Not for
    /// `protocol "h2"`.
    SEND_PROXY: Choice<ProxyVersion>, Unset = choice("upstreams.upstream.send-proxy", PROXY_VERSIONS)
        .optional("no header")
        .enforced("proxy-server", "a_target_gets_the_client_s_address_before_the_request");
    /// TLS to the targets. Without the block, connections are in plaintext, whatever the port.
    TLS: Block, Unset = block("upstreams.upstream.tls").optional("plaintext").enforced("proxy-pool", "an_upstream_with_tls_is_never_spoken_to_in_plaintext");
    /// The server name to send and to verify.
    SNI: Text<String>, Unset = words("upstreams.upstream.tls.sni", "a host name", "api.example.com")
        .optional("the target's host")
        .enforced("proxy-pool", "the_name_written_is_asked_for_and_verified");
    /// The trusted certificate authorities, PEM.
    CA_FILE: Text<PathBuf>, Unset =
        file("upstreams.upstream.tls.ca-file", "a certificate file", "ca.pem")
            .optional("the system's authorities")
            .enforced("proxy-tls", "a_target_of_an_unknown_authority_is_not_trusted");
    /// The proxy's client certificate chain, PEM. Requires `key-file`.
    CERT_FILE: Text<PathBuf>, Unset =
        file("upstreams.upstream.tls.cert-file", "a certificate file", "cert.pem")
            .optional("we show none")
            .enforced("proxy-tls", "a_target_that_asks_for_a_certificate_is_shown_ours");
    /// The private key of `cert-file`, PEM.
    KEY_FILE: Text<PathBuf>, Unset =
        file("upstreams.upstream.tls.key-file", "a key file", "key.pem")
            .optional("we show none")
            .enforced("proxy-tls", "a_target_that_asks_for_a_certificate_is_shown_ours");
    /// Whether chain, names and validity of a target's certificate are verified. `#false` needs `pin-sha256`, which is then
    /// the whole check, and is warned of.
    VERIFY: Flag, DefaultValue<bool> = flag("upstreams.upstream.tls.verify")
        .or(true)
        .enforced("proxy-tls", "a_pin_replaces_verification_only_if_that_is_off");
    /// SHA-256 of the public key of a target's own certificate, in base64, as in RFC 7469. With several, one of them must
    /// fit: list the next key together with the one in use. Checked in addition to `verify`. Another key is answered 502,
    /// reason `tls_pin_mismatch`.
    PIN: Text<KeyPin>, Repeatable = text(
        "upstreams.upstream.tls.pin-sha256",
        "a SHA-256 in base64",
        "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM=",
        |text| text.parse::<KeyPin>().map_err(str::to_owned),
    )
    .many()
    .enforced("proxy-tls", "a_target_is_pinned_by_the_key_that_openssl_shows");
    /// Maximum time until the response begins.
    TIMEOUT: Time, Unset = time("upstreams.upstream.timeout-secs", DAY)
        .optional("`timeouts { request-secs }`")
        .deprecated("timeouts { request-secs }")
        .enforced("proxy-pipeline", "the_short_timeouts_of_routes_and_upstreams_are_kept");
    /// Timeouts of targets.
    TIMEOUTS: Block, Unset = block("upstreams.upstream.timeouts")
        .optional("each time has its default")
        .enforced("proxy-config", "every_block_is_decoded");
    /// Maximum time to connect, TLS included. Then 504, or another target.
    CONNECT: Time, DefaultValue<Duration> = time("upstreams.upstream.timeouts.connect-secs", HOUR)
        .or(Duration::from_secs(5))
        .enforced("proxy-pipeline", "a_slow_connect_is_answered_504");
    /// From the end of the request to the head of the response. Then 504.
    REQUEST: Time, DefaultValue<Duration> = time("upstreams.upstream.timeouts.request-secs", DAY)
        .or(Duration::from_mins(1))
        .enforced("proxy-pipeline", "a_late_response_head_is_answered_504");
    /// Between two reads of a response, and between two writes of a request that make progress.
    READ: Time, DefaultValue<Duration> = time("upstreams.upstream.timeouts.read-secs", DAY)
        .or(Duration::from_mins(1))
        .enforced("proxy-pipeline", "a_stalled_response_is_aborted");
    /// Without a byte in either direction on an upgraded connection, as of a `WebSocket`.
    IDLE: Time, DefaultValue<Duration> = time("upstreams.upstream.timeouts.idle-secs", WEEK)
        .or(HOUR)
        .enforced("proxy-pipeline", "an_idle_upgraded_connection_is_closed");
    /// Connection pool of the targets.
    CONNECTION_POOL: Block, Unset = block("upstreams.upstream.connection-pool")
        .optional("each setting has its default")
        .enforced("proxy-config", "every_block_is_decoded");
    /// Maximum number of connections to one target, over all workers. Further requests wait in one
    /// queue, in which clients take turns, for at most the connect timeout; with `protocol "h2"` each worker needs a connection
    /// of its own.
    MAX_CONNECTIONS: Integer<u32>, Unset =
        integer("upstreams.upstream.connection-pool.max-connections", 1, 1_000_000, "connections")
            .optional("only the global limits")
            .enforced("proxy-pool", "the_limit_on_connections_holds_over_all_workers");
    /// Maximum number of idle connections to one target, over all workers. 0 disables it.
    MAX_IDLE: Integer<u32>, Unset =
        integer("upstreams.upstream.connection-pool.max-idle", 0, 1_000_000, "connections")
            .optional("`limits { max-idle-connections-per-upstream }`")
            .enforced("proxy-pool", "no_more_idle_connections_are_kept_than_allowed");
    /// Maximum idle time of a pooled connection. Set it below the targets' own keep-alive time.
    IDLE_TIMEOUT: Time, DefaultValue<Duration> =
        time("upstreams.upstream.connection-pool.idle-timeout-secs", HOUR)
            .or(Duration::from_mins(1))
            .enforced("proxy-pool", "an_idle_connection_is_closed_in_time");
    /// Maximum age of a pooled connection. An older one is closed after its current response, and
    /// not reused.
    MAX_LIFETIME: Time, Unset =
        time("upstreams.upstream.connection-pool.max-lifetime-secs", WEEK)
            .optional("no limit")
            .enforced("proxy-pool", "a_connection_that_is_too_old_serves_no_further_request");
}
