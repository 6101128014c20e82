//! The decision: from a request's head to the service that answers it, or the reason for refusing
//! it.

use crate::plan::Plan;
use crate::route::{FixedResponsePlan, Redirection, RequestUrl, RoutePlan, Service};
use crate::upstream::UpstreamPlan;
use crate::upstream_states::UpstreamStates;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};
use proxy_errors::{Detail, Problem, Reason};
use proxy_framing::escaped_for_uri;
use proxy_model::{BuiltinHandler, UrlScheme};
use proxy_routing::{
    Head, HostError, PathError, Readings, forgiving_path, is_plain_path, normal_host,
};
use proxy_upstream::BalancingRequest;
use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

/// The method in the head of a relayed connection. Such a head has no path, and the server name of
/// the TLS handshake as its host.
pub const RELAYED_METHOD: &str = "TCP";

/// Maximum length of a path in logs, in bytes.
const MAX_SHOWN_PATH_BYTES: usize = 200;

/// The field in which a trusted proxy names its client's scheme.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// The parts of a request that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// Index of the listener.
    pub listener: usize,
    /// Method of the request.
    pub method: &'a Method,
    /// `Host` or `:authority`, as sent; empty if there is none.
    pub host: &'a str,
    /// The path and query, as sent; `None` for `CONNECT`.
    pub target: Option<&'a PathAndQuery>,
    /// Header fields as received.
    pub headers: &'a HeaderMap,
    /// The length of the body in bytes, if it was announced.
    pub content_length: Option<u64>,
    /// The client's address.
    pub client_ip: IpAddr,
    /// True if the connection is encrypted.
    pub is_tls: bool,
    /// True if the peer's forwarding headers are trusted.
    pub is_peer_trusted: bool,
}

/// A path and a query in the form that the proxy decides on: with the bytes escaped that clients may
/// send and a URI does not hold. `None` if it is no target.
pub(crate) fn read_target(text: &str) -> Option<PathAndQuery> {
    let plain = text.parse().ok();
    plain.or_else(|| PathAndQuery::try_from(escaped_for_uri(text.as_bytes())).ok())
}

/// The decision about a request.
#[derive(Debug)]
pub struct Decision<'p> {
    /// The matching route, if any.
    pub route: Option<&'p RoutePlan>,
    /// The service that answers.
    pub outcome: Outcome<'p>,
    /// End of the time limit for the whole exchange, if its route has one.
    pub end_by: Option<Duration>,
}

/// The service that answers a request.
#[derive(Debug)]
pub enum Outcome<'p> {
    /// A target of an upstream.
    Forward(&'p UpstreamPlan, Choice),
    /// A handler of the proxy itself.
    Answer(BuiltinHandler),
    /// Files of the route's folder.
    Files,
    /// The proxy itself, with a redirect.
    Redirect(Redirection),
    /// The proxy itself, with the route's response.
    Respond(&'p FixedResponsePlan),
    /// No service; the client receives this problem.
    Refuse(Problem),
}

/// The target that gets a request, and why it does.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Position in [`UpstreamPlan::targets`].
    pub target: u16,
    /// The parts of the request that the balancer used; the choice after a failed attempt uses them
    /// again.
    pub request: BalancingRequest,
}

impl Plan {
    /// Decides on a request that arrived at `now`, the time since the caller's epoch.
    ///
    /// Pure: equal plan, head, states and time result in an equal decision.
    pub fn decide<'p>(
        &'p self,
        head: &RequestHead<'_>,
        states: &impl UpstreamStates,
        now: Duration,
    ) -> Decision<'p> {
        let listener = self.listeners.get(head.listener);
        if let Some(listener) = listener
            && let Some(access) = &listener.access
            && !access.admits(head.client_ip)
        {
            return Decision::refuse(None, denied("listener", &listener.name));
        }
        let route = match self.route(head) {
            Ok(route) => route,
            Err(problem) => return Decision::refuse(None, problem),
        };
        if let Some(access) = &route.access
            && !access.admits(head.client_ip)
        {
            return Decision::refuse(Some(route), denied("route", &route.id));
        }
        if route.credentials.is_some() && route.lacks_credentials(head) {
            let problem = Problem::new(Reason::CredentialsMissing, Detail::None);
            return Decision::refuse(Some(route), problem);
        }
        self.decide_on(route, head, states, now)
    }

    /// Decides on a request of a client that `allow` and `deny` admit everywhere, and that has
    /// credentials.
    pub(crate) fn decide_for_admitted<'p>(
        &'p self,
        head: &RequestHead<'_>,
        states: &impl UpstreamStates,
        now: Duration,
    ) -> Decision<'p> {
        match self.route(head) {
            Ok(route) => self.decide_on(route, head, states, now),
            Err(problem) => Decision::refuse(None, problem),
        }
    }

    #[inline]
    fn decide_on<'p>(
        &'p self,
        route: &'p RoutePlan,
        head: &RequestHead<'_>,
        states: &impl UpstreamStates,
        now: Duration,
    ) -> Decision<'p> {
        if let Some(announced) = head.content_length
            && announced > route.max_body_bytes
        {
            let problem = body_too_large(announced, route);
            return Decision::refuse(Some(route), problem);
        }
        let cors = route.cors.as_ref();
        if let Some(response) = cors.and_then(|cors| cors.preflight(head.method, head.headers)) {
            return Decision {
                route: Some(route),
                outcome: Outcome::Respond(response),
                end_by: None,
            };
        }
        let outcome = match &route.service {
            Service::Upstream(_) if !is_rewritable(route, head) => {
                let detail = Detail::text("the rewritten path leaves its root");
                Outcome::Refuse(Problem::new(Reason::AmbiguousPath, detail))
            }
            Service::Upstream(position) => self.choose(*position, head, states),
            Service::Builtin(handler) => Outcome::Answer(*handler),
            Service::Static => Outcome::Files,
            Service::Redirect(redirect) => match redirect.redirection(head.url()) {
                Ok(redirection) => Outcome::Redirect(redirection),
                Err(problem) => Outcome::Refuse(problem),
            },
            Service::Respond(response) => match response.problem() {
                Some(problem) if response.body.is_none() => Outcome::Refuse(problem),
                Some(_) | None => Outcome::Respond(response),
            },
        };
        Decision {
            route: Some(route),
            outcome,
            end_by: route.timeouts.total.map(|total| now.saturating_add(total)),
        }
    }

    fn route(&self, head: &RequestHead<'_>) -> Result<&RoutePlan, Problem> {
        if head.method == Method::CONNECT {
            return Err(Problem::new(Reason::ConnectMethodRefused, Detail::None));
        }
        let (_, reached) = self.see(head)?;
        reached
            .and_then(|index| self.routes.get(index))
            .ok_or_else(|| Problem::new(Reason::RouteNotFound, Detail::None))
    }

    /// The normalized head, and the index of the route that matches it.
    pub(crate) fn see<'a>(
        &'a self,
        head: &RequestHead<'a>,
    ) -> Result<(NormalizedHead<'a>, Option<usize>), Problem> {
        let listener = self.listeners.get(head.listener);
        let name = listener.map_or("", |listener| &listener.name);
        let seen = NormalizedHead::normalize(head, name)?;
        let reached = self.reach(head.listener, &seen.as_head(head));
        if !seen.is_plain {
            self.check_path(head, &seen, reached)?;
        }
        Ok((seen, reached))
    }

    fn reach(&self, listener: usize, head: &Head<'_>) -> Option<usize> {
        let found = self.router.find(head);
        found.or_else(|| self.listeners.get(listener)?.default_route)
    }

    /// Refuses a path with readings that match different routes. The matching route decides
    /// whether that is required, else the listener. For static files it always is, because the
    /// proxy itself interprets the path.
    #[cold]
    fn check_path(
        &self,
        head: &RequestHead<'_>,
        seen: &NormalizedHead<'_>,
        reached: Option<usize>,
    ) -> Result<(), Problem> {
        let raw = head.target.map_or("/", PathAndQuery::path);
        let route = reached.and_then(|index| self.routes.get(index));
        let listener = self.listeners.get(head.listener);
        let is_strict = route
            .and_then(|route| route.strict_paths)
            .or(listener.map(|listener| listener.strict_paths))
            .unwrap_or(true);
        let names_file = route.is_some_and(|route| route.service == Service::Static);
        if !is_strict && !names_file {
            return Ok(());
        }
        let Readings { paths, fault } = Readings::from_path(raw);
        let fault =
            fault.or((!raw.starts_with('/') && raw != "*").then_some(PathError::NotAbsolute));
        if let Some(fault) = fault.filter(|_| is_strict) {
            return Err(path_problem(fault));
        }
        let plainly = seen.as_head(head);
        let elsewhere = paths.iter().find_map(|path| {
            let other = self.reach(head.listener, &Head { path, ..plainly });
            (other != reached).then_some((path, other))
        });
        match elsewhere {
            Some((path, other)) => Err(self.ambiguous(path, other)),
            None => Ok(()),
        }
    }

    fn ambiguous(&self, path: &str, other: Option<usize>) -> Problem {
        let route = other.and_then(|index| self.routes.get(index));
        let route = route.map_or("no route", |route| &route.id);
        // ASCII, so every offset is a character boundary.
        let path = path.get(..MAX_SHOWN_PATH_BYTES).unwrap_or(path);
        let detail = format!("as another server may read it, `{path}`, it leads to {route}");
        Problem::new(Reason::AmbiguousPath, Detail::text(detail))
    }

    /// The target of the upstream at `position` for a request.
    pub fn choose<'p>(
        &'p self,
        position: usize,
        head: &RequestHead<'_>,
        states: &impl UpstreamStates,
    ) -> Outcome<'p> {
        let Some(upstream) = self.upstreams.get(position) else {
            return Outcome::Refuse(Problem::new(Reason::InternalError, Detail::None));
        };
        let request = upstream.balancing.request(head, states);
        let state = states.balancer(upstream);
        let balancer = upstream.balancing.balancer;
        let chosen = state.and_then(|state| balancer.choose(&state, &request, &[]));
        match chosen {
            Some(target) => Outcome::Forward(upstream, Choice { target, request }),
            None => Outcome::Refuse(upstream.unreachable()),
        }
    }
}

impl RequestHead<'_> {
    /// The URL of the request as its client wrote it.
    fn url(&self) -> RequestUrl<'_> {
        let path = self.target.map_or("/", PathAndQuery::path);
        RequestUrl {
            scheme: self.scheme(),
            authority: self.host,
            // `OPTIONS *` has no path.
            path: if path.starts_with('/') { path } else { "/" },
            query: self.target.and_then(PathAndQuery::query),
        }
    }

    /// The scheme used by the client: the connection's, or as reported by a trusted proxy.
    #[must_use]
    pub fn scheme(&self) -> UrlScheme {
        let claimed = self
            .is_peer_trusted
            .then(|| self.headers.get(FORWARDED_PROTO))
            .flatten();
        let claimed = claimed.and_then(|value| value.to_str().ok());
        let first = claimed.and_then(|value| value.split(',').next());
        match first.map(str::trim) {
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => UrlScheme::Https,
            Some(scheme) if scheme.eq_ignore_ascii_case("http") => UrlScheme::Http,
            Some(_) | None if self.is_tls => UrlScheme::Https,
            Some(_) | None => UrlScheme::Http,
        }
    }
}

impl<'p> Decision<'p> {
    fn refuse(route: Option<&'p RoutePlan>, problem: Problem) -> Self {
        Self {
            route,
            outcome: Outcome::Refuse(problem),
            end_by: None,
        }
    }
}

/// A head in the normalized form that routes are matched against.
#[derive(Debug)]
pub(crate) struct NormalizedHead<'a> {
    listener: &'a str,
    host: Cow<'a, str>,
    path: Cow<'a, str>,
    /// All servers read the path in the same way.
    is_plain: bool,
    query: &'a str,
}

impl<'a> NormalizedHead<'a> {
    fn normalize(head: &RequestHead<'a>, listener: &'a str) -> Result<Self, Problem> {
        let host = match head.host {
            "" => Cow::Borrowed(""),
            host => normal_host(host).map_err(host_problem)?.name,
        };
        let raw = head.target.map_or("/", PathAndQuery::path);
        let is_plain = is_plain_path(raw);
        let path = if is_plain {
            Cow::Borrowed(raw)
        } else {
            forgiving_path(raw).0
        };
        let query = head.target.and_then(PathAndQuery::query);
        Ok(Self {
            listener,
            host,
            path,
            is_plain,
            query: query.unwrap_or_default(),
        })
    }

    pub(crate) fn as_head<'s>(&'s self, head: &RequestHead<'s>) -> Head<'s> {
        Head {
            listener: self.listener,
            method: head.method,
            host: &self.host,
            path: &self.path,
            query: self.query,
            headers: head.headers,
        }
    }
}

impl RoutePlan {
    /// Returns true if the request lacks required credentials. Preflight requests need none. [Fetch
    /// standard, CORS protocol and credentials]
    fn lacks_credentials(&self, head: &RequestHead<'_>) -> bool {
        let has_none = self
            .credentials
            .as_ref()
            .is_some_and(|credentials| credentials.are_missing(head.headers));
        has_none && !self.is_preflight(head)
    }

    /// Returns true if `cors` of the route answers the request as a preflight request.
    #[must_use]
    pub fn is_preflight(&self, head: &RequestHead<'_>) -> bool {
        let cors = self.cors.as_ref();
        cors.is_some_and(|cors| cors.preflight(head.method, head.headers).is_some())
    }
}

/// Returns true if no server reads the path for the upstream as one that leaves its root.
#[inline]
fn is_rewritable(route: &RoutePlan, head: &RequestHead<'_>) -> bool {
    route.rewrite.as_ref().is_none_or(|rewrite| {
        let path = head.target.map_or("/", PathAndQuery::path);
        rewrite.is_safe(path)
    })
}

/// The problem of a client that the networks of `kind` `name` refuse.
#[cold]
fn denied(kind: &str, name: &str) -> Problem {
    let detail = format!("{kind} {name} does not admit the client's address");
    Problem::new(Reason::AccessDenied, Detail::text(detail))
}

/// The problem of a body of `current` bytes, more than `route` takes.
fn body_too_large(current: u64, route: &RoutePlan) -> Problem {
    let limit = route.max_body_bytes;
    let problem = Problem::new(Reason::BodySizeLimit, Detail::Limit { current, limit });
    problem.with_setting(route.max_body_setting)
}

fn path_problem(fault: PathError) -> Problem {
    let reason = match fault {
        PathError::EncodedSlash | PathError::Backslash | PathError::DotSegments => {
            Reason::AmbiguousPath
        }
        PathError::Nul => Reason::EncodedNul,
        PathError::BadEscape => Reason::BadPathEscape,
        PathError::LeavesRoot => Reason::PathEscapesRoot,
        PathError::NotAbsolute => Reason::BadRequestTarget,
    };
    Problem::new(reason, Detail::text(fault.to_string()))
}

fn host_problem(fault: HostError) -> Problem {
    Problem::new(Reason::InvalidHost, Detail::text(fault.to_string()))
}
