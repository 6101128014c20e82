//! Start options of a server process, set by the program that embeds it.

use crate::config::delivery::Follow;
use crate::observe::events::Events;
use crate::sockets::handover::Program;
use std::borrow::Cow;
use std::path::PathBuf;

/// Start options of a server process.
#[derive(Clone, Debug)]
pub struct Options {
    /// Source of the configuration, at the start and at each reload.
    pub config: Source,
    /// Build information of the program.
    pub build: Build,
    /// The program that SIGUSR2 starts to take over; `None` refuses upgrades.
    pub program: Option<Program>,
    /// The log of the process's events, for its metrics and summaries; `None` leaves events to the
    /// program.
    pub events: Option<Events>,
    /// Starts the client of the control plane, if one is configured; `None` for a program without
    /// such a client.
    pub follow: Option<Follow>,
}

/// The source of a configuration.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, with its includes.
    File(PathBuf),
    /// A text, for embedding programs.
    Text(Cow<'static, str>),
    /// Built in: a welcome page on port 8080.
    Embedded,
}

/// Build information, for `--version`, `/status` and `/admin/version`.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Semantic version.
    pub version: &'static str,
    /// Commit hash.
    pub commit: &'static str,
    /// Time of the build, RFC 3339.
    pub built_at: &'static str,
    /// Version of the compiler.
    pub rustc: &'static str,
}
