//! The `listeners` block.

use super::kind::Block;
use super::number::{Integer, Time};
use super::spec::{DefaultValue, MachinePart, Repeatable, Required, Unset};
use super::table::{choice, flag, integer, named, settings, text, time, time_from, word, words};
use super::text::Text;
use super::word::{Choice, ChoiceWord, Flag};
use crate::address::BindAddress;
use crate::listener::{ListenerProtocol, PathPolicy};
use ipnet::IpNet;
use std::net::IpAddr;
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);
const MONTH: Duration = Duration::from_hours(24 * 30);

const PROTOCOLS: &[ChoiceWord<ListenerProtocol>] = &[
    word("http", ListenerProtocol::Http, "HTTP without TLS"),
    word("https", ListenerProtocol::Https, "HTTP over TLS"),
    word(
        "tcp",
        ListenerProtocol::Tcp,
        "bytes of any protocol, relayed to an upstream; with a `tls` block TLS ends here",
    ),
    word(
        "tls-passthrough",
        ListenerProtocol::TlsPassthrough,
        "TLS, relayed unchanged to the upstream selected by its server name",
    ),
];

pub(super) const PATH_POLICIES: &[ChoiceWord<PathPolicy>] = &[
    word(
        "strict",
        PathPolicy::Strict,
        "refused with 400 unless every reading matches the same route",
    ),
    word(
        "forward",
        PathPolicy::Forward,
        "forwarded unchanged; routes are matched against the encoded bytes",
    ),
];

fn address(text: &str) -> Result<BindAddress, String> {
    text.parse::<BindAddress>()
        .map_err(|fault| fault.to_string())
}

pub(super) fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse::<IpNet>().ok();
    let one = || text.parse::<IpAddr>().ok().map(IpNet::from);
    network
        .or_else(one)
        .ok_or_else(|| "write an IP address, or a network as `10.0.0.0/8`".to_owned())
}

settings! {
    /// A listener.
    LISTENER: Block, Repeatable = named("listeners.listener", "a name")
        .many()
        .enforced("proxy-server", "a_reload_adds_and_removes_listeners");
    /// Address to bind: an IP address and a port, or a Unix socket, `unix:/run/proxy.sock`.
    /// `[::]:80` accepts IPv6 only; a link-local address includes its interface's index,
    /// `[fe80::1%2]:80`. With port 0 the kernel picks one. Any process with access to a Unix
    /// socket's folder may connect; such a client counts as 127.0.0.1.
    ADDRESS: Text<BindAddress>, Required =
        text("listeners.listener.address", "an address to listen on", "0.0.0.0:8080", address)
        .names(MachinePart::LocalAddress)
        .enforced("proxy-server", "listeners_of_one_address_stay_apart");
    /// Protocol of the listener's connections. `tcp` and `tls-passthrough` relay connections: routes
    /// lead there only if their `listeners` name the listener, and have no conditions but `host`,
    /// which is the server name of the TLS handshake.
    PROTOCOL: Choice<ListenerProtocol>, DefaultValue<ListenerProtocol> =
        choice("listeners.listener.protocol", PROTOCOLS)
            .or(ListenerProtocol::Http)
            .enforced("proxy-server", "a_connection_serves_request_after_request");
    /// The route for requests that match no route.
    DEFAULT_ROUTE: Text<String>, Unset =
        words("listeners.listener.default-route", "a route's id", "app")
            .optional("such requests are answered 404 `ROUTE_NOT_FOUND`")
            .enforced("proxy-pipeline", "unmatched_requests_take_the_default_route");
    /// Networks of trusted peers: their `X-Forwarded-*`, `Forwarded` and similar headers are
    /// forwarded; other peers' are dropped. The client's address is the right-most one outside
    /// these networks.
    TRUSTED_PROXIES: Text<IpNet>, Repeatable =
        text("listeners.listener.trusted-proxies", "a network", "10.0.0.0/8", network)
            .many()
            .enforced(
                "proxy-pipeline",
                "a_trusted_proxy_s_claims_are_continued_and_name_the_client",
            );
    /// Treatment of paths that an upstream could read differently. `strict` finds the route of each
    /// reading: escapes decoded once (`%2F` and `%5C` too), dot segments removed or kept, slashes
    /// merged, path parameters (`;…`) dropped, a backslash as a slash, and every combination of
    /// these. It refuses a path with readings that match different routes; NUL, broken escapes
    /// and dot segments that leave the root in any reading; and more than 16 dot segments. An
    /// accepted path is sent upstream unchanged. A route's own `path-policy` applies to paths that
    /// match it as sent. Files are served only if every reading matches their route, under either
    /// policy.
    PATH_POLICY: Choice<PathPolicy>, DefaultValue<PathPolicy> =
        choice("listeners.listener.path-policy", PATH_POLICIES)
            .or(PathPolicy::Strict)
            .enforced("proxy-pipeline", "a_listener_may_forward_ambiguous_paths_unchanged");
    /// Adds `Via: 1.1 proxyd` to requests sent upstream. Off by default, because some servers
    /// (nginx among them) do not compress responses to requests with `Via`.
    VIA: Flag, DefaultValue<bool> = flag("listeners.listener.via")
        .or(false)
        .enforced("proxy-pipeline", "via_is_added_only_where_it_is_asked_for");
    /// Whether the proxy's own errors carry `Proxy-Status` with the reason (RFC 9209), and name the upstream in their message.
    EXPOSE_REASONS: Flag, DefaultValue<bool> = flag("listeners.listener.expose-reasons")
        .or(false)
        .enforced("proxy-pipeline", "reasons_are_sent_only_where_they_are_exposed");
    /// Accepts HTTP/2 with prior knowledge without TLS.
    H2C: Flag, DefaultValue<bool> = flag("listeners.listener.h2c")
        .or(false)
        .enforced("proxy-server", "http2_is_spoken_without_tls_where_that_is_allowed");
    /// Requires a PROXY protocol header, version 1 or 2, at the beginning of every connection,
    /// within `handshake-secs`. Connections without one, and connections of peers outside
    /// `trusted-proxies`, are closed without a response. After a header without a client the peer's
    /// own address is used, and its forwarding headers are not trusted.
    PROXY_PROTOCOL: Flag, DefaultValue<bool> = flag("listeners.listener.proxy-protocol")
        .or(false)
        .enforced("proxy-server", "a_trusted_proxy_s_header_sets_the_client");
    /// Accepts HTTP/3 on the UDP port of the same address. Requires `protocol "https"`, an IP address and
    /// TLS 1.3. Certificates, client certificates, limits and timeouts are those of the listener. Neither 0-RTT
    /// nor WebSocket over HTTP/3 is accepted. A client that changes its IP address opens another connection for
    /// further requests.
    HTTP3: Flag, DefaultValue<bool> = flag("listeners.listener.http3")
        .or(false)
        .enforced("proxyd", "http3_is_spoken_where_it_is_switched_on");
    /// Adds `Alt-Svc: h3=":PORT"; ma=SECONDS` to responses over HTTP/1.1 and HTTP/2, which replaces a field of the
    /// upstream. Clients may use HTTP/3 for so long, also after it is switched off. Requires `http3`.
    ALT_SVC_MAX_AGE: Time, Unset = time_from(
        "listeners.listener.alt-svc-max-age-secs",
        Duration::from_secs(1),
        MONTH,
    )
    .optional("HTTP/3 is not advertised")
    .enforced("proxyd", "http3_is_advertised_if_configured");
    /// The UDP port in `Alt-Svc`, if clients reach the listener on another port than its own. Requires
    /// `alt-svc-max-age-secs`.
    ALT_SVC_PORT: Integer<u16>, Unset =
        integer("listeners.listener.alt-svc-port", 1, 65_535, "")
            .optional("the port that the client connected to")
            .enforced("proxyd", "http3_is_advertised_if_configured");
    /// Maximum number of concurrent streams on one HTTP/2 or HTTP/3 connection.
    MAX_CONCURRENT_STREAMS: Integer<u32>, DefaultValue<u32> =
        integer("listeners.listener.max-concurrent-streams", 1, 10_000, "streams")
            .or(128)
            .enforced("proxy-server", "no_more_streams_are_open_than_allowed");
    /// Burst of streams that a client of HTTP/2 or HTTP/3 may reset before they were forwarded or answered.
    /// An eighth of it is refilled each second; above it the connection ends with
    /// `ENHANCE_YOUR_CALM`, or with `H3_EXCESSIVE_LOAD`. Resets of streams that were forwarded or answered are not counted.
    MAX_STREAM_RESETS: Integer<u32>, DefaultValue<u32> =
        integer("listeners.listener.max-stream-resets", 16, 100_000, "streams")
            .or(256)
            .enforced("proxy-server", "a_listener_limits_cancelled_streams");
    /// Maximum age of a client connection. At that age it closes after the current response
    /// (`Connection: close`, or GOAWAY), or at once if idle.
    MAX_CONNECTION_AGE: Time, Unset = time_from(
        "listeners.listener.max-connection-age-secs",
        Duration::from_millis(100),
        MONTH,
    )
    .optional("no limit")
    .enforced("proxy-server", "a_connection_ends_at_its_greatest_age");
    /// Maximum number of requests on one client connection. The last response closes it
    /// (`Connection: close`); an HTTP/2 client gets GOAWAY, and streams that it opens before GOAWAY
    /// arrives are served.
    MAX_REQUESTS_PER_CONNECTION: Integer<u32>, Unset =
        integer("listeners.listener.max-requests-per-connection", 1, 1_000_000_000, "requests")
            .optional("no limit")
            .enforced("proxy-server", "a_connection_ends_with_its_last_allowed_request");
    /// Length of the kernel's queue of connections that are not yet accepted. The kernel may have a
    /// lower limit of its own.
    BACKLOG: Integer<u32>, DefaultValue<u32> =
        integer("listeners.listener.backlog", 1, 65_535, "connections")
            .or(1_024)
            .enforced("proxy-server", "a_listener_has_its_backlog");
    /// Timeouts of clients.
    TIMEOUTS: Block, Unset = super::table::block("listeners.listener.timeouts")
        .optional("each time has its default")
        .enforced("proxy-config", "every_block_is_decoded");
    /// From the first to the last byte of a request's head. Then 408, and the connection closes.
    HEADER: Time, DefaultValue<Duration> = time("listeners.listener.timeouts.header-secs", HOUR)
        .or(Duration::from_secs(30))
        .enforced("proxy-pipeline", "a_slow_head_is_answered_408");
    /// Maximum time that the proxy waits for a further KiB of a request body, or for the rest of
    /// it. Then 408, and the connection closes.
    BODY_IDLE: Time, DefaultValue<Duration> = time("listeners.listener.timeouts.body-idle-secs", HOUR)
        .or(Duration::from_secs(30))
        .enforced("proxy-pipeline", "a_stalled_body_is_answered_408");
    /// Maximum time that the proxy waits until the client has taken a further KiB of the response.
    /// Then the connection closes.
    WRITE_IDLE: Time, DefaultValue<Duration> = time("listeners.listener.timeouts.write-idle-secs", HOUR)
        .or(Duration::from_mins(1))
        .enforced("proxy-pipeline", "a_client_that_reads_nothing_is_aborted");
    /// Maximum idle time of a connection between two requests.
    KEEP_ALIVE: Time, DefaultValue<Duration> = time("listeners.listener.timeouts.keep-alive-secs", HOUR)
        .or(Duration::from_secs(75))
        .enforced("proxy-pipeline", "an_idle_connection_is_closed");
    /// Maximum time for the TLS handshake, and for the PROXY protocol header.
    HANDSHAKE: Time, DefaultValue<Duration> = time_from(
        "listeners.listener.timeouts.handshake-secs",
        Duration::from_millis(1),
        Duration::from_mins(5),
    )
    .or(Duration::from_secs(10))
    .enforced("proxy-server", "a_stalled_handshake_is_aborted");
}
