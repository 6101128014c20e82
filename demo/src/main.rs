//! `cargo xtask demo`: proxyd with two small upstreams, and controld with a fleet of its own.

mod control;
mod fleet;

use crate::control::Control;
use crate::fleet::Fleet;
use clap::Parser;
use proxy_testkit::{Upstream, demo_upstream};
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::{print_error, say};
use xtask_kit::workspace::Workspace;

/// The configuration that the demo shows, and the addresses that it names.
const CONFIG: &str = "examples/configs/quickstart.kdl";
const WEB: &str = "127.0.0.1:8080";
const ADMIN: &str = "127.0.0.1:9090";
const ONE: &str = "127.0.0.1:18081";
const TWO: &str = "127.0.0.1:18082";

/// Start proxyd with two small upstreams, and controld with a fleet, until Ctrl-C
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask demo")]
struct Arguments {
    /// Drive the demo with real clients, print a verdict per check, and exit
    #[arg(long)]
    check: bool,
    /// Build proxyd with optimisation
    #[arg(long)]
    release: bool,
}

fn main() -> ExitCode {
    match perform(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(TaskError::AlreadyReported) => ExitCode::FAILURE,
        Err(error) => {
            print_error(error.message());
            ExitCode::FAILURE
        }
    }
}

fn perform(arguments: &Arguments) -> Result<(), TaskError> {
    let Arguments { check, release } = *arguments;
    let workspace = Workspace::find()?;
    if check {
        let arguments = ["test", "--locked", "--workspace", "--test", "quickstart"];
        let mut test = workspace.cargo(&arguments);
        test.args(release.then_some("--release"));
        command::run(&mut test)?;
    }
    let binary = build(&workspace, "proxyd", release)?;
    let controld = build(&workspace, "controld", false)?;
    let control = Control::start(controld)?;
    let fleet = Fleet::show(&control, &binary)?;
    if check {
        say("demo: all of it works");
        return Ok(());
    }
    let _upstreams = [serve("one", ONE)?, serve("two", TWO)?];
    let mut child = Command::new(&binary)
        .arg("--config")
        .arg(workspace.root().join(CONFIG))
        .stdin(Stdio::null())
        .spawn()
        .map_err(|source| TaskError::Start {
            program: binary.display().to_string(),
            source,
        })?;
    say(invitation(child.id()));
    say(control.invitation());
    say(fleet.invitation());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|source| TaskError::System {
        action: "start a runtime",
        source,
    })?;
    let status = runtime.block_on(until_ctrl_c(&mut child))?;
    say(format!("demo: proxyd ended ({status})"));
    Ok(())
}

/// Builds a program with the features that the tests build it with.
fn build(workspace: &Workspace, program: &str, release: bool) -> Result<PathBuf, TaskError> {
    say(format!("demo: building {program}"));
    let mut build = workspace.cargo(&["build", "--locked", "--workspace", "--bin", program]);
    build.args(release.then_some("--release"));
    command::run(&mut build)?;
    let profile = if release { "release" } else { "debug" };
    Ok(workspace.target_dir()?.join(profile).join(program))
}

fn serve(name: &'static str, address: &str) -> Result<Upstream, TaskError> {
    let listener = TcpListener::bind(address)
        .map_err(|cause| TaskError::Failed(format!("cannot listen on {address}: {cause}")))?;
    Ok(demo_upstream(name, listener))
}

/// Ctrl-C reaches proxyd as well, unless this task alone was signalled.
async fn until_ctrl_c(child: &mut Child) -> Result<ExitStatus, TaskError> {
    let system = |action| move |source| TaskError::System { action, source };
    tokio::signal::ctrl_c()
        .await
        .map_err(system("wait for Ctrl-C"))?;
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have exited already.
        kill_process(pid, Signal::TERM).ok();
    }
    child.wait().map_err(system("wait for proxyd"))
}

fn invitation(pid: u32) -> String {
    format!(
        "
demo: proxyd (process {pid}) listens on {WEB}; its upstreams are {ONE} and {TWO}.

  curl -i http://{WEB}/one                       the route to upstream one
  curl -i http://{WEB}/two                       the route to upstream two
  curl http://{WEB}/                             both in turn: ask twice
  curl -d hello http://{WEB}/one/echo            the body comes back
  curl -o /dev/null 'http://{WEB}/one/download?bytes=1000000000'
  curl -T FILE http://{WEB}/upload               counted; up to 2 GiB on this route
  curl -i http://{WEB}/nowhere                   an error, with its correlation ID
  curl http://{ADMIN}/status                       the admin side
  curl http://{ADMIN}/admin/upstreams
  curl http://{ADMIN}/metrics

Edit {CONFIG}, then `kill -HUP {pid}`. Ctrl-C ends all.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    const QUICKSTART: &str = include_str!("../../examples/configs/quickstart.kdl");

    #[test]
    fn the_demo_names_the_addresses_of_the_quickstart() {
        for address in [WEB, ADMIN, ONE, TWO] {
            assert!(address.parse::<SocketAddr>().is_ok());
            assert!(QUICKSTART.contains(&format!("\"{address}\"")), "{address}");
        }
    }
}
