//! `cargo xtask pages` and `cargo xtask screenshots`: rendering times and screenshots of the web
//! pages of `controld`.

use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::{OPTIMISED, Workspace};

const PICTURES: &str = "docs/operate/tutorial";
const MAX_PAGE_MILLIS: &str = "100";

/// Renders every page of a large project without a network, and prints the times.
pub(crate) fn measure(workspace: &Workspace) -> Result<(), TaskError> {
    let mut run = tests(workspace, &OPTIMISED);
    run.args(["large::", "--nocapture"]);
    run.env("CONTROLD_PAGE_MILLIS", MAX_PAGE_MILLIS);
    command::run(&mut run)
}

/// Renders the pages in the tutorial as screenshots.
pub(crate) fn take_screenshots(workspace: &Workspace) -> Result<(), TaskError> {
    let mut run = tests(workspace, &[]);
    run.arg("tutorial::the_tutorial");
    run.env("CONTROLD_SCREENSHOTS", workspace.root().join(PICTURES));
    command::run(&mut run)
}

/// Builds the command of the page tests; arguments appended to it select some of them.
fn tests(workspace: &Workspace, options: &[&str]) -> Command {
    let mut run = workspace.cargo(&["test", "--locked", "--package", "control-ui"]);
    run.args(options).args(["--test", "pages", "--"]);
    run
}
