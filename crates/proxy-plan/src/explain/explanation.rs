//! The decision on a request, with its reasons.

use super::named::Named;
use super::outcome::Handler;
use super::rejected::Rejected;
use super::winner::Winner;
use crate::decide::{Decision, Outcome, RequestHead};
use crate::plan::Plan;
use crate::upstream_states::UpstreamStates;
use http::uri::PathAndQuery;
use proxy_model::{EffectiveSetting, Sources};
use std::net::IpAddr;
use std::time::Duration;

/// The decision on a request, with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Method of the request.
    pub method: String,
    /// The host as sent and normalized.
    pub host: Text,
    /// The path as sent and normalized.
    pub path: Text,
    /// The query without its `?`; empty if there is none.
    pub query: String,
    /// The client's address, if the request has one.
    pub client_ip: Option<IpAddr>,
    /// Names of the request's forwarding fields that are ignored, though the listener trusts some
    /// peers: a request is explained as one of a client, not of a trusted proxy.
    pub ignored: Vec<&'static str>,
    /// True if the listener's connections are encrypted.
    pub is_tls: bool,
    /// The listener; `None` under a plan without listeners.
    pub listener: Option<Named>,
    /// The matching route, if any.
    pub winner: Option<Winner>,
    /// The agents called for the request, in order.
    pub agents: Vec<Named>,
    /// The service that answers.
    pub answerer: Handler,
    /// The path and query that the upstream gets instead of the client's.
    pub rewritten: Option<String>,
    /// Every other route, in the order of the configuration; empty if the request is refused before
    /// routing.
    pub rejected: Vec<Rejected>,
    /// Effective settings of the request: its route's, upstream's and listener's, and the limits
    /// that none of them overrides.
    pub settings: Vec<EffectiveSetting>,
    /// The files that the settings' places refer to.
    pub sources: Sources,
}

/// A part of a request that is normalized before it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The value as sent.
    pub sent: String,
    /// Normalized; `None` if it is refused.
    pub seen: Option<String>,
}

impl Plan {
    /// Decides on a request like [`Plan::decide`], and explains the decision.
    ///
    /// For operators: it evaluates every route and allocates.
    pub fn explain(
        &self,
        head: &RequestHead<'_>,
        states: &impl UpstreamStates,
        now: Duration,
    ) -> Explanation {
        let mut explanation = self.explain_briefly(head, states, now);
        let decision = self.decide(head, states, now);
        if let Ok((seen, _)) = self.see(head) {
            explanation.rejected = self.rejected(&decision, &seen.as_head(head));
        }
        explanation
    }

    /// Explains without the routes that do not take the request.
    pub(crate) fn explain_briefly(
        &self,
        head: &RequestHead<'_>,
        states: &impl UpstreamStates,
        now: Duration,
    ) -> Explanation {
        let decision = self.decide(head, states, now);
        let seen = self.see(head).ok();
        let routing_head = seen.as_ref().map(|(seen, _)| seen.as_head(head));
        let sent_path = head.target.map_or("", PathAndQuery::path);
        Explanation {
            method: head.method.to_string(),
            host: Text {
                sent: head.host.to_owned(),
                seen: routing_head.map(|head| head.host.to_owned()),
            },
            path: Text {
                sent: sent_path.to_owned(),
                seen: routing_head.map(|head| head.path.to_owned()),
            },
            query: head
                .target
                .and_then(PathAndQuery::query)
                .unwrap_or_default()
                .to_owned(),
            client_ip: None,
            ignored: self.ignored_claims(head),
            is_tls: head.is_tls,
            listener: self.named_listener(head.listener),
            winner: self.winner(&decision, routing_head.as_ref(), head.listener),
            agents: self.named_agents(&decision),
            answerer: self.answerer(&decision, routing_head.as_ref(), states),
            rewritten: rewritten(&decision, head),
            rejected: Vec::new(),
            settings: self.applied(&decision, head.listener),
            sources: self.model.sources.clone(),
        }
    }

    fn named_agents(&self, decision: &Decision<'_>) -> Vec<Named> {
        let route = decision
            .route
            .and_then(|one| self.model.routes.get(one.index));
        let indexes = route.into_iter().flat_map(|route| &route.agents);
        let agents = indexes.filter_map(|index| self.model.agent(index.value));
        let named = agents.map(|agent| Named {
            name: agent.name.clone(),
            source: self.model.sources.file_and_line(agent.place),
        });
        named.collect()
    }

    /// Claims of a client that only a trusted proxy may make: its scheme and its address.
    fn ignored_claims(&self, head: &RequestHead<'_>) -> Vec<&'static str> {
        let listener = self.listeners().get(head.listener);
        let trusts = listener.is_some_and(|listener| !listener.trusted_proxies.is_empty());
        let claims = ["x-forwarded-for", "x-forwarded-proto"];
        let is_ignored =
            |name: &&str| trusts && !head.is_peer_trusted && head.headers.contains_key(*name);
        claims.into_iter().filter(is_ignored).collect()
    }

    fn named_listener(&self, position: usize) -> Option<Named> {
        let listener = self.model.listeners.get(position)?;
        Some(Named {
            name: listener.name.clone(),
            source: self.model.sources.file_and_line(listener.place),
        })
    }
}

/// The target for the upstream, if the route rewrites it.
fn rewritten(decision: &Decision<'_>, head: &RequestHead<'_>) -> Option<String> {
    let rewrite = decision.route?.rewrite.as_ref()?;
    let is_forwarded = matches!(decision.outcome, Outcome::Forward(..));
    let target = rewrite.target(head.target?).filter(|_| is_forwarded)?;
    Some(target.to_string())
}
