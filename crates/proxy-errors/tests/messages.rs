//! Messages for the log and for the client.

use proxy_errors::{Detail, ErrorType, Problem, Reason};
use std::time::Duration;

const SECRET: &str = "10.1.2.3:8443 os error 111 /var/run/agent.sock";

type Case = (Reason, Detail, &'static str);

/// Templates with a name, a number or a time.
fn particular_cases() -> [Case; 12] {
    let limit = |current, limit| Detail::Limit { current, limit };
    let after = |millis| Detail::After(Duration::from_millis(millis));
    [
        (
            Reason::ConnectRefused,
            Detail::named("shop", "by peer"),
            "Upstream error: shop - by peer",
        ),
        (
            Reason::ConnectReset,
            Detail::name("shop"),
            "Upstream error: shop - connection reset",
        ),
        (
            Reason::DnsFailed,
            Detail::None,
            "No healthy upstream: name resolution failed",
        ),
        (
            Reason::AgentTimeout,
            Detail::named("waf", "100ms over"),
            "Agent error: waf - 100ms over",
        ),
        (
            Reason::HeaderCountLimit,
            limit(120, 100),
            "Limit exceeded: header_count - Current value 120 exceeds limit 100",
        ),
        (
            Reason::BodySizeLimit,
            limit(20, 10),
            "Limit exceeded: body_size - Current value 20 exceeds limit 10",
        ),
        (
            Reason::ResponseHeaderTimeout,
            after(60_000),
            "Timeout: response header after 60000ms",
        ),
        (
            Reason::ConnectTimeout,
            after(5_000),
            "Timeout: connect after 5000ms",
        ),
        (
            Reason::BreakerOpen,
            Detail::name("shop"),
            "Circuit breaker open: shop",
        ),
        (
            Reason::Draining,
            Detail::name("proxy"),
            "Service unavailable: proxy",
        ),
        (
            Reason::AllTargetsUnhealthy,
            Detail::name("shop"),
            "No healthy upstream: shop - no healthy target",
        ),
        (
            Reason::Http2Flood,
            Detail::None,
            "Limit exceeded: request_rate - too many HTTP/2 frames",
        ),
    ]
}

/// Templates with words only.
fn worded_cases() -> [Case; 13] {
    let text = Detail::text;
    [
        (
            Reason::AmbiguousPath,
            Detail::None,
            "Request validation failed: path has more than one meaning",
        ),
        (
            Reason::ObsFold,
            Detail::None,
            "Request parsing failed: folded header line",
        ),
        (
            Reason::BadStatusLine,
            text("no version"),
            "Response validation failed: no version",
        ),
        (
            Reason::AgentBlocked,
            text("rule 942100"),
            "WAF blocked request: rule 942100",
        ),
        (
            Reason::CredentialsMissing,
            Detail::None,
            "Authentication failed: credentials missing",
        ),
        (
            Reason::AccessDenied,
            Detail::None,
            "Authorization failed: access denied",
        ),
        (
            Reason::ClientCertificateInvalid,
            text("expired"),
            "TLS error: expired",
        ),
        (
            Reason::ConfigError,
            text("no certificate"),
            "Configuration error: no certificate",
        ),
        (
            Reason::RouteNotFound,
            Detail::None,
            "Not found: no route matches",
        ),
        (
            Reason::ClientRateLimit,
            Detail::None,
            "Rate limit exceeded: too many requests",
        ),
        (Reason::Panic, text("index 3"), "Internal error: index 3"),
        (Reason::IoError, text("disk full"), "I/O failed: disk full"),
        (
            Reason::NoFreeConnection,
            Detail::None,
            "Service unavailable: no free upstream connection",
        ),
    ]
}

#[test]
fn the_log_gets_every_template_filled_in() {
    for (reason, detail, expected) in particular_cases().into_iter().chain(worded_cases()) {
        assert_eq!(Problem::new(reason, detail).log_message(), expected);
    }
}

#[test]
fn every_type_is_among_the_cases() {
    for kind in ErrorType::ALL {
        let mut cases = particular_cases().into_iter().chain(worded_cases());
        assert!(
            cases.any(|(reason, _, _)| reason.error_type() == kind),
            "{kind:?}"
        );
    }
}

#[test]
fn no_text_of_the_log_reaches_a_client() {
    // Only the admin interface has these reasons, and its clients are operators.
    let for_operators = [Reason::AdminBodyInvalid, Reason::AdminTargetUnknown];
    let for_clients = |reason: &&Reason| !for_operators.contains(reason);
    for reason in Reason::ALL.iter().filter(for_clients) {
        for detail in [Detail::text(SECRET), Detail::named("shop", SECRET)] {
            let problem = Problem::new(*reason, detail);
            let shown = [
                problem.client_message(),
                problem.to_json("id"),
                problem.to_html("id"),
                problem.grpc_message(),
                problem.proxy_status("edge"),
            ];
            for text in shown {
                for word in SECRET.split(' ').filter(|word| 5 < word.len()) {
                    assert!(!text.contains(word), "{reason}: {text}");
                }
            }
        }
    }
}

#[test]
fn failures_inside_the_proxy_are_an_internal_error_and_no_more() {
    for reason in Reason::ALL {
        let inside = [
            ErrorType::Agent,
            ErrorType::Config,
            ErrorType::Internal,
            ErrorType::Io,
        ];
        if inside.contains(&reason.error_type()) {
            let problem = Problem::new(*reason, Detail::named("auth-agent", "details"));
            assert_eq!(problem.client_message(), "Internal error", "{reason}");
        }
    }
}

#[test]
fn an_upstreams_bad_certificate_is_a_bad_gateway() {
    let problem = Problem::new(Reason::TlsVerifyFailed, Detail::named("shop", "expired"));

    assert_eq!(problem.status(), 502);
    assert_eq!(problem.client_message(), "Bad gateway");
    assert_eq!(problem.log_message(), "Upstream error: shop - expired");
}

#[test]
fn an_upstream_error_names_the_upstream_and_the_failed_phase() {
    let message = |reason| Problem::new(reason, Detail::named("shop", SECRET)).client_message();

    assert_eq!(
        message(Reason::ConnectFailed),
        "Upstream error: shop - connection failed"
    );
    assert_eq!(
        message(Reason::UpstreamReset),
        "Upstream error: shop - response failed"
    );
}

#[test]
fn an_error_names_the_limit_or_the_timer() {
    let over = Detail::Limit {
        current: 9,
        limit: 8,
    };
    let late = Detail::After(Duration::from_secs(1));

    assert_eq!(
        Problem::new(Reason::HeaderSizeLimit, over).client_message(),
        "Limit exceeded: header_size - Current value 9 exceeds limit 8"
    );
    assert_eq!(
        Problem::new(Reason::ResponseReadTimeout, late).client_message(),
        "Timeout: response read after 1000ms"
    );
}

#[test]
fn seconds_to_wait_are_rounded_up_and_never_zero() {
    let secs = |millis| {
        Problem::new(Reason::ClientRateLimit, Detail::None)
            .with_retry_after(Duration::from_millis(millis))
            .retry_after_secs()
    };

    assert_eq!(secs(0), Some(1));
    assert_eq!(secs(1), Some(1));
    assert_eq!(secs(1_000), Some(1));
    assert_eq!(secs(1_001), Some(2));
    assert_eq!(
        Problem::new(Reason::ObsFold, Detail::None).retry_after_secs(),
        None
    );
}

#[test]
fn a_status_of_the_callers_choice_replaces_the_reasons() {
    let problem = Problem::new(Reason::HeaderSizeLimit, Detail::None);
    let status = problem.reason().standard_status();

    assert_eq!(problem.with_status(status).status(), 431);
}

#[test]
fn proxy_status_has_the_error_type_and_the_reason() {
    let problem = Problem::new(Reason::ConnectRefused, Detail::None);

    assert_eq!(
        problem.proxy_status("edge"),
        "edge; error=connection_refused; details=\"connect_refused\""
    );
}

#[test]
fn a_problem_without_its_name_has_none_of_an_upstream() {
    let problem = |reason| Problem::new(reason, Detail::named("shop", SECRET)).without_name();

    for (reason, message) in [
        (Reason::ConnectRefused, "Upstream error: connection failed"),
        (
            Reason::DnsFailed,
            "No healthy upstream: name resolution failed",
        ),
        (
            Reason::AllTargetsUnhealthy,
            "No healthy upstream: no healthy target",
        ),
    ] {
        assert_eq!(problem(reason).client_message(), message);
    }
    assert!(
        !problem(Reason::BreakerOpen)
            .client_message()
            .contains("shop")
    );
    assert_eq!(problem(Reason::DnsFailed).status(), 503);
}
