//! The effective settings with their origins, as `/admin/config` and `explain` list them.

mod credentials;
mod limits;
mod list;
mod listener;
mod process;
mod route;
mod upstream;

pub use list::EffectiveSetting;

use crate::listener::Listener;
use crate::model::Model;
use crate::route::Route;
use crate::upstream::Upstream;
use list::{List, named};

/// A part of a configuration.
#[derive(Clone, Copy, Debug)]
pub enum Part<'m> {
    /// One listener.
    Listener(&'m Listener),
    /// One route.
    Route(&'m Route),
    /// One upstream.
    Upstream(&'m Upstream),
    /// The `limits` block.
    Limits,
}

/// Every effective setting, in the order of the model. Absent settings without a default are left
/// out.
pub fn effective(model: &Model) -> Vec<EffectiveSetting> {
    let Model {
        listeners,
        routes,
        upstreams,
        agents,
        limits: _,
        cache,
        admin,
        observability,
        system,
        control_plane,
        peers: _, // Made of `allow` and `admin`.
        // Tests and prohibitions decide on no request.
        tests: _,
        prohibitions: _,
        sources: _,
    } = model;
    let mut list = List::default();
    list.within("system", |list| process::system(list, system));
    for listener in listeners {
        part(&mut list, model, Part::Listener(listener));
    }
    for route in routes {
        part(&mut list, model, Part::Route(route));
    }
    for upstream in upstreams {
        part(&mut list, model, Part::Upstream(upstream));
    }
    for agent in agents {
        let block = named("agents.agent", &agent.name);
        list.within(&block, |list| process::agent(list, model, agent));
    }
    part(&mut list, model, Part::Limits);
    list.within("cache", |list| process::cache(list, cache));
    list.within("admin", |list| process::admin(list, admin));
    list.within("observability", |list| {
        process::observability(list, observability);
    });
    if let Some(control_plane) = control_plane {
        list.within("control-plane", |list| {
            process::control_plane(list, control_plane);
        });
    }
    list.settings
}

/// Like [`effective`], for one part of `model`.
pub fn effective_in(model: &Model, part: Part<'_>) -> Vec<EffectiveSetting> {
    let mut list = List::default();
    self::part(&mut list, model, part);
    list.settings
}

fn part(list: &mut List, model: &Model, part: Part<'_>) {
    match part {
        Part::Listener(listener) => {
            let block = named("listeners.listener", &listener.name);
            list.within(&block, |list| listener::listener(list, model, listener));
        }
        Part::Route(route) => {
            let block = named("routes.route", &route.id);
            list.within(&block, |list| route::route(list, model, route));
        }
        Part::Upstream(upstream) => {
            let block = named("upstreams.upstream", &upstream.name);
            list.within(&block, |list| upstream::upstream(list, upstream));
        }
        Part::Limits => list.within("limits", |list| limits::limits(list, &model.limits)),
    }
}
