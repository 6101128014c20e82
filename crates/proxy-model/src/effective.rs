//! Every setting in force, with where it came from: what `/admin/config` lists.

mod limits;
mod listener;
mod process;
mod route;
mod upstream;

use crate::registry::Spec;
use crate::{Model, Origin, Setting};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One setting in force.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// Where it stands: `routes.route["api"].policies.max-body-size`.
    pub path: String,
    /// Its value; times in seconds or milliseconds as the name ends, sizes in bytes. Secrets are
    /// `"(redacted)"`.
    pub value: Value,
    /// Where it was written.
    pub origin: Origin,
}

/// Every setting in force, in the order of the model. Those that were not written and have no
/// default are left out.
pub fn effective(model: &Model) -> Vec<EffectiveSetting> {
    let Model {
        listeners,
        routes,
        upstreams,
        agents,
        limits,
        admin,
        observability,
        system,
        control_plane,
        sources: _,
    } = model;
    let mut list = List::default();
    list.within("system", |list| process::system(list, system));
    for listener in listeners {
        let block = named("listeners.listener", &listener.name);
        list.within(&block, |list| listener::listener(list, model, listener));
    }
    for route in routes {
        let block = named("routes.route", &route.id);
        list.within(&block, |list| route::route(list, model, route));
    }
    for upstream in upstreams {
        let block = named("upstreams.upstream", &upstream.name);
        list.within(&block, |list| upstream::upstream(list, upstream));
    }
    for agent in agents {
        let block = named("agents.agent", &agent.name);
        list.within(&block, |list| process::agent(list, agent));
    }
    list.within("limits", |list| limits::limits(list, limits));
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

/// The settings so far, and the block that the next ones are in.
#[derive(Debug, Default)]
struct List {
    settings: Vec<EffectiveSetting>,
    block: String,
}

impl List {
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
        self.settings.push(EffectiveSetting {
            path: format!("{}.{}", self.block, spec.name()),
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
