//! `proxyd config fmt`: standard layout for configuration files.

use super::file_replacement::replace;
use crate::terminal::{print_error, print_line, print_report};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Formats each file, or with `check` only prints the names of those that would change. Exit code 1
/// if a file cannot be read or written, or `check` printed one.
pub(super) fn run(files: &[PathBuf], check: bool) -> io::Result<ExitCode> {
    let mut passed = true;
    for file in files {
        passed &= format_file(file, check)?;
    }
    if passed {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

/// Formats a file, or only checks it. Returns true if it has the standard layout afterwards.
fn format_file(file: &Path, check: bool) -> io::Result<bool> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            print_error(format_args!("cannot read {}: {error}", file.display()));
            return Ok(false);
        }
    };
    let formatted = match proxy_config::format(&text, &file.display().to_string()) {
        Ok(formatted) => formatted,
        Err(report) => {
            print_report(&report);
            return Ok(false);
        }
    };
    if formatted == text {
        return Ok(true);
    }
    if check {
        print_line(format_args!("{} would be reformatted", file.display()))?;
        return Ok(false);
    }
    if let Err(error) = replace(file, &formatted) {
        print_error(format_args!("cannot write {}: {error}", file.display()));
        return Ok(false);
    }
    print_line(format_args!("{} written", file.display()))?;
    Ok(true)
}
