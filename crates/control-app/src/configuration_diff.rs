//! The difference of two configurations: by the settings in force, and by files.

use control_bundle::Files;
use proxy_model::{Model, Upstream, effective};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Changes of settings that are listed; the rest is counted.
const MAX_CHANGES: usize = 5_000;

/// Part of the value of a setting that holds a secret.
const REDACTED: &str = "(redacted)";

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

/// Whether a change may hurt clients. Only what cannot is not risky: comments, tests, values that were defaults, and
/// new upstreams, which no route of before names.
pub(crate) fn is_risky(before: (&Model, &Files), after: (&Model, &Files)) -> bool {
    let Comparison {
        settings,
        omitted,
        files,
    } = compare(before, after);
    let old: BTreeSet<String> = before.0.upstreams.iter().map(block).collect();
    let is_new = |change: &SettingChange| {
        let new = after.0.upstreams.iter().map(block);
        let mut new = new.filter(|block| !old.contains(block));
        change.change == Change::Added && new.any(|block| change.path.starts_with(&block))
    };
    let hurts = settings.iter().any(|change| !is_new(change));
    let order = |model: &Model| -> Vec<String> {
        let routes = model.routes.iter();
        routes.map(|route| route.id.clone()).collect()
    };
    // Any other file may be served, or be a certificate, whatever its name ends in.
    let is_configuration = |file: &FileChange| {
        let models = [before.0, after.0].into_iter();
        let mut sources = models.flat_map(|model| model.sources.files());
        sources.any(|source| *source.name == *file.name)
    };
    // Another secret looks the same.
    let hides = |model: &Model| {
        let mut settings = effective(model).into_iter();
        settings.any(|setting| setting.value.to_string().contains(REDACTED))
    };
    let is_hidden = !files.is_empty() && (hides(before.0) || hides(after.0));
    hurts
        || is_hidden
        || 0 < omitted
        || order(before.0) != order(after.0)
        || files.iter().any(|file| !is_configuration(file))
}

/// The beginning of the paths of an upstream's settings.
fn block(upstream: &Upstream) -> String {
    format!("upstreams.upstream[{:?}].", upstream.name)
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
    fn only_what_cannot_hurt_is_not_risky() {
        let listener = "listeners { listener \"a\" { address \"127.0.0.1:80\" } }\n";
        let upstream = |name: &str, target: &str| {
            format!("upstreams {{ upstream {name:?} {{ target {target:?} }} }}\n")
        };
        let route = |name: &str, path: &str| {
            format!(
                "routes {{ route {name:?} {{ matches {{ path-prefix {path:?} }}; upstream \"u\" }} }}\n"
            )
        };
        let (u, r) = (upstream("u", "10.0.0.1:80"), route("r", "/"));
        let before = [listener, &u, &r].concat();
        let cases = [
            (false, before.clone()),
            (false, format!("// a comment\n{before}")),
            (
                false,
                [&before, upstream("v", "10.0.0.9:80").as_str()].concat(),
            ),
            (true, [listener, &upstream("u", "10.0.0.2:80"), &r].concat()),
            (true, [&before, route("s", "/s").as_str()].concat()),
            (true, [listener, &u, &route("r", "/r")].concat()),
            (true, before.replace(":80\" } }", ":81\" } }")),
            (true, [&before, "limits { max-header-count 5 }"].concat()),
        ];
        let files = |text: &str| Files::from([(ENTRY_FILE.to_owned(), text.as_bytes().to_vec())]);
        let old = files(&before);
        let old_model = check(&old).model.unwrap();
        for (expected, text) in cases {
            let new = files(&text);
            let model = check(&new).model.unwrap_or_else(|| panic!("{text}"));
            let risky = is_risky((&old_model, &old), (&model, &new));
            assert_eq!(risky, expected, "{text}");
        }
        // Another file than the configuration may be served.
        for name in ["site/index.html", "site/index.kdl"] {
            let mut asset = old.clone();
            asset.insert(name.to_owned(), b"new".to_vec());
            assert!(is_risky((&old_model, &old), (&old_model, &asset)), "{name}");
        }
    }

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
