//! The data of a metrics page.

pub(crate) mod points;
pub(crate) mod samples;
pub(crate) mod snapshot;
pub(crate) mod text;

use crate::process::Process;
use crate::scrape::snapshot::Snapshot;
use std::time::Duration;

/// The version of the program.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// Semantic version.
    pub version: &'a str,
    /// Commit hash.
    pub commit: &'a str,
}

/// The data of a page.
#[derive(Clone, Copy, Debug)]
pub struct Scrape<'a> {
    /// The metrics of all workers.
    pub snapshot: &'a Snapshot,
    /// The process's use of resources.
    pub process: &'a Process,
    /// The version of the program.
    pub build: Build<'a>,
    /// Start of the process, since the Unix epoch.
    pub started: Duration,
    /// Time since the start, which steps of the time of day do not change.
    pub uptime: Duration,
}
