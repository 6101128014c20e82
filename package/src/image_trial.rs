//! Trials of the images: under podman, as an unprivileged user on a read-only root.

use crate::image::USER;
use crate::product::PRODUCTS;
use crate::trial::skip;
use crate::wait;
use rustix::process::{Resource, getrlimit};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// Time within which a container must become healthy.
const MAX_START: Duration = Duration::from_secs(30);
/// Options that remove every privilege which the images do not need.
const RESTRICTED: [&str; 7] = [
    "--read-only",
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
    "--network=none",
    "--tmpfs=/tmp",
    "--ulimit=nproc=4096",
    "--detach",
];

/// Starts a container of each image, checks its user and that it serves, and stops it.
pub(crate) fn run(workspace: &Workspace, out: &Path, files: &[String]) -> Result<(), TaskError> {
    if command::find("podman").is_none() {
        return skip(workspace, "podman is not installed");
    }
    for file in files.iter().filter(|file| file.ends_with(".oci.tar")) {
        let loaded = podman(&[
            "load",
            "--quiet",
            "--input",
            &out.join(file).to_string_lossy(),
        ])?;
        let image = loaded
            .trim()
            .rsplit(' ')
            .next()
            .unwrap_or_default()
            .to_owned();
        let Some(product) = PRODUCTS.iter().find(|product| image.contains(product.name)) else {
            return Err(TaskError::Failed(format!("{file} is loaded as {image}")));
        };
        // The default is above the limit of some machines.
        let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20);
        let limit = format!("--ulimit=nofile={limit}");
        let started = podman(&[&["run", &limit][..], &RESTRICTED, &[&image]].concat())?;
        let container = started.trim();
        let tried = check(container, product.name);
        if tried.is_err() {
            command::run(Command::new("podman").args(["logs", container]))?;
        }
        podman(&["rm", "--force", "--time", "10", container])?;
        podman(&["rmi", &image])?;
        tried?;
        say(format!(
            "package: {file} runs as user {USER}, without capabilities, on a read-only root"
        ));
    }
    Ok(())
}

fn check(container: &str, name: &str) -> Result<(), TaskError> {
    let user = podman(&["inspect", "--format", "{{.Config.User}}", container])?;
    if user.trim() != format!("{USER}:{USER}") {
        return Err(TaskError::Failed(format!("{name} runs as {user}")));
    }
    let program = format!("/usr/bin/{name}");
    let check: &[&str] = match name {
        "proxyd" => &["exec", container, &program, "health"],
        _ => &["exec", container, &program, "ctl", "ready"],
    };
    wait::until(MAX_START, || podman(check))?;
    podman(&["stop", "--time", "20", container])?;
    let code = podman(&["inspect", "--format", "{{.State.ExitCode}}", container])?;
    if code.trim() == "0" {
        Ok(())
    } else {
        Err(TaskError::Failed(format!("{name} ends with {code}")))
    }
}

fn podman(arguments: &[&str]) -> Result<String, TaskError> {
    let mut podman = Command::new("podman");
    if !Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        // crun refuses version 1 of control groups next to version 2.
        podman.args(["--runtime", "runc", "--cgroup-manager", "cgroupfs"]);
    }
    command::read(podman.args(arguments))
}
