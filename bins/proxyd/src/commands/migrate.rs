//! `proxyd config migrate`: converts configurations to the current language.

use super::file_replacement::replace;
use crate::cli::ForeignServer;
use crate::terminal::{print_error, print_line, print_report};
use proxy_migrate::{Language, Source};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXIT_FAULTS: u8 = 1;

/// Converts a configuration of an older version of this program.
pub(super) fn migrate_proxyd(file: &Path, output: &Path) -> io::Result<ExitCode> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            print_error(format_args!("cannot read {}: {error}", file.display()));
            return Ok(ExitCode::from(EXIT_FAULTS));
        }
    };
    let name = file.display().to_string();
    let migrated = match proxy_config::migrate(&text, &name) {
        Ok(migrated) => migrated,
        Err(report) => {
            print_report(&report);
            return Ok(ExitCode::from(EXIT_FAULTS));
        }
    };
    if let Err(error) = write(output, &migrated.text) {
        print_error(format_args!("cannot write {}: {error}", output.display()));
        return Ok(ExitCode::from(EXIT_FAULTS));
    }
    for note in &migrated.notes {
        print_line(note)?;
    }
    // Notes about the order of routes depend on included files, so an invalid configuration has
    // none.
    if let Ok(loaded) = proxy_config::load(file) {
        for note in proxy_config::route_order_notes(&loaded) {
            print_line(note)?;
        }
    }
    print_line(format_args!("{} written", output.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Converts the configuration of another server.
pub(super) fn migrate_foreign(
    from: ForeignServer,
    file: &Path,
    output: &Path,
) -> io::Result<ExitCode> {
    let language = match from {
        ForeignServer::Nginx => Language::Nginx,
        ForeignServer::Caddy => Language::Caddy,
        ForeignServer::Haproxy => Language::Haproxy,
        ForeignServer::Traefik => Language::Traefik,
    };
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            print_error(format_args!("cannot read {name}: {error}"));
            return Ok(ExitCode::from(EXIT_FAULTS));
        }
    };
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    let included = |pattern: &str| included(&folder, pattern);
    let migrated = match proxy_migrate::migrate(language, &Source { name, text }, &included) {
        Ok(migrated) => migrated,
        Err(error) => {
            print_error(format_args!("{error}"));
            return Ok(ExitCode::from(EXIT_FAULTS));
        }
    };
    if let Err(error) = write(output, &migrated.text) {
        print_error(format_args!("cannot write {}: {error}", output.display()));
        return Ok(ExitCode::from(EXIT_FAULTS));
    }
    for note in &migrated.notes {
        print_line(note)?;
    }
    print_line(format_args!(
        "{} written; directives to look at: {}",
        output.display(),
        migrated.notes.len()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the result; `--output /dev/stdout` prints it.
fn write(output: &Path, text: &str) -> io::Result<()> {
    match std::fs::metadata(output) {
        Ok(device) if !device.is_file() && !device.is_dir() => std::fs::write(output, text),
        Ok(_) | Err(_) => replace(output, text),
    }
}

/// Reads the files of an `include`, sorted, relative to `folder` or to the folder of `nginx.conf`
/// above it. Returns `None` if a file, or the folder of a pattern, does not exist.
fn included(folder: &Path, pattern: &str) -> Option<Vec<Source>> {
    let is_main = |folder: &&Path| folder.join("nginx.conf").is_file();
    let main = folder.ancestors().find(is_main).unwrap_or(folder);
    // nginx resolves relative paths from its main file.
    let paths = [main, folder].map(|root| root.join(pattern));
    paths.iter().find_map(|path| files_of(path))
}

fn files_of(pattern: &Path) -> Option<Vec<Source>> {
    let files: Vec<PathBuf> = if is_pattern(pattern) {
        let fixed = pattern.ancestors().find(|it| !is_pattern(it))?;
        fixed.is_dir().then_some(())?;
        glob::glob(pattern.to_str()?).ok()?.flatten().collect()
    } else {
        vec![pattern.to_owned()]
    };
    let sources = files.into_iter().map(|file| {
        let text = std::fs::read_to_string(&file).ok()?;
        Some(Source {
            name: file.display().to_string(),
            text,
        })
    });
    sources.collect()
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}
