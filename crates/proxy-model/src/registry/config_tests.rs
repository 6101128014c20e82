//! The `tests` block.

use super::kind::{Block, Pair};
use super::number::Integer;
use super::routes::HANDLERS;
use super::spec::{Many, Required, Unset};
use super::table::{block, choice, integer, named, pair, settings, text, words};
use super::text::Text;
use super::word::Choice;
use crate::route::BuiltinHandler;
use proxy_errors::Reason;
use std::net::IpAddr;

const BY: &str = "proxy-plan";

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
    /// A request and the decision that is expected on it, with all targets healthy. Nothing is
    /// sent. A configuration with a test that fails is refused: at start, on reload, by `--test`
    /// and in a bundle.
    TEST: Block, Many = named("tests.test", "a sentence")
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
    HEADER: Pair, Many = pair("tests.test.header", "a name and a value", "\"X-Version\" \"2\"")
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
    /// The parts of the decision that must be as written; at least one.
    EXPECT: Block, Required = block("tests.test.expect")
        .enforced(BY, "a_test_whose_expectation_fails_says_what_was_decided");
    /// The route that matches.
    EXPECT_ROUTE: Text<String>, Unset = words("tests.test.expect.route", "a route's name", "api")
        .optional("any route, or none")
        .enforced(BY, "a_test_whose_expectation_fails_says_what_was_decided");
    /// The upstream that the request is forwarded to.
    EXPECT_UPSTREAM: Text<String>, Unset =
        words("tests.test.expect.upstream", "an upstream's name", "app")
            .optional("any service, or none")
            .enforced(BY, "a_test_whose_expectation_fails_says_what_was_decided");
    /// The built-in handler that answers.
    EXPECT_BUILTIN: Choice<BuiltinHandler>, Unset =
        choice("tests.test.expect.builtin-handler", HANDLERS)
            .optional("any service, or none")
            .enforced(BY, "a_test_whose_expectation_fails_says_what_was_decided");
    /// The agents that are asked, all of them in their order.
    EXPECT_AGENTS: Text<String>, Many = words("tests.test.expect.agents", "agents' names", "waf")
        .many()
        .enforced(BY, "a_test_names_the_agents_that_are_asked");
    /// The status of the proxy's own refusal.
    EXPECT_STATUS: Integer<u16>, Unset = integer("tests.test.expect.status", 400, 599, "")
        .optional("any answer")
        .enforced(BY, "a_test_expects_a_refusal");
    /// The reason of the proxy's own refusal, as in the access log.
    EXPECT_REASON: Text<Reason>, Unset =
        text("tests.test.expect.reason", "a reason", "route_not_found", reason)
            .optional("any reason, or none")
            .enforced(BY, "a_test_expects_a_refusal");
}
