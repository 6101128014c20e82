//! The route that takes a request, and what made it do so.

use super::Named;
use crate::effective::Shown;
use crate::{Decision, Plan};
use proxy_model::{Route, Setting};
use proxy_routing::Head;

/// The route that takes the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winner {
    /// The route.
    pub route: Named,
    /// Its priority.
    pub priority: i32,
    /// Why it takes the request.
    pub taken: Taken,
}

/// Why a route takes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Its conditions hold: these, of those it has. None are listed when it takes every request.
    Matched(Vec<Condition>),
    /// No route matches, and this is the listener's `default-route`, which is set here.
    Default {
        /// `file:line` of the setting.
        source: String,
    },
}

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The setting that makes it: `host`, `path-prefix`, …
    pub setting: &'static str,
    /// What it asks for; secrets are hidden.
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
            Taken::Matched(self.conditions(route, head))
        } else {
            let setting = self.model.listeners.get(listener)?.default_route?;
            Taken::Default {
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
        let hosts = hosts.map(|host| self.condition("host", host));
        let paths = paths.map(|path| self.condition(path.setting(), path));
        let methods = methods.map(|method| self.condition("method", method));
        let headers = headers.map(|header| self.condition("header", header));
        let queries = queries.map(|query| self.condition("query-param", query));
        let all = hosts.chain(paths).chain(methods).chain(headers);
        all.chain(queries).collect()
    }

    fn condition<T: Shown>(&self, name: &'static str, setting: &Setting<T>) -> Condition {
        Condition {
            setting: name,
            value: setting.value.shown().to_string(),
            source: self.model.sources.origin(setting.origin),
        }
    }
}
