//! A server to compare with.

use crate::exchange::Request;
use crate::rule::Rule;
use crate::servers::Servers;
use proxy_migrate::Language;
use std::path::Path;
use std::process::{Command, Stdio};

/// A server to compare with.
pub(crate) struct Peer {
    pub(crate) program: &'static str,
    pub(crate) language: Language,
    /// The page with a row for each rule, in `docs/learn/coming-from`.
    pub(crate) page: &'static str,
    /// Least number of requests that are compared.
    pub(crate) min_requests: usize,
    /// Names and texts. `PORT` is the port of the server, `UPSTREAM` and `CLOSED` are addresses of a target that answers
    /// and of one that refuses connections, `ROOT` is a folder of files.
    pub(crate) sites: &'static [(&'static str, &'static str)],
    /// The requests for a site.
    pub(crate) requests: fn(&str, &Servers) -> Vec<Request>,
    pub(crate) rules: &'static [Rule],
    /// The text of a site that is migrated.
    pub(crate) migrated: fn(&str) -> String,
    /// The whole configuration of the server, in its folder.
    pub(crate) configuration: fn(&str, &Path) -> String,
    /// Runs the server in the foreground, with a file in its folder.
    pub(crate) command: fn(&Path, &Path) -> Command,
}

impl Peer {
    /// Returns true if the server is installed; CI has it.
    pub(crate) fn is_installed(&self) -> bool {
        let version = Command::new(self.program)
            .arg("-v")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let is_installed = version.is_ok();
        let is_needed = std::env::var_os("CI").is_some();
        assert!(
            is_installed || !is_needed,
            "{} is installed by `cargo xtask setup`",
            self.program
        );
        is_installed
    }
}
