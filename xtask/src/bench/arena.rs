//! Where contestants are set up: folders, ports, cores, programs.

use super::certificate;
use super::cores::Cores;
use crate::command;
use crate::terminal::say;
use crate::trouble::Trouble;
use crate::workspace::Workspace;
use std::cell::Cell;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The port of the upstream. Peers from the command line must know it.
pub(super) const BACKEND_PORT: u16 = 21_000;
/// The port of the responder by which the load's own capacity is measured.
pub(super) const RESPONDER_PORT: u16 = 21_001;
/// Ports for proxies, below those that the system hands out.
const PROXY_PORTS: RangeInclusive<u16> = 21_010..=21_999;

/// What all contestants of a run share.
#[derive(Debug)]
pub(super) struct Arena {
    /// The cores of this machine.
    pub(super) cores: Cores,
    root: PathBuf,
    folder: PathBuf,
    release: PathBuf,
    last_port: Cell<u16>,
}

impl Arena {
    /// Builds proxyd and the load process as they ship, and makes room under `target/bench`.
    pub(super) fn prepare(workspace: &Workspace) -> Result<Self, Trouble> {
        let target = workspace.target_dir()?;
        say("bench: building proxyd and the load in the release profile");
        // Apart, so that features which only xtask wants stay out of proxyd.
        for package in ["proxyd", "xtask"] {
            let arguments = [
                "build",
                "--release",
                "--locked",
                "--quiet",
                "--package",
                package,
            ];
            command::run(&mut workspace.cargo(&arguments))?;
        }
        let arena = Self {
            cores: Cores::of_this_process()?,
            root: workspace.root().to_owned(),
            folder: target.join("bench"),
            release: target.join("release"),
            last_port: Cell::new(PROXY_PORTS.start() - 1),
        };
        fs::create_dir_all(&arena.folder).map_err(|source| Trouble::File {
            path: arena.folder.clone(),
            source,
        })?;
        certificate::make(&arena)?;
        Ok(arena)
    }

    /// A file of this run.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
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

    /// A program of the project, as it ships.
    pub(super) fn built(&self, name: &str) -> PathBuf {
        self.release.join(name)
    }

    /// A port that nobody listens on and that no process of this run has had before.
    pub(super) fn free_port(&self) -> Result<u16, Trouble> {
        for port in self.last_port.get() + 1..=*PROXY_PORTS.end() {
            self.last_port.set(port);
            if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(port);
            }
        }
        let range = format!("{}–{}", PROXY_PORTS.start(), PROXY_PORTS.end());
        Err(Trouble::Finding(format!("no port of {range} is free")))
    }
}
