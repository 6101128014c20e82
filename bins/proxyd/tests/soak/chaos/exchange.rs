//! A client's request, and its outcome.

use super::random::Random;
use proxy_errors::{ErrorType, Reason};

/// A route of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Route {
    /// Three targets over HTTP/1.1, with health checks and a circuit breaker.
    App,
    /// Two targets over HTTP/2.
    Http2,
    /// A target by name.
    Named,
    /// A rate limit in a store.
    Limited,
    /// An agent that answers wrongly at times, under `failure-mode "closed"`.
    Guarded,
    /// An agent in a process of its own, under `failure-mode "closed"`.
    Checked,
}

pub(crate) const ROUTES: [Route; 6] = [
    Route::App,
    Route::Http2,
    Route::Named,
    Route::Limited,
    Route::Guarded,
    Route::Checked,
];

/// Pattern of bodies.
const TEXT: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const MAX_BODY_BYTES: usize = 40_000;
/// Body of a failing target's answer.
pub(crate) const FAILURE: &[u8] = b"failed";

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequest {
    pub(crate) route: Route,
    /// Its correlation ID, which begins with `get-`, `post-` or `denied-`.
    pub(crate) id: String,
    /// True if the route's agent refuses it.
    pub(crate) denied: bool,
    /// `None` for a GET.
    pub(crate) body: Option<Vec<u8>>,
    /// True if the client leaves before the end of the response.
    pub(crate) leaves: bool,
}

/// The response that a client got.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// A whole response with this status.
    Answered(u16, Content),
    /// A response that ended before its end, with this status.
    Cut(u16),
    /// The client left.
    Left,
    /// No response, for this reason.
    Unanswered(String),
}

/// The body of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The response of a healthy target to the request.
    Echo,
    /// The response of a failing target.
    TargetFailure,
    /// An error of the proxy's, with this `code`.
    Error(String),
    /// Other content of this length.
    Other(usize),
}

/// A request and its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) request: ClientRequest,
    pub(crate) outcome: Outcome,
}

impl Exchange {
    /// Without the request's body, which is large.
    pub(crate) fn new(mut request: ClientRequest, outcome: Outcome) -> Self {
        request.body = None;
        Self { request, outcome }
    }
}

impl Content {
    /// The content of the response to `request` with this body.
    pub(crate) fn classify(body: &[u8], request: &ClientRequest) -> Self {
        if body == request.echo() {
            return Self::Echo;
        }
        if body == FAILURE {
            return Self::TargetFailure;
        }
        let document: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        match document["error"]["code"].as_str() {
            Some(code) => Self::Error(code.to_owned()),
            None => Self::Other(body.len()),
        }
    }
}

impl Route {
    /// Path of a request that is refused, or is not.
    pub(crate) fn path(self, denied: bool) -> &'static str {
        match (self, denied) {
            (Self::App, _) => "/app",
            (Self::Http2, _) => "/http2",
            (Self::Named, _) => "/named",
            (Self::Limited, _) => "/limited",
            (Self::Guarded, false) => "/guarded",
            (Self::Guarded, true) => "/guarded/deny",
            (Self::Checked, false) => "/checked",
            (Self::Checked, true) => "/private",
        }
    }

    fn has_agent(self) -> bool {
        matches!(self, Self::Guarded | Self::Checked)
    }

    /// Returns true if a request of this route may fail for `reason`.
    pub(crate) fn may_fail_for(self, reason: Reason) -> bool {
        let by_limits = matches!(
            reason,
            Reason::InFlightLimit
                | Reason::InFlightShare
                | Reason::QueueFull
                | Reason::QueueTimeout
        );
        let by_targets = reason.blame().may_be_target()
            || matches!(
                reason,
                Reason::DnsFailed
                    | Reason::ConnectFailed
                    | Reason::UpgradeDeclined
                    | Reason::NoFreeConnection
                    | Reason::BreakerOpen
                    | Reason::AllTargetsUnhealthy
            );
        by_limits
            || match self {
                Self::App | Self::Http2 => by_targets && reason != Reason::DnsFailed,
                Self::Named => by_targets || reason == Reason::NoTargets,
                Self::Limited => reason == Reason::PolicyRateLimit,
                Self::Guarded | Self::Checked => reason.error_type() == ErrorType::Agent,
            }
    }
}

impl ClientRequest {
    /// The request with this number of a client.
    pub(crate) fn new(random: &mut Random, client: usize, number: usize) -> Self {
        let route = random.pick(&ROUTES);
        let denied = route.has_agent() && random.once_in(3);
        let length = random.below(MAX_BODY_BYTES);
        let body = random.once_in(3).then(|| {
            let text = TEXT.iter().cycle().skip(number % TEXT.len());
            text.take(length).copied().collect()
        });
        let kind = match (denied, &body) {
            (true, _) => "denied",
            (false, None) => "get",
            (false, Some(_)) => "post",
        };
        Self {
            route,
            id: format!("{kind}-{client}-{number}"),
            denied,
            body,
            leaves: random.once_in(10),
        }
    }

    pub(crate) fn path(&self) -> &'static str {
        self.route.path(self.denied)
    }

    /// The body of a right answer of a target.
    fn echo(&self) -> Vec<u8> {
        let body = self.body.as_deref().unwrap_or_default();
        [self.id.as_bytes(), body].concat()
    }
}
