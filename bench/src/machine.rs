//! Description of the machine, for the results.

use crate::cores::Cores;
use serde::{Deserialize, Serialize};
use std::fs;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// Machine and commit of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) rustc: String,
    /// Commit hash, with a `+` if files differ from it.
    pub(crate) commit: String,
    /// Date in UTC.
    pub(crate) day: String,
}

impl Machine {
    /// Reads the description from the operating system and git.
    pub(crate) fn describe(workspace: &Workspace, cores: &Cores) -> Result<Self, TaskError> {
        let run = |program: &str, arguments: &[&str]| {
            let text = command::read(workspace.command(program).args(arguments))?;
            Ok(text.trim().to_owned())
        };
        let changes = run("git", &["status", "--porcelain"])?;
        let commit = run("git", &["rev-parse", "--short=12", "HEAD"])?;
        Ok(Self {
            processor: processor(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cores: cores.count(),
            kernel: rustix::system::uname().release().to_string_lossy().into(),
            rustc: run("rustc", &["--version"])?,
            commit: if changes.is_empty() {
                commit
            } else {
                format!("{commit}+")
            },
            day: run("date", &["-u", "+%F"])?,
        })
    }
}

fn processor(cpuinfo: &str) -> String {
    let names = cpuinfo.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    names
        .into_iter()
        .next()
        .unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_says_its_name() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 9\nmodel name\t: AMD EPYC 9\n";
        assert_eq!(processor(text), "AMD EPYC 9");
        assert_eq!(processor(""), "unknown");
    }
}
