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

/// The port of the upstream.
pub(crate) const BACKEND_PORT: u16 = 21_000;
/// The port of the responder that measures the load's own capacity.
pub(crate) const RESPONDER_PORT: u16 = 21_001;
/// The port of a target that never answers. On the next two nothing listens.
pub(crate) const HUNG_PORT: u16 = 21_002;
/// Ports for proxies, below the ephemeral range.
const PROXY_PORTS: RangeInclusive<u16> = 21_010..=21_999;

/// The build profile of the load process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadBuild {
    /// Optimized, because it must outrun every proxy.
    Release,
    /// As tests are built, because counts do not depend on time.
    Debug,
}

/// State shared by all servers of a run.
#[derive(Debug)]
pub(crate) struct Environment {
    /// The cores of this machine.
    pub(crate) cores: Cores,
    /// The measured proxyd.
    pub(crate) proxyd: PathBuf,
    /// The program of the load process.
    pub(crate) load: PathBuf,
    /// The program of the agents.
    pub(crate) agent: PathBuf,
    root: PathBuf,
    results: PathBuf,
    folder: PathBuf,
    last_port: Cell<u16>,
}

impl Environment {
    /// Builds the load process if necessary, and empties `target/bench`.
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

    /// Path of a file of this run: a configuration, a log.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Path of a result file.
    pub(crate) fn result(&self, name: &str) -> PathBuf {
        self.results.join(name)
    }

    /// Output of a program, without the folders of this machine.
    pub(crate) fn without_local_paths(&self, text: &str) -> String {
        let folders = [(&self.folder, "target/bench/run"), (&self.root, ".")];
        let mut text = text.to_owned();
        for (local, replacement) in folders {
            text = text.replace(&local.display().to_string(), replacement);
        }
        text
    }

    /// The folder of this run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of a committed file for benchmarks.
    pub(crate) fn kept(&self, name: &str) -> PathBuf {
        self.root.join("bench").join(name)
    }

    /// A free port that was not used in this run before.
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

/// Raises the limit of open files to its maximum, for this process and its children: most shells
/// allow fewer than thousands of connections.
fn raise_file_limit() -> rustix::io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
}
