//! One run of one fuzz target.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask_kit::task_error::TaskError;

/// Folders of one target.
pub(super) struct TargetFolders {
    seeds: PathBuf,
    corpus: PathBuf,
    findings: PathBuf,
    log: PathBuf,
}

impl TargetFolders {
    /// Creates the folders. Results of earlier runs are kept.
    pub(super) fn make(folder: &Path, target: &str, seeds: PathBuf) -> Result<Self, TaskError> {
        let folders = Self {
            seeds,
            corpus: folder.join("corpus").join(target),
            findings: folder.join("findings").join(target),
            log: folder.join("logs").join(target),
        };
        for path in [&folders.corpus, &folders.findings, &folder.join("logs")] {
            fs::create_dir_all(path).map_err(|source| file_error(path, source))?;
        }
        Ok(folders)
    }
}

/// Result of a run.
pub(super) struct Session {
    target: String,
    executions: u64,
    per_second: u64,
    corpus: usize,
    finding: Option<String>,
}

impl Session {
    /// Heading of the table.
    pub(super) const HEADING: &str =
        "target               executions  executions/s  corpus  findings";

    /// Describes the failure of the run; `None` after a success.
    pub(super) fn failure_line(&self) -> Option<String> {
        let finding = self.finding.as_deref()?;
        Some(format!("fuzz: {} fails on {finding}", self.target))
    }
}

impl Display for Session {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<18} {:>12} {:>13} {:>7} {:>9}",
            self.target,
            self.executions,
            self.per_second,
            self.corpus,
            u8::from(self.finding.is_some())
        )
    }
}

/// Runs a target for `seconds`, or until its first finding.
pub(super) fn run(
    mut program: Command,
    target: &str,
    folders: &TargetFolders,
    seconds: u32,
) -> Result<Session, TaskError> {
    let log = File::create(&folders.log).map_err(|source| file_error(&folders.log, source))?;
    let status = program
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", folders.findings.display()))
        .arg(&folders.corpus)
        .args(folders.seeds.is_dir().then_some(&folders.seeds))
        .stderr(log)
        .status()
        .map_err(|source| TaskError::Start {
            program: target.to_owned(),
            source,
        })?;
    let log = fs::read(&folders.log).map_err(|source| file_error(&folders.log, source))?;
    let log = String::from_utf8_lossy(&log);
    let corpus = fs::read_dir(&folders.corpus);
    Ok(Session {
        target: target.to_owned(),
        executions: figure(&log, "stat::number_of_executed_units:"),
        per_second: figure(&log, "stat::average_exec_per_sec:"),
        corpus: corpus.map_or(0, Iterator::count),
        finding: (!status.success()).then(|| finding(&log, &folders.log)),
    })
}

fn figure(log: &str, name: &str) -> u64 {
    let value = log.lines().find_map(|line| line.strip_prefix(name));
    value.map_or(0, |value| value.trim().parse().unwrap_or(0))
}

/// Returns the path of the failing input, or the log if the program ended for another reason.
fn finding(log: &str, path: &Path) -> String {
    let input = log
        .lines()
        .find_map(|line| Some(line.split_once("Test unit written to ")?.1));
    input.map_or_else(|| path.display().to_string(), str::to_owned)
}

fn file_error(path: &Path, source: std::io::Error) -> TaskError {
    TaskError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::{figure, finding};
    use std::path::Path;

    const LOG: &str = "panicked\nartifact_prefix='x/'; Test unit written to x/crash-1\n\
                       stat::number_of_executed_units: 12\n";

    #[test]
    fn figures_and_findings_are_read_from_the_log() {
        assert_eq!(figure(LOG, "stat::number_of_executed_units:"), 12);
        assert_eq!(figure(LOG, "stat::average_exec_per_sec:"), 0);
        assert_eq!(finding(LOG, Path::new("log")), "x/crash-1");
        assert_eq!(finding("killed\n", Path::new("log")), "log");
    }
}
