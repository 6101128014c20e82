//! `proxyd config test`: the tests in a configuration.

use crate::terminal::{print_error, print_line, print_report};
use proxy_config::{Loaded, Report};
use proxy_model::{FailedTest, Model, Place};
use proxy_plan::diff::replay::Recording;
use proxy_plan::{Plan, TargetRegistry, draft_recorded_tests, draft_tests};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the tests in a configuration. Exit code 0: all pass; 1: a test fails, there are none, or
/// the configuration has errors.
pub(super) fn run(file: &Path, json: bool) -> io::Result<ExitCode> {
    let Loaded { model, warnings } = match proxy_config::load(file) {
        Ok(loaded) => loaded,
        Err(report) => {
            print_report(&report);
            return Ok(ExitCode::FAILURE);
        }
    };
    let failed = match proxy_server::failed_tests_and_files(&model) {
        Ok(failed) => failed,
        Err(faults) => {
            print_report(&Report::new(model.sources.clone(), faults));
            return Ok(ExitCode::FAILURE);
        }
    };
    if json {
        print_line(document(&model, &failed))?;
    } else {
        for (name, _) in names(&model) {
            let passes = failed.iter().all(|one| one.name != name);
            let word = if passes { "ok    " } else { "failed" };
            print_line(format_args!("{word}  {name}"))?;
        }
    }
    let count = names(&model).count();
    let passes = failed.is_empty() && 0 < count;
    let loaded = Loaded { model, warnings };
    match loaded.unless_failed(failed) {
        Ok(_) if count == 0 => print_error(format_args!("{}: there is no test", file.display())),
        Ok(_) | Err(_) if json => {}
        Ok(_) if count == 1 => print_line(format_args!("{}: 1 test passes", file.display()))?,
        Ok(_) => print_line(format_args!("{}: {count} tests pass", file.display()))?,
        Err(report) => print_report(&report),
    }
    if passes {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

/// Prints a draft of tests, from the routes or from `recorded` requests. Exit code 0: printed; 1:
/// the configuration has errors, or the recording cannot be read.
pub(super) fn draft(file: &Path, recorded: Option<&Path>) -> io::Result<ExitCode> {
    let recording =
        match recorded.map(|recorded| (recorded, fs::read(recorded).map(Recording::new))) {
            None => None,
            Some((_, Ok(recording))) => Some(recording),
            Some((recorded, Err(error))) => {
                print_error(format_args!("cannot read {}: {error}", recorded.display()));
                return Ok(ExitCode::FAILURE);
            }
        };
    match proxy_config::load(file) {
        Ok(Loaded { model, .. }) => {
            let mut targets = TargetRegistry::default().begin();
            let plan = Plan::compile(1, Arc::new(model), &mut targets);
            let drafts = match &recording {
                None => draft_tests(&plan),
                Some(recording) => draft_recorded_tests(&plan, recording.heads().flatten()),
            };
            print_line(drafts.trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(report) => {
            print_report(&report);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Returns the names and places of tests and prohibitions.
fn names(model: &Model) -> impl Iterator<Item = (&str, Place)> {
    let tests = model
        .tests
        .iter()
        .map(|test| (test.name.as_str(), test.place));
    let prohibitions = model.prohibitions.iter();
    tests.chain(prohibitions.map(|one| (one.name.as_str(), one.place)))
}

/// Formats each test and its failures as JSON.
fn document(model: &Model, failed: &[FailedTest]) -> Value {
    let tests = names(model).map(|(name, place)| {
        let failures = failed.iter().filter(|one| one.name == name);
        let failures: Vec<Value> = failures
            .map(|one| {
                json!({
                    "at": model.sources.file_and_line(one.place),
                    "difference": one.difference,
                    "explain": one.explain,
                })
            })
            .collect();
        json!({
            "name": name,
            "at": model.sources.file_and_line(place),
            "passed": failures.is_empty(),
            "failures": failures,
        })
    });
    Value::Array(tests.collect())
}
