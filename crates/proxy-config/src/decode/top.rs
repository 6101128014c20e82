//! The top level of a configuration: its blocks, decoded in the order in which they refer to each
//! other.

mod relays;
mod work;

use super::agents::{agent, check_upstreams};
use super::block::Block;
use super::config_tests::{config_test, prohibition};
use super::decoder::Decoder;
use super::listener_tls::acme;
use super::listeners::{listener, no_listener_at_admin, no_two_alike};
use super::names::Names;
use super::policies::{cache, jwt};
use super::routes::route;
use super::upstreams::upstream;
use super::{admin, control_plane, limits, observability, system};
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::policies::cache as cache_spec;
use proxy_model::registry::{
    self, Repeatable, Spec, agents, config_tests, listeners, routes, top, upstreams,
};
use proxy_model::{Agent, ConfigTest, Listener, Model, Prohibition, Route, Upstream};

/// The model of all blocks. It is valid only if no fault was reported.
pub(crate) fn model(d: &mut Decoder<'_, '_>) -> Model {
    let file = Block::top(d);
    file.setting(d, &top::SCHEMA_VERSION);
    let named = Named::read(d, &file);
    let system = file.inner(d, &top::SYSTEM);
    let limits = file.inner(d, &top::LIMITS);
    let cached = file.inner(d, &cache_spec::CACHE);
    let admin = file.inner(d, &top::ADMIN);
    let observability = file.inner(d, &top::OBSERVABILITY);
    let control_plane = file.inner(d, &top::CONTROL_PLANE);
    file.close(d);
    let lists = named.decode(d);
    let control_plane = control_plane.map(|block| closing(d, block, control_plane::control_plane));
    let mut model = Model {
        listeners: lists.listeners,
        routes: lists.routes,
        upstreams: lists.upstreams,
        agents: lists.agents,
        limits: closing(d, written(limits), limits::limits),
        cache: closing(d, written(cached), cache::cache),
        admin: closing(d, written(admin), admin::admin),
        observability: closing(d, written(observability), observability::observability),
        system: closing(d, written(system), system::system),
        tests: lists.tests,
        prohibitions: lists.prohibitions,
        control_plane: control_plane.flatten(),
        peers: None,
        sources: d.sources().clone(),
    };
    model.hide_tokens();
    // Checks of blocks against each other would report consequences of what is missing.
    if d.has_gaps() {
        return model;
    }
    no_two_alike(d, &model.listeners);
    no_listener_at_admin(d, &model);
    acme::check(d, &model);
    no_default_route_elsewhere(d, &model);
    check_upstreams(d, &model);
    jwt::check_upstreams(d, &model);
    cache::check(d, &model);
    no_https_test_without_tls(d, &model);
    relays::check(d, &model);
    work::check(d, &model);
    model
}

/// Reports listeners with a default route that takes requests of other listeners only.
fn no_default_route_elsewhere(d: &mut Decoder<'_, '_>, model: &Model) {
    for listener in &model.listeners {
        let Some(default) = &listener.default_route else {
            continue;
        };
        let route = model.route(default.value);
        let elsewhere = route.filter(|route| {
            let mut names = route.listeners.iter();
            !route.listeners.is_empty() && !names.any(|name| name.value == listener.name)
        });
        if let Some((route, place)) = elsewhere.zip(default.place()) {
            let message = format!("route \"{}\" is bound to other listeners", route.id);
            let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
            d.push(fault.help(format!(
                "add \"{}\" to `listeners` of the route",
                listener.name
            )));
        }
    }
}

/// Reports tests of `https` requests that no listener serves.
fn no_https_test_without_tls(d: &mut Decoder<'_, '_>, model: &Model) {
    for test in &model.tests {
        let request = &test.request;
        let mut listeners = model.listeners.iter().filter(|listener| {
            let named = request.listener.as_ref();
            named.is_none_or(|name| *name == listener.name)
        });
        let is_https = request
            .url
            .get(..8)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
        if !is_https || model.listeners.is_empty() || listeners.any(|one| one.tls.is_some()) {
            continue;
        }
        let message = format!("no listener serves `{}`", request.url);
        let fault = Diagnostic::new(DiagnosticCode::Conflict, request.place, message);
        let fault = fault.label("needs a listener with `tls`");
        d.push(
            fault.help(
                "write `http://`, or give the listener `protocol \"https\"` and a `tls` block",
            ),
        );
    }
}

/// The block, or an empty one, which has defaults for all settings.
fn written(block: Option<Block<'_>>) -> Block<'_> {
    block.unwrap_or_else(Block::empty)
}

fn closing<'t, T>(
    d: &mut Decoder<'t, '_>,
    block: Block<'t>,
    decode: impl FnOnce(&mut Decoder<'t, '_>, &Block<'t>) -> T,
) -> T {
    let decoded = decode(d, &block);
    block.close(d);
    decoded
}

/// The named blocks before decoding.
struct Named<'t> {
    listeners: Vec<Block<'t>>,
    routes: Vec<Block<'t>>,
    upstreams: Vec<Block<'t>>,
    agents: Vec<Block<'t>>,
    tests: Vec<Block<'t>>,
    prohibitions: Vec<Block<'t>>,
}

/// The named blocks after decoding.
struct Lists {
    listeners: Vec<Listener>,
    routes: Vec<Route>,
    upstreams: Vec<Upstream>,
    agents: Vec<Agent>,
    tests: Vec<ConfigTest>,
    prohibitions: Vec<Prohibition>,
}

impl<'t> Named<'t> {
    /// Finds the named blocks and records their names, before any reference is resolved.
    fn read(d: &mut Decoder<'t, '_>, file: &Block<'t>) -> Self {
        let (tests, prohibitions) = test_members(d, file);
        let named = Self {
            listeners: members(d, file, &top::LISTENERS, &listeners::LISTENER),
            routes: members(d, file, &top::ROUTES, &routes::ROUTE),
            upstreams: members(d, file, &top::UPSTREAMS, &upstreams::UPSTREAM),
            agents: members(d, file, &top::AGENTS, &agents::AGENT),
            tests,
            prohibitions,
        };
        d.define("test", &named.tests);
        d.define("prohibition", &named.prohibitions);
        d.names = Names {
            listeners: d.define("listener", &named.listeners),
            routes: d.define("route", &named.routes),
            upstreams: d.define("upstream", &named.upstreams),
            agents: d.define("agent", &named.agents),
        };
        named
    }

    fn decode(self, d: &mut Decoder<'t, '_>) -> Lists {
        Lists {
            listeners: all(d, self.listeners, listener),
            routes: all(d, self.routes, route),
            upstreams: all(d, self.upstreams, upstream),
            agents: all(d, self.agents, agent),
            tests: all(d, self.tests, config_test),
            prohibitions: all(d, self.prohibitions, prohibition),
        }
    }
}

fn members<'t>(
    d: &mut Decoder<'t, '_>,
    file: &Block<'t>,
    list: &Spec<registry::Block, Repeatable>,
    member: &Spec<registry::Block, Repeatable>,
) -> Vec<Block<'t>> {
    let Some(list) = file.inner(d, list) else {
        return Vec::new();
    };
    let members = list.each(d, member);
    list.close(d);
    members
}

/// The blocks `test` and `never`.
fn test_members<'t>(d: &mut Decoder<'t, '_>, file: &Block<'t>) -> (Vec<Block<'t>>, Vec<Block<'t>>) {
    let Some(list) = file.inner(d, &top::TESTS) else {
        return (Vec::new(), Vec::new());
    };
    let tests = list.each(d, &config_tests::TEST);
    let prohibitions = list.each(d, &config_tests::NEVER);
    list.close(d);
    (tests, prohibitions)
}

fn all<'t, T>(
    d: &mut Decoder<'t, '_>,
    blocks: Vec<Block<'t>>,
    decode: impl Fn(&mut Decoder<'t, '_>, &Block<'t>) -> Option<T>,
) -> Vec<T> {
    let decoded = blocks
        .into_iter()
        .filter_map(|block| closing(d, block, &decode));
    decoded.collect()
}
