//! `proxyd diff`: the difference between two configurations.

use super::plan_file::{EXIT_FAULTS, plan};
use super::replay;
use crate::cli::Diff;
use crate::terminal::say;
use proxy_model::registry::{self, MachinePart};
use proxy_model::{Model, effective};
use proxy_plan::{PlanDiff, render};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::ExitCode;

/// Prints the difference. Exit code 0: the same; 1: they differ; 2: one of them has errors.
pub(super) fn run(arguments: &Diff) -> ExitCode {
    let Diff {
        old,
        new,
        json,
        traffic,
    } = arguments;
    let (Some(old), Some(new)) = (plan(old), plan(new)) else {
        return ExitCode::from(EXIT_FAULTS);
    };
    let diff = PlanDiff::compare(&old, &new);
    let files = changed_files(old.model(), new.model());
    let is_same = diff.is_same() && files.is_empty();
    let replayed = traffic
        .as_ref()
        .map(|file| replay::replayed(file, &old, &new));
    let traffic = match replayed {
        Some(None) => return ExitCode::from(EXIT_FAULTS),
        Some(traffic) => traffic,
        None => None,
    };
    if *json {
        let mut document = render::diff_json(&diff);
        if let Some(object) = document.as_object_mut() {
            object.insert("same".to_owned(), is_same.into());
            object.insert("files".to_owned(), files.into());
            if let Some((report, skipped)) = &traffic {
                object.insert("traffic".to_owned(), replay::document(report, *skipped));
            }
        }
        say(document);
    } else {
        say(page(&diff, &files).trim_end());
        if let Some((report, skipped)) = &traffic {
            say(format_args!(
                "\n{}",
                replay::page(report, *skipped).trim_end()
            ));
        }
    }
    if is_same {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn page(diff: &PlanDiff, files: &[String]) -> String {
    let mut page = String::new();
    if !files.is_empty() {
        page.push_str("files with other contents\n");
        page.extend(files.iter().map(|file| format!("  {file}\n")));
        page.push('\n');
    }
    // The message of an empty difference would be wrong for changed files.
    if files.is_empty() || !diff.is_same() {
        page.push_str(&render::diff_text(diff));
    }
    page
}

/// Settings that name a file in both configurations, with other contents.
fn changed_files(old: &Model, new: &Model) -> Vec<String> {
    let (old, new) = (files(old), files(new));
    let pairs = old
        .iter()
        .filter_map(|(setting, old)| Some((setting, old, new.get(setting)?)));
    let changed = pairs.filter(|(_, old, new)| {
        let contents = |files: &[String]| -> Vec<_> {
            files
                .iter()
                .map(|file| proxy_setting_files::read(Path::new(file), u64::MAX).ok())
                .collect()
        };
        old != new && contents(old) != contents(new)
    });
    let shown = changed.map(|(setting, _, new)| format!("{setting} ({})", new.join(", ")));
    shown.collect()
}

/// The files that settings name and the process reads, by the setting's path.
fn files(model: &Model) -> BTreeMap<String, Vec<String>> {
    let rows = registry::all().into_iter();
    let is_read = |path: &str| !path.starts_with("observability.");
    let rows = rows.filter(|row| row.machine == Some(MachinePart::File) && is_read(row.path));
    let rows: HashSet<&str> = rows.map(|row| row.path).collect();
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for setting in effective(model) {
        if rows.contains(setting.row)
            && let Some(file) = setting.value.as_str()
        {
            files.entry(setting.path).or_default().push(file.to_owned());
        }
    }
    files
}
