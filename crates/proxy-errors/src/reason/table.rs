//! All reasons: name, type, own status, `Proxy-Status` error type, phrase, meaning.

use super::row::Row;
use crate::error_type::ErrorType;
use crate::limit_type::LimitType;

reasons! {
    /// The request line is not `method target version`, its target has no form of RFC 9112 §3.2 that its
    /// method allows, or its version is not supported.
    BadRequestLine "bad_request_line" Parse, "http_request_error", "malformed request line";
    /// A header name is empty or contains a character that is not allowed in names.
    BadHeaderName "bad_header_name" Parse, "http_request_error", "malformed header name";
    /// A header value contains a control character.
    BadHeaderValue "bad_header_value" Parse, "http_request_error", "malformed header value";
    /// White space precedes a header's colon.
    SpaceBeforeColon "space_before_colon" Parse, "http_request_error", "space before a header's colon";
    /// A header line begins with white space: line folding, which is obsolete.
    ObsFold "obs_fold" Parse, "http_request_error", "folded header line";
    /// A carriage return without a line feed.
    BareCr "bare_cr" Parse, "http_request_error", "bare carriage return";
    /// A line feed without a carriage return.
    BareLf "bare_lf" Parse, "http_request_error", "bare line feed";
    /// The head of the request contains a NUL.
    NulByte "nul_byte" Parse, "http_request_error", "NUL in the request head";
    /// `Content-Length` is not a decimal number, or is too large to count.
    BadContentLength "bad_content_length" Parse, "http_request_error", "malformed Content-Length";
    /// `Content-Length` occurs more than once or is a list.
    ConflictingContentLength "conflicting_content_length" Parse, "http_request_error", "conflicting Content-Length";
    /// `Content-Length` occurs together with `Transfer-Encoding`.
    ContentLengthWithTransferEncoding "content_length_with_transfer_encoding" Parse, "http_request_error", "Content-Length beside Transfer-Encoding";
    /// `Transfer-Encoding` is not a single `chunked`, or occurs in HTTP/1.0.
    BadTransferEncoding "bad_transfer_encoding" Parse, "http_request_error", "unsupported Transfer-Encoding";
    /// A chunk's size line or its end is malformed.
    BadChunk "bad_chunk" Parse, "http_request_error", "malformed chunk";
    /// A trailer is malformed or not allowed as a trailer.
    BadTrailer "bad_trailer" Parse, "http_request_error", "malformed trailer";
    /// The request has no `Host`.
    MissingHost "missing_host" Parse, "http_request_error", "missing Host";
    /// The request has several `Host` fields, or one that differs from its `:authority`.
    RepeatedHost "repeated_host" Parse, "http_request_error", "repeated Host";
    /// The host is not a host name, an address, or one of these with a port.
    InvalidHost "invalid_host" Parse, "http_request_error", "invalid Host";
    /// The peer violated HTTP/2; its stream or connection is reset.
    Http2ProtocolError "http2_protocol_error" Parse, "http_request_error", "HTTP/2 protocol error";
    /// The client violated HTTP/3; its stream or connection is reset.
    Http3ProtocolError "http3_protocol_error" Parse, "http_request_error", "HTTP/3 protocol error";
    /// The PROXY protocol's header is missing or malformed; the connection is closed without a
    /// response.
    BadProxyProtocol "bad_proxy_protocol" Parse, "http_request_error", "malformed PROXY protocol header";

    /// The path has more `..` segments than segments before them.
    PathEscapesRoot "path_escapes_root" RequestValidation, "http_request_error", "path leaves its root";
    /// Servers that read the path differently would find different routes.
    AmbiguousPath "ambiguous_path" RequestValidation, "http_request_error", "path has more than one meaning";
    /// The path contains `%00`.
    EncodedNul "encoded_nul" RequestValidation, "http_request_error", "NUL in the path";
    /// The path contains a `%` without two hexadecimal digits.
    BadPathEscape "bad_path_escape" RequestValidation, "http_request_error", "broken escape in the path";
    /// The request target does not have a form that its method allows.
    BadRequestTarget "bad_request_target" RequestValidation, "http_request_error", "invalid request target";
    /// The body of a request to the admin interface does not specify a change.
    AdminBodyInvalid "admin_body_invalid" RequestValidation, "http_request_error", "invalid body of an admin request";
    /// A web page of another site sent the admin interface a request that may change something.
    CrossSiteRequest "cross_site_request" RequestValidation => 403, "http_request_denied", "request from a page of another site";
    /// `CONNECT` is not supported.
    ConnectMethodRefused "connect_method_refused" RequestValidation => 405, "http_request_denied", "CONNECT is not served";
    /// The proxy serves the resource itself, and not with this method.
    MethodNotAllowed "method_not_allowed" RequestValidation => 405, "http_request_denied", "method not allowed";
    /// The connection's certificate does not cover this host, which another certificate covers.
    MisdirectedRequest "misdirected_request" RequestValidation => 421, "http_request_denied", "host not served on this connection";
    /// `Expect` has a value other than `100-continue`.
    UnsupportedExpectation "unsupported_expectation" RequestValidation => 417, "http_request_denied", "unsupported expectation";
    /// A body for inspection does not match its `Content-Encoding`.
    BadContentEncoding "bad_content_encoding" RequestValidation, "http_request_error", "undecodable body";
    /// A static file does not meet the request's `If-Match` or `If-Unmodified-Since`.
    PreconditionFailed "precondition_failed" RequestValidation => 412, "http_request_denied", "precondition failed";
    /// A static file or a stored response has none of the requested ranges.
    RangeNotSatisfiable "range_not_satisfiable" RequestValidation => 416, "http_request_denied", "range not satisfiable";
    /// The client accepts only a stored response (`only-if-cached`), and there is none.
    NotStored "not_stored" RequestValidation => 504, "http_request_denied", "not in the cache";
    /// The route's `respond` has a status of the 4xx, which the response has.
    RespondClientError "respond_client_error" RequestValidation, "http_request_denied", "refused by the configuration";

    /// No route accepts the request and the listener has no default route.
    RouteNotFound "route_not_found" RouteNotFound, "destination_not_found", "no route matches";
    /// An admin request concerns an upstream, a target, a cache or a recording that the active configuration does not have.
    AdminTargetUnknown "admin_target_unknown" RouteNotFound, "destination_not_found", "no such upstream or target";
    /// The file does not exist below the route's root.
    StaticNotFound "static_not_found" RouteNotFound, "destination_not_found", "no such file";

    /// The request lacks required credentials.
    CredentialsMissing "credentials_missing" AuthenticationFailed, "http_request_denied", "credentials missing";
    /// The request's credentials are not accepted.
    CredentialsInvalid "credentials_invalid" AuthenticationFailed, "http_request_denied", "credentials invalid";
    /// An agent requires authentication.
    AgentChallenge "agent_challenge" AuthenticationFailed, "http_request_denied", "credentials required";
    /// `allow` and `deny` of the listener or of the route do not admit the client's address.
    AccessDenied "access_denied" AuthorizationFailed, "http_request_denied", "access denied";
    /// The request's token is valid, and lacks a claim or a scope that the route requires.
    TokenClaimMissing "token_claim_missing" AuthorizationFailed, "http_request_denied", "insufficient scope";
    /// The file is not readable, or is outside the route's root.
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
    /// The decompressed body exceeds `max-decompressed-size-bytes` or `max-decompression-ratio`.
    DecompressionLimit "decompression_limit" LimitExceeded(DecompressionSize) => 413, "http_request_denied", "decompressed body too large";
    /// A body that must be buffered whole is larger than `max-body-buffer-bytes`.
    BufferSizeLimit "buffer_size_limit" LimitExceeded(BufferSize) => 413, "http_request_denied", "body too large to buffer";
    /// The number of connections is at `max-total-connections`.
    ConnectionLimit "connection_limit" LimitExceeded(ConnectionCount) => 503, "connection_limit_reached", "too many connections";
    /// The client's number of connections is at `max-connections-per-client`.
    ClientConnectionLimit "client_connection_limit" LimitExceeded(ConnectionCount) => 503, "connection_limit_reached", "too many connections";
    /// The route's number of connections is at `max-connections-per-route`, or near it, and the client has its
    /// fair share of them.
    RouteConnectionLimit "route_connection_limit" LimitExceeded(ConnectionCount) => 503, "connection_limit_reached", "too many connections";
    /// The number of requests in flight is at `max-in-flight-requests`, or in this worker at
    /// `max-in-flight-requests-per-worker`, and none may wait.
    InFlightLimit "in_flight_limit" LimitExceeded(InFlightRequests) => 503, "http_request_denied", "too many requests in flight";
    /// Few places for requests in flight are free, and the route, its upstream or the client holds its
    /// fair share of them.
    InFlightShare "in_flight_share" LimitExceeded(InFlightRequests) => 503, "http_request_denied", "too many requests in flight";
    /// The number of queued requests is at `max-queued-requests`.
    QueueFull "queue_full" LimitExceeded(QueueDepth) => 503, "http_request_denied", "request queue full";
    /// The request was queued for `max-queue-wait-secs` without a place among those in flight.
    QueueTimeout "queue_timeout" LimitExceeded(InFlightRequests) => 503, "http_request_denied", "waited too long in the queue";
    /// The worker's maximum of concurrent password comparisons is reached.
    CredentialChecksBusy "credential_checks_busy" LimitExceeded(QueueDepth) => 503, "http_request_denied", "too many credentials to check";
    /// The peer resets or opens HTTP/2 streams, or sends control frames, at an excessive rate.
    Http2Flood "http2_flood" LimitExceeded(RequestRate), "http_request_denied", "too many HTTP/2 frames";
    /// The client resets or opens HTTP/3 streams, or sends frames without data, at an excessive rate.
    Http3Flood "http3_flood" LimitExceeded(RequestRate), "http_request_denied", "too many HTTP/3 frames";

    /// The rate `max-requests-per-second-global` is exceeded.
    GlobalRateLimit "global_rate_limit" RateLimit, "http_request_denied", "too many requests";
    /// The rate `max-requests-per-second-per-client` is exceeded.
    ClientRateLimit "client_rate_limit" RateLimit, "http_request_denied", "too many requests";
    /// The rate `max-requests-per-second-per-route` is exceeded.
    RouteRateLimit "route_rate_limit" RateLimit, "http_request_denied", "too many requests";
    /// The route's `rate-limit` policy is exceeded for this key.
    PolicyRateLimit "policy_rate_limit" RateLimit, "http_request_denied", "too many requests";
    /// The client has sent wrong passwords faster than `attempts` of `basic-auth` allows.
    CredentialAttempts "credential_attempts" RateLimit, "http_request_denied", "too many failed attempts";

    /// The client sent no certificate although the listener requires one.
    ClientCertificateMissing "client_certificate_missing" Tls, "http_request_denied", "client certificate required";
    /// The client's certificate is expired, revoked, or not from a trusted issuer.
    ClientCertificateInvalid "client_certificate_invalid" Tls, "http_request_denied", "client certificate not accepted";
    /// The client's handshake failed or timed out; the connection is closed without a response. Plain HTTP on a listener with TLS is answered.
    ClientTlsFailed "client_tls_failed" Tls, "tls_protocol_error", "TLS handshake failed";

    /// The configuration requires something that is impossible at run time. Reserved: no code reports it.
    ConfigError "config_error" Config, "proxy_configuration_error", "configuration error";
    /// The route's `redirect` is to the URL of the request itself.
    RedirectLoop "redirect_loop" Config, "proxy_configuration_error", "redirect loop";

    /// The agent did not answer in time.
    AgentTimeout "agent_timeout" Agent => 504, "proxy_internal_error", "agent timed out";
    /// The agent's socket cannot be reached or was closed.
    AgentUnreachable "agent_unreachable" Agent => 503, "proxy_internal_error", "agent unreachable";
    /// The agent's circuit breaker is open.
    AgentBreakerOpen "agent_breaker_open" Agent => 503, "proxy_internal_error", "agent unavailable";
    /// The agent's queue is at `max-agent-queue-depth`.
    AgentQueueFull "agent_queue_full" Agent => 503, "proxy_internal_error", "agent overloaded";
    /// The agent's reply is malformed, too large, or for an event that it was not sent.
    AgentBadReply "agent_bad_reply" Agent, "proxy_internal_error", "agent reply invalid";

    /// A defect of the program ended this request; other requests were not affected.
    Panic "panic" Internal, "proxy_internal_error", "internal error";
    /// An invariant of the program is broken.
    InternalError "internal_error" Internal, "proxy_internal_error", "internal error";
    /// The database is unreachable or refused a statement. Reserved: no code reports it.
    DatabaseError "database_error" Internal, "proxy_internal_error", "internal error";

    /// The client disconnected before its response was complete; logged as 499, without a response.
    ClientAborted "client_aborted" Io => 499, "connection_terminated", "client closed the request";
    /// A static file exists but cannot be read.
    StaticReadFailed "static_read_failed" Io, "proxy_internal_error", "internal error";
    /// A system call failed, caused neither by the client nor by the upstream. Reserved: no code
    /// reports it.
    IoError "io_error" Io, "proxy_internal_error", "internal error";

    /// The target's name has no address, and no earlier address is known.
    DnsFailed "dns_failed" NoHealthyUpstream, "dns_error", "name resolution failed";
    /// The target refused the connection.
    ConnectRefused "connect_refused" Upstream, "connection_refused", "connection refused";
    /// The target's host or network is unreachable.
    ConnectUnreachable "connect_unreachable" Upstream, "destination_ip_unroutable", "host unreachable";
    /// The target reset the connection during connecting.
    ConnectReset "connect_reset" Upstream, "connection_terminated", "connection reset";
    /// Connecting failed for another reason, such as no free local port.
    ConnectFailed "connect_failed" Upstream, "destination_unavailable", "connection failed";
    /// The target does not support TLS, a common version, or the required protocol.
    TlsHandshakeFailed "tls_handshake_failed" Upstream, "tls_protocol_error", "TLS handshake failed";
    /// The target's certificate is untrusted, expired, or for another host.
    TlsVerifyFailed "tls_verify_failed" Upstream, "tls_certificate_error", "certificate not accepted";
    /// The public key of the target's certificate is none of those that `pin-sha256` lists.
    TlsPinMismatch "tls_pin_mismatch" Upstream, "tls_certificate_error", "certificate not accepted";
    /// The target closed the connection before a response's head was complete.
    UpstreamClosedEarly "upstream_closed_early" Upstream, "connection_terminated", "connection closed early";
    /// The target reset the connection or the stream.
    UpstreamReset "upstream_reset" Upstream, "connection_terminated", "connection reset";
    /// The target closed the connection while the request was being sent. Reserved: no code reports it.
    UpstreamWriteFailed "upstream_write_failed" Upstream, "connection_terminated", "request not accepted";
    /// The target refused the HTTP/2 stream without processing it.
    UpstreamRefusedStream "upstream_refused_stream" Upstream, "connection_terminated", "stream refused";

    /// The status line is not `version status reason`.
    BadStatusLine "bad_status_line" ResponseValidation, "http_protocol_error", "malformed status line";
    /// A header of the response is malformed.
    BadResponseHeader "bad_response_header" ResponseValidation, "http_protocol_error", "malformed response header";
    /// The response has two different lengths, or a length together with `Transfer-Encoding`.
    ResponseConflictingLength "response_conflicting_length" ResponseValidation, "http_protocol_error", "conflicting response length";
    /// The response's transfer coding is unknown or its chunks are malformed.
    ResponseBadChunk "response_bad_chunk" ResponseValidation, "http_response_transfer_coding", "malformed response body";
    /// The response ended before its announced length or its last chunk.
    ResponseTruncated "response_truncated" ResponseValidation, "http_response_incomplete", "response incomplete";
    /// The target switched protocols without a request for it, or to another protocol.
    UnaskedUpgrade "unasked_upgrade" ResponseValidation, "http_upgrade_failed", "unexpected protocol switch";
    /// The target did not switch to the protocol that an HTTP/2 client requested, or the route answers without a target.
    UpgradeDeclined "upgrade_declined" ResponseValidation, "http_upgrade_failed", "upgrade declined";
    /// The target sent too many informational responses.
    TooManyInformational "too_many_informational" ResponseValidation, "http_protocol_error", "too many informational responses";
    /// The response's header section exceeds the limit.
    UpstreamHeaderTooLarge "upstream_header_too_large" ResponseValidation, "http_response_header_section_size", "response header too large";
    /// The target violated HTTP/2.
    UpstreamHttp2Error "upstream_http2_error" ResponseValidation, "http_protocol_error", "HTTP/2 protocol error";

    /// The proxy ended before the request did: `graceful-shutdown-timeout-secs` had passed, or it
    /// was signalled to exit at once.
    Draining "draining" ServiceUnavailable, "connection_terminated", "shutting down";
    /// A reload removed the stream's route, and `graceful-shutdown-timeout-secs` has passed.
    RouteRemoved "route_removed" ServiceUnavailable, "connection_terminated", "route removed";
    /// A reload removed the stream's target, and `graceful-shutdown-timeout-secs` has passed.
    TargetRemoved "target_removed" ServiceUnavailable, "connection_terminated", "target removed";
    /// The route's `respond` has a status of the 5xx, which the response has.
    RespondServerError "respond_server_error" ServiceUnavailable, "http_request_denied", "unavailable by the configuration";
    /// There are no keys to verify tokens with: none were fetched from the issuer yet, or the last ones are too old.
    TokenKeysUnavailable "token_keys_unavailable" ServiceUnavailable, "http_request_denied", "credentials cannot be checked";
    /// The proxy sheds load. Reserved: no code reports it.
    Overloaded "overloaded" ServiceUnavailable, "http_request_denied", "overloaded";
    /// `max-memory-bytes` or `max-memory-percent` is reached.
    MemoryPressure "memory_pressure" ServiceUnavailable, "http_request_denied", "overloaded";
    /// The target's `max-connections` are in use and none became free in time; or the process has no
    /// file descriptor left, though idle connections were closed.
    NoFreeConnection "no_free_connection" ServiceUnavailable, "connection_limit_reached", "no free upstream connection";
    /// The breaker of the route and its upstream is open after consecutive failures.
    BreakerOpen "breaker_open" CircuitBreakerOpen, "destination_unavailable", "circuit breaker open";
    /// Every target of the upstream failed its health checks.
    AllTargetsUnhealthy "all_targets_unhealthy" NoHealthyUpstream, "destination_unavailable", "no healthy target";
    /// The upstream has no usable target: none resolved, or all are draining or of weight 0.
    NoTargets "no_targets" NoHealthyUpstream, "destination_unavailable", "no usable target";

    /// The request's head did not arrive in time.
    RequestHeaderTimeout "request_header_timeout" Timeout => 408, "http_request_error", "request header";
    /// The request's body stopped arriving.
    RequestBodyTimeout "request_body_timeout" Timeout => 408, "http_request_error", "request body";
    /// The client stopped reading its response; the connection is closed.
    ClientWriteTimeout "client_write_timeout" Timeout => 408, "connection_write_timeout", "response to client";
    /// The connection to the target was not established within `connect-secs`, TLS included.
    ConnectTimeout "connect_timeout" Timeout, "connection_timeout", "connect";
    /// The target stopped reading the request.
    UpstreamWriteTimeout "upstream_write_timeout" Timeout, "connection_write_timeout", "request to upstream";
    /// The response's head did not arrive within the default of `request-secs`, on a route that does not set it.
    ResponseHeaderTimeout "response_header_timeout" Timeout, "http_response_timeout", "response header";
    /// No byte of the response arrived for `read-secs`.
    ResponseReadTimeout "response_read_timeout" Timeout, "connection_read_timeout", "response read";
    /// The exchange took longer than the time that its route sets with `request-secs`, before or after its response began.
    RequestTimeout "request_timeout" Timeout, "http_response_timeout", "request";
    /// A static file could not be opened, or its next chunk not be read, in time.
    StaticReadTimeout "static_read_timeout" Timeout, "proxy_internal_error", "file read";
    /// An upgraded connection was without traffic for the idle time.
    TunnelIdleTimeout "tunnel_idle_timeout" Timeout, "connection_read_timeout", "idle tunnel";
}
