//! Replacement of the aliases in a whole file.

use super::alias::Anchor;
use super::filters;
use super::replace::{Context, Found, Mode, in_anchor};
use super::tree::Tree;
use std::collections::HashMap;

/// Replaces the aliases in the nodes of `root`, a node that holds a file's nodes.
pub(crate) fn replace<T: Tree>(root: &mut T, mode: Mode) -> Vec<Found> {
    let mut found = Vec::new();
    filters::replace(root, mode, &mut found);
    let context = Context {
        mode,
        failure_modes: failure_modes(root),
    };
    in_anchor(root, Anchor::Top, &context, &mut found);
    for anchor in [
        Anchor::Listener,
        Anchor::Route,
        Anchor::Upstream,
        Anchor::Agent,
    ] {
        let [block, name] = anchor.path() else {
            continue;
        };
        each_child(root, block, &mut |block| {
            each_child(block, name, &mut |node| {
                in_anchor(node, anchor, &context, &mut found);
            });
        });
    }
    found
}

fn each_child<T: Tree>(node: &mut T, name: &str, edit: &mut impl FnMut(&mut T)) {
    for index in 0..node.children().len() {
        if let Some(child) = node.child_mut(index).filter(|child| child.name() == name) {
            edit(child);
        }
    }
}

fn failure_modes<T: Tree>(root: &T) -> HashMap<String, String> {
    let blocks = root
        .children()
        .iter()
        .filter(|node| node.name() == "agents");
    let modes = blocks.flat_map(Tree::children).filter_map(|agent| {
        let arguments = agent.arguments();
        let name = arguments.first()?.as_text()?.to_owned();
        let settings = agent.children().iter();
        let mut modes = settings.filter(|node| node.name() == "failure-mode");
        let arguments = modes.next()?.arguments();
        let mode = arguments.first()?.as_text()?;
        Some((name, mode.to_lowercase()))
    });
    modes.collect()
}
