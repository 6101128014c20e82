//! `proxyd diff`: the difference between two configurations.

use super::plan_file::{EXIT_FAULTS, plan};
use super::replay;
use crate::cli::Diff;
use crate::terminal::{print_error, print_line};
use proxy_model::registry::{self, MachinePart};
use proxy_model::{FileId, Model};
use proxy_plan::diff::{Change, ChangedFile, named_files};
use proxy_plan::{PlanDiff, render};
use proxy_tls::ChainInfo;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum number of files of a folder; a folder with more is not compared.
const MAX_SERVED_FILES: usize = 10_000;

/// Prints the difference. Exit code 0: the same; 1: they differ; 2: one of them has errors or cannot be read.
pub(super) fn run(arguments: &Diff) -> io::Result<ExitCode> {
    let Diff {
        old,
        new,
        json,
        traffic,
    } = arguments;
    let (Some(old), Some(new)) = (plan(old), plan(new)) else {
        return Ok(ExitCode::from(EXIT_FAULTS));
    };
    let mut diff = PlanDiff::compare(&old, &new);
    let models = [&**old.model(), &**new.model()];
    let changed_pages = match changed_pages(models) {
        Ok(changed) => changed,
        Err(message) => {
            print_error(message);
            return Ok(ExitCode::from(EXIT_FAULTS));
        }
    };
    let (names, files): (Vec<ChangedFile>, Vec<String>) = changed_files(models)
        .into_iter()
        .chain(changed_pages)
        .unzip();
    diff.judge_files(models, &names, &|before, after| {
        renews(models, before, after)
    });
    let is_same = diff.is_same() && files.is_empty();
    let replayed = traffic
        .as_ref()
        .map(|file| replay::replayed(file, &old, &new));
    let traffic = match replayed {
        Some(None) => return Ok(ExitCode::from(EXIT_FAULTS)),
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
        print_line(document)?;
    } else {
        print_line(page(&diff, &files).trim_end())?;
        if let Some((report, skipped)) = &traffic {
            print_line(format_args!(
                "\n{}",
                replay::page(report, *skipped).trim_end()
            ))?;
        }
    }
    if is_same {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

fn page(diff: &PlanDiff, files: &[String]) -> String {
    let mut page = String::new();
    if !files.is_empty() {
        page.push_str("files with other contents\n");
        page.extend(files.iter().map(|file| format!("  {file}\n")));
        page.push('\n');
    }
    // For changed files, the message of an empty difference would be wrong.
    if files.is_empty() || !diff.is_same() {
        page.push_str(&render::diff_text(diff));
    }
    page
}

/// Finds files with changed contents that settings of both configurations name. Returns each file
/// with the names of its settings.
fn changed_files(models: [&Model; 2]) -> Vec<(ChangedFile, String)> {
    let [old, new] = models.map(named_files);
    let both = new.iter().filter(|(name, _)| old.contains_key(*name));
    let changed = both.filter(|(name, _)| {
        let [old, new] = models.map(|model| path(model, name));
        let contents = |path: PathBuf| proxy_setting_files::read(&path, u64::MAX).ok();
        old != new && contents(old) != contents(new)
    });
    let shown = changed.map(|(name, settings)| {
        let settings: Vec<&str> = settings.keys().map(String::as_str).collect();
        let file = ChangedFile {
            name: name.clone(),
            change: Change::Changed,
        };
        (file, format!("{name} ({})", settings.join(", ")))
    });
    shown.collect()
}

/// Finds files in folders of both configurations that were added, removed or changed, sorted by
/// name.
///
/// # Errors
/// The message for a folder that is unreadable or has too many files.
fn changed_pages(models: [&Model; 2]) -> Result<Vec<(ChangedFile, String)>, String> {
    let [old, new] = models.map(named_files);
    let folders = new.iter().filter(|(name, settings)| {
        old.contains_key(*name) && settings.values().any(|row| names_folder(row))
    });
    let mut changed = Vec::new();
    for (folder, _) in folders {
        let [old, new] = models.map(|model| path(model, folder));
        if old == new {
            continue;
        }
        for (file, change) in folder_changes(&old, &new)? {
            let name = Path::new(folder).join(file).to_string_lossy().into_owned();
            let file = ChangedFile {
                name: name.clone(),
                change,
            };
            changed.push((file, name));
        }
    }
    Ok(changed)
}

/// Returns true if the setting of the registry's `row` names a folder.
fn names_folder(row: &str) -> bool {
    let mut rows = registry::all().into_iter();
    rows.any(|other| other.path == row && other.machine == Some(MachinePart::Folder))
}

/// Compares two folders: the relative paths of files that differ, sorted.
fn folder_changes(old: &Path, new: &Path) -> Result<Vec<(PathBuf, Change)>, String> {
    let (before, after) = (files_below(old)?, files_below(new)?);
    let names = before.union(&after);
    let changes = names.filter_map(|name| {
        let change = match (before.contains(name), after.contains(name)) {
            (true, false) => Change::Removed,
            (false, _) => Change::Added,
            (true, true) => {
                let contents =
                    |root: &Path| proxy_setting_files::read(&root.join(name), u64::MAX).ok();
                (contents(old) != contents(new)).then_some(Change::Changed)?
            }
        };
        Some((name.clone(), change))
    });
    Ok(changes.collect())
}

/// Returns the relative paths of the regular files below `root`; none if it does not exist. Links
/// are not followed.
///
/// # Errors
/// The message for an unreadable folder, or for more than [`MAX_SERVED_FILES`] files.
fn files_below(root: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = |error: io::Error| {
            let folder = folder.display();
            format!(
                "cannot read the folder {folder}: {error}; run the command as a user that may read it"
            )
        };
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(unreadable(error)),
        };
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(name) = entry.path().strip_prefix(root)
            {
                found.insert(name.to_owned());
            }
            if MAX_SERVED_FILES < found.len() {
                return Err(format!(
                    "{}: more than {MAX_SERVED_FILES} files, too many to compare; compare this folder of both \
                     configurations with `diff -rq`",
                    root.display()
                ));
            }
        }
    }
    Ok(found)
}

/// Returns true if a certificate of the new configuration renews one of the old.
fn renews([old, new]: [&Model; 2], before: &str, after: &str) -> bool {
    let chain = |model: &Model, name: &str| {
        let contents = proxy_setting_files::read(&path(model, name), u64::MAX).ok()?;
        ChainInfo::parse(&contents)
    };
    let chains = chain(old, before).zip(chain(new, after));
    chains.is_some_and(|(old, new)| new.renews(&old))
}

/// Resolves the path of a file in a configuration, relative to the process's folder.
fn path(model: &Model, name: &str) -> PathBuf {
    let configuration = Path::new(model.sources.name(FileId::default()));
    let folder = configuration.parent().unwrap_or(Path::new(""));
    folder.join(name)
}
