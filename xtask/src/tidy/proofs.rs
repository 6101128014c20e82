//! Every setting that has an effect names a test, and the test is there.

use super::fault::Fault;
use super::tree::Tree;
use proxy_model::registry::{self, Status};
use std::collections::BTreeSet;

/// Settings whose test does not exist.
pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let known: BTreeSet<&str> = tree
        .rust()
        .flat_map(|(_, source)| source.code.iter())
        .filter_map(|line| function_name(line))
        .collect();
    registry::all()
        .into_iter()
        .filter_map(|setting| match setting.status {
            Status::Enforced { test, .. } if !known.contains(test) => Some(Fault::whole(
                "crates/proxy-model/src/registry",
                format!("{} is proved by `{test}`, which is nowhere", setting.path),
            )),
            Status::Enforced { .. } | Status::NotYet { .. } => None,
        })
        .collect()
}

fn function_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ")?;
    rest.split_once('(').map(|(name, _)| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_nowhere_is_told() {
        let nothing = Tree::of(&[("a.rs", "//! A.\n")]);
        assert!(!faults(&nothing).is_empty());
    }

    #[test]
    fn names_of_functions_are_found_whatever_stands_before_them() {
        for line in ["fn a_b() {", "    pub(crate) async fn a_b(x: u8) {"] {
            assert_eq!(function_name(line), Some("a_b"));
        }
        assert_eq!(function_name("let a = 1;"), None);
    }
}
