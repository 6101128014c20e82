//! Where contestants are set up: folders, ports, cores, programs.

use super::certificate;
use super::cores::Cores;
use super::descriptors;
use crate::command;
use crate::folder;
use crate::task_error::TaskError;
use crate::terminal::say;
use crate::workspace::Workspace;
use std::cell::Cell;
use std::env;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The port of the upstream. Peers from the command line must know it.
pub(super) const BACKEND_PORT: u16 = 21_000;
/// The port of the responder by which the load's own capacity is measured.
pub(super) const RESPONDER_PORT: u16 = 21_001;
/// Ports for proxies, below those that the system hands out.
const PROXY_PORTS: RangeInclusive<u16> = 21_010..=21_999;

/// The program that is to be the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadProgram {
    /// This one, built anew with optimisation: it must outrun every proxy.
    Optimised,
    /// This one as it is: counting waits for nobody.
    ThisOne,
}

/// What all contestants of a run share.
#[derive(Debug)]
pub(super) struct Arena {
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

impl Arena {
    /// Builds the load if need be, and makes room in `target/bench`.
    pub(super) fn prepare(
        workspace: &Workspace,
        load: LoadProgram,
        proxyd: PathBuf,
    ) -> Result<Self, TaskError> {
        let target = workspace.target_dir()?;
        let load = match load {
            LoadProgram::Optimised => {
                build_load(workspace)?;
                target.join("release").join("xtask")
            }
            LoadProgram::ThisOne => env::current_exe().map_err(|source| TaskError::System {
                deed: "find this program",
                source,
            })?,
        };
        let results = target.join("bench");
        let arena = Self {
            cores: Cores::of_this_process()?,
            root: workspace.root().to_owned(),
            folder: results.join("run"),
            results,
            proxyd,
            load,
            last_port: Cell::new(PROXY_PORTS.start() - 1),
        };
        folder::empty(&arena.folder)?;
        descriptors::raise_limit().map_err(|source| TaskError::System {
            deed: "raise the limit of open files",
            source,
        })?;
        certificate::make(&arena.folder)?;
        Ok(arena)
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

    /// The folder of the root `Cargo.toml`.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A port that nobody listens on and that no process of this run has had before.
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

fn build_load(workspace: &Workspace) -> Result<(), TaskError> {
    say("bench: building the load");
    let arguments = ["build", "--release", "--locked", "--quiet", "--package"];
    command::run(workspace.cargo(&arguments).arg("xtask"))
}
