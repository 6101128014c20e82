//! `proxyd config test`: the tests in a configuration.

use crate::terminal::{print_error, print_report, say};
use proxy_config::Loaded;
use proxy_model::{FailedTest, Model};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Runs the tests in the configuration `file`. Exit code 0: all pass; 1: one fails, there is none, or
/// the configuration has errors.
pub(super) fn run(file: &Path, json: bool) -> ExitCode {
    let Loaded { model, warnings } = match proxy_config::load(file) {
        Ok(loaded) => loaded,
        Err(report) => {
            print_report(&report);
            return ExitCode::FAILURE;
        }
    };
    let failed = proxy_plan::failed_tests(&model);
    if json {
        say(document(&model, &failed));
    } else {
        for test in &model.tests {
            let passes = failed.iter().all(|one| one.name != test.name);
            let word = if passes { "ok    " } else { "failed" };
            say(format_args!("{word}  {}", test.name));
        }
    }
    let passes = failed.is_empty() && !model.tests.is_empty();
    let count = model.tests.len();
    let loaded = Loaded { model, warnings };
    match loaded.unless_failed(failed) {
        Ok(_) if count == 0 => print_error(format_args!("{}: there is no test", file.display())),
        Ok(_) | Err(_) if json => {}
        Ok(_) if count == 1 => say(format_args!("{}: 1 test passes", file.display())),
        Ok(_) => say(format_args!("{}: {count} tests pass", file.display())),
        Err(report) => print_report(&report),
    }
    if passes {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Each test with its failures.
fn document(model: &Model, failed: &[FailedTest]) -> Value {
    let tests = model.tests.iter().map(|test| {
        let failures = failed.iter().filter(|one| one.name == test.name);
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
            "name": test.name,
            "at": model.sources.file_and_line(test.place),
            "passed": failures.is_empty(),
            "failures": failures,
        })
    });
    Value::Array(tests.collect())
}
