//! Settings in force that differ.

use super::parts::Change;
use super::relative_path::relative;
use proxy_model::{EffectiveSetting, HeaderField, JwtKeySource, Model, Service, effective};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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
    /// The values after.
    pub after: Vec<Value>,
    /// Ids of the routes with requests that it applies to; empty where it applies to all routes or to
    /// none.
    pub routes: Vec<String>,
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
    /// The whole process.
    Process,
}

#[derive(Debug)]
struct Values {
    row: &'static str,
    shown: Vec<Value>,
    /// Values of header edits as written, to detect a changed secret although both are displayed
    /// equally.
    hidden: Vec<Vec<u8>>,
}

type Settings = BTreeMap<String, Values>;

/// The settings of `before` and `after` that differ, by path.
pub(super) fn setting_changes(before: &Model, after: &Model) -> Vec<SettingChange> {
    let (old, new) = (settings(before), settings(after));
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let routes = (routes_by_part(before), routes_by_part(after));
    let changes = paths.into_iter().filter_map(|path| {
        let (old, new) = (old.get(path), new.get(path));
        let change = match (old, new) {
            (None, Some(_)) => Change::Added,
            (Some(_), None) => Change::Removed,
            (Some(old), Some(new)) if old.shown != new.shown || old.hidden != new.hidden => {
                Change::Changed
            }
            (Some(_) | None, _) => return None,
        };
        let owner = owner(path);
        let mut names = routes.0.get(&owner).cloned().unwrap_or_default();
        names.extend(routes.1.get(&owner).cloned().unwrap_or_default());
        let shown = |values: Option<&Values>| values.map_or_else(Vec::new, |one| one.shown.clone());
        Some(SettingChange {
            path: path.clone(),
            row: new.or(old)?.row,
            owner,
            change,
            before: shown(old),
            after: shown(new),
            routes: names.into_iter().collect(),
        })
    });
    changes.collect()
}

fn settings(model: &Model) -> Settings {
    let mut settings = Settings::new();
    for EffectiveSetting {
        path,
        row,
        value,
        origin: _,
    } in effective(model)
    {
        let values = settings.entry(path).or_insert_with(|| Values {
            row,
            shown: Vec::new(),
            hidden: Vec::new(),
        });
        values.shown.push(without_folder(model, value));
    }
    for (path, value) in secrets(model) {
        if let Some(values) = settings.get_mut(&path) {
            values.hidden.push(value);
        }
    }
    settings
}

/// Values that are shown redacted, by the path of their setting.
fn secrets(model: &Model) -> Vec<(String, Vec<u8>)> {
    let mut secrets = Vec::new();
    for route in &model.routes {
        let block = format!("routes.route[{:?}].policies", route.id);
        let policies = &route.policies;
        let edits = [
            ("request-headers", &policies.request_headers),
            ("response-headers", &policies.response_headers),
        ];
        for (name, edits) in edits {
            let fields = |word: &str, fields: &[proxy_model::Setting<HeaderField>]| {
                let path = format!("{block}.{name}.{word}");
                let values = fields
                    .iter()
                    .map(|field| field.value.value.as_bytes().to_vec());
                values
                    .map(|value| (path.clone(), value))
                    .collect::<Vec<_>>()
            };
            secrets.extend(fields("set", &edits.set));
            secrets.extend(fields("add", &edits.add));
        }
    }
    for upstream in &model.upstreams {
        let path = format!("upstreams.upstream[{:?}].sticky.secret", upstream.name);
        let secret = upstream.sticky.secret.iter();
        secrets.extend(secret.map(|secret| (path.clone(), secret.value.0.clone().into_bytes())));
    }
    secrets
}

/// A value without the folder of the configuration, so that copies in two folders are equal.
fn without_folder(model: &Model, value: Value) -> Value {
    match value {
        Value::String(text) => relative(model, Path::new(&text)).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value
        }
    }
}

/// The owner of the setting at `path`.
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
fn routes_by_part(model: &Model) -> BTreeMap<SettingOwner, BTreeSet<String>> {
    let mut routes: BTreeMap<SettingOwner, BTreeSet<String>> = BTreeMap::new();
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
