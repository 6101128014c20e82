//! `cargo xtask tidy`: what the compiler cannot check, every fault at once, and the figures.

mod fault;
mod figures;
mod graph;
mod layers;
mod links;
mod manifests;
mod noise;
mod opening;
mod proofs;
mod settings;
mod sizes;
mod source;
mod tree;
mod wording;

use self::graph::Graph;
use self::tree::Tree;
use crate::terminal::{complain, say};
use crate::trouble::Trouble;
use crate::workspace::Workspace;

/// Checks the whole project.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Trouble> {
    let tree = Tree::read(workspace)?;
    let graph = Graph::of(&workspace.metadata()?, workspace.root());
    let mut faults = [
        layers::faults(&graph),
        links::faults(&tree),
        manifests::faults(&tree, &graph),
        noise::faults(&tree),
        opening::faults(&tree),
        proofs::faults(&tree),
        settings::faults(&tree),
        sizes::faults(&tree),
        wording::faults(&tree),
    ]
    .concat();
    faults.sort();
    say(figures::table(&tree, &graph));
    for fault in &faults {
        complain(fault);
    }
    if faults.is_empty() {
        say("tidy: no fault");
        return Ok(());
    }
    Err(Trouble::Finding(format!("tidy: {} faults", faults.len())))
}
