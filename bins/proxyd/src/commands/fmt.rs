//! `proxyd config fmt`.

use crate::terminal::{print_error, print_report, say};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Lays out each file; with `check`, only names those that would change. 1 if a file cannot be read or
/// written, or if `check` named one.
pub(super) fn run(files: &[PathBuf], check: bool) -> ExitCode {
    let mut passed = true;
    for file in files {
        passed &= one(file, check);
    }
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn one(file: &Path, check: bool) -> bool {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            print_error(format_args!("cannot read {}: {error}", file.display()));
            return false;
        }
    };
    let formatted = match proxy_config::format(&text, &file.display().to_string()) {
        Ok(formatted) => formatted,
        Err(report) => {
            print_report(&report);
            return false;
        }
    };
    if formatted == text {
        return true;
    }
    if check {
        say(format_args!("{} would be reformatted", file.display()));
        return false;
    }
    if let Err(error) = replace(file, &formatted) {
        print_error(format_args!("cannot write {}: {error}", file.display()));
        return false;
    }
    say(format_args!("{} written", file.display()));
    true
}

/// Writes a temporary file next to `file` and renames it, so that a full disk loses nothing.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let file = std::fs::canonicalize(file)?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = file.with_file_name(name);
    let written = std::fs::write(&new, text)
        .and_then(|()| std::fs::set_permissions(&new, std::fs::metadata(&file)?.permissions()))
        .and_then(|()| std::fs::rename(&new, &file));
    if written.is_err() {
        drop(std::fs::remove_file(&new));
    }
    written
}
