//! `proxyd replay`: compares the decisions of two configurations on recorded requests.

use super::plan_file::{EXIT_FAULTS, plan};
use crate::cli::Replay;
use crate::terminal::{print_error, print_line};
use proxy_plan::Plan;
use proxy_plan::diff::replay::{self, Recording, ReplayDifference, ReplayReport};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Maximum number of differences in the text; only the number of further ones is shown.
const MAX_LISTED: usize = 50;

/// Prints requests with changed decisions. Exit code 0: none; 1: some; 2: a file cannot be read.
pub(super) fn run(arguments: &Replay) -> io::Result<ExitCode> {
    let Replay {
        file,
        old,
        new,
        json,
    } = arguments;
    let (Some(old), Some(new)) = (plan(old), plan(new)) else {
        return Ok(ExitCode::from(EXIT_FAULTS));
    };
    let Some((report, skipped)) = replayed(file, &old, &new) else {
        return Ok(ExitCode::from(EXIT_FAULTS));
    };
    if *json {
        print_line(document(&report, skipped))?;
    } else {
        print_line(page(&report, skipped).trim_end())?;
    }
    if report.different == 0 {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

/// Replays the requests in `file`. Returns the report and the number of lines that are not
/// requests, or prints an error and returns `None`. A non-empty file without any request is an
/// error: without it, a wrong file would look like no differences.
pub(super) fn replayed(file: &Path, old: &Plan, new: &Plan) -> Option<(ReplayReport, usize)> {
    let recording = match fs::read(file).map(Recording::new) {
        Ok(recording) => recording,
        Err(error) => {
            print_error(format_args!("cannot read {}: {error}", file.display()));
            return None;
        }
    };
    let mut replay = replay::Replay::new(old, new);
    let mut skipped = 0;
    for head in recording.heads() {
        match head {
            Some(head) => replay.push(&head),
            None => skipped += 1,
        }
    }
    let report = replay.finish();
    if report.requests == 0 && 0 < skipped {
        print_error(format_args!(
            "{}: none of its {skipped} lines is a recorded request",
            file.display()
        ));
        return None;
    }
    Some((report, skipped))
}

pub(super) fn page(report: &ReplayReport, skipped: usize) -> String {
    let ReplayReport {
        requests,
        different,
        kinds: _,
        differences,
        unlike_recorded,
        unlike_example,
    } = report;
    let mut page =
        format!("{different} of {requests} recorded requests are answered differently\n");
    for difference in differences.iter().take(MAX_LISTED) {
        let ReplayDifference {
            before,
            after,
            requests,
            example,
        } = difference;
        let example = example.escape_debug();
        // Writing to a `String` cannot fail.
        _ = writeln!(
            page,
            "  {requests:>9}  {before} -> {after}, such as {example}"
        );
    }
    let more = differences.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        _ = writeln!(page, "  and {more} more, all in --json");
    }
    if skipped > 0 {
        _ = writeln!(
            page,
            "skipped: {skipped} lines that are not recorded requests"
        );
    }
    if let Some(example) = unlike_example {
        let example = example.escape_debug();
        _ = writeln!(
            page,
            "{unlike_recorded} of {requests} requests were recorded with another route than the old \
             configuration selects, such as {example}"
        );
    }
    page
}

pub(super) fn document(report: &ReplayReport, skipped: usize) -> Value {
    let differences = report.differences.iter().map(|difference| {
        json!({
            "before": difference.before.to_string(),
            "after": difference.after.to_string(),
            "requests": difference.requests,
            "example": difference.example,
        })
    });
    json!({
        "requests": report.requests,
        "different": report.different,
        "kinds": report.kinds,
        "skipped_lines": skipped,
        "unlike_recorded": report.unlike_recorded,
        "differences": differences.collect::<Vec<_>>(),
    })
}
