//! What a route does with requests and responses on the way.

use crate::listener::PathPolicy;
use crate::place::{Place, Setting};
use http::{HeaderName, HeaderValue};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A route's policies. What is absent leaves the upstream's or the global setting in force.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// The route's own times.
    pub timeouts: RouteTimeouts,
    /// Largest request body, in bytes. 0 refuses every body. Overrides the global limit both ways.
    pub max_body_size: Option<Setting<u64>>,
    /// How fast requests may come.
    pub rate_limit: Option<RateLimit>,
    /// Changes to what goes upstream.
    pub request_headers: HeaderEdits,
    /// Changes to what goes to the client.
    pub response_headers: HeaderEdits,
    /// What happens to paths that can be read in two ways; none leaves it to the listener.
    pub path_policy: Option<Setting<PathPolicy>>,
    /// Whether the whole request body is read before the upstream is asked.
    pub buffer_requests: Setting<bool>,
    /// Whether the whole response body is read before the client gets its first byte.
    pub buffer_responses: Setting<bool>,
    /// Whether and when a request is sent again.
    pub retry: Option<Retry>,
}

/// A route's own times; what is absent is as the upstream says.
#[derive(Clone, Debug, Default)]
pub struct RouteTimeouts {
    /// To connect to a target.
    pub connect: Option<Setting<Duration>>,
    /// From the request's head to the last byte of the response, even while bytes move.
    /// `timeout-secs` is its flat spelling.
    pub request: Option<Setting<Duration>>,
    /// Between two reads of a response.
    pub read: Option<Setting<Duration>>,
    /// Without a byte either way once a connection is upgraded.
    pub idle: Option<Setting<Duration>>,
}

/// How fast requests may come.
#[derive(Clone, Debug)]
pub struct RateLimit {
    /// Its block.
    pub place: Place,
    /// Tokens that return each second, at least 1.
    pub requests_per_second: Setting<u32>,
    /// Most tokens saved up, at least 1.
    pub burst: Setting<u32>,
    /// What has a bucket of its own.
    pub key: Setting<RateKey>,
}

/// What has a bucket of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateKey {
    /// Each client address; IPv6 by /64.
    ClientIp,
    /// Each value of this request header; requests without it share one bucket.
    Header(HeaderName),
    /// Each path.
    Path,
    /// The route as a whole.
    Route,
}

/// Changes to a head, in this order: remove, set, add.
#[derive(Clone, Debug, Default)]
pub struct HeaderEdits {
    /// Fields to take away.
    pub remove: Vec<Setting<HeaderName>>,
    /// Fields to put in place of all of that name.
    pub set: Vec<Setting<HeaderField>>,
    /// Fields to put beside those of that name.
    pub add: Vec<Setting<HeaderField>>,
}

/// A header field to write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeaderField {
    /// The name.
    pub name: HeaderName,
    /// The value.
    pub value: HeaderValue,
}

/// Whether and when a request is sent again.
#[derive(Clone, Debug)]
pub struct Retry {
    /// Its block.
    pub place: Place,
    /// Most times one request is sent again; 0 never.
    pub attempts: Setting<u32>,
    /// After what.
    pub on: Setting<Vec<RetryCause>>,
    /// Share of an upstream's requests that may be retries, in percent.
    pub budget_percent: Setting<u32>,
}

/// What makes a request worth sending again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryCause {
    /// No connection came about; nothing was sent.
    ConnectFailure,
    /// The connection ended before the response began.
    Reset,
    /// The response did not begin in time.
    Timeout,
    /// The target answered 502.
    BadGateway,
    /// The target answered 503.
    ServiceUnavailable,
    /// The target answered 504.
    GatewayTimeout,
}

impl HeaderEdits {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        let Self { remove, set, add } = self;
        remove.is_empty() && set.is_empty() && add.is_empty()
    }
}

impl RetryCause {
    /// The name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConnectFailure => "connect-failure",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::BadGateway => "502",
            Self::ServiceUnavailable => "503",
            Self::GatewayTimeout => "504",
        }
    }
}

impl fmt::Display for RetryCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why text is not a rate key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateKeyError {
    /// It is none of the keys.
    #[error("write `client_ip`, `header:<name>`, `path` or `route`")]
    Unknown,
    /// What follows `header:` is no header name.
    #[error("what follows `header:` is not a header name")]
    Header,
}

impl FromStr for RateKey {
    type Err = RateKeyError;

    fn from_str(text: &str) -> Result<Self, RateKeyError> {
        if let Some(name) = text.strip_prefix("header:") {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| RateKeyError::Header)?;
            return Ok(Self::Header(name));
        }
        match text {
            "client_ip" | "client-ip" => Ok(Self::ClientIp),
            "path" => Ok(Self::Path),
            "route" => Ok(Self::Route),
            _ => Err(RateKeyError::Unknown),
        }
    }
}

impl fmt::Display for RateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientIp => f.write_str("client_ip"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Path => f.write_str("path"),
            Self::Route => f.write_str("route"),
        }
    }
}

impl fmt::Display for HeaderField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value } = self;
        write!(f, "{name}: {}", String::from_utf8_lossy(value.as_bytes()))
    }
}
