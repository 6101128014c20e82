//! Converts HTTP routers to routes, with priorities that preserve Traefik's order.

use super::conditions::Conditions;
use super::configuration::Configuration;
use super::document::{Entry, Value};
use super::entry_points::{EntryPoint, EntryPoints};
use super::middlewares::{self, Agents, Draft};
use super::rule::{self, Alternative};
use super::services::Services;
use super::tls;
use crate::kdl::Node;
use crate::site::{Policies, Route, Service, Site};
use std::collections::BTreeSet;

/// Priority of the first route; each further one has one less.
const FIRST_PRIORITY: u32 = 900_000;
/// Maximum number of routes for requests that negated matchers leave to other routers.
const MAX_EXCLUDED_ROUTES: usize = 2_000;

/// A router, for one set of its entry points.
pub(super) struct Router<'d> {
    pub(super) entry: &'d Entry,
    pub(super) is_tls: bool,
    /// Names of the listeners.
    pub(super) listeners: Vec<&'d str>,
    middlewares: Vec<&'d str>,
    /// Set if a listener trusts peers for more than its entry point does.
    has_mixed_trust: bool,
    /// TLS settings of the router and of its entry points.
    tls: Vec<&'d Value>,
    priority: u64,
    alternatives: Option<Vec<Alternative>>,
}

/// Listeners of a router with the same protocol.
#[derive(Default)]
struct Listeners<'d> {
    names: Vec<&'d str>,
    /// Middlewares of the entry points.
    middlewares: Vec<&'d str>,
    has_mixed_trust: bool,
}

/// An alternative of a router's rule.
struct Case<'r, 'd> {
    router: &'r Router<'d>,
    conditions: Conditions,
    /// Requests that meet one of these conditions are left to later cases.
    negated: Vec<Conditions>,
}

/// How requests are answered.
#[derive(Clone, Copy)]
enum Answer<'r, 'd> {
    Router(&'r Router<'d>),
    NotFound,
    NotMigrated,
}

impl<'d> Router<'d> {
    /// Reads the routers of all files, highest priority first.
    pub(super) fn read_all(
        site: &mut Site,
        configuration: &Configuration<'d>,
        points: &EntryPoints<'d>,
    ) -> Vec<Self> {
        let mut routers: Vec<Self> = Vec::new();
        for entry in configuration.routers.iter() {
            if configuration.routers.is_twice(&entry.key) {
                let advice = "two files have a router with this name, so Traefik has none of them";
                site.note(&entry.place(), &entry.key, advice);
                continue;
            }
            routers.extend(Self::read(site, points, entry));
        }
        routers.sort_by_key(|router| std::cmp::Reverse(router.priority));
        routers
    }

    /// Splits a router by its entry points: with and without TLS.
    fn read(site: &mut Site, points: &EntryPoints<'d>, entry: &'d Entry) -> Vec<Self> {
        let written = entry.value.text_of("rule").unwrap_or_default();
        let alternatives = rule::parse(written);
        if alternatives.is_none() {
            site.note(
                &entry.place(),
                &format!("{}: rule {written}", entry.key),
                "the rule cannot be read; requests of its entry points that reach this router are answered 501",
            );
        }
        let own = entry.value.number_of("priority").filter(|it| *it > 0);
        let priority = own.unwrap_or(written.len() as u64);
        let own_tls = entry.value.block("tls");
        let has_tls = own_tls.is_some();
        let mut settings: Vec<&'d Value> = own_tls.into_iter().collect();
        let is_named = entry.value.get("entryPoints").is_some();
        let mut by_kind: [Listeners<'d>; 2] = Default::default();
        for point in points.for_router(site, entry) {
            let is_tls = has_tls || point.has_tls_for_all;
            if is_tls != point.is_tls {
                note_kind(site, entry, point, is_named);
                continue;
            }
            let [plain, tls] = &mut by_kind;
            let listeners = if is_tls { tls } else { plain };
            listeners.names.push(point.name);
            listeners.has_mixed_trust |= point.has_mixed_trust();
            settings.extend(point.tls());
            let known = listeners.middlewares.clone();
            let new = point.middlewares.iter().filter(|it| !known.contains(it));
            listeners.middlewares.extend(new);
        }
        if !is_named && by_kind.iter().all(|it| it.names.is_empty()) {
            site.note(
                &entry.place(),
                &entry.key,
                "no entry point has TLS as the router has; write `entryPoints`, or a route",
            );
        }
        let own = entry.value.texts_of("middlewares");
        let kinds = [false, true].into_iter().zip(by_kind);
        let used = kinds.filter(|(_, it)| !it.names.is_empty());
        used.map(|(is_tls, listeners)| {
            let Listeners {
                names,
                mut middlewares,
                has_mixed_trust,
            } = listeners;
            middlewares.extend(&own);
            Self {
                entry,
                is_tls,
                listeners: names,
                middlewares,
                has_mixed_trust,
                tls: if is_tls { settings.clone() } else { Vec::new() },
                priority,
                alternatives: alternatives.clone(),
            }
        })
        .collect()
    }

    /// Hosts in the router's rule and in `tls.domains`.
    pub(super) fn hosts(&self) -> BTreeSet<String> {
        let mut hosts: BTreeSet<String> = BTreeSet::new();
        let matchers = self.alternatives.iter().flatten().flatten();
        for matcher in matchers.filter(|it| !it.is_negated && it.name == "Host") {
            hosts.extend(matcher.arguments.iter().map(|it| it.to_ascii_lowercase()));
        }
        let domains = self.entry.value.at(&["tls", "domains"]);
        for domain in domains.map_or(&[][..], |it| it.items()) {
            hosts.extend(domain.text_of("main").map(str::to_owned));
            hosts.extend(domain.texts_of("sans").into_iter().map(str::to_owned));
        }
        hosts
    }

    /// Alternatives of the rule, with the requests that negated matchers exclude.
    fn cases(&self) -> Vec<Case<'_, 'd>> {
        let Some(alternatives) = &self.alternatives else {
            return vec![Case {
                router: self,
                conditions: Conditions::unknown(),
                negated: Vec::new(),
            }];
        };
        let mut cases = Vec::new();
        for alternative in alternatives {
            let wanted = alternative.iter().filter(|it| !it.is_negated);
            let mut conditions = wanted.map(Conditions::from_matcher);
            let conditions = conditions.try_fold(Conditions::default(), |all, one| all.and(&one));
            // No request can meet contradictory conditions.
            let Some(conditions) = conditions else {
                continue;
            };
            let negated = alternative.iter().filter(|it| it.is_negated);
            cases.push(Case {
                router: self,
                conditions,
                negated: negated.map(Conditions::from_matcher).collect(),
            });
        }
        cases
    }
}

/// Notes a router that is not converted at an entry point, because a port has a single protocol.
fn note_kind(site: &mut Site, entry: &Entry, point: &EntryPoint<'_>, is_named: bool) {
    if is_named {
        site.note(
            &entry.place(),
            &format!("{}: entryPoints {}", entry.key, point.name),
            "a listener has TLS for all of its connections or for none; the router has no route there",
        );
    }
}

/// Adds the routes of all routers.
pub(super) fn write(site: &mut Site, configuration: &Configuration<'_>, routers: &[Router<'_>]) {
    let cases: Vec<Case<'_, '_>> = routers.iter().flat_map(Router::cases).collect();
    let mut writer = Writer {
        configuration,
        services: Services::default(),
        agents: Agents::default(),
        priority: FIRST_PRIORITY,
        excluded_routes: 0,
    };
    for (position, case) in cases.iter().enumerate() {
        if site.is_full() {
            return;
        }
        let later = cases.get(position + 1..).unwrap_or_default();
        let listeners = &case.router.listeners;
        if !case.conditions.is_wider && writer.push_excluded(site, case, later) {
            writer.push(
                site,
                &case.conditions,
                Answer::Router(case.router),
                listeners,
            );
            continue;
        }
        if case.router.alternatives.is_some() {
            let shown = case.router.entry.value.text_of("rule").unwrap_or_default();
            site.note(
                &case.router.entry.place(),
                &format!("{}: rule {shown}", case.router.entry.key),
                "a part of the rule has no counterpart; requests that meet the rest of it are answered 501",
            );
        }
        writer.push(site, &case.conditions, Answer::NotMigrated, listeners);
    }
    site.agents = writer.agents.nodes;
}

struct Writer<'c, 'd> {
    configuration: &'c Configuration<'d>,
    services: Services,
    agents: Agents,
    priority: u32,
    excluded_routes: usize,
}

impl Writer<'_, '_> {
    /// Adds routes for the requests that a case's negated matchers leave to later cases; returns
    /// false if these have no counterpart.
    fn push_excluded(
        &mut self,
        site: &mut Site,
        case: &Case<'_, '_>,
        later: &[Case<'_, '_>],
    ) -> bool {
        let mut routes: Vec<(Conditions, Answer<'_, '_>, Vec<&str>)> = Vec::new();
        for negated in &case.negated {
            if negated.is_wider {
                return false;
            }
            let Some(region) = case.conditions.and(negated) else {
                continue;
            };
            for other in later {
                self.excluded_routes += 1;
                if self.excluded_routes > MAX_EXCLUDED_ROUTES {
                    return false;
                }
                let names = other.router.listeners.iter();
                let listeners: Vec<&str> = names
                    .filter(|name| case.router.listeners.contains(name))
                    .copied()
                    .collect();
                let Some(both) = region.and(&other.conditions) else {
                    continue;
                };
                if listeners.is_empty() {
                    continue;
                }
                // Requests that the other case excludes in turn would need a third one.
                if both.is_wider || !other.negated.is_empty() {
                    return false;
                }
                routes.push((both, Answer::Router(other.router), listeners));
            }
            if region.is_wider {
                return false;
            }
            let listeners = case.router.listeners.clone();
            routes.push((region, Answer::NotFound, listeners));
        }
        for (conditions, answer, listeners) in &routes {
            self.push(site, conditions, *answer, listeners);
        }
        true
    }

    fn push(
        &mut self,
        site: &mut Site,
        conditions: &Conditions,
        answer: Answer<'_, '_>,
        listeners: &[&str],
    ) {
        let service = match answer {
            Answer::NotFound => Service::refusal(404),
            Answer::NotMigrated | Answer::Router(_) => Service::not_migrated(),
        };
        let wanted = match answer {
            Answer::Router(router) => router.entry.key.as_str(),
            Answer::NotFound => "not found",
            Answer::NotMigrated => "not migrated",
        };
        let name = site.route_name(wanted);
        let mut route = Route::new(name, service);
        route.listeners = listeners.iter().map(|it| (*it).to_owned()).collect();
        conditions.write(&mut route);
        if let Answer::Router(router) = answer {
            self.push_router(site, route, router);
        } else {
            self.finish(site, route);
        }
    }

    fn finish(&mut self, site: &mut Site, mut route: Route) {
        route.priority = Some(self.priority);
        self.priority = self.priority.saturating_sub(1);
        site.push_route(route);
    }

    /// Adds a route with the router's service and middlewares.
    fn push_router(&mut self, site: &mut Site, route: Route, router: &Router<'_>) {
        let entry = router.entry;
        let Self {
            configuration,
            services,
            agents,
            ..
        } = self;
        let mut draft = Draft::new(route, router.is_tls, agents);
        let mut is_whole =
            middlewares::apply(site, configuration, &mut draft, entry, &router.middlewares);
        let mut settings = router.tls.iter();
        if settings.any(|it| tls::is_unwritten_check(configuration, it)) {
            is_whole = false;
            site.note(
                &entry.place(),
                &format!("{}: tls options", entry.key),
                "client certificates are asked for by a listener: write `tls { client-auth { ca-file … } }` in one of its own; its routes answer 501 until then",
            );
        }
        if router.has_mixed_trust && !draft.route.policies.allow.is_empty() {
            is_whole = false;
            site.note(
                &entry.place(),
                &format!("{}: ipAllowList", entry.key),
                "its entry point trusts other peers for `X-Forwarded-For` than for the `PROXY` header: write the same `trustedIPs` in both; its routes answer 501 until then",
            );
        }
        let (is_answered, before, mut route) = (draft.is_answered, draft.before, draft.route);
        if !is_answered {
            let target = services.target(site, configuration, entry);
            let target = target.filter(|_| is_whole);
            if let Some(host) = target.as_ref().and_then(|it| it.host.as_deref()) {
                let edits = &mut route.policies.request_headers;
                edits.push(Node::text("set", "Host").arg(host));
            }
            match target {
                Some(target) => route.service = Service::Upstream(target.upstream),
                None => is_whole = false,
            }
        }
        if !is_whole {
            route.service = Service::not_migrated();
            route.policies = Policies::default();
            route.agents.clear();
        } else if is_answered {
            let policies = Policies {
                allow: std::mem::take(&mut route.policies.allow),
                response_headers: std::mem::take(&mut route.policies.response_headers),
                ..Policies::default()
            };
            route.policies = policies;
            route.agents.clear();
        }
        for mut first in before {
            if !is_whole {
                first.service = Service::not_migrated();
            }
            self.finish(site, first);
        }
        self.finish(site, route);
    }
}
