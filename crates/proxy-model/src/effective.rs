//! The effective settings with their origins, as `/admin/config` and `explain` list them.

mod limits;
mod listener;
mod process;
mod route;
mod upstream;

use crate::listener::Listener;
use crate::model::Model;
use crate::place::{Origin, Setting};
use crate::registry::{Spec, Status};
use crate::route::Route;
use crate::upstream::Upstream;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An effective setting.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// Path in the configuration: `routes.route["api"].policies.max-body-size`.
    pub path: String,
    /// Path of its row in the registry: `routes.route.policies.max-body-size`.
    pub row: &'static str,
    /// Value; times in seconds or milliseconds according to the name's suffix, sizes in bytes.
    /// Secrets are `"(redacted)"`.
    pub value: Value,
    /// The place where it is written, or the default.
    pub origin: Origin,
}

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
/// out, and so are settings without effect.
pub fn effective(model: &Model) -> Vec<EffectiveSetting> {
    let Model {
        listeners,
        routes,
        upstreams,
        agents,
        limits: _,
        admin,
        observability,
        system,
        control_plane,
        sources: _,
    } = model;
    let mut list = List::default();
    list.within("system", |list| process::system(list, system));
    for listener in listeners {
        list.part(model, Part::Listener(listener));
    }
    for route in routes {
        list.part(model, Part::Route(route));
    }
    for upstream in upstreams {
        list.part(model, Part::Upstream(upstream));
    }
    for agent in agents {
        let block = named("agents.agent", &agent.name);
        list.within(&block, |list| process::agent(list, agent));
    }
    list.part(model, Part::Limits);
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
    list.part(model, part);
    list.settings
}

impl EffectiveSetting {
    /// The path within its listener, route, upstream or agent, or else within its block:
    /// `policies.max-body-size`.
    pub fn name(&self) -> &'static str {
        let named = [
            "listeners.listener.",
            "routes.route.",
            "upstreams.upstream.",
            "agents.agent.",
        ];
        let mut rests = named.iter().map(|block| self.row.strip_prefix(block));
        let in_block = self.row.split_once('.').map_or(self.row, |(_, name)| name);
        rests.find_map(|rest| rest).unwrap_or(in_block)
    }
}

/// The settings listed so far, and the path of the current block.
#[derive(Debug, Default)]
struct List {
    settings: Vec<EffectiveSetting>,
    block: String,
}

impl List {
    fn part(&mut self, model: &Model, part: Part<'_>) {
        match part {
            Part::Listener(listener) => {
                let block = named("listeners.listener", &listener.name);
                self.within(&block, |list| listener::listener(list, model, listener));
            }
            Part::Route(route) => {
                let block = named("routes.route", &route.id);
                self.within(&block, |list| route::route(list, model, route));
            }
            Part::Upstream(upstream) => {
                let block = named("upstreams.upstream", &upstream.name);
                self.within(&block, |list| upstream::upstream(list, upstream));
            }
            Part::Limits => self.within("limits", |list| limits::limits(list, &model.limits)),
        }
    }

    fn within(&mut self, block: &str, write: impl FnOnce(&mut Self)) {
        let length = self.block.len();
        if length > 0 {
            self.block.push('.');
        }
        self.block.push_str(block);
        write(self);
        self.block.truncate(length);
    }

    fn put<K, D, T>(
        &mut self,
        spec: &Spec<K, D>,
        setting: &Setting<T>,
        show: impl Fn(&T) -> Value,
    ) {
        if matches!(spec.status, Status::NotYet { .. }) {
            return;
        }
        self.settings.push(EffectiveSetting {
            path: format!("{}.{}", self.block, spec.name()),
            row: spec.path,
            value: show(&setting.value),
            origin: setting.origin,
        });
    }

    fn put_any<K, D, T>(
        &mut self,
        spec: &Spec<K, D>,
        setting: Option<&Setting<T>>,
        show: impl Fn(&T) -> Value,
    ) {
        if let Some(setting) = setting {
            self.put(spec, setting, show);
        }
    }

    fn put_all<K, D, T>(
        &mut self,
        spec: &Spec<K, D>,
        settings: &[Setting<T>],
        show: impl Fn(&T) -> Value,
    ) {
        for setting in settings {
            self.put(spec, setting, &show);
        }
    }

    fn time<K, D>(&mut self, spec: &Spec<K, D>, setting: &Setting<Duration>) {
        let in_millis = spec.name().ends_with("-ms");
        self.put(spec, setting, |time| match in_millis {
            true => whole(time.as_millis()),
            false if time.subsec_nanos() == 0 => time.as_secs().into(),
            false => time.as_secs_f64().into(),
        });
    }

    fn any_time<K, D>(&mut self, spec: &Spec<K, D>, setting: Option<&Setting<Duration>>) {
        if let Some(setting) = setting {
            self.time(spec, setting);
        }
    }
}

fn named(block: &str, name: &str) -> String {
    format!("{block}[{name:?}]")
}

fn text(value: &impl fmt::Display) -> Value {
    value.to_string().into()
}

fn plain<T: Copy + Into<Value>>(value: &T) -> Value {
    (*value).into()
}

#[expect(clippy::ptr_arg, reason = "called with the values of settings")]
fn path(value: &PathBuf) -> Value {
    value.to_string_lossy().into()
}

fn whole(number: u128) -> Value {
    u64::try_from(number).unwrap_or(u64::MAX).into()
}
