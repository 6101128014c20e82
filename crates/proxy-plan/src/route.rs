//! The compiled form of a route.

pub(crate) mod cache;
mod cors;
mod credentials;
mod edited_fields;
mod fixed_response;
mod rate_stage;
mod redirect;
mod rewrite;
mod token;

pub use cache::CachePlan;
pub use cors::CorsPlan;
pub use credentials::{BasicAuthPlan, CredentialsPlan};
pub use edited_fields::EditedFields;
pub use fixed_response::FixedResponsePlan;
pub use rate_stage::{RateStage, rate_key_value};
pub(crate) use redirect::RequestUrl;
pub use redirect::{RedirectPlan, Redirection};
pub use rewrite::RewritePlan;
pub use token::{TokenKeys, TokenPlan};

use crate::access::AccessPlan;
use crate::agent::{AgentPlan, RouteAgents};
use crate::retry::RetryPlan;
use crate::targets::TargetTransaction;
use proxy_coding::{Coding, CompressionLevels};
use proxy_errors::ServiceForm as ErrorForm;
use proxy_health::{BreakerSettings, CircuitBreaker};
use proxy_model::{
    self as model, BuiltinHandler, ErrorPages, HeaderEdits, MediaRange, Model, PathPolicy, RateKey,
    ServiceForm, Upstream,
};
use std::sync::Arc;
use std::time::Duration;

/// A compiled route.
#[derive(Debug)]
pub struct RoutePlan {
    /// Index among the plan's routes.
    pub index: usize,
    /// The route's id.
    pub id: Arc<str>,
    /// The service that answers.
    pub service: Service,
    /// Format of the proxy's own errors.
    pub form: ErrorForm,
    /// Maximum size of a request body, in bytes.
    pub max_body_bytes: u64,
    /// The setting of that maximum.
    pub max_body_setting: &'static str,
    /// True if request bodies are read completely before the upstream is contacted.
    pub buffer_requests: bool,
    /// True if response bodies are read whole before the client gets a byte.
    pub buffer_responses: bool,
    /// Maximum bytes that are held of one body.
    pub max_body_buffer_bytes: u64,
    /// Networks of clients; `None` admits all.
    pub access: Option<Box<AccessPlan>>,
    /// Required credentials, a password or a token; `None` if the route requires none.
    pub credentials: Option<Box<CredentialsPlan>>,
    /// HTML pages of the route's errors; if empty, the listener's apply.
    pub error_pages: ErrorPages,
    /// Ambiguous paths are refused; `None` takes the listener's setting.
    pub strict_paths: Option<bool>,
    /// The path sent to the upstream; `None` for the client's.
    pub rewrite: Option<Box<RewritePlan>>,
    /// Timeouts.
    pub timeouts: RouteTimeouts,
    /// Retry policy.
    pub retry: RetryPlan,
    /// Compression of responses; `None` if disabled.
    pub compression: Option<Box<CompressionPlan>>,
    /// Shadow copies of requests; `None` if disabled.
    pub shadow: Option<ShadowPlan>,
    /// Circuit breaker of the route; `None` if disabled.
    pub breaker: Option<CircuitBreaker>,
    /// The agents called for its requests; `None` for most routes.
    pub agents: Option<Box<RouteAgents>>,
    /// CORS settings; `None` leaves preflight requests to the upstream.
    pub cors: Option<Box<CorsPlan>>,
    /// Caching of responses; `None` forwards every request.
    pub cache: Option<Box<CachePlan>>,
    /// True if edits of headers depend on the request.
    pub has_values: bool,
    /// Treatment of the fields of responses.
    pub response_fields: ResponseFields,
    /// Edits of the request headers sent upstream.
    pub request_headers: HeaderEdits,
    /// Edits of the response headers sent to the client.
    pub response_headers: HeaderEdits,
    /// Response fields that are edited.
    pub edited_fields: Arc<EditedFields>,
}

/// Compression of a route's responses.
#[derive(Clone, Debug)]
pub struct CompressionPlan {
    /// Codings, in the proxy's order of preference.
    pub codings: Vec<Coding>,
    /// Types of the bodies that are compressed.
    pub types: Vec<MediaRange>,
    /// Minimum size of a compressed body, in bytes; applies to bodies of known size.
    pub min_bytes: u64,
    /// Levels of compression per coding.
    pub levels: CompressionLevels,
}

/// Copies of a route's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowPlan {
    /// Index of the upstream that gets them.
    pub upstream: usize,
    /// Share of the requests, of `u64::MAX`.
    pub share: u64,
}

/// The service that answers a route's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// The upstream with this index.
    Upstream(usize),
    /// A handler of the proxy itself.
    Builtin(BuiltinHandler),
    /// Files of the folder in the model's route.
    Static,
    /// A redirect to another URL.
    Redirect(Box<RedirectPlan>),
    /// A response with a fixed status and text.
    Respond(Box<FixedResponsePlan>),
}

/// The route's treatment of response header fields, beyond the edits of every proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFields {
    /// No setting of the route reads or edits them: the route is plain.
    Passed,
    /// Read into a map.
    Read,
}

/// Timeouts of an exchange: the route's own, else its upstream's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteTimeouts {
    /// To connect to a target.
    pub connect: Duration,
    /// From the request's last byte to the response's head.
    pub response: Duration,
    /// Between two reads of a response.
    pub read: Duration,
    /// Without a byte in either direction on an upgraded connection.
    pub tunnel_idle: Duration,
    /// From the request's head to the last byte of the response, whether or not bytes move; `None`
    /// is unlimited.
    pub total: Option<Duration>,
}

impl Service {
    /// Index of the upstream that requests are forwarded to.
    #[must_use]
    pub const fn upstream(&self) -> Option<usize> {
        match self {
            Self::Upstream(position) => Some(*position),
            Self::Builtin(_) | Self::Static | Self::Redirect(_) | Self::Respond(_) => None,
        }
    }
}

impl RoutePlan {
    /// Returns true if response header fields are forwarded unchanged.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.response_fields == ResponseFields::Passed
    }

    /// The stage at which a limit of the route with this key is evaluated. If an agent or a token can
    /// set the field that is the key, the check follows that step, so that a client cannot choose
    /// the key.
    #[must_use]
    pub fn rate_stage(&self, key: &RateKey) -> RateStage {
        let RateKey::Header(name) = key else {
            return RateStage::First;
        };
        if self.agents.is_some() {
            return RateStage::AfterAgents;
        }
        match self.credentials.as_deref() {
            Some(CredentialsPlan::Token(token)) if token.claim_names.contains(name) => {
                RateStage::AfterCredentials
            }
            Some(CredentialsPlan::Token(_) | CredentialsPlan::Basic(_)) | None => RateStage::First,
        }
    }

    pub(crate) fn compile(
        index: usize,
        route: &model::Route,
        model: &Model,
        agents: &[Arc<AgentPlan>],
        transaction: &mut TargetTransaction,
    ) -> Self {
        let Model {
            upstreams, limits, ..
        } = model;
        let service = match &route.service {
            model::Service::Upstream(upstream) => Service::Upstream(upstream.value.position()),
            model::Service::Builtin(handler) => Service::Builtin(handler.value),
            model::Service::Static(_) => Service::Static,
            model::Service::Redirect(redirect) => {
                Service::Redirect(Box::new(RedirectPlan::compile(redirect)))
            }
            model::Service::Respond(response) => {
                Service::Respond(Box::new(FixedResponsePlan::compile(response)))
            }
        };
        let upstream = service.upstream().and_then(|at| upstreams.get(at));
        let policies = &route.policies;
        let max_body_setting = if policies.max_body_size.is_some() {
            "routes.route.policies.max-body-size"
        } else {
            "limits.max-body-size-bytes"
        };
        Self {
            index,
            id: route.id.as_str().into(),
            service,
            form: error_form(*route.form),
            max_body_bytes: policies
                .max_body_size
                .map_or(*limits.max_body_size_bytes, |max| *max),
            max_body_setting,
            buffer_requests: *policies.buffer_requests,
            buffer_responses: *policies.buffer_responses,
            max_body_buffer_bytes: *limits.max_body_buffer_bytes,
            access: AccessPlan::compile(&policies.access),
            credentials: CredentialsPlan::compile(policies, upstreams, transaction).map(Box::new),
            error_pages: policies.error_pages.clone(),
            strict_paths: policies
                .path_policy
                .map(|policy| *policy == PathPolicy::Strict),
            rewrite: policies
                .rewrite
                .as_ref()
                .map(|rewrite| RewritePlan::compile(rewrite, &route.matches.paths))
                .map(Box::new),
            timeouts: RouteTimeouts::compile(route, upstream),
            retry: RetryPlan::compile(policies.retry.as_ref()),
            compression: policies.compression.as_ref().map(compression).map(Box::new),
            shadow: policies.shadow.as_ref().map(shadow),
            breaker: upstream
                .zip(route.circuit_breaker.as_ref())
                .map(|(upstream, breaker)| {
                    transaction.breaker(&route.id, &upstream.name, breaker_settings(breaker))
                }),
            agents: RouteAgents::compile(&route.agents, agents),
            cors: policies.cors.as_ref().map(CorsPlan::compile).map(Box::new),
            cache: CachePlan::compile(route, model).map(Box::new),
            has_values: policies.cors.is_some()
                || policies.request_headers.has_values()
                || policies.response_headers.has_values(),
            response_fields: ResponseFields::compile(route),
            request_headers: policies.request_headers.clone(),
            response_headers: policies.response_headers.clone(),
            edited_fields: Arc::new(EditedFields::compile(route)),
        }
    }
}

impl ResponseFields {
    fn compile(route: &model::Route) -> Self {
        let policies = &route.policies;
        let is_plain = policies.response_headers.is_empty()
            && policies.cors.is_none()
            && policies.rewrite.is_none()
            && policies.compression.is_none()
            && policies.cache.is_none()
            && !*policies.buffer_responses
            && route.agents.is_empty();
        if is_plain { Self::Passed } else { Self::Read }
    }
}

impl RouteTimeouts {
    fn compile(route: &model::Route, upstream: Option<&Upstream>) -> Self {
        let own = &route.policies.timeouts;
        let total = own.request.map(|time| *time);
        let Some(theirs) = upstream.map(|upstream| &upstream.timeouts) else {
            return Self {
                total,
                ..Self::default()
            };
        };
        Self {
            connect: *own.connect.unwrap_or(theirs.connect),
            // A route that permits more for the whole exchange permits it for the head, too.
            response: total.unwrap_or(*theirs.request),
            read: *own.read.unwrap_or(theirs.read),
            tunnel_idle: *own.idle.unwrap_or(theirs.idle),
            total,
        }
    }
}

fn breaker_settings(breaker: &model::CircuitBreaker) -> BreakerSettings {
    let model::CircuitBreaker {
        place: _,
        failure_threshold,
        timeout,
        success_threshold,
        half_open_max_requests,
    } = breaker;
    BreakerSettings {
        failure_threshold: **failure_threshold,
        timeout: **timeout,
        half_open_max_requests: **half_open_max_requests,
        success_threshold: **success_threshold,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the share is positive, and the cast saturates"
)]
fn shadow(settings: &model::Shadow) -> ShadowPlan {
    let model::Shadow {
        place: _,
        upstream,
        percent,
    } = settings;
    ShadowPlan {
        upstream: upstream.position(),
        share: (**percent / 100.0 * u64::MAX as f64) as u64,
    }
}

fn compression(settings: &model::Compression) -> CompressionPlan {
    let model::Compression {
        place: _,
        codings,
        types,
        min_size,
        gzip_level,
        brotli_level,
        zstd_level,
    } = settings;
    CompressionPlan {
        codings: codings.value.clone(),
        types: types.value.clone(),
        min_bytes: **min_size,
        levels: CompressionLevels {
            gzip: **gzip_level,
            brotli: **brotli_level,
            zstd: **zstd_level,
        },
    }
}

fn error_form(form: ServiceForm) -> ErrorForm {
    match form {
        ServiceForm::Api => ErrorForm::Api,
        ServiceForm::Web => ErrorForm::Web,
        ServiceForm::Negotiated => ErrorForm::Unsaid,
    }
}
