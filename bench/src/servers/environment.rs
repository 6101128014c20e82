//! Folders, ports, cores and programs of a run.

use crate::cores::Cores;
use crate::servers::certificate;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::cell::Cell;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use xtask_kit::command;
use xtask_kit::folder;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// Port of the upstream.
pub(crate) const BACKEND_PORT: u16 = 21_000;
/// Port of the responder that measures the capacity of the load generator.
pub(crate) const RESPONDER_PORT: u16 = 21_001;
/// Port of a target that never responds. Nothing listens on the next two ports.
pub(crate) const HUNG_PORT: u16 = 21_002;
/// Ports for proxies, below the ephemeral range.
const PROXY_PORTS: RangeInclusive<u16> = 21_010..=21_999;

/// Build profile of the load process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadBuild {
    /// Optimized, because the load must be faster than every proxy.
    Release,
    /// Built as for tests, because counts do not depend on time.
    Debug,
}

/// State shared by all servers of a run.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) cores: Cores,
    /// Path of the measured `proxyd`.
    pub(crate) proxyd: PathBuf,
    /// Path of the load process's program.
    pub(crate) load: PathBuf,
    /// Path of the agents' program.
    pub(crate) agent: PathBuf,
    root: PathBuf,
    results: PathBuf,
    folder: PathBuf,
    last_port: Cell<u16>,
}

impl Environment {
    /// Builds the load process if necessary, and empties the folder of the run.
    pub(crate) fn prepare(
        workspace: &Workspace,
        load: LoadBuild,
        proxyd: PathBuf,
    ) -> Result<Self, TaskError> {
        let target = workspace.target_dir()?;
        let load = build_load(workspace, &target, load)?;
        let results = target.join("bench");
        let environment = Self {
            cores: Cores::for_this_process()?,
            root: workspace.root().to_owned(),
            folder: results.join("run"),
            results,
            proxyd,
            agent: load.with_file_name("bench-agent"),
            load,
            last_port: Cell::new(PROXY_PORTS.start() - 1),
        };
        folder::empty(&environment.folder)?;
        raise_file_limit().map_err(|errno| TaskError::System {
            action: "raise the limit of open files",
            source: errno.into(),
        })?;
        certificate::make(&environment.folder)?;
        Ok(environment)
    }

    /// Returns the path of a configuration or log of this run.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the path of a result file.
    pub(crate) fn result(&self, name: &str) -> PathBuf {
        self.results.join(name)
    }

    /// Replaces local paths in a program's output by relative ones.
    pub(crate) fn without_local_paths(&self, text: &str) -> String {
        let folders = [(&self.folder, "target/bench/run"), (&self.root, ".")];
        let mut text = text.to_owned();
        for (local, replacement) in folders {
            text = text.replace(&local.display().to_string(), replacement);
        }
        text
    }

    /// Folder of this run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a committed file in the `bench` folder.
    pub(crate) fn kept(&self, name: &str) -> PathBuf {
        self.root.join("bench").join(name)
    }

    /// Returns a free port that this run has not used yet.
    pub(crate) fn free_port(&self) -> Result<u16, TaskError> {
        for port in self.last_port.get() + 1..=*PROXY_PORTS.end() {
            self.last_port.set(port);
            if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(port);
            }
        }
        let range = format!("{}–{}", PROXY_PORTS.start(), PROXY_PORTS.end());
        Err(TaskError::Failed(format!("no port of {range} is free")))
    }
}

fn build_load(
    workspace: &Workspace,
    target: &Path,
    build: LoadBuild,
) -> Result<PathBuf, TaskError> {
    say("bench: building the load");
    let mut cargo = workspace.cargo(&["build", "--locked", "--quiet", "--package", "proxy-load"]);
    let profile = match build {
        LoadBuild::Release => {
            cargo.arg("--release");
            "release"
        }
        LoadBuild::Debug => "debug",
    };
    command::run(&mut cargo)?;
    Ok(target.join(profile).join("proxy-load"))
}

/// Raises the limit of open files to the hard limit, also for child processes. The soft limit of
/// most shells is too low for thousands of connections.
fn raise_file_limit() -> rustix::io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
}
