//! Tests inside a configuration: a request and the decision that is expected on it.

use crate::place::{Place, Setting};
use crate::route::BuiltinHandler;
use proxy_errors::Reason;
use std::net::IpAddr;

/// A test of the configuration that it stands in.
#[derive(Clone, Debug)]
pub struct ConfigTest {
    /// Name, unique among tests.
    pub name: String,
    /// Place of the block.
    pub place: Place,
    /// The request, which is decided on and not sent.
    pub request: TestRequest,
    /// The expected decision; at least one condition.
    pub expectations: Vec<Setting<Expectation>>,
}

/// The request of a test.
#[derive(Clone, Debug)]
pub struct TestRequest {
    /// Place of the method and the URL.
    pub place: Place,
    /// The method.
    pub method: String,
    /// A path, or an absolute URL.
    pub url: String,
    /// Header fields in their order.
    pub headers: Vec<(String, String)>,
    /// Name of the listener; `None` for the one that the URL leads to.
    pub listener: Option<String>,
    /// The client's address; `None` for a client of this host.
    pub client_ip: Option<IpAddr>,
}

/// One part of the decision that a test expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The id of the route that matches.
    Route(String),
    /// The name of the upstream that the request is forwarded to.
    Upstream(String),
    /// The built-in handler that answers.
    Builtin(BuiltinHandler),
    /// The names of the agents that are asked, in their order.
    Agents(Vec<String>),
    /// The status of the proxy's own refusal.
    Status(u16),
    /// The reason of the proxy's own refusal.
    Reason(Reason),
}

/// A test with an expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTest {
    /// The test.
    pub name: String,
    /// Place of the expectation, or of a request that no client could send.
    pub place: Place,
    /// Place of the request.
    pub request: Place,
    /// The difference, as the end of a sentence.
    pub difference: String,
    /// A command that explains the decision.
    pub explain: String,
}
