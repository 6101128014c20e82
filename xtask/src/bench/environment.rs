//! Where servers are set up: folders, ports, cores, programs.

use super::certificate;
use super::cores::Cores;
use crate::command;
use crate::folder;
use crate::task_error::TaskError;
use crate::terminal::say;
use crate::workspace::Workspace;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::cell::Cell;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The port of the upstream.
pub(super) const BACKEND_PORT: u16 = 21_000;
/// The port of the responder by which the load's own capacity is measured.
pub(super) const RESPONDER_PORT: u16 = 21_001;
/// Ports for proxies, below those that the system hands out.
const PROXY_PORTS: RangeInclusive<u16> = 21_010..=21_999;

/// How the load process is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadBuild {
    /// With optimisation: it must outrun every proxy.
    Release,
    /// As tests are built: counts do not depend on time.
    Debug,
}

/// What all servers of a run share.
#[derive(Debug)]
pub(super) struct Environment {
    /// The cores of this machine.
    pub(super) cores: Cores,
    /// The proxyd that is measured.
    pub(super) proxyd: PathBuf,
    /// The program of the load process.
    pub(super) load: PathBuf,
    root: PathBuf,
    results: PathBuf,
    folder: PathBuf,
    last_port: Cell<u16>,
}

impl Environment {
    /// Builds the load if need be, and makes room in `target/bench`.
    pub(super) fn prepare(
        workspace: &Workspace,
        load: LoadBuild,
        proxyd: PathBuf,
    ) -> Result<Self, TaskError> {
        let target = workspace.target_dir()?;
        let load = build_load(workspace, &target, load)?;
        let results = target.join("bench");
        let environment = Self {
            cores: Cores::of_this_process()?,
            root: workspace.root().to_owned(),
            folder: results.join("run"),
            results,
            proxyd,
            load,
            last_port: Cell::new(PROXY_PORTS.start() - 1),
        };
        folder::empty(&environment.folder)?;
        raise_file_limit().map_err(|errno| TaskError::System {
            deed: "raise the limit of open files",
            source: errno.into(),
        })?;
        certificate::make(&environment.folder)?;
        Ok(environment)
    }

    /// A file of this run: a configuration, a log.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A file that shows what a run came to.
    pub(super) fn result(&self, name: &str) -> PathBuf {
        self.results.join(name)
    }

    /// What a program said, without the folders of this machine.
    pub(super) fn anywhere(&self, said: &str) -> String {
        let folders = [(&self.folder, "target/bench/run"), (&self.root, ".")];
        let mut said = said.to_owned();
        for (here, anywhere) in folders {
            said = said.replace(&here.display().to_string(), anywhere);
        }
        said
    }

    /// The folder of this run.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file that the project keeps for benchmarks.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.root.join("bench").join(name)
    }

    /// A free port that no process of this run has had before.
    pub(super) fn free_port(&self) -> Result<u16, TaskError> {
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

/// Takes as many open files as the system gives, for this process and those it starts: thousands of idle
/// connections are more than most shells allow.
fn raise_file_limit() -> rustix::io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
}
