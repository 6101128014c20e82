//! Policies of a route.

mod basic_auth;
mod cache;
mod capture_template;
mod cors;
mod header_preset;
mod jwt;
mod prefix_replacement;
mod request_rate;
pub(crate) mod request_value;
mod rewrite;

pub use basic_auth::{BasicAuth, BasicUser, UsersFile};
pub use cache::{Cache, RouteCache};
pub use capture_template::{CapturePart, CaptureTemplate};
pub use cors::{Cors, OriginPattern};
pub use header_preset::HeaderPreset;
pub use jwt::{
    ClaimHeader, JwtAuth, JwtKeyFile, JwtKeySource, KeySetUrl, RemoteKeySet, RequiredClaim,
    TokenCarrier,
};
pub use prefix_replacement::PrefixReplacement;
pub(crate) use prefix_replacement::check_characters;
pub use request_rate::RequestRate;
pub use request_value::{RequestValue, RequestValues, UnknownValue, UrlScheme, ValueTemplate};
pub use rewrite::Rewrite;

use crate::compression::Compression;
use crate::index::UpstreamIndex;
use crate::listener::{Access, ErrorPages, PathPolicy};
use crate::place::{Place, Setting};
use crate::store_url::StoreUrl;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue};
use proxy_framing::is_host;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Policies of a route. For an absent one, the upstream's or the global setting applies.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Timeouts that override the upstream's.
    pub timeouts: RouteTimeouts,
    /// Maximum size of a request body, in bytes. 0 refuses every body. Overrides the global limit
    /// up or down.
    pub max_body_size: Option<Setting<u64>>,
    /// Networks of clients.
    pub access: Access,
    /// Users and passwords; `None` if not required.
    pub basic_auth: Option<BasicAuth>,
    /// HTML pages of the route's errors.
    pub error_pages: ErrorPages,
    /// Tokens; `None` if not required.
    pub jwt: Option<JwtAuth>,
    /// CORS settings; `None` leaves preflight requests to the upstream.
    pub cors: Option<Cors>,
    /// Rate limit; `None` is unlimited.
    pub rate_limit: Option<RateLimit>,
    /// Edits of the request headers sent upstream.
    pub request_headers: HeaderEdits,
    /// Edits of the response headers sent to the client.
    pub response_headers: HeaderEdits,
    /// Treatment of ambiguous paths; `None` takes the listener's.
    pub path_policy: Option<Setting<PathPolicy>>,
    /// True if the whole request body is read before a connection to the upstream is used.
    pub buffer_requests: Setting<bool>,
    /// True if the whole response body is read before its first byte is sent to the client.
    pub buffer_responses: Setting<bool>,
    /// Retry policy; `None` retries once, and only if repeating is safe.
    pub retry: Option<Retry>,
    /// Compression of responses; `None` if disabled.
    pub compression: Option<Compression>,
    /// The path sent to the upstream; `None` for the client's.
    pub rewrite: Option<Rewrite>,
    /// Shadow copies of requests for a second upstream; `None` if disabled.
    pub shadow: Option<Shadow>,
    /// Caching of responses; `None` forwards every request.
    pub cache: Option<RouteCache>,
}

/// Timeouts of a route; an absent one is the upstream's.
#[derive(Clone, Debug, Default)]
pub struct RouteTimeouts {
    /// Maximum time to connect to a target.
    pub connect: Option<Setting<Duration>>,
    /// From the request's head to the last byte of the response, whether or not bytes move.
    /// `timeout-secs` is its flat spelling.
    pub request: Option<Setting<Duration>>,
    /// Maximum time between two reads of a response.
    pub read: Option<Setting<Duration>>,
    /// Maximum time without a byte in either direction on an upgraded connection.
    pub idle: Option<Setting<Duration>>,
}

/// A rate limit.
#[derive(Clone, Debug)]
pub struct RateLimit {
    /// Place of the block.
    pub place: Place,
    /// Tokens refilled in a period.
    pub rate: Setting<RequestRate>,
    /// Capacity of a bucket in tokens, at least 1.
    pub burst: Setting<u32>,
    /// The key by which requests share a bucket.
    pub key: Setting<RateKey>,
    /// True if requests over the limit are counted and logged, but served.
    pub observe_only: Setting<bool>,
    /// The server of buckets shared by several proxies; `None` for buckets in this process.
    pub store: Option<Setting<StoreUrl>>,
    /// Maximum time for the store's answer.
    pub store_timeout: Setting<Duration>,
}

/// Sends copies of a route's requests to a second upstream.
#[derive(Clone, Debug)]
pub struct Shadow {
    /// Place of the block.
    pub place: Place,
    /// The upstream that gets the copies.
    pub upstream: Setting<UpstreamIndex>,
    /// Share of the requests that are copied, 0 to 100.
    pub percent: Setting<f64>,
}

/// The key by which requests share a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateKey {
    /// The client address; IPv6 by /64.
    ClientIp,
    /// The value of this request header; requests without it share one bucket.
    Header(HeaderName),
    /// Path of the request, in its normal form.
    Path,
    /// The route: all its requests share one bucket.
    Route,
}

/// Edits of headers, applied in this order: remove, set, add.
#[derive(Clone, Debug, Default)]
pub struct HeaderEdits {
    /// Names of the fields to remove.
    pub remove: Vec<Setting<HeaderName>>,
    /// Fields that replace all fields of the same name.
    pub set: Vec<Setting<HeaderField>>,
    /// Fields appended to existing fields of the same name.
    pub add: Vec<Setting<HeaderField>>,
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeaderField {
    /// Name of the field, in lower case.
    pub name: HeaderName,
    /// Value of the field, as written.
    pub value: HeaderValue,
    /// Values of the request in it; `None` if it is constant.
    pub template: Option<ValueTemplate>,
}

/// The retry policy of a route.
#[derive(Clone, Debug)]
pub struct Retry {
    /// Place of the block.
    pub place: Place,
    /// Maximum number of retries of one request; 0 never retries.
    pub attempts: Setting<u32>,
    /// The failures after which a request is retried.
    pub on: Setting<Vec<RetryCause>>,
    /// Share of an upstream's requests that may be retries, in percent.
    pub budget_percent: Setting<u32>,
    /// Maximum time of one attempt until its response begins; `None` leaves it to the upstream.
    pub per_try_timeout: Option<Setting<Duration>>,
}

/// A failure after which a request may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryCause {
    /// No connection was established, so nothing was sent.
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

impl HeaderField {
    /// Returns false for a `Host` that is no host with or without a port. [RFC 9112 §3.2]
    pub fn may_be_sent(&self, value: &HeaderValue) -> bool {
        self.name != HOST || is_host(value.as_bytes())
    }
}

impl HeaderEdits {
    /// Applies the edits: removes, then sets, then adds. A field with an empty value is not sent:
    /// `set` removes it.
    pub fn apply(&self, headers: &mut HeaderMap) {
        let Self { remove, set, add } = self;
        for name in remove {
            headers.remove(&name.value);
        }
        for field in set {
            if field.value.value.is_empty() {
                headers.remove(&field.name);
            } else {
                headers.insert(field.name.clone(), field.value.value.clone());
            }
        }
        for field in add.iter().filter(|field| !field.value.value.is_empty()) {
            headers.append(field.name.clone(), field.value.value.clone());
        }
    }

    /// Returns true if a value depends on the request.
    pub fn has_values(&self) -> bool {
        let mut fields = self.set.iter().chain(&self.add);
        fields.any(|field| field.template.is_some())
    }

    /// Returns true if `value` is a part of a field.
    pub fn has_value(&self, value: RequestValue) -> bool {
        let mut fields = self.set.iter().chain(&self.add);
        fields.any(|field| {
            let template = field.template.as_ref();
            template.is_some_and(|template| template.has(value))
        })
    }

    /// The edits for one request. A field with an empty value is not sent: `set` removes it. A
    /// value that is no host leaves `Host` as it is, which every request needs.
    #[must_use]
    pub fn filled(&self, values: &RequestValues<'_>) -> Self {
        let mut filled = Self {
            remove: self.remove.clone(),
            ..Self::default()
        };
        let field = |field: &Setting<HeaderField>, value| Setting {
            value: HeaderField {
                name: field.name.clone(),
                value,
                template: None,
            },
            origin: field.origin,
        };
        for set in &self.set {
            let Some(template) = &set.template else {
                filled.set.push(set.clone());
                continue;
            };
            match template.fill(values) {
                Some(value) if set.may_be_sent(&value) => filled.set.push(field(set, value)),
                _ if set.name == HOST => {}
                _ => filled.remove.push(Setting {
                    value: set.name.clone(),
                    origin: set.origin,
                }),
            }
        }
        for add in &self.add {
            let Some(template) = &add.template else {
                filled.add.push(add.clone());
                continue;
            };
            let value = template.fill(values);
            filled.add.extend(value.map(|value| field(add, value)));
        }
        filled
    }

    /// Appends the edits of `later`, which replace conflicting ones.
    #[must_use]
    pub fn followed_by(mut self, later: Self) -> Self {
        let Self { remove, set, add } = later;
        let is_replaced = |name: &HeaderName| {
            let mut removed = remove.iter().map(|one| &one.value);
            removed.any(|one| one == name) || set.iter().any(|one| one.name == *name)
        };
        self.set.retain(|field| !is_replaced(&field.name));
        self.add.retain(|field| !is_replaced(&field.name));
        self.remove.extend(remove);
        self.set.extend(set);
        self.add.extend(add);
        self
    }

    /// Returns true if there is no edit.
    pub fn is_empty(&self) -> bool {
        let Self { remove, set, add } = self;
        remove.is_empty() && set.is_empty() && add.is_empty()
    }
}

impl RetryCause {
    /// The word in a configuration.
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

/// The reason why text is not a rate key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateKeyError {
    /// The word is unknown.
    #[error("write `client_ip`, `header:<name>`, `path` or `route`")]
    Unknown,
    /// The text after `header:` is not a header name.
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
        let Self {
            name,
            value,
            template: _,
        } = self;
        write!(f, "{name}: {}", String::from_utf8_lossy(value.as_bytes()))
    }
}
