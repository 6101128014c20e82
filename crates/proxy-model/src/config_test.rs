//! Tests inside a configuration: a request and the decision that is expected on it.

use crate::place::{Place, Setting};
use crate::route::BuiltinHandler;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proxy_errors::Reason;
use proxy_routing::{HostPattern, PathPattern};
use std::net::IpAddr;
use std::time::Duration;

/// A test in a configuration.
#[derive(Clone, Debug)]
pub struct ConfigTest {
    /// Name, unique among tests.
    pub name: String,
    /// Place of the block.
    pub place: Place,
    /// The request, which is decided on and not sent.
    pub request: TestRequest,
    /// Live request after the switch of a rollout; `None` for a test that is only evaluated.
    pub live: Option<LiveRequest>,
    /// The expected decision; at least one condition.
    pub expectations: Vec<Setting<Expectation>>,
}

/// The request of a test.
#[derive(Clone, Debug)]
pub struct TestRequest {
    /// Place of the method and the URL.
    pub place: Place,
    /// Method of the request.
    pub method: String,
    /// A path, or an absolute URL.
    pub url: String,
    /// Header fields in their order.
    pub headers: Vec<(String, String)>,
    /// Name of the listener; `None` to select it by the URL.
    pub listener: Option<String>,
    /// The client's address; `None` for a client of this host.
    pub client_ip: Option<IpAddr>,
    /// Claims of the request's token, by name; a repeated name is a list. Empty without a token
    /// that is assumed to be valid.
    pub claims: Vec<(String, String)>,
}

impl TestRequest {
    /// Returns true if the method is GET, HEAD or OPTIONS, which change no data (RFC 9110, section
    /// 9.2.1). Methods are compared with their case; TRACE is left out, because it returns the
    /// request's header fields.
    #[must_use]
    pub fn has_safe_method(&self) -> bool {
        let safe = [Method::GET, Method::HEAD, Method::OPTIONS];
        safe.iter().any(|one| one.as_str() == self.method)
    }

    /// Returns true if the request is a relayed connection, with a URL of `tcp` or `tls`.
    #[must_use]
    pub fn is_relayed(&self) -> bool {
        let scheme = self.url.split_once("://").map(|(scheme, _)| scheme);
        let mut relayed = ["tcp", "tls"].iter();
        relayed.any(|one| scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(one)))
    }
}

/// The kind of request of a live test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRequest {
    /// HTTP/2, by ALPN on a listener with TLS and with prior knowledge on another one; otherwise
    /// HTTP/1.1.
    pub http2: bool,
    /// Length of the request's body.
    pub upload_bytes: u32,
}

/// The response to a live test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveAnswer {
    /// Status of the response.
    pub status: u16,
    /// Header fields of the response.
    pub headers: HeaderMap,
    /// The beginning of the body, up to the number of bytes kept.
    pub body: Vec<u8>,
    /// Whole days until the listener's certificate expires; `None` without TLS.
    pub certificate_days: Option<i64>,
    /// From the first byte sent to the first byte of the body, or to the end of a response without
    /// one.
    pub first_byte: Duration,
    /// From the start of the connection to the last byte of the body.
    pub total: Duration,
}

/// A part of the decision that a test expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The id of the route that matches.
    Route(String),
    /// The name of the upstream that the request is forwarded to.
    Upstream(String),
    /// The built-in handler that answers.
    Builtin(BuiltinHandler),
    /// The names of the called agents, in order.
    Agents(Vec<String>),
    /// The status of a refusal, a redirect or a response by the proxy itself.
    Status(u16),
    /// The path and query that the upstream gets.
    UpstreamPath(String),
    /// The absolute URL that the request is redirected to.
    Redirect(String),
    /// The reason of the proxy's own refusal.
    Reason(Reason),
    /// The name of the listener that takes the request.
    Listener(String),
    /// A name of the certificate that the listener shows to a client of the URL's host.
    Certificate(String),
    /// Whole days that this certificate is valid for at least.
    CertificateDays(u32),
    /// The addresses of the upstream's targets as written, in any order.
    Targets(Vec<String>),
    /// The value of a setting that applies to the request.
    Setting {
        /// Path of the setting within its route, upstream, listener or block.
        name: String,
        /// The value as in the configuration, or with its unit as in `explain`; `none` for an
        /// absent one.
        value: String,
    },
    /// A field of the request that the upstream gets, after all edits.
    RequestHeader(HeaderName, HeaderValue),
    /// The name of a field that the upstream does not get, after all edits.
    NoRequestHeader(HeaderName),
    /// A field that the client receives independent of the upstream's response.
    ResponseHeader(HeaderName, HeaderValue),
    /// The name of a field that the client does not receive, independent of the upstream's
    /// response.
    NoResponseHeader(HeaderName),
    /// The status of the response to a live test.
    AnswerStatus(u16),
    /// A field of the response to a live test.
    AnswerHeader(HeaderName, HeaderValue),
    /// The name of a field that is absent in the response to a live test.
    NoAnswerHeader(HeaderName),
    /// A text within the first bytes of the response to a live test.
    AnswerContains(String),
    /// Maximum time to the first byte of the answer's body.
    FirstByte(Duration),
    /// Maximum time to the last byte of the answer's body.
    Total(Duration),
}

impl Expectation {
    /// Returns true if the expectation applies only to the response to a live test.
    #[must_use]
    pub fn needs_an_answer(&self) -> bool {
        match self {
            Self::AnswerStatus(_)
            | Self::AnswerHeader(..)
            | Self::NoAnswerHeader(_)
            | Self::AnswerContains(_)
            | Self::FirstByte(_)
            | Self::Total(_) => true,
            Self::Route(_)
            | Self::Upstream(_)
            | Self::UpstreamPath(_)
            | Self::Redirect(_)
            | Self::Builtin(_)
            | Self::Agents(_)
            | Self::Status(_)
            | Self::Reason(_)
            | Self::Listener(_)
            | Self::Certificate(_)
            | Self::CertificateDays(_)
            | Self::Targets(_)
            | Self::Setting { .. }
            | Self::RequestHeader(..)
            | Self::NoRequestHeader(_)
            | Self::ResponseHeader(..)
            | Self::NoResponseHeader(_) => false,
        }
    }
}

impl Expectation {
    /// Returns true if the expectation depends on files of this host.
    #[must_use]
    pub fn needs_files(&self) -> bool {
        matches!(self, Self::Certificate(_) | Self::CertificateDays(_))
    }
}

/// Requests that must not reach an upstream.
#[derive(Clone, Debug)]
pub struct Prohibition {
    /// Name, unique among prohibitions.
    pub name: String,
    /// Place of the block.
    pub place: Place,
    /// Name of the listener; `None` for all.
    pub listener: Option<String>,
    /// Hosts; empty for all, and for requests without one.
    pub hosts: Vec<Setting<HostPattern>>,
    /// Paths; empty for all.
    pub paths: Vec<Setting<PathPattern>>,
    /// Name of the upstream.
    pub upstream: String,
    /// Name of an agent; requests of routes with it are permitted.
    pub without_agent: Option<String>,
}

impl Prohibition {
    /// The failure of this prohibition.
    #[must_use]
    pub fn failed(&self, difference: String, explain: String) -> FailedTest {
        FailedTest {
            name: self.name.clone(),
            place: self.place,
            request: self.place,
            difference,
            explain,
        }
    }
}

/// A test with an expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTest {
    /// Name of the test.
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
