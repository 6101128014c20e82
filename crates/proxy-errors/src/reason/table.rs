//! Every reason: name, owner, own status, `Proxy-Status` error type, words for anyone, meaning.

use super::Row;
use crate::error_type::ErrorType;
use crate::limit_type::LimitType;

reasons! {
    /// The request line is not `method target version`, or is of a version not spoken here.
    BadRequestLine "bad_request_line" Parse, "http_request_error", "malformed request line";
    /// A header name holds a character that names may not hold, or is empty.
    BadHeaderName "bad_header_name" Parse, "http_request_error", "malformed header name";
    /// A header value holds a control character.
    BadHeaderValue "bad_header_value" Parse, "http_request_error", "malformed header value";
    /// White space stands between a header name and its colon.
    SpaceBeforeColon "space_before_colon" Parse, "http_request_error", "space before a header's colon";
    /// A header line begins with white space: line folding, which is obsolete.
    ObsFold "obs_fold" Parse, "http_request_error", "folded header line";
    /// A carriage return without a line feed.
    BareCr "bare_cr" Parse, "http_request_error", "bare carriage return";
    /// A line feed without a carriage return.
    BareLf "bare_lf" Parse, "http_request_error", "bare line feed";
    /// The head of the request holds a NUL.
    NulByte "nul_byte" Parse, "http_request_error", "NUL in the request head";
    /// `Content-Length` is not a decimal number, or is too large to count.
    BadContentLength "bad_content_length" Parse, "http_request_error", "malformed Content-Length";
    /// `Content-Length` stands more than once or holds a list.
    ConflictingContentLength "conflicting_content_length" Parse, "http_request_error", "conflicting Content-Length";
    /// `Content-Length` stands beside `Transfer-Encoding`.
    ContentLengthWithTransferEncoding "content_length_with_transfer_encoding" Parse, "http_request_error", "Content-Length beside Transfer-Encoding";
    /// `Transfer-Encoding` is other than one `chunked`, or comes with HTTP/1.0.
    BadTransferEncoding "bad_transfer_encoding" Parse, "http_request_error", "unsupported Transfer-Encoding";
    /// A chunk's size line or its end is malformed.
    BadChunk "bad_chunk" Parse, "http_request_error", "malformed chunk";
    /// A trailer is malformed or may not be one.
    BadTrailer "bad_trailer" Parse, "http_request_error", "malformed trailer";
    /// The request has no `Host`.
    MissingHost "missing_host" Parse, "http_request_error", "missing Host";
    /// The request has several `Host` fields, or one that differs from its `:authority`.
    RepeatedHost "repeated_host" Parse, "http_request_error", "repeated Host";
    /// The host is not a host name, an address, or one of these with a port.
    InvalidHost "invalid_host" Parse, "http_request_error", "invalid Host";
    /// The peer broke the rules of HTTP/2; its stream or connection is reset.
    Http2ProtocolError "http2_protocol_error" Parse, "http_request_error", "HTTP/2 protocol error";
    /// The PROXY protocol's header is missing or malformed; the connection is closed unanswered.
    BadProxyProtocol "bad_proxy_protocol" Parse, "http_request_error", "malformed PROXY protocol header";

    /// The path has more `..` segments than segments before them.
    PathEscapesRoot "path_escapes_root" RequestValidation, "http_request_error", "path leaves its root";
    /// Servers that read the path in different ways would take it to different routes.
    AmbiguousPath "ambiguous_path" RequestValidation, "http_request_error", "path has more than one meaning";
    /// The path holds `%00`.
    EncodedNul "encoded_nul" RequestValidation, "http_request_error", "NUL in the path";
    /// The path holds a `%` that two hexadecimal digits do not follow.
    BadPathEscape "bad_path_escape" RequestValidation, "http_request_error", "broken escape in the path";
    /// The request target is of no form that its method allows.
    BadRequestTarget "bad_request_target" RequestValidation, "http_request_error", "invalid request target";
    /// `CONNECT` asks for a tunnel; this proxy opens none.
    ConnectMethodRefused "connect_method_refused" RequestValidation => 405, "http_request_denied", "CONNECT is not served";
    /// The resource is served by the proxy itself and not by this method.
    MethodNotAllowed "method_not_allowed" RequestValidation => 405, "http_request_denied", "method not allowed";
    /// The host is not served on this connection, whose certificate names others.
    MisdirectedRequest "misdirected_request" RequestValidation => 421, "http_request_denied", "host not served on this connection";
    /// `Expect` asks for something other than `100-continue`.
    UnsupportedExpectation "unsupported_expectation" RequestValidation => 417, "http_request_denied", "unsupported expectation";
    /// The body to be inspected is not what its `Content-Encoding` says.
    BadContentEncoding "bad_content_encoding" RequestValidation, "http_request_error", "undecodable body";
    /// A static file does not meet the request's `If-Match` or `If-Unmodified-Since`.
    PreconditionFailed "precondition_failed" RequestValidation => 412, "http_request_denied", "precondition failed";
    /// A static file has none of the ranges asked for.
    RangeNotSatisfiable "range_not_satisfiable" RequestValidation => 416, "http_request_denied", "range not satisfiable";

    /// No route accepts the request and the listener has no default route.
    RouteNotFound "route_not_found" RouteNotFound, "destination_not_found", "no route matches";
    /// There is no such file below the route's root.
    StaticNotFound "static_not_found" RouteNotFound, "destination_not_found", "no such file";

    /// The request shows no credentials where some are required.
    CredentialsMissing "credentials_missing" AuthenticationFailed, "http_request_denied", "credentials missing";
    /// The request's credentials are not accepted.
    CredentialsInvalid "credentials_invalid" AuthenticationFailed, "http_request_denied", "credentials invalid";
    /// An agent asks the client to prove who it is.
    AgentChallenge "agent_challenge" AuthenticationFailed, "http_request_denied", "credentials required";
    /// The client may not do this.
    AccessDenied "access_denied" AuthorizationFailed, "http_request_denied", "access denied";
    /// The file may not be read, or lies outside the route's root.
    StaticForbidden "static_forbidden" AuthorizationFailed, "http_request_denied", "access denied";
    /// An agent blocked the request or its response.
    AgentBlocked "agent_blocked" WafBlocked, "http_request_denied", "blocked by policy";

    /// The header section is larger than `max-header-size-bytes`.
    HeaderSizeLimit "header_size_limit" LimitExceeded(HeaderSize), "http_request_denied", "header section too large";
    /// There are more header fields than `max-header-count`.
    HeaderCountLimit "header_count_limit" LimitExceeded(HeaderCount), "http_request_denied", "too many header fields";
    /// A header name is longer than `max-header-name-bytes`.
    HeaderNameLimit "header_name_limit" LimitExceeded(HeaderSize), "http_request_denied", "header name too long";
    /// A header value is longer than `max-header-value-bytes`.
    HeaderValueLimit "header_value_limit" LimitExceeded(HeaderSize), "http_request_denied", "header value too long";
    /// The body is larger than `max-body-size`, as announced or as received.
    BodySizeLimit "body_size_limit" LimitExceeded(BodySize) => 413, "http_request_denied", "body too large";
    /// The body unfolds to more than `max-decompressed-size-bytes` or `max-decompression-ratio`.
    DecompressionLimit "decompression_limit" LimitExceeded(DecompressionSize) => 413, "http_request_denied", "decompressed body too large";
    /// A body that must be held whole is larger than `max-body-buffer-bytes`.
    BufferSizeLimit "buffer_size_limit" LimitExceeded(BufferSize) => 413, "http_request_denied", "body too large to buffer";
    /// `max-total-connections` are open.
    ConnectionLimit "connection_limit" LimitExceeded(ConnectionCount) => 503, "connection_limit_reached", "too many connections";
    /// `max-connections-per-client` are open from this client.
    ClientConnectionLimit "client_connection_limit" LimitExceeded(ConnectionCount) => 503, "connection_limit_reached", "too many connections";
    /// `max-connections-per-route` are open on this route.
    RouteConnectionLimit "route_connection_limit" LimitExceeded(ConnectionCount) => 503, "connection_limit_reached", "too many connections";
    /// `max-in-flight-requests`, in all or of this worker, are being served.
    InFlightLimit "in_flight_limit" LimitExceeded(InFlightRequests) => 503, "http_request_denied", "too many requests in flight";
    /// `max-queued-requests` are waiting.
    QueueFull "queue_full" LimitExceeded(QueueDepth) => 503, "http_request_denied", "request queue full";
    /// The request waited for its turn too long.
    QueueTimeout "queue_timeout" LimitExceeded(QueueDepth) => 503, "http_request_denied", "waited too long in the queue";
    /// The peer resets or opens HTTP/2 streams, or sends control frames, faster than is sane.
    Http2Flood "http2_flood" LimitExceeded(RequestRate), "http_request_denied", "too many HTTP/2 frames";

    /// `max-requests-per-second-global` is used up.
    GlobalRateLimit "global_rate_limit" RateLimit, "http_request_denied", "too many requests";
    /// `max-requests-per-second-per-client` is used up.
    ClientRateLimit "client_rate_limit" RateLimit, "http_request_denied", "too many requests";
    /// `max-requests-per-second-per-route` is used up.
    RouteRateLimit "route_rate_limit" RateLimit, "http_request_denied", "too many requests";
    /// The `rate-limit` policy of the route is used up for this key.
    PolicyRateLimit "policy_rate_limit" RateLimit, "http_request_denied", "too many requests";

    /// The client did not show a certificate that the listener requires.
    ClientCertificateMissing "client_certificate_missing" Tls, "http_request_denied", "client certificate required";
    /// The client's certificate is expired, revoked, or of no trusted issuer.
    ClientCertificateInvalid "client_certificate_invalid" Tls, "http_request_denied", "client certificate not accepted";
    /// The client's handshake failed or took too long; the connection is closed unanswered.
    ClientTlsFailed "client_tls_failed" Tls, "tls_protocol_error", "TLS handshake failed";

    /// The configuration asks for something that cannot be done at run time.
    ConfigError "config_error" Config, "proxy_configuration_error", "configuration error";

    /// The agent did not answer in time.
    AgentTimeout "agent_timeout" Agent => 504, "proxy_internal_error", "agent timed out";
    /// The agent's socket cannot be reached or was closed.
    AgentUnreachable "agent_unreachable" Agent => 503, "proxy_internal_error", "agent unreachable";
    /// The agent's circuit breaker is open.
    AgentBreakerOpen "agent_breaker_open" Agent => 503, "proxy_internal_error", "agent unavailable";
    /// `max-agent-queue-depth` requests wait for the agent.
    AgentQueueFull "agent_queue_full" Agent => 503, "proxy_internal_error", "agent overloaded";
    /// The agent's reply is malformed, too large, or of no event it was asked about.
    AgentBadReply "agent_bad_reply" Agent, "proxy_internal_error", "agent reply invalid";

    /// A fault of the program ended this request; the others went on.
    Panic "panic" Internal, "proxy_internal_error", "internal error";
    /// Something that should not happen did.
    InternalError "internal_error" Internal, "proxy_internal_error", "internal error";
    /// The database cannot be reached or refused a statement.
    DatabaseError "database_error" Internal, "proxy_internal_error", "internal error";

    /// The client went away before its response was complete; logged as 499, never answered.
    ClientAborted "client_aborted" Io => 499, "connection_terminated", "client closed the request";
    /// A static file exists and cannot be read.
    StaticReadFailed "static_read_failed" Io, "proxy_internal_error", "internal error";
    /// An operation of the system failed that is neither the client's nor the upstream's.
    IoError "io_error" Io, "proxy_internal_error", "internal error";

    /// The name of the target has no address and none is remembered.
    DnsFailed "dns_failed" Upstream, "dns_error", "name resolution failed";
    /// The target refused the connection.
    ConnectRefused "connect_refused" Upstream, "connection_refused", "connection refused";
    /// There is no way to the target's host or network.
    ConnectUnreachable "connect_unreachable" Upstream, "destination_ip_unroutable", "host unreachable";
    /// The target reset the connection while it was being made.
    ConnectReset "connect_reset" Upstream, "connection_terminated", "connection reset";
    /// The connection could not be made for another reason, such as no free local port.
    ConnectFailed "connect_failed" Upstream, "destination_unavailable", "connection failed";
    /// The target speaks no TLS, no common version, or not the protocol that was agreed.
    TlsHandshakeFailed "tls_handshake_failed" Upstream, "tls_protocol_error", "TLS handshake failed";
    /// The target's certificate is not trusted, expired, or names another host.
    TlsVerifyFailed "tls_verify_failed" Upstream, "tls_certificate_error", "certificate not accepted";
    /// The target closed the connection before a response's head was complete.
    UpstreamClosedEarly "upstream_closed_early" Upstream, "connection_terminated", "connection closed early";
    /// The target reset the connection or the stream.
    UpstreamReset "upstream_reset" Upstream, "connection_terminated", "connection reset";
    /// The target took no more of the request.
    UpstreamWriteFailed "upstream_write_failed" Upstream, "connection_terminated", "request not accepted";
    /// The target refused the HTTP/2 stream without looking at it.
    UpstreamRefusedStream "upstream_refused_stream" Upstream, "connection_terminated", "stream refused";

    /// The status line is not `version status reason`.
    BadStatusLine "bad_status_line" ResponseValidation, "http_protocol_error", "malformed status line";
    /// A header of the response is malformed.
    BadResponseHeader "bad_response_header" ResponseValidation, "http_protocol_error", "malformed response header";
    /// The response tells its length twice, by different words or by `Transfer-Encoding` beside it.
    ResponseConflictingLength "response_conflicting_length" ResponseValidation, "http_protocol_error", "conflicting response length";
    /// The response's transfer coding is unknown or its chunks are malformed.
    ResponseBadChunk "response_bad_chunk" ResponseValidation, "http_response_transfer_coding", "malformed response body";
    /// The response ended before its announced length or its last chunk.
    ResponseTruncated "response_truncated" ResponseValidation, "http_response_incomplete", "response incomplete";
    /// The target switched protocols though nobody asked, or to another one.
    UnaskedUpgrade "unasked_upgrade" ResponseValidation, "http_upgrade_failed", "unexpected protocol switch";
    /// The target did not switch to the protocol that a client of HTTP/2 asked for.
    UpgradeDeclined "upgrade_declined" ResponseValidation, "http_upgrade_failed", "upgrade declined";
    /// The target sent more informational responses than are sane.
    TooManyInformational "too_many_informational" ResponseValidation, "http_protocol_error", "too many informational responses";
    /// The response's header section is larger than is accepted.
    UpstreamHeaderTooLarge "upstream_header_too_large" ResponseValidation, "http_response_header_section_size", "response header too large";
    /// The target broke the rules of HTTP/2.
    UpstreamHttp2Error "upstream_http2_error" ResponseValidation, "http_protocol_error", "HTTP/2 protocol error";

    /// The proxy is shutting down and takes no new requests.
    Draining "draining" ServiceUnavailable, "http_request_denied", "shutting down";
    /// A reload removed the route of a stream, whose time to end is over: `graceful-shutdown-timeout-secs`.
    RouteRemoved "route_removed" ServiceUnavailable, "connection_terminated", "route removed";
    /// A reload removed the target of a stream, whose time to end is over: `graceful-shutdown-timeout-secs`.
    TargetRemoved "target_removed" ServiceUnavailable, "connection_terminated", "target removed";
    /// The proxy sheds load to stay responsive.
    Overloaded "overloaded" ServiceUnavailable, "http_request_denied", "overloaded";
    /// `max-memory-bytes` or `max-memory-percent` is reached.
    MemoryPressure "memory_pressure" ServiceUnavailable, "http_request_denied", "overloaded";
    /// The upstream's `max-connections` are in use and none came free in time.
    NoFreeConnection "no_free_connection" ServiceUnavailable, "connection_limit_reached", "no free upstream connection";
    /// The breaker of the route and its upstream is open after consecutive failures.
    BreakerOpen "breaker_open" CircuitBreakerOpen, "destination_unavailable", "circuit breaker open";
    /// Every target of the upstream failed its health checks.
    AllTargetsUnhealthy "all_targets_unhealthy" NoHealthyUpstream, "destination_unavailable", "no healthy target";
    /// The upstream has no target that may be used: none resolved, or all are draining.
    NoTargets "no_targets" NoHealthyUpstream, "destination_unavailable", "no usable target";

    /// The request's head did not arrive in time.
    RequestHeaderTimeout "request_header_timeout" Timeout => 408, "http_request_error", "request header";
    /// The request's body stopped arriving.
    RequestBodyTimeout "request_body_timeout" Timeout => 408, "http_request_error", "request body";
    /// The client stopped taking its response; the connection is closed.
    ClientWriteTimeout "client_write_timeout" Timeout => 408, "connection_write_timeout", "response to client";
    /// The connection to the target was not made within `connect-secs`, TLS included.
    ConnectTimeout "connect_timeout" Timeout, "connection_timeout", "connect";
    /// The target stopped taking the request.
    UpstreamWriteTimeout "upstream_write_timeout" Timeout, "connection_write_timeout", "request to upstream";
    /// The response's head did not come within `request-secs`.
    ResponseHeaderTimeout "response_header_timeout" Timeout, "http_response_timeout", "response header";
    /// No byte of the response came for `read-secs`.
    ResponseReadTimeout "response_read_timeout" Timeout, "connection_read_timeout", "response read";
    /// The whole exchange, whose response had begun, took longer than the route's `request-secs`.
    RequestTimeout "request_timeout" Timeout, "http_response_timeout", "request";
    /// A static file could not be opened, or its next piece not be read, in time.
    StaticReadTimeout "static_read_timeout" Timeout, "proxy_internal_error", "file read";
    /// Nothing went through an upgraded connection for the idle time.
    TunnelIdleTimeout "tunnel_idle_timeout" Timeout, "connection_read_timeout", "idle tunnel";
}
