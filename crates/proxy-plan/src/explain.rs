//! A decision, and everything that led to it.

mod applied;
mod outcome;
mod question;
mod rejected;
mod winner;

pub use outcome::{Candidate, Handler, Nearest, Readiness};
pub use question::{ExplainError, ExplainRequest};
pub use rejected::{Lost, Rejected};
pub use winner::{Condition, Taken, Winner};

use crate::balancer_state::BalancerState;
use crate::decide::RequestHead;
use crate::plan::Plan;
use http::uri::PathAndQuery;
use proxy_model::{EffectiveSetting, Sources};
use std::net::IpAddr;
use std::time::Duration;

/// What becomes of a request under a plan, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The method.
    pub method: String,
    /// The host, in both forms.
    pub host: Text,
    /// The path, in both forms.
    pub path: Text,
    /// The query without its `?`; empty when there is none.
    pub query: String,
    /// The client's address, if the question named one.
    pub client_ip: Option<IpAddr>,
    /// Where the request comes in; none under a plan without listeners.
    pub listener: Option<Named>,
    /// The route that takes the request, if one does.
    pub winner: Option<Winner>,
    /// Who answers.
    pub answerer: Handler,
    /// Every other route, in the order of the configuration; empty when the request is refused
    /// before routes are looked at.
    pub rejected: Vec<Rejected>,
    /// The settings that this request meets: those of its route, upstream and listener, and the
    /// limits that none of these override.
    pub settings: Vec<EffectiveSetting>,
    /// The files that the settings' places are in.
    pub sources: Sources,
}

/// Something of a request that is brought into one form before it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// As the client sends it.
    pub sent: String,
    /// As routes see it; none when it is refused.
    pub seen: Option<String>,
}

/// Something of the configuration, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// `file:line`.
    pub source: String,
}

impl Plan {
    /// Decides about a request as [`Plan::decide`] does, and says why.
    ///
    /// Made for people: it looks at every route and allocates as it likes.
    pub fn explain(
        &self,
        head: &RequestHead<'_>,
        view: &impl BalancerState,
        now: Duration,
    ) -> Explanation {
        let decision = self.decide(head, view, now);
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
            listener: self.named_listener(head.listener),
            winner: self.winner(&decision, routing_head.as_ref(), head.listener),
            answerer: self.answerer(&decision, routing_head.as_ref(), view),
            rejected: routing_head.map_or_else(Vec::new, |head| self.rejected(&decision, &head)),
            settings: self.applied(&decision, head.listener),
            sources: self.model.sources.clone(),
        }
    }

    fn named_listener(&self, position: usize) -> Option<Named> {
        let listener = self.model.listeners.get(position)?;
        Some(Named {
            name: listener.name.clone(),
            source: self.model.sources.file_and_line(listener.place),
        })
    }

    /// The route at this position, and where it stands.
    fn named_route(&self, position: usize) -> Option<Named> {
        let route = self.model.routes.get(position)?;
        Some(Named {
            name: route.id.clone(),
            source: self.model.sources.file_and_line(route.place),
        })
    }
}
