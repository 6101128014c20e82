//! Which requests go where, and under which policies.

use crate::matches::Matches;
use crate::model::{AgentIndex, UpstreamIndex};
use crate::place::{Place, Setting};
use crate::policies::Policies;
use proxy_routing::Rule;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One route.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its id, unique among routes.
    pub id: String,
    /// Its block.
    pub place: Place,
    /// Higher is asked first.
    pub priority: Setting<i32>,
    /// Which requests it takes; empty takes all.
    pub matches: Matches,
    /// Who answers.
    pub service: Service,
    /// In which form our own errors are told.
    pub form: Setting<ServiceForm>,
    /// What is done with requests and responses on the way.
    pub policies: Policies,
    /// When it stops asking its upstream.
    pub circuit_breaker: Option<CircuitBreaker>,
    /// Agents asked, in this order.
    pub agents: Vec<Setting<AgentIndex>>,
}

/// Who answers a route's requests.
#[derive(Clone, Debug)]
pub enum Service {
    /// The targets of an upstream.
    Upstream(Setting<UpstreamIndex>),
    /// The proxy itself.
    Builtin(Setting<BuiltinHandler>),
    /// Files of a folder.
    Static(StaticFiles),
}

/// Answers the proxy gives by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuiltinHandler {
    /// `{"status":"healthy"}`.
    Health,
    /// Whether the proxy takes traffic.
    Ready,
    /// Version, uptime and reloads.
    Status,
    /// Metrics in Prometheus text format.
    Metrics,
    /// 404 in the route's form.
    NotFound,
    /// A page that says the proxy runs and has no configuration yet.
    Welcome,
}

/// A route's `service-type`, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceType {
    /// An upstream; errors in JSON.
    Api,
    /// An upstream; errors as HTML pages.
    Web,
    /// The proxy itself.
    Builtin,
    /// Files of a folder.
    Static,
}

/// In which form our own errors are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceForm {
    /// JSON.
    Api,
    /// An HTML page.
    Web,
    /// HTML for clients whose `Accept` prefers it, else JSON.
    Negotiated,
}

/// Files of a folder.
#[derive(Clone, Debug)]
pub struct StaticFiles {
    /// Its block.
    pub place: Place,
    /// The folder.
    pub root: Setting<PathBuf>,
    /// The file that answers for a folder.
    pub index: Setting<String>,
    /// The file, relative to the root, that answers for paths that are none; none answers 404.
    pub fallback: Option<Setting<String>>,
    /// Whether `.br`, `.gz` and `.zst` neighbours are sent to clients that take them.
    pub precompressed: Setting<bool>,
}

/// When a route stops asking its upstream.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    /// Its block.
    pub place: Place,
    /// Consecutive failures that open it.
    pub failure_threshold: Setting<u32>,
    /// How long it stays open.
    pub timeout: Setting<Duration>,
    /// Consecutive successes that close it again.
    pub success_threshold: Setting<u32>,
    /// Requests at once that try whether the upstream is well again.
    pub half_open_max_requests: Setting<u32>,
}

impl Route {
    /// The conditions as the router takes them.
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
    /// The name in a configuration.
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
