//! Effective settings that differ.

use super::parts::Change;
use super::relative_path::relative;
use proxy_model::{
    EffectiveSetting, JwtKeySource, Model, Origin, Part, Route, Service, effective, effective_in,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;

/// A setting that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// `routes.route["api"].priority`
    pub path: String,
    /// Path of its row in the registry.
    pub row: &'static str,
    /// The part of the configuration that has it.
    pub owner: SettingOwner,
    /// Kind of the change.
    pub change: Change,
    /// The values before; several for a setting that may be repeated. Secrets are redacted.
    pub before: Vec<Value>,
    /// Values in the newer configuration; empty if it does not have the setting.
    pub after: Vec<Value>,
    /// Ids of the routes with requests that it applies to; empty where it applies to all routes or
    /// to none.
    pub routes: Vec<String>,
    /// Whether it is a default of an element that is added or removed as a whole, such as the weight of a new target.
    /// [`super::PlanDiff`] does not list these.
    pub(super) is_implied: bool,
}

/// The part of a configuration that has a setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingOwner {
    /// The listener with this name.
    Listener(String),
    /// The route with this id.
    Route(String),
    /// The upstream with this name.
    Upstream(String),
    /// The agent with this name.
    Agent(String),
    /// Settings of the process, outside of named blocks.
    Process,
}

#[derive(Debug)]
struct Values {
    row: &'static str,
    /// Whether the setting is not written.
    is_default: bool,
    shown: Vec<Value>,
    /// Values of header edits as written, to detect a changed secret although both are displayed
    /// equally.
    hidden: Vec<Vec<u8>>,
}

type Settings = BTreeMap<String, Values>;
/// IDs of the routes affected by each owner of settings.
type RoutesByPart = BTreeMap<SettingOwner, BTreeSet<String>>;

/// The settings of `before` and `after` that differ, by path.
pub(super) fn setting_changes(before: &Model, after: &Model) -> Vec<SettingChange> {
    let routes = [before, after].map(routes_by_part);
    changes(&settings(before), &settings(after), &routes)
}

/// The settings in which a route of `before` differs from a route of `after`, as if they were one
/// route: with the path of the route of `after`.
pub(super) fn route_changes(
    [before, after]: [&Model; 2],
    old: &Route,
    new: &Route,
) -> Vec<SettingChange> {
    let block = |route: &Route| format!("routes.route[{:?}].", route.id);
    let (old_block, new_block) = (block(old), block(new));
    let renamed: Settings = route_settings(before, old)
        .into_iter()
        .filter_map(|(path, values)| {
            let rest = path.strip_prefix(&old_block)?;
            Some((format!("{new_block}{rest}"), values))
        })
        .collect();
    changes(&renamed, &route_settings(after, new), &Default::default())
}

fn route_settings(model: &Model, route: &Route) -> Settings {
    let mut settings = shown(model, effective_in(model, Part::Route(route)));
    hide(&mut settings, route_secrets(route));
    settings
}

fn changes(
    old_settings: &Settings,
    new_settings: &Settings,
    routes: &[RoutesByPart; 2],
) -> Vec<SettingChange> {
    let paths: BTreeSet<&String> = old_settings.keys().chain(new_settings.keys()).collect();
    let changes = paths.into_iter().filter_map(|path| {
        let (old, new) = (old_settings.get(path), new_settings.get(path));
        let change = match (old, new) {
            (None, Some(_)) => Change::Added,
            (Some(_), None) => Change::Removed,
            (Some(old), Some(new)) if old.shown != new.shown || old.hidden != new.hidden => {
                Change::Changed
            }
            (Some(_) | None, _) => return None,
        };
        let is_implied = match (old, new) {
            (None, Some(values)) => values.is_default && !has_element(old_settings, path),
            (Some(values), None) => values.is_default && !has_element(new_settings, path),
            (Some(_) | None, _) => false,
        };
        let owner = owner(path);
        let names = routes.iter().filter_map(|routes| routes.get(&owner));
        let names: BTreeSet<&String> = names.flatten().collect();
        let shown = |values: Option<&Values>| values.map_or_else(Vec::new, |one| one.shown.clone());
        Some(SettingChange {
            path: path.clone(),
            row: new.or(old)?.row,
            owner,
            change,
            before: shown(old),
            after: shown(new),
            routes: names.into_iter().cloned().collect(),
            is_implied,
        })
    });
    changes.collect()
}

/// Returns true if `settings` have the element whose own setting is `path`; also for a setting that is not an
/// element's own, such as one of a nested block.
fn has_element(settings: &Settings, path: &str) -> bool {
    let Some((element, _)) = path
        .rsplit_once('.')
        .filter(|(element, _)| element.ends_with("\"]"))
    else {
        return true;
    };
    let following = settings.range::<str, _>((Bound::Included(element), Bound::Unbounded));
    let mut following = following.map(|(path, _)| path);
    following
        .next()
        .is_some_and(|path| path.starts_with(element))
}

fn settings(model: &Model) -> Settings {
    let mut settings = shown(model, effective(model));
    for route in &model.routes {
        hide(&mut settings, route_secrets(route));
    }
    let secrets = model.upstreams.iter().filter_map(|upstream| {
        let path = format!("upstreams.upstream[{:?}].sticky.secret", upstream.name);
        let secret = upstream.sticky.secret.as_ref()?;
        Some((path, secret.value.0.clone().into_bytes()))
    });
    hide(&mut settings, secrets.collect());
    settings
}

/// Settings by path, without the values that are redacted.
fn shown(model: &Model, effective: Vec<EffectiveSetting>) -> Settings {
    let mut settings = Settings::new();
    for EffectiveSetting {
        path,
        row,
        value,
        origin,
    } in effective
    {
        let values = settings.entry(path).or_insert_with(|| Values {
            row,
            is_default: matches!(origin, Origin::Default),
            shown: Vec::new(),
            hidden: Vec::new(),
        });
        values.shown.push(without_folder(model, value));
    }
    settings
}

/// Adds values that are shown redacted, by the path of their setting.
fn hide(settings: &mut Settings, secrets: Vec<(String, Vec<u8>)>) {
    for (path, value) in secrets {
        if let Some(values) = settings.get_mut(&path) {
            values.hidden.push(value);
        }
    }
}

/// Values of header edits, by the path of their setting.
fn route_secrets(route: &Route) -> Vec<(String, Vec<u8>)> {
    let block = format!("routes.route[{:?}].policies", route.id);
    let policies = &route.policies;
    let edits = [
        ("request-headers.set", &policies.request_headers.set),
        ("request-headers.add", &policies.request_headers.add),
        ("response-headers.set", &policies.response_headers.set),
        ("response-headers.add", &policies.response_headers.add),
    ];
    let secrets = edits.into_iter().flat_map(|(name, fields)| {
        let path = format!("{block}.{name}");
        let values = fields
            .iter()
            .map(|field| field.value.value.as_bytes().to_vec());
        values.map(move |value| (path.clone(), value))
    });
    secrets.collect()
}

/// A value without the folder of the configuration, so that copies in two folders are equal.
pub(super) fn without_folder(model: &Model, value: Value) -> Value {
    match value {
        Value::String(text) => relative(model, Path::new(&text)).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value
        }
    }
}

fn owner(path: &str) -> SettingOwner {
    let named = |block: &str| {
        let rest = path.strip_prefix(block)?;
        let (name, _) = rest.split_once("].")?;
        serde_json::from_str::<String>(name).ok()
    };
    named("listeners.listener[")
        .map(SettingOwner::Listener)
        .or_else(|| named("routes.route[").map(SettingOwner::Route))
        .or_else(|| named("upstreams.upstream[").map(SettingOwner::Upstream))
        .or_else(|| named("agents.agent[").map(SettingOwner::Agent))
        .unwrap_or(SettingOwner::Process)
}

/// IDs of the routes affected by each owner of settings: route, upstream or agent.
fn routes_by_part(model: &Model) -> RoutesByPart {
    let mut routes = RoutesByPart::new();
    for route in &model.routes {
        let upstream = match &route.service {
            Service::Upstream(index) => model.upstream(index.value),
            Service::Builtin(_)
            | Service::Static(_)
            | Service::Redirect(_)
            | Service::Respond(_) => None,
        };
        let shadow = route.policies.shadow.as_ref();
        let shadow = shadow.and_then(|shadow| model.upstream(shadow.upstream.value));
        let keys = match route.policies.jwt.as_ref().map(|jwt| &jwt.keys) {
            Some(JwtKeySource::Remote(remote)) => model.upstream(remote.upstream.value),
            Some(JwtKeySource::File(_) | JwtKeySource::Secret(_)) | None => None,
        };
        let upstreams = upstream.into_iter().chain(shadow).chain(keys);
        let upstreams = upstreams.map(|one| SettingOwner::Upstream(one.name.clone()));
        let agents = route
            .agents
            .iter()
            .filter_map(|index| model.agent(index.value));
        let agents = agents.map(|agent| SettingOwner::Agent(agent.name.clone()));
        let own = SettingOwner::Route(route.id.clone());
        for owner in [own].into_iter().chain(upstreams).chain(agents) {
            routes.entry(owner).or_default().insert(route.id.clone());
        }
    }
    routes
}
