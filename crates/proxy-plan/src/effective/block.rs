//! One block's settings, collected.

use super::SettingValue;
use super::shown::Shown;
use proxy_model::registry::{Spec, Status};
use proxy_model::{Origin, Setting, Sources};
use serde_json::{Value, json};
use std::sync::Arc;

/// A setting that has a value: what it is, and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// The block it stands in, as in the reference, with its name in brackets if it has one:
    /// `limits`, `routes.route[shop]`.
    pub block: Arc<str>,
    /// Its path in the reference: `routes.route.policies.timeouts.read-secs`.
    pub row: &'static str,
    /// The value in force.
    pub value: SettingValue,
    /// `file:line`, or `default`.
    pub origin: String,
}

impl EffectiveSetting {
    /// Its name within its block: `policies.timeouts.read-secs`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let path = self.block.split('[').next().unwrap_or_default();
        let name = self.row.strip_prefix(path).unwrap_or(self.row);
        name.trim_start_matches('.')
    }

    /// Its path with the names of its blocks: `routes.route[shop].policies.timeouts.read-secs`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}.{}", self.block, self.name())
    }

    /// The value for programs.
    #[must_use]
    pub fn json_value(&self) -> Value {
        self.value.to_json(self.row)
    }

    /// `{path, value, origin}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "path": self.path(), "value": self.json_value(), "origin": self.origin })
    }
}

/// Collects the settings of one block.
#[derive(Debug)]
pub(super) struct Block<'m> {
    sources: &'m Sources,
    path: Arc<str>,
    settings: Vec<EffectiveSetting>,
}

impl<'m> Block<'m> {
    /// The one block at `path`.
    pub(super) fn new(sources: &'m Sources, path: &'static str) -> Self {
        Self {
            sources,
            path: path.into(),
            settings: Vec::new(),
        }
    }

    /// The block at `path` that is called `name`.
    pub(super) fn named(sources: &'m Sources, path: &'static str, name: &str) -> Self {
        Self {
            path: format!("{path}[{name}]").into(),
            ..Self::new(sources, path)
        }
    }

    /// Adds what `row` of the registry describes, once for each value; nothing if the row has no
    /// effect yet.
    pub(super) fn put<'s, K, D, T>(
        &mut self,
        row: &Spec<K, D>,
        settings: impl IntoIterator<Item = &'s Setting<T>>,
    ) where
        T: Shown + 's,
    {
        for setting in settings {
            self.put_value(row, setting.value.shown(), setting.origin);
        }
    }

    /// As [`Block::put`], for a value whose type does not say how it is shown.
    pub(super) fn put_value<K, D>(
        &mut self,
        row: &Spec<K, D>,
        value: SettingValue,
        origin: Origin,
    ) {
        if matches!(row.status, Status::Enforced { .. }) {
            self.settings.push(EffectiveSetting {
                block: Arc::clone(&self.path),
                row: row.path,
                value,
                origin: self.sources.origin(origin),
            });
        }
    }

    pub(super) fn into_settings(self) -> Vec<EffectiveSetting> {
        self.settings
    }
}
