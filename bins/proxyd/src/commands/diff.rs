//! `proxyd diff`: the difference between two configurations.

use super::plan_file::{EXIT_FAULTS, plan};
use super::replay;
use crate::cli::Diff;
use crate::terminal::say;
use proxy_model::{FileId, Model};
use proxy_plan::diff::named_files;
use proxy_plan::{PlanDiff, render};
use proxy_tls::ChainInfo;
use std::path::{Path, PathBuf};
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
    let mut diff = PlanDiff::compare(&old, &new);
    let models = [&**old.model(), &**new.model()];
    let (names, files): (Vec<String>, Vec<String>) = changed_files(models).into_iter().unzip();
    diff.judge_files(models, &names, &|before, after| {
        renews(models, before, after)
    });
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

/// Files that settings of both configurations name, with other contents: the name of each, and its settings.
fn changed_files(models: [&Model; 2]) -> Vec<(String, String)> {
    let [old, new] = models.map(named_files);
    let both = new.iter().filter(|(name, _)| old.contains_key(*name));
    let changed = both.filter(|(name, _)| {
        let [old, new] = models.map(|model| path(model, name));
        let contents = |path: PathBuf| proxy_setting_files::read(&path, u64::MAX).ok();
        old != new && contents(old) != contents(new)
    });
    let shown = changed.map(|(name, settings)| {
        let settings: Vec<&str> = settings.keys().map(String::as_str).collect();
        (name.clone(), format!("{name} ({})", settings.join(", ")))
    });
    shown.collect()
}

/// Whether the certificate in a file of the new configuration renews one of the old configuration.
fn renews([old, new]: [&Model; 2], before: &str, after: &str) -> bool {
    let chain = |model: &Model, name: &str| {
        let contents = proxy_setting_files::read(&path(model, name), u64::MAX).ok()?;
        ChainInfo::parse(&contents)
    };
    let chains = chain(old, before).zip(chain(new, after));
    chains.is_some_and(|(old, new)| new.renews(&old))
}

/// The path of a file that settings name, from this process's folder.
fn path(model: &Model, name: &str) -> PathBuf {
    let configuration = Path::new(model.sources.name(FileId::default()));
    let folder = configuration.parent().unwrap_or(Path::new(""));
    folder.join(name)
}
