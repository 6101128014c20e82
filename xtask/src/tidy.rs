//! `cargo xtask tidy`: checks beyond the compiler's, all violations at once, and the figures.

mod figures;
mod folders;
mod fuzzing;
mod graph;
mod items;
mod layers;
mod links;
mod manifests;
mod modules;
mod naming;
mod noise;
mod opening;
mod places;
mod proofs;
mod ratchet;
mod runner;
mod settings;
mod sizes;
mod source;
mod threats;
mod tree;
mod violation;
mod wording;
mod words;

use self::graph::Graph;
use self::tree::Tree;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::{print_error, say};
use xtask_kit::workspace::Workspace;

/// Checks the whole project.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    let tree = Tree::read(workspace)?;
    let graph = Graph::from_metadata(&workspace.metadata()?, workspace.root());
    let mut violations = [
        folders::violations(&tree),
        fuzzing::violations(&tree),
        items::twins::violations(&tree),
        layers::violations(&graph),
        links::violations(&tree),
        manifests::violations(&tree, &graph),
        modules::violations(&tree),
        naming::violations(&tree),
        noise::violations(&tree),
        opening::violations(&tree),
        places::violations(&tree),
        proofs::violations(&tree),
        ratchet::violations(&tree)?,
        runner::violations(&tree),
        settings::violations(&tree),
        sizes::violations(&tree),
        threats::violations(&tree),
        wording::violations(&tree),
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
