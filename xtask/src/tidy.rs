//! `cargo xtask tidy`: conventions that the compiler does not check, and figures on the project's
//! size. Reports all violations at once.

mod figures;
mod fuzzing;
mod graph;
mod items;
mod links;
mod places;
mod proofs;
mod prose;
mod runner;
mod settings;
mod source;
mod structure;
mod threats;
mod tree;
mod violation;

use self::graph::Graph;
use self::tree::Tree;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::{print_error, say};
use xtask_kit::workspace::Workspace;

/// Runs all checks of the project.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    let tree = Tree::read(workspace)?;
    let graph = Graph::from_metadata(&workspace.metadata()?, workspace.root());
    let mut violations = [
        structure::folders::violations(&tree),
        fuzzing::violations(&tree),
        items::twins::violations(&tree),
        structure::layers::violations(&graph),
        links::violations(&tree),
        structure::manifests::violations(&tree, &graph),
        structure::modules::violations(&tree),
        prose::naming::violations(&tree),
        prose::noise::violations(&tree),
        prose::opening::violations(&tree),
        places::violations(&tree),
        proofs::violations(&tree),
        prose::ratchet::violations(&tree)?,
        runner::violations(&tree),
        settings::violations(&tree),
        structure::sizes::violations(&tree),
        threats::violations(&tree),
        prose::wording::violations(&tree),
    ]
    .concat();
    violations.sort();
    say(figures::table(&tree, &graph));
    for violation in &violations {
        print_error(violation);
    }
    if violations.is_empty() {
        say("tidy: no fault");
        return Ok(());
    }
    Err(TaskError::Failed(format!(
        "tidy: {} faults",
        violations.len()
    )))
}
