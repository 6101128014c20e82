//! The difference of two configurations: by the requests that they answer, the active settings, and files.

use control_bundle::Files;
use proxy_model::{Model, effective};
use proxy_plan::diff::{Change, ChangedFile, PartChange, Region, Risk, RiskClass};
use proxy_plan::{Plan, PlanDiff, TargetRegistry, diff};
use proxy_tls::ChainInfo;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Changes of settings, and regions of requests, that are listed; the rest is counted.
const MAX_CHANGES: usize = 5_000;

/// Part of the value of a setting that holds a secret.
const REDACTED: &str = "(redacted)";

/// Difference between a configuration and an older one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Potentially harmful changes, most severe class first. Empty exactly if the policy `risky`
    /// requires no approval.
    pub risks: Vec<RiskView>,
    /// Requests that are answered differently.
    pub requests: Vec<RequestsMoved>,
    /// Regions of requests that are not listed.
    pub omitted_requests: usize,
    /// Ids of routes that no longer take requests.
    pub unreachable_routes: Vec<String>,
    /// Parts that were added or removed.
    pub parts: Vec<PartMoved>,
    /// Connections that a reload ends, in words.
    pub drained: Vec<String>,
    /// Limits of the comparison, in words: regexes compared by a sample, and bounds that were reached.
    pub limits: Vec<String>,
    /// Effective settings that differ, by path.
    pub settings: Vec<SettingChange>,
    /// Settings that differ and are not listed.
    pub omitted: usize,
    /// Files that differ, by name.
    pub files: Vec<FileChange>,
}

/// A change that may harm clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RiskView {
    /// The class, one of a closed list.
    pub class: &'static str,
    /// The part of the configuration.
    pub subject: String,
    /// The change, as a sentence without its full stop.
    pub change: String,
}

/// Requests that one route or service answers before, and another one after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestsMoved {
    /// Names of the listeners.
    pub listeners: Vec<String>,
    /// Hosts, as names and patterns; one `*` for every host.
    pub hosts: Vec<String>,
    /// Paths, as texts and patterns; one `*` for every path.
    pub paths: Vec<String>,
    /// Conditions on method, headers and query, all of which hold.
    pub conditions: Vec<String>,
    /// The answer before: route and service.
    pub before: String,
    /// Answer of the newer configuration.
    pub after: String,
    /// The method and the URL of one of the requests.
    pub example: String,
}

/// A part that was added or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartMoved {
    /// `target 10.0.0.1:80 of upstream u`
    pub part: String,
    /// The kind of change.
    pub change: Change,
}

/// A setting that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// `routes.route["api"].priority`
    pub path: String,
    /// The kind of change.
    pub change: Change,
    /// The values before; several for a repeatable setting.
    pub before: Vec<Value>,
    /// Values in the newer configuration; empty if it does not have the setting.
    pub after: Vec<Value>,
    /// IDs of the routes with affected requests; empty if it applies to all or to none.
    pub routes: Vec<String>,
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its name in the bundle.
    pub name: String,
    /// The kind of change.
    pub change: Change,
}

/// Files of a configuration, and the model that the checks read from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedFiles<'a> {
    pub(crate) model: &'a Arc<Model>,
    pub(crate) files: &'a Files,
}

/// Difference from a bundle that nodes are ordered to run, as the start of a rollout needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseComparison {
    /// True if the comparison names a risk.
    pub(crate) is_risky: bool,
    /// Routes of the base, each with those that answer its requests by another name alone.
    pub(crate) successors: BTreeSet<(String, String)>,
}

/// Difference between `before` and `after`.
pub(crate) fn compare(before: CheckedFiles<'_>, after: CheckedFiles<'_>) -> Comparison {
    compare_with_successors(before, after).0
}

/// The risk and the renamed routes of a change, by one comparison.
pub(crate) fn compare_base(before: CheckedFiles<'_>, after: CheckedFiles<'_>) -> BaseComparison {
    let (compared, successors) = compare_with_successors(before, after);
    BaseComparison {
        is_risky: !compared.risks.is_empty(),
        successors,
    }
}

/// The difference, and the routes with successors of other names.
fn compare_with_successors(
    before: CheckedFiles<'_>,
    after: CheckedFiles<'_>,
) -> (Comparison, BTreeSet<(String, String)>) {
    let models = [before.model, after.model].map(|model| &**model);
    let mut found = PlanDiff::compare(&plan(before.model), &plan(after.model));
    let files = file_changes(before.files, after.files);
    let renews = |old: &str, new: &str| {
        let chain = |files: &Files, name: &str| ChainInfo::parse(files.get(name)?);
        let (old, new) = (chain(before.files, old), chain(after.files, new));
        old.zip(new).is_some_and(|(old, new)| new.renews(&old))
    };
    found.judge_files(models, &other_files(&files, models), &renews);
    let PlanDiff {
        regions,
        successors,
        unreachable,
        parts,
        settings,
        drained,
        risks,
        sampled_regexes,
        limits,
    } = found;
    let risks = risks
        .into_iter()
        .map(risk)
        .chain(hidden_secrets(&files, models))
        .collect();
    let samples = sampled_regexes.iter();
    let samples = samples.map(|regex| format!("path-regex {regex:?}: a sample of its paths"));
    let bounds = limits.iter().map(ToString::to_string);
    let drained = drained.iter().map(|one| one.connections.to_string());
    let compared = Comparison {
        risks,
        omitted_requests: regions.len().saturating_sub(MAX_CHANGES),
        requests: regions.into_iter().take(MAX_CHANGES).map(moved).collect(),
        unreachable_routes: unreachable,
        parts: parts.iter().map(part).collect(),
        drained: drained.collect(),
        limits: samples.chain(bounds).collect(),
        omitted: settings.len().saturating_sub(MAX_CHANGES),
        settings: settings
            .into_iter()
            .take(MAX_CHANGES)
            .map(setting)
            .collect(),
        files,
    };
    (compared, successors)
}

/// Returns true if a change may harm clients: whether the comparison, which `proxyd diff` shows
/// too, names a risk.
pub(crate) fn is_risky(before: CheckedFiles<'_>, after: CheckedFiles<'_>) -> bool {
    !compare(before, after).risks.is_empty()
}

/// The plan of a configuration without routes.
pub(super) fn plan(model: &Arc<Model>) -> Plan {
    Plan::compile(1, Arc::clone(model), &mut TargetRegistry::default().begin())
}

/// Changed files apart from sources of the configuration, which are compared as plans.
fn other_files(files: &[FileChange], models: [&Model; 2]) -> Vec<ChangedFile> {
    let sources = models.into_iter().flat_map(|model| model.sources.files());
    let sources: BTreeSet<&str> = sources.map(|source| &*source.name).collect();
    let others = files
        .iter()
        .filter(|file| !sources.contains(file.name.as_str()));
    let others = others.map(|FileChange { name, change }| ChangedFile {
        name: name.clone(),
        change: *change,
    });
    others.collect()
}

/// The risk of a changed secret, which is displayed equally.
fn hidden_secrets(files: &[FileChange], models: [&Model; 2]) -> Option<RiskView> {
    let hides = |model: &Model| {
        let mut settings = effective(model).into_iter();
        settings.any(|setting| setting.value.to_string().contains(REDACTED))
    };
    let is_hidden = !files.is_empty() && models.into_iter().any(hides);
    is_hidden.then(|| RiskView {
        class: RiskClass::Unlisted.name(),
        subject: "secrets".to_owned(),
        change: "may differ: the text of a configuration with secrets does".to_owned(),
    })
}

fn risk(found: Risk) -> RiskView {
    let Risk {
        class,
        subject,
        change,
    } = found;
    RiskView {
        class: class.name(),
        subject,
        change,
    }
}

fn moved(region: Region) -> RequestsMoved {
    let example = format!("{} {}", region.example.method, region.example_url());
    let Region {
        listeners,
        hosts,
        is_every_host,
        paths,
        is_every_path,
        fields,
        before,
        after,
        example: _,
    } = region;
    let every = |is_every: bool, labels: Vec<String>| {
        if is_every {
            vec!["*".to_owned()]
        } else {
            labels
        }
    };
    RequestsMoved {
        listeners,
        hosts: every(
            is_every_host,
            hosts.into_iter().map(|one| one.label).collect(),
        ),
        paths: every(
            is_every_path,
            paths.into_iter().map(|one| one.label).collect(),
        ),
        conditions: fields.iter().map(ToString::to_string).collect(),
        before: before.to_string(),
        after: after.to_string(),
        example,
    }
}

fn part(found: &PartChange) -> PartMoved {
    let PartChange { part, change } = found;
    PartMoved {
        part: part.to_string(),
        change: *change,
    }
}

fn setting(change: diff::SettingChange) -> SettingChange {
    let diff::SettingChange {
        path,
        row: _,
        owner: _,
        change,
        before,
        after,
        routes,
    } = change;
    SettingChange {
        path,
        change,
        before,
        after,
        routes,
    }
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
    fn only_harmless_changes_are_not_risky() {
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
        let old_files = files(&before);
        let old_model = check(&old_files).model.unwrap();
        let old = CheckedFiles {
            model: &old_model,
            files: &old_files,
        };
        for (expected, text) in cases {
            let new = files(&text);
            let model = check(&new).model.unwrap_or_else(|| panic!("{text}"));
            let new = CheckedFiles {
                model: &model,
                files: &new,
            };
            assert_eq!(is_risky(old, new), expected, "{text}");
        }
        // Another file than the configuration may be served.
        for name in ["site/index.html", "site/index.kdl"] {
            let mut asset = old_files.clone();
            asset.insert(name.to_owned(), b"new".to_vec());
            let new = CheckedFiles {
                files: &asset,
                ..old
            };
            assert!(is_risky(old, new), "{name}");
        }
    }

    #[test]
    fn effective_settings_are_compared() {
        let listener = |address: &str, more: &str| {
            format!("listeners {{ listener \"a\" {{ address {address:?}; {more} }} }}")
        };
        let before = listener("127.0.0.1:80", "");
        // Explicit, but equal to the default; and another order of lines.
        let same = listener("127.0.0.1:80", "protocol \"http\"");
        let after = listener("127.0.0.1:81", "");
        let difference = |before: &str, after: &str| {
            let files = [before, after]
                .map(|text| Files::from([(ENTRY_FILE.to_owned(), text.as_bytes().to_vec())]));
            let models = files.each_ref().map(|files| check(files).model.unwrap());
            let [before, after] = [0, 1].map(|number: usize| CheckedFiles {
                model: &models[number],
                files: &files[number],
            });
            compare(before, after)
        };
        assert_eq!(difference(&before, &before), Comparison::default());
        let same = difference(&before, &same);
        assert_eq!(same.settings, []);
        assert_eq!(same.files.len(), 1);
        let risky = difference(&before, &after);
        let changed = risky.settings;
        let expected = SettingChange {
            path: "listeners.listener[\"a\"].address".to_owned(),
            change: Change::Changed,
            before: vec![json!("127.0.0.1:80")],
            after: vec![json!("127.0.0.1:81")],
            routes: Vec::new(),
        };
        assert_eq!(changed, [expected]);
        assert_eq!(risky.risks[0].class, "listener-removed");
        let gone = difference(&before, "").settings;
        assert!(gone.iter().any(|setting| setting.change == Change::Removed));
    }
}
