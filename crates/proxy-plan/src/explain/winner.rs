//! The route that takes a request, with the reason.

use super::named::Named;
use crate::decide::Decision;
use crate::plan::Plan;
use proxy_model::{Origin, Route, redacted_header, redacted_parameter};
use proxy_routing::Head;

/// The route that takes the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winner {
    /// Route that takes the request.
    pub route: Named,
    /// `priority` of the route.
    pub priority: i32,
    /// Conditions that hold, or the default route of the listener.
    pub taken: MatchReason,
}

/// The reason why a route takes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchReason {
    /// The conditions of the route that hold. Empty for a route without conditions.
    Matched(Vec<Condition>),
    /// No route matches, and this is the listener's `default-route`, set at this place.
    Default {
        /// `file:line` of the setting.
        source: String,
    },
}

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The setting: `host`, `path-prefix`, …
    pub setting: &'static str,
    /// Value of the setting; secrets are redacted.
    pub value: String,
    /// `file:line`.
    pub source: String,
}

impl Plan {
    pub(super) fn winner(
        &self,
        decision: &Decision<'_>,
        head: Option<&Head<'_>>,
        listener: usize,
    ) -> Option<Winner> {
        let index = decision.route?.index;
        let head = head?;
        let route = self.model.routes.get(index)?;
        let matched = self.router.find(head) == Some(index);
        let taken = if matched {
            MatchReason::Matched(self.conditions(route, head))
        } else {
            let setting = self.model.listeners.get(listener)?.default_route?;
            MatchReason::Default {
                source: self.model.sources.origin(setting.origin),
            }
        };
        Some(Winner {
            route: self.named_route(index)?,
            priority: *route.priority,
            taken,
        })
    }

    /// The conditions of `route` that hold.
    fn conditions(&self, route: &Route, head: &Head<'_>) -> Vec<Condition> {
        let matches = &route.matches;
        let mut listeners = route.listeners.iter();
        let listener = listeners.find(|name| name.value == head.listener);
        let hosts = matches.hosts.iter().filter(|host| host.matches(head.host));
        let paths = matches.paths.iter().filter(|path| path.matches(head.path));
        let methods = matches
            .methods
            .iter()
            .filter(|one| one.value == *head.method);
        let headers = matches.headers.iter().filter(|one| one.holds(head.headers));
        let queries = matches
            .query_params
            .iter()
            .filter(|one| one.holds(head.query));
        let listener = listener.map(|one| self.condition("listeners", one.to_string(), one.origin));
        let hosts = hosts.map(|one| self.condition("host", one.to_string(), one.origin));
        let paths = paths.map(|one| {
            let value = one.as_str().to_owned();
            self.condition(one.setting(), value, one.origin)
        });
        let methods = methods.map(|one| self.condition("method", one.to_string(), one.origin));
        let headers = headers.map(|one| self.condition("header", redacted_header(one), one.origin));
        let queries =
            queries.map(|one| self.condition("query-param", redacted_parameter(one), one.origin));
        let all = listener
            .into_iter()
            .chain(hosts)
            .chain(paths)
            .chain(methods)
            .chain(headers);
        all.chain(queries).collect()
    }

    fn condition(&self, setting: &'static str, value: String, origin: Origin) -> Condition {
        Condition {
            setting,
            value,
            source: self.model.sources.origin(origin),
        }
    }
}
