//! `cargo xtask setup`: installation of missing tools.

mod debian;
mod extra;
mod node;
mod python;

pub(crate) use extra::Extra;
use node::NodeModules;
use python::{PYTHON_ENVIRONMENTS, PythonEnvironment};
use xtask_kit::command;
use xtask_kit::llvm_profdata;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// Version requirement of cargo-deny, for the format of our `deny.toml`.
const DENY_VERSION: &str = "^0.20";

/// Installs missing tools.
///
/// # Errors
/// Lists the tools that are still missing.
pub(crate) fn run(workspace: &Workspace, extra: Extra) -> Result<(), TaskError> {
    all_here(&install(workspace, extra))
}

/// Installs the identity providers of `cargo xtask identity`, which other tests do not need.
///
/// # Errors
/// They could not be installed.
pub(crate) fn for_identity(workspace: &Workspace) -> Result<(), TaskError> {
    let mut missing = debian::install_for_identity(workspace);
    let names = "samlify and oidc-provider";
    missing.extend(node_modules(workspace, names, &node::IDENTITY));
    missing.extend(python_environment(workspace, &python::IDENTITY));
    all_here(&missing)
}

/// Installs missing tools. Returns those that could not be installed, with the reasons.
pub(crate) fn install(workspace: &Workspace, extra: Extra) -> Vec<String> {
    let mut missing = debian::install(workspace, extra);
    missing.extend(rust_component(workspace, "rustfmt", "fmt"));
    missing.extend(rust_component(workspace, "clippy", "clippy"));
    missing.extend(cargo_deny(workspace));
    let environments = PYTHON_ENVIRONMENTS.iter();
    missing.extend(environments.filter_map(|one| python_environment(workspace, one)));
    let names = "playwright-core and axe-core";
    missing.extend(node_modules(workspace, names, &node::BROWSER));
    if extra.bench {
        missing.extend(llvm_tools(workspace));
    }
    if extra.package {
        missing.extend(python_environment(workspace, &python::KUBERNETES));
    }
    missing
}

fn all_here(missing: &[String]) -> Result<(), TaskError> {
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    Err(TaskError::Failed(format!("still missing: {missing}")))
}

fn rust_component(workspace: &Workspace, component: &str, subcommand: &str) -> Option<String> {
    component_if(workspace, component, || {
        has_subcommand(workspace, subcommand)
    })
}

/// Installs the tools of `cargo xtask ship`.
fn llvm_tools(workspace: &Workspace) -> Option<String> {
    component_if(workspace, llvm_profdata::COMPONENT, || {
        llvm_profdata::path(workspace).is_ok()
    })
}

fn component_if(
    workspace: &Workspace,
    component: &str,
    is_here: impl FnOnce() -> bool,
) -> Option<String> {
    if is_here() {
        say(format!("setup: {component} is here"));
        return None;
    }
    let mut add = workspace.command("rustup");
    let added = command::run(add.args(["component", "add", component]));
    outcome(component, added)
}

/// Installs a debug build, which takes less than a minute on two cores; a release build takes
/// fifteen times as long.
fn cargo_deny(workspace: &Workspace) -> Option<String> {
    if has_subcommand(workspace, "deny") {
        say("setup: cargo-deny is here");
        return None;
    }
    let arguments = ["install", "--locked", "--debug", "--version", DENY_VERSION];
    let mut install = workspace.cargo(&arguments);
    install
        .arg("cargo-deny")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    outcome("cargo-deny", command::run(&mut install))
}

fn python_environment(workspace: &Workspace, environment: &PythonEnvironment) -> Option<String> {
    match environment.install(workspace) {
        Ok(false) => {
            say(format!("setup: {} is here", environment.name));
            None
        }
        installed => outcome(environment.name, installed.map(drop)),
    }
}

fn node_modules(workspace: &Workspace, names: &str, modules: &NodeModules) -> Option<String> {
    match modules.install(workspace) {
        Ok(false) => {
            say(format!("setup: {names} are here"));
            None
        }
        installed => outcome(names, installed.map(drop)),
    }
}

/// Returns true if `cargo <subcommand>` is installed.
pub(crate) fn has_subcommand(workspace: &Workspace, subcommand: &str) -> bool {
    command::works(&mut workspace.cargo(&[subcommand, "--version"]))
}

fn outcome(tool: &str, installed: Result<(), TaskError>) -> Option<String> {
    match installed {
        Ok(()) => {
            say(format!("setup: {tool} installed"));
            None
        }
        Err(error) => Some(format!("{tool} ({})", error.message())),
    }
}
