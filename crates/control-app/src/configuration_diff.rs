//! The difference of two configurations: by the settings in force, and by files.

use control_bundle::Files;
use proxy_model::{Model, effective};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Changes of settings that are listed; the rest is counted.
const MAX_CHANGES: usize = 5_000;

/// How a configuration differs from an older one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Settings in force that differ, by path.
    pub settings: Vec<SettingChange>,
    /// Settings that differ and are not listed.
    pub omitted: usize,
    /// Files that differ, by name.
    pub files: Vec<FileChange>,
}

/// What became of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is another.
    Changed,
}

/// A setting that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// `routes.route["api"].priority`
    pub path: String,
    /// What became of it.
    pub change: Change,
    /// The values before; several for a setting that may stand more than once.
    pub before: Vec<Value>,
    /// The values after.
    pub after: Vec<Value>,
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its name in the bundle.
    pub name: String,
    /// What became of it.
    pub change: Change,
}

type Settings = BTreeMap<String, Vec<Value>>;

/// How `after` differs from `before`.
pub(crate) fn compare(before: (&Model, &Files), after: (&Model, &Files)) -> Comparison {
    let (old, new) = (settings(before.0), settings(after.0));
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changes = paths
        .into_iter()
        .filter_map(|path| setting_change(path, old.get(path), new.get(path)));
    let mut settings: Vec<SettingChange> = changes.collect();
    let omitted = settings.len().saturating_sub(MAX_CHANGES);
    settings.truncate(MAX_CHANGES);
    Comparison {
        settings,
        omitted,
        files: file_changes(before.1, after.1),
    }
}

fn settings(model: &Model) -> Settings {
    let mut settings = Settings::new();
    for setting in effective(model) {
        let values = settings.entry(setting.path).or_default();
        values.push(setting.value);
    }
    settings
}

fn setting_change(
    path: &str,
    before: Option<&Vec<Value>>,
    after: Option<&Vec<Value>>,
) -> Option<SettingChange> {
    let change = change(before, after)?;
    Some(SettingChange {
        path: path.to_owned(),
        change,
        before: before.cloned().unwrap_or_default(),
        after: after.cloned().unwrap_or_default(),
    })
}

fn file_changes(before: &Files, after: &Files) -> Vec<FileChange> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changes = names.into_iter().filter_map(|name| {
        let change = change(before.get(name), after.get(name))?;
        let name = name.clone();
        Some(FileChange { name, change })
    });
    changes.collect()
}

fn change<T: PartialEq>(before: Option<&T>, after: Option<&T>) -> Option<Change> {
    match (before, after) {
        (None, Some(_)) => Some(Change::Added),
        (Some(_), None) => Some(Change::Removed),
        (before, after) => (before != after).then_some(Change::Changed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::check;
    use control_bundle::ENTRY_FILE;
    use serde_json::json;

    #[test]
    fn settings_are_compared_as_they_are_in_force() {
        let listener = |address: &str, more: &str| {
            format!("listeners {{ listener \"a\" {{ address {address:?}; {more} }} }}")
        };
        let before = listener("127.0.0.1:80", "");
        // Written out, but the same as the default; and another order of lines.
        let same = listener("127.0.0.1:80", "protocol \"http\"");
        let after = listener("127.0.0.1:81", "");
        let difference = |before: &str, after: &str| {
            let files = [before, after]
                .map(|text| Files::from([(ENTRY_FILE.to_owned(), text.as_bytes().to_vec())]));
            let models = files.each_ref().map(|files| check(files).model.unwrap());
            let [old, new] = &files;
            let [old_model, new_model] = &models;
            compare((old_model, old), (new_model, new))
        };
        assert_eq!(difference(&before, &before), Comparison::default());
        let same = difference(&before, &same);
        assert_eq!(same.settings, []);
        assert_eq!(same.files.len(), 1);
        let changed = difference(&before, &after).settings;
        let expected = SettingChange {
            path: "listeners.listener[\"a\"].address".to_owned(),
            change: Change::Changed,
            before: vec![json!("127.0.0.1:80")],
            after: vec![json!("127.0.0.1:81")],
        };
        assert_eq!(changed, [expected]);
        let gone = difference(&before, "").settings;
        assert!(gone.iter().any(|setting| setting.change == Change::Removed));
    }
}
