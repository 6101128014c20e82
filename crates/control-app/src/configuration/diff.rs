//! Comparison of two configurations: routing of requests, effective settings, and files.

use control_bundle::Files;
use proxy_model::{Model, effective};
use proxy_plan::diff::{Change, ChangedFile, PartChange, Region, Risk, RiskClass};
use proxy_plan::{Plan, PlanDiff, TargetRegistry, diff};
use proxy_tls::ChainInfo;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of listed settings, and of listed request regions; further ones are only counted.
const MAX_CHANGES: usize = 5_000;

/// Text that stands for secrets in the values of settings.
const REDACTED: &str = "(redacted)";

/// Difference between a configuration and an older one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Potentially harmful changes, most severe class first. Empty exactly if the policy `risky`
    /// requires no approval.
    pub risks: Vec<RiskView>,
    /// Regions of requests that the configurations route differently.
    pub requests: Vec<RequestsMoved>,
    /// Number of regions that are not listed.
    pub omitted_requests: usize,
    /// Ids of routes that no request reaches any more.
    pub unreachable_routes: Vec<String>,
    /// Added and removed parts, such as targets.
    pub parts: Vec<PartMoved>,
    /// Connections that a reload ends, in words.
    pub drained: Vec<String>,
    /// Limits of the comparison, in words: regexes compared by a sample, and bounds that were reached.
    pub limits: Vec<String>,
    /// Changed effective settings, by path.
    pub settings: Vec<SettingChange>,
    /// Number of changed settings that are not listed.
    pub omitted: usize,
    /// Changed files, by name.
    pub files: Vec<FileChange>,
}

/// A change that may harm clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RiskView {
    /// Class of the risk, from a closed list.
    pub class: &'static str,
    /// Affected part of the configuration.
    pub subject: String,
    /// Description of the change: a sentence without its full stop.
    pub change: String,
}

/// A region of requests with different routes or services before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestsMoved {
    /// Names of the listeners.
    pub listeners: Vec<String>,
    /// Hosts and host patterns; a single `*` for every host.
    pub hosts: Vec<String>,
    /// Paths and path patterns; a single `*` for every path.
    pub paths: Vec<String>,
    /// Conditions on method, headers and query; all must hold.
    pub conditions: Vec<String>,
    /// Route and service before.
    pub before: String,
    /// Route and service after.
    pub after: String,
    /// Method and URL of a request in the region.
    pub example: String,
}

/// An added or removed part of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartMoved {
    /// Description of the part, such as `target 10.0.0.1:80 of upstream u`.
    pub part: String,
    /// Whether the part was added or removed.
    pub change: Change,
}

/// A changed effective setting.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// Path of the setting, such as `routes.route["api"].priority`.
    pub path: String,
    /// Whether the setting was added, removed or changed.
    pub change: Change,
    /// Values before; several for a repeatable setting.
    pub before: Vec<Value>,
    /// Values after; empty if the setting was removed.
    pub after: Vec<Value>,
    /// Ids of the routes with affected requests; empty if the setting affects all routes or none.
    pub routes: Vec<String>,
}

/// A file with other contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Name of the file in the bundle.
    pub name: String,
    /// Whether the file was added, removed or changed.
    pub change: Change,
}

/// Files of a configuration with the model that was loaded from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedFiles<'a> {
    pub(crate) model: &'a Arc<Model>,
    pub(crate) files: &'a Files,
}

/// Comparison with a bundle that nodes are ordered to run, in the form that a rollout's start
/// needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseComparison {
    /// Set if the comparison found at least one risk.
    pub(crate) is_risky: bool,
    /// Renamed routes: a route of the older bundle, and one that answers its requests under another
    /// name.
    pub(crate) successors: BTreeSet<(String, String)>,
}

pub(crate) fn compare(before: CheckedFiles<'_>, after: CheckedFiles<'_>) -> Comparison {
    compare_with_successors(before, after).0
}

/// Finds the risk and the renamed routes of a change with a single comparison.
pub(crate) fn compare_base(before: CheckedFiles<'_>, after: CheckedFiles<'_>) -> BaseComparison {
    let (compared, successors) = compare_with_successors(before, after);
    BaseComparison {
        is_risky: !compared.risks.is_empty(),
        successors,
    }
}

/// The difference, and the pairs of renamed routes.
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

/// Returns true if the change may harm clients: the same comparison as in `proxyd diff` names a
/// risk.
pub(crate) fn is_risky(before: CheckedFiles<'_>, after: CheckedFiles<'_>) -> bool {
    !compare(before, after).risks.is_empty()
}

/// Plan of a configuration, for comparisons and explanations only.
pub(super) fn plan(model: &Arc<Model>) -> Plan {
    Plan::compile(1, Arc::clone(model), &mut TargetRegistry::default().begin())
}

/// Changed files except configuration sources, which are compared as plans.
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

/// A risk for secrets that may have changed: their redacted values look equal.
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
        ..
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
