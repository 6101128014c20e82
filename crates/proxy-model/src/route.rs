//! Routes: match conditions, service and policies.

mod fixed_response;
mod redirect;

pub use fixed_response::FixedResponse;
pub use redirect::{Redirect, RedirectStatus, RedirectTarget, TrailingSlash};

use crate::index::{AgentIndex, UpstreamIndex};
use crate::matches::Matches;
use crate::place::{Place, Setting};
use crate::policies::Policies;
use proxy_routing::Rule;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A route.
#[derive(Clone, Debug)]
pub struct Route {
    /// Id, unique among routes.
    pub id: String,
    /// Place of the block.
    pub place: Place,
    /// Routes of higher priority are matched first.
    pub priority: Setting<i32>,
    /// Names of the route's listeners; empty for all.
    pub listeners: Vec<Setting<String>>,
    /// Match conditions; empty matches every request.
    pub matches: Matches,
    /// The service that answers.
    pub service: Service,
    /// Format of the proxy's own errors.
    pub form: Setting<ServiceForm>,
    /// Policies for requests and responses.
    pub policies: Policies,
    /// Circuit breaker; `None` if disabled.
    pub circuit_breaker: Option<CircuitBreaker>,
    /// Agents that decide about each request, in this order.
    pub agents: Vec<Setting<AgentIndex>>,
}

/// The service that answers a route's requests.
#[derive(Clone, Debug)]
pub enum Service {
    /// Forwards to the targets of an upstream.
    Upstream(Setting<UpstreamIndex>),
    /// A handler of the proxy itself.
    Builtin(Setting<BuiltinHandler>),
    /// Serves files of a folder.
    Static(StaticFiles),
    /// Redirects to another URL.
    Redirect(Redirect),
    /// Responds with a fixed status and text.
    Respond(FixedResponse),
}

/// A handler of the proxy itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuiltinHandler {
    /// `{"status":"healthy"}`.
    Health,
    /// Readiness of the process: 200 or 503.
    Ready,
    /// Version, uptime and reloads.
    Status,
    /// Metrics in Prometheus text format.
    Metrics,
    /// 404 in the route's error format.
    NotFound,
    /// A page that states that the proxy runs without a configuration.
    Welcome,
}

/// The `service-type` of a route, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceType {
    /// An upstream; errors in JSON.
    Api,
    /// An upstream; errors as HTML pages.
    Web,
    /// A handler of the proxy itself.
    Builtin,
    /// Files of a folder.
    Static,
}

/// The format of the proxy's own errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceForm {
    /// JSON.
    Api,
    /// HTML pages for browsers.
    Web,
    /// HTML if the client's `Accept` prefers it, else JSON.
    Negotiated,
}

/// A folder of files to serve.
#[derive(Clone, Debug)]
pub struct StaticFiles {
    /// Place of the block.
    pub place: Place,
    /// Path of the folder.
    pub root: Setting<PathBuf>,
    /// The file sent for a folder, relative to it.
    pub index: Setting<String>,
    /// The file, relative to the root, sent for paths that match no file; `None` answers 404.
    pub fallback: Option<Setting<String>>,
    /// True if the `.br`, `.zst` and `.gz` variants of a file are sent to clients that accept them.
    pub precompressed: Setting<bool>,
}

/// The circuit breaker of a route.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    /// Place of the block.
    pub place: Place,
    /// Consecutive failures that open the breaker.
    pub failure_threshold: Setting<u32>,
    /// Open time of the breaker.
    pub timeout: Setting<Duration>,
    /// Consecutive successes that close the breaker.
    pub success_threshold: Setting<u32>,
    /// Concurrent trial requests while the breaker is half-open.
    pub half_open_max_requests: Setting<u32>,
}

impl Route {
    /// The conditions in the router's form.
    pub fn rule(&self) -> Rule {
        let Matches {
            hosts,
            paths,
            headers,
            methods,
            query_params,
        } = &self.matches;
        Rule {
            id: self.id.clone(),
            priority: self.priority.value,
            listeners: values(&self.listeners),
            has_implied_listeners: false,
            hosts: values(hosts),
            paths: values(paths),
            headers: values(headers),
            methods: values(methods),
            query_params: values(query_params),
        }
    }
}

fn values<T: Clone>(settings: &[Setting<T>]) -> Vec<T> {
    settings
        .iter()
        .map(|setting| setting.value.clone())
        .collect()
}

impl BuiltinHandler {
    /// The word in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Ready => "ready",
            Self::Status => "status",
            Self::Metrics => "metrics",
            Self::NotFound => "not-found",
            Self::Welcome => "welcome",
        }
    }
}

impl fmt::Display for BuiltinHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ServiceForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Api => "api",
            Self::Web => "web",
            Self::Negotiated => "negotiated",
        })
    }
}
