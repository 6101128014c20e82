//! The `tests` block.

use super::kind::{Block, Pair};
use super::number::{Integer, Time};
use super::routes::HANDLERS;
use super::spec::{DefaultValue, Repeatable, Required, Unset};
use super::table::{block, choice, flag, integer, named, pair, settings, text, time, words};
use super::text::Text;
use super::word::{Choice, Flag};
use crate::route::BuiltinHandler;
use proxy_errors::Reason;
use proxy_routing::{HostPattern, PathPattern};
use std::net::IpAddr;
use std::time::Duration;

const BY: &str = "proxy-plan";
/// Maximum time of a response to a live test.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(10);

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse::<IpAddr>().map_err(|error| error.to_string())
}

fn reason(text: &str) -> Result<Reason, String> {
    let known = Reason::ALL.iter().find(|reason| reason.as_str() == text);
    known
        .copied()
        .ok_or_else(|| "the access log has no such reason".to_owned())
}

settings! {
    /// A request with its expected decision, with all targets healthy. Only live tests are sent. A
    /// configuration with a failing test is refused: at start, on reload, by `--test` and in a
    /// bundle.
    TEST: Block, Repeatable = named("tests.test", "a sentence")
        .many()
        .enforced(BY, "a_test_whose_expectation_holds_passes");
    /// The method and the URL: a path, or an absolute URL with the host, which also leads to the
    /// listener of its port and scheme.
    REQUEST: Pair, Required = pair(
        "tests.test.request",
        "a method and a URL",
        "\"GET\" \"https://example.com/api\"",
    )
    .enforced(BY, "a_test_whose_expectation_holds_passes");
    /// A header field of the request.
    HEADER: Pair, Repeatable = pair("tests.test.header", "a name and a value", "\"X-Version\" \"2\"")
        .many()
        .enforced(BY, "a_test_gives_headers_listener_and_client");
    /// The listener that gets the request.
    LISTENER: Text<String>, Unset = words("tests.test.listener", "a listener's name", "https")
        .optional("the first one of the URL's port and scheme")
        .enforced(BY, "a_test_gives_headers_listener_and_client");
    /// The client's address.
    CLIENT_IP: Text<IpAddr>, Unset = text("tests.test.client-ip", "an address", "192.0.2.1", address)
        .optional("127.0.0.1")
        .enforced(BY, "a_test_gives_headers_listener_and_client");
    /// A claim of the request's token, which is assumed to be valid; a repeated name is a list. The
    /// route's `jwt` checks them, and `claim-header` reads its values from them. Excludes `live`.
    CLAIM: Pair, Repeatable = pair("tests.test.claim", "a claim and its value", "\"sub\" \"ann\"")
        .many()
        .enforced(BY, "a_test_states_the_claims_of_a_token");
    /// Sends the request as well, when a rollout switches a node to the bundle. Before the switch it goes to a second
    /// server within the process, which no client reaches; after it, and before the switch counts, to the node's own
    /// listener. If an answer is not as expected, the node keeps its configuration, or takes it back after the switch,
    /// and rejects the bundle. Without `answer-status`, the status must be below 400, or the expected `status` of a
    /// refusal. At most 32 tests of a configuration are live.
    LIVE: Flag, DefaultValue<bool> = flag("tests.test.live")
        .or(false)
        .enforced("proxyd", "a_live_test_after_a_switch_reverts_the_node");
    /// Allows a live test with another method than `GET`, `HEAD` and `OPTIONS`: each node of a rollout sends it at least
    /// twice, so it must be harmless to repeat. Without it such a test is a fault.
    LIVE_UNSAFE: Flag, DefaultValue<bool> = flag("tests.test.live-unsafe")
        .or(false)
        .enforced(BY, "a_live_test_that_may_change_data_says_so");
    /// Sends a live test by HTTP/2.
    HTTP2: Flag, DefaultValue<bool> = flag("tests.test.http2")
        .or(false)
        .enforced("proxyd", "live_tests_speak_tls_and_http2_and_upload");
    /// Length of the body of a live test, in bytes; zeros are sent.
    UPLOAD: Integer<u32>, DefaultValue<u32> = integer("tests.test.upload-bytes", 0, 1_048_576, "bytes")
        .or(0)
        .enforced("proxyd", "live_tests_speak_tls_and_http2_and_upload");
    /// The parts of the decision that must be as written; at least one.
    EXPECT: Block, Required = block("tests.test.expect")
        .enforced(BY, "a_failed_test_reports_the_actual_decision");
    /// The route that matches.
    EXPECT_ROUTE: Text<String>, Unset = words("tests.test.expect.route", "a route's name", "api")
        .optional("any route, or none")
        .enforced(BY, "a_failed_test_reports_the_actual_decision");
    /// The upstream that the request is forwarded to.
    EXPECT_UPSTREAM: Text<String>, Unset =
        words("tests.test.expect.upstream", "an upstream's name", "app")
            .optional("any service, or none")
            .enforced(BY, "a_failed_test_reports_the_actual_decision");
    /// The built-in handler that answers.
    EXPECT_BUILTIN: Choice<BuiltinHandler>, Unset =
        choice("tests.test.expect.builtin-handler", HANDLERS)
            .optional("any service, or none")
            .enforced(BY, "a_failed_test_reports_the_actual_decision");
    /// The called agents, complete and in order.
    EXPECT_AGENTS: Text<String>, Repeatable = words("tests.test.expect.agents", "agents' names", "waf")
        .many()
        .enforced(BY, "a_test_names_the_agents_that_are_asked");
    /// The status of the proxy's own refusal, redirect or `respond`.
    EXPECT_STATUS: Integer<u16>, Unset = integer("tests.test.expect.status", 200, 599, "")
        .optional("any answer")
        .enforced(BY, "a_test_expects_a_refusal");
    /// The absolute URL that the request is redirected to.
    EXPECT_REDIRECT: Text<String>, Unset =
        words("tests.test.expect.redirect", "a URL", "https://www.example.com/a?b")
            .optional("any answer")
            .enforced(BY, "a_test_expects_a_redirect_and_a_response");
    /// The path and query that the upstream gets, rewritten if the route does so.
    EXPECT_UPSTREAM_PATH: Text<String>, Unset =
        words("tests.test.expect.upstream-path", "a path with its query", "/users?page=2")
            .optional("any path")
            .enforced(BY, "a_test_expects_the_path_that_an_upstream_gets");
    /// The reason of the proxy's own refusal, as in the access log.
    EXPECT_REASON: Text<Reason>, Unset =
        text("tests.test.expect.reason", "a reason", "route_not_found", reason)
            .optional("any reason, or none")
            .enforced(BY, "a_test_expects_a_refusal");
    /// The listener that receives the request.
    EXPECT_LISTENER: Text<String>, Unset =
        words("tests.test.expect.listener", "a listener's name", "https")
            .optional("any listener")
            .enforced(BY, "a_test_expects_a_listener_and_targets");
    /// A name that the certificate has which the listener shows to a client of the URL's host, by the files of the
    /// machine that runs the test: `proxyd` and its reloads do, the control plane does not.
    EXPECT_CERTIFICATE: Text<String>, Unset =
        words("tests.test.expect.certificate", "a host name", "shop.example.com")
            .optional("any certificate, or none")
            .enforced("proxyd", "a_test_expects_a_certificate_and_its_days");
    /// Whole days that this certificate is valid for at least. Fewer fail `proxyd config test`, and are a warning
    /// elsewhere:
    /// a restart never fails by the passing of time. A live test is compared with the certificate that its listener
    /// shows.
    EXPECT_CERTIFICATE_DAYS: Integer<u32>, Unset =
        integer("tests.test.expect.certificate-days", 1, 3_650, "days")
            .optional("any time")
            .enforced("proxyd", "a_test_expects_a_certificate_and_its_days");
    /// All targets of the upstream, as written, in any order.
    EXPECT_TARGETS: Text<String>, Repeatable =
        words("tests.test.expect.targets", "addresses", "10.0.0.1:8080")
            .many()
            .enforced(BY, "a_test_expects_a_listener_and_targets");
    /// A setting that applies to the request, and its value: a limit, a rate, a time. The name is
    /// as in `explain`: `policies.rate-limit.burst` and similar ones of the route,
    /// `timeouts.read-secs` of the upstream or the listener, `max-header-count` of the limits. The
    /// value is as written or as shown by `explain`; `none` for an absent setting.
    EXPECT_SETTING: Pair, Repeatable = pair(
        "tests.test.expect.setting",
        "a setting's name and its value",
        "\"policies.max-body-size\" \"1MB\"",
    )
    .many()
    .enforced(BY, "a_test_expects_settings_that_apply");
    /// A field of the upstream's request, after the edits of the route. Fields set by the proxy
    /// itself are excluded.
    EXPECT_REQUEST_HEADER: Pair, Repeatable = pair(
        "tests.test.expect.request-header",
        "a name and a value",
        "\"X-Tenant\" \"a\"",
    )
    .many()
    .enforced(BY, "a_test_expects_headers_after_all_edits");
    /// A field of the request that the upstream does not get.
    EXPECT_NO_REQUEST_HEADER: Text<String>, Repeatable =
        words("tests.test.expect.no-request-header", "a header name", "X-Debug")
            .many()
            .enforced(BY, "a_test_expects_headers_after_all_edits");
    /// A field that the client must receive, independent of the upstream's response.
    EXPECT_RESPONSE_HEADER: Pair, Repeatable = pair(
        "tests.test.expect.response-header",
        "a name and a value",
        "\"X-Frame-Options\" \"DENY\"",
    )
    .many()
    .enforced(BY, "a_test_expects_headers_after_all_edits");
    /// A field that the client must not receive, independent of the upstream's response.
    EXPECT_NO_RESPONSE_HEADER: Text<String>, Repeatable =
        words("tests.test.expect.no-response-header", "a header name", "X-Powered-By")
            .many()
            .enforced(BY, "a_test_expects_headers_after_all_edits");
    /// The status of the response to a live test.
    EXPECT_ANSWER_STATUS: Integer<u16>, Unset =
        integer("tests.test.expect.answer-status", 200, 599, "")
            .optional("below 400, or the expected `status`")
            .enforced(BY, "the_answer_to_a_live_test_is_compared_with_its_expectations");
    /// A field of the response to a live test; the upstream may have set it.
    EXPECT_ANSWER_HEADER: Pair, Repeatable = pair(
        "tests.test.expect.answer-header",
        "a name and a value",
        "\"Cache-Control\" \"private\"",
    )
    .many()
    .enforced(BY, "the_answer_to_a_live_test_is_compared_with_its_expectations");
    /// A field that must be absent in the response to a live test.
    EXPECT_NO_ANSWER_HEADER: Text<String>, Repeatable =
        words("tests.test.expect.no-answer-header", "a header name", "X-Internal-Host")
            .many()
            .enforced(BY, "the_answer_to_a_live_test_is_compared_with_its_expectations");
    /// A text within the first 64 KiB of the response to a live test.
    EXPECT_ANSWER_CONTAINS: Text<String>, Unset =
        words("tests.test.expect.answer-contains", "a text", "shop")
            .optional("any body")
            .enforced(BY, "the_answer_to_a_live_test_is_compared_with_its_expectations");
    /// Maximum time to the first byte of the body in the response to a live test.
    EXPECT_FIRST_BYTE: Time, Unset = time("tests.test.expect.first-byte-ms", MAX_RESPONSE_TIME)
        .optional("the value of `total-ms`")
        .enforced(BY, "the_answer_to_a_live_test_is_compared_with_its_expectations");
    /// Maximum time to the last byte of the response to a live test. Without it a response may take
    /// 10 s.
    EXPECT_TOTAL: Time, Unset = time("tests.test.expect.total-ms", MAX_RESPONSE_TIME)
        .optional("10 s")
        .enforced(BY, "the_answer_to_a_live_test_is_compared_with_its_expectations");
    /// Requests that must never reach an upstream: `never "admin from outside" { listener "public";
    /// path-prefix "/admin"; upstream "back" }`. Every kind of request that the routes distinguish
    /// is tried; regexes are tried with a sample of their paths.
    NEVER: Block, Repeatable = named("tests.never", "a sentence")
        .many()
        .enforced(BY, "a_request_that_must_never_reach_an_upstream_fails_its_test");
    /// The listener of the requests.
    NEVER_LISTENER: Text<String>, Unset = words("tests.never.listener", "a listener's name", "public")
        .optional("every listener")
        .enforced(BY, "a_request_that_must_never_reach_an_upstream_fails_its_test");
    /// Hosts of the requests.
    NEVER_HOST: Text<HostPattern>, Repeatable =
        text("tests.never.host", "a host or a wildcard", "*.example.com", |text| {
            HostPattern::parse(text).map_err(|fault| fault.to_string())
        })
        .many()
        .enforced(BY, "a_prohibition_is_limited_by_hosts_and_paths");
    /// Paths of the requests.
    NEVER_PATH: Text<PathPattern>, Repeatable = text("tests.never.path", "a path", "/status", |text| {
        PathPattern::exact(text).map_err(|fault| fault.to_string())
    })
    .many()
    .enforced(BY, "a_prohibition_is_limited_by_hosts_and_paths");
    /// Beginnings of the paths of the requests.
    NEVER_PATH_PREFIX: Text<PathPattern>, Repeatable =
        text("tests.never.path-prefix", "a path", "/admin", |text| {
            PathPattern::prefix(text).map_err(|fault| fault.to_string())
        })
        .many()
        .enforced(BY, "a_prohibition_is_limited_by_hosts_and_paths");
    /// The upstream that must not be reached.
    NEVER_UPSTREAM: Text<String>, Required =
        words("tests.never.upstream", "an upstream's name", "back")
            .enforced(BY, "a_request_that_must_never_reach_an_upstream_fails_its_test");
    /// An agent: requests of routes with it are permitted.
    NEVER_WITHOUT_AGENT: Text<String>, Unset =
        words("tests.never.without-agent", "an agent's name", "sso")
            .optional("no request is allowed")
            .enforced(BY, "a_prohibition_allows_requests_that_an_agent_decides_on");
}
