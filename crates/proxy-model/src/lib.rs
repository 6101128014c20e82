//! The validated configuration, and the registry of its settings.
//!
//! This crate reads no file; `proxy-config` turns text into a [`Model`]. In a model every reference
//! is defined, every number is in range and every pattern compiles.

mod address;
mod admin;
mod agent;
mod compression;
mod config_test;
mod control_plane;
mod effective;
mod health;
mod index;
mod limits;
mod listener;
mod matches;
mod model;
mod observability;
mod peer_rule;
mod place;
mod policies;
mod route;
mod secret;
mod size;
mod store_url;
mod system;
mod upstream;

pub mod registry;

pub use address::{AddressError, BindAddress, Host, TargetAddress};
pub use admin::Admin;
pub use agent::{
    Agent, AgentAddress, AgentBreaker, AgentEncoding, AgentEventKind, AgentProtocol,
    AgentTransport, FailureMode, OversizeMode,
};
pub use compression::{Compression, MediaRange, MediaRangeError};
pub use config_test::{
    ConfigTest, Expectation, FailedTest, LiveAnswer, LiveRequest, Prohibition, TestRequest,
};
pub use control_plane::{Allow, ControlPlane, Label, NamedPath, is_plain_off_loopback};
pub use effective::{EffectiveSetting, Part, effective, effective_in};
pub use health::{HealthCheck, HealthCheckKind, HealthCheckType, OutlierDetection, StatusRange};
pub use index::{AgentIndex, RouteIndex, UpstreamIndex};
pub use limits::{Limits, RESERVED_DESCRIPTORS, max_connections};
pub use listener::{
    Access, Acme, AcmeChallenge, AcmeKeyType, Alpn, Certificate, ClientAuth, ClientAuthMode,
    ErrorPage, ErrorPages, ErrorStatuses, ExternalAccount, Listener, ListenerProtocol,
    ListenerTimeouts, ListenerTls, NetworkFile, PagePart, PageTemplate, PageValue, PathPolicy,
    TlsVersion,
};
pub use matches::Matches;
pub use model::Model;
pub use observability::{
    AccessLog, AccessLogFormat, COMMON_TIME, ErrorLog, LOG_FIELDS, LogLevel, LogLine, LogLinePart,
    LogTarget, Observability, Otlp, OtlpCompression, OtlpEndpoint, OtlpHeader, Recording,
    TraceContext,
};
pub use peer_rule::{PeerFault, PeerRule};
pub use place::{FileId, Origin, Place, Setting, SourceFile, Sources};
pub use policies::{
    BasicAuth, BasicUser, Cache, CapturePart, CaptureTemplate, ClaimHeader, Cors, HeaderEdits,
    HeaderField, HeaderPreset, JwtAuth, JwtKeyFile, JwtKeySource, KeySetUrl, OriginPattern,
    Policies, PrefixReplacement, RateKey, RateKeyError, RateLimit, RemoteKeySet, RequestRate,
    RequestValue, RequestValues, RequiredClaim, Retry, RetryCause, Rewrite, RouteCache,
    RouteTimeouts, Shadow, TokenCarrier, UnknownValue, UrlScheme, UsersFile, ValueTemplate,
};
pub use route::{
    BuiltinHandler, CircuitBreaker, FixedResponse, Redirect, RedirectStatus, RedirectTarget, Route,
    Service, ServiceForm, ServiceType, StaticFiles, TrailingSlash,
};
pub use secret::{is_secret_name, redacted_field, redacted_header, redacted_parameter};
pub use size::show_size;
pub use store_url::{StoreUrl, StoreUrlError};
pub use system::{Dns, System};
pub use upstream::{
    ConnectionPool, KeyPin, LoadBalancing, Sticky, StickySecret, Target, Upstream,
    UpstreamProtocol, UpstreamTimeouts, UpstreamTls,
};
