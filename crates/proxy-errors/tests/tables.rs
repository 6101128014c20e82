//! The tables of types, reasons and limits, literally.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_errors::{
    Blame, ErrorType, GrpcStatus, LimitType, Reason, SentRequest, reference_page, status_text,
};
use std::collections::HashSet;

const TYPES: &[(u16, &str, &str)] = &[
    (400, "RequestValidation", "REQUEST_VALIDATION"),
    (400, "Parse", "PARSE"),
    (401, "AuthenticationFailed", "AUTHENTICATION_FAILED"),
    (403, "AuthorizationFailed", "AUTHORIZATION_FAILED"),
    (403, "WafBlocked", "WAF_BLOCKED"),
    (404, "RouteNotFound", "ROUTE_NOT_FOUND"),
    (429, "LimitExceeded", "LIMIT_EXCEEDED"),
    (429, "RateLimit", "RATE_LIMIT_EXCEEDED"),
    (495, "Tls", "TLS"),
    (500, "Config", "CONFIG"),
    (500, "Agent", "AGENT"),
    (500, "Internal", "INTERNAL"),
    (500, "Io", "IO"),
    (502, "Upstream", "UPSTREAM_ERROR"),
    (502, "ResponseValidation", "RESPONSE_VALIDATION"),
    (503, "ServiceUnavailable", "SERVICE_UNAVAILABLE"),
    (503, "CircuitBreakerOpen", "CIRCUIT_BREAKER_OPEN"),
    (503, "NoHealthyUpstream", "NO_HEALTHY_UPSTREAM"),
    (504, "Timeout", "TIMEOUT"),
];

/// Reasons with another status than their type.
const OWN_STATUSES: &[(&str, u16)] = &[
    ("cross_site_request", 403),
    ("not_stored", 504),
    ("connect_method_refused", 405),
    ("method_not_allowed", 405),
    ("misdirected_request", 421),
    ("unsupported_expectation", 417),
    ("precondition_failed", 412),
    ("range_not_satisfiable", 416),
    ("body_size_limit", 413),
    ("decompression_limit", 413),
    ("buffer_size_limit", 413),
    ("connection_limit", 503),
    ("client_connection_limit", 503),
    ("route_connection_limit", 503),
    ("in_flight_limit", 503),
    ("in_flight_share", 503),
    ("queue_full", 503),
    ("credential_checks_busy", 503),
    ("queue_timeout", 503),
    ("agent_timeout", 504),
    ("agent_unreachable", 503),
    ("agent_breaker_open", 503),
    ("agent_queue_full", 503),
    ("client_aborted", 499),
    ("request_header_timeout", 408),
    ("request_body_timeout", 408),
    ("client_write_timeout", 408),
];

/// RFC 9209 §2.3.
const PROXY_STATUS_ERRORS: &[&str] = &[
    "dns_timeout",
    "dns_error",
    "destination_not_found",
    "destination_unavailable",
    "destination_ip_prohibited",
    "destination_ip_unroutable",
    "connection_refused",
    "connection_terminated",
    "connection_timeout",
    "connection_read_timeout",
    "connection_write_timeout",
    "connection_limit_reached",
    "tls_protocol_error",
    "tls_certificate_error",
    "tls_alert_received",
    "http_request_error",
    "http_request_denied",
    "http_response_incomplete",
    "http_response_header_section_size",
    "http_response_header_size",
    "http_response_body_size",
    "http_response_trailer_section_size",
    "http_response_trailer_size",
    "http_response_transfer_coding",
    "http_response_content_coding",
    "http_response_timeout",
    "http_upgrade_failed",
    "http_protocol_error",
    "proxy_internal_response",
    "proxy_internal_error",
    "proxy_configuration_error",
    "proxy_loop_detected",
];

fn named(name: &str) -> Reason {
    *Reason::ALL
        .iter()
        .find(|reason| reason.as_str() == name)
        .unwrap()
}

#[test]
fn types_have_the_statuses_and_codes_of_the_contract() {
    let found: Vec<_> = ErrorType::ALL
        .iter()
        .map(|kind| (kind.status().as_u16(), kind.name(), kind.code()))
        .collect();

    assert_eq!(found, TYPES);
}

#[test]
fn every_type_has_a_reason_and_a_meaning() {
    for kind in ErrorType::ALL {
        assert!(
            Reason::ALL.iter().any(|reason| reason.error_type() == kind),
            "{kind:?}"
        );
        assert!(!kind.doc().is_empty(), "{kind:?}");
    }
}

#[test]
fn every_reason_has_a_name_of_its_own_words_and_a_meaning() {
    let mut names = HashSet::new();
    for (index, reason) in Reason::ALL.iter().enumerate() {
        let name = reason.as_str();
        assert!(names.insert(name), "{name} twice");
        assert!(
            name.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        );
        assert_eq!(reason.index(), index, "{name}");
        assert!(!reason.phrase().is_empty(), "{name}");
        assert!(
            reason.doc().ends_with('.') && !reason.doc().starts_with(' '),
            "{name}"
        );
        assert!(
            PROXY_STATUS_ERRORS.contains(&reason.proxy_status()),
            "{name}"
        );
    }
}

#[test]
fn a_reason_has_its_owners_status_unless_it_is_listed() {
    for reason in Reason::ALL {
        let listed = OWN_STATUSES
            .iter()
            .find(|(name, _)| *name == reason.as_str());
        let expected = listed.map_or(reason.error_type().status().as_u16(), |(_, code)| *code);
        assert_eq!(reason.status().as_u16(), expected, "{reason}");
    }
    assert!(
        OWN_STATUSES
            .iter()
            .all(|(name, code)| named(name).status() == *code)
    );
}

#[test]
fn limits_have_the_nine_types_of_the_contract() {
    let names = LimitType::ALL.map(LimitType::as_str);

    assert_eq!(
        names,
        [
            "header_size",
            "header_count",
            "body_size",
            "request_rate",
            "connection_count",
            "in_flight_requests",
            "decompression_size",
            "buffer_size",
            "queue_depth"
        ]
    );
    for (index, limit_type) in LimitType::ALL.into_iter().enumerate() {
        assert_eq!(limit_type.index(), index);
    }
}

#[test]
fn every_limit_reason_and_only_those_have_a_limit_type() {
    for reason in Reason::ALL {
        let is_limit = reason.error_type() == ErrorType::LimitExceeded;
        assert_eq!(reason.limit_type().is_some(), is_limit, "{reason}");
    }
    for limit_type in LimitType::ALL {
        let used = Reason::ALL
            .iter()
            .any(|reason| reason.limit_type() == Some(limit_type));
        assert!(used, "{limit_type}");
    }
}

#[test]
fn standard_statuses_change_header_limits_only() {
    for reason in Reason::ALL {
        let header = reason.as_str().starts_with("header_");
        let expected = if header {
            431
        } else {
            reason.status().as_u16()
        };
        assert_eq!(reason.standard_status().as_u16(), expected, "{reason}");
    }
}

#[test]
fn a_temporary_503_has_retry_after() {
    for name in [
        "connection_limit",
        "in_flight_limit",
        "queue_full",
        "draining",
        "overloaded",
    ] {
        assert!(named(name).retry_after().is_some(), "{name}");
        assert!(named(name).retryable(), "{name}");
    }
    for name in [
        "breaker_open",
        "header_size_limit",
        "body_size_limit",
        "connect_refused",
    ] {
        assert!(named(name).retry_after().is_none(), "{name}");
    }
}

#[test]
fn retryable_types_are_those_of_the_contract() {
    let retryable: Vec<_> = ErrorType::ALL
        .into_iter()
        .filter(|kind| kind.retryable())
        .map(ErrorType::name)
        .collect();

    assert_eq!(
        retryable,
        ["RateLimit", "Upstream", "ServiceUnavailable", "Timeout"]
    );
    assert!(!Reason::TlsVerifyFailed.retryable());
    assert!(!Reason::TlsPinMismatch.retryable());
    assert!(!Reason::BreakerOpen.retryable());
}

/// Reasons attributed to the target: always, after a complete request, or after a timeout too. No
/// other reason counts.
const FAULTS_OF_TARGETS: &[(Blame, &[&str])] = &[
    (
        Blame::Target,
        &[
            "connect_refused",
            "connect_unreachable",
            "connect_reset",
            "tls_handshake_failed",
            "tls_verify_failed",
            "tls_pin_mismatch",
            "upstream_refused_stream",
            "bad_status_line",
            "bad_response_header",
            "response_conflicting_length",
            "response_bad_chunk",
            "response_truncated",
            "too_many_informational",
            "upstream_header_too_large",
            "upstream_http2_error",
            "connect_timeout",
            "upstream_write_timeout",
            "response_header_timeout",
            "response_read_timeout",
        ],
    ),
    (
        Blame::TargetOfWholeRequest,
        &[
            "upstream_closed_early",
            "upstream_reset",
            "upstream_write_failed",
            "unasked_upgrade",
        ],
    ),
    (Blame::TargetGivenTime, &["request_timeout"]),
];

#[test]
fn a_breaker_changes_only_by_outcomes_of_its_target() {
    for reason in Reason::ALL {
        let listed = FAULTS_OF_TARGETS
            .iter()
            .find(|(_, names)| names.contains(&reason.as_str()));
        let blame = reason.blame();
        match listed {
            Some((expected, _)) => assert_eq!(blame, *expected, "{reason}"),
            None => assert!(matches!(blame, Blame::Client | Blame::Proxy), "{reason}"),
        }
        for (is_whole, had_time) in [(false, false), (false, true), (true, false), (true, true)] {
            let counts = match listed.map(|(blame, _)| blame) {
                None => false,
                Some(Blame::TargetOfWholeRequest) => is_whole,
                Some(Blame::TargetGivenTime) => is_whole && had_time,
                Some(_) => true,
            };
            let request = SentRequest { is_whole, had_time };
            assert_eq!(blame.is_target(request), counts, "{reason}, {request:?}");
        }
        assert!(!reason.is_client_fault() || blame == Blame::Client || blame == Blame::Proxy);
    }
}

#[test]
fn grpc_callers_get_the_nearest_status() {
    let cases = [
        (Reason::ClientRateLimit, GrpcStatus::ResourceExhausted, 8),
        (Reason::BodySizeLimit, GrpcStatus::ResourceExhausted, 8),
        (
            Reason::ResponseHeaderTimeout,
            GrpcStatus::DeadlineExceeded,
            4,
        ),
        (Reason::CredentialsMissing, GrpcStatus::Unauthenticated, 16),
        (Reason::AgentBlocked, GrpcStatus::PermissionDenied, 7),
        (Reason::RouteNotFound, GrpcStatus::Unimplemented, 12),
        (Reason::MethodNotAllowed, GrpcStatus::Unimplemented, 12),
        (Reason::AllTargetsUnhealthy, GrpcStatus::Unavailable, 14),
        (Reason::QueueFull, GrpcStatus::Unavailable, 14),
        (Reason::AgentTimeout, GrpcStatus::Unavailable, 14),
        (Reason::ConnectRefused, GrpcStatus::Unavailable, 14),
        (Reason::BadStatusLine, GrpcStatus::Internal, 13),
        (Reason::Panic, GrpcStatus::Internal, 13),
        (Reason::ClientAborted, GrpcStatus::Cancelled, 1),
    ];
    for (reason, expected, code) in cases {
        assert_eq!(reason.grpc_status(), expected, "{reason}");
        assert_eq!(reason.grpc_status().code(), code, "{reason}");
    }
}

#[test]
fn every_used_status_has_a_reason_phrase() {
    for reason in Reason::ALL {
        assert!(!status_text(reason.status()).is_empty(), "{reason}");
    }
    assert_eq!(
        status_text(Reason::ClientCertificateMissing.status()),
        "SSL Certificate Error"
    );
    assert_eq!(
        status_text(Reason::ClientAborted.status()),
        "Client Closed Request"
    );
    assert_eq!(
        status_text(Reason::MisdirectedRequest.status()),
        "Misdirected Request"
    );
}

#[test]
fn the_reference_page_lists_every_type_reason_and_limit() {
    let page = reference_page();

    for kind in ErrorType::ALL {
        assert!(page.contains(&format!("| `{}` | {} |", kind.code(), kind.name())));
    }
    for reason in Reason::ALL {
        assert_eq!(
            page.matches(&format!("\n| `{reason}` |")).count(),
            1,
            "{reason}"
        );
    }
    for limit_type in LimitType::ALL {
        assert!(
            page.contains(&format!("\n| `{limit_type}` |")),
            "{limit_type}"
        );
    }
}
